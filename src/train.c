/* The course of a run, top to bottom.

       sdr_run_create   options + data → problem, plug-ins, parameters (setup.c)
       sdr_run_train    strategy.worker(node), until the run is over:
                            next batch → pull → gradient → commit
         sdr_epoch_end  evaluate, report, early stop, checkpoint; then the next epoch's order
       sdr_run_model    the weights in the units of the data, with schema and labels

   The training loops are in sync/; the functions they may call are in the role.h of their role. */
#include "train.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/thread.h"
#include "run/defaults.h"
#include "run/evaluate.h"
#include "run/order.h"
#include "run/point.h"
#include "run/record.h"
#include "run/run_log.h"
#include "run/weights.h"
#include "server/network.h"
#include "server/placement.h"
#include "team/accounting.h"
#include "team/plan.h"
#include "team/turns.h"
#include "trained/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void sdr_run_request(struct sdr_run *run, unsigned requests)
{
    atomic_fetch_or(&run->requests, requests);
}

int sdr_run_threads(const struct sdr_run *run)
{
    return run->options.settings.threads ? (int)run->options.settings.threads : sdr_thread_limit();
}

/* ---- epochs ---- */
/* Stops after N epochs without improvement, and keeps the best weights. */
static enum sdr_status consider_early_stop(struct sdr_run *run)
{
    double loss = sdr_evaluation_loss(&run->result.valid);
    if (loss < run->progress.best_valid) {
        run->progress.best_valid = loss;
        run->progress.best_epoch = run->progress.epoch;
        run->kept.has_best = true;
        return sdr_weights_keep(run, SDR_ARRAY_BEST);
    }
    if (run->progress.epoch - run->progress.best_epoch >= run->options.settings.early_stop) {
        run->end.over = run->end.ended_early = true;
        run->end.why_over = "the validation loss stopped falling";
    }
    return SDR_OK;
}

void sdr_consider_target(struct sdr_run *run, double reached)
{
    double target = 0;
    const char *text = run->options.settings.target;
    if (!text)
        return;
    sdr_parse_double(text, &target); /* checked at set-up */
    if (reached <= target) {
        run->end.over = run->end.ended_early = true;
        run->end.why_over = "the target was reached";
    }
}

static enum sdr_status evaluate_objective(struct sdr_run *run, enum sdr_array which,
                                          double *objective)
{
    SDR_TRY(sdr_weights_evaluate(run, which, &run->set.train_rows, &run->result.train));
    return sdr_weights_objective(run, which, &run->result.train, objective);
}

/* Whether the present weights are good enough to restart from: being finite is not. */
static enum sdr_status look_at_loss(struct sdr_run *run, bool *sound)
{
    double objective;
    if (isnan(run->progress.least_objective)) /* of the initial weights */
        SDR_TRY(evaluate_objective(run, SDR_ARRAY_GOOD, &run->progress.least_objective));
    SDR_TRY(evaluate_objective(run, SDR_ARRAY_NOW, &objective));
    *sound = objective <= run->progress.least_objective + 0.5 * fabs(run->progress.least_objective);
    run->progress.least_objective = fmin(objective, run->progress.least_objective);
    return SDR_OK;
}

/* --target at the end of an epoch: on the validation loss, or without one on the objective,
   which is evaluated for it. */
static enum sdr_status target_at_end(struct sdr_run *run, double *objective)
{
    if (!run->options.settings.target)
        return SDR_OK;
    if (!run->valid)
        SDR_TRY(evaluate_objective(run, SDR_ARRAY_NOW, objective));
    sdr_consider_target(run, run->valid ? sdr_evaluation_loss(&run->result.valid) : *objective);
    return SDR_OK;
}

