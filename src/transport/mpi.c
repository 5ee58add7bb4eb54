/* Nodes in the processes of an MPI job: servers in the first one, workers one to a process (or more, in turn).
   Messages to nodes of the same process go into their box; others travel as a header, with the body in it
   where it is small and behind it otherwise. Nothing blocks inside MPI: whoever waits for a message looks
   after all of them, and a thread that mostly sleeps does so while others compute. */
#define _GNU_SOURCE /* dladdr */
#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "network.h"
#include "run.h"
#include "transport/crew.h"
#include "transport/mpi/shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BYE = 255 }; /* a message that is the last one of a process */
enum { HELLO_TAG = 6, HEADER_TAG = 7, BODY_TAG = 8, INLINE_BYTES = 4096, BODY_MOST = 0x7FFFFFFF };

struct options {
    double deadline;
};
static const struct sdr_option table[] = {
    {"deadline", SDR_NUMBER, "60", "SECONDS", 1, 86400,
     "that processes wait for each other at the start and the end",
     offsetof(struct options, deadline), 0},
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
    bool listening;
    struct sdr_body *body; /* owned: on its way */
};

/* What is on its way out. */
struct sending {
    struct header header;
    unsigned char request[2][SDR_MPI_REQUEST_BYTES];
    bool done[2];
    struct sdr_body *body; /* owned */
    struct sending *next;
};

struct shared {
    struct sdr_crew crew; /* first: see crew.h */
    const struct options *options;
    pthread_mutex_t calls;       /* one thread at a time calls MPI, and guards what follows */
    struct line *line;           /* owned, per process */
    struct sending *out, *spare; /* owned */
    pthread_t carrier;
    int byes; /* of the processes that this one talks to, how many have said so */
    atomic_bool over;
};

/* ---- the module ---- */
static const struct sdr_mpi *mpi;
static int this_process, all_processes;

static const struct sdr_mpi *load_from(const char *folder, const char *rest)
{
    char path[4096];
    snprintf(path, sizeof path, "%s%s/sounder-mpi.so", folder, rest);
    if (access(path, R_OK) != 0)
        return NULL;
    void *module = dlopen(path, RTLD_NOW | RTLD_GLOBAL); /* GLOBAL: MPI loads its own parts */
    const struct sdr_mpi *shim = module ? dlsym(module, "sdr_mpi_shim") : NULL;
    return shim && shim->version == SDR_MPI_SHIM ? shim : NULL;
}

static const struct sdr_mpi *load(void)
{
    static const int here = 0;
    Dl_info info;
    char folder[4096] = "";
    if (dladdr(&here, &info) && info.dli_fname && strchr(info.dli_fname, '/'))
        snprintf(folder, sizeof folder, "%.*s",
                 (int)(strrchr(info.dli_fname, '/') - info.dli_fname), info.dli_fname);
    else
        (void)!readlink("/proc/self/exe", folder, sizeof folder - 1);
    const struct sdr_mpi *shim = load_from(folder, "");
    if (!shim)
        shim = load_from(folder, "/sounder");
    return shim ? shim : load_from(folder, "/../lib/sounder");
}

static enum sdr_status join(int *process, int *processes)
{
    if (!mpi) {
        const struct sdr_mpi *shim = load();
        if (!shim)
            return sdr_fail(SDR_RUNTIME,
                            "there is no sounder-mpi.so beside the program: it was built "
                            "without MPI (install libopenmpi-dev and build again)");
        const char *trouble = shim->start(&this_process, &all_processes);
        if (trouble)
            return sdr_fail(SDR_RUNTIME, "%s", trouble);
        mpi = shim;
    }
    *process = this_process;
    *processes = all_processes;
    return SDR_OK;
}

static void leave(enum sdr_status status)
{
    /* After a failure the others would wait for this one. */
    if (status == SDR_OK || all_processes == 1)
        mpi->finish();
    else
        mpi->give_up((int)status);
}

/* ---- where nodes live ---- */
static int process_of(const struct sdr_network *net, int id)
{
    return id < net->servers ? 0 : (id - net->servers) % all_processes;
}

static bool lives_here(const struct sdr_node *node)
{
    return process_of(node->run->network, node->id) == this_process;
}

