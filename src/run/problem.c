/* From data to a problem: model, classes, targets, weights. */
#define _GNU_SOURCE /* memrchr */
#include "run/problem.h"
#include "base/hash.h"
#include "base/memory.h"
#include "kernel/linear.h"
#include "run/evaluate.h"
#include "run/features.h"
#include "run/registry.h"
#include "run/run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- model ---- */
static bool whole_labels(const struct sdr_schema *schema)
{
    for (uint32_t i = 0; i < schema->labels.count; i++)
        if (schema->label_value[i] != rintf(schema->label_value[i]))
            return false;
    return true;
}

/* Whether rows are ratings, like triples: two categories each, a user and an item. */
static bool has_ratings(const struct sdr_schema *schema)
{
    return schema->numbers == 0 && schema->category.count >= 2 &&
           strncmp(schema->category.text[0], "user:", 5) == 0 &&
           strncmp(schema->category.text[1], "item:", 5) == 0;
}

/* Texts without a letter, such as "$1200" or "12,095", are probably meant as numbers. */
static bool nearly_numbers(const struct sdr_schema *schema)
{
    for (uint32_t i = 0; i < schema->labels.count; i++) {
        const char *text = schema->labels.text[i];
        if (!strpbrk(text, "0123456789"))
            return false;
        for (; *text; text++)
            if ((*text | 32) >= 'a' && (*text | 32) <= 'z')
                return false;
    }
    return true;
}

/* The model implied by the labels, and why. Texts are classes, and so are any two labels.
   Integers are classes if there are at most 30 (digits are 10, letters 26, newsgroups 20; ages
   are 52, years 89), with four rows each. Everything else is regression. */
static const char *guess_model(const struct sdr_data *data, char why[300])
{
    enum { CLASSES_MOST = 30, SUGGESTED = 1000, WHY = 300 };
    const struct sdr_schema *schema = &data->schema;
    uint32_t count = schema->labels.count;
    bool whole = !schema->text_labels && !schema->many_labels && whole_labels(schema);
    const char *numbers = whole ? "whole numbers" : "numbers";
    if (has_ratings(schema)) {
        snprintf(why, WHY, "every row is a user, an item and a rating");
        return "mf";
    }
    if (!schema->many_labels && count <= 2) {
        snprintf(why, WHY, "%s%s", count < 2 ? "one label" : "two different labels",
                 schema->text_labels ? "" : "; --model squared for regression");
        return "logistic";
    }
    if (schema->text_labels && nearly_numbers(schema)) {
        snprintf(why, WHY,
                 "%u different texts as labels; for regression write '%.60s' as a plain number",
                 count, schema->labels.text[0]);
        return "softmax";
    }
    if (schema->text_labels) {
        snprintf(why, WHY, "%u different texts as labels", count);
        return "softmax";
    }
    if (whole && count <= CLASSES_MOST && count < data->rows.count / 4) {
        snprintf(why, WHY, "%u different whole numbers as labels; --model squared for regression",
                 count);
        return "softmax";
    }
    if (schema->many_labels)
        snprintf(why, WHY, "more than %d different labels, or labels too large to be told apart",
                 SDR_LABELS_MOST);
    else
        snprintf(why, WHY, "%u different %s as labels%s", count, numbers,
                 whole && count <= SUGGESTED ? "; --model softmax for classes" : "");
    return "squared";
}

static enum sdr_status check_labels(const struct sdr_run *run)
{
    if (!(run->use.kind->needs & SDR_NEEDS_LABELS))
        return SDR_OK;
    if (!run->data->has_labels)
        return sdr_fail(SDR_BAD_DATA,
                        "%s: the data has no labels (--labels FILE, or --label COLUMN)",
                        run->data->name);
    if (run->valid && !run->valid->has_labels)
        return sdr_fail(SDR_BAD_DATA, "%s: the validation data has no labels (--valid-labels FILE)",
                        run->valid->name);
    return SDR_OK;
}

