/* Allocation with fault injection; regions over mmap and mremap. */
#define _GNU_SOURCE /* mremap */
#include "base/memory.h"
#include "base/fault.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum sdr_status sdr_allocate(void *pointer, size_t count, size_t size, const char *what)
{
    size_t bytes;
    void *memory = NULL;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX - 2 * SDR_ALIGN)
        bytes = SIZE_MAX;
    else if (!sdr_fault_strikes(SDR_FAULT_ALLOCATE))
        memory = calloc(1, bytes + 2 * SDR_ALIGN); /* large blocks come zeroed from mmap */
    if (!memory) {
        memset(pointer, 0, sizeof(void *));
        return sdr_fail(SDR_RUNTIME, "out of memory: %s needs %.1f MB", what, (double)bytes / 1e6);
    }
    /* calloc's pointer is stored in front of the aligned block, for free. */
    unsigned char *block =
        (unsigned char *)(((uintptr_t)memory + 2 * SDR_ALIGN - 1) & ~(uintptr_t)(SDR_ALIGN - 1));
    memcpy(block - sizeof memory, &memory, sizeof memory);
    memcpy(pointer, &block, sizeof block);
    return SDR_OK;
}

void sdr_large_pages(void *block, size_t bytes)
{
    enum { LARGE = 2 << 20 };
    uintptr_t first = ((uintptr_t)block + LARGE - 1) / LARGE * LARGE,
              end = ((uintptr_t)block + bytes) / LARGE * LARGE;
    if (end > first)
        (void)madvise((void *)first, end - first, MADV_HUGEPAGE);
}

void sdr_populate(void *block, size_t bytes)
{
#ifdef MADV_POPULATE_WRITE
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = ((uintptr_t)block + page - 1) / page * page,
              end = ((uintptr_t)block + bytes) / page * page;
    if (end > first)
        (void)madvise((void *)first, end - first, MADV_POPULATE_WRITE);
#else
    (void)block, (void)bytes;
#endif
}

enum sdr_status sdr_grow(void *pointer, uint64_t *from, uint64_t count, uint64_t *room, size_t size,
                         const char *what)
{
    enum { FIRST = 16 };
    unsigned char *old, *larger;
    uint64_t wanted = *room ? 2 * *room : FIRST, start = from ? *from : 0;
    if (count < *room)
        return SDR_OK;
    SDR_TRY(sdr_allocate(&larger, wanted, size, what));
    memcpy(&old, pointer, sizeof old);
    uint64_t end = *room - start; /* elements before the ring wraps */
    if (count) {
        memcpy(larger, old + start * size, end * size);
        memcpy(larger + end * size, old, start * size);
    }
    sdr_release(old);
    memcpy(pointer, &larger, sizeof larger);
    *room = wanted;
    if (from)
        *from = 0;
    return SDR_OK;
}

void sdr_release(void *pointer)
{
    void *memory;
    if (!pointer)
        return;
    memcpy(&memory, (unsigned char *)pointer - sizeof memory, sizeof memory);
    free(memory);
}

enum sdr_status sdr_copy_bytes(char **copy, const char *text, size_t length)
{
    SDR_TRY(sdr_allocate(copy, length + 1, 1, "a string"));
    memcpy(*copy, text, length);
    return SDR_OK;
}

enum sdr_status sdr_copy_string(char **copy, const char *text)
{
    return sdr_copy_bytes(copy, text, strlen(text));
}

void sdr_string_free(char *text)
{
    sdr_release(text);
}

static enum sdr_status region_full(size_t bytes)
{
    return sdr_fail(SDR_RUNTIME, "out of memory: the data needs %.1f MB (use --memory to stream)",
                    (double)bytes / 1e6);
}

static void *map(size_t bytes)
{
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                -1, 0);
}

static void *grow(void *old, size_t had, size_t wanted)
{
#if defined(__SANITIZE_THREAD__) /* it does not track mremap and reports false races */
    void *memory = map(wanted);
    if (memory == MAP_FAILED)
        return memory;
    memcpy(memory, old, had);
    munmap(old, had);
    return memory;
#else
    return mremap(old, had, wanted, MREMAP_MAYMOVE);
#endif
}

enum sdr_status sdr_region_reserve(struct sdr_region *region, size_t more)
{
    enum { FIRST = 1 << 16 };
    if (more <= region->reserved - region->used)
        return SDR_OK;
    size_t wanted = region->reserved ? region->reserved : FIRST;
    while (wanted - region->used < more) {
        if (wanted > SIZE_MAX / 4)
            return region_full(wanted);
        wanted *= 2;
    }
    void *memory = MAP_FAILED;
    if (!sdr_fault_strikes(SDR_FAULT_ALLOCATE))
        memory = region->bytes ? grow(region->bytes, region->reserved, wanted) : map(wanted);
    if (memory == MAP_FAILED)
        return region_full(wanted);
    if (wanted >= (size_t)8 << 20)
        (void)madvise(memory, wanted, MADV_HUGEPAGE); /* fewer page faults; refusal is harmless */
    region->bytes = memory;
    region->reserved = wanted;
    return SDR_OK;
}

enum sdr_status sdr_region_append(struct sdr_region *region, const void *bytes, size_t count)
{
    SDR_TRY(sdr_region_reserve(region, count));
    if (count)
        memcpy(region->bytes + region->used, bytes, count);
    region->used += count;
    return SDR_OK;
}

void sdr_region_free(struct sdr_region *region)
{
    if (region->bytes)
        munmap(region->bytes, region->reserved);
    *region = (struct sdr_region){0};
}
