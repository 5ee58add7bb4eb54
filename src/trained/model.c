/* Trained models: created from a run, used to predict and evaluate. Files: model_file.c. */
#include "trained/model.h"
#include "base/cpu.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/stop.h"
#include "base/thread.h"
#include "run/evaluate.h"
#include "run/problem.h"
#include "run/registry.h"

#include <string.h>

/* ---- creation ---- */
static void add_values(struct sdr_hasher *hasher, const struct sdr_model *model, const float *value,
                       uint64_t count)
{
    for (uint64_t at = 0; at < count; at += SDR_PIECE) {
        uint64_t some = count - at < SDR_PIECE ? count - at : SDR_PIECE;
        sdr_hasher_add(hasher, value + at, some * sizeof *value);
        sdr_model_passed(model, value + at, some);
    }
}

enum sdr_status sdr_model_hash(struct sdr_model *model)
{
    struct sdr_hasher *hasher = sdr_hasher_create();
    if (!hasher)
        return sdr_fail(SDR_RUNTIME, "out of memory: a hash");
    sdr_hasher_add(hasher, model->kind_spec, strlen(model->kind_spec) + 1);
    for (int b = 0; b < model->blocks; b++) {
        const struct sdr_block *block = &model->block[b];
        uint32_t shape[2] = {block->rows, block->cols};
        sdr_hasher_add(hasher, block->name, strlen(block->name) + 1);
        sdr_hasher_add(hasher, shape, sizeof shape);
        add_values(hasher, model, model->value + block->offset,
                   (uint64_t)block->rows * block->cols);
    }
    for (uint32_t k = 0; k < model->classes.count; k++)
        sdr_hasher_add(hasher, model->classes.text[k], strlen(model->classes.text[k]) + 1);
    sdr_hasher_text(hasher, model->hash);
    sdr_hasher_destroy(hasher);
    return SDR_OK;
}

/* "name:key=value,…" with the current options. */
static enum sdr_status print_spec(const struct sdr_model_kind *kind, const void *options,
                                  char **spec)
{
    struct sdr_text text = {0};
    sdr_text_add(&text, "%s", kind->name);
    for (const struct sdr_option *o = kind->options; o && o->key; o++) {
        sdr_text_add(&text, "%c%s=", o == kind->options ? ':' : ',', o->key);
        sdr_option_print(o, options, &text);
    }
    return sdr_text_take(&text, spec);
}

/* The options that define the model. Excludes paths and thread counts: equal training gives equal
   bytes. */
static enum sdr_status print_training(const struct sdr_run *run, char **text)
{
    static const char *const names[] = {
        "optimizer", "lr",           "schedule",   "l1",
        "l2",        "group-lasso",  "penalty-on", "standardize",
        "scale",     "average",      "batch",      "shuffle",
        "sync",      "class-weight", "seed",       "valid-fraction"};
    json_t *object = sdr_json_begin(json_object());
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        sdr_json_set(object, names[i], sdr_option_json(&run->options, names[i]));
    /* Values chosen for options left at auto. */
    sdr_json_set(object, "optimizer", json_string(run->use.optimizer->name));
    sdr_json_set(object, "schedule", json_string(run->use.schedule->name));
    sdr_json_set(object, "scale", json_string(run->set.scale ? "feature" : "none"));
    sdr_json_set(object, "lr", json_real(run->pace.rate));
    sdr_json_set(object, "epochs", json_integer((json_int_t)run->progress.epoch));
    return sdr_json_text(object, text);
}

/* Models without classes drop the labels: smaller files that do not contain the training
   targets. */
static void forget_labels(struct sdr_schema *schema)
{
    sdr_dictionary_free(&schema->labels);
    sdr_release(schema->label_value);
    schema->label_value = NULL;
}