static enum sdr_status choose_model(struct sdr_run *run)
{
    const char *spec = run->options.settings.model;
    const struct sdr_plugin *plugin;
    char why[300];
    if (strcmp(spec, "auto") == 0 && !run->data->has_labels)
        return sdr_fail(SDR_BAD_DATA,
                        "%s: the data has no labels (--labels FILE, --label COLUMN for tables, or "
                        "--model kmeans:K, which needs none)",
                        run->data->name);
    if (strcmp(spec, "auto") == 0) {
        spec = guess_model(run->data, why);
        sdr_note(&run->options, "model %s: %s", spec, why);
    }
    SDR_TRY(
        sdr_plugin_choose("model", sdr_model_kind_table, spec, &plugin, &run->use.model_options));
    run->use.kind = (const struct sdr_model_kind *)plugin;
    SDR_TRY(check_labels(run));
    if (run->use.kind->regression && strcmp(guess_model(run->data, why), "squared") == 0) {
        sdr_note(&run->options, "model %s: %s", run->use.kind->regression->name, why);
        run->use.kind = run->use.kind->regression;
    }
    if (run->use.kind->truth == SDR_REGRESSION || run->use.kind->truth == SDR_UNSUPERVISED)
        return SDR_OK;
    SDR_TRY(sdr_classes_find(run->data, &run->set.classes));
    uint32_t count = run->set.classes.count;
    if (count < 2)
        return sdr_fail(SDR_BAD_DATA, "%s: all labels are '%s': there is nothing to learn",
                        run->data->name, count ? run->set.classes.text[0] : "");
    if (count > 1000 && count > run->data->rows.count / 4)
        return sdr_fail(SDR_BAD_DATA,
                        "%s: %u different labels in %llu rows: these are not classes (%sis the "
                        "right column the label, and the format right?)",
                        run->data->name, count, (unsigned long long)run->data->rows.count,
                        run->data->schema.text_labels ? "" : "try --model squared; ");
    if (run->use.kind->truth == SDR_BINARY && count != 2)
        return sdr_fail(SDR_BAD_DATA,
                        "%s: %u different labels, but the model '%s' takes two (try --model %s)",
                        run->data->name, count, run->use.kind->name, guess_model(run->data, why));
    return SDR_OK;
}

uint32_t sdr_outputs(const struct sdr_model_kind *kind, const void *options, uint32_t classes)
{
    return kind->outputs ? kind->outputs(options) : kind->truth == SDR_CLASSES ? classes : 1;
}

/* ---- rows ---- */
static enum sdr_status split_rows(struct sdr_run *run)
{
    const struct sdr_rows *rows = &run->data->rows;
    double share = run->options.settings.valid_fraction;
    if (rows->count > UINT32_MAX)
        return sdr_fail(SDR_RUNTIME, "%s: more than 4 294 967 295 rows", run->data->name);
    run->set.train_rows.count = (uint32_t)rows->count;
    if (share == 0)
        return SDR_OK;
    SDR_TRY(sdr_allocate(&run->set.train_rows.row, rows->count, sizeof(uint32_t), "row numbers"));
    SDR_TRY(sdr_allocate(&run->set.valid_rows.row, rows->count, sizeof(uint32_t), "row numbers"));
    /* Split by a hash of the row number: a file has one split, for every seed and order of
       training. */
    uint64_t below = (uint64_t)(share * 0x1p64);
    run->set.train_rows.count = 0;
    for (uint32_t row = 0; row < rows->count; row++) {
        struct sdr_row_list *list =
            sdr_hash64(&row, sizeof row, 0) < below ? &run->set.valid_rows : &run->set.train_rows;
        list->row[list->count++] = row;
    }
    if (!run->set.train_rows.count || !run->set.valid_rows.count)
        return sdr_fail(SDR_USAGE, "--valid-fraction %g leaves no rows for %s", share,
                        run->set.train_rows.count ? "validation" : "training");
    run->valid = run->data;
    return SDR_OK;
}

