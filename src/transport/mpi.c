/* Nodes in the processes of an MPI job: servers in the first one, workers one to a process (or more, in turn).
   Messages to nodes of the same process go into their box; others travel as a header, with the body in it
   where it is small and behind it otherwise. Nothing blocks inside MPI: whoever waits for a message looks
   after all of them, and a thread that mostly sleeps does so while others compute.

   MPI does not report that a process has died; its missing heartbeats do (mpi_pulse.c). Nothing is sent to a lost
   process any more, what was on its way is abandoned, and the server is told about its workers. (mpirun lets the
   others live if it is given -enable-recovery; without, it ends the job.) */
#include "base/clock.h"
#include "base/memory.h"
#include "run/run.h"
#include "server/network.h"
#include "transport/mpi_job.h"
#include "transport/node_threads.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

/* The last message of a process. */
enum { BYE = 255 };
enum { HEADER_TAG = 7, BODY_TAG = 8, INLINE_BYTES = 4096, BODY_MOST = 0x7FFFFFFF };

struct options {
    double deadline, silence;
};
static const struct sdr_option table[] = {
    {"deadline", SDR_NUMBER, "300", "SECONDS", 1, 86400,
     "timeout of start-up, of waiting until all have read their data, and of shut-down",
     offsetof(struct options, deadline), 0},
    {"silence", SDR_NUMBER, "20", "SECONDS", 0.5, 86400,
     "failure-detection timeout, plus 1 s per MB of a message in flight; if process 0 dies, or "
     "another one before training, all processes end within this and 10 s",
     offsetof(struct options, silence), 0},
    {0}};

/* What goes over the wire first. */
struct header {
    uint8_t kind, flags, inlined;
    int32_t from, to, about;
    uint64_t version, batch, bytes;
    double value;
    unsigned char body[INLINE_BYTES];
};
enum { HEADER_ALONE = offsetof(struct header, body) };

/* What comes from another process: a header, or the body that follows one. */
struct line {
    struct header header;
    unsigned char request[SDR_MPI_REQUEST_BYTES];
    bool listening, bye, lost; /* bye: its last message has come */
    struct sdr_body *body;     /* owned: on its way */
};

/* What is on its way out. */
struct sending {
    struct header header;
    unsigned char request[2][SDR_MPI_REQUEST_BYTES];
    bool done[2];
    struct sdr_body *body; /* owned */
    int process;           /* where to */
    struct sending *next;
};

struct shared {
    struct sdr_node_threads threads; /* first: see crew.h */
    const struct options *options;
    struct line *line;           /* owned, per process; job->calls guards this and what follows */
    struct sending *out, *spare; /* owned */
    bool parting;                /* the last message of this process was sent */
    pthread_t carrier;
    atomic_bool over;
};

static struct sdr_mpi_job *const job = &sdr_mpi_job;

/* ---- where nodes live ---- */
static int process_of(const struct sdr_network *net, int id)
{
    return id < net->servers ? 0 : (id - net->servers) % job->processes;
}

static bool lives_here(const struct sdr_node *node)
{
    return process_of(node->run->network, node->id) == job->process;
}

/* ---- looking after messages; the caller holds job->calls ---- */
/* A process is lost: nobody listens to it any more. The server is told about its workers; without the server
   there is nothing to do. */
static enum sdr_status lose(struct sdr_run *run, int process)
{
    struct sdr_network *net = run->network;
    struct shared *shared = net->shared;
    struct line *line = &shared->line[process];
    if (line->lost || line->bye)
        return SDR_OK;
    sdr_mpi_lose(process);
    line->lost = true;
    line->listening = false;
    if (shared->parting) /* no strategy asks any more */
        sdr_note(&run->options, "process %d was lost when training was over: silent for %.1f s",
                 process, job->peer[process].silent);
    for (int id = net->servers; id < net->nodes && process > 0; id++) {
        struct sdr_message word = {.kind = SDR_MESSAGE_LOST,
                                   .about = id - net->servers,
                                   .batch = (uint64_t)process,
                                   .value = job->peer[process].silent};
        if (process_of(net, id) == process)
            SDR_TRY(sdr_mailbox_put(&shared->threads.mailbox[0], &word));
    }
    return sdr_mpi_ended();
}

static enum sdr_status listen(struct sdr_run *run, int from)
{
    struct line *line = &((struct shared *)run->network->shared)->line[from];
    line->listening = true;
    if (job->mpi->receive(from, HEADER_TAG, &line->header, sizeof line->header, line->request))
        return lose(run, from);
    return SDR_OK;
}

