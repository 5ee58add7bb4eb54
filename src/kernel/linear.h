/* Kernels of linear models: scores of rows, gradient accumulation, merging of replicas. One table
   per CPU level. */
#ifndef SDR_KERNEL_LINEAR_H
#define SDR_KERNEL_LINEAR_H

#include "base/cpu.h"
#include "kernel/exchange.h"
#include "kernel/product.h"
#include <stdint.h>

/* Weights are feature-major: w[feature * outputs + output]. Nothing here allocates or fails. */
struct sdr_linear_kernels {
    /* Σ w[index[i]]·x[i] */
    float (*dot16)(const float *w, const uint16_t *index, const float *x, uint32_t n);
    float (*dot32)(const float *w, const uint32_t *index, const float *x, uint32_t n);
    /* Σ w[i]·(x[i] − center[i]); center may be NULL */
    float (*dot)(const float *w, const float *x, const float *center, uint32_t n);
    /* score[k] += Σ w[index[i]·outputs + k]·x[i] */
    void (*scores16)(const float *w, const uint16_t *index, const float *x, uint32_t n,
                     uint32_t outputs, float *score);
    void (*scores32)(const float *w, const uint32_t *index, const float *x, uint32_t n,
                     uint32_t outputs, float *score);
    void (*scores)(const float *w, const float *x, const float *center, uint32_t n,
                   uint32_t outputs, float *score);
    /* The same as `scores` for rows x[r] and their scores, one behind the other; the same bits. */
    void (*scores_together)(const float *w, const float *const *x, uint32_t rows,
                            const float *center, uint32_t n, uint32_t outputs, float *score);
    /* to[i] = x[i] − center[i]; center may be NULL */
    void (*copy)(float *to, const float *x, const float *center, uint32_t n);
    /* to[i] += a·(x[i] − center[i]); center may be NULL */
    void (*add)(float *to, float a, const float *x, const float *center, uint32_t n);
    /* Merges replicas that started from `shared` into it, in order; count is a multiple of 16. If k
       replicas changed a value, min(1, max(damping, 2/k)) of the sum of their changes is added.
       Reason: each replica has made the whole correction on busy features, so the sum of more than
       two overshoots further with every merge. damping NULL: add everything. */
    void (*merge)(float *shared, const float *const *copy, int copies, uint64_t count,
                  enum sdr_merge how, const float *damping);
    /* The same for replicas in cells of `size` floats (kernel/cells.h), which get the result, too:
       cells first … end − 1, multiples of 16. A cell's floats 0 and 1 belong to array 0 and 1,
       float 4 to array 2. feature[j]: the feature of cell j, its index in the arrays and in
       damping; NULL: cell j is feature j. `how` is for arrays 1 and 2. */
    void (*merge_cells)(float *const *shared, int arrays, const uint32_t *feature,
                        float *const *cell, int copies, size_t size, uint64_t first, uint64_t end,
                        enum sdr_merge how, const float *damping);
    const struct sdr_product_kernels *products; /* of the same level */
};

const struct sdr_linear_kernels *sdr_linear_kernels(enum sdr_cpu level);

#endif
