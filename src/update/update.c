/* Updates: expanding parts. Sums of updates are in sum.c, layout and spans in layout.c. */
#include "update/update.h"
#include "base/memory.h"

#include <string.h>

/* From this many columns on, entries of sparse examples are sorted by row before they are
   summed. */
enum { SORTED_COLS = 32 };

enum sdr_status sdr_scratch_create(struct sdr_scratch *scratch, const struct sdr_layout *layout)
{
    const char *what = "the gradient of a batch";
    bool one_column = false, wide = false;
    for (int b = 0; b < layout->blocks; b++) {
        one_column |= layout->block[b].cols == 1 && layout->block[b].per_feature;
        wide |= layout->block[b].cols >= SORTED_COLS && layout->block[b].per_feature;
    }
    SDR_TRY(sdr_allocate(&scratch->gradient, layout->count, sizeof(float), what));
    SDR_TRY(sdr_allocate(&scratch->touched, layout->rows, sizeof(uint32_t), what));
    if (one_column)
        SDR_TRY(sdr_allocate(&scratch->sums, layout->rows, sizeof(float), what));
    if (wide)
        SDR_TRY(sdr_allocate(&scratch->sorting, layout->rows, sizeof *scratch->sorting, what));
    SDR_TRY(sdr_allocate(&scratch->place, layout->rows, sizeof(uint32_t), what));
    return sdr_allocate(&scratch->mark, layout->rows, sizeof(uint32_t), what);
}

void sdr_scratch_free(struct sdr_scratch *scratch)
{
    sdr_release(scratch->gradient);
    sdr_release(scratch->touched);
    sdr_release(scratch->sums);
    sdr_release(scratch->sorting);
    sdr_release(scratch->place);
    sdr_release(scratch->mark);
    *scratch = (struct sdr_scratch){0};
}

struct sdr_sparse_row sdr_row_cut(const struct sdr_rows *rows, uint32_t row, uint32_t first,
                                  uint32_t end)
{
    struct sdr_sparse_row r = sdr_sparse_row(rows, row);
    uint32_t bound[2] = {first, end}, place[2];
    for (int i = 0; i < 2; i++) {
        uint32_t low = 0, high = r.n;
        while (low < high) {
            uint32_t middle = (low + high) / 2;
            if (sdr_row_index(&r, middle) < bound[i])
                low = middle + 1;
            else
                high = middle;
        }
        place[i] = low;
    }
    return (struct sdr_sparse_row){r.index16 ? r.index16 + place[0] : NULL,
                                   r.index32 ? r.index32 + place[0] : NULL, r.x + place[0],
                                   place[1] - place[0]};
}

/* The scratch of one block, from its first row on. */
struct room {
    uint32_t *touched, *place, *mark, now;
    float *gradient, *sums;
    struct sdr_sorting *sorting;
    uint32_t cols;
};

static struct room room_of(const struct sdr_expansion *to, int block)
{
    const struct sdr_layout *layout = to->layout;
    uint64_t row = layout->first_row[block];
    return (struct room){.touched = to->scratch->touched + row,
                         .place = to->scratch->place + row,
                         .mark = to->scratch->mark + row,
                         .now = to->mark,
                         .gradient = to->scratch->gradient + layout->block[block].offset,
                         .sums = to->scratch->sums ? to->scratch->sums + row : NULL,
                         .sorting = to->scratch->sorting ? to->scratch->sorting + row : NULL,
                         .cols = layout->block[block].cols};
}

/* Shuffled rows lie anywhere: they are prefetched a few ahead. */
enum { AHEAD = 6 };
static inline __attribute__((always_inline)) void fetch_entries(const struct sdr_batch *batch,
                                                                uint32_t i)
{
    if (i >= batch->count)
        return;
    struct sdr_sparse_row r = sdr_sparse_row(batch->rows, batch->row[i]);
    sdr_fetch(r.x, r.n * sizeof(float));
    if (r.index16)
        sdr_fetch(r.index16, r.n * sizeof(uint16_t));
    else
        sdr_fetch(r.index32, r.n * sizeof(uint32_t));
}

