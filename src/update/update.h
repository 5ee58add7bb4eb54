/* Updates: lists of parts, one per block (struct sdr_update). Only this module knows the forms
   of a part: how to expand it, add it, and cut it by spans. */
#ifndef SDR_UPDATE_UPDATE_H
#define SDR_UPDATE_UPDATE_H

#include "kernel/linear.h"
#include "kind/optimizer.h"

/* ---- layout ---- */
struct sdr_layout {
    struct sdr_block block[SDR_BLOCKS_MOST];
    int blocks;
    uint64_t count; /* values, padding between blocks included */
    /* Rows of the blocks before: rows are numbered across blocks. */
    uint64_t first_row[SDR_BLOCKS_MOST];
    uint64_t rows;
};
/* Sets the offsets of the blocks: each begins on a cache line. */
void sdr_layout_make(struct sdr_layout *layout, const struct sdr_block *block, int blocks);
static inline struct sdr_span sdr_all(const struct sdr_layout *layout)
{
    return (struct sdr_span){0, layout->count};
}
/* The rows of a block that lie in a span: first … end − 1. Spans never cut a row. */
void sdr_rows_cut(const struct sdr_block *block, struct sdr_span span, uint32_t *first,
                  uint32_t *end);
static inline void sdr_rows_within(const struct sdr_block *block, struct sdr_span span,
                                   uint32_t *first, uint32_t *end)
{
    uint64_t size = (uint64_t)block->rows * block->cols;
    *first = 0;
    *end = block->rows;
    if (span.first > block->offset ||
        span.end < block->offset + size) /* most spans cover the block */
        sdr_rows_cut(block, span, first, end);
}
/* Cuts all values into spans of whole rows with about equal work. A row of a per-feature block
   costs as often as its feature is touched (touched[j] of `of` rows; NULL: always), other rows
   always; a fraction `by_size` of the cost is that of their values. Writes span[p] for p <
   spans. */
void sdr_cut_spans(const struct sdr_layout *layout, const uint32_t *touched, uint32_t of,
                   double by_size, uint32_t spans, struct sdr_span *span);
/* Whether spans are what that could have written: all values, in order, and no row is cut. */
bool sdr_spans_sound(const struct sdr_layout *layout, const struct sdr_span *span, uint32_t spans);

/* ---- expanding ---- */
/* Scratch for expanding parts: as long as the values, and as the rows of all blocks. Two threads
   may use disjoint spans of it concurrently. */
struct sdr_scratch {
    float *gradient; /* owned: dense, or the touched rows, compacted */
    float *sums;     /* owned, per row: of blocks with one column */
    uint32_t *touched,
        *place;     /* owned, per row; place[j] is valid where mark[j] is of this update */
    uint32_t *mark; /* owned, per row */
    /* Owned, per row: entries of sparse examples, sorted by row; NULL: no block has wide rows. */
    struct sdr_sorting *sorting;
};
enum { SDR_SORTED_ENTRIES = 8 };
struct sdr_sorting {
    uint32_t word[5 * SDR_SORTED_ENTRIES + 1];
};
enum sdr_status sdr_scratch_create(struct sdr_scratch *scratch, const struct sdr_layout *layout);
void sdr_scratch_free(struct sdr_scratch *scratch);
/* Expands a part to DENSE values or distinct ROWS of the block, within its rows first … end − 1:
   sums in the order of the examples. The result lies in the scratch: DENSE values of those rows
   alone, at `value`; ROWS may borrow from the part. `mark` is never 0 and different for every
   update; when marks wrap around to 1 all earlier ones must be cleared. */
struct sdr_expansion {
    const struct sdr_layout *layout;
    const struct sdr_linear_kernels *kernels;
    const float *center; /* of dense examples; NULL: none */
    struct sdr_scratch *scratch;
    uint32_t mark;
    float times; /* factor on examples that go to one column each */
};
struct sdr_part sdr_part_expand(const struct sdr_expansion *to, const struct sdr_part *part,
                                const struct sdr_batch *batch, uint32_t first, uint32_t end);
/* Adds an expanded part to `out`, rows first … end − 1 of its block. */
void sdr_part_add(const struct sdr_expansion *to, const struct sdr_part *part,
                  const struct sdr_batch *batch, uint32_t first, uint32_t end, float *out);
/* Adds an expanded gradient to `out`, the values of a span. */
void sdr_update_expand(const struct sdr_expansion *to, const struct sdr_update *update,
                       struct sdr_span span, float *out);
/* The inverse: the values of a span as an update, with a dense part for every block that is not
   fixed. */
void sdr_update_dense(const struct sdr_layout *layout, const float *value, struct sdr_span span,
                      struct sdr_part *part, struct sdr_update *update);
/* The entries of a sparse row within a range of features; entries are sorted. */
struct sdr_sparse_row sdr_row_cut(const struct sdr_rows *rows, uint32_t row, uint32_t first,
                                  uint32_t end);
static inline struct sdr_sparse_row sdr_row_within(const struct sdr_rows *rows, uint32_t row,
                                                   uint32_t first, uint32_t end)
{
    if (first == 0 && end == rows->features) /* most ranges are whole */
        return sdr_sparse_row(rows, row);
    return sdr_row_cut(rows, row, first, end);
}

/* ---- adding ---- */
/* A sum of updates: of the leaves of a batch, or of several workers. Parts that list examples or
   rows are concatenated, so nothing is expanded. Dense parts are added in pairs, by a tree over
   the leaves that does not depend on who computed which. */
struct sdr_sum {
    const struct sdr_layout *layout;
    struct sdr_update update; /* the sum so far; owns its arrays */
    struct sdr_part *part;    /* owned */
    struct sdr_arrays {
        uint32_t *index;
        float *value, *v;
        uint64_t index_room, value_room, v_room;
    } * array;                 /* owned, per part */
    struct sdr_node_sum *node; /* owned: dense sums of leaves that wait for their neighbours */
    int nodes, node_room;
    uint32_t *row; /* owned: the rows of all batches */
    uint64_t row_room;
};
enum sdr_status sdr_sum_create(struct sdr_sum *sum, const struct sdr_layout *layout);
void sdr_sum_free(struct sdr_sum *sum);
void sdr_sum_begin(struct sdr_sum *sum, enum sdr_sense sense);
/* Adds weight times an update; weight 0 gives zeros even for NaN. Leaves of one batch must be
   added in order. batch->row of the sum lists the rows of all updates, in order. */
enum sdr_status sdr_sum_add(struct sdr_sum *sum, const struct sdr_update *update, float weight);
/* Ends the sum. whole: it has all leaves of its batch, and has one dense part per block;
   otherwise several may be left for the receiver to add. Borrowed until the next begin. */
const struct sdr_update *sdr_sum_end(struct sdr_sum *sum, bool whole);

#endif
