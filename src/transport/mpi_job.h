/* The processes of an MPI job, and which of them are alive. Process 0 and every other process
   exchange heartbeats from the start of the job to its end: while data is read, in training, and
   while the model is written. Every wait ends when the peer's heartbeats stop. */
#ifndef SDR_TRANSPORT_MPI_JOB_H
#define SDR_TRANSPORT_MPI_JOB_H

#include "base/fail.h"
#include "transport/mpi/shim.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

struct sdr_mpi_peer {
    bool lost, left; /* left: it was told that the job is over, and sends no heartbeats */
    double silent,
        patience; /* seconds: since its last message; beyond `silence`, for a large one */
};
struct sdr_mpi_job {
    const struct sdr_mpi *mpi; /* NULL: not joined yet */
    int process, processes;
    bool one_machine;          /* all processes are on this machine */
    bool share;                /* the option */
    double silence, deadline;  /* seconds; see the options of the transport */
    pthread_mutex_t calls;     /* held during every MPI call; guards the members below */
    struct sdr_mpi_peer *peer; /* owned, by process */
    bool training;    /* training has begun: process 0 can continue without some of the others */
    atomic_bool lost; /* a process is lost: MPI_Finalize would wait for it, so it is not called */
};
extern struct sdr_mpi_job sdr_mpi_job;

/* Loads and starts MPI, once. */
enum sdr_status sdr_mpi_join(int *process, int *processes);
/* Returns the exit status: SDR_PEER_LOST if process 0 was lost before it had finished. */
enum sdr_status sdr_mpi_leave(enum sdr_status status);
/* Barrier with timeout. Fails unless every process has the same build, options and data. */
enum sdr_status sdr_mpi_greet(const char *text, double deadline);
enum sdr_status sdr_mpi_share(void *bytes, size_t count);
void sdr_mpi_nap(int64_t nanoseconds);

/* ---- heartbeats: mpi_heartbeat.c ---- */
/* Whether this process receives heartbeats of another one: process 0 of all, the others of
   process 0. */
bool sdr_mpi_watches(int process);
enum sdr_status sdr_mpi_pulse_start(void);
void sdr_mpi_pulse_stop(void);
/* SDR_OK, or why the job cannot continue: process 0 was lost, or another process before
   training. */
enum sdr_status sdr_mpi_ended(void);
/* The caller holds `calls`. heard: a message came from a process. lose: it is lost. */
void sdr_mpi_heard(int process);
void sdr_mpi_lose(int process);
/* Process 0 tells the others that the job has ended, and its status. */
void sdr_mpi_pulse_end(enum sdr_status status);

#endif