static enum sdr_status deliver(struct sdr_run *run, struct line *line)
{
    struct shared *shared = run->network->shared;
    const struct header *h = &line->header;
    struct sdr_message message = {.kind = h->kind,
                                  .flags = h->flags,
                                  .from = h->from,
                                  .to = h->to,
                                  .about = h->about,
                                  .version = h->version,
                                  .batch = h->batch,
                                  .value = h->value,
                                  .body = line->body};
    line->body = NULL;
    atomic_fetch_add_explicit(&run->network->bytes, sdr_message_bytes(&message),
                              memory_order_relaxed);
    if (h->to < 0 || h->to >= run->network->nodes || h->from < 0 ||
        h->from >= run->network->nodes) {
        sdr_body_drop(message.body);
        return sdr_fail(SDR_RUNTIME, "a message came for a node that does not exist");
    }
    return sdr_mailbox_put(&shared->threads.mailbox[h->to], &message);
}

/* A header or a body has arrived from a process. */
static enum sdr_status arrived(struct sdr_run *run, int from)
{
    struct shared *shared = run->network->shared;
    struct line *line = &shared->line[from];
    struct header *h = &line->header;
    sdr_mpi_heard(from);
    job->peer[from].patience = 0;
    if (!line->body && h->kind == BYE) {
        line->listening = false;
        line->bye = true;
        if (h->about)
            atomic_store(&job->lost, true);
        return h->flags == 0 ? SDR_OK
                             : sdr_fail(SDR_PEER_LOST, "process %d has ended the run: %s", from,
                                        sdr_status_text((enum sdr_status)h->flags));
    }
    if (line->body || h->bytes == 0) {
        SDR_TRY(deliver(run, line));
        return listen(run, from);
    }
    if (h->bytes > BODY_MOST || (h->inlined && h->bytes > INLINE_BYTES))
        return sdr_fail(SDR_RUNTIME, "process %d sent a message that makes no sense", from);
    SDR_TRY(sdr_body_create(run->network->pool, h->bytes, &line->body));
    /* While a body is under way its sender's heartbeats wait behind it: a megabyte may take a second. */
    if (!h->inlined)
        job->peer[from].patience = (double)h->bytes * 1e-6;
    if (!h->inlined)
        return job->mpi->receive(from, BODY_TAG, line->body->data, h->bytes, line->request)
                   ? lose(run, from)
                   : SDR_OK;
    memcpy(line->body->data, h->body, h->bytes);
    SDR_TRY(deliver(run, line));
    return listen(run, from);
}

static enum sdr_status look_at_lines(struct sdr_run *run, bool *any)
{
    struct shared *shared = run->network->shared;
    for (int p = 0; p < job->processes; p++) {
        bool done = true;
        while (done && shared->line[p].listening) {
            if (job->mpi->test(shared->line[p].request, &done))
                SDR_TRY(lose(run, p));
            else if (done)
                SDR_TRY(arrived(run, p));
            *any |= done;
        }
    }
    return SDR_OK;
}

/* What has been sent is let go. What was on its way to somebody who is lost stays where it is: MPI may still
   look at it. */
static enum sdr_status look_at_sendings(struct sdr_run *run)
{
    struct shared *shared = run->network->shared;
    for (struct sending **link = &shared->out; *link;) {
        struct sending *sending = *link;
        bool lost = shared->line[sending->process].lost;
        for (int i = 0; i < 2 && !lost; i++)
            if (!sending->done[i] && job->mpi->test(sending->request[i], &sending->done[i]))
                SDR_TRY(lose(run, sending->process));
        if (!lost && (!sending->done[0] || !sending->done[1])) {
            link = &sending->next;
            continue;
        }
        *link = sending->next;
        if (lost)
            continue;
        sdr_body_drop(sending->body);
        sending->next = shared->spare;
        shared->spare = sending;
    }
    return SDR_OK;
}

static enum sdr_status post(struct sdr_run *run, int process, const struct sdr_message *message)
{
    struct shared *shared = run->network->shared;
    struct sending *sending = shared->spare;
    enum sdr_status status = SDR_OK;
    if (sending)
        shared->spare = sending->next;
    else
        status = sdr_allocate(&sending, 1, sizeof *sending, "a message");
    if (status != SDR_OK) {
        sdr_body_drop(message->body);
        return status;
    }
    struct header *h = &sending->header;
    uint64_t bytes = message->body ? message->body->bytes : 0;
    bool inlined = bytes <= INLINE_BYTES;
    *sending = (struct sending){
        .done = {true, true}, .body = message->body, .process = process, .next = shared->out};
    shared->out = sending;
    h->kind = message->kind;
    h->flags = message->flags;
    h->from = message->from;
    h->to = message->to;
    h->about = message->about;
    h->version = message->version;
    h->batch = message->batch;
    h->value = message->value;
    h->bytes = bytes;
    h->inlined = inlined;
    if (inlined && bytes)
        memcpy(h->body, message->body->data, bytes);
    if (job->mpi->send(process, HEADER_TAG, h, HEADER_ALONE + (inlined ? bytes : 0),
                       sending->request[0]))
        return lose(run, process);
    sending->done[0] = false;
    if (inlined)
        return SDR_OK;
    if (job->mpi->send(process, BODY_TAG, message->body->data, bytes, sending->request[1]))
        return lose(run, process);
    sending->done[1] = false;
    return SDR_OK;
}

