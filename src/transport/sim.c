/* Nodes in virtual time: the loops that run on a cluster, as coroutines on one thread. Gradients
   are real; what they would take is drawn (--compute), and messages travel as the options say.
   Nothing depends on the clock of this machine: the same options give the same run, to the bit.

   Events are in the order of (time, sequence). A node is where its coroutine rests: waiting for a
   message, computing until a time, or ready to go on. Work that is cancelled is never done. */
#include "base/coroutine.h"
#include "base/fetch.h"
#include "base/memory.h"
#include "base/text.h"
#include "run/run.h"
#include "server/compute_times.h"
#include "server/membership.h"
#include "server/network.h"
#include "server/placement.h"
#include "transport/sim_link.h"
#include "transport/sim_moments.h"
#include "transport/sim_puts.h"
#include "transport/sim_queue.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct options {
    double latency, bandwidth, port, silence, loss, torn;
    char *far, *dies, *joins;
};
static const struct sdr_option table[] = {
    {"latency", SDR_NUMBER, "0", "SECONDS", 0, 1e6, "one-way latency of every message",
     offsetof(struct options, latency), 0},
    {"bandwidth", SDR_NUMBER, "0", "BYTES", 0, 1e15,
     "bandwidth of the link between two nodes in bytes per second, one message at a time; 0: no "
     "limit",
     offsetof(struct options, bandwidth), 0},
    {"port", SDR_NUMBER, "0", "BYTES", 0, 1e15,
     "bandwidth of each server's port in bytes per second, shared by all workers; 0: no limit",
     offsetof(struct options, port), 0},
    {"far", SDR_TEXT, "", "W:Fx", 0, 0,
     "make the links of worker W F times slower, such as 2:3x or 2:3x+5:10x",
     offsetof(struct options, far), 0},
    {"dies", SDR_TEXT, "", "W@T", 0, 0,
     "kill worker W after T virtual seconds, such as 2@10 or 2@10+5@20",
     offsetof(struct options, dies), 0},
    {"joins", SDR_TEXT, "", "W@T", 0, 0,
     "worker W is absent at first and joins after T virtual seconds, such as 2@10 or 2@10+5@20",
     offsetof(struct options, joins), 0},
    {"silence", SDR_NUMBER, "0", "SECONDS", 0, 1e6, "failure-detection timeout in virtual seconds",
     offsetof(struct options, silence), 0},
    {"loss", SDR_NUMBER, "0", "F", 0, 1, "fraction of one-sided writes that never arrive",
     offsetof(struct options, loss), 0},
    {"torn", SDR_NUMBER, "0", "F", 0, 1, "fraction of one-sided writes that arrive in part",
     offsetof(struct options, torn), 0},
    {0}};

enum state { READY, RECEIVING, COMPUTING, OVER };

struct endpoint {
    struct sdr_coroutine *coroutine; /* owned */
    struct sdr_node *node;
    enum state state;
    bool cancelled, ended; /* ended: its loop has returned */
    bool begun;            /* the present step has been run */
    bool interrupted;      /* by a message that is no reason to stop */
    uint64_t computing;    /* number of the event that ends its computation */
    struct sdr_work *work; /* borrowed, while it computes */
    atomic_uint urgent;
    struct sdr_message *mailbox; /* owned: a ring, of a power of two */
    uint64_t from, count, room;
};

struct shared {
    const struct options *options;
    struct endpoint *endpoint; /* owned */
    int nodes, over;           /* over: nodes that have returned or died */
    int64_t time;
    uint64_t events;
    struct sdr_sim_queue queue;
    struct sdr_sim_links links;
    bool instant; /* messages arrive at once */
    struct sdr_sim_puts puts;
    int32_t *ready; /* owned: a ring of nodes that can continue */
    uint64_t ready_from, ready_count, ready_mask;
    enum sdr_status (*loop)(struct sdr_node *node);
    enum sdr_status status;
    char sentence[1024];
    bool unwinds; /* loops that have not returned must return: their memory is freed */
};

static void make_ready(struct shared *shared, struct endpoint *endpoint)
{
    endpoint->state = READY;
    shared->ready[(shared->ready_from + shared->ready_count++) & shared->ready_mask] =
        endpoint->node->id;
}

