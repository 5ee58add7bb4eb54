/* Results of column_suspects.c, reported by column_notes.c. */
#ifndef SDR_DATA_COLUMN_NOTES_H
#define SDR_DATA_COLUMN_NOTES_H

#include "data/data.h"

/* Facts about a column. The first four are true until a row disproves them, and final after
   sdr_suspects_find. */
struct sdr_suspect {
    bool constant, counts, copies, determines; /* copies, determines: the label */
    bool category;
    uint64_t present;      /* rows with a non-zero number or a text */
    uint64_t sum, squares; /* of these rows' class numbers */
    float first;           /* constant: its value */
    double start;          /* counts: the number of row 0 */
    uint32_t values;       /* distinct numbers so far, or distinct texts */
    uint32_t minor;        /* values whose label is not the most frequent one */
    uint32_t text;         /* category: one of its texts */
};
/* Fills one suspect per column of the schema; the array is zeroed by the caller. */
enum sdr_status sdr_suspects_find(struct sdr_data *data, struct sdr_suspect *suspect);

#endif
