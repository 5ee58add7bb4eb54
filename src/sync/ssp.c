/* Stale synchronous parallel (Ho et al., 2013): workers take their own steps and may be up to s
   clocks apart; clocks.h has the visibility rules. s = 0 shows the same values as bsp; unbounded s
   is async.

   The server holds steps back until every worker may see them, so the rule holds for any message
   delay. A worker adds its own held-back steps to the values it receives.

   essp (Dai et al., 2015) sends values before workers ask for them. The paper's claim "less stale
   than ssp" is about the paper's ssp, lazy=yes, whose workers pull only when their values are too
   old; a test checks it. The default here pulls for every batch and is fresher than both; essp
   waits less for answers than both. */
#include "base/memory.h"
#include "base/text.h"
#include "server/role.h"
#include "sync/clocks.h"
#include "sync/worker_loop.h"

#include <string.h>

struct options {
    char *staleness;
    double budget;
    bool lazy;
};
#define STALENESS                                                                                  \
    {                                                                                              \
        "staleness", SDR_TEXT, "3", "S", 0, 0,                                                     \
            "batches (clocks) the fastest worker may be ahead of the slowest; inf: no bound",      \
            offsetof(struct options, staleness), 0                                                 \
    }
static const struct sdr_option table[] = {
    STALENESS,
    {"lazy", SDR_FLAG, "no", NULL, 0, 0,
     "yes: pull values only when the cached ones exceed the staleness bound (Ho et al., 2013); "
     "no: pull for every batch",
     offsetof(struct options, lazy), 0},
    {0}};
static const struct sdr_option eager_table[] = {
    STALENESS,
    {"budget", SDR_NUMBER, "0", "BYTES", 0, 1e15,
     "bytes per second sent ahead to each worker, the largest changes first; 0: no limit",
     offsetof(struct options, budget), 0},
    {0}};

/* Steps that are not yet visible to other workers. */
struct pending {
    struct step {
        uint64_t clock;
        struct sdr_gradient gradient;
    } * step; /* owned, in order of arrival */
    uint64_t count, room;
};

/* Takes the gradient's body over, also if it fails. */
static enum sdr_status keep_pending(struct pending *pending, uint64_t clock,
                                    const struct sdr_gradient *gradient)
{
    enum sdr_status status = sdr_grow(&pending->step, NULL, pending->count, &pending->room,
                                      sizeof *pending->step, "steps");
    if (status == SDR_OK)
        pending->step[pending->count++] = (struct step){clock, *gradient};
    else
        sdr_body_drop(gradient->body);
    return status;
}

/* Applies the steps that became visible, from index `from` on; all of them if no gradient is
   outstanding. */
static enum sdr_status apply_visible(struct sdr_node *node, const struct sdr_clocks *clocks,
                                     struct pending *pending, uint64_t from, bool *more)
{
    bool last = sdr_gradients_left(node) == pending->count; /* no worker will read again */
    uint64_t kept = from = last ? 0 : from;
    enum sdr_status status = SDR_OK;
    for (uint64_t i = from; i < pending->count; i++) {
        struct sdr_gradient *step = &pending->step[i].gradient;
        if (status == SDR_OK && *more && (last || sdr_clocks_shows(clocks, pending->step[i].clock)))
            status = sdr_apply(node, step, 1, more);
        if (step->body) /* it was not applied */
            pending->step[kept++] = pending->step[i];
    }
    pending->count = kept;
    return status;
}

/* What the server knows of every worker. */
struct roster {
    struct sdr_clocks clocks; /* its array of clocks is owned here */
    uint64_t *has;            /* owned: clocks below which its cached values contain all updates */
};

/* Places for workers up to a number; those that are new have left. */
static enum sdr_status make_places(struct roster *roster, int workers)
{
    uint64_t *clock, *has, had = (uint64_t)roster->clocks.workers;
    if (workers <= roster->clocks.workers)
        return SDR_OK;
    SDR_TRY(sdr_allocate(&clock, (size_t)workers, sizeof *clock, "clocks"));
    enum sdr_status status = sdr_allocate(&has, (size_t)workers, sizeof *has, "clocks");
    if (status != SDR_OK) {
        sdr_release(clock);
        return status;
    }
    for (uint64_t w = 0; w < (uint64_t)workers; w++) {
        clock[w] = w < had ? roster->clocks.clock[w] : UINT64_MAX;
        has[w] = w < had ? roster->has[w] : 0;
    }
    sdr_release(roster->clocks.clock);
    sdr_release(roster->has);
    roster->clocks.clock = clock;
    roster->has = has;
    roster->clocks.workers = workers;
    return SDR_OK;
}

/* Assigns the next batch. lazy: without values if the cached ones, which contain all updates of
   clocks below `has`, are fresh enough. */
static enum sdr_status assign(struct sdr_node *node, struct roster *roster, int worker)
{
    const struct options *o = node->options;
    if (o->lazy && sdr_tasks_given(node, worker) > 0 &&
        sdr_clocks_reaches(&roster->clocks, worker, roster->has[worker]))
        return sdr_assign_kept(node, worker);
    roster->has[worker] = roster->clocks.least;
    return sdr_assign(node, worker);
}

