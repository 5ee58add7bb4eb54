/* Features that occur, numbered 0, 1, …. Wide data has many features that no row contains: cells
   (cells.c) are for those that occur, which takes less memory, and less of the caches. A cell is
   found by its number, so rows have a second index. */
#ifndef SDR_UPDATE_NUMBERING_H
#define SDR_UPDATE_NUMBERING_H

#include "base/fail.h"
#include "kind/rows.h"

enum { SDR_NUMBERS_ALIGN = 16 }; /* numbers are listed in multiples of it */

struct sdr_numbering {
    uint32_t count;
    /* Owned: the feature of each number, increasing. Up to a multiple of 16 the list is filled up
       with a feature that does not occur. */
    uint32_t *feature;
    uint32_t *index;      /* owned: the number of each entry of the rows; NULL: not numbered */
    struct sdr_rows rows; /* the same rows with numbers in place of features */
};

/* Numbers the features of `count` rows with 32-bit indices: those listed, or the first ones. A
   feature has cells of cell_bytes in all. `numbering` is zero before, and stays so if every feature
   occurs, if more than `most` do, or if numbers and a second index do not save a quarter of the
   cells' memory. After a failure it is to be destroyed. */
enum sdr_status sdr_numbering_create(struct sdr_numbering *numbering, const struct sdr_rows *rows,
                                     const uint32_t *listed, uint32_t count, uint64_t cell_bytes,
                                     double most, int threads);
void sdr_numbering_destroy(struct sdr_numbering *numbering);

#endif