/* ---- messages ---- */
static enum sdr_status deliver(struct shared *shared, const struct sdr_message *message)
{
    struct endpoint *endpoint = &shared->endpoint[message->to];
    shared->events++;
    bool too_late = message->kind == SDR_MESSAGE_JOINED &&
                    shared->endpoint[message->from].state == OVER; /* it has died meanwhile */
    if (endpoint->state == OVER || too_late ||
        !sdr_message_admitted(endpoint->node->run->network, message)) {
        sdr_body_drop(message->body);
        return SDR_OK;
    }
    enum sdr_status status = SDR_OK;
    if (endpoint->count == endpoint->room)
        status = sdr_grow(&endpoint->mailbox, &endpoint->from, endpoint->count, &endpoint->room,
                          sizeof *endpoint->mailbox, "messages");
    if (status != SDR_OK) {
        sdr_body_drop(message->body);
        return status;
    }
    endpoint->mailbox[(endpoint->from + endpoint->count++) & (endpoint->room - 1)] = *message;
    bool urgent = message->flags & SDR_URGENT;
    if (urgent)
        atomic_store_explicit(&endpoint->urgent,
                              atomic_load_explicit(&endpoint->urgent, memory_order_relaxed) + 1,
                              memory_order_relaxed);
    bool progress = endpoint->state == COMPUTING && !urgent && endpoint->work->progress;
    if (endpoint->state == RECEIVING || progress || (endpoint->state == COMPUTING && urgent)) {
        endpoint->cancelled = endpoint->state == COMPUTING && urgent;
        endpoint->interrupted = progress;
        make_ready(shared, endpoint);
    }
    return SDR_OK;
}

static bool unwinds(const struct sdr_node *node)
{
    return ((const struct shared *)node->run->network->shared)->unwinds;
}

static enum sdr_status send(struct sdr_node *node, struct sdr_message *message)
{
    struct shared *shared = node->run->network->shared;
    if (shared->unwinds) {
        sdr_body_drop(message->body);
        return SDR_OK;
    }
    if (message->kind == SDR_MESSAGE_PUT && sdr_sim_put_is_lost(&shared->puts, message)) {
        sdr_body_drop(message->body);
        return SDR_OK;
    }
    if (shared->instant || message->to == node->id)
        return deliver(shared, message);
    int64_t time;
    enum sdr_status status =
        sdr_sim_arrival(&shared->links, shared->time, message->from, message->to,
                        (double)sdr_message_bytes(message), &time);
    /* On slow links an earlier message may be about to arrive. */
    if (status == SDR_OK && time == shared->time && shared->links.bandwidth == 0)
        return deliver(shared, message);
    if (status == SDR_OK)
        status = sdr_sim_push_delivery(&shared->queue, time, message);
    if (status != SDR_OK)
        sdr_body_drop(message->body);
    return status;
}

static enum sdr_status receive(struct sdr_node *node, struct sdr_message *message)
{
    struct endpoint *endpoint = node->endpoint;
    while (!endpoint->count && !unwinds(node)) {
        endpoint->state = RECEIVING;
        sdr_coroutine_yield(endpoint->coroutine);
    }
    if (unwinds(node))
        return sdr_fail(SDR_RUNTIME, "the simulation is over");
    *message = endpoint->mailbox[endpoint->from];
    endpoint->count--;
    endpoint->from = endpoint->count ? (endpoint->from + 1) & (endpoint->room - 1)
                                     : 0; /* the first is in the cache */
    if (message->flags & SDR_URGENT)
        atomic_store_explicit(&endpoint->urgent,
                              atomic_load_explicit(&endpoint->urgent, memory_order_relaxed) - 1,
                              memory_order_relaxed);
    return SDR_OK;
}

