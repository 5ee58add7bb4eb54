/* Nodes as threads of this process: a message is a few words put into the receiver's box, and bodies are
   handed over, not copied. */
#include "base/clock.h"
#include "base/memory.h"
#include "network.h"
#include "run.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* A node's box. */
struct seat {
    pthread_mutex_t lock;
    pthread_cond_t arrived;
    struct sdr_message *box; /* owned: a ring */
    uint64_t from, count, room;
    atomic_uint urgent; /* messages in the box that end what is computed */
};

struct shared {
    struct seat *seat; /* owned, per node */
    int nodes;
    int64_t launched;
    atomic_bool broken;
    pthread_mutex_t lock; /* guards what follows */
    enum sdr_status status;
    char sentence[1024];
    enum sdr_status (*loop)(struct sdr_node *node);
};

static enum sdr_status open_threads(struct sdr_run *run, const void *options)
{
    (void)options;
    struct shared *shared;
    SDR_TRY(sdr_allocate(&shared, 1, sizeof *shared, "threads"));
    run->network->shared = shared;
    pthread_mutex_init(&shared->lock, NULL);
    SDR_TRY(
        sdr_allocate(&shared->seat, (size_t)run->network->nodes, sizeof *shared->seat, "threads"));
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    for (; shared->nodes < run->network->nodes; shared->nodes++) {
        struct seat *seat = &shared->seat[shared->nodes];
        pthread_mutex_init(&seat->lock, NULL);
        pthread_cond_init(&seat->arrived, &attributes);
        run->network->node[shared->nodes].seat = seat;
    }
    pthread_condattr_destroy(&attributes);
    return SDR_OK;
}

static void close_threads(struct sdr_run *run)
{
    struct shared *shared = run->network->shared;
    for (int i = 0; i < shared->nodes; i++) {
        struct seat *seat = &shared->seat[i];
        for (; seat->count; seat->count--, seat->from = (seat->from + 1) % seat->room)
            sdr_body_drop(seat->box[seat->from].body);
        sdr_release(seat->box);
        pthread_cond_destroy(&seat->arrived);
        pthread_mutex_destroy(&seat->lock);
    }
    pthread_mutex_destroy(&shared->lock);
    sdr_release(shared->seat);
    sdr_release(shared);
    run->network->shared = NULL;
}

/* A node failed: nobody waits any longer. */
static void break_up(struct shared *shared, enum sdr_status status)
{
    pthread_mutex_lock(&shared->lock);
    if (shared->status == SDR_OK) {
        shared->status = status;
        snprintf(shared->sentence, sizeof shared->sentence, "%s", sdr_error());
    }
    pthread_mutex_unlock(&shared->lock);
    atomic_store(&shared->broken, true);
    for (int i = 0; i < shared->nodes; i++) {
        pthread_mutex_lock(&shared->seat[i].lock);
        atomic_fetch_add(&shared->seat[i].urgent, 1);
        pthread_cond_broadcast(&shared->seat[i].arrived);
        pthread_mutex_unlock(&shared->seat[i].lock);
    }
}

static enum sdr_status broken(struct shared *shared)
{
    pthread_mutex_lock(&shared->lock);
    enum sdr_status status = shared->status;
    pthread_mutex_unlock(&shared->lock);
    return sdr_fail(status, "%s", shared->sentence);
}

static enum sdr_status grow(struct seat *seat)
{
    uint64_t room = seat->room ? 2 * seat->room : 16;
    struct sdr_message *larger;
    SDR_TRY(sdr_allocate(&larger, room, sizeof *larger, "messages"));
    for (uint64_t i = 0; i < seat->count; i++)
        larger[i] = seat->box[(seat->from + i) % seat->room];
    sdr_release(seat->box);
    seat->box = larger;
    seat->from = 0;
    seat->room = room;
    return SDR_OK;
}

