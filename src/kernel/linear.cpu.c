/* The loops of kernel/linear.h, compiled once per CPU level. */
#include "kernel/linear.h"
#include "kernel/lanes.h"
#include "kernel/level.h"

#include <stdbool.h>

/* Lanes of work left at i of n. */
SDR_INLINE uint32_t left(uint32_t n, uint32_t i)
{
    return n - i < SDR_LANES ? n - i : SDR_LANES;
}

/* Whole vectors first, so that the common case carries no mask. */
#define SPARSE_DOT(name, type, load)                                                               \
    SDR_INLINE float name##_loop(const float *w, const type *index, const float *x, uint32_t n,    \
                                 float *kept, const bool keep)                                     \
    {                                                                                              \
        lanes sum = {0};                                                                           \
        uint32_t i = 0;                                                                            \
        for (; i + SDR_LANES <= n; i += SDR_LANES) {                                               \
            lanes met = lanes_gather(w, load(index + i, SDR_LANES), SDR_LANES);                    \
            if (keep)                                                                              \
                lanes_store(kept + i, met, SDR_LANES);                                             \
            sum += met * lanes_load(x + i, SDR_LANES);                                             \
        }                                                                                          \
        if (i < n) {                                                                               \
            lanes met = lanes_gather(w, load(index + i, n - i), n - i);                            \
            if (keep)                                                                              \
                lanes_store(kept + i, met, n - i);                                                 \
            sum += met * lanes_load(x + i, n - i);                                                 \
        }                                                                                          \
        return lanes_sum(sum);                                                                     \
    }                                                                                              \
    static float name(const float *w, const type *index, const float *x, uint32_t n)               \
    {                                                                                              \
        return name##_loop(w, index, x, n, NULL, false);                                           \
    }                                                                                              \
    static float name##_keep(const float *w, const type *index, const float *x, uint32_t n,        \
                             float *kept)                                                          \
    {                                                                                              \
        return name##_loop(w, index, x, n, kept, true);                                            \
    }
SPARSE_DOT(dot16, uint16_t, lanes_load16)
SPARSE_DOT(dot32, uint32_t, lanes_load32)

static float dot(const float *w, const float *x, const float *center, uint32_t n)
{
    lanes sum = {0};
    if (center)
        for (uint32_t i = 0, m; i < n; i += m) {
            m = left(n, i);
            sum += lanes_load(w + i, m) * (lanes_load(x + i, m) - lanes_load(center + i, m));
        }
    else
        for (uint32_t i = 0, m; i < n; i += m) {
            m = left(n, i);
            sum += lanes_load(w + i, m) * lanes_load(x + i, m);
        }
    return lanes_sum(sum);
}

/* Sixteen outputs at a time, all features for each: the sums stay in a register. */
#define SPARSE_SCORES(name, type)                                                                  \
    static void name(const float *w, const type *index, const float *x, uint32_t n,                \
                     uint32_t outputs, float *score)                                               \
    {                                                                                              \
        for (uint32_t k = 0, m; k < outputs; k += m) {                                             \
            m = left(outputs, k);                                                                  \
            lanes sum = lanes_load(score + k, m);                                                  \
            for (uint32_t i = 0; i < n; i++)                                                       \
                sum += lanes_load(w + (size_t)index[i] * outputs + k, m) * x[i];                   \
            lanes_store(score + k, sum, m);                                                        \
        }                                                                                          \
    }
SPARSE_SCORES(scores16, uint16_t)
SPARSE_SCORES(scores32, uint32_t)

static void scores(const float *w, const float *x, const float *center, uint32_t n,
                   uint32_t outputs, float *score)
{
    for (uint32_t k = 0, m; k < outputs; k += m) {
        m = left(outputs, k);
        lanes sum = lanes_load(score + k, m);
        for (uint32_t i = 0; i < n; i++) {
            float xi = center ? x[i] - center[i] : x[i];
            sum += lanes_load(w + (size_t)i * outputs + k, m) * xi;
        }
        lanes_store(score + k, sum, m);
    }
}

static void add(float *to, float a, const float *x, const float *center, uint32_t n)
{
    for (uint32_t i = 0, m; i < n; i += m) {
        m = left(n, i);
        lanes v = lanes_load(x + i, m);
        if (center)
            v -= lanes_load(center + i, m);
        lanes_store(to + i, lanes_load(to + i, m) + v * a, m);
    }
}

const struct sdr_linear_kernels SDR_FOR_LEVEL(sdr_linear_kernels);
const struct sdr_linear_kernels SDR_FOR_LEVEL(sdr_linear_kernels) = {
    dot16, dot32, dot16_keep, dot32_keep, dot, scores16, scores32, scores, add};
