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
#elif defined(__AVX2__)
/* Two registers of eight. */
typedef float lanes_half __attribute__((vector_size(32)));
SDR_INLINE __m256 lanes_low(lanes v)
{
    return (__m256)__builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7);
}
SDR_INLINE __m256 lanes_high(lanes v)
{
    return (__m256)__builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
}
SDR_INLINE lanes lanes_of(__m256 low, __m256 high)
{
    return __builtin_shufflevector((lanes_half)low, (lanes_half)high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}
/* −1 for the first n of lanes first … first + 7. */
SDR_INLINE __m256i lanes_mask(uint32_t n, uint32_t first)
{
    static const int32_t mask[2 * SDR_LANES] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
    return _mm256_loadu_si256((const __m256i *)(const void *)(mask + SDR_LANES - n + first));
}
SDR_INLINE lanes lanes_load(const float *from, uint32_t n)
{
    LANES_READS(float, from, n);
    if (n == SDR_LANES)
        return lanes_of(_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8));
    return lanes_of(_mm256_maskload_ps(from, lanes_mask(n, 0)), _mm256_maskload_ps(from + 8, lanes_mask(n, 8)));
}
SDR_INLINE void lanes_store(float *to, lanes v, uint32_t n)
{
    LANES_WRITES(to, v, n);
    if (n == SDR_LANES) {
        _mm256_storeu_ps(to, lanes_low(v));
        _mm256_storeu_ps(to + 8, lanes_high(v));
        return;
    }
    _mm256_maskstore_ps(to, lanes_mask(n, 0), lanes_low(v));
    _mm256_maskstore_ps(to + 8, lanes_mask(n, 8), lanes_high(v));
}
SDR_INLINE lanes_index lanes_load16(const uint16_t *from, uint32_t n)
{
    uint16_t part[SDR_LANES] = {0};
    LANES_READS(uint16_t, from, n);
    if (n < SDR_LANES) {
        for (uint32_t i = 0; i < n; i++)
            part[i] = from[i];
        from = part;
    }
    __m256i low = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)from));
    __m256i high = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)(from + 8)));
    return (lanes_index)lanes_of((__m256)low, (__m256)high);
}
SDR_INLINE lanes_index lanes_load32(const uint32_t *from, uint32_t n)
{
    return (lanes_index)lanes_load((const float *)(const void *)from, n);
}
SDR_INLINE lanes lanes_gather(const float *base, lanes_index at, uint32_t n)
{
    __m256i low = (__m256i)lanes_low((lanes)at), high = (__m256i)lanes_high((lanes)at);
    LANES_GATHERS(base, at, n);
    if (n == SDR_LANES)
        return lanes_of(_mm256_i32gather_ps(base, low, 4), _mm256_i32gather_ps(base, high, 4));
    return lanes_of(_mm256_mask_i32gather_ps(_mm256_setzero_ps(), base, low, (__m256)lanes_mask(n, 0), 4),
                    _mm256_mask_i32gather_ps(_mm256_setzero_ps(), base, high, (__m256)lanes_mask(n, 8), 4));
}
SDR_INLINE lanes lanes_sqrt(lanes v)
{
    return lanes_of(_mm256_sqrt_ps(lanes_low(v)), _mm256_sqrt_ps(lanes_high(v)));
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
#elif defined(__AVX2__)
    __m256 eight = _mm256_add_ps(lanes_low(v), lanes_high(v));
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
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
