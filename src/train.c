/* How a run goes, top to bottom.

       sdr_run_create   options + data → problem, plug-ins, parameters
       sdr_run_train    strategy.worker(node): deal → pull → gradient → commit, until the run is over
         sdr_epoch_end    evaluate, report, early stop, checkpoint; then the next epoch's order
       sdr_run_model    the weights in the units of the data, with schema and labels

   The loops that train are in sync/; what they may use is in node.h. */
#include "base/clock.h"
#include "base/memory.h"
#include "base/rng.h"
#include "base/thread.h"
#include "model.h"
#include "registry.h"
#include "run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- create: choosing what the options leave open ---- */
static enum sdr_status copy_options(struct sdr_run *run, const struct sdr_options *options)
{
    run->options.report = options->report;
    run->options.report_context = options->report_context;
    SDR_TRY(sdr_option_defaults(sdr_settings_table, &run->options.settings));
    for (const struct sdr_option *row = sdr_settings_table; row->key; row++) {
        struct sdr_text value = {0};
        sdr_option_print(row, &options->settings, &value);
        enum sdr_status status = SDR_OK;
        if (value.bytes && (row->type != SDR_TEXT || *value.bytes))
            status = sdr_option_set(row, row->key, value.bytes, &run->options.settings);
        sdr_text_free(&value);
        SDR_TRY(status);
    }
    run->options.was_set = options->was_set;
    return SDR_OK;
}

static enum sdr_status choose_plugins(struct sdr_run *run)
{
    const struct sdr_settings *s = &run->options.settings;
    const struct sdr_plugin *plugin;
    bool automatic = strcmp(s->optimizer, "auto") == 0;
    SDR_TRY(sdr_plugin_choose("strategy", sdr_strategy_table, s->sync, &plugin,
                              &run->strategy_options));
    run->strategy = (const struct sdr_strategy *)plugin;
    SDR_TRY(sdr_plugin_choose("optimizer", sdr_optimizers(), automatic ? "adagrad" : s->optimizer,
                              &plugin, &run->optimizer_options));
    run->optimizer = (const struct sdr_optimizer *)plugin;
    /* Plain steps end in the noise of single rows unless they shrink. */
    const char *schedule = s->schedule;
    if (strcmp(schedule, "auto") == 0)
        schedule = "linear";
    SDR_TRY(sdr_plugin_choose("schedule", sdr_schedule_table, schedule, &plugin,
                              &run->schedule_options));
    run->schedule = (const struct sdr_schedule *)plugin;
    return run->strategy->check ? run->strategy->check(run) : SDR_OK;
}

static enum sdr_status check_options(const struct sdr_run *run)
{
    const struct sdr_settings *s = &run->options.settings;
    const struct sdr_options *o = &run->options;
    if (s->group_lasso > 0 && run->kind->task != SDR_CLASSES)
        return sdr_fail(SDR_USAGE, "--group-lasso groups the weights of a feature over classes: it needs "
                                   "--model softmax (with one output, --l1 is the same)");
    if (s->group_lasso > 0 && !run->strategy->full_batch && !run->optimizer->uniform)
        return sdr_fail(SDR_USAGE, "--group-lasso needs steps that are equal within a feature: "
                                   "--optimizer sgd, momentum or nesterov, or --sync batch");
    if (run->optimizer->decay && s->l2 > 0)
        return sdr_fail(SDR_USAGE, "--l2 does nothing with %s, which decays by %s:decay",
                        run->optimizer->name, run->optimizer->name);
    if (run->optimizer->own_penalty && run->scale && !s->standardize && (s->l1 > 0 || s->l2 > 0))
        return sdr_fail(SDR_USAGE, "%s with penalties and --scale feature needs --standardize",
                        run->optimizer->name);
    if (run->strategy->full_batch && sdr_options_given(o, "batch"))
        return sdr_fail(SDR_USAGE, "--batch does nothing with --sync %s, which takes all rows at once",
                        run->strategy->name);
    if (s->early_stop && !run->valid)
        return sdr_fail(SDR_USAGE, "--early-stop needs --valid or --valid-fraction");
    if (s->valid_labels && !s->valid)
        return sdr_fail(SDR_USAGE, "--valid-labels needs --valid");
    if (s->resume && !s->run)
        return sdr_fail(SDR_USAGE, "--resume needs --run DIR, the folder of the run to go on with");
    if (sdr_options_given(o, "checkpoint-every") && !s->run)
        return sdr_fail(SDR_USAGE, "--checkpoint-every needs --run DIR, the folder to keep them in");
    return SDR_OK;
}

