/* Clustering kernels: lengths, distances, and the nearest center. Sums are
   feature-major like the weights of linear models: sum[feature · outputs + cluster]. One table per
   CPU level. */
#ifndef SDR_KERNEL_CLUSTER_H
#define SDR_KERNEL_CLUSTER_H

#include "base/cpu.h"
#include <stdint.h>

struct sdr_cluster_kernels {
    /* square[k] = Σ_i (sum[i · outputs + k]·share[k])² */
    void (*squares)(const float *sum, const float *share, uint32_t n, uint32_t outputs,
                    float *square);
    /* Σ (x[i] − center[i])²; center may be NULL */
    float (*length)(const float *x, const float *center, uint32_t n);
    /* Σ ((x[i] − origin[i]) − center[i])² */
    float (*distance)(const float *x, const float *origin, const float *center, uint32_t n);
    /* Returns the first k with the largest score[k]·twice[k] − norm[k]. Also returns that maximum
       and the runner-up (−infinity if there is only one). */
    uint32_t (*nearest)(const float *score, const float *twice, const float *norm, uint32_t outputs,
                        float *value, float *second);
};

const struct sdr_cluster_kernels *sdr_cluster_kernels(enum sdr_cpu level);

#endif
