/* The measures by which runs are compared, over seeds, and their table. */
#include "compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- of one run ---- */
double cli_point_loss(const struct cli_point *point)
{
    return isnan(point->valid_loss) ? point->objective : point->valid_loss;
}

const struct cli_point *cli_first_at_target(const struct cli_comparison *c,
                                            const struct cli_trial *trial)
{
    for (size_t i = 0; i < trial->points; i++)
        if (cli_point_loss(&trial->point[i]) <= c->target)
            return &trial->point[i];
    return NULL;
}

double cli_summary_number(const struct cli_trial *trial, const char *key)
{
    const json_t *value = json_object_get(trial->summary, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

bool cli_has_valid(const struct cli_comparison *c)
{
    return isfinite(cli_summary_number(&c->contender[0].trial[0], "valid_loss"));
}

static double time_to_target(const struct cli_comparison *c, const struct cli_trial *trial)
{
    const struct cli_point *point = cli_first_at_target(c, trial);
    return point ? point->seconds : NAN;
}

static double updates_to_target(const struct cli_comparison *c, const struct cli_trial *trial)
{
    const struct cli_point *point = cli_first_at_target(c, trial);
    return point ? point->updates : NAN;
}

static double objective(const struct cli_comparison *c, const struct cli_trial *trial)
{
    (void)c;
    return cli_summary_number(trial, "objective");
}

static double valid_loss(const struct cli_comparison *c, const struct cli_trial *trial)
{
    (void)c;
    return cli_summary_number(trial, "valid_loss");
}

/* On validation rows, or on training rows without them. */
static double accuracy(const struct cli_comparison *c, const struct cli_trial *trial)
{
    (void)c;
    double valid = cli_summary_number(trial, "valid_accuracy");
    return isnan(valid) ? cli_summary_number(trial, "train_accuracy") : valid;
}

static double per_update(const struct cli_trial *trial, const char *key)
{
    double updates = cli_summary_number(trial, "updates");
    return updates > 0 ? cli_summary_number(trial, key) / updates : NAN;
}

static double update_time(const struct cli_comparison *c, const struct cli_trial *trial)
{
    (void)c;
    return per_update(trial, "seconds_train");
}

static double updates(const struct cli_comparison *c, const struct cli_trial *trial)
{
    (void)c;
    return cli_summary_number(trial, "updates");
}

static double staleness(const struct cli_comparison *c, const struct cli_trial *trial)
{
    (void)c;
    return cli_summary_number(trial, "staleness_mean");
}

static double update_bytes(const struct cli_comparison *c, const struct cli_trial *trial)
{
    (void)c;
    return per_update(trial, "bytes_sent");
}

static double waiting(const struct cli_comparison *c, const struct cli_trial *trial)
{
    (void)c;
    return cli_summary_number(trial, "wait_fraction");
}

const struct cli_measure cli_measures[] = {
    {"time_to_target", "s to target", CLI_PLAIN, true, time_to_target},
    {"updates_to_target", "updates to it", CLI_PLAIN, false, updates_to_target},
    {"objective", "objective", CLI_PLAIN, true, objective},
    {"valid_loss", "valid loss", CLI_PLAIN, true, valid_loss},
    {"accuracy", "accuracy", CLI_PLAIN, true, accuracy},
    {"seconds_per_update", "s/update", CLI_PLAIN, true, update_time},
    {"updates", "updates", CLI_PLAIN, false, updates},
    {"staleness_mean", "staleness", CLI_PLAIN, false, staleness},
    {"bytes_per_update", "sent/update", CLI_BYTES, false, update_bytes},
    {"wait_fraction", "waiting", CLI_PERCENT, false, waiting},
    {NULL, NULL, CLI_PLAIN, false, NULL},
};

size_t cli_trials_with(const struct cli_comparison *c, size_t contender, enum cli_outcome outcome)
{
    size_t count = 0;
    for (size_t s = 0; s < c->seeds; s++)
        count += c->contender[contender].trial[s].outcome == outcome;
    return count;
}

/* ---- over seeds ---- */
/* The 0.975 quantile of Student's t. */
static double student(size_t freedom)
{
    static const double table[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
                                   2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
                                   2.110,  2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064,
                                   2.060,  2.056, 2.052, 2.048, 2.045, 2.042};
    size_t known = sizeof table / sizeof *table;
    return freedom <= known ? table[freedom - 1] : 1.960 + 2.45 / (double)freedom;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static struct cli_spread spread_of(double *value, size_t count)
{
    struct cli_spread spread = {count, NAN, NAN, NAN};
    double sum = 0, square = 0;
    if (count == 0)
        return spread;
    qsort(value, count, sizeof *value, by_size);
    for (size_t i = 0; i < count; i++)
        sum += value[i];
    spread.median = 0.5 * (value[(count - 1) / 2] + value[count / 2]);
    spread.mean = sum / (double)count;
    for (size_t i = 0; i < count; i++)
        square += (value[i] - spread.mean) * (value[i] - spread.mean);
    if (count > 1)
        spread.half = student(count - 1) * sqrt(square / (double)(count - 1) / (double)count);
    return spread;
}

enum sdr_status cli_measure_spread(const struct cli_comparison *c, size_t contender,
                                   const struct cli_measure *measure, struct cli_spread *spread)
{
    double *value = malloc(c->seeds * sizeof *value);
    size_t count = 0;
    if (!value)
        return cli_fail(SDR_RUNTIME, "out of memory");
    for (size_t s = 0; s < c->seeds; s++) {
        const struct cli_trial *trial = &c->contender[contender].trial[s];
        double one = trial->outcome == CLI_TRAINED ? measure->of(c, trial) : NAN;
        if (isfinite(one))
            value[count++] = one;
    }
    *spread = spread_of(value, count);
    free(value);
    return SDR_OK;
}

/* ---- the table ---- */
static void print_cell(const struct cli_measure *measure, const struct cli_spread *spread,
                       char text[CLI_CELL])
{
    char number[CLI_NUMBER_TEXT];
    if (spread->count == 0)
        snprintf(text, CLI_CELL, "-");
    else if (measure->unit == CLI_BYTES)
        snprintf(text, CLI_CELL, "%s", cli_bytes_text(number, spread->median));
    else if (measure->unit == CLI_PERCENT)
        snprintf(text, CLI_CELL, "%.1f %%", 100 * spread->median);
    else if (measure->precise && isfinite(spread->half))
        snprintf(text, CLI_CELL,
                 spread->half >= 100 && spread->half < 1e6 ? "%.4g ±%.0f" : "%.4g ±%.2g",
                 spread->median, spread->half);
    else if (spread->median >= 1e4 && spread->median < 1e15)
        snprintf(text, CLI_CELL, "%.0f", spread->median);
    else
        snprintf(text, CLI_CELL, "%.4g", spread->median);
}

/* Whether a column has any value. */
static bool known(const struct cli_comparison *c, const struct cli_measure *measure)
{
    for (size_t i = 0; i < c->count; i++)
        for (size_t s = 0; s < c->seeds; s++) {
            const struct cli_trial *trial = &c->contender[i].trial[s];
            if (trial->outcome == CLI_TRAINED && isfinite(measure->of(c, trial)))
                return true;
        }
    return false;
}

static void print_outcome(const struct cli_comparison *c, size_t contender, char text[CLI_CELL])
{
    size_t diverged = cli_trials_with(c, contender, CLI_DIVERGED);
    size_t trained = cli_trials_with(c, contender, CLI_TRAINED);
    if (diverged && !trained)
        snprintf(text, CLI_CELL, "diverged");
    else if (diverged)
        snprintf(text, CLI_CELL, "%zu, %zu diverged", trained, diverged);
    else
        snprintf(text, CLI_CELL, "%zu", trained);
}

static void print_reached(const struct cli_comparison *c, size_t contender, char text[CLI_CELL])
{
    size_t reached = 0;
    for (size_t s = 0; s < c->seeds; s++) {
        const struct cli_trial *trial = &c->contender[contender].trial[s];
        reached += trial->outcome == CLI_TRAINED && cli_first_at_target(c, trial);
    }
    snprintf(text, CLI_CELL, "%zu", reached);
}

enum sdr_status cli_cells_make(const struct cli_comparison *c, struct cli_cells *cells)
{
    struct cli_spread spread;
    *cells = (struct cli_cells){c->count + 1, 2, calloc((c->count + 1) * CLI_COLUMNS, CLI_CELL)};
    if (!cells->text)
        return cli_fail(SDR_RUNTIME, "out of memory");
    bool target = isfinite(c->target);
    const struct cli_measure *shown[CLI_COLUMNS];
    size_t count = 0;
    for (const struct cli_measure *m = cli_measures; m->key; m++)
        if (known(c, m))
            shown[count++] = m;
    cells->columns += target + count;
    for (size_t i = 0; i <= c->count; i++) {
        char(*row)[CLI_CELL] = cells->text + i * cells->columns;
        if (i == 0) {
            snprintf(row[0], CLI_CELL, c->contender[0].variant ? "variant" : "strategy");
            snprintf(row[1], CLI_CELL, "seeds");
            if (target)
                snprintf(row[2], CLI_CELL, "reached");
        } else {
            snprintf(row[0], CLI_CELL, "%s", c->contender[i - 1].label);
            print_outcome(c, i - 1, row[1]);
            if (target)
                print_reached(c, i - 1, row[2]);
        }
        for (size_t m = 0; m < count; m++) {
            char *text = row[2 + target + m];
            if (i > 0)
                CLI_TRY(cli_measure_spread(c, i - 1, shown[m], &spread));
            if (i > 0)
                print_cell(shown[m], &spread, text);
            else
                snprintf(text, CLI_CELL, "%s", shown[m]->heading);
        }
    }
    return SDR_OK;
}

void cli_cells_caption(const struct cli_comparison *c, char *text, size_t room)
{
    snprintf(text, room, "%s%s%s",
             c->seeds > 1 ? "medians over seeds, ± half the 95 % confidence interval of the mean "
                            "(Student's t)"
                          : "one seed: nothing is known of how much runs differ",
             c->simulated ? "; s are virtual seconds" : "",
             isfinite(c->target) ? "; reached: seeds that got to the target" : "");
}

enum sdr_status cli_print_comparison(const struct cli_comparison *c)
{
    struct cli_cells cells;
    char caption[256];
    enum sdr_status status = cli_cells_make(c, &cells);
    for (size_t i = 0; i < cells.rows && status == SDR_OK; i++) {
        for (size_t j = 0; j < cells.columns; j++) {
            size_t width = 0;
            for (size_t k = 0; k < cells.rows; k++) {
                size_t one = cli_text_width(cells.text[k * cells.columns + j]);
                width = one > width ? one : width;
            }
            const char *text = cells.text[i * cells.columns + j];
            int gap = (int)(width - cli_text_width(text));
            if (j > 0)
                printf("  %*s", gap, "");
            cli_print_clean(stdout, text);
            if (j == 0)
                printf("%*s", gap, "");
        }
        putchar('\n');
    }
    free(cells.text);
    CLI_TRY(status);
    cli_cells_caption(c, caption, sizeof caption);
    for (const char *at = caption; *at; at++) /* one clause per line */
        if (at == caption || at[-1] != ';')
            putchar(*at == ';' ? '\n' : *at);
    putchar('\n');
    return SDR_OK;
}
