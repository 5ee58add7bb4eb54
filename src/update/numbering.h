/* Features that occur, numbered 0, 1, …. Wide data has many features that no row contains: cells (cells.c) are for those that
   occur, which takes less memory, and less of the caches. A cell is found by its number, so rows have a second index. */
#ifndef SDR_UPDATE_NUMBERING_H
#define SDR_UPDATE_NUMBERING_H

#include "base/fail.h"
#include "kind/rows.h"

enum { SDR_NUMBERS_ALIGN = 16 }; /* numbers are listed in multiples of it */

struct sdr_numbering {
    uint32_t count;
    uint32_t *feature;    /* owned: of each number, increasing; the list is filled up with a feature that does not occur */
    uint32_t *index;      /* owned: the number of each entry of the rows */
    struct sdr_rows rows; /* the same rows with numbers in place of features; NULL pointers: not numbered */
};

/* Numbers the features of some rows, with 32-bit indices: `listed` of them, or rows 0 … count − 1. `numbering` is zero before,
   and stays so if the second index takes more memory than `bytes` for every feature that does not occur. */
enum sdr_status sdr_numbering_create(struct sdr_numbering *numbering, const struct sdr_rows *rows, const uint32_t *listed,
                                     uint32_t count, uint64_t bytes, int threads);
void sdr_numbering_destroy(struct sdr_numbering *numbering);

#endif
