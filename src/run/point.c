/* Points of a run's curve (--evaluate-every): objective and validation loss as they stand after every
   so many updates, told to the caller and to metrics.jsonl. The clock stands still meanwhile, and the
   parameters are put back to the bit: a run that is looked at takes the same path as one that is not. */
#include "base/clock.h"
#include "base/memory.h"
#include "run/run.h"

#include <math.h>
#include <string.h>

enum { ROWS_MOST = 20000, POINTS = 100 };

/* Workers that run free have no place between two updates at which all of them stand still. */
static bool counts_updates(const struct sdr_run *run)
{
    return run->network || !run->use.strategy->many || run->shared.plan.joint;
}

static uint64_t planned_updates(const struct sdr_run *run)
{
    uint64_t limit = run->options.settings.updates;
    double all = ceil(sdr_updates_an_epoch(run) * (double)run->pace.epochs);
    return limit && (double)limit < all ? limit : all < 1e18 ? (uint64_t)all : UINT64_MAX;
}

enum sdr_status sdr_points_plan(struct sdr_run *run)
{
    const char *text = run->options.settings.evaluate_every;
    uint32_t count = run->set.train_rows.count;
    if (strcmp(text, "no") == 0)
        return SDR_OK;
    run->curve.on = true;
    if (strcmp(text, "auto") != 0)
        sdr_parse_u64(text, &run->curve.every); /* sdr_options_check has looked at it */
    else if (counts_updates(run))
        run->curve.span = planned_updates(run);
    if (run->curve.every && !counts_updates(run))
        return sdr_fail(SDR_USAGE,
                        "--evaluate-every needs a strategy with servers, or serial, batch or bsp: "
                        "workers of %s do not stop between updates (0: at the ends of epochs)",
                        run->use.strategy->name);
    run->curve.rows.count = count;
    if (count <= ROWS_MOST && !run->set.train_rows.row)
        return SDR_OK;
    return sdr_sample_rows(&run->set.train_rows, ROWS_MOST, run->options.settings.seed,
                           &run->curve.rows);
}

void sdr_points_begin(struct sdr_run *run)
{
    uint64_t version = run->parameters.version;
    if (run->curve.every)
        run->curve.next = (version / run->curve.every + 1) * run->curve.every;
    if (run->curve.span) { /* point k at span·(k/POINTS)²: runs change most at first */
        double span = (double)run->curve.span;
        double k = floor(POINTS * sqrt((double)version / span) + 1e-9) + 1;
        uint64_t next = (uint64_t)(span * (k / POINTS) * (k / POINTS));
        run->curve.next = next > version ? next : version + 1;
    }
}

bool sdr_point_due(const struct sdr_run *run, bool epoch_ended)
{
    if (!run->curve.on || run->end.diverged)
        return false;
    return run->curve.next ? run->parameters.version >= run->curve.next : epoch_ended;
}

/* What looking at weights changes: penalties that are due are charged. */
struct saved {
    struct sdr_parameters handle;
    float *array[4]; /* owned: value, state, charged */
};

static int arrays_of(const struct sdr_parameters *p, float *array[4])
{
    int count = 0;
    if (!p->penalty_paid || p->penalty_due == 0)
        return 0;
    array[count++] = p->value;
    array[count++] = p->penalty_paid;
    for (int s = 0; s < p->rule.optimizer->slots; s++)
        array[count++] = p->slot[s];
    return count;
}

static enum sdr_status save(struct sdr_run *run, struct saved *saved)
{
    float *array[4];
    *saved = (struct saved){.handle = run->parameters};
    int count = arrays_of(&run->parameters, array);
    for (int i = 0; i < count; i++) {
        SDR_TRY(sdr_allocate(&saved->array[i], run->layout.count, sizeof(float),
                             "parameters to come back to"));
        memcpy(saved->array[i], array[i], run->layout.count * sizeof(float));
    }
    return SDR_OK;
}

static void restore(struct sdr_run *run, struct saved *saved)
{
    float *array[4];
    int count = arrays_of(&saved->handle, array);
    for (int i = 0; i < count && saved->array[i]; i++)
        memcpy(array[i], saved->array[i], run->layout.count * sizeof(float));
    for (int i = 0; i < 4; i++)
        sdr_release(saved->array[i]);
    run->parameters.penalty_due =
        saved->handle.penalty_due; /* no more: workers may be looking at the rest */
}

static enum sdr_status evaluate(struct sdr_run *run, double *objective)
{
    struct sdr_evaluation result;
    const float *w = sdr_parameters_result(&run->parameters);
    SDR_TRY(sdr_evaluate(run->use.kind, &run->problem, run->layout.block, w, &run->curve.rows,
                         sdr_run_threads(run), &result));
    *objective = sdr_objective(run, &result, w);
    return run->valid ? sdr_evaluate_valid(run, w) : SDR_OK;
}

enum sdr_status sdr_point(struct sdr_run *run)
{
    int64_t before = sdr_clock_now();
    double objective = NAN;
    struct saved saved;
    enum sdr_status status = save(run, &saved);
    if (status == SDR_OK)
        status = evaluate(run, &objective);
    restore(run, &saved);
    SDR_TRY(status);
    sdr_consider_target(run, run->valid ? sdr_evaluation_loss(&run->result.valid) : objective);
    sdr_points_begin(run);
    run->log.paused += sdr_clock_now() - before;
    sdr_log_point(run, objective);
    return SDR_OK;
}
