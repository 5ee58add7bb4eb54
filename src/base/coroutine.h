/* Coroutines: functions with their own stacks that take turns on one thread. */
#ifndef SDR_BASE_COROUTINE_H
#define SDR_BASE_COROUTINE_H

#include "base/fail.h"
#include <stddef.h>

struct sdr_coroutine;

/* The loop starts at the first resume, on a stack of at least `stack` bytes. */
enum sdr_status sdr_coroutine_create(void (*loop)(void *argument), void *argument, size_t stack,
                                     struct sdr_coroutine **coroutine);
void sdr_coroutine_destroy(struct sdr_coroutine *coroutine);
/* Runs the coroutine until it yields or its loop returns; false after it returned. */
bool sdr_coroutine_resume(struct sdr_coroutine *coroutine);
/* Prefetches the cache lines that a resume needs; thousands of stacks do not fit into the cache. */
void sdr_coroutine_fetch(const struct sdr_coroutine *coroutine);
/* Called on the coroutine's own stack; returns to the caller of resume. */
void sdr_coroutine_yield(struct sdr_coroutine *coroutine);

#endif
