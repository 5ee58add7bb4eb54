#define _GNU_SOURCE
#include "base/clock.h"

#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

int64_t sdr_clock_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t sdr_clock_about(void)
{
#ifdef CLOCK_MONOTONIC_COARSE
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
#else
    return sdr_clock_now();
#endif
}

double sdr_clock_since(int64_t start)
{
    return (double)(sdr_clock_now() - start) * 1e-9;
}

/* VmHWM first: ru_maxrss includes the peak of the parent before exec. */
uint64_t sdr_peak_rss_bytes(void)
{
    struct rusage usage;
    unsigned long long kilobytes = 0;
    char line[128];
    FILE *file = fopen("/proc/self/status", "re");
    while (file && fgets(line, sizeof line, file) && sscanf(line, "VmHWM: %llu", &kilobytes) != 1)
        ;
    if (file)
        fclose(file);
    if (kilobytes)
        return kilobytes * 1024;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (uint64_t)usage.ru_maxrss * 1024 : 0;
}