/* How many passes, and how long the schedule of the step is: up to --epochs or --updates, whichever ends
   first. Left to itself: few rows need several passes, many rows need few. */
static void choose_length(struct sdr_run *run)
{
    const struct sdr_settings *s = &run->options.settings;
    double rows = run->train_rows.count;
    double batch = run->strategy->full_batch ? rows : fmin((double)s->batch, rows);
    double by_updates = (double)s->updates * batch / rows;
    if (s->epochs)
        run->epochs = s->epochs;
    else if (s->updates)
        run->epochs = (uint64_t)ceil(by_updates) + 1; /* batches at an epoch's end may be small */
    else if (run->strategy->full_batch)
        run->epochs = 100;
    else
        run->epochs = (uint64_t)fmin(fmax(ceil(300000 / rows), 2), 20);
    run->length = (double)run->epochs;
    if (s->updates && by_updates < run->length)
        run->length = by_updates;
}

static enum sdr_status choose_averaging(struct sdr_run *run)
{
    const char *text = run->options.settings.average;
    run->average_from = UINT64_MAX;
    if (strcmp(text, "no") != 0 && strcmp(text, "auto") != 0) {
        uint64_t from;
        if (!sdr_parse_u64(text, &from))
            return sdr_fail(SDR_USAGE, "--average takes a number of epochs or no, not '%s'", text);
        run->average_from = from;
    }
    /* An addition costs as much as it has values; this often it costs no more than the steps. */
    uint64_t features = run->problem.features, rows = run->data->rows.count;
    double per_row = run->data->rows.dense ? (double)features : (double)run->data->nonzeros / (double)rows;
    double every = (double)features / fmax(per_row * (double)run->options.settings.batch, 1);
    run->average_every = every > 1 ? (uint64_t)every : 1;
    return SDR_OK;
}

/* The step size: as asked, or in units in which the data is of size one. */
static void choose_rate(struct sdr_run *run)
{
    const struct sdr_optimizer *o = run->optimizer;
    run->rate = run->options.settings.lr;
    if (run->rate > 0)
        return;
    double length = sqrt(run->typical_row);
    run->rate = o->rate / pow(length, o->rate_power);
    if (o->rate_power == 1) { /* such steps do not grow with the labels or slopes: give them their unit */
        run->rate *= run->target_size;
        if (run->kind->task == SDR_CLASSES) /* a class wins by the difference of two scores */
            run->rate *= 2;
    }
}

static struct sdr_penalty penalty_of(const struct sdr_run *run)
{
    const struct sdr_settings *s = &run->options.settings;
    double share = s->penalty_on ? 1.0 / run->train_rows.count : 1.0; /* sum: of all losses */
    struct sdr_penalty penalty = {.l1 = s->l1 * share,
                                  .l2 = s->l2 * share,
                                  .group = s->group_lasso * share,
                                  .standardize = s->standardize};
    if (run->optimizer->decay && !run->strategy->full_batch)
        penalty.l2 = run->optimizer->decay(run->optimizer_options);
    return penalty;
}

