#define _GNU_SOURCE /* memfd_create, fallocate */
#include "base/arena.h"
#include "base/memory.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static unsigned char *map(int file, size_t size)
{
    void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    if (bytes == MAP_FAILED)
        return NULL;
    madvise(bytes, size, MADV_DONTDUMP); /* a core dump would fill all of it */
    return bytes;
}

/* As much as the machine has, and as a file may have. */
static size_t size_of_arena(void)
{
    enum { LEAST = 64 << 20 };
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    struct rlimit limit;
    if (pages <= 0 || page <= 0 || getrlimit(RLIMIT_FSIZE, &limit) != 0)
        return 0;
    uint64_t size = (uint64_t)pages * (uint64_t)page;
    if (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < size)
        size = limit.rlim_cur / (uint64_t)page * (uint64_t)page;
    return size < LEAST ? 0 : size;
}

bool sdr_arena_create(struct sdr_arena *arena)
{
    *arena = (struct sdr_arena){.size = size_of_arena(), .file = -1};
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
        (void)!fallocate(arena->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)keep,
                         (off_t)(used - keep));
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
