/* Curves of several seeds on a common grid, by interpolation: their points lie at different
   times. */
#include "compare.h"

#include <math.h>
#include <stdlib.h>

static double place_of(const struct cli_point *point, enum cli_axis axis)
{
    return axis == CLI_BY_TIME      ? point->seconds
           : axis == CLI_BY_UPDATES ? point->updates
                                    : point->rows;
}

static double error_of(const struct cli_point *point, enum cli_error error)
{
    return error == CLI_OBJECTIVE    ? point->objective
           : error == CLI_VALID_LOSS ? point->valid_loss
                                     : 1 - point->valid_metric;
}

static double read_off(const struct cli_trial *trial, enum cli_axis axis, enum cli_error error,
                       double x)
{
    size_t low = 0, high = trial->points - 1;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (place_of(&trial->point[middle], axis) <= x)
            low = middle;
        else
            high = middle;
    }
    const struct cli_point *a = &trial->point[low], *b = &trial->point[high];
    double from = place_of(a, axis), length = place_of(b, axis) - from;
    double share = length > 0 ? (x - from) / length : 1;
    share = share < 0 ? 0 : share > 1 ? 1 : share;
    return (1 - share) * error_of(a, error) + share * error_of(b, error);
}

static bool has_curve(const struct cli_trial *trial)
{
    return trial->outcome == CLI_TRAINED && trial->points > 1;
}

void cli_band_make(const struct cli_comparison *c, size_t contender, enum cli_axis axis,
                   enum cli_error error, struct cli_band *band)
{
    const struct cli_trial *trial = c->contender[contender].trial;
    double end = INFINITY; /* of the shortest run: beyond it seeds would drop out one by one */
    band->count = 0;
    for (size_t s = 0; s < c->seeds; s++)
        if (has_curve(&trial[s]))
            end = fmin(end, place_of(&trial[s].point[trial[s].points - 1], axis));
    for (size_t i = 0; i < CLI_GRID && isfinite(end); i++) {
        /* denser at the start */
        double share = (double)i / (CLI_GRID - 1), x = end * share * share;
        double sum = 0, low = INFINITY, high = -INFINITY;
        size_t seeds = 0;
        for (size_t s = 0; s < c->seeds; s++) {
            if (!has_curve(&trial[s]))
                continue;
            double y = read_off(&trial[s], axis, error, x);
            sum += y;
            low = fmin(low, y);
            high = fmax(high, y);
            seeds++;
        }
        if (!isfinite(sum))
            continue;
        band->x[band->count] = x;
        band->mean[band->count] = sum / (double)seeds;
        band->low[band->count] = low;
        band->high[band->count++] = high;
    }
}

/* ---- drawing ---- */
enum sdr_status cli_curves_draw(FILE *out, const struct cli_comparison *c, enum cli_axis axis,
                                enum cli_error error, bool target,
                                void (*draw)(FILE *out, const struct cli_chart *chart))
{
    static const char *const y_label[] = {
        [CLI_OBJECTIVE] = "objective",
        [CLI_VALID_LOSS] = "validation loss",
        [CLI_VALID_ERROR] = "validation error",
    };
    static const char *const against[] = {"time", "updates", "rows"};
    const char *x_label = axis != CLI_BY_TIME ? against[axis]
                          : c->simulated      ? "time (virtual seconds)"
                                              : "time (seconds)";
    struct cli_band *band = calloc(c->count, sizeof *band);
    struct cli_series *series = calloc(c->count, sizeof *series);
    char title[128];
    if (!band || !series) {
        free(band);
        free(series);
        return cli_fail(SDR_RUNTIME, "out of memory");
    }
    for (size_t i = 0; i < c->count; i++) {
        cli_band_make(c, i, axis, error, &band[i]);
        series[i] = (struct cli_series){c->contender[i].label, &band[i]};
    }
    snprintf(title, sizeof title, "%c%s against %s", y_label[error][0] - 'a' + 'A',
             y_label[error] + 1, against[axis]);
    struct cli_chart chart = {title,  x_label, y_label[error], target ? c->target : NAN,
                              series, c->count};
    draw(out, &chart);
    free(band);
    free(series);
    return SDR_OK;
}

enum sdr_status cli_chart_write(const struct cli_comparison *c, const char *path)
{
    struct cli_output output;
    enum cli_error error = c->chart_error     ? CLI_VALID_ERROR
                           : cli_has_valid(c) ? CLI_VALID_LOSS
                                              : CLI_OBJECTIVE;
    CLI_TRY(cli_output_open(&output, path));
    enum sdr_status status =
        cli_curves_draw(output.stream, c, c->chart_x, error, !c->chart_error, cli_chart_file);
    return cli_output_close(&output, status);
}
