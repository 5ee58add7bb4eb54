/* Memory: zeroed, aligned allocations, and regions that grow without copying. */
#ifndef SDR_BASE_MEMORY_H
#define SDR_BASE_MEMORY_H

#include "base/fail.h"
#include <stddef.h>
#include <stdint.h>

enum { SDR_ALIGN = 64 };

/* Allocates count × size zeroed bytes, aligned to a cache line, in *pointer (the address of any
   object pointer). Fails with SDR_RUNTIME and a message naming `what`. Zero bytes give a valid
   pointer. */
enum sdr_status sdr_allocate(void *pointer, size_t count, size_t size, const char *what);
/* Asks for pages of 2 MB where a block is large and read all over: fewer faults, and fewer misses
   of the page table's cache. It changes nothing else, and may be refused. */
void sdr_large_pages(void *block, size_t bytes);
/* Makes the pages of a block writable now. The first write to a page that was only read before
   makes all cores of the process wait. */
void sdr_populate(void *block, size_t bytes);
/* Doubles an array (from sdr_allocate, or NULL) if its `count` elements fill its *room. On failure
   nothing changes. `from`: index of the first element of a ring, which is moved to 0; NULL for a
   plain array. */
enum sdr_status sdr_grow(void *pointer, uint64_t *from, uint64_t count, uint64_t *room, size_t size,
                         const char *what);
/* Frees a block from sdr_allocate; NULL is fine. */
void sdr_release(void *pointer);
enum sdr_status sdr_copy_string(char **copy, const char *text);
enum sdr_status sdr_copy_bytes(char **copy, const char *text, size_t length); /* adds a NUL */

/* A growable array for data sets. The reservation doubles, pages are touched only when written, and
   the kernel moves them (mremap): growing copies nothing and slack costs no memory.
   Zero-initialise; the first `used` bytes are valid. */
struct sdr_region {
    unsigned char *bytes;
    size_t used, reserved;
};
/* Reserves `more` bytes behind `used`; pointers into the region become invalid. */
enum sdr_status sdr_region_reserve(struct sdr_region *region, size_t more);
enum sdr_status sdr_region_append(struct sdr_region *region, const void *bytes, size_t count);
void sdr_region_free(struct sdr_region *region);

#endif
