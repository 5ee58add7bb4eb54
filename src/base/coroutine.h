/* Coroutines: loops with a stack of their own that take turns on one thread. */
#ifndef SDR_BASE_COROUTINE_H
#define SDR_BASE_COROUTINE_H

#include "base/fail.h"
#include <stddef.h>

struct sdr_coroutine;

/* A loop that begins when it is first resumed, on a stack of at least `stack` bytes. */
enum sdr_status sdr_coroutine_create(void (*loop)(void *argument), void *argument, size_t stack,
                                     struct sdr_coroutine **coroutine);
void sdr_coroutine_destroy(struct sdr_coroutine *coroutine);
/* Runs the coroutine until it yields or its loop returns; false: it has returned. */
bool sdr_coroutine_resume(struct sdr_coroutine *coroutine);
/* Fetches what resuming will need into the cache: where there are thousands of them, they do not all stay there. */
void sdr_coroutine_fetch(const struct sdr_coroutine *coroutine);
/* Called on the coroutine's own stack: back to whoever resumed it. */
void sdr_coroutine_yield(struct sdr_coroutine *coroutine);

#endif
