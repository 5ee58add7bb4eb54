/* What the generators share: a table of rows written in the format of the file's extension, in
   parallel but with bytes that depend on nothing but the options; and the truth beside it.

   Row i is a function of (seed, i) alone, and the truth of the seed and the shape alone: a longer
   file begins with the rows of a shorter one, so that a test set can be cut from its tail. */
#ifndef SDR_DATA_GENERATE_H
#define SDR_DATA_GENERATE_H

#include "base/memory.h"
#include "base/rng.h"
#include "base/text.h"
#include "kind/generator.h"

/* The counter `a` of a generator's streams: rows, and everything that is not a row. */
#define SDR_TRUTH_STREAM ((uint64_t)1 << 63)
#define SDR_TRIAL_STREAM ((uint64_t)1 << 62)

struct sdr_generate_row {
    uint32_t *index; /* sparse: increasing and distinct; unused in dense rows */
    float *value;    /* sparse: count values; dense: all features */
    uint32_t count;
    float label;
    void *scratch; /* of this thread: zeros at first, and then what the last row left */
};
enum sdr_generate_label { SDR_LABEL_SIGN, SDR_LABEL_CLASS, SDR_LABEL_NUMBER };
struct sdr_generate_table {
    uint64_t rows;
    uint32_t features;
    uint32_t most;  /* entries of a sparse row at most; 0: rows are dense */
    size_t scratch; /* bytes */
    enum sdr_generate_label labels;
    bool whole;   /* values are whole numbers, else five decimals */
    bool triples; /* .txt means "row column value" lines, counted from 1 */
    void (*make)(const void *truth, uint64_t row, struct sdr_generate_row *out);
    const void *truth;
};
/* .svm .libsvm .txt or no extension: LIBSVM; .csv; .npy with the labels in PATH.labels.npy. */
enum sdr_status sdr_generate_table(const struct sdr_generate_table *table, const char *path);

/* Copies the options, with features and nnz put where they are 0, and refuses what no generator can
   serve; most is the largest number of features. */
enum sdr_status sdr_generate_settle(const struct sdr_generate_options *given, uint64_t features,
                                    uint64_t nnz, uint64_t most,
                                    struct sdr_generate_options *options);
/* For generators whose noise is a share of the labels; SDR_USAGE if it is more than 1. */
enum sdr_status sdr_generate_share(const struct sdr_generate_options *options);
/* Begins the truth: an open JSON object with the kind and the options. */
void sdr_truth_begin(struct sdr_text *text, const char *kind,
                     const struct sdr_generate_options *options);
void sdr_truth_number(struct sdr_text *text, const char *key, double value);
/* The non-zeros of count weights as [[feature, weight], …], feature counted from 0; nothing if
   there are more than 100 000. `place` gives the feature of a weight; NULL: its own number. */
void sdr_truth_weights(struct sdr_text *text, const char *key, const float *weight, size_t count,
                       const uint32_t *place);
/* Closes the object and writes PATH.truth.json; frees the text. */
enum sdr_status sdr_truth_write(struct sdr_text *text, const char *path);

/* PATH and an ending; given away. */
enum sdr_status sdr_path_with(const char *path, const char *ending, char **result);
/* The extension of the file's name without its dot, "" if none. Borrowed. */
const char *sdr_path_extension(const char *path);

/* Drawing from a discrete distribution in constant time (Walker 1977, Vose 1991). */
struct sdr_alias {
    uint32_t count;
    uint32_t *other;  /* owned */
    uint32_t *chance; /* owned: of keeping the column, in 2^−32 */
};
enum sdr_status sdr_alias_build(struct sdr_alias *alias, const double *weight, uint32_t count);
void sdr_alias_free(struct sdr_alias *alias);
static inline uint32_t sdr_alias_draw(const struct sdr_alias *alias, struct sdr_stream *stream)
{
    uint32_t column = (uint32_t)(((uint64_t)sdr_stream_u32(stream) * alias->count) >> 32);
    return sdr_stream_u32(stream) < alias->chance[column] ? column : alias->other[column];
}

#endif
