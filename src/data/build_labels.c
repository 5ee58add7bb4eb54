/* Labels and weights of added pieces. Distinct labels are merged in file order; a label text
   unknown to the known schema becomes SDR_MISSING_ROW_LABEL; rows without a weight weigh 1 if
   others have one. */
#include "data/build.h"

#include <string.h>

enum { BLOCK = 1 << 16 };

static enum sdr_status map_text_labels(struct sdr_builder *b, const struct sdr_piece *piece)
{
    const struct sdr_dictionary *theirs = &piece->labels;
    struct sdr_dictionary ours = b->known ? b->known->labels : b->schema->labels;
    SDR_TRY(sdr_builder_map(b, theirs->count));
    for (uint32_t i = 0; i < theirs->count; i++) {
        enum sdr_status status =
            sdr_dictionary_find(&ours, theirs->text[i], theirs->length[i], !b->known, &b->map[i]);
        if (!b->known)
            b->schema->labels = ours;
        SDR_TRY(status);
    }
    if (ours.count > 1 << 24)
        return sdr_fail(SDR_BAD_DATA, "more than 16777216 different labels");
    float *label = (float *)(void *)(b->staged.label.bytes + b->staged.label.used);
    for (uint64_t r = 0; r < piece->rows; r++) {
        float number = piece->label[r];
        bool mapped = number >= 0 && number < (float)theirs->count;
        uint32_t to = mapped ? b->map[(uint32_t)number] : UINT32_MAX;
        label[r] = to == UINT32_MAX ? (float)SDR_MISSING_ROW_LABEL : (float)to;
    }
    return SDR_OK;
}

static enum sdr_status merge_number_labels(struct sdr_builder *b, const struct sdr_piece *piece)
{
    struct sdr_schema *schema = b->schema;
    schema->many_labels |= piece->many_labels;
    for (uint32_t i = 0; !schema->many_labels && i < piece->labels.count; i++) {
        uint32_t number;
        SDR_TRY(sdr_label_find(&b->label_finder, &schema->labels, &schema->label_value,
                               piece->label_value[i], piece->labels.text[i],
                               piece->labels.length[i], &number));
        schema->many_labels = number == UINT32_MAX;
    }
    return SDR_OK;
}

/* Prediction ignores labels of another type than the model's. */
static void leave_labels_out(struct sdr_builder *b, uint64_t rows)
{
    float *label = (float *)(void *)(b->staged.label.bytes + b->staged.label.used);
    for (uint64_t r = 0; r < rows; r++)
        label[r] = (float)SDR_MISSING_ROW_LABEL;
    b->staged.label.used += (size_t)rows * sizeof *label;
    b->met.lacks_labels = true;
}

enum sdr_status sdr_labels_add(struct sdr_builder *b, const struct sdr_piece *piece)
{
    bool text = b->known ? b->known->text_labels : b->schema->text_labels;
    size_t bytes = (size_t)piece->rows * sizeof(float);
    b->met.lacks_labels |= piece->lacks_labels;
    SDR_TRY(sdr_region_reserve(&b->staged.label, bytes));
    if (piece->labels.count && !b->met.has_labels && !b->known)
        text = b->schema->text_labels = piece->text_labels;
    if (piece->labels.count && piece->text_labels != text) {
        if (!b->known || !b->options->labels_optional)
            return sdr_fail(SDR_BAD_DATA, "labels are texts in one place and numbers in another");
        leave_labels_out(b, piece->rows);
        return SDR_OK;
    }
    b->met.has_labels |= piece->labels.count > 0;
    if (text) {
        SDR_TRY(map_text_labels(b, piece));
    } else {
        memcpy(b->staged.label.bytes + b->staged.label.used, piece->label, bytes);
        if (!b->known)
            SDR_TRY(merge_number_labels(b, piece));
    }
    b->staged.label.used += bytes;
    return SDR_OK;
}

/* Weights of earlier rows that had none. */
static enum sdr_status append_ones(struct sdr_builder *b, uint64_t count)
{
    while (count) {
        uint64_t block = count < BLOCK ? count : BLOCK;
        SDR_TRY(sdr_region_reserve(&b->staged.weight, block * sizeof(float)));
        float *weight = (float *)(void *)(b->staged.weight.bytes + b->staged.weight.used);
        for (uint64_t i = 0; i < block; i++)
            weight[i] = 1.0f;
        b->staged.weight.used += block * sizeof(float);
        count -= block;
        if (b->spilled)
            SDR_TRY(sdr_spill_flush(b));
    }
    return SDR_OK;
}

enum sdr_status sdr_weights_add(struct sdr_builder *b, const float *weight, uint64_t rows)
{
    if (weight && !b->met.has_weights) {
        b->met.has_weights = true;
        SDR_TRY(append_ones(b, b->rows));
    }
    if (weight)
        return sdr_region_append(&b->staged.weight, weight, (size_t)rows * sizeof *weight);
    return b->met.has_weights ? append_ones(b, rows) : SDR_OK;
}