/* Sparse examples, one column, the common case: features are summed in place, and compacted at
   the end. */
#define EXPAND_ONE(bits)                                                                           \
    static uint32_t expand_one##bits(const struct room *room, const struct sdr_part *part,         \
                                     const struct sdr_batch *batch, uint32_t first, uint32_t end)  \
    {                                                                                              \
        uint32_t count = 0, mark = room->now, *marks = room->mark;                                 \
        uint32_t *touched = room->touched + first;                                                 \
        float *sum = room->sums;                                                                   \
        for (uint32_t i = 0; i < batch->count; i++) {                                              \
            fetch_entries(batch, i + AHEAD);                                                       \
            struct sdr_sparse_row r = sdr_row_within(batch->rows, batch->row[i], first, end);      \
            float u = part->value[i];                                                              \
            for (uint32_t n = 0; n < r.n; n++) {                                                   \
                uint32_t j = r.index##bits[n];                                                     \
                if (marks[j] != mark) {                                                            \
                    marks[j] = mark;                                                               \
                    touched[count++] = j;                                                          \
                    sum[j] = 0;                                                                    \
                }                                                                                  \
                sum[j] += u * r.x[n];                                                              \
            }                                                                                      \
        }                                                                                          \
        for (uint32_t i = 0; i < count; i++)                                                       \
            room->gradient[first + i] = sum[touched[i]];                                           \
        return count;                                                                              \
    }
EXPAND_ONE(16)
EXPAND_ONE(32)

/* The sum of a row, zeroed at its first touch. The range that begins at row `first` of the block
   has the scratch from there on for itself. */
static inline float *sum_of_row(const struct room *room, uint32_t row, uint32_t first,
                                uint32_t *count)
{
    float *gradient = room->gradient + (size_t)first * room->cols;
    if (room->mark[row] != room->now) {
        room->mark[row] = room->now;
        room->place[row] = *count;
        room->touched[first + *count] = row;
        memset(gradient + (size_t)(*count)++ * room->cols, 0, room->cols * sizeof(float));
    }
    return gradient + (size_t)room->place[row] * room->cols;
}

static void expand_sparse(const struct sdr_product_kernels *products, const struct room *room,
                          const struct sdr_part *part, const struct sdr_batch *batch,
                          uint32_t first, uint32_t end, uint32_t *count)
{
    enum { PIECE = 256 };
    uint32_t place[PIECE];
    float *gradient = room->gradient + (size_t)first * room->cols;
    for (uint32_t i = 0; i < batch->count; i++) {
        fetch_entries(batch, i + AHEAD);
        struct sdr_sparse_row r = sdr_row_within(batch->rows, batch->row[i], first, end);
        for (uint32_t n = 0, m; n < r.n; n += m) {
            for (m = 0; m < PIECE && n + m < r.n; m++) {
                uint32_t row = sdr_row_index(&r, n + m);
                sum_of_row(room, row, first, count);
                place[m] = room->place[row];
            }
            products->scatter(gradient, place, r.x + n, m, part->value + (size_t)i * room->cols,
                              room->cols);
        }
    }
}

/* Wide rows: entries are put aside, sorted by the place of their row, and summed row by row, so
   that a row is read and written once for several entries. A range of rows has the memory of as
   many `sorting`. */
struct entries {
    struct sdr_sorting *memory;
    uint32_t *place, *example, *sorted, *from; /* from: where the entries of a place begin */
    float *x, *sorted_x;
    uint32_t count, room;
};

static struct entries entries_of(struct sdr_sorting *memory, uint32_t rows)
{
    struct entries e = {.memory = memory, .room = rows * SDR_SORTED_ENTRIES};
    e.place = (uint32_t *)(void *)memory;
    e.example = e.place + e.room;
    e.sorted = e.example + e.room;
    e.x = (float *)(void *)(e.sorted + e.room);
    e.sorted_x = e.x + e.room;
    e.from = (uint32_t *)(void *)(e.sorted_x + e.room);
    return e;
}