/* ---- looking after messages; the caller holds `calls` ---- */
static enum sdr_status trouble(const char *what)
{
    return what ? sdr_fail(SDR_RUNTIME, "%s", what) : SDR_OK;
}

static enum sdr_status listen(struct shared *shared, int from)
{
    struct line *line = &shared->line[from];
    line->listening = true;
    return trouble(
        mpi->receive(from, HEADER_TAG, &line->header, sizeof line->header, line->request));
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
    return sdr_box_put(&shared->crew.box[h->to], &message);
}

/* A header or a body has arrived from a process. */
static enum sdr_status arrived(struct sdr_run *run, int from)
{
    struct shared *shared = run->network->shared;
    struct line *line = &shared->line[from];
    struct header *h = &line->header;
    if (!line->body && h->kind == BYE) {
        line->listening = false;
        shared->byes++;
        return SDR_OK;
    }
    if (line->body || h->bytes == 0) {
        SDR_TRY(deliver(run, line));
        return listen(shared, from);
    }
    if (h->bytes > BODY_MOST || (h->inlined && h->bytes > INLINE_BYTES))
        return sdr_fail(SDR_RUNTIME, "process %d sent a message that makes no sense", from);
    SDR_TRY(sdr_body_create(run->network->pool, h->bytes, &line->body));
    if (!h->inlined)
        return trouble(mpi->receive(from, BODY_TAG, line->body->data, h->bytes, line->request));
    memcpy(line->body->data, h->body, h->bytes);
    SDR_TRY(deliver(run, line));
    return listen(shared, from);
}

static enum sdr_status look_at_lines(struct sdr_run *run, bool *any)
{
    struct shared *shared = run->network->shared;
    for (int p = 0; p < all_processes; p++) {
        bool done = true;
        while (done && shared->line[p].listening) {
            SDR_TRY(trouble(mpi->test(shared->line[p].request, &done)));
            *any |= done;
            if (done)
                SDR_TRY(arrived(run, p));
        }
    }
    return SDR_OK;
}

/* What has been sent is let go. */
static enum sdr_status look_at_sendings(struct shared *shared)
{
    for (struct sending **link = &shared->out; *link;) {
        struct sending *sending = *link;
        for (int i = 0; i < 2; i++)
            if (!sending->done[i])
                SDR_TRY(trouble(mpi->test(sending->request[i], &sending->done[i])));
        if (!sending->done[0] || !sending->done[1]) {
            link = &sending->next;
            continue;
        }
        sdr_body_drop(sending->body);
        *link = sending->next;
        sending->next = shared->spare;
        shared->spare = sending;
    }
    return SDR_OK;
}

/* Looks after all messages of the process; *any: one has arrived. */
static enum sdr_status look(struct sdr_run *run, bool *any)
{
    struct shared *shared = run->network->shared;
    enum sdr_status status = SDR_OK;
    *any = false;
    if (pthread_mutex_trylock(&shared->calls) != 0)
        return SDR_OK; /* somebody does */
    status = look_at_lines(run, any);
    if (status == SDR_OK)
        status = look_at_sendings(shared);
    pthread_mutex_unlock(&shared->calls);
    return status;
}

static void nap(int64_t nanoseconds)
{
    struct timespec time = {0, nanoseconds};
    nanosleep(&time, NULL);
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
            sdr_crew_break_up(&shared->crew, status);
            break;
        }
        nap(NAP);
    }
    return NULL;
}

/* ---- for nodes ---- */
static enum sdr_status post(struct shared *shared, int process, const struct sdr_message *message)
{
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
    *sending = (struct sending){.done = {true, true}, .body = message->body, .next = shared->out};
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
    SDR_TRY(trouble(mpi->send(process, HEADER_TAG, h, HEADER_ALONE + (inlined ? bytes : 0),
                              sending->request[0])));
    sending->done[0] = false;
    if (inlined)
        return SDR_OK;
    SDR_TRY(trouble(mpi->send(process, BODY_TAG, message->body->data, bytes, sending->request[1])));
    sending->done[1] = false;
    return SDR_OK;
}