static enum sdr_status send(struct sdr_node *node, struct sdr_message *message)
{
    struct shared *shared = node->run->network->shared;
    struct seat *seat = &shared->seat[message->to];
    enum sdr_status status = SDR_OK;
    pthread_mutex_lock(&seat->lock);
    if (seat->count == seat->room)
        status = grow(seat);
    if (status == SDR_OK) {
        seat->box[(seat->from + seat->count++) % seat->room] = *message;
        if (message->flags & SDR_URGENT)
            atomic_fetch_add(&seat->urgent, 1);
        pthread_cond_signal(&seat->arrived);
    }
    pthread_mutex_unlock(&seat->lock);
    if (status != SDR_OK)
        sdr_body_drop(message->body);
    return status;
}

static enum sdr_status receive(struct sdr_node *node, struct sdr_message *message)
{
    struct shared *shared = node->run->network->shared;
    struct seat *seat = node->seat;
    pthread_mutex_lock(&seat->lock);
    while (!seat->count && !atomic_load(&shared->broken))
        pthread_cond_wait(&seat->arrived, &seat->lock);
    bool any = seat->count > 0 && !atomic_load(&shared->broken);
    if (any) {
        *message = seat->box[seat->from];
        seat->from = (seat->from + 1) % seat->room;
        seat->count--;
        if (message->flags & SDR_URGENT)
            atomic_fetch_sub(&seat->urgent, 1);
    }
    pthread_mutex_unlock(&seat->lock);
    return any ? SDR_OK : broken(shared);
}

/* Nothing is done for a while, unless something urgent comes. */
static void hold_up(struct seat *seat, int64_t nanoseconds)
{
    int64_t until = sdr_clock_now() + nanoseconds;
    struct timespec at = {until / 1000000000, until % 1000000000};
    pthread_mutex_lock(&seat->lock);
    while (!atomic_load(&seat->urgent) && sdr_clock_now() < until)
        pthread_cond_timedwait(&seat->arrived, &seat->lock, &at);
    pthread_mutex_unlock(&seat->lock);
}

static enum sdr_status compute(struct sdr_node *node, const struct sdr_work *work, bool *done)
{
    struct seat *seat = node->seat;
    int64_t before = sdr_clock_now();
    SDR_TRY(work->run(work->argument, &seat->urgent));
    int64_t more = sdr_network_held_up(node, sdr_clock_now() - before);
    if (more > 0)
        hold_up(seat, more);
    *done = !atomic_load(&seat->urgent);
    return SDR_OK;
}

static int64_t now(const struct sdr_node *node)
{
    const struct shared *shared = node->run->network->shared;
    return sdr_clock_now() - shared->launched;
}

static void *run_node(void *argument)
{
    struct sdr_node *node = argument;
    struct shared *shared = node->run->network->shared;
    enum sdr_status status = shared->loop(node);
    if (status != SDR_OK)
        break_up(shared, status);
    return NULL;
}

static enum sdr_status launch(struct sdr_run *run, enum sdr_status (*loop)(struct sdr_node *node))
{
    struct sdr_network *net = run->network;
    struct shared *shared = net->shared;
    pthread_t *thread;
    int started = 1;
    SDR_TRY(sdr_allocate(&thread, (size_t)net->nodes, sizeof *thread, "threads"));
    shared->loop = loop;
    shared->launched = sdr_clock_now();
    while (started < net->nodes &&
           pthread_create(&thread[started], NULL, run_node, &net->node[started]) == 0)
        started++;
    if (started < net->nodes) {
        sdr_fail(SDR_RUNTIME, "no more than %d of %d threads can be started: give fewer --workers",
                 started, net->nodes);
        break_up(shared, SDR_RUNTIME);
    } else {
        run_node(&net->node[0]);
    }
    for (int i = 1; i < started; i++)
        pthread_join(thread[i], NULL);
    sdr_release(thread);
    return shared->status == SDR_OK ? SDR_OK : broken(shared);
}

SDR_REGISTER(transport, threads) = {
    .name = "threads",
    .summary = "all nodes are threads of this process",
    .by_reference = true,
    .workers_most = 1024,
    .open = open_threads,
    .launch = launch,
    .send = send,
    .receive = receive,
    .compute = compute,
    .now = now,
    .close = close_threads,
};
