/* Kernels of the gradient over all rows, in double: scores of several rows, and sums of rows. One
   table per CPU level.

   Dense rows work on output-major weights, w[output · w_row + feature], where w_row is a multiple
   of SDR_FULL_WIDTH and the values behind the features are zero. Sparse rows work on feature-major
   ones, w[feature · outputs + output]. The bits depend neither on the CPU level nor on how rows are
   grouped into calls. Nothing here allocates or fails. */
#ifndef SDR_KERNEL_FULL_H
#define SDR_KERNEL_FULL_H

#include "base/cpu.h"
#include <stddef.h>
#include <stdint.h>

enum { SDR_FULL_WIDTH = 8 };

struct sdr_full_kernels {
    /* score[r · outputs + k] = Σ_j w[k · w_row + j]·x[r][j] for `rows` dense rows of n features */
    void (*scores)(const double *w, size_t w_row, uint32_t outputs, const float *const *x,
                   uint32_t rows, uint32_t n, double *score);
    /* sum[k · sum_row + j] += Σ_r u[r · outputs + k]·x[r][j], in the order of the rows */
    void (*add)(double *sum, size_t sum_row, uint32_t outputs, const float *const *x, uint32_t rows,
                uint32_t n, const double *u);
    /* The same of one sparse row with n entries. */
    void (*scores16)(const double *w, uint32_t outputs, const uint16_t *index, const float *x,
                     uint32_t n, double *score);
    void (*scores32)(const double *w, uint32_t outputs, const uint32_t *index, const float *x,
                     uint32_t n, double *score);
    void (*add16)(double *sum, uint32_t outputs, const uint16_t *index, const float *x, uint32_t n,
                  const double *u);
    void (*add32)(double *sum, uint32_t outputs, const uint32_t *index, const float *x, uint32_t n,
                  const double *u);
};

const struct sdr_full_kernels *sdr_full_kernels(enum sdr_cpu level);

#endif
