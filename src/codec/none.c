/* Values as 32-bit floats, unchanged. */
#include "kind/codec.h"

#include <string.h>

static uint64_t bound(const void *options, uint64_t count)
{
    (void)options;
    return count * sizeof(float);
}

static uint64_t encode(const void *options, const float *value, uint64_t count, float *residual,
                       uint64_t seed, unsigned char *to)
{
    (void)options, (void)seed;
    if (count == 0) /* there may be no array */
        return 0;
    if (!residual) {
        memcpy(to, value, count * sizeof *value);
        return count * sizeof *value;
    }
    for (uint64_t i = 0; i < count; i++) {
        float sum = value[i] + residual[i];
        memcpy(to + i * sizeof sum, &sum, sizeof sum);
        residual[i] = 0;
    }
    return count * sizeof *value;
}

static enum sdr_status decode(const void *options, const unsigned char *from, uint64_t bytes,
                              float *value, uint64_t count)
{
    (void)options;
    if (bytes != count * sizeof *value)
        return sdr_fail(SDR_BAD_FILE, "values of another length");
    if (count > 0)
        memcpy(value, from, bytes);
    return SDR_OK;
}

SDR_REGISTER(codec, none) = {
    .name = "none",
    .summary = "values as 32-bit floats",
    .bound = bound,
    .encode = encode,
    .decode = decode,
};
