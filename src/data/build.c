/* The builder: appends pieces in file order, so the data set depends neither on chunk boundaries
   nor on the number of parser threads.

   sparse   start (rows + 1)   index uint16, or uint32 from 65537 features on   value
   dense    rows × stride floats, zero padded

   Files of plain numbers cost little more than a copy: indices are stored as if they counted from 1
   and shifted once if a 0 appears; they are widened once if they outgrow 16 bits. */
#include "data/build.h"

#include <math.h>
#include <string.h>

enum { MOST_FEATURES = 0x7FFFFFFF, BLOCK = 1 << 16, SPILL_BUFFER = 8 << 20 };

enum sdr_status sdr_builder_create(const struct sdr_data_options *options,
                                   const struct sdr_schema *known, struct sdr_schema *schema,
                                   enum sdr_layout_wish layout, struct sdr_builder **builder)
{
    struct sdr_builder *b;
    *builder = NULL;
    SDR_TRY(sdr_allocate(&b, 1, sizeof *b, "the data"));
    b->options = options;
    b->known = known;
    b->schema = schema;
    b->wish = layout;
    for (int i = 0; i < SPILL_COLUMNS; i++)
        b->spill[i] = -1;
    int base = schema->base < 0 && known ? known->base : schema->base;
    b->base_open = base < 0;
    b->base = base != 0;
    b->limit = known ? known->numbers : MOST_FEATURES;
    b->numbers = known ? known->numbers : schema->numbers;
    *builder = b;
    return SDR_OK;
}

void sdr_builder_keep(struct sdr_builder *b, const char *path, const char *key)
{
    b->keep_path = path;
    b->keep_key = key;
}

void sdr_builder_destroy(struct sdr_builder *b)
{
    if (!b)
        return;
    sdr_region_free(&b->staged.start);
    sdr_region_free(&b->staged.index);
    sdr_region_free(&b->staged.value);
    sdr_region_free(&b->staged.dense);
    sdr_region_free(&b->staged.label);
    sdr_region_free(&b->staged.weight);
    sdr_label_free(&b->label_finder);
    sdr_piece_free(&b->rows_piece);
    sdr_release(b->map);
    sdr_spill_close(b);
    sdr_release(b);
}

uint64_t sdr_builder_staged(const struct sdr_builder *b)
{
    return b->staged.start.used + b->staged.index.used + b->staged.value.used +
           b->staged.dense.used + b->staged.label.used + b->staged.weight.used;
}

enum sdr_status sdr_builder_map(struct sdr_builder *b, uint32_t count)
{
    if (count <= b->map_room)
        return SDR_OK;
    sdr_release(b->map);
    b->map_room = 0;
    SDR_TRY(sdr_allocate(&b->map, 2 * (size_t)count, sizeof *b->map, "the data"));
    b->map_room = 2 * (uint64_t)count;
    return SDR_OK;
}

/* The number of features if the file ended here. */
static uint64_t features_so_far(const struct sdr_builder *b)
{
    if (b->known)
        return b->known->features;
    uint64_t features = (uint64_t)b->numbers + b->schema->category.count;
    features = b->schema->features > features ? b->schema->features : features;
    return b->width > features ? b->width : features;
}

static enum sdr_status settle_base(struct sdr_builder *b, const struct sdr_piece *piece)
{
    if (!piece->index_zero || b->base == 0)
        return SDR_OK;
    if (!b->base_open)
        return sdr_fail(SDR_BAD_DATA, "index 0, but the first index is 1%s",
                        b->known ? " in the data the model was trained on" : "");
    if (!b->spilled)
        SDR_TRY(sdr_layout_shift_up(b));
    b->base = 0;
    b->base_open = false;
    b->width += b->width > 0;
    return SDR_OK;
}

/* ---- entries ---- */

/* Finds the largest feature index of a piece and counts its explicit zeros, which are not stored.
   Both determine the storage format. */
