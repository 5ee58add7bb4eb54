/* A job of MPI: the module with its calls, and how processes begin and end. */
#define _GNU_SOURCE /* dladdr, pthread_timedjoin_np */
#include "transport/mpi_job.h"
#include "base/clock.h"
#include "base/memory.h"
#include "run.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { HELLO_TAG = 6, END_TAG = 9, SHARE_TAG = 10 }; /* 7 and 8 are mpi.c's */
/* The first process may have much to read and to measure before the others can go on. */
#define PATIENCE_NS (INT64_C(3600) * 1000000000)

struct sdr_mpi_job sdr_mpi_job;
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
        snprintf(folder, sizeof folder, "%.*s",
                 (int)(strrchr(info.dli_fname, '/') - info.dli_fname), info.dli_fname);
    else
        (void)!readlink("/proc/self/exe", folder, sizeof folder - 1);
    const struct sdr_mpi *shim = load_from(folder, "");
    if (!shim)
        shim = load_from(folder, "/sounder");
    return shim ? shim : load_from(folder, "/../lib/sounder");
}

enum sdr_status sdr_mpi_join(int *process, int *processes)
{
    if (!job->mpi) {
        const struct sdr_mpi *shim = load();
        if (!shim)
            return sdr_fail(SDR_RUNTIME,
                            "there is no sounder-mpi.so beside the program: it was built "
                            "without MPI (install libopenmpi-dev and build again)");
        const char *trouble = shim->start(&job->process, &job->processes);
        if (trouble)
            return sdr_fail(SDR_RUNTIME, "%s", trouble);
        job->mpi = shim;
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

static void *finish(void *unused)
{
    (void)unused;
    job->mpi->finish();
    return NULL;
}

/* The first process may have to evaluate and to write when the others are done: they do not end MPI before it says
   so, for a part of it cannot be ended. */
static void await_end(void)
{
    enum { NAP = 2000000 };
    static char word;
    unsigned char request[SDR_MPI_REQUEST_BYTES];
    bool done = false;
    int64_t until = sdr_clock_now() + PATIENCE_NS;
    for (int p = 1; p < job->processes && job->process == 0; p++)
        (void)job->mpi->send(p, END_TAG, &word, 1, request); /* so small that nobody waits for it */
    if (job->process > 0 && !job->mpi->receive(0, END_TAG, &word, 1, request))
        while (!done && sdr_clock_now() < until && !job->mpi->test(request, &done))
            sdr_mpi_nap(NAP);
}

void sdr_mpi_leave(enum sdr_status status)
{
    enum { SECONDS = 30 }; /* somebody may have died since */
    pthread_t thread;
    struct timespec until;
    if (job->lost) /* the others know it too, and leave */
        return;
    if (status != SDR_OK && job->processes > 1) { /* the others would wait for this one */
        sdr_mpi_nap(job->process > 0 ? 600000000
                                     : 200000000); /* what was said gets to where it is read */
        job->mpi->give_up((int)status);
        return;
    }
    await_end();
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += SECONDS;
    if (pthread_create(&thread, NULL, finish, NULL) == 0)
        pthread_timedjoin_np(thread, NULL, &until);
}

static enum sdr_status trouble(const char *what)
{
    return what ? sdr_fail(SDR_RUNTIME, "%s", what) : SDR_OK;
}

/* ---- before they start: whether all are there, and mean the same ---- */
struct hello {
    char version[32], path[8000]; /* what decides about the run: options and data */
};

static void introduce(const char *text, struct hello *hello)
{
    *hello = (struct hello){0};
    snprintf(hello->version, sizeof hello->version, "%s", sdr_version());
    snprintf(hello->path, sizeof hello->path, "%s", text);
}

/* Waits for a request, until a time. */
static enum sdr_status await(void *request, int64_t until, bool *done)
{
    enum { NAP = 500000 };
    for (*done = false; !*done && sdr_clock_now() < until; sdr_mpi_nap(NAP))
        SDR_TRY(trouble(job->mpi->test(request, done)));
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

static enum sdr_status first_is_late(void)
{
    return sdr_fail(SDR_PEER_LOST, "process 0 has not come as far within an hour");
}

static enum sdr_status pass_on(void *bytes, size_t count)
{
    unsigned char request[SDR_MPI_REQUEST_BYTES];
    int64_t until = sdr_clock_now() + PATIENCE_NS;
    for (int p = 1; p < job->processes; p++) {
        bool done;
        if (job->process == 0)
            SDR_TRY(trouble(job->mpi->send(p, SHARE_TAG, bytes, count, request)));
        else if (job->process == p)
            SDR_TRY(trouble(job->mpi->receive(0, SHARE_TAG, bytes, count, request)));
        else
            continue;
        SDR_TRY(await(request, until, &done));
        if (!done && job->process > 0)
            return first_is_late();
        if (!done)
            return sdr_fail(SDR_PEER_LOST, "process %d has not come as far within an hour", p);
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
                        "process %d does not do what process 0 does: give all the same "
                        "options",
                        job->process);
    for (size_t from = 0, part; from < count; from += part) {
        part = count - from < MOST ? count - from : MOST;
        SDR_TRY(pass_on(at + from, part));
    }
    return SDR_OK;
}

enum sdr_status sdr_mpi_greet(const char *text, double deadline)
{
    int64_t until = sdr_clock_now() + (job->process ? PATIENCE_NS : (int64_t)(deadline * 1e9));
    unsigned char request[SDR_MPI_REQUEST_BYTES];
    struct hello mine, *all;
    bool done = true;
    introduce(text, &mine);
    if (job->process > 0) {
        SDR_TRY(trouble(job->mpi->send(0, HELLO_TAG, &mine, sizeof mine, request)));
        SDR_TRY(await(request, until, &done));
        if (done) {
            SDR_TRY(trouble(job->mpi->receive(0, HELLO_TAG, &mine, sizeof mine, request)));
            SDR_TRY(await(request, until, &done));
        }
        return done ? SDR_OK : first_is_late();
    }
    SDR_TRY(sdr_allocate(&all, (size_t)job->processes, sizeof *all, "MPI"));
    enum sdr_status status = SDR_OK;
    for (int p = 1; p < job->processes && status == SDR_OK; p++) {
        status = trouble(job->mpi->receive(p, HELLO_TAG, &all[p], sizeof *all, request));
        if (status == SDR_OK)
            status = await(request, until, &done);
        if (status == SDR_OK && !done)
            status =
                sdr_fail(SDR_PEER_LOST, "process %d did not start within %.3g seconds", p, deadline);
        if (status == SDR_OK)
            status = compare(&mine, &all[p], p);
    }
    for (int p = 1; p < job->processes && status == SDR_OK; p++) {
        status = trouble(job->mpi->send(p, HELLO_TAG, &mine, sizeof mine, request));
        if (status == SDR_OK)
            status = await(request, until, &done);
    }
    sdr_release(all); /* after a failure the job ends, and what is under way with it */
    return status;
}
