/* Monotonic time in integer nanoseconds, and the peak memory of this process. */
#ifndef SDR_BASE_CLOCK_H
#define SDR_BASE_CLOCK_H

#include <stdint.h>

int64_t sdr_clock_now(void);
int64_t sdr_clock_about(void); /* coarse clock: a few milliseconds late, but much cheaper to read */
double sdr_clock_since(int64_t start); /* seconds */
uint64_t sdr_peak_rss_bytes(void);

#endif
