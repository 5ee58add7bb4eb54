/* The processes of a job. */
#ifndef SDR_RUN_JOB_H
#define SDR_RUN_JOB_H

#include "base/fail.h"

#include <stddef.h>

struct sdr_run;

/* The number of this process in its job; 0 without one. */
int sdr_job_process(void);
/* Broadcasts bytes of the first process to all: before there is a run, and in one. */
enum sdr_status sdr_job_share(void *bytes, size_t count);
enum sdr_status sdr_share(const struct sdr_run *run, void *bytes, size_t count);
/* Barrier. Fails unless sdr_job_text gives the same text in every process. */
enum sdr_status sdr_job_meet(const struct sdr_run *run);
/* The job has ended while this process hangs: calls the handler that sdr_job_watch was given. */
void sdr_job_overdue(enum sdr_status status, const char *sentence);
/* A hash of the library's sources, the compiler and its flags. */
extern const char sdr_build_id[];

#endif
