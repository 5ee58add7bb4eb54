/* Times that were measured: lines of a text file, SECONDS or WORKER SECONDS, or a table with commas whose first line
   names the columns worker and computing, as `sounder inspect RUN --ledger` prints it. */
#ifndef SDR_BASE_TRACE_H
#define SDR_BASE_TRACE_H

#include "base/fail.h"
#include <stdint.h>

struct sdr_trace {
    float *seconds; /* owned, worker by worker */
    uint64_t count;
    uint64_t
        *start; /* owned: worker w has start[w] … start[w + 1] − 1; NULL: they are everybody's */
    uint32_t workers;
};

enum sdr_status sdr_trace_load(const char *path, struct sdr_trace *trace);
void sdr_trace_free(struct sdr_trace *trace);
/* One of the worker's times, or where it has none, of all; `at` is in [0, 1). */
double sdr_trace_pick(const struct sdr_trace *trace, uint32_t worker, double at);
double sdr_trace_mean(const struct sdr_trace *trace);

#endif
