/* The schema of a data set: freeing and copying. As JSON: schema_json.c. */
#include "data/data.h"

#include <string.h>

void sdr_schema_free(struct sdr_schema *schema)
{
    sdr_release(schema->format);
    for (uint32_t i = 0; schema->column && i < schema->columns; i++)
        sdr_release(schema->column[i].name);
    sdr_release(schema->column);
    sdr_dictionary_free(&schema->category);
    sdr_release(schema->mean);
    sdr_dictionary_free(&schema->labels);
    sdr_release(schema->label_value);
    *schema = (struct sdr_schema){0};
}

static enum sdr_status copy_dictionary(struct sdr_dictionary *to, const struct sdr_dictionary *from)
{
    uint32_t number;
    for (uint32_t i = 0; i < from->count; i++)
        SDR_TRY(sdr_dictionary_find(to, from->text[i], from->length[i], true, &number));
    return SDR_OK;
}

static enum sdr_status copy_floats(float **to, const float *from, uint32_t count, uint32_t room)
{
    if (!from)
        return SDR_OK;
    SDR_TRY(sdr_allocate(to, room, sizeof **to, "the schema"));
    memcpy(*to, from, count * sizeof **to);
    return SDR_OK;
}

static enum sdr_status copy_columns(struct sdr_schema *to, const struct sdr_schema *from)
{
    if (!from->column)
        return SDR_OK;
    SDR_TRY(sdr_allocate(&to->column, from->columns, sizeof *to->column, "the schema"));
    to->columns = from->columns;
    for (uint32_t i = 0; i < from->columns; i++) {
        to->column[i].kind = from->column[i].kind;
        to->column[i].feature = from->column[i].feature;
        SDR_TRY(sdr_copy_string(&to->column[i].name, from->column[i].name));
    }
    return SDR_OK;
}

enum sdr_status sdr_schema_copy(struct sdr_schema *to, const struct sdr_schema *from)
{
    enum sdr_status status = SDR_OK;
    *to = (struct sdr_schema){0};
    if (from->format)
        SDR_CHECK(sdr_copy_string(&to->format, from->format));
    SDR_CHECK(copy_columns(to, from));
    SDR_CHECK(copy_dictionary(&to->category, &from->category));
    SDR_CHECK(copy_floats(&to->mean, from->mean, from->features, from->features));
    SDR_CHECK(copy_dictionary(&to->labels, &from->labels));
    SDR_CHECK(
        copy_floats(&to->label_value, from->label_value, from->labels.count, SDR_LABELS_MOST));
    to->features = from->features;
    to->numbers = from->numbers;
    to->bits = from->bits;
    to->base = from->base;
    to->missing = from->missing;
    to->text_labels = from->text_labels;
    to->many_labels = from->many_labels;
    memcpy(to->dims, from->dims, sizeof to->dims);
cleanup:
    if (status != SDR_OK)
        sdr_schema_free(to);
    return status;
}
