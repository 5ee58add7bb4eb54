/* A comparison as one self-contained HTML file, without scripts. */
#include "compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BARS_MOST = 32, TENTHS = 10, BUCKETS_MOST = 1024 };

static const char *const style =
    "body{background:var(--paper);color:var(--ink);font:15px/1.5 "
    "system-ui,sans-serif;max-width:1120px;"
    "margin:2rem auto;padding:0 1rem}\n"
    "h1{font-size:1.6rem;margin:0 0 .3rem}h2{font-size:1.2rem;margin:2.2rem 0 .3rem}"
    "p{margin:.3rem 0}.soft{color:var(--soft)}\n"
    ".wide{overflow-x:auto}table{border-collapse:collapse;font-size:14px;margin:.6rem "
    "0;font-variant-numeric:tabular-nums}"
    "th,td{padding:.3rem .55rem;text-align:right;border-bottom:1px solid "
    "var(--grid);white-space:nowrap}"
    "th:first-child,td:first-child{text-align:left}th{font-weight:600}\n"
    ".options td{text-align:left;white-space:normal}summary{cursor:pointer}\n"
    "figure{margin:.8rem 0;max-width:860px}svg{width:100%;height:auto;display:block}"
    ".small{display:grid;grid-template-columns:repeat(auto-fill,minmax(340px,1fr));gap:.5rem "
    "1.5rem}"
    ".small figure{max-width:420px}\n"
    ".swatch{display:inline-block;width:.9em;height:.9em;vertical-align:-.1em;margin:0 .4em 0 "
    "1em}\n"
    ".swatch.computing{background:var(--c0)}.swatch.waiting{background:var(--wait)}\n";

static void begin_page(FILE *out, const struct cli_comparison *c)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>",
          out);
    for (size_t i = 0; i < c->count; i++) {
        fputs(i ? ", " : "Sounder: ", out);
        cli_html(out, c->contender[i].label);
    }
    fputs("</title>\n<style>\n", out);
    cli_palette(out);
    fputs(style, out);
    cli_chart_style(out, false);
    fputs("</style></head><body>\n", out);
}

/* ---- the problem ---- */
static const struct cli_trial *first_trial(const struct cli_comparison *c)
{
    return &c->contender[0].trial[0];
}

static void write_problem(FILE *out, const struct cli_comparison *c)
{
    const struct cli_trial *trial = first_trial(c);
    fputs("<h1>Strategies compared: ", out);
    for (size_t i = 0; i < c->arguments->path_count; i++) {
        const char *slash = strrchr(c->arguments->paths[i], '/');
        fputs(i ? ", " : "", out);
        cli_html(out, slash ? slash + 1 : c->arguments->paths[i]);
    }
    fprintf(out,
            "</h1>\n<p>%.0f rows, %.0f features, %.0f nonzeros; %.0f workers; %zu seed%s from %llu "
            "on.",
            cli_summary_number(trial, "rows"), cli_summary_number(trial, "features"),
            cli_summary_number(trial, "nonzeros"), cli_summary_number(trial, "workers"), c->seeds,
            c->seeds == 1 ? "" : "s", (unsigned long long)c->first_seed);
    if (c->simulated)
        fputs(" Time is that of the simulator.", out);
    fputs("</p>\n", out);
}

static const json_t *option_of(const struct cli_comparison *c, size_t contender, const char *key)
{
    return json_object_get(json_object_get(c->contender[contender].trial[0].summary, "options"),
                           key);
}

static void write_value(FILE *out, const json_t *value)
{
    if (json_is_string(value))
        cli_html(out, json_string_value(value));
    else
        fprintf(out, "%.6g", json_number_value(value));
}

/* Chosen values may differ between strategies, the step size for example. */
static void write_option(FILE *out, const struct cli_comparison *c, const char *key)
{
    bool same = true;
    for (size_t i = 1; i < c->count; i++)
        same &= json_equal((json_t *)option_of(c, 0, key), (json_t *)option_of(c, i, key));
    fprintf(out, "<tr><td>%s</td><td>", key);
    for (size_t i = 0; i < (same ? 1 : c->count); i++) {
        fputs(i ? "; " : "", out);
        write_value(out, option_of(c, i, key));
        if (same)
            continue;
        fputs(" (", out);
        cli_html(out, c->contender[i].label);
        fputs(")", out);
    }
    fputs("</td></tr>\n", out);
}

/* Options that differ from their defaults, and those that the library chose. */
static enum sdr_status write_options(FILE *out, const struct cli_comparison *c)
{
    static const char *const always = " model optimizer schedule lr epochs batch ";
    static const char *const never = " sync seed target evaluate-every ";
    struct sdr_options *defaults = NULL;
    json_t *all = json_object_get(first_trial(c)->summary, "options"), *value;
    const char *key;
    CLI_TRY(sdr_options_create(&defaults));
    fputs("<details open><summary>Options</summary><table class=\"options\">\n", out);
    json_object_foreach(all, key, value)
    {
        char padded[64], preset[256];
        snprintf(padded, sizeof padded, " %s ", key);
        snprintf(preset, sizeof preset, "%s", sdr_options_get(defaults, key));
        bool set = false;
        for (size_t i = 0; i < c->count; i++)
            set |= strcmp(preset, sdr_options_get(c->contender[i].options, key)) != 0;
        if (!strstr(never, padded) && (set || strstr(always, padded)))
            write_option(out, c, key);
    }
    fputs("</table></details>\n", out);
    sdr_options_destroy(defaults);
    return SDR_OK;
}