/* ---- work ---- */
static enum sdr_status compute(struct sdr_node *node, struct sdr_work *work, bool *done)
{
    struct shared *shared = node->run->network->shared;
    struct endpoint *endpoint = node->endpoint;
    *done = false;
    if (atomic_load_explicit(&endpoint->urgent, memory_order_relaxed))
        return SDR_OK;
    if (shared->time > INT64_C(1) << 61)
        return sdr_fail(SDR_USAGE,
                        "virtual time has run out after 73 years: give shorter --compute times");
    endpoint->computing = shared->queue.sequence++;
    struct sdr_sim_event event = {shared->time + sdr_compute_time(node, work), endpoint->computing,
                                  node->id, SDR_SIM_WORK_ENDS};
    SDR_TRY(sdr_sim_push(&shared->queue, &event));
    endpoint->cancelled = false;
    endpoint->work = work;
    endpoint->begun = false;
    do { /* messages that arrive meanwhile are handled at once */
        endpoint->interrupted = false;
        endpoint->state = COMPUTING;
        sdr_coroutine_yield(endpoint->coroutine);
        if (endpoint->interrupted && !unwinds(node))
            SDR_TRY(work->progress(work->context));
    } while (endpoint->interrupted && !unwinds(node));
    *done = !endpoint->cancelled;
    work->next += *done;
    return unwinds(node) ? sdr_fail(SDR_RUNTIME, "the simulation is over") : SDR_OK;
}

static bool any(struct sdr_node *node)
{
    return ((const struct endpoint *)node->endpoint)->count > 0;
}

static bool one_machine(const struct sdr_node *node)
{
    (void)node;
    return false;
}

static bool idle(struct sdr_node *node, int to)
{
    const struct shared *shared = node->run->network->shared;
    return sdr_sim_idle(&shared->links, shared->time, node->id, to);
}

static enum sdr_status expose(struct sdr_run *run)
{
    return sdr_sim_puts_expose(&((struct shared *)run->network->shared)->puts, run);
}

static int64_t now(const struct sdr_node *node)
{
    return ((const struct shared *)node->run->network->shared)->time;
}

/* ---- a run ---- */
/* Records the first failure. */
static void remember(struct shared *shared, enum sdr_status status)
{
    if (status == SDR_OK || shared->status != SDR_OK)
        return;
    shared->status = status;
    snprintf(shared->sentence, sizeof shared->sentence, "%s", sdr_error());
}

static void run_node(void *argument)
{
    struct endpoint *endpoint = argument;
    struct shared *shared = endpoint->node->run->network->shared;
    enum sdr_status status = shared->loop(endpoint->node);
    endpoint->state = OVER;
    endpoint->ended = true;
    if (!shared->unwinds)
        remember(shared, status);
}

static enum sdr_status stuck(const struct shared *shared)
{
    int waiting = 0, first = -1;
    for (int i = 0; i < shared->nodes; i++)
        if (shared->endpoint[i].state == RECEIVING) {
            first = first < 0 ? i : first;
            waiting++;
        }
    return sdr_fail(SDR_RUNTIME,
                    "the simulated nodes wait for each other: %d of %d, node %d first, at %.9g s",
                    waiting, shared->nodes, first, (double)shared->time * 1e-9);
}

/* Kills a node: it receives nothing and does nothing more; the others are told. */
static enum sdr_status die(struct shared *shared, const struct sdr_sim_event *event)
{
    struct endpoint *endpoint = &shared->endpoint[event->node];
    const struct sdr_network *net = endpoint->node->run->network;
    if (endpoint->state == OVER)
        return SDR_OK;
    shared->time = event->time;
    shared->over++;
    endpoint->state = OVER;
    int64_t time = event->time + (int64_t)llrint(shared->options->silence * 1e9);
    for (int to = 0; to < net->nodes; to++) {
        struct sdr_message word = {.kind = SDR_MESSAGE_LOST,
                                   .from = event->node,
                                   .to = to,
                                   .about = endpoint->node->worker,
                                   .batch = (uint64_t)event->node,
                                   .value = shared->options->silence};
        if (to != event->node && sdr_hears_of_deaths(net, to))
            SDR_TRY(sdr_sim_push_delivery(&shared->queue, time, &word));
    }
    return SDR_OK;
}

static enum sdr_status plan_death(struct sdr_run *run, int worker, int64_t time)
{
    struct shared *shared = run->network->shared;
    struct sdr_sim_event event = {time, shared->queue.sequence++, run->network->servers + worker,
                                  SDR_SIM_DEATH};
    return sdr_sim_push(&shared->queue, &event);
}

