/* Sparse rows that look like documents: Zipf–Mandelbrot document frequencies p ~ 1/(rank +
   30)^1.05, log-normal lengths, tf-idf values, unit norm; feature numbers are not in frequency
   order. */
#ifndef SDR_DATA_ZIPF_H
#define SDR_DATA_ZIPF_H

#include "data/generate.h"

struct sdr_zipf {
    uint32_t features, shortest, longest; /* draws of a row */
    double length;                        /* median-free mean of the draws, so that nnz come out */
    uint64_t seed;
    struct sdr_alias alias; /* over ranks */
    float *idf;             /* owned, by rank */
    uint32_t *place;        /* owned: feature of a rank */
    uint32_t *rank;         /* owned: rank of a feature */
};
/* nnz: mean number of distinct features of a row. */
enum sdr_status sdr_zipf_build(struct sdr_zipf *zipf, uint64_t features, uint64_t nnz,
                               uint64_t seed);
void sdr_zipf_free(struct sdr_zipf *zipf);
/* Bytes of scratch, and entries at most, of one row. */
size_t sdr_zipf_scratch(const struct sdr_zipf *zipf);
uint32_t sdr_zipf_most(const struct sdr_zipf *zipf);
/* Fills index, value and count. `stream` is the row's own and goes on being usable. */
void sdr_zipf_row(const struct sdr_zipf *zipf, struct sdr_stream *stream,
                  struct sdr_generate_row *row);
/* Σ value × weight[rank of the feature] */
double sdr_zipf_score(const struct sdr_zipf *zipf, const struct sdr_generate_row *row,
                      const float *weight);
/* Weights by rank, 30 % of them N(0, 1), the others zero; `which` numbers the vector. Given away.
 */
enum sdr_status sdr_zipf_weights(const struct sdr_zipf *zipf, uint64_t which, float **weight);

#endif
