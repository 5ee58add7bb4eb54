#define _GNU_SOURCE
#include "base/clock.h"

#include <sys/resource.h>
#include <time.h>

int64_t sdr_clock_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

double sdr_clock_since(int64_t start)
{
    return (double)(sdr_clock_now() - start) * 1e-9;
}

uint64_t sdr_peak_rss_bytes(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (uint64_t)usage.ru_maxrss * 1024 : 0;
}