static enum sdr_status write_table(FILE *out, const struct cli_comparison *c)
{
    struct cli_cells cells;
    char caption[256];
    enum sdr_status status = cli_cells_make(c, &cells);
    fputs("<h2>Results</h2>\n<div class=\"wide\"><table>\n", out);
    for (size_t i = 0; i < cells.rows && status == SDR_OK; i++) {
        fputs("<tr>", out);
        for (size_t j = 0; j < cells.columns; j++) {
            fputs(i ? "<td>" : "<th>", out);
            cli_html(out, cells.text[i * cells.columns + j]);
            fputs(i ? "</td>" : "</th>", out);
        }
        fputs("</tr>\n", out);
    }
    free(cells.text);
    cli_cells_caption(c, caption, sizeof caption);
    fprintf(out, "</table></div>\n<p class=\"soft\">%s.", caption);
    if (isfinite(c->target))
        fprintf(out, " The target is %.6g.", c->target);
    fputs("</p>\n", out);
    return status;
}

/* ---- curves ---- */
static enum sdr_status write_curves(FILE *out, const struct cli_comparison *c, enum cli_error error,
                                    bool target)
{
    for (enum cli_axis axis = CLI_BY_TIME; axis <= CLI_BY_UPDATES; axis++)
        CLI_TRY(cli_curves_draw(out, c, axis, error, target, cli_chart_lines));
    return SDR_OK;
}

static enum sdr_status write_all_curves(FILE *out, const struct cli_comparison *c)
{
    bool valid = cli_has_valid(c), accuracy = c->metric && strcmp(c->metric, "accuracy") == 0;
    fprintf(out, "<h2>Curves</h2>\n<p class=\"soft\">%s</p>\n",
            c->seeds > 1 ? "Lines are means over seeds, bands reach from the smallest to the "
                           "largest (as far as there is room)."
                         : "One seed each.");
    CLI_TRY(write_curves(out, c, CLI_OBJECTIVE, !valid));
    if (valid && (!accuracy || isfinite(c->target)))
        CLI_TRY(write_curves(out, c, CLI_VALID_LOSS, true));
    if (accuracy)
        CLI_TRY(write_curves(out, c, CLI_VALID_ERROR, false));
    return SDR_OK;
}

/* ---- staleness ---- */
/* Fractions of the gradients of all seeds by staleness; the last bar is `last` and more. Returns
   the number of bars, or 0. */
static size_t staleness_shares(const struct cli_comparison *c, size_t contender, size_t last,
                               double share[BUCKETS_MOST])
{
    double sum = 0;
    size_t used = 0;
    memset(share, 0, BUCKETS_MOST * sizeof *share);
    for (size_t s = 0; s < c->seeds; s++) {
        const json_t *counts =
            json_object_get(c->contender[contender].trial[s].summary, "staleness_counts");
        for (size_t i = 0; i < json_array_size(counts) && i < BUCKETS_MOST; i++) {
            double count = json_number_value(json_array_get(counts, i));
            size_t at = i < last ? i : last;
            share[at] += count;
            sum += count;
            used = count > 0 && at + 1 > used ? at + 1 : used;
        }
    }
    for (size_t i = 0; i < used; i++)
        share[i] /= sum;
    return used;
}

/* The staleness that at most one gradient in 200 of any strategy exceeds: outliers must not squeeze
   all others. */
static size_t typical_most(const struct cli_comparison *c, double share[BUCKETS_MOST])
{
    size_t most = 0;
    for (size_t i = 0; i < c->count; i++) {
        size_t used = staleness_shares(c, i, BUCKETS_MOST - 1, share);
        double beyond = 0;
        while (used > most + 1 && beyond + share[used - 1] < 0.005)
            beyond += share[--used];
        most = used > most + 1 ? used - 1 : most;
    }
    return most;
}

static void write_staleness_of(FILE *out, const struct cli_comparison *c, size_t contender,
                               size_t last, const double *share, size_t count)
{
    double highest = 0, sum = 0;
    size_t seeds = 0;
    for (size_t k = 0; k < count; k++)
        highest = fmax(highest, share[k]);
    for (size_t s = 0; s < c->seeds; s++) {
        double mean = cli_summary_number(&c->contender[contender].trial[s], "staleness_mean");
        sum += isfinite(mean) ? mean : 0;
        seeds += isfinite(mean);
    }
    struct cli_histogram histogram = {.title = c->contender[contender].label,
                                      .x_label = "staleness (updates)",
                                      .colour = (int)contender,
                                      .share = share,
                                      .count = count,
                                      .width = last + 1,
                                      .highest = highest * 1.08,
                                      .mean = seeds ? sum / (double)seeds : NAN};
    cli_chart_histogram(out, &histogram);
}

