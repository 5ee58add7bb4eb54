/* Nodes in the processes of an MPI job; which lives where: server/placement.c. Messages to nodes of
   the same process go into their mailbox, others through MPI (mpi_link.c). Nothing blocks inside
   MPI: a node that waits for a message polls for all nodes, and a mostly sleeping thread polls
   while all nodes compute.

   A dead process is detected by missing heartbeats (mpi_heartbeat.c). mpirun keeps the others
   alive with -enable-recovery; without it, it ends the job. */
#include "base/clock.h"
#include "base/memory.h"
#include "run/run.h"
#include "server/network.h"
#include "server/placement.h"
#include "transport/mpi_link.h"
#include "transport/mpi_memory.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

struct options {
    double deadline, silence;
    bool share;
};
static const struct sdr_option table[] = {
    {"deadline", SDR_NUMBER, "300", "SECONDS", 1, 86400,
     "timeout of start-up, of the barrier after reading, and of shut-down",
     offsetof(struct options, deadline), 0},
    {"silence", SDR_NUMBER, "20", "SECONDS", 0.5, 86400,
     "failure-detection timeout, plus 1 s per MB of a message in flight; if process 0 dies, or "
     "another one before training, all processes end within this and 10 s",
     offsetof(struct options, silence), 0},
    {"share", SDR_FLAG, "yes", NULL, 0, 0,
     "processes of one machine read large messages in each other's memory; no: MPI copies them",
     offsetof(struct options, share), 0},
    {0}};

struct shared {
    struct sdr_mpi_links links; /* first: see mpi_link.h */
    const struct options *options;
    pthread_t carrier;
    atomic_bool over;
};

static struct sdr_mpi_job *const job = &sdr_mpi_job;

/* ---- for nodes ---- */
/* While nodes compute, this thread receives urgent messages. */
static void *carry(void *argument)
{
    enum { NAP = 200000 };
    struct sdr_run *run = argument;
    struct shared *shared = run->network->shared;
    bool any;
    while (!atomic_load(&shared->over)) {
        enum sdr_status status = sdr_mpi_poll(run, &any);
        if (status != SDR_OK) {
            sdr_node_threads_abort(&shared->links.threads, status);
            break;
        }
        sdr_mpi_nap(NAP);
    }
    return NULL;
}

static enum sdr_status send(struct sdr_node *node, struct sdr_message *message)
{
    struct shared *shared = node->run->network->shared;
    int process = sdr_process_of(node->run->network, message->to);
    if (process > 0 && job->process > 0)
        atomic_fetch_add_explicit(&shared->links.bytes, sdr_message_bytes(message),
                                  memory_order_relaxed);
    if (process != job->process)
        return sdr_mpi_post(node->run, process, message);
    if (sdr_message_admitted(node->run->network, message))
        return sdr_mailbox_put(&shared->links.threads.mailbox[message->to], message);
    sdr_body_drop(message->body);
    return SDR_OK;
}

/* Lets other threads run. Where more threads compute than there are cores, that takes a time slice,
   1 ms or more: for a while the node then sleeps between looks instead. A thread that wakes up does
   not wait for the end of a slice. Two processes, beside four programs that compute, on two cores:
   500 updates a second with yields, more than 7 000 with sleep. */
static void give_way(int64_t *crowded_until)
{
    enum { SLICE = 1000000, CROWDED_FOR = 50000000 }; /* ns */
    int64_t before = sdr_clock_now();
    sched_yield();
    int64_t after = sdr_clock_now();
    if (after - before > SLICE)
        *crowded_until = after + CROWDED_FOR;
}

/* Looks once; then looks and gives way for a while, unless the cores are crowded; then sleeps
   between looks: other nodes may need the core. */
static enum sdr_status receive(struct sdr_node *node, struct sdr_message *message)
{
    enum { LOOKS = 50, SHORT = 20000, LONG = 200000 }; /* ns */
    static _Thread_local int64_t crowded_until;
    struct sdr_run *run = node->run;
    struct shared *shared = run->network->shared;
    int64_t begun = sdr_clock_now();
    for (int looks = 0;; looks++) {
        bool any, crowded = begun < crowded_until;
        if (node->id == 0 && sdr_clock_now() > begun + SDR_LOOK_EVERY) {
            *message = (struct sdr_message){.kind = SDR_MESSAGE_NONE};
            return SDR_OK;
        }
        int64_t rest = looks == 0 || (looks < LOOKS && !crowded) ? 0
                       : looks < 20 * LOOKS                      ? SHORT
                                                                 : LONG;
        if (sdr_mailbox_take(node->endpoint, rest, message))
            return SDR_OK;
        if (atomic_load(&shared->links.threads.broken))
            return sdr_node_threads_status(&shared->links.threads);
        SDR_TRY(sdr_mpi_poll(run, &any));
        if (any)
            looks = -1; /* the next look is the first again */
        else if (!rest && !crowded)
            give_way(&crowded_until);
    }
}

