#include "update/subset.h"
#include "base/memory.h"

#include <string.h>

bool sdr_subset_suits(const struct sdr_model_kind *kind, const struct sdr_problem *problem)
{
    return !problem->rows->dense && !problem->center && kind->reads == SDR_READS_TOUCHED &&
           !(kind->needs & SDR_NEEDS_NUMBERS);
}

/* An array of at least `count` elements, with nothing in it. */
static enum sdr_status renew(void *pointer, uint64_t count, size_t size)
{
    void **array = pointer;
    sdr_release(*array);
    *array = NULL;
    return sdr_allocate(array, count, size, "the rows of a batch");
}

static enum sdr_status room_for_rows(struct sdr_subset *s, uint64_t rows)
{
    if (rows <= s->row_room)
        return SDR_OK;
    s->row_room = 0;
    SDR_TRY(renew(&s->start, rows + 1, sizeof *s->start));
    SDR_TRY(renew(&s->row, rows, sizeof *s->row));
    SDR_TRY(renew(&s->target, rows, sizeof *s->target));
    SDR_TRY(renew(&s->metric_weight, rows, sizeof *s->metric_weight));
    SDR_TRY(renew(&s->row_weight, rows, sizeof *s->row_weight));
    s->row_room = rows;
    return SDR_OK;
}

static enum sdr_status room_for_entries(struct sdr_subset *s, uint64_t entries)
{
    if (entries <= s->entry_room)
        return SDR_OK;
    s->entry_room = 0;
    for (int i = 0; i < 2; i++)
        SDR_TRY(renew(&s->key[i], entries, sizeof *s->key[i]));
    SDR_TRY(renew(&s->index, entries, sizeof *s->index));
    SDR_TRY(renew(&s->value, entries, sizeof *s->value));
    SDR_TRY(renew(&s->feature, entries, sizeof *s->feature));
    SDR_TRY(renew(&s->side, entries, sizeof *s->side));
    s->entry_room = entries;
    return SDR_OK;
}

/* Sorts keys by their upper half, which is below `bound`; equal ones keep their order. Returns the
   sorted array, one of the two. */
static uint64_t *sort_keys(uint64_t *key, uint64_t *other, uint64_t count, uint32_t bound)
{
    enum { BITS = 11, DIGITS = 1 << BITS };
    for (int shift = 32; shift < 64 && bound >> (shift - 32); shift += BITS) {
        uint64_t place[DIGITS] = {0}, at = 0;
        for (uint64_t i = 0; i < count; i++)
            place[key[i] >> shift & (DIGITS - 1)]++;
        for (int d = 0; d < DIGITS; d++) {
            uint64_t those = place[d];
            place[d] = at;
            at += those;
        }
        for (uint64_t i = 0; i < count; i++)
            other[place[key[i] >> shift & (DIGITS - 1)]++] = key[i];
        uint64_t *sorted = other;
        other = key;
        key = sorted;
    }
    return key;
}

/* Copies rows with their targets, weights and sides; keys are (feature, index of the entry). */
static enum sdr_status copy_rows(struct sdr_subset *s, const struct sdr_problem *problem,
                                 const struct sdr_batch *batch)
{
    uint64_t entries = 0;
    for (uint32_t i = 0; i < batch->count; i++)
        entries += sdr_sparse_row(batch->rows, batch->row[i]).n;
    SDR_TRY(room_for_rows(s, batch->count));
    SDR_TRY(room_for_entries(s, entries));
    entries = 0;
    for (uint32_t i = 0; i < batch->count; i++) {
        struct sdr_sparse_row r = sdr_sparse_row(batch->rows, batch->row[i]);
        s->start[i] = entries;
        s->row[i] = i;
        s->target[i] = problem->target[batch->row[i]];
        if (problem->metric_weight)
            s->metric_weight[i] = problem->metric_weight[batch->row[i]];
        if (problem->row_weight)
            s->row_weight[i] = problem->row_weight[batch->row[i]];
        if (r.n)
            memcpy(s->value + entries, r.x, r.n * sizeof *r.x);
        for (uint32_t n = 0; n < r.n; n++, entries++)
            s->key[0][entries] = (uint64_t)sdr_row_index(&r, n) << 32 | entries;
    }
    s->start[batch->count] = entries;
    return SDR_OK;
}

/* Numbers the features in ascending order; returns their number. */
static uint32_t number_features(struct sdr_subset *s, const struct sdr_problem *problem)
{
    uint64_t entries = s->start[s->rows.count];
    const uint64_t *key = sort_keys(s->key[0], s->key[1], entries, problem->features);
    uint32_t features = 0;
    for (uint64_t i = 0; i < entries; i++) {
        uint32_t feature = (uint32_t)(key[i] >> 32);
        if (features == 0 || s->feature[features - 1] != feature) {
            s->feature[features] = feature;
            s->side[features++] = problem->side ? problem->side[feature] : 0;
        }
        s->index[(uint32_t)key[i]] = features - 1;
    }
    return features;
}

