/* Shared by all generators: writes a table of rows in the format of the file's extension, in
   parallel, with bytes that depend only on the options; and writes the ground truth beside it.

   Row i is a function of (seed, i), and the truth of the seed and the shape. So a longer file
   begins with the rows of a shorter one, and a test set can be cut from its tail. */
#ifndef SDR_DATA_GENERATE_H
#define SDR_DATA_GENERATE_H

#include "base/memory.h"
#include "base/rng.h"
#include "base/text.h"
#include "kind/generator.h"

/* The counter `a` of a generator's streams: row numbers, and this for everything else. */
#define SDR_TRUTH_STREAM ((uint64_t)1 << 63)
#define SDR_TRIAL_STREAM ((uint64_t)1 << 62)

struct sdr_generate_row {
    uint32_t *index; /* sparse: increasing and distinct; unused in dense rows */
    float *value;    /* sparse: count values; dense: all features */
    uint32_t count;
    float label;
    void *scratch; /* of this thread: zero at first, then as the last row left it */
};
enum sdr_generate_label { SDR_LABEL_SIGN, SDR_LABEL_CLASS, SDR_LABEL_NUMBER };
struct sdr_generate_table {
    uint64_t rows;
    uint32_t features;
    uint32_t most;  /* maximum of entries in a sparse row; 0: rows are dense */
    size_t scratch; /* bytes */
    enum sdr_generate_label labels;
    bool whole;   /* values are integers, else five decimals */
    bool triples; /* .txt means lines "row column value", counted from 1 */
    void (*make)(const void *truth, uint64_t row, struct sdr_generate_row *out);
    const void *truth;
};
/* Format by extension: .svm .libsvm .txt or none: LIBSVM; .csv; .npy, with PATH.labels.npy. */
enum sdr_status sdr_generate_table(const struct sdr_generate_table *table, const char *path);

/* Copies the options, replaces 0 features and nnz by these defaults, and refuses invalid values;
   most: the maximum of features. */
enum sdr_status sdr_generate_complete(const struct sdr_generate_options *given, uint64_t features,
                                      uint64_t nnz, uint64_t most,
                                      struct sdr_generate_options *options);
/* For generators whose noise is a fraction of the labels; SDR_USAGE if it exceeds 1. */
enum sdr_status sdr_generate_share(const struct sdr_generate_options *options);
/* Starts the truth: an open JSON object with the kind and the options. */
void sdr_truth_begin(struct sdr_text *text, const char *kind,
                     const struct sdr_generate_options *options);
void sdr_truth_number(struct sdr_text *text, const char *key, double value);
/* Adds the non-zero weights as [[feature, weight], …], features counted from 0; nothing if there
   are more than 100 000. `place` maps a weight to its feature; NULL: identity. */
void sdr_truth_weights(struct sdr_text *text, const char *key, const float *weight, size_t count,
                       const uint32_t *place);
/* Closes the object and writes PATH.truth.json; frees the text. */
enum sdr_status sdr_truth_write(struct sdr_text *text, const char *path);

/* PATH followed by an ending; given away. */
enum sdr_status sdr_path_with(const char *path, const char *ending, char **result);
/* The file name's extension without its dot, "" if none. Borrowed. */
const char *sdr_path_extension(const char *path);

/* Alias method: draws from a discrete distribution in constant time (Walker 1977, Vose 1991). */
struct sdr_alias {
    uint32_t count;
    uint32_t *other;  /* owned */
    uint32_t *chance; /* owned: probability of keeping the column, in units of 2^−32 */
};
enum sdr_status sdr_alias_build(struct sdr_alias *alias, const double *weight, uint32_t count);
void sdr_alias_free(struct sdr_alias *alias);
static inline uint32_t sdr_alias_draw(const struct sdr_alias *alias, struct sdr_stream *stream)
{
    uint32_t column = (uint32_t)(((uint64_t)sdr_stream_u32(stream) * alias->count) >> 32);
    return sdr_stream_u32(stream) < alias->chance[column] ? column : alias->other[column];
}

#endif