static enum sdr_status make_parameters(struct sdr_run *run)
{
    struct sdr_block block[SDR_BLOCKS_MOST];
    struct sdr_parameters *p = &run->parameters;
    struct sdr_penalty penalty = penalty_of(run);
    int blocks = run->kind->shape(&run->problem, block);
    uint64_t batch = run->strategy->full_batch ? run->train_rows.count : run->options.settings.batch;
    if (batch > run->train_rows.count)
        batch = run->train_rows.count;
    SDR_TRY(sdr_parameters_create(p, block, blocks, run->optimizer, run->optimizer_options, &penalty,
                                  run->scale, run->center, run->problem.kernels, batch > 1,
                                  run->average_from != UINT64_MAX));
    SDR_TRY(sdr_allocate(&run->scratch, batch * run->problem.outputs, sizeof(float), "scores"));
    SDR_TRY(sdr_allocate(&run->good, p->count, sizeof(float), "the last good model"));
    if (run->options.settings.early_stop)
        SDR_TRY(sdr_allocate(&run->best, p->count, sizeof(float), "the best model"));
    /* Regression starts at the mean: the intercept need not travel there in small steps. */
    if (run->problem.intercept && run->kind->task == SDR_REGRESSION && !run->optimizer->own_penalty)
        p->value[p->block[1].offset] = (float)run->target_mean;
    SDR_TRY(sdr_allocate(&run->order, run->train_rows.count, sizeof(uint32_t), "row order"));
    run->node = (struct sdr_node){.run = run, .workers = 1, .options = run->strategy_options};
    return sdr_allocate(&run->node.state, run->strategy->state_size, 1, "strategy state");
}

enum sdr_status sdr_run_create(const struct sdr_options *options, struct sdr_data *train,
                               struct sdr_data *valid, struct sdr_run **result)
{
    struct sdr_run *run;
    enum sdr_status status;
    *result = NULL;
    SDR_TRY(sdr_allocate(&run, 1, sizeof *run, "a run"));
    run->data = train;
    run->valid = valid;
    run->last_epoch_loss = run->objective = NAN;
    run->best_valid = INFINITY;
    run->seconds_total_start = (double)sdr_clock_now() * 1e-9;
    SDR_CHECK(copy_options(run, options));
    SDR_CHECK(sdr_problem_prepare(run));
    SDR_CHECK(choose_plugins(run));
    SDR_CHECK(check_options(run));
    choose_length(run);
    SDR_CHECK(choose_averaging(run));
    choose_rate(run);
    SDR_CHECK(make_parameters(run));
    SDR_CHECK(sdr_fingerprint(run));
    *result = run;
    return SDR_OK;
cleanup:
    sdr_run_destroy(run);
    return status;
}

void sdr_run_destroy(struct sdr_run *run)
{
    if (!run)
        return;
    sdr_model_destroy(run->model);
    for (int i = 0; i < run->node.arrays; i++)
        sdr_release(run->node.array[i].value);
    sdr_release(run->node.state);
    sdr_parameters_destroy(&run->parameters);
    sdr_problem_release(run);
    sdr_release(run->optimizer_options);
    sdr_release(run->schedule_options);
    sdr_release(run->strategy_options);
    sdr_release(run->scratch);
    sdr_release(run->good);
    sdr_release(run->best);
    sdr_release(run->order);
    sdr_release(run->fingerprint);
    sdr_option_free(sdr_settings_table, &run->options.settings);
    sdr_release(run);
}

void sdr_run_request(struct sdr_run *run, unsigned requests)
{
    atomic_fetch_or(&run->requests, requests);
}

/* ---- epochs ---- */
/* Whole blocks in random order, rows shuffled within each: what data that streams can afford. */
static void shuffle_blocks(struct sdr_run *run)
{
    enum { BLOCKS_MOST = 1024 };
    uint32_t block[BLOCKS_MOST], count = run->train_rows.count, at = 0;
    uint32_t size = run->data->stream_rows ? (uint32_t)run->data->stream_rows : 65536;
    if (count / BLOCKS_MOST >= size)
        size = count / BLOCKS_MOST + 1;
    uint32_t blocks = (uint32_t)(((uint64_t)count + size - 1) / size);
    uint64_t seed = run->options.settings.seed;
    struct sdr_stream stream = sdr_stream_open(seed, SDR_FOR_BLOCK_SHUFFLE, run->epoch);
    sdr_shuffle(block, blocks, &stream);
    for (uint32_t b = 0; b < blocks; b++) {
        uint32_t first = block[b] * size, rows = count - first < size ? count - first : size;
        stream = sdr_stream_open(seed, SDR_FOR_SHUFFLE, run->epoch << 32 | block[b]);
        sdr_shuffle(run->order + at, rows, &stream);
        for (uint32_t i = 0; i < rows; i++)
            run->order[at + i] += first;
        at += rows;
    }
}

