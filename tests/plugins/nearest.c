/* For tests alone: the gradient that is nearest to all others, by the sum of its squared distances
   (a medoid, the core of Krum): an aggregate that asks for distances. */
#include "kind/aggregate.h"

#include <math.h>

static enum sdr_status weights(const void *options, uint32_t n, const double *distance,
                               float *weight)
{
    double least = INFINITY;
    uint32_t equal = 0; /* of two, both are */
    (void)options;
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < n; i++) {
            double sum = 0;
            for (uint32_t k = 0; k < n; k++)
                sum += distance[i * n + k];
            if (pass == 0)
                least = fmin(least, sum);
            weight[i] = (float)(sum <= least);
            equal += pass == 1 && sum <= least;
        }
    for (uint32_t i = 0; i < n; i++)
        weight[i] /= (float)equal;
    return SDR_OK;
}

SDR_REGISTER(aggregate, test_nearest) = {
    .name = "test-nearest",
    .summary = "for tests: the gradient nearest to all others",
    .needs_distances = true,
    .weights = weights,
};