static enum sdr_status lay_out(struct sdr_subset *s, const struct sdr_layout *layout)
{
    struct sdr_block block[SDR_BLOCKS_MOST];
    memcpy(block, layout->block, sizeof block);
    for (int b = 0; b < layout->blocks; b++)
        if (block[b].per_feature)
            block[b].rows = s->rows.features;
    sdr_layout_make(&s->layout, block, layout->blocks);
    if (s->layout.count > s->w_room) {
        s->w_room = 0;
        SDR_TRY(renew(&s->w, s->layout.count, sizeof *s->w));
        s->w_room = s->layout.count;
    }
    if (s->rows.features > s->marks_room) {
        sdr_marks_free(&s->marks);
        SDR_TRY(sdr_marks_create(&s->marks, s->rows.features));
        s->marks_room = s->rows.features;
    }
    return SDR_OK;
}

enum sdr_status sdr_subset_make(struct sdr_subset *s, const struct sdr_problem *problem,
                                const struct sdr_layout *layout, const struct sdr_batch *batch)
{
    SDR_TRY(copy_rows(s, problem, batch));
    s->rows = (struct sdr_rows){
        .count = batch->count, .start = s->start, .index32 = s->index, .value = s->value};
    s->rows.features = number_features(s, problem);
    s->problem = *problem;
    s->problem.rows = &s->rows;
    s->problem.features = s->rows.features;
    s->problem.target = s->target;
    s->problem.metric_weight = problem->metric_weight ? s->metric_weight : NULL;
    s->problem.row_weight = problem->row_weight ? s->row_weight : NULL;
    s->problem.side = problem->side ? s->side : NULL;
    s->batch = *batch;
    s->batch.rows = &s->rows;
    s->batch.row = s->row;
    return lay_out(s, layout);
}

void sdr_subset_free(struct sdr_subset *s)
{
    sdr_marks_free(&s->marks);
    void *array[] = {s->w,   s->feature, s->start, s->key[0], s->key[1],        s->index,
                     s->row, s->listed,  s->value, s->target, s->metric_weight, s->row_weight,
                     s->side};
    for (size_t i = 0; i < sizeof array / sizeof *array; i++)
        sdr_release(array[i]);
    *s = (struct sdr_subset){0};
}

/* The number of features below one. */
static uint32_t features_below(const struct sdr_subset *s, uint32_t feature)
{
    uint32_t from = 0, end = s->rows.features;
    while (from < end) {
        uint32_t middle = from + (end - from) / 2;
        if (s->feature[middle] < feature)
            from = middle + 1;
        else
            end = middle;
    }
    return from;
}

/* Converts an index into all values to one into the subset's. */
static uint64_t place_of(const struct sdr_subset *s, const struct sdr_layout *layout,
                         uint64_t place)
{
    int b = layout->blocks - 1;
    while (b > 0 && place < layout->block[b].offset)
        b--;
    const struct sdr_block *block = &layout->block[b], *own = &s->layout.block[b];
    uint64_t row = (place - block->offset + block->cols - 1) / block->cols;
    row = row < block->rows ? row : block->rows;
    if (block->per_feature)
        row = features_below(s, (uint32_t)row);
    return own->offset + row * own->cols;
}

struct sdr_span sdr_subset_span(const struct sdr_subset *s, const struct sdr_layout *layout,
                                struct sdr_span span)
{
    return (struct sdr_span){place_of(s, layout, span.first), span.end == layout->count
                                                                  ? s->layout.count
                                                                  : place_of(s, layout, span.end)};
}

uint64_t sdr_subset_scatter(struct sdr_subset *s, const struct sdr_layout *layout,
                            struct sdr_span span, float *packed, uint64_t count)
{
    return sdr_move_values(&s->layout, &s->marks, &s->batch, sdr_subset_span(s, layout, span), s->w,
                           packed, count, SDR_SCATTER);
}

enum sdr_status sdr_subset_translate(struct sdr_subset *s, const struct sdr_batch *batch,
                                     struct sdr_update *update)
{
    uint64_t listed = 0;
    for (int p = 0; p < update->parts; p++)
        if (update->part[p].form == SDR_ROWS)
            listed += update->part[p].count;
    if (listed > s->listed_room) {
        s->listed_room = 0;
        SDR_TRY(renew(&s->listed, listed, sizeof *s->listed));
        s->listed_room = listed;
    }
    uint32_t *index = s->listed;
    for (int p = 0; p < update->parts; p++) {
        struct sdr_part *part = &update->part[p];
        if (part->form != SDR_ROWS || !s->layout.block[part->block].per_feature)
            continue;
        for (uint32_t i = 0; i < part->count; i++)
            index[i] = s->feature[part->index[i]];
        part->index = index;
        index += part->count;
    }
    update->batch = *batch;
    return SDR_OK;
}