/* Servers treat the worker as absent until they hear that it has joined. */
static enum sdr_status plan_join(struct sdr_run *run, int worker, int64_t time)
{
    struct sdr_network *net = run->network;
    struct shared *shared = net->shared;
    if (net->servers == 0)
        return sdr_fail(SDR_USAGE, "sim:joins needs a strategy with a server, such as async");
    for (int s = 0; s < net->servers; s++) {
        struct sdr_message word = {
            .kind = SDR_MESSAGE_JOINED, .from = net->servers + worker, .to = s, .about = worker};
        sdr_member_lose(&net->node[s], worker);
        SDR_TRY(sdr_sim_push_delivery(&shared->queue, time, &word));
    }
    if ((uint64_t)net->lead.alive < net->policy.quorum || net->lead.alive == 0)
        return sdr_fail(
            SDR_USAGE, "sim:joins leaves %d workers at the start, and --sync %s waits for %llu",
            net->lead.alive, run->use.strategy->name, (unsigned long long)net->policy.quorum);
    return SDR_OK;
}

static enum sdr_status run_step(struct endpoint *endpoint)
{
    const struct sdr_work *work = endpoint->work;
    return work->run(work->argument, work->next, &endpoint->urgent);
}

static enum sdr_status happen(struct shared *shared, const struct sdr_sim_event *event)
{
    struct endpoint *endpoint = &shared->endpoint[event->node];
    if (event->what >= SDR_SIM_DELIVERY) {
        struct sdr_message message = sdr_sim_take_delivery(&shared->queue, event);
        shared->time = event->time;
        return deliver(shared, &message);
    }
    if (event->what == SDR_SIM_DEATH)
        return die(shared, event);
    if (endpoint->state != COMPUTING || endpoint->computing != event->sequence)
        return SDR_OK; /* cancelled */
    shared->time = event->time;
    shared->events++;
    make_ready(shared, endpoint);
    return endpoint->work->certain ? SDR_OK : run_step(endpoint);
}

/* Resumes a node until it waits again. Work that nobody can cancel is done at its start, so that
   its values can be freed. It never runs on the node's own small stack. */
static enum sdr_status go_on(struct shared *shared)
{
    struct endpoint *endpoint =
        &shared->endpoint[shared->ready[shared->ready_from & shared->ready_mask]];
    shared->ready_from++;
    shared->ready_count--;
    shared->over += !sdr_coroutine_resume(endpoint->coroutine);
    if (endpoint->state != COMPUTING || endpoint->begun || !endpoint->work->certain)
        return SDR_OK;
    endpoint->begun = true;
    return run_step(endpoint);
}

/* Prefetches the memory of the next nodes while this one runs: thousands of nodes do not fit
   into the caches. */
static void look_ahead(const struct shared *shared, const struct sdr_network *net)
{
    enum { MANY = 200, NEXT = 4 };
    if (shared->nodes < MANY || shared->queue.count <= NEXT)
        return;
    for (int i = 1; i <= NEXT; i++) {
        int32_t node = shared->queue.heap[i].node;
        sdr_fetch_to_write(&shared->endpoint[node], sizeof *shared->endpoint);
        sdr_fetch_to_write(&net->node[node], 128);
    }
    const struct endpoint *next = &shared->endpoint[shared->queue.heap[0].node];
    if (next->node->worker < 0)
        return;
    sdr_coroutine_fetch(next->coroutine);
    sdr_fetch_to_write(next->mailbox, sizeof *next->mailbox);
    if (net->fetch)
        net->fetch(next->node);
}

static enum sdr_status go_through(struct shared *shared, const struct sdr_network *net)
{
    while (shared->over < shared->nodes && shared->status == SDR_OK) {
        if (shared->ready_count) {
            SDR_TRY(go_on(shared));
        } else if (shared->queue.count) {
            struct sdr_sim_event event = sdr_sim_pop(&shared->queue);
            look_ahead(shared, net);
            SDR_TRY(happen(shared, &event));
        } else {
            return stuck(shared);
        }
    }
    return SDR_OK;
}

