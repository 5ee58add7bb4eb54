#include "base/cpu.h"

#include <stdatomic.h>

static atomic_int chosen = SDR_CPU_LEVELS;

enum sdr_cpu sdr_cpu_best(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return SDR_CPU_AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return SDR_CPU_AVX2;
#endif
    return SDR_CPU_PORTABLE;
}

enum sdr_cpu sdr_cpu_level(void)
{
    enum sdr_cpu level = (enum sdr_cpu)atomic_load_explicit(&chosen, memory_order_relaxed);
    return level == SDR_CPU_LEVELS ? sdr_cpu_best() : level;
}

enum sdr_status sdr_cpu_use(enum sdr_cpu level)
{
    if (level != SDR_CPU_LEVELS && level > sdr_cpu_best())
        return sdr_fail(SDR_USAGE, "this CPU has no %s; its highest level is %s",
                        sdr_cpu_name(level), sdr_cpu_name(sdr_cpu_best()));
    atomic_store_explicit(&chosen, (int)level, memory_order_relaxed);
    return SDR_OK;
}

const char *sdr_cpu_name(enum sdr_cpu level)
{
    static const char *const name[SDR_CPU_LEVELS] = {"portable", "avx2", "avx512"};
    return name[level];
}
