/* Labels that stand in a file of their own: NPY, IDX, or text with one label a line (numbers, or
   any words; a Matrix Market "array" of one column is such a text). */
#ifndef SDR_DATA_LABEL_FILE_H
#define SDR_DATA_LABEL_FILE_H

#include "data/data.h"

struct sdr_label_file {
    char *path;   /* owned; NULL: there is no label file */
    float *value; /* owned: the label, or the number of its text */
    uint64_t count;
    bool is_text;
    struct sdr_dictionary texts; /* is_text */
    uint64_t used;               /* rows that were given their label */
};
/* Reads options->labels; without one, an empty label file whose rows have no labels. */
enum sdr_status sdr_label_file_read(const struct sdr_data_options *options,
                                    const struct sdr_schema *known, struct sdr_label_file *labels);
/* The same from bytes already in memory: a member of an archive. `name` is for messages. */
enum sdr_status sdr_label_file_take(const char *name, const struct sdr_schema *known,
                                    const struct sdr_region *bytes, struct sdr_label_file *labels);
void sdr_label_file_free(struct sdr_label_file *labels);
/* SDR_BAD_DATA unless there are as many labels as rows. `name` is the data file's. Called once: a
   second data file cannot share the labels. */
enum sdr_status sdr_label_file_check(struct sdr_label_file *labels, const char *name,
                                     uint64_t rows);
/* Sets piece->label[at] to the label of the data's row, or marks it as lacking. */
enum sdr_status sdr_label_file_put(const struct sdr_label_file *labels, uint64_t row,
                                   struct sdr_piece *piece, uint64_t at);

#endif
