/* The vector type of the hot loops: sixteen floats. The same source is compiled for several CPU
   levels (see cmake/registry.cmake); only the primitives below differ. All levels compute the same
   bits: always sixteen lanes, one order of summation, no fused multiply-add, IEEE 754 square roots
   and divisions. */
#ifndef SDR_KERNEL_LANES_H
#define SDR_KERNEL_LANES_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

enum { SDR_LANES = 16 };
typedef float lanes __attribute__((vector_size(64), aligned(64)));
typedef int32_t lanes_index __attribute__((vector_size(64), aligned(64)));

#define SDR_INLINE static inline __attribute__((always_inline, unused))

SDR_INLINE lanes lanes_all(float x)
{
    return (lanes){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x};
}

/* GCC's sanitizers do not see the memory accesses of masked loads, masked stores and gathers; TSan
   does not see those of a partial memcpy() either. Their builds access every element once before
   each. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LANES_READS(type, from, n)                                                                 \
    for (uint32_t i_ = 0; i_ < (n); i_++)                                                          \
    (void)((const volatile type *)(from))[i_]
#define LANES_GATHERS(base, at, n)                                                                 \
    for (uint32_t i_ = 0; i_ < (n); i_++)                                                          \
    (void)((const volatile float *)(base))[(at)[i_]]
#define LANES_WRITES(to, v, n)                                                                     \
    for (uint32_t i_ = 0; i_ < (n); i_++)                                                          \
    ((volatile float *)(to))[i_] = (v)[i_]
#else
#define LANES_READS(type, from, n) ((void)0)
#define LANES_GATHERS(base, at, n) ((void)0)
#define LANES_WRITES(to, v, n)     ((void)0)
#endif

/* ---- contiguous memory: n is 1 … 16; lanes from n on load as zero and are not stored ---- */
#if defined(__AVX512F__)
SDR_INLINE __mmask16 lanes_mask(uint32_t n)
{
    return (__mmask16)(0xFFFFu >> (16 - n));
}
SDR_INLINE lanes lanes_load(const float *from, uint32_t n)
{
    LANES_READS(float, from, n);
    return (lanes)_mm512_maskz_loadu_ps(lanes_mask(n), from);
}
SDR_INLINE void lanes_store(float *to, lanes v, uint32_t n)
{
    LANES_WRITES(to, v, n);
    _mm512_mask_storeu_ps(to, lanes_mask(n), (__m512)v);
}
SDR_INLINE lanes_index lanes_load16(const uint16_t *from, uint32_t n)
{
    LANES_READS(uint16_t, from, n);
    return (lanes_index)_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(lanes_mask(n), from));
}
SDR_INLINE lanes_index lanes_load32(const uint32_t *from, uint32_t n)
{
    LANES_READS(uint32_t, from, n);
    return (lanes_index)_mm512_maskz_loadu_epi32(lanes_mask(n), from);
}
SDR_INLINE lanes lanes_gather(const float *base, lanes_index at, uint32_t n)
{
    LANES_GATHERS(base, at, n);
    return (lanes)_mm512_mask_i32gather_ps(_mm512_setzero_ps(), lanes_mask(n), (__m512i)at, base,
                                           4);
}
SDR_INLINE lanes lanes_sqrt(lanes v)
{
    return (lanes)_mm512_sqrt_ps((__m512)v);
}
#else
SDR_INLINE lanes lanes_load(const float *from, uint32_t n)
{
    lanes v = {0};
    LANES_READS(float, from, n);
    memcpy(&v, from, n * sizeof *from);
    return v;
}
SDR_INLINE void lanes_store(float *to, lanes v, uint32_t n)
{
    LANES_WRITES(to, v, n);
    memcpy(to, &v, n * sizeof *to);
}
SDR_INLINE lanes_index lanes_load16(const uint16_t *from, uint32_t n)
{
    lanes_index v = {0};
    for (uint32_t i = 0; i < n; i++)
        v[i] = from[i];
    return v;
}
SDR_INLINE lanes_index lanes_load32(const uint32_t *from, uint32_t n)
{
    lanes_index v = {0};
    LANES_READS(uint32_t, from, n);
    memcpy(&v, from, n * sizeof *from);
    return v;
}
SDR_INLINE lanes lanes_gather(const float *base, lanes_index at, uint32_t n)
{
    lanes v = {0};
#if defined(__AVX2__)
    if (n == SDR_LANES) {
        __m256i low, high;
        LANES_GATHERS(base, at, n);
        memcpy(&low, &at, 32);
        memcpy(&high, (const char *)&at + 32, 32);
        __m256 a = _mm256_i32gather_ps(base, low, 4), b = _mm256_i32gather_ps(base, high, 4);
        memcpy(&v, &a, 32);
        memcpy((char *)&v + 32, &b, 32);
        return v;
    }
#endif
    for (uint32_t i = 0; i < n; i++)
        v[i] = base[at[i]];
    return v;
}
SDR_INLINE lanes lanes_sqrt(lanes v)
{
    for (int i = 0; i < SDR_LANES; i++)
        v[i] = sqrtf(v[i]);
    return v;
}
#endif

