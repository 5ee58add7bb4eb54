/* Setting a run up, in this order. A step may look at what the steps above it have made, and at
   nothing below.

       options                 rules on options alone; the CPU level; a copy of its own
       plug-ins                strategy, optimizer, schedule, transport: which process of a job this
                               is
       job                     all processes mean the same: they compare options and data
       problem                 model, labels, rows, weights; features are measured in the units that
                               optimizer and penalties ask for, where the model does not
       model and strategy      look at the rows themselves
       workers                 need the strategy, the record to be replayed and the rows; then the
                               rows of an update
       optimizer, schedule     where the model means something else by auto: workers and rules above
                               have seen what the options alone say
       length                  needs the rows of an update: updates of an epoch
       averaging               needs the length and the rows of an update
       step                    needs the optimizer and the sizes of features and labels
       parameters              need optimizer, penalties, averaging and the rows of an update
       plan or network         need the parameters; the plan may lower the number of workers, and
                               decides how rows are ordered
       fingerprint             needs plan, network and length
       record                  needs the fingerprint and the order of rows
       points of the curve     need plan and network, and the length

   Rules (rules.h) are asked between the steps, as soon as what they look at is there. */
#include "base/clock.h"
#include "base/memory.h"
#include "run/defaults.h"
#include "run/fingerprint.h"
#include "run/job.h"
#include "run/order.h"
#include "run/point.h"
#include "run/problem.h"
#include "run/record.h"
#include "run/rules.h"
#include "run/run_log.h"
#include "run/run_plugins.h"
#include "server/network.h"
#include "team/plan.h"
#include "team/turns.h"
#include "train.h"

#include <math.h>
#include <string.h>

static struct sdr_penalty penalty_of(const struct sdr_run *run)
{
    const struct sdr_settings *s = &run->options.settings;
    /* Training minimises the mean loss Σ wᵢ·lossᵢ / Σ wᵢ plus penalties. --penalty-on sum adds
       them to Σ wᵢ·lossᵢ: here they get the factor 1/Σ wᵢ. */
    double share = s->penalty_on ? 1.0 / run->set.weight_sum : 1.0;
    struct sdr_penalty penalty = {.l1 = s->l1 * share,
                                  .l2 = s->l2 * share,
                                  .group = s->group_lasso * share,
                                  .standardize = s->standardize};
    if (run->use.optimizer->decay && !sdr_own_steps(run))
        penalty.l2 = run->use.optimizer->decay(run->use.optimizer_options);
    return penalty;
}

/* Regression starts at the mean: the intercept need not get there in small steps. */
static void start_at_mean(struct sdr_run *run, struct sdr_span span)
{
    if (!run->problem.intercept || run->use.kind->truth != SDR_REGRESSION ||
        run->use.optimizer->own_penalty)
        return;
    for (int b = 0; b < run->layout.blocks; b++) {
        uint64_t at = run->layout.block[b].offset;
        if (strcmp(run->layout.block[b].name, "intercept") == 0 && at >= span.first &&
            at < span.end)
            run->parameters.value[at] = (float)run->set.target_mean;
    }
}

enum sdr_status sdr_start_values(struct sdr_run *run, struct sdr_span span)
{
    const struct sdr_model_kind *kind = run->use.kind;
    float *value = run->parameters.value;
    struct sdr_batch rows = {.rows = &run->data->rows,
                             .row = run->set.train_rows.row,
                             .count = run->set.train_rows.count};
    if (kind->start)
        SDR_TRY(kind->start(&run->problem, run->layout.block, &rows, run->set.target_size, span,
                            value));
    start_at_mean(run, span);
    memcpy(run->kept.good + span.first, value + span.first,
           (span.end - span.first) * sizeof *value); /* the first target of --restarts */
    return SDR_OK;
}

