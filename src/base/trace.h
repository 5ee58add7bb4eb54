/* Measured times, one per line: SECONDS or WORKER SECONDS; or a CSV table with columns `worker` and
   `computing`, as `sounder inspect RUN --ledger` prints it. */
#ifndef SDR_BASE_TRACE_H
#define SDR_BASE_TRACE_H

#include "base/fail.h"
#include <stdint.h>

struct sdr_trace {
    float *seconds; /* owned, grouped by worker */
    uint64_t count;
    uint64_t *start; /* owned: worker w has seconds[start[w]] … seconds[start[w + 1] − 1] */
    uint32_t workers;
};

enum sdr_status sdr_trace_load(const char *path, struct sdr_trace *trace);
void sdr_trace_free(struct sdr_trace *trace);
/* A time of this worker, or of any if it has none; `at` ∈ [0, 1) selects it. */
double sdr_trace_pick(const struct sdr_trace *trace, uint32_t worker, double at);
double sdr_trace_mean(const struct sdr_trace *trace);

#endif
