/* Features that occur: see numbering.h. They are bits; the number of one is how many bits are
   before it. */
#include "update/numbering.h"
#include "base/memory.h"
#include "base/thread.h"

#include <stdatomic.h>

enum { LEAVES = 64, BITS = 64 };

struct word {
    _Atomic uint64_t occurs; /* a bit a feature */
    uint32_t before;         /* bits of the words before */
};

struct job {
    const struct sdr_rows *rows;
    const uint32_t *listed;
    uint32_t count;
    struct word *word;
    uint32_t *index;
};

/* Without an instruction that not every CPU has. */
static uint32_t bits_of(uint64_t x)
{
    x -= x >> 1 & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + (x >> 2 & 0x3333333333333333u);
    x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return (uint32_t)(x * 0x0101010101010101u >> 56);
}

static uint64_t bit_of(uint32_t feature)
{
    return (uint64_t)1 << feature % BITS;
}

static void mark(const struct job *job, uint64_t first, uint64_t end)
{
    for (uint64_t i = first; i < end; i++) {
        uint32_t feature = job->rows->index32[i];
        _Atomic uint64_t *occurs = &job->word[feature / BITS].occurs;
        if (!(atomic_load_explicit(occurs, memory_order_relaxed) & bit_of(feature)))
            atomic_fetch_or_explicit(occurs, bit_of(feature), memory_order_relaxed);
    }
}

static void number(const struct job *job, uint64_t first, uint64_t end)
{
    for (uint64_t i = first; i < end; i++) {
        uint32_t feature = job->rows->index32[i];
        const struct word *word = &job->word[feature / BITS];
        uint64_t occurs = atomic_load_explicit(&word->occurs, memory_order_relaxed);
        job->index[i] = word->before + bits_of(occurs & (bit_of(feature) - 1));
    }
}

static enum sdr_status do_leaf(void *context, size_t leaf)
{
    const struct job *job = context;
    uint64_t end = job->count * (leaf + 1) / LEAVES;
    for (uint64_t i = job->count * leaf / LEAVES; i < end; i++) {
        uint64_t row = job->listed ? job->listed[i] : i;
        (job->index ? number : mark)(job, job->rows->start[row], job->rows->start[row + 1]);
    }
    return SDR_OK;
}

/* Fills in `before`, and returns the number of bits. */
static uint32_t count_bits(struct word *word, uint64_t words)
{
    uint32_t count = 0;
    for (uint64_t w = 0; w < words; w++) {
        word[w].before = count;
        count += bits_of(atomic_load_explicit(&word[w].occurs, memory_order_relaxed));
    }
    return count;
}

static void list_features(const struct word *word, uint32_t features, uint32_t *list, uint32_t room)
{
    uint32_t count = 0, other = 0;
    for (uint32_t first = 0; first < features; first += BITS) {
        uint64_t bits = atomic_load_explicit(&word[first / BITS].occurs, memory_order_relaxed);
        if (~bits && first + (uint32_t)__builtin_ctzll(~bits) < features)
            other = first + (uint32_t)__builtin_ctzll(~bits);
        for (; bits; bits &= bits - 1)
            list[count++] = first + (uint32_t)__builtin_ctzll(bits);
    }
    while (count < room)
        list[count++] = other;
}

/* Whether `count` cells and a second index take at most three quarters of the memory of cells for
   all features. */
static bool pays(const struct sdr_rows *rows, uint64_t count, uint64_t cell_bytes)
{
    uint64_t index_bytes = rows->start[rows->count] * sizeof(uint32_t);
    return 4 * (cell_bytes * count + index_bytes) <= 3 * cell_bytes * rows->features;
}

enum sdr_status sdr_numbering_create(struct sdr_numbering *numbering, const struct sdr_rows *rows,
                                     const uint32_t *listed, uint32_t count, uint64_t cell_bytes,
                                     double most, int threads)
{
    uint64_t words = ((uint64_t)rows->features + BITS - 1) / BITS, room;
    uint64_t entries = rows->start[rows->count];
    struct job job = {.rows = rows, .listed = listed, .count = count};
    if (!pays(rows, 0, cell_bytes))
        return SDR_OK;
    SDR_TRY(sdr_allocate(&job.word, words, sizeof *job.word, "numbers of features"));
    enum sdr_status status = sdr_parallel(threads, LEAVES, do_leaf, &job);
    uint32_t found = count_bits(job.word, words);
    room = ((uint64_t)found + SDR_NUMBERS_ALIGN - 1) / SDR_NUMBERS_ALIGN * SDR_NUMBERS_ALIGN;
    if (status != SDR_OK || found > most || !pays(rows, found, cell_bytes) ||
        found == rows->features)
        goto end;
    status = sdr_allocate(&numbering->feature, room, sizeof(uint32_t), "numbers of features");
    if (status == SDR_OK)
        status = sdr_allocate(&numbering->index, entries, sizeof(uint32_t),
                              "a second index of the rows");
    if (status != SDR_OK)
        goto end;
    sdr_large_pages(numbering->index, entries * sizeof(uint32_t));
    list_features(job.word, rows->features, numbering->feature, (uint32_t)room);
    job.index = numbering->index;
    status = sdr_parallel(threads, LEAVES, do_leaf, &job);
    numbering->count = found;
    numbering->rows = *rows;
    numbering->rows.features = found;
    numbering->rows.index32 = numbering->index;
end:
    sdr_release(job.word);
    return status;
}

void sdr_numbering_destroy(struct sdr_numbering *numbering)
{
    sdr_release(numbering->feature);
    sdr_release(numbering->index);
    *numbering = (struct sdr_numbering){0};
}