static enum sdr_status send(struct sdr_node *node, struct sdr_message *message)
{
    struct shared *shared = node->run->network->shared;
    int process = process_of(node->run->network, message->to);
    if (process == this_process)
        return sdr_box_put(&shared->crew.box[message->to], message);
    if (message->body && message->body->bytes > BODY_MOST) {
        sdr_body_drop(message->body);
        return sdr_fail(SDR_RUNTIME, "a message is larger than 2 GB: give more --servers");
    }
    pthread_mutex_lock(&shared->calls);
    enum sdr_status status = post(shared, process, message);
    if (status == SDR_OK)
        status = look_at_sendings(shared);
    pthread_mutex_unlock(&shared->calls);
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
        if (sdr_box_take(node->seat, rest, message))
            return SDR_OK;
        if (atomic_load(&shared->crew.broken))
            return sdr_crew_broken(&shared->crew);
        SDR_TRY(look(run, &any));
        if (any)
            looks = 0;
        else if (!rest)
            sched_yield();
    }
}

static enum sdr_status compute(struct sdr_node *node, const struct sdr_work *work, bool *done)
{
    return sdr_box_compute(node->seat, node, work, done);
}

static bool any(struct sdr_node *node)
{
    return sdr_box_any(node->seat);
}

static int64_t now(const struct sdr_node *node)
{
    return sdr_clock_now() - ((const struct shared *)node->run->network->shared)->crew.launched;
}

/* ---- a run ---- */
static enum sdr_status open_mpi(struct sdr_run *run, const void *options)
{
    struct shared *shared;
    SDR_TRY(sdr_allocate(&shared, 1, sizeof *shared, "MPI"));
    run->network->shared = shared;
    shared->options = options;
    pthread_mutex_init(&shared->calls, NULL);
    SDR_TRY(sdr_crew_open(run, &shared->crew));
    return sdr_allocate(&shared->line, (size_t)all_processes, sizeof *shared->line, "MPI");
}

/* Workers talk to servers, which live in the first process, and to nobody else. */
static bool talks_to(int process)
{
    return process != this_process && (this_process == 0 || process == 0);
}

/* Waits until what is on its way out has gone, and what was sent to this process has come: a message that
   nobody receives would keep its sender waiting. */
static enum sdr_status part(struct sdr_run *run)
{
    enum { NAP = 100000 };
    struct shared *shared = run->network->shared;
    int64_t until = sdr_clock_now() + (int64_t)(shared->options->deadline * 1e9);
    int others = this_process == 0 ? all_processes - 1 : 1;
    struct sdr_message bye = {.kind = BYE};
    enum sdr_status status = SDR_OK;
    pthread_mutex_lock(&shared->calls);
    for (int p = 0; p < all_processes && status == SDR_OK; p++)
        if (talks_to(p))
            status = post(shared, p, &bye);
    pthread_mutex_unlock(&shared->calls);
    for (bool any, over = false; status == SDR_OK && !over; nap(NAP)) {
        status = look(run, &any);
        over = !shared->out && shared->byes == others; /* the only thread that is left */
        if (status == SDR_OK && !over && sdr_clock_now() > until)
            status = sdr_fail(SDR_PEER_LOST, "%d of %d processes did not say that they are done",
                              others - shared->byes, others);
    }
    return status;
}

/* ---- before they start: whether all are there, and mean the same ---- */
struct hello {
    char version[32], path[8000]; /* what decides about the run: options and data */
};

static void introduce(const struct sdr_run *run, struct hello *hello)
{
    *hello = (struct hello){0};
    snprintf(hello->version, sizeof hello->version, "%s", sdr_version());
    snprintf(hello->path, sizeof hello->path, "%s", run->path);
}

/* Waits for a request, until a time. */
static enum sdr_status await(void *request, int64_t until, bool *done)
{
    enum { NAP = 500000 };
    for (*done = false; !*done && sdr_clock_now() < until; nap(NAP))
        SDR_TRY(trouble(mpi->test(request, done)));
    return SDR_OK;
}

static enum sdr_status compare(const struct hello *mine, const struct hello *other, int process)
{
    char name[32];
    if (memcmp(mine->version, other->version, sizeof mine->version) != 0)
        return sdr_fail(SDR_RUNTIME, "process %d is version %.31s of sounder, this is %s", process,
                        other->version, mine->version);
    if (memcmp(mine->path, other->path, sizeof mine->path) == 0)
        return SDR_OK;
    sdr_path_difference(mine->path, other->path, name);
    return sdr_fail(SDR_RUNTIME, "process %d has other %s than process 0", process,
                    strcmp(name, "data") == 0 ? "data" : name);
}

