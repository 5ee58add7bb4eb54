#include "kernel/full.h"

extern const struct sdr_full_kernels sdr_full_kernels_portable;
#if defined(__x86_64__)
extern const struct sdr_full_kernels sdr_full_kernels_avx2, sdr_full_kernels_avx512;
#endif

const struct sdr_full_kernels *sdr_full_kernels(enum sdr_cpu level)
{
    static const struct sdr_full_kernels *const table[SDR_CPU_LEVELS] = {
        &sdr_full_kernels_portable,
#if defined(__x86_64__)
        &sdr_full_kernels_avx2,
        &sdr_full_kernels_avx512,
#endif
    };
    return table[level];
}
