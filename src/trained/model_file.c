/* Model files: safetensors with the blocks as arrays and everything else as text metadata. */
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/tensors.h"
#include "data/cache.h"
#include "data/read.h"
#include "run/problem.h"
#include "run/registry.h"
#include "trained/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static json_t *classes_json(const struct sdr_classes *classes)
{
    json_t *array = json_array();
    for (uint32_t k = 0; array && k < classes->count; k++)
        if (json_array_append_new(array,
                                  sdr_text_to_json(classes->text[k], strlen(classes->text[k])))) {
            json_decref(array);
            return NULL;
        }
    return array;
}

static enum sdr_status set_text(json_t *object, const char *key, json_t *value)
{
    char *text;
    SDR_TRY(sdr_json_text(value, &text));
    bool set = json_object_set_new(object, key, json_string(text)) == 0;
    sdr_release(text);
    return set ? SDR_OK : sdr_fail(SDR_RUNTIME, "out of memory: metadata");
}

/* A block of a model, for whoever writes it piece by piece. */
struct block_of {
    const struct sdr_model *model;
    const float *value;
};

static enum sdr_status read_block(void *context, uint64_t first, uint64_t count, void *to)
{
    const struct block_of *of = context;
    memcpy(to, of->value + first, count * sizeof(float));
    sdr_model_passed(of->model, of->value + first, count);
    return SDR_OK;
}

enum sdr_status sdr_model_save(const struct sdr_model *model, const char *path)
{
    struct sdr_tensor tensor[SDR_BLOCKS_MOST] = {0};
    struct block_of of[SDR_BLOCKS_MOST];
    json_t *metadata = NULL, *schema = NULL;
    enum sdr_status status;
    for (int b = 0; b < model->blocks; b++) {
        snprintf(tensor[b].name, sizeof tensor[b].name, "%s", model->block[b].name);
        tensor[b].shape[0] = model->block[b].rows;
        tensor[b].shape[1] = model->block[b].cols;
        tensor[b].data = model->value + model->block[b].offset;
        of[b] = (struct block_of){model, tensor[b].data};
        tensor[b].context = &of[b];
        tensor[b].read = model->values->mapped ? read_block : NULL;
    }
    metadata = sdr_json_begin(json_pack("{s:s, s:s, s:s, s:s, s:s}", "format", "sounder", "version",
                                        "1", "model", model->kind_spec, "training", model->training,
                                        "hash", model->hash));
    if (!metadata)
        return sdr_fail(SDR_RUNTIME, "out of memory: metadata");
    SDR_CHECK(sdr_schema_to_json(&model->schema, &schema));
    SDR_CHECK(set_text(metadata, "schema", schema));
    SDR_CHECK(set_text(metadata, "labels", classes_json(&model->classes)));
    SDR_CHECK(sdr_tensors_write(path, metadata, tensor, model->blocks));
cleanup:
    json_decref(metadata);
    return status;
}

static enum sdr_status bad_model(const char *path, const char *why)
{
    return sdr_fail(SDR_BAD_FILE, "%s: not a Sounder model: %s", path, why);
}

/* Explains that a data file was given instead of a model. */
static enum sdr_status refuse_data(const char *path)
{
    char head[sizeof SDR_CACHE_MAGIC];
    size_t count;
    SDR_TRY(sdr_file_head(path, head, sizeof head, &count));
    if (count == 0 || sdr_tensors_begin(head, count))
        return SDR_OK;
    if (count >= sizeof head - 1 && memcmp(head, SDR_CACHE_MAGIC, sizeof head - 1) == 0)
        return sdr_fail(SDR_BAD_FILE, "%s is data (a cache file), not a model", path);
    const struct sdr_data_options plain = {0};
    const struct sdr_format *format;
    struct sdr_source *source;
    const char *bytes;
    bool guessed, known = false;
    if (sdr_source_open(path, &source) != SDR_OK)
        return SDR_OK;
    if (sdr_source_peek(source, &bytes, &count) == SDR_OK)
        known =
            sdr_format_choose(&plain, NULL, path, path, bytes, count, &format, &guessed) == SDR_OK;
    sdr_source_close(source);
    return known ? sdr_fail(SDR_BAD_FILE, "%s is data (%s), not a model", path, format->name)
                 : SDR_OK;
}

static enum sdr_status load_classes(const char *path, const struct sdr_tensors *file,
                                    struct sdr_classes *classes, bool numbers)
{
    const char *text = sdr_tensors_text(file, "labels");
    json_t *array = NULL;
    enum sdr_status status = sdr_json_parse(text ? text : "", text ? strlen(text) : 0, &array);
    size_t count = json_array_size(array);
    if (status == SDR_BAD_FILE || (status == SDR_OK && (!json_is_array(array) || count > 1 << 24)))
        status = bad_model(path, "its labels are unreadable");
    if (status == SDR_OK)
        status = sdr_allocate(&classes->text, count, sizeof(char *), "classes");
    if (status == SDR_OK && numbers)
        status = sdr_allocate(&classes->value, count, sizeof(float), "classes");
    for (size_t i = 0; i < count && status == SDR_OK; i++) {
        double number = 0;
        size_t length = 0;
        status = sdr_text_from_json(json_array_get(array, i), &classes->text[i], &length);
        if (status != SDR_OK)
            break;
        classes->count++;
        if (strlen(classes->text[i]) != length ||
            (numbers && !sdr_parse_double(classes->text[i], &number)))
            status = bad_model(path, "a label is unreadable");
        if (numbers)
            classes->value[i] = (float)number;
    }
    json_decref(array);
    return status;
}