/* ---- weights of rows ---- */
static enum sdr_status class_weights(const struct sdr_run *run, double *weight)
{
    const char *spec = run->options.settings.class_weight;
    uint32_t count = run->set.classes.count;
    for (uint32_t k = 0; k < count; k++)
        weight[k] = 1;
    if (strcmp(spec, "none") == 0)
        return SDR_OK;
    if (!count)
        return sdr_fail(SDR_USAGE, "--class-weight needs classes; the model '%s' has none",
                        run->use.kind->name);
    if (strcmp(spec, "balanced") == 0) {
        for (uint32_t k = 0; k < count; k++)
            weight[k] = 0;
        for (uint32_t i = 0; i < run->set.train_rows.count; i++) {
            float t = run->set.target[sdr_listed(&run->set.train_rows, i)];
            weight[run->use.kind->truth == SDR_BINARY ? t > 0 : (uint32_t)t] += 1;
        }
        for (uint32_t k = 0; k < count; k++)
            weight[k] = weight[k] > 0 ? run->set.train_rows.count / (count * weight[k]) : 1;
        return SDR_OK;
    }
    if (!*spec)
        return sdr_fail(SDR_USAGE, "--class-weight needs none, balanced or LABEL=WEIGHT");
    for (const char *at = spec; *at;) {
        size_t length = strcspn(at, ",");
        const char *equals = memrchr(at, '=', length), *end = at + length;
        double value;
        int64_t number = -1;
        if (equals && sdr_scan_double(equals + 1, end, &value) == end && value >= 0 &&
            isfinite(value)) {
            char text[128];
            size_t width =
                (size_t)(equals - at) < sizeof text ? (size_t)(equals - at) : sizeof text - 1;
            memcpy(text, at, width);
            text[width] = 0;
            number = sdr_class_of_text(&run->set.classes, text);
        }
        if (number < 0)
            return sdr_fail(SDR_USAGE,
                            "--class-weight: '%.*s' is not LABEL=WEIGHT with a label of the data",
                            (int)length, at);
        weight[number] = value;
        at = *end ? end + 1 : end;
    }
    return SDR_OK;
}

/* Sample weights times class weights, scaled to mean 1 over the training rows; NULL if all are 1.
 */
static enum sdr_status weigh_rows(struct sdr_run *run)
{
    const struct sdr_rows *rows = &run->data->rows;
    double *by_class, sum = 0;
    SDR_TRY(sdr_allocate(&by_class, run->set.classes.count + 1, sizeof(double), "class weights"));
    enum sdr_status status = class_weights(run, by_class);
    bool plain = !rows->weight && strcmp(run->options.settings.class_weight, "none") == 0;
    run->set.weight_sum = run->set.train_rows.count;
    if (status == SDR_OK && !plain)
        status = sdr_allocate(&run->set.row_weight, rows->count, sizeof(float), "row weights");
    if (status == SDR_OK && !plain) {
        for (uint64_t row = 0; row < rows->count; row++) {
            float t = run->set.target[row];
            double w = rows->weight ? rows->weight[row] : 1.0;
            if (run->set.classes.count)
                w *= by_class[run->use.kind->truth == SDR_BINARY ? t > 0 : (uint32_t)t];
            run->set.row_weight[row] = (float)w;
        }
        for (uint32_t i = 0; i < run->set.train_rows.count; i++)
            sum += run->set.row_weight[sdr_listed(&run->set.train_rows, i)];
        run->set.weight_sum = sum;
        if (!(sum > 0))
            status = sdr_fail(SDR_BAD_DATA, "%s: all rows have weight zero", run->data->name);
        for (uint64_t row = 0; row < rows->count && sum > 0; row++)
            run->set.row_weight[row] =
                (float)(run->set.row_weight[row] * (run->set.train_rows.count / sum));
    }
    sdr_release(by_class);
    return status;
}

/* Refuses labels whose deviation is less than about 64 steps of float precision at their size. */
static enum sdr_status check_targets(const struct sdr_run *run, double variance)
{
    double size = fabs(run->set.target_mean);
    if (!run->data->schema.many_labels || size < 0x1p24 || sqrt(fmax(variance, 0)) > 0x1p-18 * size)
        return SDR_OK;
    return sdr_fail(SDR_BAD_DATA,
                    "%s: the labels, about %.6g, differ by too little for numbers of 32 bits: "
                    "subtract a constant from them (if they are classes: --categories COLUMN)",
                    run->data->name, run->set.target_mean);
}

static enum sdr_status measure_targets(struct sdr_run *run)
{
    double sum = 0, square = 0, weights = 0;
    run->set.target_size = 1;
    if (run->use.kind->truth != SDR_REGRESSION)
        return SDR_OK;
    for (uint32_t i = 0; i < run->set.train_rows.count; i++) {
        uint32_t row = sdr_listed(&run->set.train_rows, i);
        double w = run->set.row_weight ? run->set.row_weight[row] : 1;
        weights += w;
        sum += w * run->set.target[row];
        square += w * (double)run->set.target[row] * run->set.target[row];
    }
    run->set.target_mean = sum / weights;
    double variance = square / weights - run->set.target_mean * run->set.target_mean;
    if (variance > 0)
        run->set.target_size = sqrt(variance);
    return check_targets(run, variance);
}

