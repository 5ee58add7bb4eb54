/* Heartbeats of an MPI job. MPI does not report that a process has died; silence does. A thread that mostly sleeps
   sends them, so that a process which reads, computes or writes for hours is alive to the others, and a process
   that was killed is lost after `silence` seconds, whatever its peers are doing.

   Silence is counted in what this process was awake for: a wake-up adds at most a quarter of `silence`. So whoever
   was stopped, or got no processor, reads what has come meanwhile before it judges others. */
#include "base/clock.h"
#include "base/memory.h"
#include "run.h"
#include "transport/mpi_job.h"

#include <math.h>
#include <stdio.h>

enum { PULSE_TAG = 11 };
#define OVERDUE                                                                                    \
    2.0 /* seconds from the end of the job until a process that does not notice is ended */

struct word {
    int32_t ended,
        lost; /* how process 0 has ended the job, 0: it has not; the process lost, or −1 */
};
struct line {
    struct word heard, said;
    unsigned char hearing[SDR_MPI_REQUEST_BYTES], saying[SDR_MPI_REQUEST_BYTES];
    bool listens, speaks; /* a request is under way */
    double quiet;         /* seconds since something was said */
};

static struct sdr_mpi_job *const job = &sdr_mpi_job;
static struct {
    pthread_t thread;
    bool started;
    atomic_bool over;
    struct line *line; /* owned, by process */
    struct word word;  /* what process 0 says */
    /* Why the job cannot go on, and for how many seconds that is known. */
    enum sdr_status ended;
    char sentence[200];
    double since;
} pulse = {.word = {.lost = -1}};

bool sdr_mpi_talks_to(int process)
{
    return process != job->process && (job->process == 0 || process == 0);
}

/* ---- the caller holds `calls` ---- */
static void end_job(enum sdr_status status, int lost)
{
    if (pulse.ended != SDR_OK)
        return;
    pulse.ended = status;
    pulse.word = (struct word){status, lost};
}

void sdr_mpi_heard(int process)
{
    job->peer[process].silent = 0;
}

void sdr_mpi_lose(int process)
{
    struct sdr_mpi_peer *peer = &job->peer[process];
    if (peer->lost || peer->left)
        return;
    peer->lost = true;
    atomic_store(&job->lost, true);
    if (process > 0 && job->training)
        return; /* the strategy decides whether it can go on */
    if (pulse.ended != SDR_OK)
        return;
    if (process == 0)
        snprintf(pulse.sentence, sizeof pulse.sentence,
                 "process 0, which has the server, was lost: silent for %.1f s; go on with "
                 "--resume if there is a checkpoint, else start again",
                 peer->silent);
    else
        snprintf(pulse.sentence, sizeof pulse.sentence,
                 "process %d was lost before training began: silent for %.1f s; start the job "
                 "again",
                 process, peer->silent);
    end_job(SDR_PEER_LOST, process);
}

static void understand(int from, struct word word)
{
    sdr_mpi_heard(from);
    if (!word.ended || from != 0 || pulse.ended != SDR_OK)
        return;
    atomic_store(&job->lost, true); /* process 0 leaves without MPI_Finalize */
    if (word.lost > 0)
        snprintf(pulse.sentence, sizeof pulse.sentence,
                 "process 0 has ended the job: process %d was lost", word.lost);
    else
        snprintf(pulse.sentence, sizeof pulse.sentence, "process 0 has ended the job: %s",
                 sdr_status_text((enum sdr_status)word.ended));
    end_job(SDR_PEER_LOST, word.lost);
}

static void hear(int from)
{
    struct line *line = &pulse.line[from];
    for (bool done = true; done && !job->peer[from].lost;) {
        if (!line->listens &&
            job->mpi->receive(from, PULSE_TAG, &line->heard, sizeof line->heard, line->hearing)) {
            sdr_mpi_lose(from);
            return;
        }
        line->listens = true;
        if (job->mpi->test(line->hearing, &done)) {
            sdr_mpi_lose(from);
        } else if (done) {
            line->listens = false;
            understand(from, line->heard);
        }
    }
}

/* Several heartbeats fall into `silence`, so that one may be late. */
static double period(void)
{
    return fmin(job->silence / 5, 1);
}

