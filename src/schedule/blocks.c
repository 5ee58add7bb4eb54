#include "schedule/blocks.h"
#include "base/memory.h"

#include <stdlib.h>

/* Neighbouring features whose values of four bytes share a cache line, and how many rows touch
   them. */
enum { TOGETHER = 16 };
struct load {
    uint64_t rows;
    uint32_t first, count;
};

static int by_load(const void *a, const void *b)
{
    const struct load *x = a, *y = b;
    if (x->rows != y->rows)
        return x->rows < y->rows ? 1 : -1;
    return x->first < y->first ? -1 : 1;
}

/* Features in groups of TOGETHER, so that no two workers write to one line; those of a group too
   large for one block are groups by themselves. touched[j]: rows with feature j. Returns the number
   of groups. */
static uint32_t make_groups(const uint32_t *touched, uint32_t features, struct load *group)
{
    uint64_t total = 0;
    uint32_t groups = 0;
    for (uint32_t j = 0; j < features; j++)
        total += touched[j];
    for (uint32_t j = 0, count; j < features; j += count) {
        uint64_t rows = 0;
        count = features - j < TOGETHER ? features - j : TOGETHER;
        for (uint32_t i = 0; i < count; i++)
            rows += touched[j + i];
        if (rows <= total / SDR_BLOCKS && features >= SDR_BLOCKS * TOGETHER) {
            group[groups++] = (struct load){rows, j, count};
            continue;
        }
        for (uint32_t i = 0; i < count; i++)
            group[groups++] = (struct load){touched[j + i], j + i, 1};
    }
    return groups;
}

static void assign_groups(struct load *group, uint32_t groups, uint8_t *block)
{
    uint64_t work[SDR_BLOCKS] = {0};
    qsort(group, groups, sizeof *group, by_load);
    for (uint32_t i = 0; i < groups; i++) {
        uint8_t least = 0;
        for (uint8_t b = 1; b < SDR_BLOCKS; b++)
            least = work[b] < work[least] ? b : least;
        for (uint32_t k = 0; k < group[i].count; k++)
            block[group[i].first + k] = least;
        /* the count spreads features without rows too */
        work[least] += group[i].rows + group[i].count;
    }
}

/* A feature's rows are spread over the cells of its block, one for every other block. */
static double repeats_of(const struct sdr_rows *rows, const uint32_t *row, uint32_t count,
                         const uint32_t *touched)
{
    double sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct sdr_sparse_row r = sdr_sparse_row(rows, row ? row[i] : i);
        uint32_t most = 0;
        for (uint32_t n = 0; n < r.n; n++) {
            uint32_t times = touched[sdr_row_index(&r, n)];
            most = times > most ? times : most;
        }
        sum += most;
    }
    return count ? sum / count / SDR_BLOCKS : 0;
}

enum sdr_status sdr_blocks_assign(const struct sdr_rows *rows, const uint32_t *row, uint32_t count,
                                  uint8_t *block, double *repeats)
{
    uint32_t *touched = NULL;
    struct load *group = NULL;
    enum sdr_status status = SDR_OK;
    SDR_CHECK(sdr_allocate(&touched, rows->features, sizeof *touched, "blocks of features"));
    SDR_CHECK(sdr_allocate(&group, rows->features, sizeof *group, "blocks of features"));
    for (uint32_t i = 0; i < count; i++) {
        struct sdr_sparse_row r = sdr_sparse_row(rows, row ? row[i] : i);
        for (uint32_t n = 0; n < r.n; n++)
            touched[sdr_row_index(&r, n)]++;
    }
    assign_groups(group, make_groups(touched, rows->features, group), block);
    *repeats = repeats_of(rows, row, count, touched);
cleanup:
    sdr_release(touched);
    sdr_release(group);
    return status;
}

/* Round-robin tournament by the circle method. The last block meets block r in round r. Of the
   others, blocks a and b meet in the round r with a + b ≡ 2r (mod SDR_ROUNDS). The diagonal cell of
   a block is the one in which it meets the last block. */
uint32_t sdr_blocks_cell(uint32_t one, uint32_t two)
{
    enum { LAST = SDR_BLOCKS - 1, HALF = SDR_CELLS /* the inverse of 2 modulo SDR_ROUNDS */ };
    if (one == LAST || two == LAST) {
        uint32_t other = one == LAST ? two : one;
        return other == LAST ? 0 : other * SDR_CELLS;
    }
    uint32_t round = (one + two) * HALF % SDR_ROUNDS;
    uint32_t far = (one + SDR_ROUNDS - round) % SDR_ROUNDS;
    return round * SDR_CELLS + (far < SDR_CELLS ? far : SDR_ROUNDS - far);
}
