/* The number of threads this process may use, and a parallel-for. */
#ifndef SDR_BASE_THREAD_H
#define SDR_BASE_THREAD_H

#include "base/fail.h"

#include <pthread.h>
#include <stdbool.h>

/* min(cores in the affinity mask, cgroup quota), at least 1. */
int sdr_thread_limit(void);

/* Called before the calling thread is pinned to one core (true), and after it is released (false).
   Meanwhile the limit, and the cores of threads that it creates, are those of before. */
void sdr_thread_set_pinned(bool pinned);

/* Pause instruction for spin loops: frees the core for its other hardware thread. */
static inline void sdr_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* Like pthread_create: starts thread `number` of `threads`, of which the caller is number 0. If
   the process may use exactly as many cores, it starts on one of its own: the system sometimes
   starts two on one core, and takes 20 ms to notice. It may move afterwards. */
int sdr_thread_create(pthread_t *thread, int number, int threads, void *(*work)(void *),
                      void *argument);

/* Runs task(context, i) for i in 0 … count−1 on up to `threads` threads, including the caller.
   Indices are assigned in order. After a failure no more are assigned; the status and message of
   the lowest failed index are returned on the calling thread. */
enum sdr_status sdr_parallel(int threads, size_t count,
                             enum sdr_status (*task)(void *context, size_t index), void *context);

#endif