static enum sdr_status load_blocks(const char *path, const struct sdr_tensors *file,
                                   struct sdr_model *model)
{
    const struct sdr_tensor *intercept = sdr_tensors_find(file, "intercept");
    model->outputs = sdr_outputs(model->kind, model->options, model->classes.count);
    model->intercept = intercept != NULL;
    struct sdr_problem problem = {.features = model->schema.features,
                                  .image = SDR_DIMS(model->schema),
                                  .classes = model->classes.count,
                                  .outputs = model->outputs,
                                  .intercept = model->intercept,
                                  .model_options = model->options};
    model->blocks = model->kind->shape(&problem, model->block);
    if (model->blocks < 0)
        return bad_model(path, "its layers make no sense");
    for (int b = 0; b < model->blocks; b++) {
        model->block[b].offset = model->count;
        model->count += (uint64_t)model->block[b].rows * model->block[b].cols;
        model->count = (model->count + 15) / 16 * 16;
    }
    if (file->count != model->blocks)
        return bad_model(path, "it has other arrays than its model: it may be of another version, "
                               "and has to be trained again");
    for (int b = 0; b < model->blocks; b++) {
        const struct sdr_block *block = &model->block[b];
        const struct sdr_tensor *tensor = sdr_tensors_find(file, block->name);
        if (!tensor || tensor->dtype != SDR_F32 || tensor->shape[0] != block->rows ||
            tensor->shape[1] != block->cols)
            return bad_model(path, "an array has the wrong shape");
    }
    SDR_TRY(sdr_model_values_create(model->count, &model->values));
    model->value = model->values->value;
    for (int b = 0; b < model->blocks; b++) {
        const struct sdr_block *block = &model->block[b];
        memcpy(model->values->value + block->offset, sdr_tensors_find(file, block->name)->data,
               (size_t)block->rows * block->cols * sizeof(float));
    }
    for (uint64_t i = 0; i < model->count; i++)
        if (!isfinite(model->value[i]))
            return bad_model(path, "a weight is not finite");
    return SDR_OK;
}

static enum sdr_status load(const char *path, const struct sdr_tensors *file,
                            struct sdr_model *model)
{
    const char *format = sdr_tensors_text(file, "format"),
               *version = sdr_tensors_text(file, "version");
    const char *kind = sdr_tensors_text(file, "model"), *text = sdr_tensors_text(file, "schema");
    const char *training = sdr_tensors_text(file, "training");
    const struct sdr_plugin *plugin;
    if (format && strcmp(format, "sounder-checkpoint") == 0)
        return sdr_fail(SDR_BAD_FILE,
                        "%s is a checkpoint, not a model: go on from it with train --resume", path);
    if (!format || strcmp(format, "sounder") != 0 || !kind || !text || !training)
        return bad_model(path, "its metadata is of another program");
    if (!version || strcmp(version, "1") != 0)
        return bad_model(path, "it was written by a newer version");
    enum sdr_status status =
        sdr_plugin_choose("model", sdr_model_kind_table, kind, &plugin, &model->options);
    if (status == SDR_USAGE) /* a model kind this version does not know */
        return sdr_fail_in(SDR_BAD_FILE, "%s: ", path);
    SDR_TRY(status);
    model->kind = (const struct sdr_model_kind *)plugin;
    SDR_TRY(sdr_copy_string(&model->kind_spec, kind));
    SDR_TRY(sdr_copy_string(&model->training, training));
    json_t *schema;
    status = sdr_json_parse(text, strlen(text), &schema);
    if (status == SDR_OK)
        status = sdr_schema_from_json(schema, &model->schema);
    else if (status == SDR_BAD_FILE)
        status = bad_model(path, "its schema is unreadable");
    json_decref(schema);
    SDR_TRY(status);
    bool classes = model->kind->truth == SDR_BINARY || model->kind->truth == SDR_CLASSES;
    SDR_TRY(load_classes(path, file, &model->classes, classes && !model->schema.text_labels));
    if (classes && model->classes.count < 2)
        return bad_model(path, "it has fewer than two classes");
    if (model->kind->truth == SDR_BINARY && model->classes.count != 2)
        return bad_model(path, "it has more than two classes, but tells two apart");
    if (!classes && model->classes.count)
        return bad_model(path, "it has classes, but predicts values");
    SDR_TRY(load_blocks(path, file, model));
    return sdr_model_hash(model);
}

enum sdr_status sdr_model_load(const char *path, struct sdr_model **result)
{
    struct sdr_tensors file;
    struct sdr_model *model;
    *result = NULL;
    SDR_TRY(refuse_data(path));
    SDR_TRY(sdr_tensors_read(path, &file));
    enum sdr_status status = sdr_allocate(&model, 1, sizeof *model, "a model");
    if (status == SDR_OK)
        status = load(path, &file, model);
    sdr_tensors_free(&file);
    if (status != SDR_OK) {
        sdr_model_destroy(model);
        return status;
    }
    *result = model;
    return SDR_OK;
}