void sdr_epoch_begin(struct sdr_run *run)
{
    const struct sdr_settings *s = &run->options.settings;
    uint32_t count = run->train_rows.count;
    int how = s->shuffle;
    if (how == SDR_SHUFFLE_AUTO)
        how = run->data->streams ? SDR_SHUFFLE_BLOCKS : SDR_SHUFFLE_ROWS;
    if (run->strategy->full_batch || how == SDR_SHUFFLE_NONE) {
        for (uint32_t i = 0; i < count; i++)
            run->order[i] = i;
    } else if (how == SDR_SHUFFLE_BLOCKS) {
        shuffle_blocks(run);
    } else {
        struct sdr_stream stream = sdr_stream_open(s->seed, SDR_FOR_SHUFFLE, run->epoch);
        sdr_shuffle(run->order, count, &stream);
    }
    for (uint32_t i = 0; i < count && run->train_rows.row; i++)
        run->order[i] = run->train_rows.row[run->order[i]];
}

static int threads_of(const struct sdr_run *run)
{
    return run->options.settings.threads ? (int)run->options.settings.threads : sdr_thread_limit();
}

static bool all_finite(const float *w, uint64_t count)
{
    float sum = 0;
    for (uint64_t i = 0; i < count; i++)
        sum += w[i] * 0.0f; /* NaN for NaN and infinity, 0 otherwise */
    return sum == 0.0f;
}

/* Stops after N epochs that were no better, and remembers the best weights. */
static void consider_early_stop(struct sdr_run *run, const float *w)
{
    double loss = sdr_evaluation_loss(&run->valid_result);
    if (loss < run->best_valid) {
        run->best_valid = loss;
        run->best_epoch = run->epoch;
        run->has_best = true;
        memcpy(run->best, w, run->parameters.count * sizeof *w);
    } else if (run->epoch - run->best_epoch >= run->options.settings.early_stop) {
        run->over = true;
        run->why_over = "the validation loss stopped falling";
    }
}

/* --target: on the validation loss, or without one on the objective, evaluated for it. */
static enum sdr_status consider_target(struct sdr_run *run, const float *w, double *objective)
{
    double target, reached;
    const char *text = run->options.settings.target;
    if (!text)
        return SDR_OK;
    if (!sdr_parse_double(text, &target))
        return sdr_fail(SDR_USAGE, "--target takes a loss, not '%s'", text);
    if (run->valid) {
        reached = sdr_evaluation_loss(&run->valid_result);
    } else {
        SDR_TRY(sdr_evaluate(run->kind, &run->problem, run->parameters.block, w, &run->train_rows,
                             threads_of(run), &run->train_result));
        reached = *objective = sdr_evaluation_loss(&run->train_result) +
                               sdr_parameters_penalty(&run->parameters, w);
    }
    if (reached <= target) {
        run->over = true;
        run->why_over = "the target was reached";
    }
    return SDR_OK;
}

