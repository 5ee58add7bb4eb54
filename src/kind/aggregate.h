/* Aggregates: combine several gradients into one. */
#ifndef SDR_KIND_AGGREGATE_H
#define SDR_KIND_AGGREGATE_H

#include "kind/about.h"

struct sdr_aggregate {
    SDR_ABOUT;
    bool needs_distances;
    /* Writes the weight of each of n updates in their sum. distance[i·n + k] is the squared
       distance of gradients i and k; NULL unless needs_distances. A weighted sum needs no
       expanded gradients. */
    enum sdr_status (*weights)(const void *options, uint32_t n, const double *distance,
                               float *weight);
    /* Alternatively, value by value: out[i] from the i-th values of n gradients. NULL: the
       weighted sum. */
    enum sdr_status (*combine)(const void *options, uint32_t n, const float *const *gradient,
                               uint64_t count, float *out);
};

#endif
