/* Heartbeats of an MPI job. MPI does not report that a process has died; silence does. Process 0
   and every other one send each other one message to and fro, from a thread that mostly sleeps: so
   a process which reads, computes or writes for hours is alive to the others, and one that was
   killed is lost after `silence` seconds, whatever its peers are doing. To and fro, because Open
   MPI may abort a process that writes twice to a dead one.

   Timeouts count only time this process was scheduled: each wake-up adds at most silence/4. So a
   process that was stopped, or got no processor, reads what has come meanwhile before it judges
   others.

   Process 0 watches all others, and all others watch it: a process that it finds lost it tells to
   everybody else.

   A second thread, which calls nothing of MPI, ends a process that does not notice that the job has
   ended, because it reads data or because a call of MPI does not return. */
#define _GNU_SOURCE /* pthread_timedjoin_np */
#include "base/clock.h"
#include "base/memory.h"
#include "run/job.h"
#include "run/run.h"
#include "transport/mpi_job.h"

#include <math.h>
#include <stdio.h>

enum { PULSE_TAG = 11 };
/* Seconds until a process is ended: OVERDUE after the end of the job, STUCK beyond `silence` in
   an MPI call. */
#define OVERDUE 2.0
#define STUCK   5.0

struct status_message {
    int32_t ended; /* status with which process 0 has ended the job; 0: it has not */
    int32_t lost;  /* the process whose loss ended the job, or −1 */
    int32_t gone;  /* a process lost in training, or −1: each is reported once */
    float silent;  /* seconds before that */
};
struct link {
    struct status_message received, sent;
    unsigned char receiving[SDR_MPI_REQUEST_BYTES], sending[SDR_MPI_REQUEST_BYTES];
    bool is_receiving, is_sending; /* a request is pending */
    bool may_send;                 /* a heartbeat has arrived and is not answered yet */
    double waits;                  /* seconds since then */
    int told;                      /* number of losses it was told of */
};

static struct sdr_mpi_job *const job = &sdr_mpi_job;
static struct {
    pthread_t thread, watch;
    int started; /* threads started, of the two */
    atomic_bool over;
    struct link *link;            /* owned, by process */
    struct status_message status; /* sent by process 0 */
    int *gone, gones;             /* gone: owned, at process 0: the lost processes, in order */
    atomic_uint beats;
    /* Why the job cannot continue; valid once `ended` is set. */
    char sentence[200];
    _Atomic enum sdr_status ended;
    atomic_bool noticed; /* this process is about to leave */
} heartbeat = {.status = {.lost = -1, .gone = -1}};

bool sdr_mpi_watches(int process)
{
    return process != job->process && (job->process == 0 || process == 0);
}

/* ---- the caller holds `calls` ---- */
static void end_job(enum sdr_status status, int lost)
{
    if (heartbeat.ended != SDR_OK)
        return;
    heartbeat.status = (struct status_message){.ended = status, .lost = lost, .gone = -1};
    heartbeat.ended = status;
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
    if (job->process == 0)
        heartbeat.gone[heartbeat.gones++] = process;
    if (process > 0 && job->training)
        return; /* the strategy decides whether the run continues */
    if (heartbeat.ended != SDR_OK)
        return;
    if (process == 0)
        snprintf(heartbeat.sentence, sizeof heartbeat.sentence,
                 "process 0, which decides about the run, was lost: silent for %.1f s; go on with "
                 "--resume if there is a checkpoint, else start again",
                 peer->silent);
    else
        snprintf(heartbeat.sentence, sizeof heartbeat.sentence,
                 "process %d was lost before training began: silent for %.1f s; start the job "
                 "again",
                 process, peer->silent);
    end_job(SDR_PEER_LOST, process);
}