static void say(int to, bool urgent)
{
    struct line *line = &pulse.line[to];
    bool done = true;
    if (line->speaks && job->mpi->test(line->saying, &done)) {
        sdr_mpi_lose(to);
        return;
    }
    line->speaks = line->speaks && !done;
    if (line->speaks || (line->quiet < period() && !urgent))
        return;
    line->said = pulse.word;
    line->quiet = 0;
    if (job->mpi->send(to, PULSE_TAG, &line->said, sizeof line->said, line->saying))
        sdr_mpi_lose(to);
    else
        line->speaks = true;
}

static void beat(double elapsed)
{
    double counted = fmin(elapsed, job->silence / 4);
    for (int p = 0; p < job->processes; p++) {
        struct sdr_mpi_peer *peer = &job->peer[p];
        if (!sdr_mpi_talks_to(p) || peer->lost || peer->left)
            continue;
        peer->silent += counted;
        pulse.line[p].quiet += elapsed;
        hear(p);
        say(p, pulse.word.ended != pulse.line[p].said.ended);
        if (peer->silent > job->silence + peer->patience)
            sdr_mpi_lose(p);
    }
}

/* ---- the thread ---- */
static void *run_pulse(void *unused)
{
    (void)unused;
    for (int64_t before = sdr_clock_now(), now; !atomic_load(&pulse.over); before = now) {
        sdr_mpi_nap((int64_t)(period() / 4 * 1e9));
        now = sdr_clock_now();
        double elapsed = (double)(now - before) * 1e-9;
        pthread_mutex_lock(&job->calls);
        beat(elapsed);
        pulse.since += pulse.ended != SDR_OK ? elapsed : 0;
        bool overdue = pulse.since > OVERDUE;
        if (overdue)
            pulse.since = 0;
        pthread_mutex_unlock(&job->calls);
        if (overdue && !atomic_load(&pulse.over))
            sdr_job_overdue(pulse.ended, pulse.sentence);
    }
    return NULL;
}

enum sdr_status sdr_mpi_pulse_start(void)
{
    size_t count = (size_t)job->processes;
    SDR_TRY(sdr_allocate(&pulse.line, count, sizeof *pulse.line, "MPI"));
    SDR_TRY(sdr_allocate(&job->peer, count, sizeof *job->peer, "MPI"));
    if (count > 1 && pthread_create(&pulse.thread, NULL, run_pulse, NULL) != 0)
        return sdr_fail(SDR_RUNTIME, "the thread that sends heartbeats cannot be started");
    pulse.started = count > 1;
    return SDR_OK;
}

void sdr_mpi_pulse_stop(void)
{
    atomic_store(&pulse.over, true);
    if (pulse.started)
        pthread_join(pulse.thread, NULL);
    pulse.started = false;
    for (int p = 0; p < job->processes && !atomic_load(&job->lost); p++)
        if (pulse.line[p].listens && !job->mpi->cancel(pulse.line[p].hearing))
            atomic_store(&job->lost, true);
}

enum sdr_status sdr_mpi_ended(void)
{
    return pulse.ended == SDR_OK ? SDR_OK : sdr_fail(pulse.ended, "%s", pulse.sentence);
}

enum sdr_status sdr_mpi_check(void)
{
    pthread_mutex_lock(&job->calls);
    enum sdr_status status = sdr_mpi_ended();
    pthread_mutex_unlock(&job->calls);
    return status;
}

static bool all_know(void)
{
    for (int p = 0; p < job->processes; p++)
        if (sdr_mpi_talks_to(p) && !job->peer[p].lost && !job->peer[p].left &&
            (!pulse.line[p].said.ended || pulse.line[p].speaks))
            return false;
    return true;
}

void sdr_mpi_pulse_end(enum sdr_status status)
{
    enum { NAP = 5000000, NAPS = 100 };
    bool known = job->process > 0;
    pthread_mutex_lock(&job->calls);
    end_job(status, -1);
    pulse.since = -60; /* this process does notice */
    pthread_mutex_unlock(&job->calls);
    for (int i = 0; i < NAPS && !known; i++, sdr_mpi_nap(NAP)) {
        pthread_mutex_lock(&job->calls);
        beat(NAP * 1e-9);
        known = all_know();
        pthread_mutex_unlock(&job->calls);
    }
}
