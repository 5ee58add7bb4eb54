/* The processes of an MPI job, and which one this is. */
#ifndef SDR_TRANSPORT_MPI_JOB_H
#define SDR_TRANSPORT_MPI_JOB_H

#include "base/fail.h"
#include "transport/mpi/shim.h"
#include <stdint.h>

struct sdr_run;
struct sdr_mpi_job {
    const struct sdr_mpi *mpi; /* NULL: not joined yet */
    int process, processes;
    bool lost; /* somebody is: then MPI cannot be ended properly, that would wait for the dead */
};
extern struct sdr_mpi_job sdr_mpi_job;

/* Loads MPI, once. */
enum sdr_status sdr_mpi_join(int *process, int *processes);
void sdr_mpi_leave(enum sdr_status status);
/* Whether all are there within so many seconds, and say the same: all say hello to the first process, which
   compares; nobody goes on before it has answered. */
enum sdr_status sdr_mpi_greet(const char *text, double deadline);
enum sdr_status sdr_mpi_share(void *bytes, size_t count);
void sdr_mpi_nap(int64_t nanoseconds);

#endif