enum sdr_status sdr_epoch_end(struct sdr_run *run)
{
    int64_t before = sdr_clock_now();
    double objective = NAN;
    run->progress.epoch +=
        run->progress.at /
        run->set.train_rows.count; /* an update of many workers may take several */
    run->progress.at %= run->set.train_rows.count;
    run->progress.last_epoch_loss = run->progress.loss_sum.loss / run->progress.loss_sum.weight;
    bool unknown =
        run->progress.went_back && run->progress.loss_sum.weight == 0; /* it has just restarted */
    run->progress.went_back = false;
    run->progress.loss_sum = (struct sdr_loss_sum){0};
    bool sound = true, finite;
    SDR_TRY(sdr_weights_end_epoch(run));
    SDR_TRY(sdr_weights_ready(run, &finite));
    if (!finite || (!isfinite(run->progress.last_epoch_loss) && !unknown)) {
        SDR_TRY(sdr_diverge(run));
        if (run->end.diverged)
            return SDR_OK;
        SDR_TRY(sdr_weights_ready(run, &finite));
    }
    if (run->progress.restarts < run->options.settings.restarts)
        SDR_TRY(look_at_loss(run, &sound));
    if (sound)
        SDR_TRY(sdr_weights_keep(run, SDR_ARRAY_GOOD));
    run->progress.good_epoch = sound ? run->progress.epoch : run->progress.good_epoch;
    run->kept.has_good |= sound;
    if (run->valid)
        SDR_TRY(sdr_weights_validate(run, SDR_ARRAY_NOW));
    if (run->progress.epoch >= run->pace.epochs) {
        run->end.over = true;
        run->end.why_over = "all epochs done";
        run->end.diverged =
            run->progress.restarts > 0 && !run->kept.has_good; /* no epoch was good */
    }
    if (run->end.enough) {
        run->end.over = run->end.ended_early = true;
        run->end.why_over = run->end.enough;
    }
    if (run->options.settings.early_stop)
        SDR_TRY(consider_early_stop(run));
    SDR_TRY(target_at_end(run, &objective));
    run->log.paused += sdr_clock_now() - before;
    SDR_TRY(sdr_log_epoch(run, objective));
    if (!run->end.over && !run->network && !run->shared.turns) /* these compute orders on demand */
        sdr_shuffle_epoch(run);
    return SDR_OK;
}

/* ---- train ---- */
/* The final weights: of the best epoch, the last good ones, or the present ones. */
static enum sdr_status final_weights(struct sdr_run *run, enum sdr_array *which, bool *any)
{
    bool finite;
    *any = !run->end.diverged || run->kept.has_good || run->kept.has_best;
    *which = run->kept.has_best ? SDR_ARRAY_BEST : SDR_ARRAY_GOOD;
    if (run->kept.has_best || run->end.diverged)
        return SDR_OK;
    *which = SDR_ARRAY_NOW;
    return sdr_weights_ready(run, &finite);
}

/* Evaluates the final weights and creates the model. */
static enum sdr_status finish(struct sdr_run *run)
{
    enum sdr_array which;
    bool any;
    SDR_TRY(final_weights(run, &which, &any));
    if (!any)
        return SDR_OK;
    SDR_TRY(sdr_weights_evaluate(run, which, &run->set.train_rows, &run->result.train));
    if (run->valid)
        SDR_TRY(sdr_weights_validate(run, which));
    SDR_TRY(sdr_weights_objective(run, which, &run->result.train, &run->result.objective));
    if (!isfinite(run->result.objective))
        run->end.diverged = true;
    if (!run->end.diverged && !run->end.preempted)
        sdr_verdict(run);
    return sdr_model_create(run, which, &run->result.model);
}

static double difference(const float *a, const float *b, uint64_t count)
{
    double square = 0, apart = 0;
    for (uint64_t i = 0; i < count; i++) {
        square += (double)b[i] * b[i];
        apart += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
    }
    return square > 0 ? sqrt(apart / square) : sqrt(apart);
}

/* A record ends with the final weights and loss; a replay is compared with them. */
static enum sdr_status close_record(struct sdr_run *run)
{
    struct sdr_record *record = run->race.record;
    const struct sdr_replay *replay = run->race.replay;
    const float *w = run->parameters.value;
    uint64_t count = run->layout.count;
    double loss = sdr_evaluation_loss(&run->result.train);
    run->race.record = NULL;
    if (record && (run->end.preempted || !run->result.model)) {
        sdr_record_abandon(record);
        sdr_note(&run->options, "nothing was recorded: the run did not come to its end");
    } else if (record) {
        SDR_TRY(sdr_record_close(record, w, count, loss));
    }
    if (!replay || !run->result.model || run->end.preempted)
        return SDR_OK;
    if (replay->count != count)
        return sdr_fail(SDR_BAD_FILE, "%s: the record is of another model", replay->name);
    run->race.difference = difference(w, replay->w, count);
    return SDR_OK;
}

/* Advice after a divergence. */
static void advise_step(const struct sdr_run *run, char advice[160])
{
    double given = run->options.settings.lr;
    int length = snprintf(advice, 160, "a smaller --lr may help; the step was %g", run->pace.rate);
    if (given > 0)
        snprintf(advice + length, 160 - (size_t)length, ", and the automatic step would be %.5g",
                 sdr_automatic_rate(run));
}

