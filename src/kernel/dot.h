/* Inner products of a row with weights, for loops that are compiled per CPU level. */
#ifndef SDR_KERNEL_DOT_H
#define SDR_KERNEL_DOT_H

#include "kernel/lanes.h"

/* Lanes of work left at i of n. */
SDR_INLINE uint32_t lanes_left(uint32_t n, uint32_t i)
{
    return n - i < SDR_LANES ? n - i : SDR_LANES;
}

/* Σ w[index[i]]·x[i]. The weights met are kept, kept[i] = w[index[i]], where there is a place for
   them. Whole vectors first, so that the common case carries no mask. */
#define SPARSE_DOT(name, type, load)                                                               \
    SDR_INLINE float name(const float *w, const type *index, const float *x, uint32_t n,           \
                          float *kept)                                                             \
    {                                                                                              \
        lanes sum = {0};                                                                           \
        uint32_t i = 0;                                                                            \
        for (; i + SDR_LANES <= n; i += SDR_LANES) {                                               \
            lanes met = lanes_gather(w, load(index + i, SDR_LANES), SDR_LANES);                    \
            if (kept)                                                                              \
                lanes_store(kept + i, met, SDR_LANES);                                             \
            sum += met * lanes_load(x + i, SDR_LANES);                                             \
        }                                                                                          \
        if (i < n) {                                                                               \
            lanes met = lanes_gather(w, load(index + i, n - i), n - i);                            \
            if (kept)                                                                              \
                lanes_store(kept + i, met, n - i);                                                 \
            sum += met * lanes_load(x + i, n - i);                                                 \
        }                                                                                          \
        return lanes_sum(sum);                                                                     \
    }
SPARSE_DOT(lanes_dot16, uint16_t, lanes_load16)
SPARSE_DOT(lanes_dot32, uint32_t, lanes_load32)
#undef SPARSE_DOT

/* Σ w[i]·(x[i] − center[i]); center may be NULL. */
SDR_INLINE float lanes_dot(const float *w, const float *x, const float *center, uint32_t n)
{
    lanes sum = {0};
    if (center)
        for (uint32_t i = 0, m; i < n; i += m) {
            m = lanes_left(n, i);
            sum += lanes_load(w + i, m) * (lanes_load(x + i, m) - lanes_load(center + i, m));
        }
    else
        for (uint32_t i = 0, m; i < n; i += m) {
            m = lanes_left(n, i);
            sum += lanes_load(w + i, m) * lanes_load(x + i, m);
        }
    return lanes_sum(sum);
}

#endif
