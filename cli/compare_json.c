/* A comparison as one JSON object: all curves, all summaries, and statistics over seeds. */
#include "compare.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

static json_t *number(double value)
{
    if (!isfinite(value))
        return json_null();
    return fabs(value) < 1e15 && value == floor(value) ? json_integer((json_int_t)value)
                                                       : json_real(value);
}

static json_t *curve(const struct cli_trial *trial)
{
    static const struct {
        const char *key;
        size_t offset;
    } columns[] = {{"seconds", offsetof(struct cli_point, seconds)},
                   {"updates", offsetof(struct cli_point, updates)},
                   {"rows", offsetof(struct cli_point, rows)},
                   {"objective", offsetof(struct cli_point, objective)},
                   {"valid_loss", offsetof(struct cli_point, valid_loss)},
                   {"valid_metric", offsetof(struct cli_point, valid_metric)}};
    json_t *object = json_object();
    for (size_t c = 0; c < sizeof columns / sizeof *columns; c++) {
        json_t *array = json_array();
        bool known = false;
        for (size_t i = 0; i < trial->points; i++) {
            double value;
            memcpy(&value, (const char *)&trial->point[i] + columns[c].offset, sizeof value);
            known |= isfinite(value);
            cli_json_append(array, number(value));
        }
        if (known || c < 4) /* these columns need validation data */
            cli_json_set(object, columns[c].key, array);
        else
            json_decref(array);
    }
    return object;
}

static json_t *runs(const struct cli_comparison *c, size_t contender)
{
    json_t *array = json_array();
    for (size_t s = 0; s < c->seeds; s++) {
        const struct cli_trial *trial = &c->contender[contender].trial[s];
        if (trial->outcome == CLI_NOT_RUN)
            continue;
        json_t *run = json_pack(
            "{s:I, s:s, s:f, s:o, s:O}", "seed", (json_int_t)(c->first_seed + s), "outcome",
            trial->outcome == CLI_DIVERGED ? "diverged" : "trained", "wall_seconds", trial->wall,
            "curve", curve(trial), "summary", trial->summary);
        cli_json_append(array, run);
    }
    return array;
}

static json_t *measures(const struct cli_comparison *c, size_t contender)
{
    json_t *object = json_object();
    for (const struct cli_measure *m = cli_measures; m->key; m++) {
        struct cli_spread spread;
        if (cli_measure_spread(c, contender, m, &spread) != SDR_OK) {
            cli_json_set(object, m->key, NULL);
            continue;
        }
        if (spread.count == 0)
            continue;
        json_t *entry = json_pack("{s:I, s:o, s:o}", "seeds", (json_int_t)spread.count, "median",
                                  number(spread.median), "mean", number(spread.mean));
        if (isfinite(spread.half)) {
            cli_json_set(entry, "low", number(spread.mean - spread.half));
            cli_json_set(entry, "high", number(spread.mean + spread.half));
        }
        cli_json_set(object, m->key, entry);
    }
    return object;
}

static json_t *contender(const struct cli_comparison *c, size_t i)
{
    const struct cli_contender *one = &c->contender[i];
    const json_t *options = json_object_get(one->trial[0].summary, "options");
    json_t *chosen = json_object_get(options, "sync"); /* NULL: not run */
    json_t *sync = one->sync ? cli_json_text(one->sync)
                   : chosen  ? json_incref(chosen)
                             : json_null();
    json_t *object = json_pack("{s:o, s:I, s:o, s:o}", "sync", sync, "diverged",
                               (json_int_t)cli_trials_with(c, i, CLI_DIVERGED), "measures",
                               measures(c, i), "runs", runs(c, i));
    if (one->variant) {
        cli_json_set(object, "variant", cli_json_text(one->variant));
        cli_json_set(object, "label", cli_json_text(one->label));
    }
    return object;
}

json_t *cli_comparison_json(const struct cli_comparison *c)
{
    json_t *object = json_object(), *strategies = json_array(), *data = json_array();
    for (size_t i = 0; i < c->arguments->path_count; i++)
        cli_json_append(data, cli_json_text(c->arguments->paths[i]));
    cli_json_set(object, "data", data);
    cli_json_set(object, "seeds", json_integer((json_int_t)c->seeds));
    cli_json_set(object, "interval", json_string("95 % confidence of the mean, Student's t"));
    cli_json_set(object, "virtual_time", json_boolean(c->simulated));
    if (isfinite(c->target))
        cli_json_set(object, "target", json_real(c->target));
    if (c->metric)
        cli_json_set(object, "metric", json_string(c->metric));
    for (size_t i = 0; i < c->count; i++)
        cli_json_append(strategies, contender(c, i));
    cli_json_set(object, "strategies", strategies);
    return object;
}
