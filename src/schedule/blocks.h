/* Block rotation for rows of two features (Gemulla, Nijkamp, Haas and Sismanis, 2011): features are cut
   into blocks of about the same load, a row lies in the cell of its two blocks, and the cells of a round
   have no block in common, so that they can be trained on at the same time. Rounds are those of a
   tournament in which every block meets every other once. */
#ifndef SDR_SCHEDULE_BLOCKS_H
#define SDR_SCHEDULE_BLOCKS_H

#include "base/fail.h"
#include "kind/rows.h"

enum {
    SDR_CELLS = 16,              /* of a round */
    SDR_BLOCKS = 2 * SDR_CELLS,  /* of features */
    SDR_ROUNDS = SDR_BLOCKS - 1, /* in which all cells are met */
};

/* Gives every feature its block, the busiest first, each to the block with the least work so far. */
enum sdr_status sdr_blocks_assign(const struct sdr_rows *rows, const uint32_t *row, uint32_t count,
                                  uint8_t *block);
/* The cell of two blocks: round · SDR_CELLS + its place there. */
uint32_t sdr_blocks_cell(uint32_t one, uint32_t two);

#endif