static enum sdr_status compute(struct sdr_node *node, struct sdr_work *work, bool *done)
{
    return sdr_mailbox_compute(node->endpoint, node, work, done);
}

static bool any(struct sdr_node *node)
{
    return sdr_mailbox_any(node->endpoint);
}

static enum sdr_status sum(struct sdr_node *node, float *value, uint64_t count, void *request)
{
    (void)node;
    pthread_mutex_lock(&job->calls);
    const char *trouble = job->mpi->sum(value, count, request);
    pthread_mutex_unlock(&job->calls);
    return trouble ? sdr_fail(SDR_RUNTIME, "%s", trouble) : SDR_OK;
}

static enum sdr_status summed(struct sdr_node *node, void *request, bool *done)
{
    (void)node;
    pthread_mutex_lock(&job->calls);
    const char *trouble = job->mpi->test(request, done);
    pthread_mutex_unlock(&job->calls);
    return trouble ? sdr_fail(SDR_RUNTIME, "%s", trouble) : SDR_OK;
}

/* Slots are in the arena, where processes of the same machine write them. Every process has room
   for as many nodes. */
static enum sdr_status expose(struct sdr_run *run)
{
    struct shared *shared = run->network->shared;
    const struct sdr_network *net = run->network;
    uint64_t size = sdr_slots_size(&net->slots);
    unsigned char *own;
    SDR_TRY(sdr_mpi_memory_take((uint64_t)net->nodes * size, &own));
    if (!own) {
        SDR_TRY(sdr_allocate(&shared->links.threads.slots, (size_t)net->nodes, size, "slots"));
        own = shared->links.threads.slots;
    }
    for (int n = 0; n < net->nodes; n++) {
        int process = sdr_process_of(net, n);
        unsigned char *at = process == job->process ? own : sdr_mpi_memory_there(process);
        net->slots.at[n] = at ? (uint64_t *)(void *)(at + (uint64_t)n * size) : NULL;
    }
    return SDR_OK;
}

static bool idle(struct sdr_node *node, int to)
{
    return node->run->network->slots.at[to] ||
           sdr_mpi_idle(node->run, sdr_process_of(node->run->network, to));
}

static void await(struct sdr_node *node, int64_t nanoseconds)
{
    sdr_mailbox_wait(node->endpoint, nanoseconds);
}

static bool one_machine(const struct sdr_node *node)
{
    (void)node;
    return job->one_machine;
}

static int64_t now(const struct sdr_node *node)
{
    return sdr_clock_now() -
           ((const struct shared *)node->run->network->shared)->links.threads.launched;
}

/* ---- a run ---- */
static enum sdr_status open_mpi(struct sdr_run *run, const void *options)
{
    struct shared *shared;
    SDR_TRY(sdr_allocate(&shared, 1, sizeof *shared, "MPI"));
    run->network->shared = shared;
    shared->options = options;
    return sdr_mpi_links_open(run, &shared->links);
}

/* Sends the last message: to the processes that this one has sent to, then to process 0; process
   0 sends to all. */
static enum sdr_status say_bye(struct sdr_run *run, enum sdr_status how)
{
    const struct shared *shared = run->network->shared;
    enum sdr_status status = SDR_OK;
    pthread_mutex_lock(&job->calls);
    for (int p = job->processes - 1; p >= 0 && status == SDR_OK; p--)
        if (p != job->process && (job->process == 0 || p == 0 || shared->links.link[p].sent))
            status = sdr_mpi_say_bye(run, p, how);
    pthread_mutex_unlock(&job->calls);
    return status;
}

static enum sdr_status await_byes(struct sdr_run *run, double seconds, int64_t until)
{
    enum { NAP = 100000 };
    const struct shared *shared = run->network->shared;
    for (bool any; !sdr_mpi_all_said_bye(&shared->links); sdr_mpi_nap(NAP)) {
        SDR_TRY(sdr_mpi_poll(run, &any));
        if (until && sdr_clock_now() > until)
            return sdr_fail(SDR_PEER_LOST,
                            "processes did not say within %g seconds that they are done", seconds);
    }
    return SDR_OK;
}

