#define _GNU_SOURCE /* memfd_create, fallocate */
#include "base/arena.h"
#include "base/memory.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static unsigned char *map(int file, size_t size)
{
    void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    return bytes == MAP_FAILED ? NULL : bytes;
}

bool sdr_arena_create(struct sdr_arena *arena)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    *arena = (struct sdr_arena){.size = pages > 0 && page > 0 ? (size_t)pages * (size_t)page : 0, .file = -1};
    arena->file = memfd_create("sounder", MFD_CLOEXEC);
    if (arena->file >= 0 && arena->size && ftruncate(arena->file, (off_t)arena->size) == 0)
        arena->bytes = map(arena->file, arena->size);
    if (!arena->bytes)
        sdr_arena_destroy(arena);
    return arena->bytes;
}

void sdr_arena_destroy(struct sdr_arena *arena)
{
    if (arena->bytes)
        munmap(arena->bytes, arena->size);
    if (arena->file >= 0)
        close(arena->file);
    arena->bytes = NULL;
    arena->file = -1;
}

void *sdr_arena_take(struct sdr_arena *arena, size_t bytes)
{
    size_t whole = (bytes + SDR_ALIGN - 1) / SDR_ALIGN * SDR_ALIGN;
    size_t used = atomic_load_explicit(&arena->used, memory_order_relaxed);
    do
        if (!arena->bytes || whole < bytes || whole > arena->size - used)
            return NULL;
    while (!atomic_compare_exchange_weak(&arena->used, &used, used + whole));
    return arena->bytes + used;
}

void sdr_arena_reset(struct sdr_arena *arena, size_t keep)
{
    size_t used = atomic_load(&arena->used);
    if (used > keep)
        (void)!fallocate(arena->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)keep, (off_t)(used - keep));
    atomic_store(&arena->used, used < keep ? used : keep);
}

unsigned char *sdr_arena_map(int64_t process, int file, size_t size)
{
    char path[64];
    struct stat about;
    unsigned char *bytes = NULL;
    snprintf(path, sizeof path, "/proc/%lld/fd/%d", (long long)process, file);
    int there = open(path, O_RDWR | O_CLOEXEC);
    if (there < 0)
        return NULL;
    if (fstat(there, &about) == 0 && about.st_size >= 0 && (uint64_t)about.st_size == size)
        bytes = map(there, size);
    close(there);
    return bytes;
}

void sdr_arena_unmap(unsigned char *bytes, size_t size)
{
    if (bytes)
        munmap(bytes, size);
}
