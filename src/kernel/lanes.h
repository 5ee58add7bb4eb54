/* The vector type of the hot loops: as many floats as a register has. The same source is compiled
   for several CPU levels (see cmake/registry.cmake); only the primitives below differ. All levels
   compute the same bits: sums always have sixteen chains and one order, there is no fused
   multiply-add, square roots and divisions are those of IEEE 754. */
#ifndef SDR_KERNEL_LANES_H
#define SDR_KERNEL_LANES_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#if defined(__AVX512F__)
enum { SDR_LANES = 16 };
#elif defined(__AVX2__)
enum { SDR_LANES = 8 };
#else
enum { SDR_LANES = 4 };
#endif
typedef float lanes __attribute__((vector_size(SDR_LANES * 4)));
typedef int32_t lanes_index __attribute__((vector_size(SDR_LANES * 4)));

#define SDR_INLINE static inline __attribute__((always_inline, unused))

/* A loop written out `times` times, so that arrays of vectors indexed by it stay in registers. */
#define SDR_PRAGMA(words)            _Pragma(#words)
#define SDR_UNROLLED_FOR(times, ...) SDR_PRAGMA(GCC unroll times) for (__VA_ARGS__)

typedef float lanes_four __attribute__((vector_size(16)));

SDR_INLINE lanes lanes_all(float x)
{
    return x - (lanes){0}; /* x + 0 would change −0 */
}

/* GCC's sanitizers do not see the memory accesses of masked loads, masked stores and gathers; TSan
   does not see those of a partial memcpy() either. Their builds access every element once before
   each. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LANES_READS(type, from, n)                                                                 \
    for (uint32_t i_ = 0; i_ < (n); i_++)                                                          \
    (void)((const volatile type *)(from))[i_]
#define LANES_WRITES(to, v, n)                                                                     \
    for (uint32_t i_ = 0; i_ < (n); i_++)                                                          \
    ((volatile float *)(to))[i_] = (v)[i_]
#else
#define LANES_READS(type, from, n) ((void)0)
#define LANES_WRITES(to, v, n)     ((void)0)
#endif

/* ---- contiguous memory: n is 1 … SDR_LANES; lanes from n on load as zero and are not stored
   ---- */
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
SDR_INLINE lanes lanes_sqrt(lanes v)
{
    return (lanes)_mm512_sqrt_ps((__m512)v);
}
#elif defined(__AVX2__)
SDR_INLINE __m256i lanes_mask(uint32_t n)
{
    static const int32_t mask[2 * SDR_LANES] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return _mm256_loadu_si256((const __m256i *)(const void *)(mask + SDR_LANES - n));
}
SDR_INLINE lanes lanes_load(const float *from, uint32_t n)
{
    LANES_READS(float, from, n);
    return (lanes)(n == SDR_LANES ? _mm256_loadu_ps(from)
                                  : _mm256_maskload_ps(from, lanes_mask(n)));
}
SDR_INLINE void lanes_store(float *to, lanes v, uint32_t n)
{
    LANES_WRITES(to, v, n);
    if (n == SDR_LANES)
        _mm256_storeu_ps(to, (__m256)v);
    else
        _mm256_maskstore_ps(to, lanes_mask(n), (__m256)v);
}
SDR_INLINE lanes lanes_sqrt(lanes v)
{
    return (lanes)_mm256_sqrt_ps((__m256)v);
}
#else
/* SSE2 on x86-64, NEON on arm64: every CPU of these has them. Neither loads by masks; GCC would
   call memcpy() for a loop over a tail. */
SDR_INLINE lanes lanes_load(const float *from, uint32_t n)
{
    lanes v;
    LANES_READS(float, from, n);
    switch (n) {
    case 1: return (lanes){from[0], 0, 0, 0};
    case 2: return (lanes){from[0], from[1], 0, 0};
    case 3: return (lanes){from[0], from[1], from[2], 0};
    default: memcpy(&v, from, sizeof v); return v;
    }
}
SDR_INLINE void lanes_store(float *to, lanes v, uint32_t n)
{
    LANES_WRITES(to, v, n);
    switch (n) {
    default: memcpy(to, &v, sizeof v); break;
    case 3: to[2] = v[2]; /* fall through */
    case 2: to[1] = v[1]; /* fall through */
    case 1: to[0] = v[0];
    }
}
SDR_INLINE lanes lanes_sqrt(lanes v)
{
#if defined(__SSE2__)
    return (lanes)_mm_sqrt_ps((__m128)v);
#elif defined(__ARM_NEON)
    return (lanes)vsqrtq_f32((float32x4_t)v);
#else
    for (int i = 0; i < SDR_LANES; i++)
        v[i] = sqrtf(v[i]);
    return v;
#endif
}
#endif

