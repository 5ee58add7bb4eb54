/* An MPI job: loading the module with its MPI calls, start and end of processes. */
#define _GNU_SOURCE /* dladdr, pthread_timedjoin_np */
#include "transport/mpi_job.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"
#include "run/job.h"
#include "run/run.h"
#include "transport/mpi_memory.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { HELLO_TAG = 6, END_TAG = 9, SHARE_TAG = 10 }; /* 7 and 8 are mpi.c's */

struct sdr_mpi_job sdr_mpi_job = {.calls = PTHREAD_MUTEX_INITIALIZER};
static struct sdr_mpi_job *const job = &sdr_mpi_job;

/* ---- the module ---- */

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
        snprintf(folder, sizeof folder, "%s", info.dli_fname);
    else /* found by PATH: the name has no folder */
        (void)!readlink("/proc/self/exe", folder, sizeof folder - 1);
    char *name = strrchr(folder, '/');
    if (name)
        *name = 0;
    const struct sdr_mpi *shim = load_from(folder, "");
    if (!shim)
        shim = load_from(folder, "/sounder");
    return shim ? shim : load_from(folder, "/../lib/sounder");
}

/* Collective MPI calls would wait forever for a dead process: they run in their own thread,
   which is abandoned after a timeout. */
static bool within(double seconds, void *(*call)(void *argument), void *argument)
{
    pthread_t thread;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)seconds + 1;
    return pthread_create(&thread, NULL, call, argument) == 0 &&
           pthread_timedjoin_np(thread, NULL, &until) == 0;
}

static const struct sdr_mpi *loaded;
static const char *trouble_at_start;
static void *start(void *unused)
{
    (void)unused;
    trouble_at_start = loaded->start(&job->process, &job->processes, &job->one_machine);
    if (!trouble_at_start)
        trouble_at_start = sdr_mpi_memory_open(loaded, job->process, job->processes);
    return NULL;
}

enum sdr_status sdr_mpi_join(int *process, int *processes)
{
    if (!job->mpi) {
        loaded = load();
        if (!loaded)
            return sdr_fail(
                SDR_RUNTIME,
                "there is no sounder-mpi.so beside the program: type make, which builds it "
                "if libopenmpi-dev is installed");
        if (!within(job->deadline, start, NULL))
            return sdr_fail(SDR_PEER_LOST,
                            "MPI did not start within %g seconds, which happens if a process dies "
                            "meanwhile: start the job again",
                            job->deadline);
        if (trouble_at_start)
            return sdr_fail(SDR_RUNTIME, "%s", trouble_at_start);
        job->mpi = loaded;
        SDR_TRY(sdr_mpi_pulse_start());
    }
    *process = job->process;
    *processes = job->processes;
    return SDR_OK;
}

void sdr_mpi_nap(int64_t nanoseconds)
{
    struct timespec time = {0, nanoseconds};
    nanosleep(&time, NULL);
}

/* ---- requests ---- */
static enum sdr_status trouble(const char *what)
{
    return what ? sdr_fail(SDR_RUNTIME, "%s", what) : SDR_OK;
}

static enum sdr_status begin_send(int to, int tag, const void *bytes, size_t count, void *request)
{
    pthread_mutex_lock(&job->calls);
    const char *what = job->mpi->send(to, tag, bytes, count, request);
    pthread_mutex_unlock(&job->calls);
    return trouble(what);
}

static enum sdr_status begin_receive(int from, int tag, void *bytes, size_t count, void *request)
{
    pthread_mutex_lock(&job->calls);
    const char *what = job->mpi->receive(from, tag, bytes, count, request);
    pthread_mutex_unlock(&job->calls);
    return trouble(what);
}

static enum sdr_status test(void *request, bool *done)
{
    pthread_mutex_lock(&job->calls);
    const char *what = job->mpi->test(request, done);
    pthread_mutex_unlock(&job->calls);
    return trouble(what);
}

static bool is_lost(int process)
{
    pthread_mutex_lock(&job->calls);
    bool lost = job->peer[process].lost;
    pthread_mutex_unlock(&job->calls);
    return lost;
}

/* Waits for a request while the job goes on; until a time, if that is not 0. */
static enum sdr_status await(void *request, int64_t until, bool *done)
{
    enum { NAP = 500000 };
    for (*done = false; !*done && (!until || sdr_clock_now() < until); sdr_mpi_nap(NAP)) {
        SDR_TRY(sdr_mpi_ended());
        SDR_TRY(test(request, done));
    }
    return SDR_OK;
}

/* ---- the end ---- */
static void *finish(void *unused)
{
    (void)unused;
    job->mpi->finish();
    return NULL;
}

static void *give_up(void *status)
{
    job->mpi->give_up(*(enum sdr_status *)status);
    return NULL;
}

/* Process 0 tells another process that it has finished, and waits for the acknowledgement,
   unless that process is lost. */
