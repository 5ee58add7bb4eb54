/* Kernels of networks: products of matrices, in single precision. One table per CPU level.

   Every element of a result is one chain of fused multiply-adds, in the order of the inner index.
   The bits depend neither on the CPU level nor on how loops are tiled, nor on how rows or columns
   are shared out. */
#ifndef SDR_KERNEL_PRODUCT_H
#define SDR_KERNEL_PRODUCT_H

#include "base/cpu.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* to[to(i) + j] = Σ_p a[i·a_row + a(p)] · b[b(p) + j]   for i < rows, j < cols, p < inner
   with a(p) = a_at[p], b(p) = b_at[p], to(i) = to_at[i], or without that table p·a_step, p·b_step,
   i·to_row; a_at and b_at come together. `add`: the chain goes on from what `to` holds; otherwise
   it begins at zero. `to` overlaps neither a nor b. */
struct sdr_product {
    float *to;
    const float *a, *b;
    size_t to_row, a_row, a_step, b_step;
    const size_t *to_at, *a_at, *b_at;
    uint32_t rows, cols, inner;
    bool add;
};

/* to[i·to_row + j] = Σ_q Σ_l a[a_at[i] + q_at[q] + l] · b[j·b_row + q·lanes + l], q < inner, l <
   lanes. Both operands are vectors over `lanes` examples, a multiple of 16: sixteen chains, whose
   sum is in the order of chains_sum. */
struct sdr_cross {
    float *to;
    const float *a, *b;
    size_t to_row, b_row;
    const size_t *a_at, *q_at;
    uint32_t rows, cols, inner, lanes;
};

enum sdr_activation { SDR_RELU, SDR_TANH, SDR_SIGMOID };

/* A window of size × size moves over images by `stride`. Images are vectors over `lanes` examples:
   value[((channel·rows + row)·cols + col)·lanes + example]. */
struct sdr_pooling {
    uint32_t channels, rows, cols, out_rows, out_cols, size, stride, lanes;
};

struct sdr_product_kernels {
    void (*product)(const struct sdr_product *x);
    void (*cross)(const struct sdr_cross *x);
    /* to[j] += Σ_i x[i]·from[index[i]·cols + j]   for j < cols: one chain each, in the order of i */
    void (*gather16)(const float *from, const uint16_t *index, const float *x, uint32_t n,
                     uint32_t cols, float *to);
    void (*gather32)(const float *from, const uint32_t *index, const float *x, uint32_t n,
                     uint32_t cols, float *to);
    /* to[place[i]·cols + j] += x[i]·u[j]   for i < n, j < cols: the next link of each chain */
    void (*scatter)(float *to, const uint32_t *place, const float *x, uint32_t n, const float *u,
                    uint32_t cols);
    /* to[j·to_row + i] = from[i·from_row + j]   for i < rows, j < cols */
    void (*transpose)(const float *from, size_t from_row, uint32_t rows, uint32_t cols, float *to,
                      size_t to_row);
    /* x ← f(x); delta ← delta·f'(x), given y = f(x) */
    void (*activate)(enum sdr_activation f, float *x, size_t n);
    void (*slope)(enum sdr_activation f, const float *y, float *delta, size_t n);
    /* The largest value of every window, and the way back: `into` gets delta where that value came
       from, the first if there are several. It is zero before where windows overlap, or do not
       reach. */
    void (*pool)(const struct sdr_pooling *window, const float *from, float *to);
    void (*unpool)(const struct sdr_pooling *window, const float *from, const float *to,
                   const float *delta, float *into);
    bool emulated; /* there is no instruction that multiplies and adds: a hundred times slower */
};

const struct sdr_product_kernels *sdr_product_kernels(enum sdr_cpu level);

#endif