/* All say hello to the first process, which compares; nobody starts before it has answered. */
static enum sdr_status greet(struct sdr_run *run)
{
    const struct shared *shared = run->network->shared;
    int64_t until = sdr_clock_now() + (int64_t)(shared->options->deadline * 1e9);
    unsigned char request[SDR_MPI_REQUEST_BYTES];
    struct hello mine, *all;
    bool done = true;
    introduce(run, &mine);
    if (this_process > 0) {
        SDR_TRY(trouble(mpi->send(0, HELLO_TAG, &mine, sizeof mine, request)));
        SDR_TRY(await(request, until, &done));
        if (done) {
            SDR_TRY(trouble(mpi->receive(0, HELLO_TAG, &mine, sizeof mine, request)));
            SDR_TRY(await(request, until, &done));
        }
        return done ? SDR_OK
                    : sdr_fail(SDR_PEER_LOST, "process 0 did not start within %g seconds",
                               shared->options->deadline);
    }
    SDR_TRY(sdr_allocate(&all, (size_t)all_processes, sizeof *all, "MPI"));
    enum sdr_status status = SDR_OK;
    for (int p = 1; p < all_processes && status == SDR_OK; p++) {
        status = trouble(mpi->receive(p, HELLO_TAG, &all[p], sizeof *all, request));
        if (status == SDR_OK)
            status = await(request, until, &done);
        if (status == SDR_OK && !done)
            status = sdr_fail(SDR_PEER_LOST, "process %d did not start within %g seconds", p,
                              shared->options->deadline);
        if (status == SDR_OK)
            status = compare(&mine, &all[p], p);
    }
    for (int p = 1; p < all_processes && status == SDR_OK; p++) {
        status = trouble(mpi->send(p, HELLO_TAG, &mine, sizeof mine, request));
        if (status == SDR_OK)
            status = await(request, INT64_MAX, &done);
    }
    sdr_release(all); /* after a failure the job ends, and what is under way with it */
    return status;
}

static enum sdr_status launch(struct sdr_run *run, enum sdr_status (*loop)(struct sdr_node *node))
{
    struct shared *shared = run->network->shared;
    SDR_TRY(greet(run));
    for (int p = 0; p < all_processes; p++)
        if (talks_to(p))
            SDR_TRY(listen(shared, p));
    if (pthread_create(&shared->carrier, NULL, carry, run) != 0)
        return sdr_fail(SDR_RUNTIME, "a thread that looks after messages cannot be started");
    enum sdr_status status = sdr_crew_launch(run, loop, lives_here);
    atomic_store(&shared->over, true);
    pthread_join(shared->carrier, NULL);
    return status == SDR_OK && all_processes > 1 ? part(run) : status;
}

static void close_mpi(struct sdr_run *run)
{
    struct shared *shared = run->network->shared;
    for (int p = 0; p < all_processes && shared->line; p++) {
        if (shared->line[p].listening)
            mpi->cancel(shared->line[p].request);
        sdr_body_drop(shared->line[p].body);
    }
    for (struct sending *sending; (sending = shared->out); sdr_release(sending)) {
        shared->out = sending->next;
        sdr_body_drop(sending->body);
    }
    for (struct sending *sending; (sending = shared->spare); sdr_release(sending))
        shared->spare = sending->next;
    sdr_crew_free(&shared->crew);
    pthread_mutex_destroy(&shared->calls);
    sdr_release(shared->line);
    sdr_release(shared);
    run->network->shared = NULL;
}

SDR_REGISTER(transport, mpi) = {
    .name = "mpi",
    .summary = "nodes are processes that mpirun or srun has started",
    .options = table,
    .options_size = sizeof(struct options),
    .workers_most = 1024,
    .join = join,
    .leave = leave,
    .open = open_mpi,
    .launch = launch,
    .send = send,
    .receive = receive,
    .compute = compute,
    .any = any,
    .now = now,
    .close = close_mpi,
};