static enum sdr_status outcome(struct sdr_run *run)
{
    char advice[160];
    if (run->end.diverged)
        advise_step(run, advice);
    if (run->end.diverged && run->kept.has_good)
        return sdr_fail(SDR_DIVERGED,
                        "training diverged in epoch %llu; the last good model is of epoch %llu "
                        "(%s)",
                        (unsigned long long)run->progress.epoch + (run->progress.at > 0),
                        (unsigned long long)run->progress.epoch - (run->progress.at == 0), advice);
    if (run->end.diverged)
        return sdr_fail(SDR_DIVERGED, "training diverged in its first epoch (%s)", advice);
    if (run->end.preempted && run->log.missing[0])
        return sdr_fail(SDR_RUNTIME, "stopped on request, but not all of the run was kept: %s",
                        run->log.missing);
    if (run->end.preempted)
        return sdr_fail(
            run->options.settings.run ? SDR_PREEMPTED : SDR_RUNTIME,
            run->options.settings.run
                ? "stopped on request; a checkpoint was written, go on with --resume"
                : "stopped on request; without --run there is no checkpoint to go on from");
    if (run->log.missing[0])
        return sdr_fail(SDR_RUNTIME, "training finished, but the folder '%s' is incomplete: %s",
                        run->options.settings.run, run->log.missing);
    return SDR_OK;
}

/* The first point of the curve, before the first update. */
enum sdr_status sdr_run_begin(struct sdr_run *run)
{
    if (run->curve.on && run->parameters.version == 0 && !run->end.over)
        SDR_TRY(sdr_point(run));
    run->log.started = sdr_clock_now();
    run->log.paused = 0;
    return SDR_OK;
}

enum sdr_status sdr_run_conclude(struct sdr_run *run)
{
    run->log.seconds_train = sdr_run_seconds(run);
    if (!run->end.diverged && !run->end.preempted && !run->end.was_over)
        sdr_log_last_checkpoint(run);
    return finish(run);
}

/* Runs the strategy's loops, in this process's threads or as part of a job. */
static enum sdr_status work(struct sdr_run *run)
{
    bool elsewhere = run->network && sdr_servers_apart(run->network); /* see server/network.c */
    if (run->process == 0 && !elsewhere)
        SDR_TRY(sdr_run_begin(run));
    /* Other processes wait for a message even if the run is over. */
    if (!run->end.over || (run->network && run->processes > 1)) {
        SDR_TRY(run->shared.turns ? sdr_turns_begin(run) : SDR_OK);
        if (!run->shared.turns && !run->network)
            sdr_shuffle_epoch(run);
        SDR_TRY(run->network ? sdr_network_work(run) : sdr_team_work(run));
    }
    return run->process == 0 && !elsewhere ? sdr_run_conclude(run) : SDR_OK;
}

enum sdr_status sdr_run_train(struct sdr_run *run)
{
    if (run->end.trained)
        return sdr_fail(SDR_USAGE, "a run trains once; create another one");
    run->end.trained = true;
    run->log.started = sdr_clock_now(); /* of its first status */
    SDR_TRY(sdr_log_open(run));
    run->log.started = sdr_clock_now();
    sdr_points_begin(run);
    run->end.was_over = run->end.over;
    enum sdr_status status = work(run);
    if (status != SDR_OK && !run->result.model)
        sdr_log_close(run, "failed");
    SDR_TRY(status);
    if (run->process > 0) { /* the first process has the model */
        run->log.seconds_train = sdr_run_seconds(run);
        return SDR_OK;
    }
    if (run->result.model && !run->end.preempted)
        sdr_log_model(run);
    status = close_record(run);
    if (run->network && run->network->lead.ledger_lost[0] && !run->log.missing[0])
        snprintf(run->log.missing, sizeof run->log.missing, "%s", run->network->lead.ledger_lost);
    sdr_log_close(run, run->end.diverged ? "diverged" : run->end.preempted ? "preempted" : "done");
    return status == SDR_OK ? outcome(run) : status;
}

bool sdr_run_has_model(const struct sdr_run *run)
{
    return run->result.model;
}

enum sdr_status sdr_run_model(const struct sdr_run *run, struct sdr_model **model)
{
    *model = NULL;
    if (!run->result.model)
        return sdr_fail(SDR_RUNTIME, "there is no trained model");
    return sdr_model_copy(run->result.model, model);
}
