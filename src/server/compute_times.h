/* --compute, --delay and --slow: compute times of gradients, for transports. */
#ifndef SDR_SERVER_COMPUTE_TIMES_H
#define SDR_SERVER_COMPUTE_TIMES_H

#include "base/delay.h"

struct sdr_run;
struct sdr_node;
struct sdr_work;

struct sdr_compute_times {
    struct sdr_delay compute, delay; /* --compute, --delay; no terms: none */
    float *slowness;                 /* owned, per worker: --slow; NULL: all 1 */
};

/* Into run->network->times. */
enum sdr_status sdr_compute_times_parse(struct sdr_run *run);
/* "2:3x,5:1.5x": a factor per worker, 1 for workers not named; *factor is given away. */
enum sdr_status sdr_parse_factors(const char *text, char between, const char *owner, int workers,
                                  float **factor);
/* Virtual time of the next step of a worker's work, and the real time to add to a step that took
   `took`; both in nanoseconds. */
int64_t sdr_compute_time(const struct sdr_node *node, struct sdr_work *work);
int64_t sdr_compute_delay(const struct sdr_node *node, const struct sdr_work *work, int64_t took);

#endif