enum sdr_status sdr_epoch_end(struct sdr_run *run)
{
    int64_t before = sdr_clock_now();
    double objective = NAN;
    run->epoch++;
    run->at = 0;
    run->last_epoch_loss = run->loss_sum / run->weight_sum;
    run->loss_sum = run->weight_sum = 0;
    const float *w = sdr_parameters_result(&run->parameters);
    if (!all_finite(w, run->parameters.count) || !isfinite(run->last_epoch_loss)) {
        run->over = run->diverged = true;
        run->why_over = "diverged";
        return SDR_OK;
    }
    memcpy(run->good, w, run->parameters.count * sizeof *w);
    run->has_good = true;
    if (run->valid)
        SDR_TRY(sdr_evaluate(run->kind, &run->valid_problem, run->parameters.block, w,
                             &run->valid_rows, threads_of(run), &run->valid_result));
    if (run->epoch >= run->epochs) {
        run->over = true;
        run->why_over = "all epochs done";
    }
    if (run->options.settings.early_stop)
        consider_early_stop(run, w);
    SDR_TRY(consider_target(run, w, &objective));
    run->paused += sdr_clock_now() - before;
    SDR_TRY(sdr_watch_epoch(run, objective));
    if (!run->over)
        sdr_epoch_begin(run);
    return SDR_OK;
}

/* ---- train ---- */
/* The weights the run ends with: the best epoch's, the last good ones, or the present ones. */
static const float *final_weights(struct sdr_run *run)
{
    if (run->has_best)
        return run->best;
    if (run->diverged)
        return run->has_good ? run->good : NULL;
    return sdr_parameters_result(&run->parameters);
}

static enum sdr_status finish(struct sdr_run *run)
{
    const float *w = final_weights(run);
    if (!w)
        return SDR_OK;
    SDR_TRY(sdr_evaluate(run->kind, &run->problem, run->parameters.block, w, &run->train_rows,
                         threads_of(run), &run->train_result));
    if (run->valid)
        SDR_TRY(sdr_evaluate(run->kind, &run->valid_problem, run->parameters.block, w,
                             &run->valid_rows, threads_of(run), &run->valid_result));
    run->objective = sdr_evaluation_loss(&run->train_result) +
                     sdr_parameters_penalty(&run->parameters, w);
    if (!isfinite(run->objective))
        run->diverged = true;
    return sdr_model_create(run, w, &run->model);
}

static enum sdr_status outcome(struct sdr_run *run)
{
    if (run->diverged && run->has_good)
        return sdr_fail(SDR_DIVERGED,
                        "training diverged in epoch %llu; the last good model is of epoch %llu "
                        "(a smaller --lr may help; it was %g)",
                        (unsigned long long)run->epoch + (run->at > 0),
                        (unsigned long long)run->epoch - (run->at == 0), run->rate);
    if (run->diverged)
        return sdr_fail(SDR_DIVERGED,
                        "training diverged in its first epoch (a smaller --lr may help; it was %g)",
                        run->rate);
    if (run->preempted)
        return sdr_fail(run->options.settings.run ? SDR_PREEMPTED : SDR_RUNTIME,
                        run->options.settings.run
                            ? "stopped on request; a checkpoint was written, go on with --resume"
                            : "stopped on request; without --run there is no checkpoint to go on from");
    return SDR_OK;
}

enum sdr_status sdr_run_train(struct sdr_run *run)
{
    enum sdr_status status;
    SDR_TRY(sdr_watch_open(run));
    if (run->options.settings.resume)
        SDR_TRY(sdr_checkpoint_resume(run));
    run->started = sdr_clock_now();
    if (!run->over) {
        sdr_epoch_begin(run);
        status = run->strategy->worker(&run->node);
        if (status != SDR_OK) {
            sdr_watch_close(run, "failed");
            return status;
        }
    }
    run->seconds_train = sdr_run_seconds(run);
    if (run->options.settings.run && !run->diverged && !run->preempted)
        SDR_TRY(sdr_checkpoint_write(run));
    SDR_TRY(finish(run));
    SDR_TRY(sdr_watch_close(run, run->diverged ? "diverged" : run->preempted ? "preempted" : "done"));
    return outcome(run);
}

enum sdr_status sdr_run_model(const struct sdr_run *run, struct sdr_model **model)
{
    *model = NULL;
    if (!run->model)
        return sdr_fail(SDR_RUNTIME, "there is no trained model");
    return sdr_model_copy(run->model, model);
}
