/* Workers that share memory: planned, allocated, started. */
#ifndef SDR_TEAM_PLAN_H
#define SDR_TEAM_PLAN_H

#include "base/fail.h"

#include <stdint.h>

struct sdr_run;

enum { SDR_WORKERS_MOST = 1024 };

/* plan.c: asks the strategy for its plan, run->shared.plan; then allocates the workers, and the
   replicas and shared memory they need for batches of that size. */
enum sdr_status sdr_plan_make(struct sdr_run *run);
enum sdr_status sdr_plan_carry_out(struct sdr_run *run);

/* threads.c: runs the strategy's loop in one thread per worker. */
enum sdr_status sdr_team_work(struct sdr_run *run);
/* next_batch.c: rows assigned since the last barrier. */
uint64_t sdr_team_dealt(const struct sdr_run *run);

#endif
