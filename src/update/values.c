#include "update/values.h"
#include "base/memory.h"

#include <string.h>

enum sdr_status sdr_marks_create(struct sdr_marks *marks, uint32_t features)
{
    *marks = (struct sdr_marks){0};
    SDR_TRY(sdr_allocate(&marks->mark, features, sizeof *marks->mark, "a worker's view"));
    /* One more: see list_row. */
    return sdr_allocate(&marks->touched, (size_t)features + 1, sizeof *marks->touched,
                        "a worker's view");
}

void sdr_marks_free(struct sdr_marks *marks)
{
    sdr_release(marks->mark);
    sdr_release(marks->touched);
    *marks = (struct sdr_marks){0};
}

/* Appends the features of a row that are not marked yet to `count` others. Every feature is
   written, and kept if new: that branch cannot be predicted, and a misprediction costs more than
   a store. */
#define LIST_ROW(bits)                                                                             \
    static inline uint32_t list_row##bits(const struct sdr_marks *marks,                           \
                                          const uint##bits##_t *index, uint32_t n, uint32_t count) \
    {                                                                                              \
        uint32_t stamp = marks->stamp, *mark = marks->mark, *touched = marks->touched;             \
        for (uint32_t i = 0; i < n; i++) {                                                         \
            uint32_t j = index[i];                                                                 \
            touched[count] = j;                                                                    \
            count += mark[j] != stamp;                                                             \
            mark[j] = stamp;                                                                       \
        }                                                                                          \
        return count;                                                                              \
    }
LIST_ROW(16)
LIST_ROW(32)

/* Shuffled rows lie anywhere: their features are prefetched a few rows ahead. */
enum { AHEAD = 6 };
static inline __attribute__((always_inline)) void fetch_index(const struct sdr_rows *rows,
                                                              uint32_t row)
{
    struct sdr_sparse_row r = sdr_sparse_row(rows, row);
    if (r.index16)
        sdr_fetch(r.index16, r.n * sizeof(uint16_t));
    else
        sdr_fetch(r.index32, r.n * sizeof(uint32_t));
}

/* Lists the features first … end − 1 of a batch in marks->touched, in the order of their first
   occurrence. */
static uint32_t list_touched(struct sdr_marks *marks, const struct sdr_batch *batch, uint32_t first,
                             uint32_t end)
{
    uint32_t count = 0;
    if (++marks->stamp == 0) { /* stamps wrapped around */
        memset(marks->mark, 0, batch->rows->features * sizeof *marks->mark);
        marks->stamp = 1;
    }
    for (uint32_t i = 0; i < batch->count; i++) {
        if (i + AHEAD < batch->count)
            fetch_index(batch->rows, batch->row[i + AHEAD]);
        struct sdr_sparse_row r = sdr_row_within(batch->rows, batch->row[i], first, end);
        count = r.index16 ? list_row16(marks, r.index16, r.n, count)
                          : list_row32(marks, r.index32, r.n, count);
    }
    return count;
}

static inline void move(float *value, float *packed, uint64_t count, enum sdr_move how)
{
    for (uint64_t k = 0; k < count; k++)
        if (how == SDR_GATHER)
            packed[k] = value[k];
        else
            value[k] = how == SDR_ADD ? value[k] + packed[k] : packed[k];
}

/* Moves the first `count` listed rows. */
static inline __attribute__((always_inline)) void move_listed(const uint32_t *touched,
                                                              uint64_t count, uint32_t cols,
                                                              float *value, float *packed,
                                                              enum sdr_move how)
{
    for (uint64_t i = 0; i < count; i++)
        move(value + (size_t)touched[i] * cols, packed + i * cols, cols, how);
}

/* With constant columns and direction the loop has no branches. */
static void move_rows(const uint32_t *touched, uint64_t count, uint32_t cols, float *value,
                      float *packed, enum sdr_move how)
{
    if (cols > 1)
        move_listed(touched, count, cols, value, packed, how);
    else if (how == SDR_GATHER)
        move_listed(touched, count, 1, value, packed, SDR_GATHER);
    else if (how == SDR_SCATTER)
        move_listed(touched, count, 1, value, packed, SDR_SCATTER);
    else
        move_listed(touched, count, 1, value, packed, SDR_ADD);
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
    uint32_t first, end, cols = block->cols;
    sdr_rows_within(block, span, &first, &end);
    if (first < end && by_rows(block, batch)) {
        uint64_t rows = list_touched(marks, batch, first, end), room = most / cols;
        move_rows(marks->touched, rows < room ? rows : room, cols, w + block->offset, packed, how);
        return rows * cols;
    }
    uint64_t count = (uint64_t)(end - first) * cols;
    if (count <= most)
        move(w + block->offset + (size_t)first * cols, packed, count, how);
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

uint64_t sdr_step_gather(const struct sdr_layout *layout, struct sdr_marks *marks,
                         const struct sdr_batch *batch, struct sdr_span span, const float *w,
                         float *packed, struct sdr_part *part, struct sdr_update *update)
{
    uint64_t count = 0;
    *update = (struct sdr_update){.sense = SDR_STEP, .batch = *batch, .part = part};
    for (int b = 0; b < layout->blocks; b++) {
        const struct sdr_block *block = &layout->block[b];
        uint32_t first, end;
        sdr_rows_within(block, span, &first, &end);
        if (first == end)
            continue;
        bool rows = by_rows(block, batch);
        uint64_t values = move_block(layout, b, marks, batch, span, (float *)w, packed + count,
                                     layout->count, SDR_GATHER);
        part[update->parts++] =
            (struct sdr_part){.block = b,
                              .form = rows ? SDR_TOUCHED : SDR_DENSE,
                              .count = (uint32_t)(rows ? values / block->cols : values),
                              .first = rows ? 0 : first,
                              .value = packed + count};
        count += values;
    }
    return count;
}

enum sdr_status sdr_step_add(const struct sdr_layout *layout, struct sdr_marks *marks,
                             const struct sdr_update *update, struct sdr_span span, float *w)
{
    for (int p = 0; p < update->parts; p++) {
        const struct sdr_part *part = &update->part[p];
        const struct sdr_block *block = &layout->block[part->block];
        float *value = w + block->offset;
        bool rows = part->form == SDR_TOUCHED && by_rows(block, &update->batch);
        uint32_t first, end;
        sdr_rows_within(block, span, &first, &end);
        /* Checked before any is added: a part that does not fit changes nothing. */
        bool fits = rows ? part->count == list_touched(marks, &update->batch, first, end)
                         : part->form == SDR_DENSE && part->first == first &&
                               part->count == (uint64_t)(end - first) * block->cols;
        if (!fits)
            return sdr_fail(SDR_BAD_FILE, "a message cannot be read: other values than the batch "
                                          "touches");
        if (rows)
            move_rows(marks->touched, part->count, block->cols, value, (float *)part->value,
                      SDR_ADD);
        else
            move(value + (size_t)first * block->cols, (float *)part->value, part->count, SDR_ADD);
    }
    return SDR_OK;
}
