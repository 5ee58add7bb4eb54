/* Inner products of rows and weights, compiled once per CPU level. */
#ifndef SDR_KERNEL_DOT_H
#define SDR_KERNEL_DOT_H

#include "kernel/lanes.h"

/* Lanes used by the vector at i of n. */
SDR_INLINE uint32_t lanes_left(uint32_t n, uint32_t i)
{
    return n - i < SDR_LANES ? n - i : SDR_LANES;
}

/* Σ w[index[i]]·x[i]; copies the weights to kept[i] unless kept is NULL. Sixteen partial sums; the
   remaining entries go four at a time into the first four, then one by one into the first. (Dense
   rows use full vectors to the end: their bits need not equal those of sparse rows.)

   The weights are loaded one by one at every level. In training, the previous row has just stored
   many of them: a scalar load can forward from a pending store, but a gather waits until all stores
   have completed. See LANES_PUT. */
#define SPARSE_DOT(name, type)                                                                     \
    SDR_INLINE float name(const float *w, const type *index, const float *x, uint32_t n,           \
                          float *kept)                                                             \
    {                                                                                              \
        float a[SDR_LANES] = {0};                                                                  \
        uint32_t i = 0;                                                                            \
        for (; i + 16 <= n; i += 16)                                                               \
            DOT_PART(16);                                                                          \
        for (; i + 4 <= n; i += 4)                                                                 \
            DOT_PART(4);                                                                           \
        for (; i < n; i++)                                                                         \
            DOT_PART(1);                                                                           \
        return (((a[0] + a[8]) + (a[4] + a[12])) + ((a[2] + a[10]) + (a[6] + a[14]))) +            \
               (((a[1] + a[9]) + (a[5] + a[13])) + ((a[3] + a[11]) + (a[7] + a[15])));             \
    }
#define DOT_PART(m)                                                                                \
    _Pragma("GCC unroll 16") for (int l = 0; l < (m); l++)                                         \
    {                                                                                              \
        float met = w[index[i + l]];                                                               \
        if (kept)                                                                                  \
            kept[i + l] = met;                                                                     \
        a[l] += met * x[i + l];                                                                    \
    }
SPARSE_DOT(lanes_dot16, uint16_t)
SPARSE_DOT(lanes_dot32, uint32_t)
#undef DOT_PART
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