static void sum_entries(const struct sdr_product_kernels *products, const struct room *room,
                        const struct sdr_part *part, struct entries *e, float *gradient,
                        uint32_t places)
{
    memset(e->from, 0, places * sizeof *e->from);
    for (uint32_t i = 0; i < e->count; i++)
        e->from[e->place[i]]++;
    for (uint32_t p = 0, sum = 0; p < places; p++) {
        sum += e->from[p];
        e->from[p] = sum - e->from[p];
    }
    for (uint32_t i = 0; i < e->count; i++) { /* stable: examples stay in their order */
        uint32_t at = e->from[e->place[i]]++;
        e->sorted[at] = e->example[i];
        e->sorted_x[at] = e->x[i];
    }
    for (uint32_t p = 0, from = 0; p < places; from = e->from[p++])
        if (e->from[p] > from)
            products->gather32(part->value, e->sorted + from, e->sorted_x + from, e->from[p] - from,
                               room->cols, gradient + (size_t)p * room->cols);
    e->count = 0;
}

static void expand_sorted(const struct sdr_product_kernels *products, const struct room *room,
                          const struct sdr_part *part, const struct sdr_batch *batch,
                          uint32_t first, uint32_t end, uint32_t *count)
{
    struct entries e = entries_of(room->sorting + first, end - first);
    float *gradient = room->gradient + (size_t)first * room->cols;
    for (uint32_t i = 0; i < batch->count; i++) {
        struct sdr_sparse_row r = sdr_row_within(batch->rows, batch->row[i], first, end);
        for (uint32_t n = 0; n < r.n; n++) {
            sum_of_row(room, sdr_row_index(&r, n), first, count);
            e.place[e.count] = room->place[sdr_row_index(&r, n)];
            e.example[e.count] = i;
            e.x[e.count++] = r.x[n];
            if (e.count == e.room)
                sum_entries(products, room, part, &e, gradient, *count);
        }
    }
    sum_entries(products, room, part, &e, gradient, *count);
}

/* Merges rows that are listed several times. */
static void merge_rows(const struct room *room, const struct sdr_part *part, uint32_t first,
                       uint32_t end, uint32_t *count)
{
    for (uint32_t i = 0; i < part->count; i++) {
        if (part->index[i] < first || part->index[i] >= end)
            continue;
        const float *value = part->value + (size_t)i * room->cols;
        float *g = sum_of_row(room, part->index[i], first, count);
        for (uint32_t k = 0; k < room->cols; k++)
            g[k] += value[k];
    }
}

/* Each example goes to one column. */
static void expand_columns(const struct sdr_expansion *to, const struct sdr_part *part,
                           const struct sdr_batch *batch, uint32_t first, uint32_t end, float *out)
{
    const struct sdr_rows *rows = batch->rows;
    size_t cols = to->layout->block[part->block].cols;
    memset(out, 0, (end - first) * cols * sizeof *out);
    for (uint32_t i = 0; i < part->count; i++) {
        float *sum = out + part->index[i], weight = part->value[i] * to->times;
        if (rows->dense) {
            const float *x = sdr_dense_row(rows, batch->row[i]);
            for (uint32_t j = first; j < end; j++)
                sum[(j - first) * cols] += weight * (to->center ? x[j] - to->center[j] : x[j]);
            continue;
        }
        struct sdr_sparse_row r = sdr_row_within(rows, batch->row[i], first, end);
        for (uint32_t n = 0; n < r.n; n++)
            sum[(sdr_row_index(&r, n) - first) * cols] += weight * r.x[n];
        for (uint32_t j = first; j < end && to->center; j++)
            sum[(j - first) * cols] -= weight * to->center[j];
    }
}

/* Σ v_i·u_iᵀ over dense examples, for one column. */
static void expand_column(const struct sdr_expansion *to, const struct sdr_part *part,
                          const struct sdr_batch *batch, uint32_t first, uint32_t end, float *out)
{
    bool stored = part->right == SDR_STORED;
    uint32_t rows = to->layout->block[part->block].rows;
    const float *center = !stored && to->center ? to->center + first : NULL;
    memset(out, 0, (end - first) * sizeof *out);
    for (uint32_t i = 0; i < part->count; i++) {
        const float *x = stored ? part->v + (size_t)i * rows + first
                                : sdr_dense_row(batch->rows, batch->row[i]) + first;
        to->kernels->add(out, part->value[i], x, center, end - first);
    }
}

