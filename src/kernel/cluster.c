#include "kernel/cluster.h"

extern const struct sdr_cluster_kernels sdr_cluster_kernels_portable;
#if defined(__x86_64__)
extern const struct sdr_cluster_kernels sdr_cluster_kernels_avx2, sdr_cluster_kernels_avx512;
#endif

const struct sdr_cluster_kernels *sdr_cluster_kernels(enum sdr_cpu level)
{
    static const struct sdr_cluster_kernels *const table[SDR_CPU_LEVELS] = {
        &sdr_cluster_kernels_portable,
#if defined(__x86_64__)
        &sdr_cluster_kernels_avx2,
        &sdr_cluster_kernels_avx512,
#endif
    };
    return table[level];
}