static enum sdr_status launch(struct sdr_run *run, enum sdr_status (*loop)(struct sdr_node *node))
{
    struct shared *shared = run->network->shared;
    shared->loop = loop;
    for (int i = 0; i < shared->nodes; i++)
        make_ready(shared, &shared->endpoint[i]);
    remember(shared, go_through(shared, run->network));
    run->network->traffic.events = shared->events;
    shared->unwinds = true; /* after a failure, and for dead nodes */
    for (int i = 0; i < shared->nodes; i++)
        while (!shared->endpoint[i].ended)
            sdr_coroutine_resume(shared->endpoint[i].coroutine);
    return shared->status == SDR_OK ? SDR_OK : sdr_fail(shared->status, "%s", shared->sentence);
}

static enum sdr_status open_sim(struct sdr_run *run, const void *options)
{
    /* Servers, or the first node if there are none, evaluate and write checkpoints on their
       stack. */
#if defined(__SANITIZE_ADDRESS__) || !defined(__OPTIMIZE__)
    enum { SMALL = 16 << 10, MIDDLE = 1 << 20, LARGE = 2 << 20 }; /* frames are larger */
#else
    enum { SMALL = 16 << 10, MIDDLE = 64 << 10, LARGE = 1 << 20 };
#endif
    const size_t most = run->network->servers ? SMALL : MIDDLE; /* peers take steps on it */
    struct sdr_network *net = run->network;
    struct shared *shared;
    SDR_TRY(sdr_allocate(&shared, 1, sizeof *shared, "the simulator"));
    net->shared = shared;
    shared->options = options;
    shared->puts.loss = shared->options->loss;
    shared->puts.torn = shared->options->torn;
    SDR_TRY(sdr_sim_puts_open(&shared->puts, run->options.settings.seed));
    shared->links.latency = shared->options->latency;
    shared->links.bandwidth = shared->options->bandwidth;
    shared->links.port = shared->options->port;
    shared->instant = sdr_sim_links_instant(&shared->links);
    while (shared->ready_mask < (uint64_t)net->nodes)
        shared->ready_mask = 2 * shared->ready_mask + 1;
    SDR_TRY(sdr_allocate(&shared->ready, shared->ready_mask + 1, sizeof *shared->ready,
                         "the simulator"));
    SDR_TRY(sdr_allocate(&shared->endpoint, (size_t)net->nodes, sizeof *shared->endpoint,
                         "the simulator"));
    SDR_TRY(sdr_sim_links_open(&shared->links, shared->options->far, net->servers, net->workers));
    for (; shared->nodes < net->nodes; shared->nodes++) {
        struct endpoint *endpoint = &shared->endpoint[shared->nodes];
        endpoint->node = &net->node[shared->nodes];
        endpoint->node->endpoint = endpoint;
        SDR_TRY(sdr_coroutine_create(
            run_node, endpoint, endpoint->node->server >= 0 || shared->nodes == 0 ? LARGE : most,
            &endpoint->coroutine));
    }
    SDR_TRY(sdr_sim_parse_moments(shared->options->dies, "dies", run, plan_death));
    return sdr_sim_parse_moments(shared->options->joins, "joins", run, plan_join);
}

static void close_sim(struct sdr_run *run)
{
    struct shared *shared = run->network->shared;
    sdr_sim_queue_free(&shared->queue);
    sdr_sim_links_free(&shared->links);
    for (int i = 0; i < shared->nodes; i++) {
        struct endpoint *endpoint = &shared->endpoint[i];
        for (; endpoint->count;
             endpoint->count--, endpoint->from = (endpoint->from + 1) % endpoint->room)
            sdr_body_drop(endpoint->mailbox[endpoint->from].body);
        sdr_release(endpoint->mailbox);
        sdr_coroutine_destroy(endpoint->coroutine);
    }
    sdr_release(shared->ready);
    sdr_sim_puts_free(&shared->puts);
    sdr_release(shared->endpoint);
    sdr_release(shared);
    run->network->shared = NULL;
}

SDR_REGISTER(transport, sim) = {
    .name = "sim",
    .summary = "simulated cluster in virtual time: real gradients, times drawn from --compute",
    .options = table,
    .options_size = sizeof(struct options),
    .simulated = true,
    .by_reference = true,
    .workers_most =
        30000, /* a stack takes two of the 65 530 memory mappings that a process may have */
    .open = open_sim,
    .launch = launch,
    .send = send,
    .receive = receive,
    .compute = compute,
    .any = any,
    .one_machine = one_machine,
    .expose = expose,
    .idle = idle,
    .now = now,
    .close = close_sim,
};
