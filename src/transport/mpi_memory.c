#include "transport/mpi_memory.h"
#include "base/arena.h"
#include "base/memory.h"

#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* The arena begins with words of a cache line each: the first is a random name, the others tell
   that a body was let go. */
enum { WORDS = 16384, WORD = 64 };
struct introduction {
    int64_t process; /* of the system */
    int64_t file;    /* −1: it has no arena */
    uint64_t size, name[2];
};
struct other {
    unsigned char *bytes; /* its arena; NULL: it cannot be read here */
    uint64_t size;
    bool reads; /* it reads the arena of this process */
};
static struct {
    struct sdr_arena arena;
    struct other *other; /* owned, by process */
    int process, processes;
    bool shares;                 /* in this run */
    uint32_t free[WORDS], words; /* a stack of those that are free */
} memory;

/* ---- start ---- */
static void introduce(struct introduction *own)
{
    *own = (struct introduction){.file = -1};
    if (memory.processes == 1 || !sdr_arena_create(&memory.arena))
        return;
    if (getrandom(own->name, sizeof own->name, 0) != (ssize_t)sizeof own->name ||
        !sdr_arena_take(&memory.arena, (size_t)WORDS * WORD)) {
        sdr_arena_destroy(&memory.arena);
        return;
    }
    memcpy(memory.arena.bytes, own->name, sizeof own->name);
    own->process = getpid();
    own->file = memory.arena.file;
    own->size = memory.arena.size;
    for (uint32_t w = WORDS - 1; w > 0; w--)
        memory.free[memory.words++] = w;
}

/* A process of that number on another machine has another name. */
static void look_at(struct other *other, const struct introduction *its)
{
    if (its->file < 0)
        return;
    other->bytes = sdr_arena_map(its->process, (int)its->file, its->size);
    other->size = its->size;
    if (other->bytes && memcmp(other->bytes, its->name, sizeof its->name) != 0) {
        sdr_arena_unmap(other->bytes, other->size);
        other->bytes = NULL;
    }
}

const char *sdr_mpi_memory_open(const struct sdr_mpi *mpi, int process, int processes)
{
    size_t count = (size_t)processes;
    struct introduction own, *all = NULL;
    unsigned char *seen = NULL, *reads = NULL; /* seen[p]: this process reads p; reads: of all */
    const char *trouble = "no memory for the processes of the job";
    memory.process = process;
    memory.processes = processes;
    if (sdr_allocate(&all, count, sizeof *all, "MPI") != SDR_OK ||
        sdr_allocate(&seen, count, 1, "MPI") != SDR_OK ||
        sdr_allocate(&reads, count, count, "MPI") != SDR_OK ||
        sdr_allocate(&memory.other, count, sizeof *memory.other, "MPI") != SDR_OK)
        goto cleanup;
    introduce(&own);
    trouble = mpi->gather(&own, sizeof own, all);
    for (size_t p = 0; p < count && !trouble; p++) {
        if (p != (size_t)process)
            look_at(&memory.other[p], &all[p]);
        seen[p] = memory.other[p].bytes != NULL;
    }
    if (!trouble)
        trouble = mpi->gather(seen, count, reads);
    for (size_t p = 0; p < count && !trouble; p++)
        memory.other[p].reads = reads[p * count + (size_t)process];
cleanup:
    sdr_release(all);
    sdr_release(seen);
    sdr_release(reads);
    return trouble;
}

void sdr_mpi_memory_begin(struct sdr_pool *pool, bool share)
{
    memory.shares = share && memory.arena.bytes;
    if (memory.shares)
        sdr_pool_share(pool, &memory.arena, SDR_WIRE_SMALL);
}

void sdr_mpi_memory_end(void)
{
    if (memory.arena.bytes)
        sdr_arena_reset(&memory.arena, (size_t)WORDS * WORD);
}

enum sdr_status sdr_mpi_memory_take(uint64_t bytes, unsigned char **at)
{
    bool first = atomic_load(&memory.arena.used) == (size_t)WORDS * WORD;
    *at = memory.shares && first ? sdr_arena_take(&memory.arena, bytes) : NULL;
    if (memory.shares && !*at)
        return sdr_fail(SDR_RUNTIME,
                        "no room for %.1f MB that other processes write: give mpi:share=no",
                        (double)bytes * 1e-6);
    return SDR_OK;
}

unsigned char *sdr_mpi_memory_there(int process)
{
    unsigned char *bytes = memory.other[process].bytes;
    return memory.shares && bytes ? bytes + (size_t)WORDS * WORD : NULL;
}

/* ---- messages ---- */
bool sdr_mpi_memory_lend(const struct sdr_body *body, int process, struct sdr_wire_place *place,
                         atomic_uint **freed)
{
    if (!memory.other[process].reads || !memory.words || !sdr_arena_has(&memory.arena, body->data))
        return false;
    uint32_t word = memory.free[--memory.words];
    place->body = (uint64_t)(body->data - memory.arena.bytes);
    place->freed = (uint64_t)word * WORD;
    *freed = (atomic_uint *)(void *)(memory.arena.bytes + place->freed);
    atomic_store_explicit(*freed, 0, memory_order_relaxed);
    return true;
}

void sdr_mpi_memory_recycle(atomic_uint *freed)
{
    memory.free[memory.words++] = (uint32_t)(((unsigned char *)freed - memory.arena.bytes) / WORD);
}

enum sdr_status sdr_mpi_memory_borrow(struct sdr_pool *pool, int process,
                                      const struct sdr_wire_rest *rest, struct sdr_body **body)
{
    const struct other *other = &memory.other[process];
    const struct sdr_wire_place *place = &rest->place;
    if (!other->bytes || place->body > other->size || rest->bytes > other->size - place->body ||
        place->freed % WORD != 0 || place->freed / WORD - 1 >= WORDS - 1)
        return sdr_fail(SDR_RUNTIME, "process %d sent a message whose body is nowhere", process);
    return sdr_body_elsewhere(pool, other->bytes + place->body, rest->bytes,
                              (atomic_uint *)(void *)(other->bytes + place->freed), body);
}
