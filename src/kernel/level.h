/* Names with the CPU level they are compiled for: sdr_x → sdr_x_avx512. SDR_CPU_LEVEL comes from
 * the build. */
#ifndef SDR_KERNEL_LEVEL_H
#define SDR_KERNEL_LEVEL_H

#define SDR_JOIN_(name, level) name##_##level
#define SDR_JOIN(name, level)  SDR_JOIN_(name, level)
#define SDR_FOR_LEVEL(name)    SDR_JOIN(name, SDR_CPU_LEVEL)

#endif