static void dismiss(int process)
{
    enum { NAP = 1000000 };
    static char word[2];
    unsigned char out[SDR_MPI_REQUEST_BYTES], in[SDR_MPI_REQUEST_BYTES];
    bool done = false;
    word[0] = atomic_load(&job->lost);
    if (begin_send(process, END_TAG, word, 1, out) != SDR_OK ||
        begin_receive(process, END_TAG, word + 1, 1, in) != SDR_OK)
        return;
    while (!done && !is_lost(process) && test(in, &done) == SDR_OK)
        sdr_mpi_nap(NAP);
    pthread_mutex_lock(&job->calls);
    job->peer[process].left = done;
    pthread_mutex_unlock(&job->calls);
}

/* The first process may still evaluate and write when the others are done: they wait for its
   message before MPI_Finalize, which is collective. */
static enum sdr_status await_end(void)
{
    enum { NAP = 2000000, NAPS = 50 };
    static char word;
    unsigned char request[SDR_MPI_REQUEST_BYTES];
    bool done = false;
    if (job->process == 0) {
        for (int p = 1; p < job->processes; p++)
            if (!is_lost(p))
                dismiss(p);
        return SDR_OK;
    }
    SDR_TRY(begin_receive(0, END_TAG, &word, 1, request));
    SDR_TRY(await(request, 0, &done));
    if (word)
        atomic_store(&job->lost, true);
    SDR_TRY(begin_send(0, END_TAG, &word, 1, request));
    done = false;
    for (int i = 0; i < NAPS && !done; i++, sdr_mpi_nap(NAP))
        SDR_TRY(test(request, &done));
    return SDR_OK;
}

enum sdr_status sdr_mpi_leave(enum sdr_status status)
{
    enum { ABORT_SECONDS = 5, FINISH_SECONDS = 5 };
    if (!job->mpi || job->processes == 1) {
        if (job->mpi)
            job->mpi->finish();
        return status;
    }
    if (status == SDR_OK)
        status = await_end();
    else if (atomic_load(&job->lost))
        sdr_mpi_pulse_end(status);
    sdr_mpi_pulse_stop();
    if (atomic_load(&job->lost)) /* MPI_Finalize and MPI_Abort may wait for the dead */
        return status;
    if (status != SDR_OK) { /* the others would wait for this process */
        sdr_mpi_nap(job->process > 0 ? 600000000
                                     : 200000000); /* time for the last messages to be read */
        within(ABORT_SECONDS, give_up, &status);
    } else {
        within(job->silence + FINISH_SECONDS, finish, NULL); /* a process may have died since */
    }
    return status;
}

/* ---- start: are all processes there, with the same options and data ---- */
enum { ITEMS = 64 };
struct hello {
    char version[32], build[48], whole[33]; /* whole: the hash of all options and the data */
    uint64_t item[ITEMS];                   /* hashes of name=value, to name the first difference */
};

/* The i-th item of a list name=value;…, whose values have no semicolons; empty if there is none. */
static const char *piece(const char *text, int i, size_t *length)
{
    for (; i > 0 && *text; i--)
        text += strcspn(text, ";") + (text[strcspn(text, ";")] != 0);
    *length = strcspn(text, ";");
    return text;
}

static void introduce(const char *text, struct hello *hello)
{
    *hello = (struct hello){0};
    snprintf(hello->version, sizeof hello->version, "%s", sdr_version());
    snprintf(hello->build, sizeof hello->build, "%s", sdr_build_id);
    sdr_hash_text(text, strlen(text), hello->whole);
    for (int i = 0; i < ITEMS; i++) {
        size_t length;
        const char *at = piece(text, i, &length);
        hello->item[i] = sdr_hash64(at, length, 0);
    }
}

static enum sdr_status compare(const struct hello *mine, const struct hello *other,
                               const char *text, int process)
{
    size_t length = 0;
    int i = 0;
    if (memcmp(mine->version, other->version, sizeof mine->version) != 0)
        return sdr_fail(SDR_RUNTIME, "process %d is version %.31s of sounder, this is %s", process,
                        other->version, mine->version);
    if (memcmp(mine->build, other->build, sizeof mine->build) != 0)
        return sdr_fail(SDR_RUNTIME,
                        "process %d is another build of sounder %s than process 0: start the same "
                        "program everywhere",
                        process, mine->version);
    if (memcmp(mine->whole, other->whole, sizeof mine->whole) == 0)
        return SDR_OK;
    while (i < ITEMS && mine->item[i] == other->item[i])
        i++;
    const char *at = piece(text, i, &length), *equals = memchr(at, '=', length);
    if (i == ITEMS || !equals)
        return sdr_fail(SDR_RUNTIME, "process %d has different options than process 0", process);
    bool data = (size_t)(equals - at) == strlen("data") && memcmp(at, "data", strlen("data")) == 0;
    return sdr_fail(SDR_RUNTIME, "process %d has %s%.*s than process 0", process,
                    data ? "different " : "a different --", (int)(equals - at), at);
}

