/* Kernels of linear models: scores of rows, the accumulation of gradients, the merging of copies.
   One table per CPU level; sdr_linear_kernels() chooses once. */
#ifndef SDR_KERNEL_LINEAR_H
#define SDR_KERNEL_LINEAR_H

#include "base/cpu.h"
#include "kernel/exchange.h"
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
    /* to[i] += a·(x[i] − center[i]); center may be NULL */
    void (*add)(float *to, float a, const float *x, const float *center, uint32_t n);
    /* Copies that began as `shared` become one with it, in their order; count is a multiple of 16. A
       value that k > 2 copies changed takes the share max(calm, 2/k) of the sum of their changes, but
       never more than all: copies that saw a busy feature often have each made the whole correction,
       and the sum of more than two would overshoot further every time. calm: NULL: all of it. */
    void (*merge)(float *shared, const float *const *copy, int copies, uint64_t count,
                  enum sdr_merge how, const float *damping);
};

const struct sdr_linear_kernels *sdr_linear_kernels(enum sdr_cpu level);

#endif
