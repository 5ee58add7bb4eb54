/* For tests alone: a codec with a length, a header and a seed of its own. A sign and seven bits of
   size a value, in units of the largest; which of its two neighbours a value becomes is drawn by
   the seed, so that it is right on average. Where the largest is no number, no value is. */
#include "base/rng.h"
#include "kind/codec.h"

#include <math.h>
#include <string.h>

enum { STEPS = 127, SIGN = 128 };

static uint64_t bound(const void *options, uint64_t count)
{
    (void)options;
    return sizeof(float) + count;
}

static float value_of(unsigned char byte, float unit)
{
    float size = unit * (float)(byte % SIGN);
    return byte & SIGN ? -size : size;
}

static uint64_t encode(const void *options, const float *value, uint64_t count, float *residual,
                       uint64_t seed, unsigned char *to)
{
    struct sdr_stream stream = sdr_stream_open(seed, SDR_FOR_TEST, 0);
    float most = 0;
    (void)options;
    for (uint64_t i = 0; i < count; i++) {
        float sum = residual ? value[i] + residual[i] : value[i];
        if (!(fabsf(sum) <= most)) /* a NaN stays */
            most = isnan(most) ? most : fabsf(sum);
    }
    float unit = most / STEPS;
    memcpy(to, &unit, sizeof unit);
    for (uint64_t i = 0; i < count; i++) {
        float sum = residual ? value[i] + residual[i] : value[i];
        double steps = unit > 0 && isfinite(unit) ? fabs((double)sum) / unit : 0;
        unsigned char size = (unsigned char)fmin(steps + sdr_stream_uniform(&stream), STEPS);
        to[sizeof unit + i] = (unsigned char)(size | (signbit(sum) ? SIGN : 0));
        if (residual)
            residual[i] = sum - value_of(to[sizeof unit + i], unit);
    }
    return bound(options, count);
}

static enum sdr_status decode(const void *options, const unsigned char *from, uint64_t bytes,
                              float *value, uint64_t count)
{
    float unit;
    if (bytes != bound(options, count))
        return sdr_fail(SDR_BAD_FILE, "values of another length");
    memcpy(&unit, from, sizeof unit);
    for (uint64_t i = 0; i < count; i++)
        value[i] = value_of(from[sizeof unit + i], unit);
    return SDR_OK;
}

SDR_REGISTER(codec, test_bytes) = {
    .name = "test-bytes",
    .summary = "for tests: a byte a value",
    .lossy = true,
    .bound = bound,
    .encode = encode,
    .decode = decode,
};