/* Sends values ahead to busy workers that will be allowed to read for their next batch. */
static enum sdr_status prefetch(struct sdr_node *node, const struct sdr_clocks *clocks)
{
    const struct options *o = node->options;
    for (int w = 0; w < node->workers; w++)
        if (sdr_is_busy(node, w) && sdr_clocks_may_read_next(clocks, w))
            SDR_TRY(sdr_prefetch(node, w, o->budget));
    return SDR_OK;
}

/* Handles a step, or that its worker joins or is lost; *edge: the minimum clock moved. */
static enum sdr_status receive(struct sdr_node *node, struct roster *roster,
                               struct pending *pending, const struct sdr_gradient *step, bool *edge)
{
    *edge = false;
    if (step->joined) {
        SDR_TRY(make_places(roster, step->worker + 1));
        sdr_clocks_join(&roster->clocks, step->worker);
        return SDR_OK;
    }
    if (step->lost) {
        *edge = sdr_clocks_leave(&roster->clocks, step->worker);
        return sdr_go_on_without(node, step, 1);
    }
    SDR_TRY(keep_pending(pending, roster->clocks.clock[step->worker], step));
    *edge = sdr_clocks_tick(&roster->clocks, step->worker);
    return SDR_OK;
}

static enum sdr_status lead(struct sdr_node *node, struct roster *roster, struct pending *pending,
                            bool eager)
{
    const struct sdr_clocks *clocks = &roster->clocks;
    bool more = true, edge;
    for (int w = 0; w < node->workers; w++) {
        if (sdr_is_gone(node, w)) /* it may join */
            sdr_clocks_leave(&roster->clocks, w);
        SDR_TRY(assign(node, roster, w));
    }
    for (;;) {
        struct sdr_gradient step;
        SDR_TRY(sdr_await_gradient(node, &step, &more));
        if (!more)
            break;
        uint64_t before = pending->count;
        SDR_TRY(receive(node, roster, pending, &step, &edge));
        SDR_TRY(apply_visible(node, clocks, pending, edge ? 0 : before, &more));
        if (!more)
            break;
        int first = edge ? 0 : step.worker, end = edge ? node->workers : step.worker + 1;
        for (int w = first; w < end; w++)
            if (!sdr_is_busy(node, w) && sdr_clocks_may_read(clocks, w))
                SDR_TRY(assign(node, roster, w));
        if (eager)
            SDR_TRY(prefetch(node, clocks));
    }
    return sdr_dismiss(node);
}

static enum sdr_status serve_all(struct sdr_node *node, bool eager)
{
    const struct options *o = node->options;
    uint64_t staleness = SDR_CLOCKS_FREE;
    struct roster roster = {0};
    struct pending pending = {0};
    sdr_parse_u64(o->staleness, &staleness); /* fails for "inf": stays unbounded */
    enum sdr_status status = make_places(&roster, node->workers);
    if (status == SDR_OK) {
        sdr_clocks_start(&roster.clocks, staleness, roster.clocks.clock, node->workers);
        status = lead(node, &roster, &pending, eager);
    }
    for (uint64_t i = 0; i < pending.count; i++)
        sdr_body_drop(pending.step[i].gradient.body);
    sdr_release(pending.step);
    sdr_release(roster.clocks.clock);
    sdr_release(roster.has);
    return status;
}

static enum sdr_status serve(struct sdr_node *node)
{
    return serve_all(node, false);
}

static enum sdr_status serve_eagerly(struct sdr_node *node)
{
    return serve_all(node, true);
}

static enum sdr_status one_of(const void *options, uint64_t workers, uint64_t *gradients)
{
    const struct options *o = options;
    uint64_t staleness;
    (void)workers;
    if (strcmp(o->staleness, "inf") != 0 && !sdr_parse_u64(o->staleness, &staleness))
        return sdr_fail(SDR_USAGE, "ssp:staleness takes a number of clocks or inf, not '%s'",
                        o->staleness);
    if (o->lazy && strcmp(o->staleness, "inf") == 0)
        return sdr_fail(SDR_USAGE, "ssp:lazy without a bound would never send values: give ssp:S");
    *gradients = 1;
    return SDR_OK;
}

static bool lazy(const void *options)
{
    return ((const struct options *)options)->lazy;
}

SDR_REGISTER(strategy, ssp) = {
    .name = "ssp",
    .summary = "stale synchronous parallel: workers take their own steps, at most S batches apart",
    .options = table,
    .options_size = sizeof(struct options),
    .many = true,
    .server = &(const struct sdr_server_ops){.quorum = one_of,
                                             .steps = true,
                                             .keeps = lazy,
                                             .server = serve,
                                             .worker = sdr_worker_loop},
};

SDR_REGISTER(strategy, essp) = {
    .name = "essp",
    .summary = "ssp that sends changed values ahead: less waiting where messages are slow",
    .options = eager_table,
    .options_size = sizeof(struct options),
    .many = true,
    .server = &(const struct sdr_server_ops){.quorum = one_of,
                                             .steps = true,
                                             .eager = true,
                                             .server = serve_eagerly,
                                             .worker = sdr_worker_loop},
};