/* The ids of ratings determine their side. */
static enum sdr_status find_sides(struct sdr_run *run)
{
    const struct sdr_schema *schema = &run->data->schema;
    uint32_t features = run->data->rows.features;
    if (!(run->use.kind->needs & SDR_NEEDS_SIDES) ||
        schema->category.count + schema->numbers < features)
        return SDR_OK;
    SDR_TRY(sdr_allocate(&run->set.side, features, 1, "sides of ratings"));
    for (uint32_t j = schema->numbers; j < features; j++)
        run->set.side[j] = strncmp(schema->category.text[j - schema->numbers], "item:", 5) == 0;
    return SDR_OK;
}

enum sdr_status sdr_problem_prepare(struct sdr_run *run)
{
    const struct sdr_settings *s = &run->options.settings;
    const struct sdr_rows *rows = &run->data->rows;
    if (run->valid && run->valid->rows.features != rows->features)
        return sdr_fail(SDR_BAD_DATA, "%s: %u features, but the training data has %u",
                        run->valid->name, run->valid->rows.features, rows->features);
    if (rows->features == 0)
        return sdr_fail(SDR_BAD_DATA, "%s: the data has no features (is the format right?)",
                        run->data->name);
    SDR_TRY(sdr_labels_list(run->data));
    if (run->valid)
        SDR_TRY(sdr_labels_list(run->valid));
    SDR_TRY(choose_model(run));
    SDR_TRY(split_rows(run));
    SDR_TRY(sdr_targets(run->data, &run->set.classes, run->use.kind, &run->set.target));
    for (uint32_t i = 0; i < run->set.train_rows.count; i++)
        if (isnan(run->set.target[sdr_listed(&run->set.train_rows,
                                             i)])) /* read with the schema of another model */
            return sdr_fail(SDR_BAD_DATA, "%s: a training row has a label that is no class",
                            run->data->name);
    SDR_TRY(weigh_rows(run));
    SDR_TRY(measure_targets(run));
    SDR_TRY(sdr_features_measure(run));
    SDR_TRY(find_sides(run));
    run->problem = (struct sdr_problem){
        .rows = rows,
        .target = run->set.target,
        .row_weight = run->set.row_weight,
        .metric_weight = rows->weight,
        .center = run->set.center,
        .scale = run->set.scale,
        .row_square = run->set.typical_row,
        .side = run->set.side,
        .features = rows->features,
        .outputs = sdr_outputs(run->use.kind, run->use.model_options, run->set.classes.count),
        .seed = s->seed,
        .image = SDR_DIMS(run->data->schema),
        .named_features = run->data->schema.category.count > 0,
        .classes = run->set.classes.count,
        .intercept = s->intercept,
        .model_options = run->use.model_options,
        .kernels = sdr_linear_kernels(sdr_cpu_level())};
    if (!run->valid)
        return SDR_OK;
    run->set.valid_problem = run->problem;
    run->set.valid_problem.row_weight = rows->weight; /* class weights apply to training only */
    if (run->valid != run->data) {
        SDR_TRY(sdr_targets(run->valid, &run->set.classes, run->use.kind, &run->set.valid_target));
        run->set.valid_problem.rows = &run->valid->rows;
        run->set.valid_problem.target = run->set.valid_target;
        run->set.valid_problem.row_weight = run->set.valid_problem.metric_weight =
            run->valid->rows.weight;
        run->set.valid_rows.count = (uint32_t)run->valid->rows.count;
        for (uint64_t row = 0;
             row < run->valid->rows.count && run->use.kind->needs & SDR_NEEDS_PAIRS; row++)
            if (run->valid->rows.dense || sdr_sparse_row(&run->valid->rows, row).n > 2)
                return sdr_fail(SDR_BAD_DATA, "%s: row %llu has more than two features",
                                run->valid->name, (unsigned long long)row + 1);
        uint32_t known = 0;
        for (uint32_t row = 0; row < run->set.valid_rows.count; row++)
            known += !isnan(run->set.valid_target[row]);
        if (!known)
            return sdr_fail(SDR_BAD_DATA, "%s: none of its labels occurs in the training data",
                            run->valid->name);
    }
    return SDR_OK;
}

void sdr_problem_release(struct sdr_run *run)
{
    sdr_classes_free(&run->set.classes);
    sdr_release(run->set.target);
    sdr_release(run->set.valid_target);
    sdr_release(run->set.row_weight);
    sdr_release(run->set.scale);
    sdr_release(run->set.center);
    sdr_release(run->set.side);
    sdr_release(run->set.train_rows.row);
    sdr_release(run->set.valid_rows.row);
    if (run->use.kind)
        sdr_plugin_free(run->use.kind, run->use.model_options);
}