static void handle_heartbeat(int from, struct status_message message)
{
    sdr_mpi_heard(from);
    heartbeat.link[from].may_send = true;
    heartbeat.link[from].waits = 0;
    if (from == 0 && message.gone > 0 && message.gone < job->processes &&
        message.gone != job->process) {
        job->peer[message.gone].lost = true; /* the strategy decides whether the run continues */
        job->peer[message.gone].silent = message.silent;
        atomic_store(&job->lost, true);
    }
    if (!message.ended || from != 0 || heartbeat.ended != SDR_OK)
        return;
    atomic_store(&job->lost, true); /* process 0 leaves without MPI_Finalize */
    if (message.lost > 0)
        snprintf(heartbeat.sentence, sizeof heartbeat.sentence,
                 "process 0 has ended the job: process %d was lost", message.lost);
    else
        snprintf(heartbeat.sentence, sizeof heartbeat.sentence, "process 0 has ended the job: %s",
                 sdr_status_text((enum sdr_status)message.ended));
    end_job(SDR_PEER_LOST, message.lost);
}

static void poll_heartbeat(int from)
{
    struct link *link = &heartbeat.link[from];
    for (bool done = true; done && !job->peer[from].lost;) {
        if (!link->is_receiving && job->mpi->receive(from, PULSE_TAG, &link->received,
                                                     sizeof link->received, link->receiving)) {
            sdr_mpi_lose(from);
            return;
        }
        link->is_receiving = true;
        if (job->mpi->test(link->receiving, &done)) {
            sdr_mpi_lose(from);
        } else if (done) {
            link->is_receiving = false;
            handle_heartbeat(from, link->received);
        }
    }
}

/* The heartbeat period: several fit into `silence`, so that one may be late. */
static double period(void)
{
    return fmin(job->silence / 5, 1);
}

/* News is sent at once. */
static void send_heartbeat(int to)
{
    struct link *link = &heartbeat.link[to];
    bool done = true, dead = link->told < heartbeat.gones;
    bool urgent = dead || heartbeat.status.ended != link->sent.ended;
    if (link->is_sending && job->mpi->test(link->sending, &done)) {
        sdr_mpi_lose(to);
        return;
    }
    link->is_sending = link->is_sending && !done;
    if (link->is_sending || !(urgent || (link->may_send && link->waits >= period() / 2)))
        return;
    link->sent = heartbeat.status;
    if (dead) {
        link->sent.gone = heartbeat.gone[link->told++];
        link->sent.silent = (float)job->peer[link->sent.gone].silent;
    }
    link->may_send = false;
    if (job->mpi->send(to, PULSE_TAG, &link->sent, sizeof link->sent, link->sending))
        sdr_mpi_lose(to);
    else
        link->is_sending = true;
}

static void heartbeat_round(double elapsed)
{
    double counted = fmin(elapsed, job->silence / 4);
    job->mpi->progress();
    for (int p = 0; p < job->processes; p++) {
        struct sdr_mpi_peer *peer = &job->peer[p];
        if (!sdr_mpi_watches(p) || peer->lost || peer->left)
            continue;
        peer->silent += counted;
        heartbeat.link[p].waits += elapsed;
        poll_heartbeat(p);
        send_heartbeat(p);
        if (peer->silent > job->silence + peer->patience)
            sdr_mpi_lose(p);
    }
}

/* ---- the threads ---- */
/* Sleeps until the next heartbeat is due, or the job is over. */
static void sleep_until_due(void)
{
    enum { NAP = 10000000 };
    for (double left = period() / 4; left > 0 && !atomic_load(&heartbeat.over); left -= NAP * 1e-9)
        sdr_mpi_nap(NAP);
}

static void *run_pulse(void *unused)
{
    (void)unused;
    for (int64_t before = sdr_clock_now(), now; !atomic_load(&heartbeat.over); before = now) {
        now = sdr_clock_now();
        pthread_mutex_lock(&job->calls);
        heartbeat_round((double)(now - before) * 1e-9);
        pthread_mutex_unlock(&job->calls);
        heartbeat.beats++;
        sleep_until_due();
    }
    return NULL;
}

