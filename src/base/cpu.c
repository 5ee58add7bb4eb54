#include "base/cpu.h"

enum sdr_cpu sdr_cpu_best(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return SDR_CPU_AVX512;
    if (__builtin_cpu_supports("avx2"))
        return SDR_CPU_AVX2;
#endif
    return SDR_CPU_PORTABLE;
}

const char *sdr_cpu_name(enum sdr_cpu level)
{
    static const char *const name[SDR_CPU_LEVELS] = {"portable", "avx2", "avx512"};
    return name[level];
}