static void measure_piece(const struct sdr_piece *piece, uint32_t base, uint32_t *most,
                          uint64_t *zeros)
{
    const uint32_t *index = piece->index;
    const float *value = piece->value;
    uint32_t largest = 0, none = 0;
    uint64_t all_none = 0;
    for (uint64_t first = 0; first < piece->entries; first += BLOCK) {
        uint64_t end = piece->entries - first < BLOCK ? piece->entries : first + BLOCK;
        none = 0; /* 32-bit counter per block: lanes as wide as the values */
        for (uint64_t i = first; i < end; i++) {
            uint32_t feature = index[i] - base;
            largest = feature > largest ? feature : largest;
            none += value[i] == 0.0f;
        }
        all_none += none;
    }
    *most = largest;
    *zeros = all_none;
}

/* Chooses the initial layout by the first piece; finish() may change it. */
static void begin(struct sdr_builder *b, uint64_t nonzeros, uint64_t rows, bool categories)
{
    uint64_t features = features_so_far(b);
    b->begun = true;
    b->wide = features > NARROW_FEATURES;
    if (b->wish == SDR_LAYOUT_BY_DENSITY && !categories && features <= MOST_FEATURES &&
        sdr_is_dense_enough(nonzeros, rows, (uint32_t)features)) {
        b->is_dense = true;
        b->dense_width = (uint32_t)features;
    }
}

static enum sdr_status scatter(struct sdr_builder *b, const struct sdr_piece *piece)
{
    uint64_t stride = sdr_stride(b->dense_width), entry = 0;
    size_t bytes = (size_t)(piece->rows * stride * sizeof(float));
    SDR_TRY(sdr_region_reserve(&b->staged.dense, bytes + SDR_ALIGN));
    float *row =
        (float *)(void *)(b->staged.dense.bytes + b->staged.dense.used); /* fresh pages are zero */
    for (uint64_t r = 0; r < piece->rows; r++, row += stride)
        for (; entry < piece->end[r]; entry++) {
            uint32_t feature = piece->index[entry] - b->base;
            float value = piece->value[entry];
            if (value == 0.0f)
                continue;
            if (feature < b->limit) {
                row[feature] = value;
                b->nonzeros++;
            } else {
                b->unseen++;
            }
        }
    b->staged.dense.used += bytes;
    return SDR_OK;
}

static enum sdr_status add_entries(struct sdr_builder *b, const struct sdr_piece *piece)
{
    bool categories = piece->category.count > 0;
    uint32_t most = 0;
    uint64_t zeros = 0;
    if (!categories) {
        measure_piece(piece, b->base, &most, &zeros);
        if (piece->entries && most >= MOST_FEATURES)
            return sdr_fail(SDR_BAD_DATA, "an index is out of range");
        uint32_t width = piece->features > b->base ? piece->features - b->base : 0;
        width = piece->entries && most >= width ? most + 1 : width;
        if (!b->known && width > b->width)
            b->width = width;
    }
    if (!b->begun)
        begin(b, piece->entries - zeros, piece->rows, categories);
    if (b->is_dense && (categories || features_so_far(b) > b->dense_width))
        SDR_TRY(sdr_layout_to_sparse(b));
    if (b->is_dense)
        return scatter(b, piece);
    if (!b->wide && features_so_far(b) > NARROW_FEATURES)
        SDR_TRY(sdr_layout_widen(b));
    if (b->staged.start.used == 0 && b->rows == 0)
        SDR_TRY(sdr_region_append(&b->staged.start, &(uint64_t){0}, sizeof(uint64_t)));
    if (categories || zeros || (piece->entries && most >= b->limit))
        return sdr_entries_append(b, piece);
    return sdr_entries_copy(b, piece);
}

static enum sdr_status keep_within_memory(struct sdr_builder *b)
{
    uint64_t memory = b->options->memory, staged = sdr_builder_staged(b);
    if (b->spilled)
        return staged > SPILL_BUFFER || staged > memory / 4 ? sdr_spill_flush(b) : SDR_OK;
    return memory && staged > memory ? sdr_spill_start(b) : SDR_OK;
}

