/* Appends the CPU level to a name: sdr_x → sdr_x_avx512. The build defines SDR_CPU_LEVEL. */
#ifndef SDR_KERNEL_LEVEL_H
#define SDR_KERNEL_LEVEL_H

#define SDR_JOIN_(name, level) name##_##level
#define SDR_JOIN(name, level)  SDR_JOIN_(name, level)
#define SDR_FOR_LEVEL(name)    SDR_JOIN(name, SDR_CPU_LEVEL)

#endif
