/* Setting a run up: what the options say, what they leave open, and the memory it needs. */
#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/thread.h"
#include "run/registry.h"
#include "run/run.h"
#include "team/turns.h"

#include <math.h>
#include <string.h>

static enum sdr_status copy_options(struct sdr_run *run, const struct sdr_options *options)
{
    run->options.report = options->report;
    run->options.report_context = options->report_context;
    SDR_TRY(sdr_option_defaults(sdr_settings_table, &run->options.settings));
    for (const struct sdr_option *row = sdr_settings_table; row->key; row++) {
        struct sdr_text value = {0};
        sdr_option_print(row, &options->settings, &value);
        enum sdr_status status =
            value.failed ? sdr_fail(SDR_RUNTIME, "out of memory: options") : SDR_OK;
        if (status == SDR_OK && value.bytes && (row->type != SDR_TEXT || *value.bytes))
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
    /* Steps of constant size end in the noise of single rows. FTRL's weights are sums over all
       steps: a step that shrinks would shrink them. */
    const char *schedule = s->schedule;
    if (strcmp(schedule, "auto") == 0)
        schedule = run->optimizer->own_penalty ? "constant" : "linear";
    SDR_TRY(sdr_plugin_choose("schedule", sdr_schedule_table, schedule, &plugin,
                              &run->schedule_options));
    run->schedule = (const struct sdr_schedule *)plugin;
    SDR_TRY(sdr_plugin_choose("transport", sdr_transport_table, s->transport, &plugin,
                              &run->transport_options));
    run->transport = (const struct sdr_transport *)plugin;
    run->processes = 1;
    if (run->transport->join)
        SDR_TRY(run->transport->join(run->transport_options, &run->process, &run->processes));
    if (run->process > 0) { /* the first process tells, keeps and resumes */
        run->options.report = NULL;
        sdr_release(run->options.settings.run);
        run->options.settings.run = NULL;
        run->options.settings.resume = false;
    }
    return SDR_OK;
}

/* Whether nodes exchange messages; where a strategy can do without, threads share memory. */
static bool by_messages(const struct sdr_run *run)
{
    const struct sdr_options *o = &run->options;
    return run->strategy->peer ||
           (run->strategy->server &&
            (!run->strategy->worker || strcmp(run->transport->name, "threads") != 0 ||
             o->settings.servers > 1 || sdr_options_given(o, "delay") ||
             sdr_options_given(o, "slow")));
}

/* Options of nodes do nothing where there are none. */
static enum sdr_status check_messages(const struct sdr_run *run)
{
    static const char *const idle[] = {"transport", "servers", "compute", "delay", "slow"};
    bool messages = by_messages(run);
    bool never = !run->strategy->server && !run->strategy->peer;
    for (size_t i = 0; i < sizeof idle / sizeof *idle && never; i++)
        if (sdr_options_given(&run->options, idle[i]))
            return sdr_fail(SDR_USAGE,
                            "--%s does nothing with --sync %s, whose workers share memory: give a "
                            "strategy with a server, such as bsp, k-sync or async",
                            idle[i], run->strategy->name);
    if (run->strategy->peer && sdr_options_given(&run->options, "servers"))
        return sdr_fail(SDR_USAGE, "--servers does nothing with --sync %s, which has no server",
                        run->strategy->name);
    if (run->options.settings.compute && !run->transport->simulated)
        return sdr_fail(SDR_USAGE,
                        "--compute is for --transport sim; --delay holds real workers up");
    if (messages && run->options.settings.pin)
        return sdr_fail(SDR_USAGE, "--pin is for workers that share memory");
    if (messages && (run->options.settings.record || run->options.settings.replay))
        return sdr_fail(SDR_USAGE, "--%s is for workers that race: give --sync hogwild",
                        run->options.settings.record ? "record" : "replay");
    if (messages && run->data->streams)
        return sdr_fail(SDR_USAGE,
                        "--sync %s with messages needs the data in memory: give more --memory",
                        run->strategy->name);
    return SDR_OK;
}

uint64_t sdr_local_steps(const struct sdr_run *run)
{
    return run->strategy->local ? run->strategy->local(run->strategy_options) : 1;
}

bool sdr_keeps_values(const struct sdr_run *run)
{
    return run->strategy->keeps && run->strategy->keeps(run->strategy_options);
}

bool sdr_sends_steps(const struct sdr_run *run)
{
    return run->strategy->steps || sdr_local_steps(run) > 1 || sdr_keeps_values(run);
}

/* Steps that several workers take are added up by servers, which have no state. */
static enum sdr_status check_added_steps(const struct sdr_run *run)
{
    const struct sdr_settings *s = &run->options.settings;
    const char *sync = run->strategy->name, *optimizer = run->optimizer->name;
    if (!sdr_sends_steps(run))
        return SDR_OK;
    if (run->kind->truth == SDR_CLUSTERS || run->kind->project)
        return sdr_fail(
            SDR_USAGE,
            "--model %s does not take steps that could be added up, as --sync %s wants: "
            "give async without push and fetch, or k-async",
            run->kind->name, run->options.settings.sync);
    if (run->strategy->eager && s->servers > 1)
        return sdr_fail(SDR_USAGE, "--sync %s has one server: leave --servers out", sync);
    if (run->optimizer->own_penalty)
        return sdr_fail(SDR_USAGE,
                        "--optimizer %s keeps the weights in its state, which with --sync %s is "
                        "every worker's own: give another --optimizer",
                        optimizer, sync);
    if ((s->l1 > 0 || s->l2 > 0 || s->group_lasso > 0) && run->optimizer->slots > 0)
        return sdr_fail(SDR_USAGE,
                        "with --sync %s penalties are charged by the servers, which do not have "
                        "the state of --optimizer %s: give --optimizer sgd",
                        sync, optimizer);
    return SDR_OK;
}

/* Gradients of an update: of peers those of a joint batch are one. */
static enum sdr_status choose_quorum(const struct sdr_run *run, uint64_t workers, uint64_t *quorum)
{
    *quorum = run->strategy->joint ? workers : 1;
    return run->strategy->peer ? SDR_OK
                               : run->strategy->quorum(run->strategy_options, workers, quorum);
}

static bool own_steps(const struct sdr_run *run)
{
    return run->strategy->own_steps && run->strategy->own_steps(run->strategy_options);
}

/* Going back is for runs whose weights are in one place. */
static enum sdr_status check_restarts(const struct sdr_run *run)
{
    bool sends_steps = sdr_sends_steps(run);
    if (!run->options.settings.restarts)
        return SDR_OK;
    if (run->optimizer->own_penalty)
        return sdr_fail(
            SDR_USAGE,
            "--restarts goes back to weights, and --optimizer %s keeps them in its state: "
            "give another --optimizer",
            run->optimizer->name);
    if ((by_messages(run) && !sends_steps && !run->strategy->peer) ||
        (run->strategy->ordered && !own_steps(run)))
        return SDR_OK;
    if (sends_steps)
        return sdr_fail(
            SDR_USAGE,
            "--restarts does not reach workers that take steps on their own: give --sync async "
            "without push and fetch, or k-async");
    return sdr_fail(SDR_USAGE,
                    "--restarts needs a strategy with servers, such as async, or --sync serial");
}

/* An option that does nothing is an error, not a surprise. */
static enum sdr_status check_own_steps(const struct sdr_run *run)
{
    static const char *const idle[] = {"optimizer", "lr", "schedule", "average", "shuffle"};
    if (!own_steps(run))
        return SDR_OK;
    for (size_t i = 0; i < sizeof idle / sizeof *idle; i++)
        if (sdr_options_given(&run->options, idle[i]))
            return sdr_fail(SDR_USAGE,
                            "--%s does nothing with --sync %s, which takes its own steps "
                            "(%s:optimizer leaves them to --optimizer)",
                            idle[i], run->strategy->name, run->strategy->name);
    return SDR_OK;
}

/* Sums of rows take no steps: options of steps and penalties would do nothing. */
static enum sdr_status check_clusters(struct sdr_run *run)
{
    static const char *const idle[] = {"optimizer", "lr",          "schedule",    "average",
                                       "l1",        "l2",          "group-lasso", "penalty-on",
                                       "scale",     "standardize", "intercept",   "class-weight"};
    if (run->kind->truth != SDR_CLUSTERS)
        return SDR_OK;
    for (size_t i = 0; i < sizeof idle / sizeof *idle; i++)
        if (sdr_options_given(&run->options, idle[i]))
            return sdr_fail(SDR_USAGE, "--%s does nothing with --model %s, which sums rows up",
                            idle[i], run->kind->name);
    if (run->strategy->full_batch && !own_steps(run))
        return sdr_fail(SDR_USAGE,
                        "--sync %s with --model %s is Lloyd's algorithm: it has no method",
                        run->strategy->name, run->kind->name);
    return SDR_OK;
}

/* What the model means by auto. */
static enum sdr_status choose_by_model(struct sdr_run *run)
{
    const struct sdr_settings *s = &run->options.settings;
    const struct sdr_plugin *plugin;
    if (run->kind->optimizer && strcmp(s->optimizer, "auto") == 0) {
        sdr_release(run->optimizer_options);
        run->optimizer_options = NULL;
        SDR_TRY(sdr_plugin_choose("optimizer", sdr_optimizers(), run->kind->optimizer, &plugin,
                                  &run->optimizer_options));
        run->optimizer = (const struct sdr_optimizer *)plugin;
    }
    if (run->kind->schedule && strcmp(s->schedule, "auto") == 0) {
        sdr_release(run->schedule_options);
        run->schedule_options = NULL;
        SDR_TRY(sdr_plugin_choose("schedule", sdr_schedule_table, run->kind->schedule, &plugin,
                                  &run->schedule_options));
        run->schedule = (const struct sdr_schedule *)plugin;
    }
    return SDR_OK;
}

static enum sdr_status choose_workers(struct sdr_run *run)
{
    const struct sdr_settings *s = &run->options.settings;
    const struct sdr_strategy *strategy = run->strategy;
    if (!strategy->team && s->workers > 1 && run->kind->truth == SDR_CLUSTERS &&
        strategy->full_batch)
        return sdr_fail(SDR_USAGE,
                        "--sync %s with --model %s uses all cores without --workers "
                        "(--threads for fewer)",
                        strategy->name, run->kind->name);
    if (!strategy->team && s->workers > 1)
        return sdr_fail(SDR_USAGE, "--sync %s has one worker; --sync hogwild uses all cores",
                        strategy->name);
    if (!strategy->team && sdr_options_given(&run->options, "pin"))
        return sdr_fail(SDR_USAGE, "--pin does nothing with --sync %s, which has one worker",
                        strategy->name);
    if (s->deterministic && !strategy->repeatable && !strategy->can_repeat)
        return sdr_fail(SDR_USAGE,
                        "--sync %s cannot be --deterministic: its result depends on the number of "
                        "workers or on their speed",
                        strategy->name);
    if (s->replay)
        SDR_TRY(sdr_replay_open(s->replay, &run->replay));
    if (run->replay && s->workers && s->workers != run->replay->workers)
        return sdr_fail(SDR_USAGE, "%s: the recorded run had %u workers", s->replay,
                        run->replay->workers);
    uint64_t workers = !strategy->team      ? 1
                       : run->replay        ? run->replay->workers
                       : s->workers         ? s->workers
                       : run->processes > 1 ? (uint64_t)run->processes
                                            : (uint64_t)sdr_thread_limit();
    SDR_TRY(check_restarts(run));
    SDR_TRY(check_messages(run));
    uint64_t most = by_messages(run) ? run->transport->workers_most : SDR_WORKERS_MOST;
    if (workers > most && !by_messages(run))
        return sdr_fail(SDR_USAGE, "--workers takes up to %llu that share memory",
                        (unsigned long long)most);
    if (workers > most)
        return sdr_fail(SDR_USAGE, "--transport %s takes up to %llu workers", run->transport->name,
                        (unsigned long long)most);
    if (workers > run->train_rows.count && !by_messages(run))
        workers = run->train_rows.count;
    run->workers = (int)workers;
    if (run->kind->batch && !strategy->windows && !sdr_options_given(&run->options, "batch"))
        run->options.settings.batch = run->kind->batch;
    run->update_rows = s->batch;
    uint64_t rows = run->train_rows.count, quorum = 1;
    if (strategy->joint) { /* one batch, of which every worker computes a part */
        run->update_rows *= s->deterministic ? 1 : workers;
    } else if (by_messages(run)) {
        SDR_TRY(choose_quorum(run, workers, &quorum));
        uint64_t together = s->batch * sdr_local_steps(run);
        run->update_rows = (together < rows ? together : rows) * quorum;
    }
    if (run->update_rows > rows * quorum)
        run->update_rows = rows * quorum;
    if (by_messages(run) && run->update_rows > UINT32_MAX)
        return sdr_fail(SDR_USAGE, "an update of %llu rows is too large: give a smaller --batch",
                        (unsigned long long)run->update_rows);
    return SDR_OK;
}

static enum sdr_status check_options(const struct sdr_run *run)
{
    const struct sdr_settings *s = &run->options.settings;
    const struct sdr_options *o = &run->options;
    double first; /* factor of the schedule */
    if (s->group_lasso > 0 && run->kind->truth != SDR_CLASSES)
        return sdr_fail(SDR_USAGE,
                        "--group-lasso groups the weights of a feature over classes: it needs "
                        "--model softmax (with one output, --l1 is the same)");
    if (s->group_lasso > 0 && !own_steps(run) && !run->optimizer->uniform)
        return sdr_fail(SDR_USAGE, "--group-lasso needs steps that are equal within a feature: "
                                   "--optimizer sgd, momentum or nesterov, or --sync batch");
    if (own_steps(run) && !run->kind->linear && run->kind->truth != SDR_CLUSTERS)
        return sdr_fail(SDR_USAGE,
                        "--sync %s takes its own steps on linear models only: use "
                        "%s:optimizer, or another --sync, with --model %s",
                        run->strategy->name, run->strategy->name, run->kind->name);
    if (run->optimizer->own_penalty && run->kind->start)
        return sdr_fail(SDR_USAGE, "--optimizer %s starts from zero, and --model %s cannot",
                        run->optimizer->name, run->kind->name);
    if (run->kind->project && (s->l1 > 0 || s->l2 > 0 || run->optimizer->decay))
        return sdr_fail(SDR_USAGE,
                        "--model %s keeps its values in a set: no penalty or decay goes "
                        "with it",
                        run->kind->name);
    if (run->kind->project && run->optimizer->publish)
        return sdr_fail(SDR_USAGE,
                        "--optimizer %s looks ahead, out of the set that --model %s keeps "
                        "its values in (try momentum)",
                        run->optimizer->name, run->kind->name);
    if (run->kind->truth == SDR_CUT && sdr_options_given(o, "intercept"))
        return sdr_fail(SDR_USAGE, "--no-intercept does nothing with --model %s", run->kind->name);
    if (run->optimizer->decay && s->l2 > 0)
        return sdr_fail(SDR_USAGE, "--l2 does nothing with %s, which decays by %s:decay",
                        run->optimizer->name, run->optimizer->name);
    if (run->optimizer->own_penalty && run->scale && !s->standardize && (s->l1 > 0 || s->l2 > 0))
        return sdr_fail(SDR_USAGE, "%s with penalties and --scale feature needs --standardize",
                        run->optimizer->name);
    if (run->optimizer->decay && s->l1 > 0)
        return sdr_fail(SDR_USAGE, "--l1 does not go with the decoupled decay of %s (try adam)",
                        run->optimizer->name);
    if (s->group_lasso > 0 && s->l1 > 0 && !own_steps(run))
        return sdr_fail(SDR_USAGE, "--group-lasso with --l1 needs --sync batch");
    run->schedule->factors(run->schedule_options, &(struct sdr_schedule_time){.epochs = 1}, 1,
                           &first);
    if (run->optimizer->own_penalty && (strcmp(run->schedule->name, "constant") != 0 || first != 1))
        return sdr_fail(SDR_USAGE, "%s shrinks its steps by itself: --schedule %s does not apply",
                        run->optimizer->name, s->schedule);
    if (run->strategy->full_batch && sdr_options_given(o, "batch"))
        return sdr_fail(SDR_USAGE,
                        "--batch does nothing with --sync %s, which takes all rows at once",
                        run->strategy->name);
    if (run->data->streams && (s->shuffle == SDR_SHUFFLE_ROWS || s->shuffle == SDR_SHUFFLE_CHUNKS))
        return sdr_fail(SDR_USAGE,
                        "data that streams (--memory) can be shuffled by blocks, not by %s",
                        s->shuffle == SDR_SHUFFLE_ROWS ? "rows" : "chunks");
    if (run->kind->truth == SDR_REGRESSION && !own_steps(run) &&
        !(run->target_size > 1e-15 && run->target_size < 1e15))
        return sdr_fail(SDR_BAD_DATA,
                        "%s: the labels are of size %.1g: rescale them, or use --sync batch",
                        run->data->name, run->target_size);
    return SDR_OK;
}

double sdr_updates_an_epoch(const struct sdr_run *run)
{
    const struct sdr_settings *s = &run->options.settings;
    double rows = run->train_rows.count, quorum = 1;
    double batch = run->strategy->full_batch ? rows : fmin((double)run->update_rows, rows);
    if (by_messages(run) && !run->strategy->joint) { /* K gradients, of two epochs perhaps */
        batch = fmin((double)s->batch * (double)sdr_local_steps(run), rows);
        quorum = (double)run->update_rows / batch;
    }
    return ceil(rows / batch) / quorum;
}

/* How many passes, and how long the schedule of the step is: up to --epochs or --updates, whichever
   ends first. Left to itself: few rows need several passes, many rows need few. */
static void choose_length(struct sdr_run *run)
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

static enum sdr_status choose_averaging(struct sdr_run *run)
{
    const char *text = run->options.settings.average;
    run->average_from = UINT64_MAX;
    if (strcmp(text, "no") != 0 && strcmp(text, "auto") != 0) {
        uint64_t from;
        if (!sdr_parse_u64(text, &from))
            return sdr_fail(SDR_USAGE, "--average takes a number of epochs or no, not '%s'", text);
        if ((double)from >= run->length)
            return sdr_fail(SDR_USAGE, "--average %s never starts: the run has %g epochs", text,
                            run->length);
        if (!run->strategy->ordered)
            return sdr_fail(SDR_USAGE,
                            "--average needs updates one after the other: --sync serial, "
                            "locked or round-robin");
        run->average_from = from;
    }
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

static void choose_rate(struct sdr_run *run)
{
    double given = run->options.settings.lr;
    run->rate = run->kind->truth == SDR_CLUSTERS ? 1 : given > 0 ? given : sdr_automatic_rate(run);
}

static struct sdr_penalty penalty_of(const struct sdr_run *run)
{
    const struct sdr_settings *s = &run->options.settings;
    /* Training minimises the mean loss Σ wᵢ·lossᵢ / Σ wᵢ plus penalties; on the sum Σ wᵢ·lossᵢ they weigh
       1/Σ wᵢ of that. */
    double share = s->penalty_on ? 1.0 / run->weight_sum : 1.0;
    struct sdr_penalty penalty = {.l1 = s->l1 * share,
                                  .l2 = s->l2 * share,
                                  .group = s->group_lasso * share,
                                  .standardize = s->standardize};
    if (run->optimizer->decay && !own_steps(run))
        penalty.l2 = run->optimizer->decay(run->optimizer_options);
    return penalty;
}

static enum sdr_status make_parameters(struct sdr_run *run)
{
    struct sdr_block block[SDR_BLOCKS_MOST];
    struct sdr_parameters *p = &run->parameters;
    struct sdr_penalty penalty = penalty_of(run);
    int blocks = run->kind->shape(&run->problem, block);
    run->example_floats =
        run->kind->scratch ? run->kind->scratch(&run->problem) : run->problem.outputs;
    run->rank = run->kind->rank ? run->kind->rank(&run->problem) : 0;
    uint64_t batch = own_steps(run)              ? 1
                     : run->strategy->full_batch ? run->train_rows.count
                                                 : run->update_rows;
    if (batch > run->train_rows.count)
        batch = run->train_rows.count;
    SDR_TRY(sdr_parameters_create(p, block, blocks, run->optimizer, run->optimizer_options,
                                  &penalty, run->scale, run->center, run->problem.kernels,
                                  batch > 1 || run->strategy->joint || run->strategy->server ||
                                      run->strategy->peer,
                                  run->average_from != UINT64_MAX));
    SDR_TRY(sdr_allocate(&run->good, p->count, sizeof(float), "the last good model"));
    if (run->options.settings.early_stop)
        SDR_TRY(sdr_allocate(&run->best, p->count, sizeof(float), "the best model"));
    p->still = run->kind->pairs;
    p->project = run->kind->project;
    p->whole = run->kind->truth == SDR_CLUSTERS;
    struct sdr_batch rows = {&run->data->rows, run->train_rows.row, run->train_rows.count, 0, 0, 0};
    if (run->kind->start && run->process == 0) /* which has the servers */
        SDR_TRY(run->kind->start(&run->problem, p->block, &rows, run->options.settings.seed,
                                 run->target_size, p->value));
    /* Regression starts at the mean: the intercept need not travel there in small steps. */
    if (run->problem.intercept && run->kind->truth == SDR_REGRESSION &&
        !run->optimizer->own_penalty)
        p->value[p->block[1].offset] = (float)run->target_mean;
    memcpy(run->good, p->value,
           p->count * sizeof *p->value); /* what --restarts goes back to at first */
    if (by_messages(run)) {
        uint64_t quorum;
        SDR_TRY(check_added_steps(run));
        SDR_TRY(choose_quorum(run, (uint64_t)run->workers, &quorum));
        SDR_TRY(sdr_network_create(run, quorum));
    } else {
        SDR_TRY(sdr_plan_make(run));
        SDR_TRY(sdr_plan_carry_out(run, batch));
    }
    return sdr_order_allocate(run);
}

static enum sdr_status open_record(struct sdr_run *run)
{
    const struct sdr_settings *s = &run->options.settings;
    struct sdr_file_facts facts;
    struct sdr_text text = {0};
    char name[32], *path;
    if (!s->record && !s->replay)
        return SDR_OK;
    if (s->record && s->resume) {
        sdr_note(&run->options, "nothing is recorded: a record needs the run from its beginning");
        return SDR_OK;
    }
    if (s->record && sdr_file_exists(s->record) &&
        (sdr_file_facts(s->record, &facts) != SDR_OK || !facts.regular))
        return sdr_fail(SDR_USAGE, "--record %s: that is no regular file", s->record);
    /* What decides about a run's end and the order of its rows, beyond what a checkpoint may change. */
    sdr_text_add(&text,
                 "%s;epochs=%llu;updates=%llu;target=%s;early-stop=%llu;shuffle=%d;memory=%llu",
                 run->path, (unsigned long long)run->epochs, (unsigned long long)s->updates,
                 s->target ? s->target : "", (unsigned long long)s->early_stop, (int)run->shuffle,
                 (unsigned long long)(run->data->streams ? run->block_rows : 0));
    SDR_TRY(sdr_text_take(&text, &path));
    enum sdr_status status = SDR_OK;
    if (s->record) {
        status = sdr_record_create(s->record, path, (uint32_t)run->workers, &run->record);
    } else if (strcmp(path, run->replay->run_path) != 0) {
        const char *mine = strstr(path, "data="), *its = strstr(run->replay->run_path, "data=");
        bool same = mine && its && strncmp(mine, its, strcspn(mine, ";")) == 0;
        sdr_path_difference(path, run->replay->run_path, name);
        status = sdr_fail(SDR_USAGE, "%s: the recorded run had other %s%s", s->replay,
                          !same                         ? "data"
                          : strcmp(name, "length") == 0 ? "epochs"
                                                        : "options: ",
                          !same || strcmp(name, "length") == 0 ? "" : name);
    } else if (run->replay->workers != (uint32_t)run->workers) {
        status = sdr_fail(SDR_BAD_FILE, "%s: the record has more workers than this run can have",
                          s->replay);
    }
    sdr_release(path);
    return status;
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
    run->last_epoch_loss = run->objective = run->least_objective = NAN;
    run->best_valid = INFINITY;
    run->seconds_total_start = (double)sdr_clock_now() * 1e-9;
    SDR_CHECK(sdr_options_check(options));
    SDR_CHECK(sdr_settings_cpu(options));
    run->cpu = sdr_cpu_level();
    SDR_CHECK(copy_options(run, options));
    SDR_CHECK(choose_plugins(run));
    SDR_CHECK(sdr_job_meet(run));
    SDR_CHECK(sdr_problem_prepare(run));
    if (run->kind->check && run->process == 0) /* the others do not read all rows */
        SDR_CHECK(run->kind->check(&run->problem, train->name));
    if (run->strategy->check)
        SDR_CHECK(run->strategy->check(run));
    SDR_CHECK(choose_workers(run));
    SDR_CHECK(check_clusters(run));
    SDR_CHECK(check_own_steps(run));
    SDR_CHECK(choose_by_model(run));
    SDR_CHECK(check_options(run));
    choose_length(run);
    SDR_CHECK(choose_averaging(run));
    choose_rate(run);
    SDR_CHECK(make_parameters(run));
    SDR_CHECK(sdr_fingerprint(run));
    SDR_CHECK(open_record(run));
    SDR_CHECK(sdr_points_plan(run));
    if (!own_steps(run) && run->kind->truth != SDR_CLUSTERS)
        sdr_note(&run->options, "%s, step %.3g (%s), schedule %s%s, up to %g epoch%s",
                 run->optimizer->name, run->rate,
                 run->options.settings.lr > 0 ? "given" : "automatic", run->schedule->name,
                 run->scale || run->center ? ", features scaled" : "", run->length,
                 run->length == 1 ? "" : "s");
    if (run->network && run->strategy->peer)
        sdr_note(&run->options, "%s: %d worker%s without a server (%s)", run->strategy->name,
                 run->workers, run->workers == 1 ? "" : "s", run->transport->name);
    else if (run->network)
        sdr_note(&run->options, "%s: %d worker%s, %d server%s (%s), %llu gradient%s an update%s",
                 run->strategy->name, run->workers, run->workers == 1 ? "" : "s",
                 run->network->servers, run->network->servers == 1 ? "" : "s", run->transport->name,
                 (unsigned long long)run->network->quorum, run->network->quorum == 1 ? "" : "s",
                 run->network->sparse ? "; workers pull what their batch touches" : "");
    else if (run->workers > 1)
        sdr_note(&run->options, "%s: %d workers, %llu rows at a time%s", run->strategy->name,
                 run->workers, (unsigned long long)run->plan.share,
                 run->plan.in_place ? ", straight to the shared model" : "");
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
    sdr_record_abandon(run->record);
    sdr_replay_close(run->replay);
    sdr_model_destroy(run->model);
    sdr_network_destroy(run);
    sdr_turns_destroy(run);
    for (int w = 0; w < run->nodes && run->node; w++) {
        for (int i = 0; i < run->node[w].arrays; i++)
            sdr_release(run->node[w].array[i].value);
        sdr_release(run->node[w].state);
        sdr_release(run->node[w].scratch);
        sdr_release(run->node[w].snapshot);
    }
    sdr_release(run->node);
    for (int i = 0; i < run->replicas; i++)
        sdr_parameters_destroy(&run->copy[i]);
    sdr_release(run->copy);
    sdr_release(run->copied);
    sdr_release(run->progress);
    sdr_release(run->damping);
    sdr_release(run->frequency);
    sdr_window_destroy(run->window);
    sdr_rotation_destroy(run->rotation);
    sdr_clustering_destroy(run->clustering);
    sdr_release(run->joint);
    sdr_release(run->cut);
    sdr_parameters_destroy(&run->parameters);
    sdr_problem_release(run);
    sdr_release(run->optimizer_options);
    sdr_release(run->schedule_options);
    sdr_plugin_free(run->strategy, run->strategy_options);
    sdr_plugin_free(run->transport, run->transport_options);
    sdr_release(run->point_rows.row);
    sdr_release(run->good);
    sdr_release(run->best);
    sdr_release(run->order);
    sdr_release(run->chunk);
    sdr_release(run->grouped);
    sdr_release(run->fingerprint);
    sdr_release(run->path);
    sdr_option_free(sdr_settings_table, &run->options.settings);
    sdr_release(run);
}
