/* Parts of updates multiplied out the plain way, in double: what src/update is compared with. */
#ifndef TESTS_CONFORM_REFERENCE_H
#define TESTS_CONFORM_REFERENCE_H

#include "conform/numbers.h"

#include "update/update.h"

#include <stdlib.h>

/* Value j of a row, less its center. */
static inline double example_value(const struct sdr_rows *rows, uint32_t row, uint32_t j,
                                   const float *center)
{
    double x = rows->dense ? sdr_dense_row(rows, row)[j] : 0;
    if (!rows->dense) {
        struct sdr_sparse_row r = sdr_sparse_row(rows, row);
        for (uint32_t n = 0; n < r.n; n++)
            x += sdr_row_index(&r, n) == j ? r.x[n] : 0;
    }
    return x - (center ? center[j] : 0);
}

static inline double factor_u(const struct sdr_part *part, uint32_t i, uint32_t k, uint32_t cols)
{
    if (part->index)
        return part->index[i] == k ? part->value[i] : 0;
    return part->value[(size_t)i * cols + k];
}

static inline double factor_v(const struct sdr_part *part, const struct sdr_batch *batch,
                              uint32_t i, uint32_t j, uint32_t rows, const float *center)
{
    if (part->right == SDR_ONES)
        return 1;
    if (part->right == SDR_STORED)
        return part->v[(size_t)i * rows + j];
    return example_value(batch->rows, batch->row[i], j, center);
}

/* Adds a part to g, and the sizes of what was added to `size`; both as long as the values. size may
   be NULL. */
static inline void reference_add(const struct sdr_layout *layout, const struct sdr_part *part,
                                 const struct sdr_batch *batch, const float *center, double *g,
                                 double *size)
{
    const struct sdr_block *block = &layout->block[part->block];
    uint32_t cols = block->cols;
    assert_true(part->block >= 0 && part->block < layout->blocks);
    for (uint32_t i = 0; i < part->count; i++) {
        if (part->form == SDR_DENSE) {
            size_t at = block->offset + (size_t)part->first * cols + i;
            assert_true((size_t)part->first * cols + i < (size_t)block->rows * cols);
            g[at] += part->value[i];
            if (size)
                size[at] += fabs(part->value[i]);
            continue;
        }
        assert_int_not_equal(part->form, SDR_TOUCHED);
        for (uint32_t j = 0; j < block->rows; j++) {
            double v = part->form == SDR_ROWS ? part->index[i] == j
                                              : factor_v(part, batch, i, j, block->rows, center);
            for (uint32_t k = 0; k < cols && v != 0; k++) {
                double u = part->form == SDR_ROWS ? part->value[(size_t)i * cols + k]
                                                  : factor_u(part, i, k, cols);
                g[block->offset + (size_t)j * cols + k] += v * u;
                if (size)
                    size[block->offset + (size_t)j * cols + k] += fabs(v * u);
            }
        }
    }
}

/* Memory of exactly this size, so that a sanitizer sees who goes beyond it. */
static inline void *exactly(size_t bytes)
{
    void *memory = calloc(bytes ? bytes : 1, 1);
    assert_non_null(memory);
    return memory;
}

#endif
