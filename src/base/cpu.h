/* Which of the compiled kernel levels this CPU can run, and which one is in use. */
#ifndef SDR_BASE_CPU_H
#define SDR_BASE_CPU_H

#include "base/fail.h"

/* In rising order; every level computes the same bits (see kernel/lanes.h). */
enum sdr_cpu { SDR_CPU_PORTABLE, SDR_CPU_AVX2, SDR_CPU_AVX512, SDR_CPU_LEVELS };

/* The highest level this CPU supports. */
enum sdr_cpu sdr_cpu_best(void);
/* The level in use: the highest one, unless sdr_cpu_use() chose another. */
enum sdr_cpu sdr_cpu_level(void);
/* Sets the level used by later kernel lookups; SDR_CPU_LEVELS selects the highest. Fails if the CPU
   lacks the level. The setting is global because predictions take no options. Concurrent runs may
   choose different levels: all levels compute the same bits. */
enum sdr_status sdr_cpu_use(enum sdr_cpu level);
const char *sdr_cpu_name(enum sdr_cpu level);

#endif
