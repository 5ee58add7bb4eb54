/* How the changes of several workers become one, and the exchange of them without a lock. */
#ifndef SDR_KERNEL_EXCHANGE_H
#define SDR_KERNEL_EXCHANGE_H

#include <stdint.h>

enum sdr_merge {
    SDR_MERGE_SUM,    /* changes add up */
    SDR_MERGE_SHRUNK, /* they add up, but what each shrank towards zero is not carried across it */
    SDR_MERGE_MEAN    /* the mean of those who changed it */
};

/* Workers exchange with the shared array whenever they like, all at once. Arrays are aligned to eight
   bytes and of an even count.
   take  mine = base = shared
   give  shared += mine − base, by atomic adds. Where nobody else changed a value since it was taken it
         becomes mine to the bit; a mean of two is half way. */
void sdr_exchange_take(const float *shared, float *mine, float *base, uint64_t count);
void sdr_exchange_give(float *shared, const float *mine, const float *base, uint64_t count,
                       enum sdr_merge how);

#endif
