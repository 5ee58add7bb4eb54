/* Points of the training curve (--evaluate-every): objective and validation loss, reported to
   the caller and in metrics.jsonl. The clock stops meanwhile and the parameters are restored
   exactly: evaluation does not change the path of a run. */
#include "run/point.h"
#include "base/clock.h"
#include "run/defaults.h"
#include "run/evaluate.h"
#include "run/features.h"
#include "run/run_log.h"
#include "run/weights.h"
#include "train.h"

#include <math.h>
#include <string.h>

enum { ROWS_MOST = 20000, POINTS = 100 };

/* Asynchronous workers have no point between two updates at which all of them stand still. */
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
        sdr_parse_u64(text, &run->curve.every); /* checked by sdr_options_check */
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

static enum sdr_status evaluate(struct sdr_run *run, double *objective)
{
    struct sdr_evaluation result;
    bool finite;
    SDR_TRY(sdr_weights_ready(run, &finite));
    SDR_TRY(sdr_weights_evaluate(run, SDR_ARRAY_NOW, &run->curve.rows, &result));
    SDR_TRY(sdr_weights_objective(run, SDR_ARRAY_NOW, &result, objective));
    return run->valid ? sdr_weights_validate(run, SDR_ARRAY_NOW) : SDR_OK;
}

enum sdr_status sdr_point(struct sdr_run *run)
{
    int64_t before = sdr_clock_now();
    double objective = NAN;
    struct sdr_saved saved;
    enum sdr_status status = sdr_weights_save(run, &saved);
    if (status == SDR_OK)
        status = evaluate(run, &objective);
    enum sdr_status restored = sdr_weights_restore(run, &saved);
    SDR_TRY(status == SDR_OK ? restored : status);
    sdr_consider_target(run, run->valid ? sdr_evaluation_loss(&run->result.valid) : objective);
    sdr_points_begin(run);
    run->log.paused += sdr_clock_now() - before;
    sdr_log_point(run, objective);
    return SDR_OK;
}
