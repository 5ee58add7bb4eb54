/* Rows: the examples, as seen by kernels and models. */
#ifndef SDR_KIND_ROWS_H
#define SDR_KIND_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sparse rows (CSR) have start, index, value; dense rows have dense. All pointers are borrowed. */
struct sdr_rows {
    uint64_t count;
    uint32_t features;
    const uint64_t *start;   /* sparse: count + 1 offsets; NULL: dense */
    const uint16_t *index16; /* sparse: one of index16 (features ≤ 65536) and index32 is set; */
    const uint32_t *index32; /*         distinct and increasing within a row                  */
    const float *value;
    const float *dense; /* dense[row * stride + feature] */
    uint64_t stride;
    const float *label;  /* raw labels; NULL: none */
    const float *weight; /* NULL: all one */
    /* Set if the rows lie on disk (call sdr_rows_release after a pass); else NULL. */
    const struct sdr_data *streams;
};
/* A pass has finished with rows [first, end): streamed rows release their memory. */
void sdr_rows_release(const struct sdr_rows *rows, uint64_t first, uint64_t end);

/* One sparse row. */
struct sdr_sparse_row {
    const uint16_t *index16; /* one of the two */
    const uint32_t *index32;
    const float *x;
    uint32_t n;
};
static inline struct sdr_sparse_row sdr_sparse_row(const struct sdr_rows *rows, uint64_t row)
{
    uint64_t first = rows->start[row];
    return (struct sdr_sparse_row){rows->index16 ? rows->index16 + first : NULL,
                                   rows->index32 ? rows->index32 + first : NULL,
                                   rows->value + first, (uint32_t)(rows->start[row + 1] - first)};
}
static inline uint32_t sdr_row_index(const struct sdr_sparse_row *row, uint32_t i)
{
    return row->index16 ? row->index16[i] : row->index32[i];
}
static inline const float *sdr_dense_row(const struct sdr_rows *rows, uint64_t row)
{
    return rows->dense + row * rows->stride;
}

#endif