/* ---- listed values ---- Loaded and stored one by one at every level: the next row reads many of
   the same weights, and a load can take a value from a plain store still under way, but a gather
   cannot, and nothing from a scatter. */
#define LANES_LISTED(bits, type)                                                                   \
    SDR_INLINE lanes lanes_pick##bits(const float *base, const type *index, uint32_t n)            \
    {                                                                                              \
        lanes v = {0};                                                                             \
        for (uint32_t i = 0; i < n; i++)                                                           \
            v[i] = base[index[i]];                                                                 \
        return v;                                                                                  \
    }                                                                                              \
    SDR_INLINE void lanes_put##bits(float *base, const type *index, lanes v, uint32_t n)           \
    {                                                                                              \
        float part[SDR_LANES] __attribute__((aligned(64)));                                        \
        memcpy(part, &v, sizeof part);                                                             \
        for (uint32_t i = 0; i < n; i++)                                                           \
            base[index[i]] = part[i];                                                              \
    }
LANES_LISTED(16, uint16_t)
LANES_LISTED(32, uint32_t)
#undef LANES_LISTED

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

/* v, with zero in lanes before `first`. */
SDR_INLINE lanes lanes_from(int32_t first, lanes v)
{
    lanes_index number;
    for (int i = 0; i < SDR_LANES; i++)
        number[i] = i;
    return (lanes)((lanes_index)v & (number >= first));
}

/* Whether a lane of a mask is −1. */
SDR_INLINE int lanes_any(lanes_index mask)
{
#if defined(__AVX512F__)
    return _mm512_movepi32_mask((__m512i)mask) != 0;
#elif defined(__AVX2__)
    return _mm256_movemask_ps((__m256)mask) != 0;
#else
    return (mask[0] | mask[1] | mask[2] | mask[3]) != 0;
#endif
}

/* ---- sums ---- */
/* Sixteen partial sums. Entry i of a row belongs to chain i mod 16. */
enum { SDR_CHAINS = 16, SDR_CHAIN_VECTORS = SDR_CHAINS / SDR_LANES };
struct chains {
    lanes part[SDR_CHAIN_VECTORS];
};

SDR_INLINE struct chains chains_of(const float *sums)
{
    struct chains c;
    for (int v = 0; v < SDR_CHAIN_VECTORS; v++)
        c.part[v] = lanes_load(sums + v * SDR_LANES, SDR_LANES);
    return c;
}

/* Their sum in a fixed order: chains 8 apart, then 4, 2, 1. */
SDR_INLINE float chains_sum(struct chains c)
{
#if defined(__AVX512F__)
    return _mm512_reduce_add_ps((__m512)c.part[0]); /* the same order */
#elif defined(__AVX2__)
    __m256 eight = (__m256)(c.part[0] + c.part[1]);
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
#else
    lanes four = (c.part[0] + c.part[2]) + (c.part[1] + c.part[3]);
    return (four[0] + four[2]) + (four[1] + four[3]);
#endif
}

/* Adds to the first four chains; what others get is +0, which changes no sum. */
SDR_INLINE void chains_add_four(struct chains *sum, lanes_four v)
{
#if defined(__AVX512F__)
    sum->part[0] += (lanes)_mm512_zextps128_ps512((__m128)v);
#elif defined(__AVX2__)
    sum->part[0] += (lanes)_mm256_zextps128_ps256((__m128)v);
#else
    sum->part[0] += v;
#endif
}

/* A sum over i < n of an expression of lanes: `term` may use i, and m, the number of lanes from i
   on. */
#define CHAINS_ADD(sum, n, term)                                                                   \
    do {                                                                                           \
        uint32_t i = 0, m = SDR_LANES;                                                             \
        for (; i + SDR_CHAINS <= (n);)                                                             \
            SDR_UNROLLED_FOR (4, int v_ = 0; v_ < SDR_CHAIN_VECTORS; v_++, i += SDR_LANES)         \
                (sum).part[v_] += (term);                                                          \
        for (int v_ = 0; i < (n); v_++, i += m) {                                                  \
            m = (n)-i < SDR_LANES ? (n)-i : SDR_LANES;                                             \
            (sum).part[v_] += (term);                                                              \
        }                                                                                          \
    } while (0)

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

/* 1 − exp(−x) for x ≥ 0 without cancellation where x is small: below 0.35 the polynomial of degree
   5 with the least relative error, 1.2e-7 with rounding, in short chains. */
SDR_INLINE lanes lanes_one_minus_exp(lanes x)
{
    lanes square = x * x;
    lanes near = 0.49999997f - x * 0.16664118f, far = 0.04137867f - x * 0.0072555803f;
    lanes p = x - square * (near + square * far);
    lanes_index large = x >= 0.35f;
    return lanes_any(large) ? lanes_select(large, 1.0f - lanes_exp_negative(-x), p) : p;
}

#endif
