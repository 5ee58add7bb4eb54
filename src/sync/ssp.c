/* Stale synchronous parallel (Ho et al., 2013): workers take steps on their own and may be up to s clocks
   apart; see clocks.h for what each sees. s = 0 shows what bsp shows; without a bound it is async.

   Steps are held back until everybody may see them, so that the rule holds however long messages take. A
   worker adds to what it is sent the steps of its own that were held back.

   essp (Dai et al., 2015) sends values ahead of the question for them. "Less stale than ssp" is said, and
   tested, of the ssp of the paper, lazy=yes, whose workers ask only when their values are too old. The
   default here asks for every batch, and is fresher than either; essp waits less for answers than both. */
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
     "pull values only when the cached ones are too old, as in the paper; no: for every batch",
     offsetof(struct options, lazy), 0},
    {0}};
static const struct sdr_option eager_table[] = {
    STALENESS,
    {"budget", SDR_NUMBER, "0", "BYTES", 0, 1e15,
     "bytes per second sent ahead to each worker, the largest changes first; 0: no limit",
     offsetof(struct options, budget), 0},
    {0}};

/* Steps that others may not see yet. */
struct pending {
    struct step {
        uint64_t clock;
        struct sdr_gradient gradient;
    } * step; /* owned, in the order they came */
    uint64_t count, room;
};

static enum sdr_status keep_pending(struct pending *pending, uint64_t clock,
                                    const struct sdr_gradient *gradient)
{
    SDR_TRY(sdr_grow(&pending->step, NULL, pending->count, &pending->room, sizeof *pending->step,
                     "steps"));
    pending->step[pending->count++] = (struct step){clock, *gradient};
    return SDR_OK;
}

/* Adds up the steps that are to be shown, from number `from` on; all of them once no gradient is outstanding. */
static enum sdr_status show(struct sdr_node *node, const struct sdr_clocks *clocks,
                            struct pending *pending, uint64_t from, bool *more)
{
    bool last = sdr_gradients_left(node) == pending->count; /* nobody will read any more */
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

/* Gives a worker its next batch. Lazily: what it was sent has all updates of clocks before `has`, which may do. */
static enum sdr_status assign(struct sdr_node *node, const struct sdr_clocks *clocks, uint64_t *has,
                              int worker)
{
    const struct options *o = node->options;
    if (o->lazy && sdr_tasks_given(node, worker) > 0 &&
        sdr_clocks_reaches(clocks, worker, has[worker]))
        return sdr_assign_kept(node, worker);
    has[worker] = clocks->least;
    return sdr_assign(node, worker);
}

/* Workers that may read when they are done with what they do are sent values ahead. */
static enum sdr_status offer_ahead(struct sdr_node *node, const struct sdr_clocks *clocks)
{
    const struct options *o = node->options;
    for (int w = 0; w < node->workers; w++)
        if (sdr_is_busy(node, w) && sdr_clocks_may_read_next(clocks, w))
            SDR_TRY(sdr_prefetch(node, w, o->budget));
    return SDR_OK;
}

/* A step has come, or a worker is gone; *edge: the slowest clock has moved. */
static enum sdr_status receive(struct sdr_node *node, struct sdr_clocks *clocks,
                               struct pending *pending, const struct sdr_gradient *step, bool *edge)
{
    if (step->lost) {
        *edge = sdr_clocks_leave(clocks, step->worker);
        return sdr_go_on_without(node, step, 1);
    }
    SDR_TRY(keep_pending(pending, clocks->clock[step->worker], step));
    *edge = sdr_clocks_tick(clocks, step->worker);
    return SDR_OK;
}

static enum sdr_status lead(struct sdr_node *node, struct sdr_clocks *clocks, uint64_t *has,
                            struct pending *pending, bool eager)
{
    bool more = true, edge;
    for (int w = 0; w < node->workers; w++)
        SDR_TRY(assign(node, clocks, has, w));
    for (;;) {
        struct sdr_gradient step;
        SDR_TRY(sdr_await_gradient(node, &step, &more));
        if (!more)
            break;
        uint64_t before = pending->count;
        SDR_TRY(receive(node, clocks, pending, &step, &edge));
        SDR_TRY(show(node, clocks, pending, edge ? 0 : before, &more));
        if (!more)
            break;
        int first = edge ? 0 : step.worker, end = edge ? node->workers : step.worker + 1;
        for (int w = first; w < end; w++)
            if (!sdr_is_busy(node, w) && sdr_clocks_may_read(clocks, w))
                SDR_TRY(assign(node, clocks, has, w));
        if (eager)
            SDR_TRY(offer_ahead(node, clocks));
    }
    return sdr_dismiss(node);
}

static enum sdr_status serve_all(struct sdr_node *node, bool eager)
{
    const struct options *o = node->options;
    uint64_t staleness = SDR_CLOCKS_FREE, *clock;
    struct sdr_clocks clocks;
    struct pending pending = {0};
    sdr_parse_u64(o->staleness, &staleness); /* or inf */
    SDR_TRY(sdr_allocate(&clock, 2 * (size_t)node->workers, sizeof *clock, "clocks"));
    sdr_clocks_start(&clocks, staleness, clock, node->workers);
    enum sdr_status status = lead(node, &clocks, clock + node->workers, &pending, eager);
    for (uint64_t i = 0; i < pending.count; i++)
        sdr_body_drop(pending.step[i].gradient.body);
    sdr_release(pending.step);
    sdr_release(clock);
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
