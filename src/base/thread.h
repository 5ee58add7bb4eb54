/* Threads: how many this process may use, and a parallel-for in one line of use. */
#ifndef SDR_BASE_THREAD_H
#define SDR_BASE_THREAD_H

#include "base/fail.h"

/* min(cores in the affinity mask, cgroup quota), at least 1. */
int sdr_thread_limit(void);

/* For loops that wait by looking: gives way to the other thread of the core. */
static inline void sdr_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* Runs task(context, i) for i in 0 … count−1 on up to `threads` threads, this one included; indices
   are handed out in order. The first failing index stops the hand-out; its status is returned and
   its sentence becomes this thread's. */
enum sdr_status sdr_parallel(int threads, size_t count,
                             enum sdr_status (*task)(void *context, size_t index), void *context);

#endif
