/* Results of column_suspects.c, reported by column_notes.c. */
#ifndef SDR_DATA_COLUMN_NOTES_H
#define SDR_DATA_COLUMN_NOTES_H

#include "data/data.h"

/* What is known of a column. The first four are true until a row disproves them, and final after
   sdr_suspects_find. */
struct sdr_suspect {
    bool constant, counts, copies, determines; /* the last two: the label */
    bool category;
    uint64_t present;      /* rows with a number other than 0, or with a text */
    uint64_t sum, squares; /* of the class numbers of these rows */
    float first;           /* constant: the value */
    double start;          /* counts: the number of row 0 */
    uint32_t values;       /* number: different ones so far; category: different texts */
    uint32_t minor;        /* values whose label is not the most frequent one */
    uint32_t text;         /* category: one of its texts */
};
/* Fills one suspect for every column of the schema; suspect is zeroed. */
enum sdr_status sdr_suspects_find(struct sdr_data *data, struct sdr_suspect *suspect);

#endif
