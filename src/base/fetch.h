/* Prefetching, of 4096 bytes at most. All are always inline: the compiler takes a function that
   only prefetches for one without effect, and drops its calls. */
#ifndef SDR_BASE_FETCH_H
#define SDR_BASE_FETCH_H

#include <stddef.h>

enum { SDR_FETCH_LINE = 64, SDR_FETCH_MOST = 4096 };

static inline __attribute__((always_inline)) void sdr_fetch(const void *from, size_t bytes)
{
    const char *at = from, *end = at + (bytes < SDR_FETCH_MOST ? bytes : SDR_FETCH_MOST);
    for (; at < end; at += SDR_FETCH_LINE)
        __builtin_prefetch(at);
}

/* Memory that is written soon. Its lines come out of the caches of the other cores; otherwise the
   first store to each would wait for that. */
static inline __attribute__((always_inline)) void sdr_fetch_to_write(const void *from, size_t bytes)
{
    for (size_t i = 0; i < (bytes < SDR_FETCH_MOST ? bytes : SDR_FETCH_MOST); i += SDR_FETCH_LINE)
        __builtin_prefetch((const char *)from + i, 1);
}

/* sdr_fetch without a branch for the first lines, since the lengths of rows cannot be predicted. */
static inline __attribute__((always_inline)) void sdr_fetch_part(const void *from, size_t bytes,
                                                                 const size_t lines)
{
    const char *at = from, *last = at + (bytes ? bytes - 1 : 0);
    _Pragma("GCC unroll 8") for (size_t i = 0; i < lines; i++)
        __builtin_prefetch(at + i * SDR_FETCH_LINE < last ? at + i * SDR_FETCH_LINE : last);
    if (bytes > lines * SDR_FETCH_LINE)
        sdr_fetch(at + lines * SDR_FETCH_LINE, bytes - lines * SDR_FETCH_LINE);
}

#endif