/* The same for several columns: products of matrices. */
static void expand_stored(const struct sdr_expansion *to, const struct sdr_part *part,
                          uint32_t first, uint32_t end, bool add, float *out)
{
    const struct sdr_block *block = &to->layout->block[part->block];
    struct sdr_product product = {.to = out,
                                  .to_row = block->cols,
                                  .a = part->v + first,
                                  .a_row = 1,
                                  .a_step = block->rows,
                                  .b = part->value,
                                  .b_step = block->cols,
                                  .rows = end - first,
                                  .cols = block->cols,
                                  .inner = part->count,
                                  .add = add};
    to->kernels->products->product(&product);
}

/* Examples lie anywhere: they are copied and centered piece by piece. */
static void expand_examples(const struct sdr_expansion *to, const struct sdr_part *part,
                            const struct sdr_batch *batch, uint32_t first, uint32_t end, bool add,
                            float *out)
{
    enum { WIDTH = 64, HEIGHT = 64, ROWS_AHEAD = 6 };
    float x[HEIGHT * WIDTH];
    uint32_t cols = to->layout->block[part->block].cols;
    if (part->count == 0 && !add)
        memset(out, 0, (size_t)(end - first) * cols * sizeof *out);
    for (uint32_t j = first; j < end; j += WIDTH)
        for (uint32_t i = 0; i < part->count; i += HEIGHT) {
            uint32_t width = end - j < WIDTH ? end - j : WIDTH;
            uint32_t height = part->count - i < HEIGHT ? part->count - i : HEIGHT;
            for (uint32_t m = 0; m < height; m++) {
                if (m + ROWS_AHEAD < height)
                    sdr_fetch(sdr_dense_row(batch->rows, batch->row[i + m + ROWS_AHEAD]) + j,
                              width * sizeof(float));
                to->kernels->copy(x + m * WIDTH, sdr_dense_row(batch->rows, batch->row[i + m]) + j,
                                  to->center ? to->center + j : NULL, width);
            }
            struct sdr_product product = {.to = out + (size_t)(j - first) * cols,
                                          .to_row = cols,
                                          .a = x,
                                          .a_row = 1,
                                          .a_step = WIDTH,
                                          .b = part->value + (size_t)i * cols,
                                          .b_step = cols,
                                          .rows = width,
                                          .cols = cols,
                                          .inner = height,
                                          .add = add || i > 0};
            to->kernels->products->product(&product);
        }
}

/* A block of one row: Σ u_i, as the product of ones and the u_i. Not 0 + u_0: that loses the sign
   of −0. */
static void expand_ones(const struct sdr_expansion *to, const struct sdr_part *part, uint32_t cols,
                        float *out)
{
    static const float one = 1;
    if (part->index) {
        memset(out, 0, cols * sizeof *out);
        for (uint32_t i = 0; i < part->count; i++)
            out[part->index[i]] += part->value[i] * to->times;
        return;
    }
    memcpy(out, part->value, cols * sizeof *out);
    struct sdr_product rest = {.to = out,
                               .to_row = cols,
                               .a = &one,
                               .a_row = 1,
                               .b = part->value + cols,
                               .b_step = cols,
                               .rows = 1,
                               .cols = cols,
                               .inner = part->count - 1,
                               .add = true};
    to->kernels->products->product(&rest);
}

/* Whether a part needs no expansion. */
static bool is_expanded(const struct sdr_block *block, const struct sdr_part *part, uint32_t first,
                        uint32_t end)
{
    if (part->form == SDR_FACTORS)
        return part->right == SDR_ONES && part->count == 1 && !part->index;
    return part->form == SDR_DENSE || (part->distinct && first == 0 && end == block->rows);
}