/* Finds the processes that have no heartbeats any more. */
static enum sdr_status look_at_pulses(struct sdr_run *run)
{
    for (int p = 0; p < job->processes; p++)
        if (job->peer[p].lost)
            SDR_TRY(lose(run, p));
    return sdr_mpi_ended();
}

/* Looks after all messages of the process; *any: one has arrived. */
static enum sdr_status look(struct sdr_run *run, bool *any)
{
    enum sdr_status status = SDR_OK;
    *any = false;
    if (pthread_mutex_trylock(&job->calls) != 0)
        return SDR_OK; /* somebody does */
    status = look_at_lines(run, any);
    if (status == SDR_OK)
        status = look_at_sendings(run);
    if (status == SDR_OK)
        status = look_at_pulses(run);
    pthread_mutex_unlock(&job->calls);
    return status;
}

/* While nodes compute somebody must hear what is urgent. */
static void *carry(void *argument)
{
    enum { NAP = 200000 };
    struct sdr_run *run = argument;
    struct shared *shared = run->network->shared;
    bool any;
    while (!atomic_load(&shared->over)) {
        enum sdr_status status = look(run, &any);
        if (status != SDR_OK) {
            sdr_node_threads_abort(&shared->threads, status);
            break;
        }
        sdr_mpi_nap(NAP);
    }
    return NULL;
}

/* ---- for nodes ---- */
static enum sdr_status send(struct sdr_node *node, struct sdr_message *message)
{
    struct shared *shared = node->run->network->shared;
    int process = process_of(node->run->network, message->to);
    if (process == job->process)
        return sdr_mailbox_put(&shared->threads.mailbox[message->to], message);
    if (message->body && message->body->bytes > BODY_MOST) {
        sdr_body_drop(message->body);
        return sdr_fail(SDR_RUNTIME, "a message is larger than 2 GB: give more --servers");
    }
    pthread_mutex_lock(&job->calls);
    enum sdr_status status = SDR_OK;
    if (shared->line[process].lost)
        sdr_body_drop(message->body);
    else
        status = post(node->run, process, message);
    if (status == SDR_OK)
        status = look_at_sendings(node->run);
    pthread_mutex_unlock(&job->calls);
    return status;
}

/* Looks for a while, then sleeps for moments: other nodes may need the core. */
static enum sdr_status receive(struct sdr_node *node, struct sdr_message *message)
{
    enum { LOOKS = 50, SHORT = 20000, LONG = 200000 };
    struct sdr_run *run = node->run;
    struct shared *shared = run->network->shared;
    int64_t until = sdr_clock_now() + SDR_LOOK_EVERY;
    for (int looks = 0;; looks++) {
        bool any;
        if (node->server == 0 && looks >= LOOKS && sdr_clock_now() > until) {
            *message = (struct sdr_message){.kind = SDR_MESSAGE_NONE};
            return SDR_OK;
        }
        int64_t rest = looks < LOOKS ? 0 : looks < 20 * LOOKS ? SHORT : LONG;
        if (sdr_mailbox_take(node->endpoint, rest, message))
            return SDR_OK;
        if (atomic_load(&shared->threads.broken))
            return sdr_node_threads_status(&shared->threads);
        SDR_TRY(look(run, &any));
        if (any)
            looks = 0;
        else if (!rest)
            sched_yield();
    }
}

static enum sdr_status compute(struct sdr_node *node, const struct sdr_work *work, bool *done)
{
    return sdr_mailbox_compute(node->endpoint, node, work, done);
}

static bool any(struct sdr_node *node)
{
    return sdr_mailbox_any(node->endpoint);
}

static int64_t now(const struct sdr_node *node)
{
    return sdr_clock_now() - ((const struct shared *)node->run->network->shared)->threads.launched;
}

/* ---- a run ---- */
static enum sdr_status open_mpi(struct sdr_run *run, const void *options)
{
    struct shared *shared;
    SDR_TRY(sdr_allocate(&shared, 1, sizeof *shared, "MPI"));
    run->network->shared = shared;
    shared->options = options;
    SDR_TRY(sdr_node_threads_open(run, &shared->threads));
    return sdr_allocate(&shared->line, (size_t)job->processes, sizeof *shared->line, "MPI");
}