static void *run_watch(void *unused)
{
    unsigned beats = 0;
    double without = 0, since = 0;
    (void)unused;
    for (int64_t before = sdr_clock_now(), now; !atomic_load(&heartbeat.over); before = now) {
        sleep_until_due();
        now = sdr_clock_now();
        double counted = fmin((double)(now - before) * 1e-9, job->silence / 4);
        without = beats == heartbeat.beats ? without + counted : 0;
        beats = heartbeat.beats;
        since += heartbeat.ended != SDR_OK ? counted : 0;
        if (atomic_exchange(&heartbeat.noticed, false))
            since = 0;
        if (since > OVERDUE && !atomic_load(&heartbeat.over))
            sdr_job_overdue(heartbeat.ended, heartbeat.sentence);
        else if (without > job->silence + STUCK && !atomic_load(&heartbeat.over))
            sdr_job_overdue(SDR_PEER_LOST, "MPI does not return, which happens if a process has "
                                           "died: start the job again, or go on with --resume");
    }
    return NULL;
}

enum sdr_status sdr_mpi_pulse_start(void)
{
    size_t count = (size_t)job->processes;
    SDR_TRY(sdr_allocate(&heartbeat.link, count, sizeof *heartbeat.link, "MPI"));
    SDR_TRY(sdr_allocate(&heartbeat.gone, count, sizeof *heartbeat.gone, "MPI"));
    SDR_TRY(sdr_allocate(&job->peer, count, sizeof *job->peer, "MPI"));
    if (count == 1)
        return SDR_OK;
    for (int p = 0; p < job->processes; p++) {
        heartbeat.link[p].may_send =
            job->process == 0; /* the first heartbeat makes the connection: at once */
        heartbeat.link[p].waits = period();
    }
    heartbeat.started += pthread_create(&heartbeat.thread, NULL, run_pulse, NULL) == 0;
    heartbeat.started +=
        heartbeat.started && pthread_create(&heartbeat.watch, NULL, run_watch, NULL) == 0;
    return heartbeat.started == 2
               ? SDR_OK
               : sdr_fail(SDR_RUNTIME, "the threads of heartbeats cannot be started");
}

void sdr_mpi_pulse_stop(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)STUCK;
    atomic_store(&heartbeat.over, true);
    if (heartbeat.started > 1)
        pthread_join(heartbeat.watch, NULL);
    if (heartbeat.started && pthread_timedjoin_np(heartbeat.thread, NULL, &until) != 0)
        atomic_store(&job->lost,
                     true); /* the other thread is inside MPI: nobody else can call it */
    heartbeat.started = 0;
    for (int p = 0; p < job->processes && heartbeat.link && !atomic_load(&job->lost); p++)
        if (heartbeat.link[p].is_receiving && !job->mpi->cancel(heartbeat.link[p].receiving))
            atomic_store(&job->lost, true);
}

enum sdr_status sdr_mpi_ended(void)
{
    enum sdr_status status = heartbeat.ended;
    return status == SDR_OK ? SDR_OK : sdr_fail(status, "%s", heartbeat.sentence);
}

static bool all_know(void)
{
    for (int p = 0; p < job->processes; p++)
        if (sdr_mpi_watches(p) && !job->peer[p].lost && !job->peer[p].left &&
            (!heartbeat.link[p].sent.ended || heartbeat.link[p].is_sending))
            return false;
    return true;
}

void sdr_mpi_pulse_end(enum sdr_status status)
{
    enum { NAP = 5000000, NAPS = 100 };
    bool known = job->process > 0;
    pthread_mutex_lock(&job->calls);
    end_job(status, -1);
    pthread_mutex_unlock(&job->calls);
    atomic_store(&heartbeat.noticed, true);
    for (int i = 0; i < NAPS && !known; i++, sdr_mpi_nap(NAP)) {
        pthread_mutex_lock(&job->calls);
        heartbeat_round(NAP * 1e-9);
        known = all_know();
        pthread_mutex_unlock(&job->calls);
    }
}
