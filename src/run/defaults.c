/* What a run does where its options leave it open. */
#include "base/thread.h"
#include "run/rules.h"

#include <math.h>
#include <string.h>

/* Workers as asked for: --workers, or those of the record, or one in each process of a job, or one on each core. */
static int workers_wanted(const struct sdr_run *run)
{
    const struct sdr_settings *s = &run->options.settings;
    return !run->strategy->team ? 1
           : run->replay        ? (int)run->replay->workers
           : s->workers         ? (int)s->workers
           : run->processes > 1 ? run->processes
                                : sdr_thread_limit();
}

/* Rows that change the parameters together: --batch; of all workers where they compute one gradient, or of the
   quorum whose gradients are averaged. No batch has more rows than there are. */
static enum sdr_status choose_update(struct sdr_run *run)
{
    const struct sdr_settings *s = &run->options.settings;
    const struct sdr_strategy *strategy = run->strategy;
    uint64_t workers = (uint64_t)run->workers, rows = run->train_rows.count, quorum = 1;
    if (run->kind->batch && !strategy->windows && !sdr_options_given(&run->options, "batch"))
        run->options.settings.batch = run->kind->batch;
    run->update_rows = s->batch;
    if (strategy->joint) { /* one batch, of which every worker computes a part */
        run->update_rows *= s->deterministic ? 1 : workers;
    } else if (sdr_by_messages(run)) {
        SDR_TRY(strategy->quorum(run->strategy_options, workers, &quorum));
        uint64_t together = s->batch * sdr_local_steps(run);
        run->update_rows = (together < rows ? together : rows) * quorum;
    }
    if (run->update_rows > rows * quorum)
        run->update_rows = rows * quorum;
    return SDR_OK;
}

enum sdr_status sdr_choose_workers(struct sdr_run *run)
{
    const char *replay = run->options.settings.replay;
    SDR_TRY(sdr_rules_ask(run, SDR_RULES_STRATEGY));
    if (replay)
        SDR_TRY(sdr_replay_open(replay, &run->replay));
    run->workers = workers_wanted(run);
    SDR_TRY(sdr_rules_ask(run, SDR_RULES_WORKERS));
    if ((uint32_t)run->workers > run->train_rows.count && !sdr_by_messages(run))
        run->workers = (int)run->train_rows.count; /* a worker has a row at least */
    SDR_TRY(choose_update(run));
    return sdr_rules_ask(run, SDR_RULES_UPDATE);
}

double sdr_updates_an_epoch(const struct sdr_run *run)
{
    const struct sdr_settings *s = &run->options.settings;
    double rows = run->train_rows.count, quorum = 1;
    double batch = run->strategy->full_batch ? rows : fmin((double)run->update_rows, rows);
    if (sdr_by_messages(run) && !run->strategy->joint) { /* K gradients, of two epochs perhaps */
        batch = fmin((double)s->batch * (double)sdr_local_steps(run), rows);
        quorum = (double)run->update_rows / batch;
    }
    return ceil(rows / batch) / quorum;
}

/* How many passes, and how long the schedule of the step is: up to --epochs or --updates, whichever
   ends first. Left to itself: few rows need several passes, many rows need few. */
void sdr_choose_length(struct sdr_run *run)
{
    const struct sdr_settings *s = &run->options.settings;
    double rows = run->train_rows.count;
    double by_updates = (double)s->updates / sdr_updates_an_epoch(run);
    if (s->epochs)
        run->epochs = s->epochs;
    else if (s->updates)
        run->epochs = (uint64_t)ceil(by_updates) + 1; /* --updates ends it */
    else if (run->strategy->full_batch)
        run->epochs = 100;
    else
        run->epochs =
            (uint64_t)fmax(fmin(fmax(ceil(300000 / rows), 2), 20), (double)run->kind->epochs);
    run->per_row = 1 / rows;
    run->length = (double)run->epochs;
    if (s->updates && by_updates < run->length)
        run->length = by_updates;
}

enum sdr_status sdr_choose_averaging(struct sdr_run *run)
{
    uint64_t from;
    SDR_TRY(sdr_rules_ask(run, SDR_RULES_LENGTH));
    run->average_from =
        sdr_parse_u64(run->options.settings.average, &from) ? from : UINT64_MAX; /* auto, no: off */
    /* An addition costs as much as it has values; this often it costs no more than the steps. */
    uint64_t features = run->problem.features, rows = run->data->rows.count;
    double per_row =
        run->data->rows.dense ? (double)features : (double)run->data->nonzeros / (double)rows;
    double every = (double)features / fmax(per_row * (double)run->update_rows, 1);
    run->average_every = every > 1 ? (uint64_t)every : 1;
    return SDR_OK;
}

/* The step in units in which the data is of size one. */
double sdr_automatic_rate(const struct sdr_run *run)
{
    const struct sdr_optimizer *o = run->optimizer;
    double length = sqrt(run->typical_row), rate = o->rate / pow(length, o->rate_power);
    if (o->rate_power == 2 && run->process == 0 && /* who says how large a step is */
        run->kind->curvature >= 1) /* a row is overshot from 2/(curvature·length²) on */
        rate = fmin(rate, 3 * o->rate / (run->kind->curvature * sdr_longest_row(run)));
    if (o->rate_power ==
        1) { /* such steps do not grow with the labels or slopes: give them their unit */
        rate *= run->target_size;
        if (run->kind->truth == SDR_CLASSES) /* a class wins by the difference of two scores */
            rate *= 2;
    }
    if (run->kind->step > 0)
        rate *= run->kind->step;
    if (o->rate_power == 2 &&
        run->kind->rank) /* factors grow with the ratings, and their slopes too */
        rate /= run->target_size;
    return rate;
}

void sdr_choose_rate(struct sdr_run *run)
{
    double given = run->options.settings.lr;
    run->rate = run->kind->truth == SDR_CLUSTERS ? 1 : given > 0 ? given : sdr_automatic_rate(run);
}
