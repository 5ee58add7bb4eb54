/* The processes of an MPI job, which one this is, and which are alive. Process 0 and every other process exchange
   heartbeats from the first moment of the job to its last: while data is read, in training, and while the model is
   written. Every wait ends when the peer's heartbeats stop. */
#ifndef SDR_TRANSPORT_MPI_JOB_H
#define SDR_TRANSPORT_MPI_JOB_H

#include "base/fail.h"
#include "transport/mpi/shim.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

struct sdr_mpi_peer {
    bool lost, left; /* left: it was told that the job is over, and needs no heartbeats */
    double silent,
        patience; /* seconds: since its last message; beyond `silence`, for a large one */
};
struct sdr_mpi_job {
    const struct sdr_mpi *mpi; /* NULL: not joined yet */
    int process, processes;
    double silence, deadline;  /* seconds; see the options of the transport */
    pthread_mutex_t calls;     /* held for every call of MPI; guards what follows */
    struct sdr_mpi_peer *peer; /* owned, by process */
    bool training;             /* has begun: process 0 can go on without some of the others */
    atomic_bool lost; /* some process is: MPI_Finalize would wait for it, so it is not called */
};
extern struct sdr_mpi_job sdr_mpi_job;

/* Loads and starts MPI, once. */
enum sdr_status sdr_mpi_join(int *process, int *processes);
/* Returns the status to end the process with: SDR_PEER_LOST if process 0 was lost before it had finished. */
enum sdr_status sdr_mpi_leave(enum sdr_status status);
/* Barrier with timeout. Fails unless every process has the same build, options and data. */
enum sdr_status sdr_mpi_greet(const char *text, double deadline);
enum sdr_status sdr_mpi_share(void *bytes, size_t count);
void sdr_mpi_nap(int64_t nanoseconds);

/* ---- heartbeats: mpi_heartbeat.c ---- */
/* Whether this process hears the heartbeats of another one: process 0 all, the others those of process 0. */
bool sdr_mpi_watches(int process);
enum sdr_status sdr_mpi_pulse_start(void);
void sdr_mpi_pulse_stop(void);
/* SDR_OK, or why the job cannot go on: process 0 was lost, or another one before training began. */
enum sdr_status sdr_mpi_ended(void);
/* The caller holds `calls`. A message came from a process; it is lost. */
void sdr_mpi_heard(int process);
void sdr_mpi_lose(int process);
/* Process 0 tells the others that it ends the job, and how. */
void sdr_mpi_pulse_end(enum sdr_status status);

#endif
