/* Labels in a separate file: NPY, IDX, or text with one label per line (numbers or words; a Matrix
   Market "array" of one column is such a text). */
#ifndef SDR_DATA_LABEL_FILE_H
#define SDR_DATA_LABEL_FILE_H

#include "data/data.h"

struct sdr_label_file {
    char *path;   /* owned; NULL: no label file */
    float *value; /* owned: labels, or indices into texts */
    uint64_t count;
    bool is_text;
    struct sdr_dictionary texts; /* is_text */
    uint64_t used;               /* rows that got their label */
};
/* Reads options->labels; without it the label file is empty and rows have no labels. */
enum sdr_status sdr_label_file_read(const struct sdr_data_options *options,
                                    const struct sdr_schema *known, struct sdr_label_file *labels);
/* The same from memory: a member of an archive. `name` is for messages. */
enum sdr_status sdr_label_file_parse(const char *name, const struct sdr_schema *known,
                                     const struct sdr_region *bytes, struct sdr_label_file *labels);
void sdr_label_file_free(struct sdr_label_file *labels);
/* SDR_BAD_DATA unless the numbers of labels and rows agree. `name` is the data file's. Called once:
   a second data file cannot share the labels. */
enum sdr_status sdr_label_file_check(struct sdr_label_file *labels, const char *name,
                                     uint64_t rows);
/* Sets piece->label[at] to the label of the data's row, or marks it as missing. */
enum sdr_status sdr_label_file_put(const struct sdr_label_file *labels, uint64_t row,
                                   struct sdr_piece *piece, uint64_t at);

#endif