static enum sdr_status make_parameters(struct sdr_run *run)
{
    struct sdr_block block[SDR_BLOCKS_MOST] = {0};
    const struct sdr_model_kind *kind = run->use.kind;
    const struct sdr_strategy *strategy = run->use.strategy;
    struct sdr_parameters *p = &run->parameters;
    struct sdr_step_rule rule = {.optimizer = run->use.optimizer,
                                 .cell_optimizer = sdr_cell_optimizer(run->use.optimizer),
                                 .optimizer_options = run->use.optimizer_options,
                                 .penalty = penalty_of(run),
                                 .scale = run->set.scale,
                                 .center = run->set.center,
                                 .kernels = run->problem.kernels,
                                 .project = kind->project,
                                 .reads = kind->reads};
    /* paying them takes more arithmetic than turning */
    if (rule.penalty.l1 > 0 || rule.penalty.l2 > 0)
        rule.cell_optimizer = rule.optimizer;
    int blocks = kind->shape(&run->problem, block);
    if (blocks < 0)
        return SDR_USAGE; /* told already */
    sdr_layout_make(&run->layout, block, blocks);
    if (kind->fused && kind->fused->factors)
        run->shared.factors = kind->fused->factors(&run->problem);
    bool single = sdr_own_steps(run) || (run->pace.update_rows == 1 && !strategy->full_batch);
    /* Gradients of single rows are multiplied out too, unless their steps can be fused. */
    bool batches = !single || strategy->joint || strategy->server || sdr_by_messages(run) ||
                   (strategy->team && strategy->team->windows) || !kind->fused;
    SDR_TRY(sdr_parameters_create(p, &run->layout, &rule, batches,
                                  run->pace.average_from != UINT64_MAX));
    SDR_TRY(sdr_allocate(&run->kept.good, run->layout.count, sizeof(float), "the last good model"));
    if (run->options.settings.early_stop)
        SDR_TRY(sdr_allocate(&run->kept.best, run->layout.count, sizeof(float), "the best model"));
    return SDR_OK;
}

/* Makes workers that exchange messages, or that share memory; then the row order, which depends
   on them. */
static enum sdr_status make_workers(struct sdr_run *run)
{
    if (sdr_by_messages(run)) { /* servers start with their own values */
        uint64_t quorum;
        SDR_TRY(sdr_rules_ask(run, SDR_RULES_MESSAGES));
        SDR_TRY(sdr_choose_quorum(run, (uint64_t)run->workers, &quorum));
        SDR_TRY(sdr_network_create(run, quorum));
    } else {
        SDR_TRY(sdr_start_values(run, sdr_all(&run->layout)));
        SDR_TRY(sdr_plan_make(run));
        SDR_TRY(sdr_plan_carry_out(run));
    }
    return sdr_order_allocate(run);
}

/* Checks the rows, by model and strategy. */
static enum sdr_status check_rows(const struct sdr_run *run)
{
    if (run->use.kind->check && run->process == 0) /* the others do not read all rows */
        SDR_TRY(run->use.kind->check(&run->problem, run->data->name));
    return SDR_OK;
}

/* Steps in units of large labels make the decay that goes with them large, too. */
static void note_decay(const struct sdr_run *run)
{
    const struct sdr_optimizer *o = run->use.optimizer;
    double decay = o->decay && !sdr_own_steps(run) ? o->decay(run->use.optimizer_options) : 0;
    if (run->pace.rate * decay > 0.1)
        sdr_note(&run->options,
                 "%s: each step of %.3g takes %.3g of every weight away: try %s:decay=%.1g",
                 o->name, run->pace.rate, fmin(run->pace.rate * decay, 1), o->name,
                 1e-4 / run->pace.rate);
}