enum sdr_status sdr_model_create(struct sdr_run *run, enum sdr_array which,
                                 struct sdr_model **result)
{
    const struct sdr_layout *layout = &run->layout;
    struct sdr_model *model;
    enum sdr_status status;
    *result = NULL;
    SDR_TRY(sdr_allocate(&model, 1, sizeof *model, "a model"));
    model->kind = run->use.kind;
    memcpy(model->block, layout->block, sizeof model->block);
    model->blocks = layout->blocks;
    model->count = layout->count;
    model->intercept = run->problem.intercept;
    model->outputs = run->problem.outputs;
    const struct sdr_plugin *plugin;
    SDR_CHECK(print_spec(run->use.kind, run->use.model_options, &model->kind_spec));
    SDR_CHECK(sdr_plugin_choose("model", sdr_model_kind_table, model->kind_spec, &plugin,
                                &model->options));
    SDR_CHECK(sdr_model_values_collect(run, which, &model->values));
    model->value = model->values->value;
    if (run->set.center && run->use.kind->uncenter && model->intercept)
        run->use.kind->uncenter(model->block, run->set.center, model->values->value);
    SDR_CHECK(sdr_classes_copy(&model->classes, &run->set.classes));
    SDR_CHECK(sdr_schema_copy(&model->schema, &run->data->schema));
    model->schema.features = run->problem.features;
    if (!run->set.classes.count)
        forget_labels(&model->schema);
    SDR_CHECK(print_training(run, &model->training));
    SDR_CHECK(sdr_model_hash(model));
    *result = model;
    return SDR_OK;
cleanup:
    sdr_model_destroy(model);
    return status;
}

enum sdr_status sdr_model_copy(const struct sdr_model *from, struct sdr_model **copy)
{
    struct sdr_model *model;
    const struct sdr_plugin *plugin;
    enum sdr_status status;
    *copy = NULL;
    SDR_TRY(sdr_allocate(&model, 1, sizeof *model, "a model"));
    model->kind = from->kind;
    memcpy(model->block, from->block, sizeof model->block);
    model->blocks = from->blocks;
    model->count = from->count;
    model->intercept = from->intercept;
    model->outputs = from->outputs;
    memcpy(model->hash, from->hash, sizeof model->hash);
    SDR_CHECK(sdr_copy_string(&model->kind_spec, from->kind_spec));
    SDR_CHECK(sdr_plugin_choose("model", sdr_model_kind_table, model->kind_spec, &plugin,
                                &model->options));
    model->values = sdr_model_values_hold(from->values);
    model->value = from->value;
    SDR_CHECK(sdr_classes_copy(&model->classes, &from->classes));
    SDR_CHECK(sdr_schema_copy(&model->schema, &from->schema));
    SDR_CHECK(sdr_copy_string(&model->training, from->training));
    *copy = model;
    return SDR_OK;
cleanup:
    sdr_model_destroy(model);
    return status;
}

void sdr_model_destroy(struct sdr_model *model)
{
    if (!model)
        return;
    sdr_release(model->kind_spec);
    if (model->kind)
        sdr_plugin_free(model->kind, model->options);
    sdr_model_values_drop(model->values);
    sdr_release(model->training);
    sdr_classes_free(&model->classes);
    sdr_schema_free(&model->schema);
    sdr_release(model);
}

/* ---- use ---- */
size_t sdr_model_outputs(const struct sdr_model *model)
{
    return model->outputs;
}

size_t sdr_model_classes(const struct sdr_model *model)
{
    return model->classes.count;
}

const char *sdr_model_label(const struct sdr_model *model, size_t class_number)
{
    return class_number < model->classes.count ? model->classes.text[class_number] : NULL;
}

enum sdr_status sdr_model_block(const struct sdr_model *model, const char *name, float *out,
                                size_t *count)
{
    for (int b = 0; b < model->blocks; b++) {
        const struct sdr_block *block = &model->block[b];
        if (strcmp(block->name, name) != 0)
            continue;
        *count = (size_t)block->rows * block->cols;
        if (out)
            memcpy(out, model->value + block->offset, *count * sizeof(float));
        return SDR_OK;
    }
    return sdr_fail(SDR_USAGE, "the model has no block '%s'", name);
}

/* Rows of a pair model have at most two features; one or both may be missing. */
static enum sdr_status check_pairs(const struct sdr_model *model, const struct sdr_data *data)
{
    bool pairs = !data->rows.dense;
    for (uint64_t row = 0; row < data->rows.count && pairs; row++)
        pairs = sdr_sparse_row(&data->rows, row).n <= 2;
    return pairs ? SDR_OK
                 : sdr_fail(SDR_BAD_DATA, "%s: a model '%s' takes rows of two features",
                            data->name ? data->name : "data", model->kind->name);
}

static enum sdr_status problem_for(const struct sdr_model *model, const struct sdr_data *data,
                                   struct sdr_problem *problem)
{
    if (data->rows.features != model->schema.features)
        return sdr_fail(SDR_BAD_DATA, "%s: %u features, but the model was trained with %u",
                        data->name ? data->name : "data", data->rows.features,
                        model->schema.features);
    if (data->rows.count > UINT32_MAX)
        return sdr_fail(SDR_RUNTIME, "more than 4 294 967 295 rows");
    if (model->kind->needs & SDR_NEEDS_PAIRS)
        SDR_TRY(check_pairs(model, data));
    *problem = (struct sdr_problem){.rows = &data->rows,
                                    .row_weight = data->rows.weight,
                                    .metric_weight = data->rows.weight,
                                    .features = model->schema.features,
                                    .outputs = model->outputs,
                                    .classes = model->classes.count,
                                    .image = SDR_DIMS(model->schema),
                                    .intercept = model->intercept,
                                    .model_options = model->options,
                                    .kernels = sdr_linear_kernels(sdr_cpu_level())};
    return SDR_OK;
}

