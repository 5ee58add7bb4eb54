#include "schedule/blocks.h"
#include "base/memory.h"

#include <stdlib.h>

struct load {
    uint64_t rows;
    uint32_t feature;
};

static int by_load(const void *a, const void *b)
{
    const struct load *x = a, *y = b;
    if (x->rows != y->rows)
        return x->rows < y->rows ? 1 : -1;
    return x->feature < y->feature ? -1 : 1;
}

enum sdr_status sdr_blocks_assign(const struct sdr_rows *rows, const uint32_t *row, uint32_t count,
                                  uint8_t *block)
{
    struct load *load;
    uint64_t work[SDR_BLOCKS] = {0};
    SDR_TRY(sdr_allocate(&load, rows->features, sizeof *load, "blocks of features"));
    for (uint32_t j = 0; j < rows->features; j++)
        load[j].feature = j;
    for (uint32_t i = 0; i < count; i++) {
        struct sdr_sparse_row r = sdr_sparse_row(rows, row ? row[i] : i);
        for (uint32_t n = 0; n < r.n; n++)
            load[sdr_row_index(&r, n)].rows++;
    }
    qsort(load, rows->features, sizeof *load, by_load);
    for (uint32_t i = 0; i < rows->features; i++) {
        uint8_t least = 0;
        for (uint8_t b = 1; b < SDR_BLOCKS; b++)
            least = work[b] < work[least] ? b : least;
        block[load[i].feature] = least;
        work[least] += load[i].rows + 1; /* the 1 spreads features without rows too */
    }
    sdr_release(load);
    return SDR_OK;
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
