/* Labels: the list of classes, and the class of every row. */
#include "base/memory.h"
#include "run/problem.h"
#include "run/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct label {
    const char *text;
    float value;
};

static int by_value(const void *a, const void *b)
{
    float x = ((const struct label *)a)->value, y = ((const struct label *)b)->value;
    return (x > y) - (x < y);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(((const struct label *)a)->text, ((const struct label *)b)->text);
}

/* Arrays passed in by the caller have no list of labels: makes one. */
enum sdr_status sdr_labels_list(struct sdr_data *data)
{
    struct sdr_schema *schema = &data->schema;
    if (schema->labels.count || schema->many_labels || !data->rows.label)
        return SDR_OK;
    SDR_TRY(sdr_allocate(&schema->label_value, SDR_LABELS_MOST, sizeof(float), "labels"));
    for (uint64_t row = 0; row < data->rows.count; row++) {
        float value = data->rows.label[row];
        char text[SDR_NUMBER_TEXT];
        uint32_t number;
        if (schema->labels.count && schema->label_value[schema->labels.count - 1] == value)
            continue;
        size_t length = sdr_print_float(text, value);
        SDR_TRY(sdr_dictionary_find(&schema->labels, text, length, false, &number));
        if (number != UINT32_MAX)
            continue;
        if (schema->labels.count == SDR_LABELS_MOST) {
            schema->many_labels = true;
            return SDR_OK;
        }
        SDR_TRY(sdr_dictionary_find(&schema->labels, text, length, true, &number));
        schema->label_value[number] = value;
    }
    return SDR_OK;
}

enum sdr_status sdr_classes_find(const struct sdr_data *data, struct sdr_classes *classes)
{
    const struct sdr_schema *schema = &data->schema;
    uint32_t count = schema->labels.count;
    struct label *label;
    if (schema->many_labels)
        return sdr_fail(SDR_BAD_DATA,
                        "%s: more than %d different labels, or labels too large to be told "
                        "apart: these are not classes (try --model squared)",
                        data->name, SDR_LABELS_MOST);
    SDR_TRY(sdr_allocate(&label, count, sizeof *label, "classes"));
    for (uint32_t i = 0; i < count; i++)
        label[i] = (struct label){schema->labels.text[i],
                                  schema->text_labels ? 0 : schema->label_value[i]};
    qsort(label, count, sizeof *label, schema->text_labels ? by_text : by_value);
    enum sdr_status status = sdr_allocate(&classes->text, count, sizeof(char *), "classes");
    if (status == SDR_OK && !schema->text_labels)
        status = sdr_allocate(&classes->value, count, sizeof(float), "classes");
    for (uint32_t i = 0; i < count && status == SDR_OK; i++) {
        /* 1 and 1.0 are one class, named by the text that came first. */
        if (classes->value && classes->count &&
            classes->value[classes->count - 1] == label[i].value)
            continue;
        if (classes->value)
            classes->value[classes->count] = label[i].value;
        status = sdr_copy_string(&classes->text[classes->count], label[i].text);
        classes->count += status == SDR_OK;
    }
    sdr_release(label);
    return status;
}

enum sdr_status sdr_classes_copy(struct sdr_classes *to, const struct sdr_classes *from)
{
    *to = (struct sdr_classes){0};
    SDR_TRY(sdr_allocate(&to->text, from->count, sizeof(char *), "classes"));
    if (from->value) {
        SDR_TRY(sdr_allocate(&to->value, from->count, sizeof(float), "classes"));
        memcpy(to->value, from->value, from->count * sizeof(float));
    }
    for (; to->count < from->count; to->count++)
        SDR_TRY(sdr_copy_string(&to->text[to->count], from->text[to->count]));
    return SDR_OK;
}

void sdr_classes_free(struct sdr_classes *classes)
{
    for (uint32_t i = 0; i < classes->count; i++)
        sdr_release(classes->text[i]);
    sdr_release(classes->text);
    sdr_release(classes->value);
    *classes = (struct sdr_classes){0};
}

static int64_t class_of_value(const struct sdr_classes *classes, float value)
{
    uint32_t low = 0, high = classes->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (classes->value[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low < classes->count && classes->value[low] == value ? (int64_t)low : -1;
}

/* Text labels match numeric ones by their text. */
int64_t sdr_class_of_text(const struct sdr_classes *classes, const char *text)
{
    double number;
    for (uint32_t i = 0; i < classes->count; i++)
        if (strcmp(classes->text[i], text) == 0)
            return i;
    return classes->value && sdr_parse_double(text, &number)
               ? class_of_value(classes, (float)number)
               : -1;
}

static int64_t class_of_number(const struct sdr_classes *classes, float value)
{
    char text[SDR_NUMBER_TEXT];
    if (classes->value)
        return class_of_value(classes, value);
    sdr_print_float(text, value);
    return sdr_class_of_text(classes, text);
}

enum sdr_status sdr_targets(const struct sdr_data *data, const struct sdr_classes *classes,
                            const struct sdr_model_kind *kind, float **target)
{
    const struct sdr_schema *schema = &data->schema;
    uint64_t count = data->rows.count;
    int64_t *of_text = NULL;
    SDR_TRY(sdr_allocate(target, count, sizeof(float), "targets"));
    if (!(kind->needs & SDR_NEEDS_LABELS)) /* labels do not matter */
        return SDR_OK;
    if (kind->truth == SDR_REGRESSION || kind->truth == SDR_UNSUPERVISED) {
        if (schema->text_labels)
            return sdr_fail(SDR_BAD_DATA,
                            "%s: the label '%s' is not a number: regression needs numbers",
                            data->name, schema->labels.text[0]);
        memcpy(*target, data->rows.label, count * sizeof(float));
        return SDR_OK;
    }
    if (schema->text_labels) {
        SDR_TRY(sdr_allocate(&of_text, schema->labels.count, sizeof *of_text, "classes"));
        for (uint32_t i = 0; i < schema->labels.count; i++)
            of_text[i] = sdr_class_of_text(classes, schema->labels.text[i]);
    }
    for (uint64_t row = 0; row < count; row++) {
        float label = data->rows.label[row];
        int64_t number = !of_text     ? class_of_number(classes, label)
                         : label >= 0 ? of_text[(uint32_t)label]
                                      : -1; /* a text that is not in the schema */
        if (number < 0)
            (*target)[row] = NAN; /* a label not seen in training */
        else
            (*target)[row] = kind->truth == SDR_BINARY ? (number ? 1.0f : -1.0f) : (float)number;
    }
    sdr_release(of_text);
    return SDR_OK;
}
