#include "kernel/product.h"

extern const struct sdr_product_kernels sdr_product_kernels_portable;
#if defined(__x86_64__)
extern const struct sdr_product_kernels sdr_product_kernels_avx2, sdr_product_kernels_avx512;
#endif

const struct sdr_product_kernels *sdr_product_kernels(enum sdr_cpu level)
{
    static const struct sdr_product_kernels *const table[SDR_CPU_LEVELS] = {
        &sdr_product_kernels_portable,
#if defined(__x86_64__)
        &sdr_product_kernels_avx2,
        &sdr_product_kernels_avx512,
#endif
    };
    return table[level];
}
