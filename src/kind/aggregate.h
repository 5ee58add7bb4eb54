/* Aggregates: combine several gradients into one. */
#ifndef SDR_KIND_AGGREGATE_H
#define SDR_KIND_AGGREGATE_H

#include "kind/about.h"

/* One of `weights` and `combine` is set. n is at least 2, and any such number: the last update of a
   run may have fewer gradients than the quorum. */
struct sdr_aggregate {
    SDR_ABOUT;
    bool needs_distances; /* for weights; possible with one server */
    /* The weight of each of n gradients in their sum: not negative, and 1 in all. distance[i·n + k]
       is the squared distance of gradients i and k, NULL unless needs_distances. Without distances
       nothing is multiplied out. */
    enum sdr_status (*weights)(const void *options, uint32_t n, const double *distance,
                               float *weight);
    /* A function of each coordinate, such as a median: out[i] from the i-th values of n gradients,
       on the span of every server. */
    enum sdr_status (*combine)(const void *options, uint32_t n, const float *const *gradient,
                               uint64_t count, float *out);
};

#endif