enum sdr_status sdr_builder_add(struct sdr_builder *b, struct sdr_piece *piece)
{
    if (piece->rows == 0)
        return SDR_OK;
    SDR_TRY(settle_base(b, piece));
    b->met.has_missing |= piece->has_missing;
    SDR_TRY(sdr_labels_add(b, piece));
    SDR_TRY(sdr_weights_add(b, piece->has_weights ? piece->weight : NULL, piece->rows));
    SDR_TRY(add_entries(b, piece));
    b->rows += piece->rows;
    return keep_within_memory(b);
}

/* ---- dense input rows ---- */

static enum sdr_status copy_rows(struct sdr_builder *b, const float *x, uint64_t count,
                                 uint32_t features)
{
    uint64_t stride = sdr_stride(b->dense_width);
    SDR_TRY(
        sdr_region_reserve(&b->staged.dense, (size_t)(count * stride * sizeof(float)) + SDR_ALIGN));
    float *row = (float *)(void *)(b->staged.dense.bytes + b->staged.dense.used);
    for (uint64_t r = 0; r < count; r++, x += features, row += stride) {
        uint32_t nonzeros = 0, missing = 0;
        for (uint32_t i = 0; i < features; i++) {
            row[i] = x[i] + 0.0f; /* turns −0 into 0, as in sparse rows */
            nonzeros += x[i] != 0.0f;
            missing += x[i] != x[i];
        }
        b->nonzeros += nonzeros;
        b->met.has_missing |= missing > 0;
    }
    b->staged.dense.used += (size_t)(count * stride * sizeof(float));
    return SDR_OK;
}

/* Converts dense rows to a piece of sparse rows. */
static enum sdr_status pick_nonzeros(struct sdr_piece *piece, const float *x, uint64_t count,
                                     uint32_t features, const float *label, const float *weight)
{
    sdr_piece_clear(piece);
    SDR_TRY(sdr_piece_reserve(piece, count * features, count));
    piece->features = features;
    piece->lacks_labels = !label;
    piece->has_weights = weight != NULL;
    for (uint64_t r = 0; r < count; r++, x += features) {
        for (uint32_t i = 0; i < features; i++) {
            piece->index[piece->entries] = i;
            piece->value[piece->entries] = x[i];
            piece->entries += x[i] != 0.0f;
            piece->has_missing |= x[i] != x[i];
        }
        piece->end[r] = piece->entries;
        piece->label[r] = label ? label[r] : (float)SDR_MISSING_ROW_LABEL;
        piece->weight[r] = weight ? weight[r] : 1.0f;
        if (label)
            SDR_TRY(sdr_piece_label_number(piece, label[r], NULL, 0));
    }
    piece->rows = count;
    return SDR_OK;
}

static enum sdr_status add_dense_block(struct sdr_builder *b, const float *x, uint64_t count,
                                       uint32_t features, const float *label, const float *weight)
{
    struct sdr_piece *piece = &b->rows_piece;
    if (!b->begun || !b->is_dense || features > b->dense_width) {
        SDR_TRY(pick_nonzeros(piece, x, count, features, label, weight));
        return sdr_builder_add(b, piece);
    }
    /* Labels and weights go through a piece without entries. */
    SDR_TRY(pick_nonzeros(piece, x, count, 0, label, weight));
    SDR_TRY(sdr_labels_add(b, piece));
    SDR_TRY(sdr_weights_add(b, weight, count));
    SDR_TRY(copy_rows(b, x, count, features));
    b->rows += count;
    return keep_within_memory(b);
}

enum sdr_status sdr_builder_add_dense(struct sdr_builder *b, const float *x, uint64_t count,
                                      uint32_t features, const float *label, const float *weight)
{
    uint64_t block = features ? BLOCK * 4 / features + 1 : BLOCK;
    for (uint64_t r = 0; r < count; r += block) {
        uint64_t rows = count - r < block ? count - r : block;
        SDR_TRY(add_dense_block(b, x + r * features, rows, features, label ? label + r : NULL,
                                weight ? weight + r : NULL));
    }
    return SDR_OK;
}

/* ---- completion ---- */

