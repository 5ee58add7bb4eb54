/* A parameter server that waits for K gradients, takes a step with their mean, and answers: one
   family (Dutta, Joshi, Ghosh, Dube and Nagpurkar, 2018) with three switches.

                      K counts   at an update, workers still computing
   bsp                workers    do not exist: K is the number of workers
   k-sync             workers    are cancelled and restart from the new values
   backup             workers    continue; their late gradients are dropped (Chen et al., 2016)
   k-batch-sync       batches    are cancelled; a worker that delivered starts its next batch at once
   k-async            workers    continue with stale values; a worker that delivered waits
   k-batch-async      batches    continue; a worker that delivered starts its next batch at once
   async              K = 1      continue

   Staleness of a gradient: the number of updates between the values it was computed from and its
   own. */
#include "base/memory.h"
#include "sync/bsp.h"
#include "sync/worker_loop.h"

#include <stdlib.h>
#include <string.h>

struct rule {
    bool batches;     /* a worker may contribute several gradients to an update */
    bool synchronous; /* gradients of older versions are dropped */
    bool cancels;     /* an update cancels computations in progress */
    bool aware;       /* step ∝ 1/(1 + staleness) (Zhang, Gupta, Lian and Liu, 2016) */
    uint64_t late;    /* updates by which every gradient is delayed (Chen et al., 2016) */
    double ramp;      /* epochs over which the delay grows from 0 */
    uint64_t fetch;   /* tasks per pull; in between, local values (Downpour, Dean et al., 2012) */
};

static uint64_t late_now(const struct sdr_node *node, const struct rule *rule)
{
    double share = rule->ramp > 0 ? sdr_epochs_done(node) / rule->ramp : 1;
    return share < 1 ? (uint64_t)(share * (double)rule->late) : rule->late;
}

/* Gradients to collect before an update; at the end of the run, all that remain. */
static uint64_t needed(const struct sdr_node *node, const struct rule *rule)
{
    uint64_t count = sdr_quorum(node) + late_now(node, rule), left = sdr_gradients_left(node);
    return count < left ? count : left;
}

/* Makes an update of the first K gradients; the others move up. */
static enum sdr_status apply(struct sdr_node *node, const struct rule *rule,
                             struct sdr_gradient *gathered, uint64_t *count, bool *more)
{
    uint64_t quorum = sdr_quorum(node);
    for (uint64_t i = 0; i < quorum && rule->aware; i++)
        gathered[i].weight = 1.0f / (float)(1 + sdr_current_version(node) - gathered[i].version);
    SDR_TRY(sdr_apply(node, gathered, quorum, more));
    *count -= quorum;
    for (uint64_t i = 0; i < *count; i++)
        gathered[i] = gathered[i + quorum];
    for (uint64_t i = *count; i < *count + quorum; i++)
        gathered[i].body = NULL;
    return SDR_OK;
}

static enum sdr_status assign(struct sdr_node *node, const struct rule *rule, int worker)
{
    bool keeps = rule->fetch > 1 && sdr_tasks_given(node, worker) % rule->fetch;
    return keeps ? sdr_assign_kept(node, worker) : sdr_assign(node, worker);
}

