/* Nodes in virtual time: the loops that run on a cluster, as coroutines on one thread. Gradients are real;
   what they would take is drawn (--compute), and messages travel as the options say. Nothing depends on the
   clock of this machine: the same options give the same run, to the bit.

   Events are in the order of (time, sequence). A node is where its coroutine rests: waiting for a message,
   computing until a time, or ready to go on. Work that is cancelled is never done. */
#include "base/coroutine.h"
#include "base/memory.h"
#include "base/text.h"
#include "run/run.h"
#include "server/network.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct options {
    double latency, bandwidth, port, silence;
    char *far, *dies;
};
static const struct sdr_option table[] = {
    {"latency", SDR_NUMBER, "0", "SECONDS", 0, 1e6, "one-way latency of every message",
     offsetof(struct options, latency), 0},
    {"bandwidth", SDR_NUMBER, "0", "BYTES", 0, 1e15,
     "bytes per second of the link between two nodes, one message at a time; 0: no limit",
     offsetof(struct options, bandwidth), 0},
    {"port", SDR_NUMBER, "0", "BYTES", 0, 1e15,
     "bytes per second into and out of a server, shared by all workers; 0: no limit",
     offsetof(struct options, port), 0},
    {"far", SDR_TEXT, "", "W:Fx", 0, 0,
     "make the links of worker W F times slower, such as 2:3x or 2:3x+5:10x",
     offsetof(struct options, far), 0},
    {"dies", SDR_TEXT, "", "W@T", 0, 0,
     "kill worker W after T virtual seconds, such as 2@10 or 2@10+5@20",
     offsetof(struct options, dies), 0},
    {"silence", SDR_NUMBER, "0", "SECONDS", 0, 1e6, "delay until a death is noticed",
     offsetof(struct options, silence), 0},
    {0}};

enum state { READY, RECEIVING, COMPUTING, OVER };

struct endpoint {
    struct sdr_coroutine *coroutine; /* owned */
    struct sdr_node *node;
    enum state state;
    bool cancelled, ended; /* ended: its loop has returned */
    uint64_t computing;    /* number of the event that ends it */
    struct sdr_work work;
    atomic_uint urgent;
    struct sdr_message *mailbox; /* owned: a ring, of a power of two */
    uint64_t from, count, room;
    int64_t port_in, port_out; /* servers: the port is taken until then */
};

struct event {
    int64_t time;
    uint64_t sequence;
    int32_t node;
    uint32_t what; /* WORK_ENDS, DEATH, or DELIVERY + the number of a parcel */
};
enum { WORK_ENDS, DEATH, DELIVERY };

/* A message that is under way. */
struct in_flight {
    struct sdr_message message;
    uint32_t next; /* while it is free */
};

struct shared {
    const struct options *options;
    struct endpoint *endpoint; /* owned */
    int64_t *busy;   /* owned: until when the ways from every server to a node are, then those from
                          the node to every server; NULL: ways are wide */
    float *far;      /* owned, per worker: how slow its ways are; NULL: all alike */
    int nodes, over; /* over: of the nodes, how many have returned or died */
    int64_t time;
    uint64_t sequence, events;
    struct event *heap; /* owned */
    uint64_t count, room;
    struct in_flight *in_flight; /* owned */
    uint64_t in_flights, in_flight_room;
    uint32_t in_flight_free; /* the first that is not under way, and + 1: 0 is none */
    bool instant;            /* messages take no time */
    int32_t *ready;          /* owned: a ring of nodes that can go on */
    uint64_t ready_from, ready_count, ready_mask;
    enum sdr_status (*loop)(struct sdr_node *node);
    enum sdr_status status;
    char sentence[1024];
    bool unwinds; /* loops that have not returned are to do so: what they hold is freed */
};

/* ---- what happens next ---- */
static bool sooner(const struct event *a, const struct event *b)
{
    return a->time < b->time || (a->time == b->time && a->sequence < b->sequence);
}

static enum sdr_status push(struct shared *shared, const struct event *event)
{
    SDR_TRY(sdr_grow(&shared->heap, NULL, shared->count, &shared->room, sizeof *shared->heap,
                     "events"));
    uint64_t at = shared->count++;
    while (at > 0 && sooner(event, &shared->heap[(at - 1) / 4])) {
        shared->heap[at] = shared->heap[(at - 1) / 4];
        at = (at - 1) / 4;
    }
    shared->heap[at] = *event;
    return SDR_OK;
}

