/* Inner products of rows and weights, compiled once per CPU level. */
#ifndef SDR_KERNEL_DOT_H
#define SDR_KERNEL_DOT_H

#include "kernel/lanes.h"

/* Lanes used by the vector at i of n. */
SDR_INLINE uint32_t lanes_left(uint32_t n, uint32_t i)
{
    return n - i < SDR_LANES ? n - i : SDR_LANES;
}

/* ---- sparse rows: Σ w[index[i]]·x[i] ---- Sixteen chains. The last sixteen entries are taken as
   one piece, in which those already added count as zero: a piece of another length would be a
   branch that nobody can predict. Rows of fewer than sixteen entries are added four at a time to
   the first four chains, then one by one to the first. */

/* The sum of a row of n < 16 entries, whose weights are listed in their order. */
SDR_INLINE float chains_short(const float *w, const float *x, uint32_t n)
{
    struct chains sum = {0};
    uint32_t i = 0;
    for (; i + 4 <= n; i += 4) {
        lanes_four a, b;
        memcpy(&a, w + i, sizeof a);
        memcpy(&b, x + i, sizeof b);
        chains_add_four(&sum, a * b);
    }
    for (; i < n; i++)
        chains_add_four(&sum, (lanes_four){w[i] * x[i], 0, 0, 0});
    return chains_sum(sum);
}

#if defined(__AVX512F__)
#define LANES_JOIN(p)                                                                              \
    (lanes) _mm512_insertf32x8(                                                                    \
        _mm512_castps256_ps512(_mm256_set_m128((__m128)(p)[1], (__m128)(p)[0])),                   \
        _mm256_set_m128((__m128)(p)[3], (__m128)(p)[2]), 1)
#elif defined(__AVX2__)
#define LANES_JOIN(p) (lanes) _mm256_set_m128((__m128)(p)[1], (__m128)(p)[0])
#else
#define LANES_JOIN(p) (p)[0]
#endif
#define LANES_DOT(bits, type)                                                                      \
    SDR_INLINE lanes lanes_listed##bits(const float *w, const type *index)                         \
    {                                                                                              \
        lanes_four part[SDR_LANES / 4];                                                            \
        SDR_UNROLLED_FOR (4, int p = 0; p < SDR_LANES / 4; p++)                                    \
            part[p] = (lanes_four){w[index[4 * p]], w[index[4 * p + 1]], w[index[4 * p + 2]],      \
                                   w[index[4 * p + 3]]};                                           \
        return LANES_JOIN(part);                                                                   \
    }                                                                                              \
    SDR_INLINE float lanes_dot##bits(const float *w, const type *index, const float *x,            \
                                     uint32_t n)                                                   \
    {                                                                                              \
        struct chains sum = {0};                                                                   \
        uint32_t i = 0;                                                                            \
        if (n < SDR_CHAINS) {                                                                      \
            float value[SDR_CHAINS];                                                               \
            for (; i < n; i++)                                                                     \
                value[i] = w[index[i]];                                                            \
            return chains_short(value, x, n);                                                      \
        }                                                                                          \
        for (; i + SDR_CHAINS <= n; i += SDR_CHAINS)                                               \
            SDR_UNROLLED_FOR (4, int v = 0; v < SDR_CHAIN_VECTORS; v++)                            \
                sum.part[v] += lanes_listed##bits(w, index + i + v * SDR_LANES) *                  \
                               lanes_load(x + i + v * SDR_LANES, SDR_LANES);                       \
        if (i < n) {                                                                               \
            int32_t done = (int32_t)(i - (n - SDR_CHAINS));                                        \
            i = n - SDR_CHAINS;                                                                    \
            SDR_UNROLLED_FOR (4, int v = 0; v < SDR_CHAIN_VECTORS; v++)                            \
                sum.part[v] += lanes_from(done - v * SDR_LANES,                                    \
                                          lanes_listed##bits(w, index + i + v * SDR_LANES) *       \
                                              lanes_load(x + i + v * SDR_LANES, SDR_LANES));       \
        }                                                                                          \
        return chains_sum(sum);                                                                    \
    }
LANES_DOT(16, uint16_t)
LANES_DOT(32, uint32_t)
#undef LANES_DOT
#undef LANES_JOIN

/* ---- dense rows: Σ w[i]·(x[i] − center[i]); center may be NULL ---- */
SDR_INLINE float lanes_dot(const float *w, const float *x, const float *center, uint32_t n)
{
    struct chains sum = {0};
    if (center)
        CHAINS_ADD(sum, n,
                   lanes_load(w + i, m) * (lanes_load(x + i, m) - lanes_load(center + i, m)));
    else
        CHAINS_ADD(sum, n, lanes_load(w + i, m) * lanes_load(x + i, m));
    return chains_sum(sum);
}

#endif