/* Says the last word to everybody: how it went, and whether somebody was lost. */
static enum sdr_status say_bye(struct sdr_run *run, enum sdr_status how)
{
    struct shared *shared = run->network->shared;
    struct sdr_message bye = {.kind = BYE, .flags = (uint8_t)how, .about = atomic_load(&job->lost)};
    enum sdr_status status = SDR_OK;
    pthread_mutex_lock(&job->calls);
    shared->parting = true;
    for (int p = 0; p < job->processes && status == SDR_OK; p++)
        if (sdr_mpi_talks_to(p) && !shared->line[p].lost)
            status = post(run, p, &bye);
    pthread_mutex_unlock(&job->calls);
    return status;
}

static bool all_gone(const struct shared *shared)
{
    for (int p = 0; p < job->processes; p++)
        if (sdr_mpi_talks_to(p) && !shared->line[p].bye && !shared->line[p].lost)
            return false;
    return !shared->out;
}

/* Waits until what is on its way out has gone, and what was sent to this process has come: a message that
   nobody receives would keep its sender waiting. Whoever is silent is lost, and not waited for. */
static enum sdr_status part(struct sdr_run *run)
{
    enum { NAP = 100000 };
    struct shared *shared = run->network->shared;
    /* A process that has died is found first, whatever the options are. */
    double seconds = fmax(shared->options->deadline, shared->options->silence + 5);
    int64_t until = sdr_clock_now() + (int64_t)(seconds * 1e9);
    enum sdr_status status = say_bye(run, SDR_OK);
    for (bool any; status == SDR_OK && !all_gone(shared); sdr_mpi_nap(NAP)) {
        status = look(run, &any);
        if (status == SDR_OK && sdr_clock_now() > until)
            status =
                sdr_fail(SDR_PEER_LOST,
                         "processes did not say within %g seconds that they are done", seconds);
    }
    return status;
}

/* After a failure: the others get to know, if that is possible at once. */
static void part_in_anger(struct sdr_run *run, enum sdr_status how)
{
    enum { NAP = 1000000, NAPS = 300 };
    struct shared *shared = run->network->shared;
    char sentence[1024];
    bool any;
    snprintf(sentence, sizeof sentence, "%s", sdr_error());
    enum sdr_status status = say_bye(run, how);
    for (int i = 0; i < NAPS && status == SDR_OK && shared->out; i++, sdr_mpi_nap(NAP))
        status = look(run, &any);
    sdr_fail(how, "%s", sentence);
}

static enum sdr_status join(const void *options, int *process, int *processes)
{
    const struct options *own = options;
    pthread_mutex_lock(&job->calls);
    job->silence = own->silence;
    job->deadline = own->deadline;
    pthread_mutex_unlock(&job->calls);
    return sdr_mpi_join(process, processes);
}

static enum sdr_status barrier(const void *options, double more, const char *text)
{
    return sdr_mpi_greet(text, ((const struct options *)options)->deadline + more);
}

/* From here on the strategy decides whether it can go on without a process. */
static enum sdr_status begin(struct sdr_run *run)
{
    pthread_mutex_lock(&job->calls);
    enum sdr_status status = sdr_mpi_ended();
    job->training = true;
    for (int p = 0; p < job->processes && status == SDR_OK; p++)
        if (sdr_mpi_talks_to(p))
            status = listen(run, p);
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
    enum sdr_status status = sdr_node_threads_launch(run, loop, lives_here);
    atomic_store(&shared->over, true);
    pthread_join(shared->carrier, NULL);
    if (status == SDR_OK)
        return job->processes > 1 ? part(run) : SDR_OK;
    if (job->process == 0 && atomic_load(&job->lost))
        part_in_anger(run, status);
    return status;
}

static void close_mpi(struct sdr_run *run)
{
    struct shared *shared = run->network->shared;
    pthread_mutex_lock(&job->calls);
    for (int p = 0; p < job->processes && shared->line; p++) {
        struct line *line = &shared->line[p];
        if (line->listening && !atomic_load(&job->lost) && !job->mpi->cancel(line->request))
            atomic_store(&job->lost, true);
        if (!line->lost && !(line->listening && atomic_load(&job->lost)))
            sdr_body_drop(line->body);
    }
    pthread_mutex_unlock(&job->calls);
    for (struct sending *sending; (sending = shared->out); sdr_release(sending)) {
        shared->out = sending->next;
        sdr_body_drop(sending->body);
    }
    for (struct sending *sending; (sending = shared->spare); sdr_release(sending))
        shared->spare = sending->next;
    sdr_node_threads_free(&shared->threads);
    if (!atomic_load(&job->lost)) /* else MPI may still write what has come too late into it */
        sdr_release(shared->line);
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
    .now = now,
    .close = close_mpi,
};
