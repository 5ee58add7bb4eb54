/* Half precision (IEEE 754 binary16): 1 sign, 5 exponent and 10 fraction bits, rounded to nearest,
   ties to even. Values of 65 520 and more become infinite, and the run diverges. Values of at most
   2^−25 become zero; with a residual they are sent later. */
#include "kind/codec.h"

#include <string.h>

static uint16_t to_half(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    if (size > 0x7f800000) /* NaN */
        return (uint16_t)(sign | 0x7e00);
    if (size >= 0x477ff000) /* 65 520 and more round to infinity */
        return (uint16_t)(sign | 0x7c00);
    if (size < 0x38800000) { /* below 2^−14: subnormal, a multiple of 2^−24 */
        if (size < 0x33000000)
            return (uint16_t)sign;
        uint32_t shift = 126 - (size >> 23), fraction = (size & 0x7fffff) | 0x800000;
        uint32_t kept = fraction >> shift, rest = fraction & ((1u << shift) - 1);
        uint32_t half = 1u << (shift - 1);
        kept += rest > half || (rest == half && (kept & 1));
        return (uint16_t)(sign | kept);
    }
    uint32_t rounded = size + 0xfff + (size >> 13 & 1);
    return (uint16_t)(sign | (rounded - 0x38000000) >> 13);
}

static float from_half(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31;
    uint32_t fraction = half & 0x3ff, bits;
    float value;
    if (exponent == 0) {
        value = (float)fraction * 0x1p-24f;
        return sign ? -value : value;
    }
    bits = exponent == 31 ? sign | 0x7f800000 | fraction << 13
                          : sign | (exponent + 112) << 23 | fraction << 13;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint64_t bound(const void *options, uint64_t count)
{
    (void)options;
    return count * sizeof(uint16_t);
}

static uint64_t encode(const void *options, const float *value, uint64_t count, float *residual,
                       uint64_t seed, unsigned char *to)
{
    (void)options, (void)seed;
    for (uint64_t i = 0; i < count; i++) {
        float sum = residual ? value[i] + residual[i] : value[i];
        uint16_t half = to_half(sum);
        memcpy(to + i * sizeof half, &half, sizeof half);
        if (residual)
            residual[i] = sum - from_half(half);
    }
    return count * sizeof(uint16_t);
}

static enum sdr_status decode(const void *options, const unsigned char *from, uint64_t bytes,
                              float *value, uint64_t count)
{
    (void)options;
    if (bytes != count * sizeof(uint16_t))
        return sdr_fail(SDR_BAD_FILE, "values of another length");
    for (uint64_t i = 0; i < count; i++) {
        uint16_t half;
        memcpy(&half, from + i * sizeof half, sizeof half);
        value[i] = from_half(half);
    }
    return SDR_OK;
}

SDR_REGISTER(codec, half) = {
    .name = "half",
    .summary = "values in half precision: half the bytes",
    .lossy = true,
    .bound = bound,
    .encode = encode,
    .decode = decode,
};