/* The sender's heartbeats wait behind a large message: allows a second per megabyte. */
static void be_patient(int process, size_t bytes)
{
    pthread_mutex_lock(&job->calls);
    job->peer[process].patience = (double)bytes * 1e-6;
    pthread_mutex_unlock(&job->calls);
}

/* Process 0 has heartbeats, but may wait for data that never comes. */
static enum sdr_status late_first(double deadline)
{
    return sdr_fail(SDR_PEER_LOST,
                    "process 0 is alive, but has not read its data within %.3g seconds: give a "
                    "larger mpi:deadline",
                    deadline);
}

static enum sdr_status pass_on(void *bytes, size_t count)
{
    double seconds = job->deadline + (double)count * 1e-6;
    int64_t until = sdr_clock_now() + (int64_t)(seconds * 1e9);
    unsigned char request[SDR_MPI_REQUEST_BYTES];
    bool done;
    if (job->process > 0) {
        SDR_TRY(begin_receive(0, SHARE_TAG, bytes, count, request));
        be_patient(0, count);
        SDR_TRY(await(request, until, &done));
        be_patient(0, 0);
        return done ? SDR_OK : late_first(seconds);
    }
    for (int p = 1; p < job->processes; p++) {
        SDR_TRY(begin_send(p, SHARE_TAG, bytes, count, request));
        SDR_TRY(await(request, 0, &done));
    }
    return SDR_OK;
}

enum sdr_status sdr_mpi_share(void *bytes, size_t count)
{
    enum { MOST = 1 << 30 };
    static uint64_t shares;
    struct {
        uint64_t number, bytes;
    } mine = {++shares, count}, first = mine;
    unsigned char *at = bytes;
    SDR_TRY(pass_on(&first, sizeof first));
    if (first.number != mine.number || first.bytes != mine.bytes)
        return sdr_fail(SDR_RUNTIME,
                        "process %d is out of step with process 0; start all with the same options",
                        job->process);
    for (size_t from = 0, part; from < count; from += part) {
        part = count - from < MOST ? count - from : MOST;
        SDR_TRY(pass_on(at + from, part));
    }
    return SDR_OK;
}

/* Process 0 receives the hello of another process, and compares. */
static enum sdr_status hear_hello(const struct hello *mine, const char *text, int process,
                                  double deadline, int64_t until)
{
    static struct hello other; /* MPI may write to it after a failure */
    unsigned char request[SDR_MPI_REQUEST_BYTES];
    bool done;
    SDR_TRY(begin_receive(process, HELLO_TAG, &other, sizeof other, request));
    SDR_TRY(await(request, until, &done));
    if (!done)
        return sdr_fail(SDR_PEER_LOST,
                        "process %d is alive, but did not start within %.3g seconds: if it "
                        "is still reading, give a larger mpi:deadline",
                        process, deadline);
    return compare(mine, &other, text, process);
}

/* Sends a hello to process 0, which answers when it has read its data, and again when it has
   heard from all: that wait has its own deadline. */
static enum sdr_status greet_first(struct hello *mine, double deadline, int64_t until)
{
    static struct hello answer; /* MPI may write to it after a failure */
    unsigned char request[SDR_MPI_REQUEST_BYTES];
    bool done;
    SDR_TRY(begin_send(0, HELLO_TAG, mine, sizeof *mine, request));
    SDR_TRY(await(request, until, &done));
    SDR_TRY(begin_receive(0, HELLO_TAG, &answer, sizeof answer, request));
    SDR_TRY(await(request, until, &done));
    if (!done)
        return late_first(deadline);
    SDR_TRY(begin_receive(0, HELLO_TAG, &answer, sizeof answer, request));
    return await(request, 0, &done);
}

static enum sdr_status greet_others(struct hello *mine)
{
    unsigned char request[SDR_MPI_REQUEST_BYTES];
    bool done;
    for (int p = 1; p < job->processes; p++) {
        SDR_TRY(begin_send(p, HELLO_TAG, mine, sizeof *mine, request));
        SDR_TRY(await(request, 0, &done));
    }
    return SDR_OK;
}

enum sdr_status sdr_mpi_greet(const char *text, double deadline)
{
    static struct hello mine; /* MPI may read it after a failure */
    int64_t until = sdr_clock_now() + (int64_t)(deadline * 1e9);
    pthread_mutex_lock(&job->calls);
    job->training = false;
    pthread_mutex_unlock(&job->calls);
    introduce(text, &mine);
    if (job->process > 0)
        return greet_first(&mine, deadline, until);
    SDR_TRY(greet_others(&mine));
    for (int p = 1; p < job->processes; p++)
        SDR_TRY(hear_hello(&mine, text, p, deadline, until));
    return greet_others(&mine);
}
