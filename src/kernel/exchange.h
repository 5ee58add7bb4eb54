/* Merge rules for the changes of several workers, and their lock-free exchange. */
#ifndef SDR_KERNEL_EXCHANGE_H
#define SDR_KERNEL_EXCHANGE_H

#include <stdint.h>

enum sdr_merge {
    SDR_MERGE_SUM,    /* sum of the changes */
    SDR_MERGE_SHRUNK, /* sum; zero if the sum changes sign but no worker's value did */
    SDR_MERGE_MEAN    /* mean of the changed values */
};

/* Exchange with the shared array, by any number of workers at a time. Arrays are aligned to 8
   bytes; counts are even.
   take  mine = base = shared
   give  shared += mine − base, atomically. If no other worker changed a value since `take`, it becomes
         `mine` exactly. SDR_MERGE_MEAN averages the shared value and mine. */
void sdr_exchange_take(const float *shared, float *mine, float *base, uint64_t count);
void sdr_exchange_give(float *shared, const float *mine, const float *base, uint64_t count,
                       enum sdr_merge how);

#endif
