/* The contents of a data set as JSON. */
#include "base/json.h"
#include "data/cache.h"

#include <stdlib.h>
#include <string.h>

enum { LIST_MOST = 100 }; /* of distinct labels and columns */

static int set(json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, value);
}

/* Replaces invalid UTF-8 for display. */
static json_t *shown(const char *text, size_t length)
{
    json_t *json;
    char *copy;
    if (sdr_is_utf8(text, length))
        return json_stringn(text, length);
    if (sdr_copy_bytes(&copy, text, length) != SDR_OK)
        return NULL;
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)copy[i] >= 128)
            copy[i] = '?';
    json = json_stringn(copy, length);
    sdr_release(copy);
    return json;
}

/* The index of a row's label in the schema's list; its length if absent. */
static uint32_t number_of(const struct sdr_schema *schema, float label)
{
    uint32_t count = schema->labels.count;
    if (schema->text_labels)
        return label >= 0 && label < (float)count ? (uint32_t)label : count;
    for (uint32_t i = 0; i < count; i++)
        if (schema->label_value[i] == label)
            return i;
    return count;
}

static int add_distinct(json_t *root, const struct sdr_data *data)
{
    const struct sdr_schema *schema = &data->schema;
    uint64_t counts[LIST_MOST + 1] = {0};
    json_t *list = json_array();
    int bad = !list;
    for (uint64_t r = 0; r < data->rows.count; r++)
        counts[number_of(schema, data->rows.label[r])]++;
    for (uint32_t i = 0; i < schema->labels.count; i++)
        bad = bad || json_array_append_new(
                         list, json_pack("{s:o, s:I}", "label",
                                         shown(schema->labels.text[i], schema->labels.length[i]),
                                         "rows", (json_int_t)counts[i]));
    bad = bad || set(root, "labels", list);
    json_int_t others = (json_int_t)counts[schema->labels.count];
    if (others)
        bad = bad || set(root, "other_labels", json_integer(others));
    return bad;
}

static int add_range(json_t *root, const struct sdr_data *data)
{
    const float *label = data->rows.label;
    double least = (double)label[0], most = least, sum = 0;
    for (uint64_t r = 0; r < data->rows.count; r++) {
        double x = (double)label[r];
        least = x < least ? x : least;
        most = x > most ? x : most;
        sum += x;
    }
    json_t *object = json_pack("{s:f, s:f, s:f}", "min", least, "max", most, "mean",
                               sum / (double)data->rows.count);
    int bad = !object;
    if (object && !data->schema.many_labels)
        bad = set(object, "distinct", json_integer(data->schema.labels.count));
    return set(root, "labels", object) || bad;
}

static int add_columns(json_t *root, const struct sdr_schema *schema)
{
    static const char *const kind[] = {"number", "category", "label", "weight", "ignored"};
    json_t *list = json_array();
    int bad = !list;
    for (uint32_t i = 0; i < schema->columns && i < LIST_MOST; i++) {
        const struct sdr_column *column = &schema->column[i];
        json_t *item = json_pack("{s:o, s:s}", "name", shown(column->name, strlen(column->name)),
                                 "kind", kind[column->kind]);
        if (item && column->kind == SDR_COLUMN_CATEGORY) {
            size_t length = strlen(column->name);
            json_int_t values = 0;
            for (uint32_t k = 0; k < schema->category.count; k++)
                values += schema->category.length[k] > length &&
                          schema->category.text[k][length] == '=' &&
                          memcmp(schema->category.text[k], column->name, length) == 0;
            bad |= set(item, "values", json_integer(values));
        }
        bad = bad || json_array_append_new(list, item);
    }
    bad = bad || set(root, "column_count", json_integer(schema->columns));
    return bad || set(root, "columns", list);
}

static int fill(json_t *root, const struct sdr_data *data)
{
    static const char *const missing[] = {"error", "zero", "mean"};
    const struct sdr_rows *rows = &data->rows;
    const struct sdr_schema *schema = &data->schema;
    double cells = (double)rows->count * (double)rows->features;
    int bad = set(root, "name", shown(data->name, strlen(data->name)));
    bad = bad || set(root, "format", json_string(schema->format ? schema->format : "arrays"));
    bad = bad || set(root, "rows", json_integer((json_int_t)rows->count));
    bad = bad || set(root, "features", json_integer(rows->features));
    bad = bad || set(root, "nonzeros", json_integer((json_int_t)data->nonzeros));
    bad = bad || set(root, "density", json_real(cells > 0 ? (double)data->nonzeros / cells : 0));
    bad = bad || set(root, "layout", json_string(rows->dense ? "dense" : "sparse"));
    if (!rows->dense)
        bad = bad || set(root, "index_bits", json_integer(rows->index16 ? 16 : 32));
    bad = bad || set(root, "bytes", json_integer((json_int_t)sdr_data_bytes(data)));
    bad = bad || set(root, "streams", json_boolean(data->streams));
    bad = bad || set(root, "weights", json_boolean(rows->weight != NULL));
    bad = bad || set(root, "missing", json_string(missing[schema->missing]));
    bad = bad || set(root, "categories", json_integer(schema->category.count));
    bad = bad || set(root, "unseen", json_integer((json_int_t)data->unseen));
    if (schema->bits)
        bad = bad || set(root, "bits", json_integer(schema->bits));
    if (schema->dims[0])
        bad = bad || set(root, "dims",
                         json_pack("[I, I, I]", (json_int_t)schema->dims[0],
                                   (json_int_t)schema->dims[1], (json_int_t)schema->dims[2]));
    if (rows->label && rows->count)
        bad = bad ||
              (schema->labels.count && schema->labels.count <= LIST_MOST ? add_distinct(root, data)
                                                                         : add_range(root, data));
    if (schema->columns)
        bad = bad || add_columns(root, schema);
    if (data->source_key)
        bad = bad || set(root, "key", json_string(data->source_key));
    return bad;
}

enum sdr_status sdr_data_inspect(const struct sdr_data *data, char **json)
{
    json_t *root = json_object();
    *json = NULL;
    enum sdr_status status =
        root && !fill(root, data)
            ? sdr_json_dump(root, JSON_INDENT(2) | JSON_REAL_PRECISION(9), json)
            : sdr_fail(SDR_RUNTIME, "out of memory: describing the data");
    json_decref(root);
    return status;
}