/* Waits until all outgoing messages are sent, and all messages to this process have arrived: a
   message that nobody receives would block its sender. A process tells process 0 whom it has
   sent to. Once process 0 has heard from all, it tells every process who has sent to it. Silent
   processes are lost, and not waited for. */
static enum sdr_status part(struct sdr_run *run)
{
    const struct shared *shared = run->network->shared;
    /* A timeout longer than failure detection, whatever the options are. */
    double seconds = fmax(shared->options->deadline, shared->options->silence + 5);
    int64_t until = sdr_clock_now() + (int64_t)(seconds * 1e9);
    if (job->process > 0) { /* process 0 may evaluate for long; its heartbeats bound the wait */
        SDR_TRY(say_bye(run, SDR_OK));
        return await_byes(run, seconds, 0);
    }
    SDR_TRY(await_byes(run, seconds, until));
    SDR_TRY(say_bye(run, SDR_OK));
    return await_byes(run, seconds, until);
}

/* After a failure: tells the other processes, if that is possible at once. */
static void abort_others(struct sdr_run *run, enum sdr_status how)
{
    enum { NAP = 1000000, NAPS = 300 };
    struct shared *shared = run->network->shared;
    char sentence[1024];
    bool any;
    snprintf(sentence, sizeof sentence, "%s", sdr_error());
    enum sdr_status status = say_bye(run, how);
    for (int i = 0; i < NAPS && status == SDR_OK && !sdr_mpi_all_sent(&shared->links);
         i++, sdr_mpi_nap(NAP))
        status = sdr_mpi_poll(run, &any);
    sdr_fail(how, "%s", sentence);
}

static enum sdr_status join(const void *options, int *process, int *processes)
{
    const struct options *own = options;
    pthread_mutex_lock(&job->calls);
    job->silence = own->silence;
    job->deadline = own->deadline;
    job->share = own->share;
    pthread_mutex_unlock(&job->calls);
    return sdr_mpi_join(process, processes);
}

static enum sdr_status barrier(const void *options, double more, const char *text)
{
    return sdr_mpi_greet(text, ((const struct options *)options)->deadline + more);
}

/* From here on the strategy decides whether it can continue without a process. */
static enum sdr_status begin(struct sdr_run *run)
{
    pthread_mutex_lock(&job->calls);
    enum sdr_status status = sdr_mpi_ended();
    job->training = true;
    if (status == SDR_OK)
        status = sdr_mpi_listen(run);
    pthread_mutex_unlock(&job->calls);
    return status;
}

static enum sdr_status launch(struct sdr_run *run, enum sdr_status (*loop)(struct sdr_node *node))
{
    struct shared *shared = run->network->shared;
    SDR_TRY(barrier(shared->options, 0, "ready"));
    SDR_TRY(begin(run));
    if (pthread_create(&shared->carrier, NULL, carry, run) != 0)
        return sdr_fail(SDR_RUNTIME, "a thread that looks after messages cannot be started");
    enum sdr_status status = sdr_node_threads_launch(run, loop, sdr_is_here);
    atomic_store(&shared->over, true);
    pthread_join(shared->carrier, NULL);
    if (status == SDR_OK)
        return job->processes > 1 ? part(run) : SDR_OK;
    if (job->process == 0 && atomic_load(&job->lost))
        abort_others(run, status);
    return status;
}

static void close_mpi(struct sdr_run *run)
{
    struct shared *shared = run->network->shared;
    sdr_mpi_links_free(&shared->links);
    sdr_release(shared);
    run->network->shared = NULL;
}

SDR_REGISTER(transport, mpi) = {
    .name = "mpi",
    .summary = "nodes are MPI processes, started by mpirun or srun",
    .options = table,
    .options_size = sizeof(struct options),
    .workers_most = 1024,
    .join = join,
    .leave = sdr_mpi_leave,
    .barrier = barrier,
    .share = sdr_mpi_share,
    .open = open_mpi,
    .launch = launch,
    .send = send,
    .receive = receive,
    .compute = compute,
    .any = any,
    .one_machine = one_machine,
    .wait = await,
    .expose = expose,
    .idle = idle,
    .sum = sum,
    .summed = summed,
    .now = now,
    .close = close_mpi,
};
