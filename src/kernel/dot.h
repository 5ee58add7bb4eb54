/* Inner products of rows and weights, compiled once per CPU level. */
#ifndef SDR_KERNEL_DOT_H
#define SDR_KERNEL_DOT_H

#include "kernel/cells.h"

/* Lanes used by the vector at i of n. */
SDR_INLINE uint32_t lanes_left(uint32_t n, uint32_t i)
{
    return n - i < SDR_LANES ? n - i : SDR_LANES;
}

/* Σ w[index[i]]·x[i] */
SDR_INLINE float lanes_dot16(const float *w, const uint16_t *index, const float *x, uint32_t n)
{
    return cells_dot16(w, 1, index, x, n);
}
SDR_INLINE float lanes_dot32(const float *w, const uint32_t *index, const float *x, uint32_t n)
{
    return cells_dot32(w, 1, index, x, n);
}

/* Σ w[i]·(x[i] − center[i]); center may be NULL. */
SDR_INLINE float lanes_dot(const float *w, const float *x, const float *center, uint32_t n)
{
    struct chains sum = {0};
    if (center)
        CHAINS_ADD(sum, n, lanes_load(w + i, m) * (lanes_load(x + i, m) - lanes_load(center + i, m)));
    else
        CHAINS_ADD(sum, n, lanes_load(w + i, m) * lanes_load(x + i, m));
    return chains_sum(sum);
}

#endif
