/* The schema as JSON, in cache and model files. Texts that JSON cannot represent (invalid UTF-8, or
   a NUL) are written as {"hex": "…"}. Reading trusts nothing: the file may be damaged or malicious,
   and kernels index arrays by its numbers. */
#include "base/json.h"
#include "data/data.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_FEATURES = 0x7FFFFFFF };
static const char *const missing_name[] = {"error", "zero", "mean"};
static const char *const kind_name[] = {"number", "category", "label", "weight", "ignored"};

/* ---- writing ---- */

json_t *sdr_text_to_json(const char *text, size_t length)
{
    static const char digit[] = "0123456789abcdef";
    if (!memchr(text, 0, length) && sdr_is_utf8(text, length))
        return json_stringn(text, length);
    json_t *json;
    char *hex;
    if (length > SIZE_MAX / 2 || sdr_allocate(&hex, 2 * length + 1, 1, "the schema") != SDR_OK)
        return NULL;
    for (size_t i = 0; i < length; i++) {
        hex[2 * i] = digit[(unsigned char)text[i] >> 4];
        hex[2 * i + 1] = digit[(unsigned char)text[i] & 15];
    }
    json = json_pack("{s:s}", "hex", hex);
    sdr_release(hex);
    return json;
}

static json_t *dictionary_json(const struct sdr_dictionary *dictionary)
{
    json_t *list = json_array();
    for (uint32_t i = 0; list && i < dictionary->count; i++)
        if (json_array_append_new(list,
                                  sdr_text_to_json(dictionary->text[i], dictionary->length[i]))) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static json_t *floats_json(const float *values, uint32_t count)
{
    json_t *list = json_array();
    for (uint32_t i = 0; list && i < count; i++)
        if (json_array_append_new(list, json_real((double)values[i]))) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static json_t *columns_json(const struct sdr_schema *schema)
{
    json_t *list = json_array();
    for (uint32_t i = 0; list && i < schema->columns; i++) {
        const struct sdr_column *column = &schema->column[i];
        json_t *name = sdr_text_to_json(column->name, strlen(column->name));
        json_t *item =
            name ? json_pack("{s:o, s:s, s:I}", "name", name, "kind", kind_name[column->kind],
                             "feature", (json_int_t)column->feature)
                 : NULL;
        if (json_array_append_new(list, item)) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

enum sdr_status sdr_schema_to_json(const struct sdr_schema *schema, json_t **json)
{
    json_t *root = json_object();
    int bad = !root;
    bad = bad || json_object_set_new(root, "format",
                                     json_string(schema->format ? schema->format : "arrays"));
    bad = bad || json_object_set_new(root, "features", json_integer(schema->features));
    bad = bad || json_object_set_new(root, "numbers", json_integer(schema->numbers));
    bad = bad || json_object_set_new(root, "bits", json_integer(schema->bits));
    bad = bad || json_object_set_new(root, "base", json_integer(schema->base));
    bad = bad || json_object_set_new(root, "missing", json_string(missing_name[schema->missing]));
    bad = bad || json_object_set_new(root, "text_labels", json_boolean(schema->text_labels));
    bad = bad || json_object_set_new(root, "many_labels", json_boolean(schema->many_labels));
    if (schema->columns)
        bad = bad || json_object_set_new(root, "columns", columns_json(schema));
    if (schema->category.count)
        bad = bad || json_object_set_new(root, "categories", dictionary_json(&schema->category));
    if (schema->mean)
        bad = bad || json_object_set_new(root, "mean", floats_json(schema->mean, schema->features));
    bad = bad || json_object_set_new(root, "labels", dictionary_json(&schema->labels));
    if (schema->label_value)
        bad = bad || json_object_set_new(root, "label_values",
                                         floats_json(schema->label_value, schema->labels.count));
    if (schema->dims[0])
        bad = bad || json_object_set_new(root, "dims",
                                         json_pack("[I, I, I]", (json_int_t)schema->dims[0],
                                                   (json_int_t)schema->dims[1],
                                                   (json_int_t)schema->dims[2]));
    if (bad) {
        json_decref(root);
        *json = NULL;
        return sdr_fail(SDR_RUNTIME, "out of memory: the schema");
    }
    *json = root;
    return SDR_OK;
}

/* ---- reading ---- */

static enum sdr_status bad(const char *what)
{
    return sdr_fail(SDR_BAD_FILE, "the schema is damaged: %s", what);
}

static int unhex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The text of a string or {"hex": …}; given away. */
enum sdr_status sdr_text_from_json(const json_t *json, char **text, size_t *length)
{
    *text = NULL;
    if (json_is_string(json)) {
        *length = json_string_length(json);
        return sdr_copy_bytes(text, json_string_value(json), *length);
    }
    const json_t *hex = json_object_get(json, "hex");
    if (!json_is_string(hex) || json_string_length(hex) % 2)
        return bad("a text is missing");
    const char *digits = json_string_value(hex);
    *length = json_string_length(hex) / 2;
    SDR_TRY(sdr_allocate(text, *length + 1, 1, "the schema"));
    for (size_t i = 0; i < *length; i++) {
        int high = unhex(digits[2 * i]), low = unhex(digits[2 * i + 1]);
        if (high < 0 || low < 0) {
            sdr_release(*text);
            *text = NULL;
            return bad("a text is not hexadecimal");
        }
        (*text)[i] = (char)(high << 4 | low);
    }
    return SDR_OK;
}

static enum sdr_status read_u32(const json_t *json, const char *key, uint32_t most, uint32_t *value)
{
    const json_t *item = json_object_get(json, key);
    json_int_t number = json_integer_value(item);
    if (!json_is_integer(item) || number < 0 || number > (json_int_t)most)
        return bad(key);
    *value = (uint32_t)number;
    return SDR_OK;
}

static enum sdr_status read_flag(const json_t *json, const char *key, bool *value)
{
    const json_t *item = json_object_get(json, key);
    if (!json_is_boolean(item))
        return bad(key);
    *value = json_is_true(item);
    return SDR_OK;
}

static enum sdr_status read_name(const json_t *item, const char *what, const char *const *names,
                                 int count, int *value)
{
    const char *text = json_string_value(item);
    for (int i = 0; text && i < count; i++)
        if (strcmp(text, names[i]) == 0) {
            *value = i;
            return SDR_OK;
        }
    return bad(what);
}

static enum sdr_status read_dictionary(const json_t *list, const char *what, uint32_t most,
                                       struct sdr_dictionary *dictionary)
{
    if (!json_is_array(list) || json_array_size(list) > most)
        return bad(what);
    for (size_t i = 0; i < json_array_size(list); i++) {
        char *text;
        size_t length;
        uint32_t number;
        SDR_TRY(sdr_text_from_json(json_array_get(list, i), &text, &length));
        enum sdr_status status = sdr_dictionary_find(dictionary, text, length, true, &number);
        sdr_release(text);
        SDR_TRY(status);
        if (number != i)
            return bad("a text occurs twice");
    }
    return SDR_OK;
}

static enum sdr_status read_floats(const json_t *list, const char *what, uint32_t count,
                                   uint32_t room, float **values)
{
    if (!json_is_array(list) || json_array_size(list) != count)
        return bad(what);
    SDR_TRY(sdr_allocate(values, room, sizeof **values, "the schema"));
    for (uint32_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(list, i);
        (*values)[i] = (float)json_number_value(item);
        if (!json_is_number(item) || !isfinite((*values)[i]))
            return bad(what);
    }
    return SDR_OK;
}

static enum sdr_status read_columns(const json_t *list, struct sdr_schema *schema)
{
    if (!json_is_array(list) || json_array_size(list) > MOST_FEATURES)
        return bad("columns");
    uint32_t count = (uint32_t)json_array_size(list);
    SDR_TRY(sdr_allocate(&schema->column, count, sizeof *schema->column, "the schema"));
    schema->columns = count;
    for (uint32_t i = 0; i < count; i++) {
        struct sdr_column *column = &schema->column[i];
        const json_t *item = json_array_get(list, i);
        int kind = 0;
        size_t length;
        SDR_TRY(sdr_text_from_json(json_object_get(item, "name"), &column->name, &length));
        SDR_TRY(read_name(json_object_get(item, "kind"), "kind of a column", kind_name, 5, &kind));
        SDR_TRY(read_u32(item, "feature", MOST_FEATURES, &column->feature));
        column->kind = (enum sdr_column_kind)kind;
        if (memchr(column->name, 0, length))
            return bad("name of a column");
        if (column->kind == SDR_COLUMN_NUMBER && column->feature >= schema->numbers)
            return bad("feature of a column");
    }
    return SDR_OK;
}

static enum sdr_status read_labels(const json_t *json, struct sdr_schema *schema)
{
    const json_t *values = json_object_get(json, "label_values");
    SDR_TRY(read_flag(json, "text_labels", &schema->text_labels));
    SDR_TRY(read_flag(json, "many_labels", &schema->many_labels));
    SDR_TRY(read_dictionary(json_object_get(json, "labels"), "labels",
                            schema->text_labels ? 1 << 24 : SDR_LABELS_MOST, &schema->labels));
    if (values)
        SDR_TRY(read_floats(values, "label_values", schema->labels.count, SDR_LABELS_MOST,
                            &schema->label_value));
    if (schema->text_labels ? values != NULL : schema->labels.count > 0 && !values)
        return bad("label_values");
    if (schema->many_labels && (schema->labels.count || schema->text_labels))
        return bad("many_labels");
    return SDR_OK;
}

static enum sdr_status read_dims(const json_t *list, struct sdr_schema *schema)
{
    uint64_t cells = 1;
    if (!json_is_array(list) || json_array_size(list) != 3)
        return bad("dims");
    for (size_t i = 0; i < 3; i++) {
        const json_t *item = json_array_get(list, i);
        json_int_t number = json_integer_value(item);
        if (!json_is_integer(item) || number < 0 || number > MOST_FEATURES)
            return bad("dims");
        schema->dims[i] = (uint32_t)number;
        if (number && __builtin_mul_overflow(cells, (uint64_t)number, &cells))
            return bad("dims");
    }
    if (schema->dims[0] == 0 || cells != schema->features || (schema->dims[2] && !schema->dims[1]))
        return bad("dims");
    return SDR_OK;
}

static enum sdr_status read_schema(const json_t *json, struct sdr_schema *schema)
{
    const json_t *item = json_object_get(json, "format");
    uint32_t bits = 0, base = 0;
    int missing = 0;
    if (!json_is_string(item))
        return bad("format");
    SDR_TRY(sdr_copy_string(&schema->format, json_string_value(item)));
    SDR_TRY(read_u32(json, "features", MOST_FEATURES, &schema->features));
    SDR_TRY(read_u32(json, "numbers", schema->features, &schema->numbers));
    SDR_TRY(read_u32(json, "bits", 30, &bits));
    SDR_TRY(read_u32(json, "base", 1, &base));
    SDR_TRY(read_name(json_object_get(json, "missing"), "missing", missing_name, 3, &missing));
    schema->bits = bits;
    schema->base = (int)base;
    schema->missing = (enum sdr_missing)missing;
    if ((item = json_object_get(json, "columns")))
        SDR_TRY(read_columns(item, schema));
    if ((item = json_object_get(json, "categories")))
        SDR_TRY(read_dictionary(item, "categories", MOST_FEATURES, &schema->category));
    if (schema->category.count != schema->features - schema->numbers)
        return bad("number of categories");
    if ((item = json_object_get(json, "mean")))
        SDR_TRY(read_floats(item, "mean", schema->features, schema->features, &schema->mean));
    if ((item = json_object_get(json, "dims")))
        SDR_TRY(read_dims(item, schema));
    return read_labels(json, schema);
}

enum sdr_status sdr_schema_from_json(const json_t *json, struct sdr_schema *schema)
{
    *schema = (struct sdr_schema){0};
    if (!json_is_object(json))
        return bad("it is no object");
    enum sdr_status status = read_schema(json, schema);
    if (status != SDR_OK)
        sdr_schema_free(schema);
    return status;
}