static void put_row(const struct sdr_model *model, enum sdr_prediction what, const float *score,
                    float **out)
{
    uint32_t best = 0;
    switch (what) {
    case SDR_PREDICT_SCORE:
        memcpy(*out, score, model->outputs * sizeof(float));
        *out += model->outputs;
        return;
    case SDR_PREDICT_PROBA:
        model->kind->probability(score, model->outputs, *out);
        *out += model->classes.count;
        return;
    case SDR_PREDICT_VALUE:
        for (uint32_t k = 1; k < model->outputs; k++)
            best = score[k] > score[best] ? k : best;
        *(*out)++ = model->kind->truth == SDR_BINARY ? (float)(score[0] > 0)
                    : model->kind->picks             ? (float)best
                                                     : score[0];
        return;
    }
}

enum sdr_status sdr_model_predict(const struct sdr_model *model, const struct sdr_data *data,
                                  enum sdr_prediction what, float *out)
{
    enum { CHUNK = 64 };
    struct sdr_problem problem;
    unsigned char *workspace = NULL;
    float *score = NULL;
    if (what == SDR_PREDICT_PROBA && !model->kind->probability)
        return sdr_fail(SDR_USAGE, "a %s model has no probabilities (logistic and softmax have)",
                        model->kind->name);
    SDR_TRY(problem_for(model, data, &problem));
    struct sdr_view view = {.problem = &problem, .block = model->block, .w = model->value};
    enum sdr_status status =
        sdr_allocate(&score, (size_t)CHUNK * model->outputs, sizeof(float), "scores");
    if (status == SDR_OK)
        status = sdr_allocate(&workspace, model->kind->workspace(&problem, CHUNK), 1, "scores");
    for (uint64_t at = 0; at < data->rows.count && status == SDR_OK; at += CHUNK) {
        uint32_t row[CHUNK];
        struct sdr_batch batch = {.rows = &data->rows, .row = row};
        for (; batch.count < CHUNK && at + batch.count < data->rows.count; batch.count++)
            row[batch.count] = (uint32_t)(at + batch.count);
        status = model->kind->score(&view, &batch, workspace, score);
        for (uint32_t i = 0; i < batch.count && status == SDR_OK; i++)
            put_row(model, what, score + (size_t)i * model->outputs, &out);
        sdr_rows_release(&data->rows, at, at + batch.count);
        if (status == SDR_OK)
            status = sdr_check_stop("predicting");
    }
    sdr_release(workspace);
    sdr_release(score);
    return status;
}

enum sdr_status sdr_model_evaluate(const struct sdr_model *model, const struct sdr_data *data,
                                   char **json)
{
    struct sdr_problem problem;
    struct sdr_evaluation e;
    float *target = NULL;
    struct sdr_row_list rows = {NULL, (uint32_t)data->rows.count};
    if (!data->has_labels && model->kind->needs & SDR_NEEDS_LABELS)
        return sdr_fail(SDR_BAD_DATA, "%s: the data has no labels to compare with",
                        data->name ? data->name : "data");
    if (data->rows.count == 0)
        return sdr_fail(SDR_BAD_DATA, "%s: no rows to evaluate", data->name ? data->name : "data");
    SDR_TRY(problem_for(model, data, &problem));
    enum sdr_status status = sdr_targets(data, &model->classes, model->kind, &target);
    problem.target = target;
    if (status == SDR_OK)
        status = sdr_evaluate(model->kind, &problem, model->block, model->value, &rows,
                              sdr_thread_limit(), &e);
    sdr_release(target);
    SDR_TRY(status);
    json_t *object = sdr_json_begin(json_pack("{s:s, s:I, s:I}", "model", model->kind->name, "rows",
                                              (json_int_t)data->rows.count, "features",
                                              (json_int_t)data->rows.features));
    sdr_evaluation_json(&e, model->kind, "", object);
    if (data->unseen)
        sdr_json_set(object, "unseen_features", json_integer((json_int_t)data->unseen));
    return sdr_json_text(object, json);
}