static int ascending(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* Workers that have delivered and wait for the update. */
struct waiting {
    int *worker; /* owned */
    uint64_t count, room;
};

static enum sdr_status make_wait(struct waiting *waiting, int worker)
{
    SDR_TRY(sdr_grow(&waiting->worker, NULL, waiting->count, &waiting->room,
                     sizeof *waiting->worker, "workers"));
    waiting->worker[waiting->count++] = worker;
    return SDR_OK;
}

/* Assigns the next tasks after an update: to all workers if it cancels, else to those that waited,
   in order of their numbers. */
static enum sdr_status assign_next(struct sdr_node *node, const struct rule *rule,
                                   struct waiting *waiting)
{
    bool everybody = rule->cancels;
    for (int w = 0; w < node->workers && everybody; w++)
        SDR_TRY(assign(node, rule, w));
    if (!everybody && waiting->count > 1)
        qsort(waiting->worker, waiting->count, sizeof *waiting->worker, ascending);
    for (uint64_t i = 0; i < waiting->count && !everybody; i++)
        SDR_TRY(assign(node, rule, waiting->worker[i]));
    waiting->count = 0;
    return SDR_OK;
}

static enum sdr_status lead(struct sdr_node *node, struct rule rule, struct sdr_gradient *gathered,
                            struct waiting *waiting)
{
    uint64_t count = 0;
    bool more = true;
    for (int w = 0; w < node->workers; w++)
        SDR_TRY(assign(node, &rule, w));
    while (more) {
        struct sdr_gradient gradient;
        SDR_TRY(sdr_await_gradient(node, &gradient, &more));
        if (!more)
            break;
        if (gradient.lost) {
            SDR_TRY(sdr_go_on_without(node, &gradient, rule.batches ? 1 : sdr_quorum(node)));
            continue;
        }
        if (gradient.joined) {
            SDR_TRY(assign(node, &rule, gradient.worker));
            continue;
        }
        if (rule.synchronous && gradient.version != sdr_current_version(node)) {
            SDR_TRY(sdr_drop(node, &gradient));
            SDR_TRY(assign(node, &rule, gradient.worker));
            continue;
        }
        gathered[count++] = gradient;
        bool enough = count >= needed(node, &rule);
        if (!enough && (rule.batches || late_now(node, &rule) > 0))
            SDR_TRY(assign(node, &rule, gradient.worker));
        else
            SDR_TRY(make_wait(waiting, gradient.worker));
        while (more && enough) {
            SDR_TRY(apply(node, &rule, gathered, &count, &more));
            if (more)
                SDR_TRY(assign_next(node, &rule, waiting));
            enough = count > 0 && count >= needed(node, &rule);
        }
    }
    return sdr_dismiss(node);
}

static enum sdr_status serve(struct sdr_node *node, struct rule rule)
{
    struct sdr_gradient *gathered;
    struct waiting waiting = {0};
    uint64_t most = sdr_quorum(node) + rule.late;
    SDR_TRY(sdr_allocate(&gathered, most, sizeof *gathered, "gradients"));
    enum sdr_status status = lead(node, rule, gathered, &waiting);
    for (uint64_t i = 0; i < most; i++)
        sdr_body_drop(gathered[i].body);
    sdr_release(waiting.worker);
    sdr_release(gathered);
    return status;
}

/* ---- the members of the family ---- */
struct options {
    uint64_t k;
    bool cancel, aware;
    uint64_t staleness, push, fetch;
    double ramp;
};
static const struct sdr_option counts[] = {
    {"k", SDR_INTEGER, "0", "K", 0, 1e6,
     "gradients averaged into one update; 0: half of the workers, rounded up",
     offsetof(struct options, k), 0},
    {0}};
static const struct sdr_option spares[] = {
    {"k", SDR_INTEGER, "0", "K", 0, 1e6, "workers that an update waits for; 0: all but one in ten",
     offsetof(struct options, k), 0},
    {"cancel", SDR_FLAG, "no", NULL, 0, 0,
     "cancel late workers instead of dropping their gradients (the same as k-sync)",
     offsetof(struct options, cancel), 0},
    {0}};

#define AWARE                                                                                      \
    {                                                                                              \
        "aware", SDR_FLAG, "no", NULL, 0, 0,                                                       \
            "scale the step of a gradient that is N updates stale by 1/(1+N)",                     \
            offsetof(struct options, aware), 0                                                     \
    }
static const struct sdr_option stale_counts[] = {
    {"k", SDR_INTEGER, "0", "K", 0, 1e6,
     "gradients averaged into one update; 0: half of the workers, rounded up",
     offsetof(struct options, k), 0},
    AWARE,
    {0}};
static const struct sdr_option stale[] = {
    {"staleness", SDR_INTEGER, "0", "N", 0, 1e6,
     "apply every gradient N updates late, on top of its own staleness",
     offsetof(struct options, staleness), 0},
    {"ramp", SDR_NUMBER, "0", "EPOCHS", 0, 1e6, "grow that staleness from 0 over this many epochs",
     offsetof(struct options, ramp), 0},
    {"push", SDR_INTEGER, "1", "N", 1, 1e6,
     "push the sum of N local steps, one a batch, instead of every gradient (Downpour SGD)",
     offsetof(struct options, push), 0},
    {"fetch", SDR_INTEGER, "0", "N", 0, 1e6,
     "pull the whole model every N batches (a multiple of push); 0: same as push",
     offsetof(struct options, fetch), 0},
    AWARE,
    {0}};

static enum sdr_status all_of(const void *options, uint64_t workers, uint64_t *gradients)
{
    (void)options;
    *gradients = workers;
    return SDR_OK;
}

static enum sdr_status one_of(const void *options, uint64_t workers, uint64_t *gradients)
{
    (void)options, (void)workers;
    *gradients = 1;
    return SDR_OK;
}

/* The server answers every push; values are included in every (fetch / push)-th answer. */
static enum sdr_status one_of_several(const void *options, uint64_t workers, uint64_t *gradients)
{
    const struct options *o = options;
    if (o->fetch % o->push)
        return sdr_fail(SDR_USAGE,
                        "async:fetch is a multiple of async:push: new values come with the answer "
                        "to what was sent (push=%llu, so %llu or %llu)",
                        (unsigned long long)o->push, (unsigned long long)o->push,
                        (unsigned long long)(2 * o->push));
    if (o->ramp > 0 && !o->staleness)
        return sdr_fail(SDR_USAGE, "async:ramp does nothing without async:staleness");
    if ((o->push > 1 || o->fetch > 1) && o->aware)
        return sdr_fail(SDR_USAGE,
                        "async:aware scales gradients; with async:push and async:fetch workers "
                        "send steps: give one of them");
    return one_of(options, workers, gradients);
}

static uint64_t several(const void *options)
{
    return ((const struct options *)options)->push;
}

static bool keeps(const void *options)
{
    const struct options *o = options;
    return o->fetch > o->push;
}

static enum sdr_status some_of(const void *options, uint64_t workers, uint64_t *gradients)
{
    uint64_t k = ((const struct options *)options)->k;
    if (k > workers)
        return sdr_fail(SDR_USAGE, "an update cannot wait for %llu of %llu workers",
                        (unsigned long long)k, (unsigned long long)workers);
    *gradients = k ? k : (workers + 1) / 2;
    return SDR_OK;
}

static enum sdr_status most_of(const void *options, uint64_t workers, uint64_t *gradients)
{
    SDR_TRY(some_of(options, workers, gradients));
    if (!((const struct options *)options)->k)
        *gradients = workers - workers / 10;
    return SDR_OK;
}

/* K may exceed the number of workers: each can deliver several batches. */
static enum sdr_status any_of(const void *options, uint64_t workers, uint64_t *gradients)
{
    uint64_t k = ((const struct options *)options)->k;
    *gradients = k ? k : (workers + 1) / 2;
    return SDR_OK;
}

static bool always(const void *options)
{
    (void)options;
    return true;
}

static bool if_asked(const void *options)
{
    return ((const struct options *)options)->cancel;
}

static enum sdr_status serve_bsp(struct sdr_node *node)
{
    return serve(node, (struct rule){.synchronous = true});
}

static enum sdr_status serve_k_sync(struct sdr_node *node)
{
    return serve(node, (struct rule){.synchronous = true, .cancels = true});
}

static enum sdr_status serve_backup(struct sdr_node *node)
{
    return serve(node, (struct rule){.synchronous = true, .cancels = if_asked(node->options)});
}

static enum sdr_status serve_k_batch_sync(struct sdr_node *node)
{
    return serve(node, (struct rule){.batches = true, .synchronous = true, .cancels = true});
}

static enum sdr_status serve_k_async(struct sdr_node *node)
{
    const struct options *o = node->options;
    return serve(node, (struct rule){.aware = o->aware});
}

static enum sdr_status serve_async(struct sdr_node *node)
{
    const struct options *o = node->options;
    return serve(node, (struct rule){.aware = o->aware,
                                     .late = o->staleness,
                                     .ramp = o->ramp,
                                     .fetch = o->fetch / o->push});
}

static enum sdr_status serve_k_batch_async(struct sdr_node *node)
{
    const struct options *o = node->options;
    return serve(node, (struct rule){.batches = true, .aware = o->aware});
}

SDR_REGISTER(strategy, bsp) = {
    .name = "bsp",
    .summary = "synchronous: all workers compute one gradient together, then take one step",
    .many = true,
    .can_repeat = true,
    .joint = true,
    .team = &(const struct sdr_team_ops){.plan = sdr_bsp_plan, .worker = sdr_bsp_worker},
    .server = &(const struct sdr_server_ops){.quorum = all_of,
                                             .server = serve_bsp,
                                             .worker = sdr_worker_loop},
};

SDR_REGISTER(strategy, k_sync) = {
    .name = "k-sync",
    .summary = "an update waits for the first K workers and cancels the others",
    .options = counts,
    .options_size = sizeof(struct options),
    .many = true,
    .server = &(const struct sdr_server_ops){.quorum = some_of,
                                             .cancels = always,
                                             .server = serve_k_sync,
                                             .worker = sdr_worker_loop},
};

SDR_REGISTER(strategy, backup) = {
    .name = "backup",
    .summary = "an update waits for the first K workers; late gradients are dropped",
    .options = spares,
    .options_size = sizeof(struct options),
    .many = true,
    .server = &(const struct sdr_server_ops){.quorum = most_of,
                                             .cancels = if_asked,
                                             .server = serve_backup,
                                             .worker = sdr_worker_loop},
};

SDR_REGISTER(strategy, k_batch_sync) = {
    .name = "k-batch-sync",
    .summary = "an update waits for K batches, from any workers, and cancels the rest",
    .options = counts,
    .options_size = sizeof(struct options),
    .many = true,
    .server = &(const struct sdr_server_ops){.quorum = any_of,
                                             .cancels = always,
                                             .server = serve_k_batch_sync,
                                             .worker = sdr_worker_loop},
};

SDR_REGISTER(strategy, k_async) = {
    .name = "k-async",
    .summary = "an update waits for K workers; the others continue on older values",
    .options = stale_counts,
    .options_size = sizeof(struct options),
    .many = true,
    .server = &(const struct sdr_server_ops){.quorum = some_of,
                                             .server = serve_k_async,
                                             .worker = sdr_worker_loop},
};

SDR_REGISTER(strategy, k_batch_async) = {
    .name = "k-batch-async",
    .summary = "an update waits for K batches, from any workers; workers never wait",
    .options = stale_counts,
    .options_size = sizeof(struct options),
    .many = true,
    .server = &(const struct sdr_server_ops){.quorum = any_of,
                                             .server = serve_k_batch_async,
                                             .worker = sdr_worker_loop},
};

SDR_REGISTER(strategy, async) = {
    .name = "async",
    .summary = "asynchronous: a server applies every gradient as it arrives",
    .options = stale,
    .options_size = sizeof(struct options),
    .many = true,
    .server = &(const struct sdr_server_ops){.quorum = one_of_several,
                                             .local = several,
                                             .keeps = keeps,
                                             .server = serve_async,
                                             .worker = sdr_worker_loop},
};
