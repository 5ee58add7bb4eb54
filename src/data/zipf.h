/* Document-like sparse rows: Zipf–Mandelbrot document frequencies p ~ 1/(rank + 30)^1.05,
   log-normal lengths, tf-idf values, unit norm; feature numbers are not in frequency order. */
#ifndef SDR_DATA_ZIPF_H
#define SDR_DATA_ZIPF_H

#include "data/generate.h"

struct sdr_zipf {
    uint32_t features, shortest, longest; /* shortest, longest: draws of a row */
    double length;                        /* mean of draws; gives nnz distinct features */
    uint64_t seed;
    struct sdr_alias alias; /* over ranks */
    float *idf;             /* owned, by rank */
    uint32_t *place;        /* owned: feature of a rank */
    uint32_t *rank;         /* owned: rank of a feature */
};
/* nnz: mean number of distinct features per row. */
enum sdr_status sdr_zipf_build(struct sdr_zipf *zipf, uint64_t features, uint64_t nnz,
                               uint64_t seed);
void sdr_zipf_free(struct sdr_zipf *zipf);
/* Scratch bytes, and the maximum of entries, of a row. */
size_t sdr_zipf_scratch(const struct sdr_zipf *zipf);
uint32_t sdr_zipf_most(const struct sdr_zipf *zipf);
/* Fills index, value and count. `stream` is the row's own and can be used afterwards. */
void sdr_zipf_row(const struct sdr_zipf *zipf, struct sdr_stream *stream,
                  struct sdr_generate_row *row);
/* Σ value × weight[rank of the feature] */
double sdr_zipf_score(const struct sdr_zipf *zipf, const struct sdr_generate_row *row,
                      const float *weight);
/* Weights by rank: 30 % are N(0, 1), the others zero; `which` selects the vector. Given away. */
enum sdr_status sdr_zipf_weights(const struct sdr_zipf *zipf, uint64_t which, float **weight);

#endif
