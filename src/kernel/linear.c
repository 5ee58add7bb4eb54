#include "kernel/linear.h"

extern const struct sdr_linear_kernels sdr_linear_kernels_portable;
#if defined(__x86_64__)
extern const struct sdr_linear_kernels sdr_linear_kernels_avx2, sdr_linear_kernels_avx512;
#endif

const struct sdr_linear_kernels *sdr_linear_kernels(enum sdr_cpu level)
{
    static const struct sdr_linear_kernels *const table[SDR_CPU_LEVELS] = {
        &sdr_linear_kernels_portable,
#if defined(__x86_64__)
        &sdr_linear_kernels_avx2,
        &sdr_linear_kernels_avx512,
#endif
    };
    return table[level];
}
