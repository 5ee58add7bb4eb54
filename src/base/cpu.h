/* Which of the compiled kernel levels this CPU can run, and which one is in use. */
#ifndef SDR_BASE_CPU_H
#define SDR_BASE_CPU_H

#include "base/fail.h"

/* In rising order; every level gives the same bits (see kernel/lanes.h). */
enum sdr_cpu { SDR_CPU_PORTABLE, SDR_CPU_AVX2, SDR_CPU_AVX512, SDR_CPU_LEVELS };

/* The highest level of this CPU. */
enum sdr_cpu sdr_cpu_best(void);
/* The level in use: the highest one, unless sdr_cpu_use() chose another. */
enum sdr_cpu sdr_cpu_level(void);
/* Chooses the level of kernels that are looked up from now on; SDR_CPU_LEVELS: the highest. Fails if
   this CPU lacks it. The choice is the whole process's: predictions take no options, and because bits
   are equal at all levels, two runs that choose differently do not disturb each other. */
enum sdr_status sdr_cpu_use(enum sdr_cpu level);
const char *sdr_cpu_name(enum sdr_cpu level);

#endif
