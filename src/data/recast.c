/* A cache file has the schema it was written with; the training data or the model may have another:
   other widths, categories or label texts. Then its rows pass through the builder again, as if read
   from text. */
#include "data/cache.h"
#include "data/read.h"

#include <string.h>

enum { ROWS = 4096 };

static bool same_texts(const struct sdr_dictionary *a, const struct sdr_dictionary *b)
{
    if (a->count != b->count)
        return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (a->length[i] != b->length[i] || memcmp(a->text[i], b->text[i], a->length[i]) != 0)
            return false;
    return true;
}

static bool fits(const struct sdr_schema *own, const struct sdr_schema *known)
{
    return own->features == known->features && own->numbers == known->numbers &&
           same_texts(&own->category, &known->category) && own->text_labels == known->text_labels &&
           (!own->text_labels || same_texts(&own->labels, &known->labels));
}

/* Numeric features are identified by column position, so the names must agree. */
static enum sdr_status check_columns(const struct sdr_data *data, const struct sdr_schema *known)
{
    const struct sdr_schema *own = &data->schema;
    SDR_TRY(sdr_format_check_known(own->format, known, data->name));
    if (!own->columns || !known->columns)
        return SDR_OK;
    uint32_t k = 0;
    for (uint32_t i = 0; i < own->columns; i++) {
        if (own->column[i].kind != SDR_COLUMN_NUMBER)
            continue;
        while (k < known->columns && known->column[k].kind != SDR_COLUMN_NUMBER)
            k++;
        if (k == known->columns || strcmp(own->column[i].name, known->column[k].name) != 0)
            return sdr_fail(SDR_BAD_DATA, "%s: column '%s' is not where the model has it",
                            data->name, own->column[i].name);
        k++;
    }
    return SDR_OK;
}

static enum sdr_status add_row(const struct sdr_data *data, uint64_t r, struct sdr_piece *piece)
{
    const struct sdr_rows *rows = &data->rows;
    const struct sdr_schema *own = &data->schema;
    uint64_t first = rows->start ? rows->start[r] : 0;
    uint64_t count = rows->start ? rows->start[r + 1] - first : rows->features;
    SDR_TRY(sdr_piece_reserve(piece, piece->entries + count, ROWS));
    for (uint64_t i = 0; i < count; i++) {
        uint32_t index = rows->dense     ? (uint32_t)i
                         : rows->index16 ? rows->index16[first + i]
                                         : rows->index32[first + i];
        float value = rows->dense ? rows->dense[r * rows->stride + i] : rows->value[first + i];
        if (index >= own->numbers && value != 0.0f)
            SDR_TRY(sdr_piece_category(piece, own->category.text[index - own->numbers],
                                       own->category.length[index - own->numbers], &index));
        piece->index[piece->entries] = index;
        piece->value[piece->entries] = value;
        piece->entries += value != 0.0f;
    }
    float label = rows->label ? rows->label[r] : (float)SDR_MISSING_ROW_LABEL;
    piece->lacks_labels |= !rows->label;
    if (rows->label && own->text_labels && label >= 0)
        SDR_TRY(sdr_piece_label_text(piece, own->labels.text[(uint32_t)label],
                                     own->labels.length[(uint32_t)label], &label));
    else if (rows->label && !own->text_labels)
        SDR_TRY(sdr_piece_label_number(piece, label, NULL, 0));
    piece->label[piece->rows] = label;
    piece->has_weights = rows->weight != NULL;
    piece->weight[piece->rows] = rows->weight ? rows->weight[r] : 1.0f;
    piece->end[piece->rows++] = piece->entries;
    return SDR_OK;
}

static enum sdr_status rebuild(const struct sdr_data *from, struct sdr_builder *builder)
{
    struct sdr_piece piece = {0};
    enum sdr_status status = SDR_OK;
    for (uint64_t first = 0; status == SDR_OK && first < from->rows.count; first += ROWS) {
        sdr_piece_clear(&piece);
        for (uint64_t r = first; status == SDR_OK && r < first + ROWS && r < from->rows.count; r++)
            status = add_row(from, r, &piece);
        if (status == SDR_OK)
            status = sdr_builder_add(builder, &piece);
    }
    sdr_piece_free(&piece);
    return status;
}

enum sdr_status sdr_data_recast(const struct sdr_data_options *options,
                                const struct sdr_schema *known, struct sdr_data **data)
{
    struct sdr_data *from = *data, *to = NULL;
    struct sdr_builder *builder = NULL;
    enum sdr_status status;
    SDR_TRY(check_columns(from, known));
    if (fits(&from->schema, known)) {
        sdr_schema_free(&from->schema);
        return sdr_schema_copy(&from->schema, known);
    }
    SDR_CHECK(sdr_allocate(&to, 1, sizeof *to, "the data"));
    SDR_CHECK(sdr_copy_string(&to->name, from->name));
    SDR_CHECK(sdr_builder_create(options, known, &to->schema,
                                 from->rows.dense ? SDR_LAYOUT_BY_DENSITY : SDR_LAYOUT_SPARSE,
                                 &builder));
    SDR_CHECK(rebuild(from, builder));
    status = sdr_builder_finish(builder, to);
    builder = NULL;
    if (status == SDR_OK)
        status = sdr_data_sign(to);
cleanup:
    sdr_builder_destroy(builder);
    sdr_data_destroy(status == SDR_OK ? from : to);
    if (status == SDR_OK)
        *data = to;
    return status;
}