static enum sdr_status complete_schema(struct sdr_builder *b)
{
    struct sdr_schema *schema = b->schema;
    if (b->known) {
        sdr_schema_free(schema);
        return sdr_schema_copy(schema, b->known);
    }
    uint64_t features = features_so_far(b);
    if (features > MOST_FEATURES)
        return sdr_fail(SDR_BAD_DATA, "too many features: %llu", (unsigned long long)features);
    schema->features = (uint32_t)features;
    schema->numbers = (uint32_t)features - schema->category.count;
    schema->base = (int)b->base;
    if (schema->many_labels) {
        sdr_dictionary_free(&schema->labels);
        sdr_release(schema->label_value);
        schema->label_value = NULL;
    }
    return SDR_OK;
}

static void hand_over(struct sdr_region *from, struct sdr_region *to, bool wanted)
{
    if (!wanted)
        return;
    *to = *from;
    *from = (struct sdr_region){0};
}

/* Moves the staged arrays to the data. */
static enum sdr_status move_to_data(struct sdr_builder *b, struct sdr_data *data)
{
    struct sdr_rows *rows = &data->rows;
    SDR_TRY(
        sdr_region_reserve(&b->staged.index, SDR_ALIGN)); /* valid pointers even for empty arrays */
    SDR_TRY(sdr_region_reserve(&b->staged.value, SDR_ALIGN));
    SDR_TRY(sdr_region_reserve(&b->staged.label, SDR_ALIGN));
    hand_over(&b->staged.start, &data->start, !b->is_dense);
    hand_over(&b->staged.index, &data->index, !b->is_dense);
    hand_over(&b->staged.value, &data->value, !b->is_dense);
    hand_over(&b->staged.dense, &data->dense, b->is_dense);
    hand_over(&b->staged.label, &data->label, !b->met.lacks_labels);
    hand_over(&b->staged.weight, &data->weight, b->met.has_weights);
    rows->count = b->rows;
    rows->features = b->schema->features;
    rows->start = (const uint64_t *)(const void *)data->start.bytes;
    rows->index16 = b->wide ? NULL : (const uint16_t *)(const void *)data->index.bytes;
    rows->index32 = b->wide ? (const uint32_t *)(const void *)data->index.bytes : NULL;
    rows->value = (const float *)(const void *)data->value.bytes;
    rows->dense = (const float *)(const void *)data->dense.bytes;
    rows->stride = b->is_dense ? sdr_stride(rows->features) : 0;
    rows->label = (const float *)(const void *)data->label.bytes;
    rows->weight = (const float *)(const void *)data->weight.bytes;
    return SDR_OK;
}

static enum sdr_status finish(struct sdr_builder *b, struct sdr_data *data)
{
    SDR_TRY(complete_schema(b));
    uint32_t features = b->schema->features;
    uint64_t memory = b->options->memory;
    bool dense =
        b->wish == SDR_LAYOUT_BY_DENSITY && sdr_is_dense_enough(b->nonzeros, b->rows, features);
    if (!b->begun) {
        b->wide = features > NARROW_FEATURES;
        SDR_TRY(sdr_region_append(&b->staged.start, &(uint64_t){0}, sizeof(uint64_t)));
    }
    if (b->is_dense && !dense)
        SDR_TRY(sdr_layout_to_sparse(b));
    if (dense && memory && !b->spilled &&
        (double)b->rows * (double)sdr_stride(features) * sizeof(float) > (double)memory)
        SDR_TRY(sdr_spill_start(b));
    data->nonzeros = b->nonzeros;
    data->unseen = b->unseen;
    data->has_labels = !b->met.lacks_labels;
    if (b->spilled)
        return sdr_spill_finish(b, dense, data);
    if (dense && !b->is_dense)
        SDR_TRY(sdr_layout_to_dense(b, features));
    if (b->met.has_missing)
        SDR_TRY(sdr_layout_fill_missing(b));
    return move_to_data(b, data);
}

enum sdr_status sdr_builder_finish(struct sdr_builder *b, struct sdr_data *data)
{
    enum sdr_status status = finish(b, data);
    sdr_builder_destroy(b);
    return status;
}
