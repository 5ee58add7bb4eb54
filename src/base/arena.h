/* Memory that other processes of this machine can map: a file without a name, which ends with the
   processes that use it. */
#ifndef SDR_BASE_ARENA_H
#define SDR_BASE_ARENA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sdr_arena {
    unsigned char *bytes; /* owned; NULL: there is none */
    /* reserved: as much as the machine has; pages cost memory once they are written */
    size_t size;
    atomic_size_t used;
    int file;
};

/* False: this machine does not allow it. */
bool sdr_arena_create(struct sdr_arena *arena);
void sdr_arena_destroy(struct sdr_arena *arena);
/* Aligned to a cache line. NULL: it is full, or there is none. */
void *sdr_arena_take(struct sdr_arena *arena, size_t bytes);
/* Gives back what was taken after the first `keep` bytes. */
void sdr_arena_reset(struct sdr_arena *arena, size_t keep);
static inline bool sdr_arena_has(const struct sdr_arena *arena, const void *at)
{
    return arena->bytes && (uintptr_t)at - (uintptr_t)arena->bytes < arena->size;
}

/* Maps the arena of another process, given by its file there; NULL if that is not allowed. */
unsigned char *sdr_arena_map(int64_t process, int file, size_t size);
void sdr_arena_unmap(unsigned char *bytes, size_t size);

#endif
