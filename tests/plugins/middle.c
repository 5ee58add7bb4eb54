/* For tests alone: the middle of the gradients, value by value (the mean of the two in the middle
   where their number is even), so that gradients are multiplied out. NaN counts as the largest. */
#include "kind/aggregate.h"

#include <math.h>

enum { MOST = 256 };

static enum sdr_status combine(const void *options, uint32_t n, const float *const *gradient,
                               uint64_t count, float *out)
{
    float sorted[MOST];
    (void)options;
    if (n > MOST)
        return sdr_fail(SDR_RUNTIME, "test-middle takes at most %d gradients", MOST);
    for (uint64_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < n; k++) {
            float value = gradient[k][i];
            uint32_t at = k;
            for (; at > 0 && (sorted[at - 1] > value || isnan(sorted[at - 1])); at--)
                sorted[at] = sorted[at - 1];
            sorted[at] = value;
        }
        out[i] = n % 2 ? sorted[n / 2] : 0.5f * sorted[n / 2 - 1] + 0.5f * sorted[n / 2];
    }
    return SDR_OK;
}

SDR_REGISTER(aggregate, test_middle) = {
    .name = "test-middle",
    .summary = "for tests: the middle gradient, value by value",
    .combine = combine,
};