static struct event pop(struct shared *shared)
{
    struct event first = shared->heap[0], last = shared->heap[--shared->count];
    uint64_t at = 0;
    for (;;) {
        uint64_t least = 4 * at + 1, end = least + 4 < shared->count ? least + 4 : shared->count;
        if (least >= shared->count)
            break;
        for (uint64_t child = least + 1; child < end; child++)
            if (sooner(&shared->heap[child], &shared->heap[least]))
                least = child;
        if (!sooner(&shared->heap[least], &last))
            break;
        shared->heap[at] = shared->heap[least];
        at = least;
    }
    shared->heap[at] = last;
    return first;
}

static enum sdr_status push_delivery(struct shared *shared, int64_t time,
                                     const struct sdr_message *message)
{
    uint32_t at = shared->in_flight_free;
    if (at) {
        shared->in_flight_free = shared->in_flight[at - 1].next;
    } else {
        SDR_TRY(sdr_grow(&shared->in_flight, NULL, shared->in_flights, &shared->in_flight_room,
                         sizeof *shared->in_flight, "messages"));
        at = (uint32_t)++shared->in_flights;
    }
    shared->in_flight[at - 1].message = *message;
    struct event event = {time, shared->sequence++, message->to, DELIVERY + at - 1};
    return push(shared, &event);
}

static struct sdr_message take_in_flight(struct shared *shared, const struct event *event)
{
    struct in_flight *in_flight = &shared->in_flight[event->what - DELIVERY];
    in_flight->next = shared->in_flight_free;
    shared->in_flight_free = event->what - DELIVERY + 1;
    return in_flight->message;
}

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
    if (endpoint->state == OVER) {
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
    if (endpoint->state == RECEIVING || (endpoint->state == COMPUTING && urgent)) {
        endpoint->cancelled = endpoint->state == COMPUTING;
        make_ready(shared, endpoint);
    }
    return SDR_OK;
}

/* The way that a message takes; workers do not talk to each other. */
static int64_t *way(const struct shared *shared, const struct sdr_node *from,
                    const struct sdr_node *to)
{
    int64_t first = (int64_t)(from->server < 0 ? from : to)->id * 2 * to->servers;
    return shared->busy + first + (from->server < 0 ? to->servers + to->server : from->server);
}

/* What is taken until a time is taken, after that, for as long as bytes need. */
static int64_t pass(int64_t *taken_until, int64_t time, double seconds)
{
    return *taken_until =
               (*taken_until > time ? *taken_until : time) + (int64_t)llrint(seconds * 1e9);
}

/* When a message arrives: it passes a server's port, and the way, when those before it have, and is under way. So
   none overtakes another. */
