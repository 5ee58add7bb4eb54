#include "update/values.h"
#include "base/memory.h"

#include <string.h>

enum sdr_status sdr_marks_create(struct sdr_marks *marks, uint32_t features)
{
    marks->stamp = 0;
    return sdr_allocate(&marks->mark, features, sizeof *marks->mark, "a worker's view");
}

void sdr_marks_free(struct sdr_marks *marks)
{
    sdr_release(marks->mark);
    *marks = (struct sdr_marks){0};
}

static inline void move(float *value, float *packed, uint64_t count, enum sdr_move how)
{
    for (uint64_t k = 0; k < count; k++)
        if (how == SDR_GATHER)
            packed[k] = value[k];
        else
            value[k] = how == SDR_ADD ? value[k] + packed[k] : packed[k];
}

/* With the columns and the direction known the loop over entries has few branches. */
static inline __attribute__((always_inline)) uint64_t move_rows(
    const struct sdr_marks *marks, const struct sdr_batch *batch, uint32_t first, uint32_t end,
    uint32_t cols, float *value, float *packed, uint64_t most, enum sdr_move how)
{
    uint64_t count = 0;
    uint32_t stamp = marks->stamp, *mark = marks->mark;
    for (uint32_t i = 0; i < batch->count; i++) {
        struct sdr_sparse_row r = sdr_sparse_row(batch->rows, batch->row[i]);
        for (uint32_t n = 0; n < r.n; n++) {
            uint32_t j = sdr_row_index(&r, n);
            if (mark[j] == stamp || j < first || j >= end)
                continue;
            mark[j] = stamp;
            if (count + cols <= most)
                move(value + (size_t)j * cols, packed + count, cols, how);
            count += cols;
        }
    }
    return count;
}

/* The rows of one block that belong to the features of the batch. */
static uint64_t move_touched(struct sdr_marks *marks, const struct sdr_batch *batch, uint32_t first,
                             uint32_t end, uint32_t cols, float *value, float *packed,
                             uint64_t most, enum sdr_move how)
{
    uint64_t count;
    marks->stamp++;
    if (cols == 1 && how == SDR_GATHER)
        count = move_rows(marks, batch, first, end, 1, value, packed, most, SDR_GATHER);
    else if (cols == 1 && how == SDR_SCATTER)
        count = move_rows(marks, batch, first, end, 1, value, packed, most, SDR_SCATTER);
    else
        count = move_rows(marks, batch, first, end, cols, value, packed, most, how);
    if (marks->stamp == UINT32_MAX) {
        memset(marks->mark, 0, batch->rows->features * sizeof *marks->mark);
        marks->stamp = 0;
    }
    return count;
}

static bool by_rows(const struct sdr_block *block, const struct sdr_batch *batch)
{
    return batch && !batch->rows->dense && block->per_feature;
}

/* Values of one block within a span. */
static uint64_t move_block(const struct sdr_layout *layout, int b, struct sdr_marks *marks,
                           const struct sdr_batch *batch, struct sdr_span span, float *w,
                           float *packed, uint64_t most, enum sdr_move how)
{
    const struct sdr_block *block = &layout->block[b];
    float *value = w ? w + block->offset : NULL; /* NULL: values are counted, none is moved */
    uint32_t first, end;
    sdr_rows_within(block, span, &first, &end);
    if (first < end && by_rows(block, batch))
        return move_touched(marks, batch, first, end, block->cols, value, packed, most, how);
    uint64_t count = (uint64_t)(end - first) * block->cols;
    if (count <= most)
        move(value + (size_t)first * block->cols, packed, count, how);
    return count;
}

uint64_t sdr_move_values(const struct sdr_layout *layout, struct sdr_marks *marks,
                         const struct sdr_batch *batch, struct sdr_span span, float *w,
                         float *packed, uint64_t most, enum sdr_move how)
{
    uint64_t count = 0;
    for (int b = 0; b < layout->blocks; b++)
        count += move_block(layout, b, marks, batch, span, w, packed + count,
                            most > count ? most - count : 0, how);
    return count;
}

void sdr_step_describe(const struct sdr_layout *layout, struct sdr_marks *marks,
                       const struct sdr_batch *batch, struct sdr_span span, const float *change,
                       struct sdr_part *part, struct sdr_update *update)
{
    *update = (struct sdr_update){.sense = SDR_STEP, .batch = *batch, .part = part};
    for (int b = 0; b < layout->blocks; b++) {
        const struct sdr_block *block = &layout->block[b];
        uint32_t first, end;
        sdr_rows_within(block, span, &first, &end);
        if (first == end)
            continue;
        /* With room for none nothing is moved: rows are counted. */
        bool rows = by_rows(block, batch);
        uint64_t values = move_block(layout, b, marks, batch, span, NULL, NULL, 0, SDR_GATHER);
        part[update->parts++] =
            (struct sdr_part){.block = b,
                              .form = rows ? SDR_TOUCHED : SDR_DENSE,
                              .count = (uint32_t)(rows ? values / block->cols : values),
                              .first = rows ? 0 : first,
                              .value = change};
        change += values;
    }
}

enum sdr_status sdr_step_add(const struct sdr_layout *layout, struct sdr_marks *marks,
                             const struct sdr_update *update, struct sdr_span span, float *w)
{
    for (int p = 0; p < update->parts; p++) {
        const struct sdr_part *part = &update->part[p];
        const struct sdr_block *block = &layout->block[part->block];
        uint32_t first, end;
        sdr_rows_within(block, span, &first, &end);
        bool touched = part->form == SDR_TOUCHED;
        uint64_t values = touched ? (uint64_t)part->count * block->cols : part->count;
        bool fits = touched ? by_rows(block, &update->batch)
                            : part->form == SDR_DENSE && part->first == first &&
                                  values == (uint64_t)(end - first) * block->cols;
        if (touched && fits) /* counted first: a step is added whole or not at all */
            fits = move_block(layout, part->block, marks, &update->batch, span, NULL, NULL, 0,
                              SDR_GATHER) == values;
        if (!fits)
            return sdr_fail(SDR_BAD_FILE, "a message cannot be read: other values than the batch "
                                          "touches");
        if (touched)
            move_touched(marks, &update->batch, first, end, block->cols, w + block->offset,
                         (float *)part->value, values, SDR_ADD);
        else
            for (uint64_t i = 0; i < values; i++)
                w[block->offset + (uint64_t)first * block->cols + i] += part->value[i];
    }
    return SDR_OK;
}