static void write_staleness(FILE *out, const struct cli_comparison *c)
{
    static double share[BUCKETS_MOST];
    size_t last = typical_most(c, share) + 1, buckets = 0;
    bool begun = false;
    for (size_t i = 0; i < c->count; i++) {
        const json_t *counts =
            json_object_get(c->contender[i].trial[0].summary, "staleness_counts");
        buckets = json_array_size(counts) > buckets ? json_array_size(counts) : buckets;
    }
    /* the library's last bucket is "and more" */
    last = last < 4 ? 4 : last < buckets ? last : buckets - 1;
    for (size_t i = 0; i < c->count; i++) {
        size_t count = staleness_shares(c, i, last, share);
        if (count && !begun)
            fputs("<h2>Staleness</h2>\n<p class=\"soft\">Share of the gradients by the number of "
                  "updates between the values they were computed from and their own.</p>\n"
                  "<div class=\"small\">\n",
                  out);
        begun |= count > 0;
        if (count)
            write_staleness_of(out, c, i, last, share, count);
    }
    if (begun)
        fputs("</div>\n", out);
}

/* ---- who waited ---- */
static int by_waiting(const void *a, const void *b)
{
    double x = ((const struct cli_bar *)a)->waiting, y = ((const struct cli_bar *)b)->waiting;
    return (x > y) - (x < y);
}

/* Many workers are merged into ten groups, from those that waited least to those that waited
   most. */
static size_t into_tenths(struct cli_bar *bar, size_t count)
{
    qsort(bar, count, sizeof *bar, by_waiting);
    for (size_t t = 0; t < TENTHS; t++) {
        size_t from = t * count / TENTHS, end = (t + 1) * count / TENTHS;
        struct cli_bar sum = {.computing = 0};
        for (size_t i = from; i < end; i++) {
            sum.computing += bar[i].computing / (double)(end - from);
            sum.waiting += bar[i].waiting / (double)(end - from);
        }
        snprintf(sum.label, sizeof sum.label, "%zu–%zu", t * 10, t * 10 + 10);
        bar[t] = sum; /* t ≤ from: only summed bars are overwritten */
    }
    return TENTHS;
}

static enum sdr_status write_waits_of(FILE *out, const struct cli_comparison *c, size_t contender)
{
    const json_t *detail =
        json_object_get(c->contender[contender].trial[0].summary, "workers_detail");
    size_t count = json_array_size(detail);
    struct cli_bar *bar = calloc(count + 1, sizeof *bar);
    if (!bar)
        return cli_fail(SDR_RUNTIME, "out of memory");
    for (size_t i = 0; i < count; i++) {
        const json_t *worker = json_array_get(detail, i);
        bar[i].computing = json_number_value(json_object_get(worker, "computing"));
        bar[i].waiting = json_number_value(json_object_get(worker, "waiting"));
        snprintf(bar[i].label, sizeof bar[i].label, "%lld",
                 (long long)json_number_value(json_object_get(worker, "worker")));
    }
    if (count > BARS_MOST)
        count = into_tenths(bar, count);
    if (count)
        cli_chart_bars(out, c->contender[contender].label,
                       c->simulated ? "virtual seconds" : "seconds", (int)contender, bar, count);
    free(bar);
    return SDR_OK;
}

static enum sdr_status write_waits(FILE *out, const struct cli_comparison *c)
{
    size_t workers = 0;
    for (size_t i = 0; i < c->count; i++) {
        size_t count =
            json_array_size(json_object_get(c->contender[i].trial[0].summary, "workers_detail"));
        workers = count > workers ? count : workers;
    }
    if (workers == 0)
        return SDR_OK;
    fprintf(
        out,
        "<h2>Who waited</h2>\n<p class=\"soft\">What %s did with their time in the run with seed "
        "%llu.<span class=\"swatch computing\"></span>computing (in the strategy's colour)"
        "<span class=\"swatch waiting\"></span>waiting, with its share</p>\n"
        "<div class=\"small\">\n",
        workers > BARS_MOST ? "workers, in tenths by how long they waited," : "workers",
        (unsigned long long)c->first_seed);
    for (size_t i = 0; i < c->count; i++)
        CLI_TRY(write_waits_of(out, c, i));
    fputs("</div>\n", out);
    return SDR_OK;
}

enum sdr_status cli_report_write(const struct cli_comparison *c, const char *path)
{
    struct cli_output output;
    enum sdr_status status;
    CLI_TRY(cli_output_open(&output, path));
    FILE *out = output.stream;
    begin_page(out, c);
    write_problem(out, c);
    CLI_CHECK(write_options(out, c));
    CLI_CHECK(write_table(out, c));
    CLI_CHECK(write_all_curves(out, c));
    write_staleness(out, c);
    CLI_CHECK(write_waits(out, c));
    fprintf(out, "<p class=\"soft\">Sounder %s</p>\n</body></html>\n", sdr_version());
cleanup:
    return cli_output_close(&output, status);
}
