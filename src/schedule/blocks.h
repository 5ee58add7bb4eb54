/* Block rotation for rows of two features (Gemulla, Nijkamp, Haas and Sismanis, 2011). Features are
   cut into blocks of about equal load; a row lies in the cell of its two blocks. The cells of a
   round have no block in common and can be trained in parallel. Rounds follow a round-robin
   tournament, in which every block meets every other once. */
#ifndef SDR_SCHEDULE_BLOCKS_H
#define SDR_SCHEDULE_BLOCKS_H

#include "base/fail.h"
#include "kind/rows.h"

enum {
    SDR_CELLS = 16,              /* cells of a round */
    SDR_BLOCKS = 2 * SDR_CELLS,  /* blocks of features */
    SDR_ROUNDS = SDR_BLOCKS - 1, /* rounds that visit every cell once */
};

/* Assigns features to blocks, in groups of neighbours: the busiest first, each to the block with
   the least load so far. *repeats: the mean over all rows of t / SDR_BLOCKS, where t rows
   touch the busier feature of the row: about as many rows of its cell have that feature too. */
enum sdr_status sdr_blocks_assign(const struct sdr_rows *rows, const uint32_t *row, uint32_t count,
                                  uint8_t *block, double *repeats);
/* The cell of two blocks: round · SDR_CELLS + its index in the round. */
uint32_t sdr_blocks_cell(uint32_t one, uint32_t two);

#endif
