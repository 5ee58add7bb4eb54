/* Wall time in integer nanoseconds (monotonic), and the memory this process has used at most. */
#ifndef SDR_BASE_CLOCK_H
#define SDR_BASE_CLOCK_H

#include <stdint.h>

int64_t sdr_clock_now(void);
int64_t sdr_clock_about(void); /* the same, some milliseconds late, in a fraction of the time */
double sdr_clock_since(int64_t start); /* seconds */
uint64_t sdr_peak_rss_bytes(void);

#endif