static void note_choices(const struct sdr_run *run)
{
    note_decay(run);
    if (run->use.kind->layered && run->problem.kernels->products->emulated)
        sdr_note(&run->options,
                 "networks are about a hundred times slower here: %s has no fused multiply-add",
                 run->cpu == sdr_cpu_best() ? "this CPU" : "--cpu portable");
    if (!sdr_own_steps(run) && run->use.kind->sense != SDR_STATISTIC)
        sdr_note(&run->options, "%s, step %.3g (%s), schedule %s%s, up to %g epoch%s",
                 run->use.optimizer->name, run->pace.rate,
                 run->options.settings.lr > 0 ? "given" : "automatic", run->use.schedule->name,
                 run->set.scale || run->set.center ? ", features scaled" : "", run->pace.length,
                 run->pace.length == 1 ? "" : "s");
    if (run->network && run->use.strategy->peer)
        sdr_note(&run->options, "%s: %d worker%s without a server (%s)", run->use.strategy->name,
                 run->workers, run->workers == 1 ? "" : "s", run->use.transport->name);
    else if (run->network)
        sdr_note(&run->options, "%s: %d worker%s, %d server%s (%s), %llu gradient%s an update%s",
                 run->use.strategy->name, run->workers, run->workers == 1 ? "" : "s",
                 run->network->servers, run->network->servers == 1 ? "" : "s",
                 run->use.transport->name, (unsigned long long)run->network->policy.quorum,
                 run->network->policy.quorum == 1 ? "" : "s",
                 run->network->policy.sparse ? "; workers pull what their batch touches" : "");
    else if (run->workers > 1)
        sdr_note(&run->options, "%s: %d workers, %llu rows at a time%s", run->use.strategy->name,
                 run->workers, (unsigned long long)run->shared.plan.share,
                 run->shared.plan.in_place ? ", straight to the shared model" : "");
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
    run->progress.last_epoch_loss = run->result.objective = run->progress.least_objective = NAN;
    run->progress.best_valid = INFINITY;
    run->log.seconds_total_start = (double)sdr_clock_now() * 1e-9;
    SDR_CHECK(sdr_options_check(options));
    SDR_CHECK(sdr_settings_cpu(options));
    run->cpu = sdr_cpu_level();
    SDR_CHECK(sdr_options_copy(options, &run->options));
    SDR_CHECK(sdr_choose_plugins(run));
    SDR_CHECK(sdr_job_meet(run));
    SDR_CHECK(sdr_problem_prepare(run));
    SDR_CHECK(check_rows(run));
    SDR_CHECK(sdr_choose_strategy(run));
    SDR_CHECK(sdr_choose_workers(run));
    SDR_CHECK(sdr_choose_by_model(run));
    SDR_CHECK(sdr_rules_ask(run, SDR_RULES_METHOD));
    sdr_choose_length(run);
    SDR_CHECK(sdr_choose_averaging(run));
    sdr_choose_rate(run);
    SDR_CHECK(make_parameters(run));
    SDR_CHECK(make_workers(run));
    SDR_CHECK(sdr_fingerprint(run));
    SDR_CHECK(sdr_run_record_open(run));
    SDR_CHECK(sdr_points_plan(run));
    note_choices(run);
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
    sdr_log_release(run);
    sdr_record_abandon(run->race.record);
    sdr_replay_close(run->race.replay);
    sdr_model_destroy(run->result.model);
    sdr_network_destroy(run);
    sdr_turns_destroy(run);
    for (int w = 0; w < run->shared.nodes && run->shared.node; w++) {
        for (int i = 0; i < run->shared.node[w].arrays; i++)
            sdr_release(run->shared.node[w].array[i].value);
        sdr_release(run->shared.node[w].state);
        if (run->shared.node[w].space)
            sdr_gradient_space_free(run->shared.node[w].space);
        sdr_release(run->shared.node[w].space);
        sdr_release(run->shared.node[w].snapshot);
    }
    sdr_release(run->shared.node);
    for (int i = 0; i < run->shared.replicas; i++)
        sdr_parameters_destroy(&run->shared.replica[i]);
    sdr_release(run->shared.replica);
    sdr_release(run->shared.losses);
    sdr_release(run->shared.shard_progress);
    sdr_release(run->shared.damping);
    sdr_numbering_destroy(&run->shared.numbering);
    sdr_release(run->shared.frequency);
    sdr_window_destroy(run->shared.window);
    sdr_rotation_destroy(run->shared.rotation);
    if (run->use.kind && run->use.kind->full && run->use.kind->full->forget)
        run->use.kind->full->forget(run->shared.round_memory);
    for (int i = 0; i < run->shared.leaves; i++)
        sdr_gradient_space_free(&run->shared.leaf[i]);
    sdr_release(run->shared.leaf);
    if (run->shared.joint.layout)
        sdr_sum_free(&run->shared.joint);
    sdr_release(run->shared.span);
    sdr_parameters_destroy(&run->parameters);
    sdr_problem_release(run);
    sdr_plugin_free(run->use.optimizer, run->use.optimizer_options);
    sdr_plugin_free(run->use.schedule, run->use.schedule_options);
    sdr_plugin_free(run->use.strategy, run->use.strategy_options);
    sdr_plugin_free(run->use.transport, run->use.transport_options);
    sdr_plugin_free(run->use.aggregate, run->use.aggregate_options);
    sdr_plugin_free(run->use.codec, run->use.codec_options);
    sdr_release(run->curve.rows.row);
    sdr_release(run->kept.good);
    sdr_release(run->kept.best);
    sdr_release(run->rows.order);
    sdr_release(run->rows.chunk);
    sdr_release(run->rows.grouped);
    sdr_tensors_free(&run->log.resumed);
    sdr_release(run->log.fingerprint);
    sdr_release(run->log.path);
    sdr_options_release(&run->options);
    sdr_release(run);
}
