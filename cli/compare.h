/* Shared by the files of `sounder compare`: the runs, their measures, and charts. */
#ifndef CLI_COMPARE_H
#define CLI_COMPARE_H

#include "cli.h"

/* A point of a run's curve; NaN for unknown values. */
struct cli_point {
    double seconds, updates, rows, objective, valid_loss, valid_metric;
};

enum cli_outcome { CLI_NOT_RUN, CLI_TRAINED, CLI_DIVERGED };

/* One run: a contender with a seed. */
struct cli_trial {
    enum cli_outcome outcome;
    struct cli_point *point; /* owned */
    size_t points, room;
    bool failed;     /* out of memory for a point */
    json_t *summary; /* owned: the library's, without measurements of this machine; NULL: not run */
    double wall;     /* seconds of real time */
};

/* The common options with a strategy of --sync, a --variant, or both. */
struct cli_contender {
    char *sync;                  /* owned: the spec as given; NULL: the default of train */
    const char *variant;         /* borrowed: the text of --variant; NULL: none */
    char *label;                 /* owned: what varies, "async optimizer=adam lr=0.01" */
    struct sdr_options *options; /* owned */
    struct cli_trial *trial;     /* owned: one per seed */
};

enum cli_axis { CLI_BY_TIME, CLI_BY_UPDATES, CLI_BY_ROWS };
struct cli_comparison {
    const struct cli_arguments *arguments; /* borrowed */
    struct cli_contender *contender;       /* owned */
    size_t count, seeds;
    uint64_t first_seed;
    enum cli_axis chart_x;
    bool chart_error;   /* --chart-y error */
    double target;      /* NaN: none */
    const char *metric; /* static: "accuracy", "r2"; NULL without validation data or metric */
    bool simulated;     /* seconds are virtual */
};

/* ---- contenders (compare_contenders.c) ---- */
/* The product of --sync and --variant, each with options of its own. */
enum sdr_status cli_contenders_make(struct cli_comparison *c);
void cli_contenders_release(struct cli_comparison *c);
/* Puts "--variant '…': " before the message of a failure that concerns this contender. */
enum sdr_status cli_contender_failed(const struct cli_contender *contender, enum sdr_status status);

/* The loss that --target refers to: of validation data, if there is any. */
double cli_point_loss(const struct cli_point *point);
/* The first point at or below the target, or NULL. */
const struct cli_point *cli_first_at_target(const struct cli_comparison *c,
                                            const struct cli_trial *trial);
/* A number of a run's summary; NaN if absent. */
double cli_summary_number(const struct cli_trial *trial, const char *key);
/* Whether runs were measured on validation data. */
bool cli_has_valid(const struct cli_comparison *c);
size_t cli_trials_with(const struct cli_comparison *c, size_t contender, enum cli_outcome outcome);

/* ---- measures (compare_measure.c) ---- */
/* Statistics over seeds: median, mean, and half the 95 % confidence interval of the mean by
   Student's t (NaN for one number). */
struct cli_spread {
    size_t count;
    double median, mean, half;
};
struct cli_measure {
    const char *key, *heading;
    enum { CLI_PLAIN, CLI_BYTES, CLI_PERCENT } unit;
    bool precise; /* show its spread in the table */
    double (*of)(const struct cli_comparison *c, const struct cli_trial *trial);
};
extern const struct cli_measure cli_measures[]; /* ends with key NULL */
/* Over the seeds that did not diverge. */
enum sdr_status cli_measure_spread(const struct cli_comparison *c, size_t contender,
                                   const struct cli_measure *measure, struct cli_spread *spread);

enum { CLI_CELL = 64, CLI_COLUMNS = 16 };
/* The results as texts, for a table: headings in cell[0 … columns − 1], then one row per contender.
   The caller frees *cells. */
struct cli_cells {
    size_t rows, columns;
    char (*text)[CLI_CELL]; /* owned: (rows, columns) */
};
enum sdr_status cli_cells_make(const struct cli_comparison *c, struct cli_cells *cells);
/* One sentence that explains the table. */
void cli_cells_caption(const struct cli_comparison *c, char *text, size_t room);
enum sdr_status cli_print_comparison(const struct cli_comparison *c);

/* ---- JSON (compare_json.c) ---- */
json_t *cli_comparison_json(const struct cli_comparison *c); /* NULL: out of memory */

/* ---- the HTML report (compare_report.c), and its first chart alone (compare_curve.c) ---- */
enum sdr_status cli_report_write(const struct cli_comparison *c, const char *path);
/* The chart of --chart-x and --chart-y, by default the loss that --target refers to against time,
   as an SVG file. */
enum sdr_status cli_chart_write(const struct cli_comparison *c, const char *path);

/* ---- curves on a common grid (compare_curve.c) ---- */
enum { CLI_GRID = 240 };
enum cli_error { CLI_OBJECTIVE, CLI_VALID_LOSS, CLI_VALID_ERROR };
/* Mean, minimum and maximum over seeds at CLI_GRID points; count is 0 without a curve. */
struct cli_band {
    size_t count;
    double x[CLI_GRID], mean[CLI_GRID], low[CLI_GRID], high[CLI_GRID];
};
void cli_band_make(const struct cli_comparison *c, size_t contender, enum cli_axis axis,
                   enum cli_error error, struct cli_band *band);

/* Draws the curves of all contenders with `draw`; target: with the line of --target. */
struct cli_chart;
enum sdr_status cli_curves_draw(FILE *out, const struct cli_comparison *c, enum cli_axis axis,
                                enum cli_error error, bool target,
                                void (*draw)(FILE *out, const struct cli_chart *chart));

/* ---- charts (chart.c, chart_bars.c): SVG inside a page, coloured by its style ---- */
/* Curve i has colour i mod CLI_COLOURS and dash pattern i / CLI_COLOURS mod CLI_DASHES. */
enum { CLI_COLOURS = 7, CLI_DASHES = 4 };
/* The colours (chart_style.c) as CSS variables, for light and dark mode. */
void cli_palette(FILE *out);
/* The style rules of charts, on these variables; alone: with literal colours, for viewers without
   CSS variables. */
void cli_chart_style(FILE *out, bool alone);
/* Escapes <, >, & and quotes for HTML. */
void cli_html(FILE *out, const char *text);
struct cli_series {
    const char *name;
    const struct cli_band *band;
};
struct cli_chart {
    const char *title, *x_label, *y_label;
    double target; /* horizontal line; NaN: none */
    const struct cli_series *series;
    size_t count;
};
void cli_chart_lines(FILE *out, const struct cli_chart *chart);
/* The same as a stand-alone file, with size, background and colours. */
void cli_chart_file(FILE *out, const struct cli_chart *chart);
/* Ticks of an axis: 1, 2 or 5 times a power of ten; on a logarithmic axis, in every decade. */
enum { CLI_TICKS = 32 };
size_t cli_ticks(double low, double high, bool logarithmic, double tick[CLI_TICKS]);

/* Fractions by number, 0 … count − 1. There is room for `width` bars, so that charts side by side
   have the same axis; the last bar means "and more". */
struct cli_histogram {
    const char *title, *x_label;
    int colour;
    const double *share;
    size_t count, width;
    double highest; /* end of the axis */
    double mean;    /* marked; NaN: not marked */
};
void cli_chart_histogram(FILE *out, const struct cli_histogram *histogram);
/* A stacked bar of two parts. */
struct cli_bar {
    char label[48];
    double computing, waiting;
};
void cli_chart_bars(FILE *out, const char *title, const char *x_label, int colour,
                    const struct cli_bar *bar, size_t count);

#endif