/* base[index[i]] = v[i] for the first n lanes. Scalar stores at every level: the next row reads
   many of the same weights, and a load can forward from a pending scalar store but not from a
   scatter. */
#define LANES_PUT(name, type)                                                                      \
    SDR_INLINE void name(float *base, const type *index, lanes v, uint32_t n)                      \
    {                                                                                              \
        float part[SDR_LANES] __attribute__((aligned(64)));                                        \
        memcpy(part, &v, sizeof part);                                                             \
        for (uint32_t i = 0; i < n; i++)                                                           \
            base[index[i]] = part[i];                                                              \
    }
LANES_PUT(lanes_put16, uint16_t)
LANES_PUT(lanes_put32, uint32_t)
#undef LANES_PUT

/* a where the mask lane is −1, b where it is 0; comparisons of lanes give such masks. */
SDR_INLINE lanes lanes_select(lanes_index mask, lanes a, lanes b)
{
    return (lanes)((mask & (lanes_index)a) | (~mask & (lanes_index)b));
}
SDR_INLINE lanes lanes_max(lanes a, lanes b)
{
    return lanes_select(a > b, a, b);
}
SDR_INLINE lanes lanes_min(lanes a, lanes b)
{
    return lanes_select(a < b, a, b);
}
/* max(v, 0) that propagates NaN: a penalty must not hide a diverged value. */
SDR_INLINE lanes lanes_positive(lanes v)
{
    return lanes_select(v < 0.0f, lanes_all(0.0f), v);
}
SDR_INLINE lanes lanes_abs(lanes v)
{
    return (lanes)((lanes_index)v & 0x7FFFFFFF);
}
/* The magnitude of a with the sign of b. */
SDR_INLINE lanes lanes_copysign(lanes a, lanes b)
{
    return (lanes)(((lanes_index)a & 0x7FFFFFFF) | ((lanes_index)b & (int32_t)0x80000000u));
}

/* Sum in a fixed order: lanes 8 apart, then 4, 2, 1. */
SDR_INLINE float lanes_sum(lanes v)
{
#if defined(__AVX512F__)
    return _mm512_reduce_add_ps((__m512)v); /* the same order */
#else
    float a[SDR_LANES];
    memcpy(a, &v, sizeof a);
    for (int half = SDR_LANES / 2; half; half /= 2)
        for (int i = 0; i < half; i++)
            a[i] += a[i + half];
    return a[0];
#endif
}

/* exp for x ≤ 0 in float: Cody–Waite reduction and the Taylor polynomial of degree 7, relative
 * error < 2e-7. */
SDR_INLINE lanes lanes_exp_negative(lanes x)
{
    x = lanes_max(x, lanes_all(-87.0f));
    lanes shifted = x * 1.44269504f + 12582912.0f; /* 1.5·2²³: rounds to an integer */
    lanes n = shifted - 12582912.0f;
    lanes r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    lanes p = r * (1.0f / 5040) + (1.0f / 720);
    p = p * r + (1.0f / 120);
    p = p * r + (1.0f / 24);
    p = p * r + (1.0f / 6);
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    lanes_index exponent = ((lanes_index)shifted - 0x4B400000 + 127) << 23;
    return p * (lanes)exponent;
}

/* 1 − exp(−x) for x ≥ 0 without cancellation where x is small. */
SDR_INLINE lanes lanes_one_minus_exp(lanes x)
{
    lanes p = 1.0f / 720 - x * (1.0f / 5040);
    p = 1.0f / 120 - x * p;
    p = 1.0f / 24 - x * p;
    p = 1.0f / 6 - x * p;
    p = 0.5f - x * p;
    p = x - x * x * p;
    return lanes_select(x < 0.35f, p, 1.0f - lanes_exp_negative(-x));
}

#endif
