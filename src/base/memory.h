/* Memory: zeroed, aligned allocations, and regions that grow in place without copying. */
#ifndef SDR_BASE_MEMORY_H
#define SDR_BASE_MEMORY_H

#include "base/fail.h"
#include <stddef.h>
#include <stdint.h>

enum { SDR_ALIGN = 64 };

/* count × size zeroed bytes aligned to a cache line, in *pointer (any object pointer's address).
   Fails with SDR_RUNTIME and a sentence naming `what`. Zero bytes give a valid pointer. */
enum sdr_status sdr_allocate(void *pointer, size_t count, size_t size, const char *what);
/* An array (from sdr_allocate, or NULL) whose `count` elements fill its *room gets twice the room; *pointer and *room
   change, or nothing does. A ring begins at *from, and at 0 then; from is NULL: it is no ring. */
enum sdr_status sdr_grow(void *pointer, uint64_t *from, uint64_t count, uint64_t *room, size_t size,
                         const char *what);
/* Frees what sdr_allocate gave; NULL is fine. */
void sdr_release(void *pointer);
enum sdr_status sdr_copy_string(char **copy, const char *text);
enum sdr_status sdr_copy_bytes(char **copy, const char *text, size_t length); /* adds a NUL */

/* A growable array for data sets: pages are reserved by doubling, touched only when written, and
   moved by the kernel (mremap), so that growing copies nothing and slack costs no memory.
   Zero-initialise; the first `used` bytes are valid. */
struct sdr_region {
    unsigned char *bytes;
    size_t used, reserved;
};
/* Makes room for `more` bytes behind `used`; pointers into the region become invalid. */
enum sdr_status sdr_region_reserve(struct sdr_region *region, size_t more);
enum sdr_status sdr_region_append(struct sdr_region *region, const void *bytes, size_t count);
void sdr_region_free(struct sdr_region *region);

#endif