static int64_t arrival(struct shared *shared, const struct sdr_message *message)
{
    const struct options *o = shared->options;
    double bytes = (double)sdr_message_bytes(message), slow = 1;
    int64_t time = shared->time;
    struct endpoint *from = &shared->endpoint[message->from], *to = &shared->endpoint[message->to];
    const struct sdr_node *worker = from->node->worker >= 0 ? from->node : to->node;
    if (shared->far && worker->worker >= 0)
        slow = shared->far[worker->worker];
    if (o->port > 0 && from->node->server >= 0)
        time = pass(&from->port_out, time, bytes / o->port);
    if (shared->busy)
        time = pass(way(shared, from->node, to->node), time, bytes / o->bandwidth * slow);
    time += (int64_t)llrint(o->latency * slow * 1e9);
    if (o->port > 0 && to->node->server >= 0)
        time = pass(&to->port_in, time, bytes / o->port);
    return time;
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
    if (shared->instant)
        return deliver(shared, message);
    int64_t time = arrival(shared, message);
    if (time == shared->time && !shared->busy) /* else one before it may be about to arrive */
        return deliver(shared, message);
    enum sdr_status status = push_delivery(shared, time, message);
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
static enum sdr_status compute(struct sdr_node *node, const struct sdr_work *work, bool *done)
{
    struct shared *shared = node->run->network->shared;
    struct endpoint *endpoint = node->endpoint;
    *done = false;
    if (atomic_load_explicit(&endpoint->urgent, memory_order_relaxed))
        return SDR_OK;
    if (shared->time > INT64_C(1) << 61)
        return sdr_fail(SDR_USAGE,
                        "virtual time has run out after 73 years: give shorter --compute times");
    endpoint->computing = shared->sequence++;
    struct event event = {shared->time + sdr_compute_time(node), endpoint->computing, node->id,
                          WORK_ENDS};
    SDR_TRY(push(shared, &event));
    endpoint->cancelled = false;
    endpoint->work = *work;
    endpoint->state = COMPUTING;
    sdr_coroutine_yield(endpoint->coroutine);
    *done = !endpoint->cancelled;
    return unwinds(node) ? sdr_fail(SDR_RUNTIME, "the simulation is over") : SDR_OK;
}

static bool any(struct sdr_node *node)
{
    return ((const struct endpoint *)node->endpoint)->count > 0;
}

static int64_t now(const struct sdr_node *node)
{
    return ((const struct shared *)node->run->network->shared)->time;
}

/* ---- a run ---- */
/* The first thing that went wrong. */
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

/* A node that is gone hears nothing and does nothing; the server gets to know of it. */
static enum sdr_status die(struct shared *shared, const struct event *event)
{
    struct endpoint *endpoint = &shared->endpoint[event->node];
    if (endpoint->state == OVER)
        return SDR_OK;
    shared->time = event->time;
    shared->over++;
    endpoint->state = OVER;
    struct sdr_message word = {.kind = SDR_MESSAGE_LOST,
                               .about = endpoint->node->worker,
                               .batch = (uint64_t)endpoint->node->id,
                               .value = shared->options->silence};
    int64_t time = event->time + (int64_t)llrint(shared->options->silence * 1e9);
    return push_delivery(shared, time, &word);
}

/* "2@30+5@41.5": who dies, and when. */
static enum sdr_status plan_deaths(struct shared *shared, const struct sdr_network *net)
{
    for (const char *at = shared->options->dies; *at;) {
        char item[64];
        size_t length = strcspn(at, "+");
        snprintf(item, sizeof item, "%.*s", (int)(length < 63 ? length : 63), at);
        char *sign = strchr(item, '@');
        uint64_t worker;
        double time;
        if (sign)
            *sign = 0;
        if (!sign || !sdr_parse_u64(item, &worker) || !sdr_parse_double(sign + 1, &time) ||
            !(time >= 0 && time <= 1e9) || worker >= (uint64_t)net->workers)
            return sdr_fail(SDR_USAGE,
                            "sim:dies takes WORKER@SECONDS, such as 2@30, of workers 0 … %d",
                            net->workers - 1);
        struct event event = {(int64_t)llrint(time * 1e9), shared->sequence++,
                              net->servers + (int)worker, DEATH};
        SDR_TRY(push(shared, &event));
        at += length + (at[length] == '+');
    }
    return SDR_OK;
}

static enum sdr_status happen(struct shared *shared, const struct event *event)
{
    struct endpoint *endpoint = &shared->endpoint[event->node];
    if (event->what >= DELIVERY) {
        struct sdr_message message = take_in_flight(shared, event);
        shared->time = event->time;
        return deliver(shared, &message);
    }
    if (event->what == DEATH)
        return die(shared, event);
    if (endpoint->state != COMPUTING || endpoint->computing != event->sequence)
        return SDR_OK; /* it was cancelled */
    shared->time = event->time;
    shared->events++;
    make_ready(shared, endpoint);
    return endpoint->work.certain ? SDR_OK
                                  : endpoint->work.run(endpoint->work.argument, &endpoint->urgent);
}

/* On to where the node rests again. Work that nobody can cancel is done when it begins: then the values it
   is computed from can be let go. It is never done on the node's own small stack. */
static enum sdr_status go_on(struct shared *shared)
{
    struct endpoint *endpoint =
        &shared->endpoint[shared->ready[shared->ready_from & shared->ready_mask]];
    shared->ready_from++;
    shared->ready_count--;
    shared->over += !sdr_coroutine_resume(endpoint->coroutine);
    if (endpoint->state == COMPUTING && endpoint->work.certain)
        return endpoint->work.run(endpoint->work.argument, &endpoint->urgent);
    return SDR_OK;
}

static void fetch(const void *from, size_t bytes)
{
    enum { LINE = 64 };
    for (size_t i = 0; i < bytes; i += LINE)
        __builtin_prefetch((const unsigned char *)from + i, 1);
}

/* What belongs to the node whose turn comes next, and to those that may come after it, is fetched while this
   one's turn lasts: thousands of nodes do not fit into the caches. */
static void look_ahead(const struct shared *shared, const struct sdr_network *net)
{
    enum { MANY = 200, NEXT = 4 };
    if (shared->nodes < MANY || shared->count <= NEXT)
        return;
    for (int i = 1; i <= NEXT; i++) {
        int32_t node = shared->heap[i].node;
        fetch(&shared->endpoint[node], sizeof *shared->endpoint);
        fetch(&net->node[node], 128);
    }
    const struct endpoint *next = &shared->endpoint[shared->heap[0].node];
    if (next->node->worker < 0)
        return;
    sdr_coroutine_fetch(next->coroutine);
    fetch(next->mailbox, sizeof *next->mailbox);
    fetch(next->node->task, sizeof *next->node->task);
    fetch(&net->assignment[next->node->worker], sizeof *net->assignment);
    fetch(&net->ledger.sum[next->node->worker], sizeof *net->ledger.sum);
}

static enum sdr_status go_through(struct shared *shared, const struct sdr_network *net)
{
    while (shared->over < shared->nodes && shared->status == SDR_OK) {
        if (shared->ready_count) {
            SDR_TRY(go_on(shared));
        } else if (shared->count) {
            struct event event = pop(shared);
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
    run->network->events = shared->events;
    shared->unwinds = true; /* after a failure, and the dead */
    for (int i = 0; i < shared->nodes; i++)
        while (!shared->endpoint[i].ended)
            sdr_coroutine_resume(shared->endpoint[i].coroutine);
    return shared->status == SDR_OK ? SDR_OK : sdr_fail(shared->status, "%s", shared->sentence);
}

static enum sdr_status open_sim(struct sdr_run *run, const void *options)
{
    /* Servers evaluate and write checkpoints on their stack. */
    enum { SMALL = 16 << 10, LARGE = 1 << 20 };
    struct sdr_network *net = run->network;
    struct shared *shared;
    SDR_TRY(sdr_allocate(&shared, 1, sizeof *shared, "the simulator"));
    net->shared = shared;
    shared->options = options;
    shared->instant = shared->options->latency == 0 && shared->options->bandwidth == 0 &&
                      shared->options->port == 0;
    while (shared->ready_mask < (uint64_t)net->nodes)
        shared->ready_mask = 2 * shared->ready_mask + 1;
    SDR_TRY(sdr_allocate(&shared->ready, shared->ready_mask + 1, sizeof *shared->ready,
                         "the simulator"));
    SDR_TRY(sdr_allocate(&shared->endpoint, (size_t)net->nodes, sizeof *shared->endpoint,
                         "the simulator"));
    if (shared->options->bandwidth > 0)
        SDR_TRY(sdr_allocate(&shared->busy, 2 * (size_t)net->nodes * (size_t)net->servers,
                             sizeof *shared->busy, "the simulator"));
    if (*shared->options->far)
        SDR_TRY(
            sdr_parse_factors(shared->options->far, '+', "sim:far", net->workers, &shared->far));
    for (; shared->nodes < net->nodes; shared->nodes++) {
        struct endpoint *endpoint = &shared->endpoint[shared->nodes];
        endpoint->node = &net->node[shared->nodes];
        endpoint->node->endpoint = endpoint;
        SDR_TRY(sdr_coroutine_create(
            run_node, endpoint, endpoint->node->server >= 0 ? LARGE : SMALL, &endpoint->coroutine));
    }
    return plan_deaths(shared, net);
}

static void close_sim(struct sdr_run *run)
{
    struct shared *shared = run->network->shared;
    while (shared->count) {
        struct event event = pop(shared);
        if (event.what >= DELIVERY)
            sdr_body_drop(take_in_flight(shared, &event).body);
    }
    for (int i = 0; i < shared->nodes; i++) {
        struct endpoint *endpoint = &shared->endpoint[i];
        for (; endpoint->count;
             endpoint->count--, endpoint->from = (endpoint->from + 1) % endpoint->room)
            sdr_body_drop(endpoint->mailbox[endpoint->from].body);
        sdr_release(endpoint->mailbox);
        sdr_coroutine_destroy(endpoint->coroutine);
    }
    sdr_release(shared->heap);
    sdr_release(shared->in_flight);
    sdr_release(shared->ready);
    sdr_release(shared->busy);
    sdr_release(shared->far);
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
    .workers_most = 30000, /* a stack takes two of the 65 530 mappings a process may have */
    .open = open_sim,
    .launch = launch,
    .send = send,
    .receive = receive,
    .compute = compute,
    .any = any,
    .now = now,
    .close = close_sim,
};