struct sdr_part sdr_part_expand(const struct sdr_expansion *to, const struct sdr_part *part,
                                const struct sdr_batch *batch, uint32_t first, uint32_t end)
{
    const struct sdr_block *block = &to->layout->block[part->block];
    struct sdr_part sum = {.block = part->block, .form = SDR_DENSE};
    if (is_expanded(block, part, first, end)) {
        sum.value = part->value + (size_t)(first - part->first) * block->cols;
        if (part->form == SDR_ROWS)
            sum = *part;
        return sum;
    }
    const struct room room = room_of(to, part->block);
    float *out = room.gradient + (size_t)first * room.cols;
    bool factors = part->form == SDR_FACTORS;
    sum.value = out;
    if (to->mark == 1)
        memset(room.mark + first, 0, (end - first) * sizeof *room.mark);
    if (factors && part->right == SDR_ONES) {
        expand_ones(to, part, room.cols, out);
        return sum;
    }
    if (factors && (part->index || part->right == SDR_STORED || batch->rows->dense)) {
        if (part->index)
            expand_columns(to, part, batch, first, end, out);
        else if (room.cols == 1)
            expand_column(to, part, batch, first, end, out);
        else if (part->right == SDR_STORED)
            expand_stored(to, part, first, end, false, out);
        else
            expand_examples(to, part, batch, first, end, false, out);
        return sum;
    }
    sum.form = SDR_ROWS;
    sum.distinct = true;
    sum.index = room.touched + first;
    if (!factors)
        merge_rows(&room, part, first, end, &sum.count);
    else if (room.cols == 1 && batch->rows->index16)
        sum.count = expand_one16(&room, part, batch, first, end);
    else if (room.cols == 1)
        sum.count = expand_one32(&room, part, batch, first, end);
    else
        (room.cols >= SORTED_COLS ? expand_sorted : expand_sparse)(
            to->kernels->products, &room, part, batch, first, end, &sum.count);
    return sum;
}

void sdr_part_add(const struct sdr_expansion *to, const struct sdr_part *part,
                  const struct sdr_batch *batch, uint32_t first, uint32_t end, float *out)
{
    uint64_t cols = to->layout->block[part->block].cols;
    bool product = part->form == SDR_FACTORS && part->right != SDR_ONES && !part->index &&
                   cols > 1 && (part->right == SDR_STORED || batch->rows->dense);
    if (first == end || part->count == 0)
        return;
    if (product && part->right == SDR_STORED) {
        expand_stored(to, part, first, end, true, out);
        return;
    }
    if (product) {
        expand_examples(to, part, batch, first, end, true, out);
        return;
    }
    struct sdr_part sum = sdr_part_expand(to, part, batch, first, end);
    for (uint64_t k = 0; k < (end - first) * cols && sum.form == SDR_DENSE; k++)
        out[k] += sum.value[k];
    for (uint32_t r = 0; r < sum.count && sum.form == SDR_ROWS; r++)
        for (uint32_t k = 0; k < cols; k++)
            out[(sum.index[r] - first) * cols + k] += sum.value[r * cols + k];
}

void sdr_update_expand(const struct sdr_expansion *to, const struct sdr_update *update,
                       struct sdr_span span, float *out)
{
    for (int i = 0; i < update->parts; i++) {
        const struct sdr_block *block = &to->layout->block[update->part[i].block];
        uint32_t first, end;
        sdr_rows_within(block, span, &first, &end);
        sdr_part_add(to, &update->part[i], &update->batch, first, end,
                     out + (block->offset + (uint64_t)first * block->cols - span.first));
    }
}

void sdr_update_dense(const struct sdr_layout *layout, const float *value, struct sdr_span span,
                      struct sdr_part *part, struct sdr_update *update)
{
    *update = (struct sdr_update){.sense = SDR_GRADIENT, .part = part};
    for (int b = 0; b < layout->blocks; b++) {
        const struct sdr_block *block = &layout->block[b];
        uint32_t first, end;
        sdr_rows_within(block, span, &first, &end);
        if (first < end && !block->fixed)
            part[update->parts++] = (struct sdr_part){
                .block = b,
                .form = SDR_DENSE,
                .count = (end - first) * block->cols,
                .first = first,
                .value = value + (block->offset + (uint64_t)first * block->cols - span.first)};
    }
}
