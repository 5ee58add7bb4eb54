/* The mean of the updates, with equal weights. */
#include "kind/aggregate.h"

static enum sdr_status weights(const void *options, uint32_t n, const double *distance,
                               float *weight)
{
    (void)options, (void)distance;
    for (uint32_t i = 0; i < n; i++)
        weight[i] = 1.0f / (float)n;
    return SDR_OK;
}

SDR_REGISTER(aggregate, mean) = {
    .name = "mean",
    .summary = "the mean of all gradients",
    .weights = weights,
};
