/* Which of the compiled kernel levels this CPU can run. */
#ifndef SDR_BASE_CPU_H
#define SDR_BASE_CPU_H

/* In rising order; every level gives the same bits (see kernel/lanes.h). */
enum sdr_cpu { SDR_CPU_PORTABLE, SDR_CPU_AVX2, SDR_CPU_AVX512, SDR_CPU_LEVELS };

enum sdr_cpu sdr_cpu_best(void);
const char *sdr_cpu_name(enum sdr_cpu level);

#endif
