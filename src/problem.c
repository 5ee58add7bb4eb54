/* From data to a problem: which model, which classes, targets, weights, the scales of features. */
#define _GNU_SOURCE /* memrchr */
#include "base/hash.h"
#include "base/memory.h"
#include "kernel/linear.h"
#include "registry.h"
#include "run.h"

#include <math.h>
#include <string.h>

/* ---- which model ---- */
static bool whole_labels(const struct sdr_schema *schema)
{
    for (uint32_t i = 0; i < schema->labels.count; i++)
        if (schema->label_value[i] != rintf(schema->label_value[i]))
            return false;
    return true;
}

static const char *guess_model(const struct sdr_data *data)
{
    enum { CLASSES_MOST = 100 };
    const struct sdr_schema *schema = &data->schema;
    uint32_t count = schema->labels.count;
    if (!schema->many_labels && count <= 2)
        return "logistic";
    if (schema->text_labels || (!schema->many_labels && count > 2 && count <= CLASSES_MOST &&
                                count < data->rows.count / 4 && whole_labels(schema)))
        return "softmax";
    return "squared";
}

static enum sdr_status check_labels(const struct sdr_run *run)
{
    if (run->kind->task == SDR_CLUSTERS)
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
    if (strcmp(spec, "auto") == 0 && !run->data->has_labels)
        return sdr_fail(SDR_BAD_DATA,
                        "%s: the data has no labels (--labels FILE, --label COLUMN for tables, or "
                        "--model kmeans:K, which needs none)",
                        run->data->name);
    if (strcmp(spec, "auto") == 0) {
        spec = guess_model(run->data);
        sdr_note(&run->options, "model %s (chosen by the labels; --model to change)", spec);
    }
    SDR_TRY(sdr_plugin_choose("model", sdr_model_kind_table, spec, &plugin, &run->model_options));
    run->kind = (const struct sdr_model_kind *)plugin;
    SDR_TRY(check_labels(run));
    if (run->kind->task == SDR_CUT && run->data->schema.category.count)
        return sdr_fail(SDR_BAD_DATA,
                        "%s: edges join vertices of one kind, numbered from 1: LIBSVM rows "
                        "'weight one:1 other:1' (triples have users and items)",
                        run->data->name);
    if (run->kind->task == SDR_REGRESSION || !sdr_has_truth(run->kind->task))
        return SDR_OK;
    SDR_TRY(sdr_classes_find(run->data, &run->classes));
    uint32_t count = run->classes.count;
    if (count < 2)
        return sdr_fail(SDR_BAD_DATA, "%s: all labels are '%s': there is nothing to learn",
                        run->data->name, count ? run->classes.text[0] : "");
    if (count > 1000 && count > run->data->rows.count / 4)
        return sdr_fail(SDR_BAD_DATA,
                        "%s: %u different labels in %llu rows: these are not classes (is the right "
                        "column the label, and the format right?)",
                        run->data->name, count, (unsigned long long)run->data->rows.count);
    if (run->kind->task == SDR_BINARY && count != 2)
        return sdr_fail(
            SDR_BAD_DATA,
            "%s: %u different labels, but the model '%s' takes two (try --model softmax)",
            run->data->name, count, run->kind->name);
    return SDR_OK;
}

/* ---- which rows ---- */
static enum sdr_status split_rows(struct sdr_run *run)
{
    const struct sdr_rows *rows = &run->data->rows;
    double share = run->options.settings.valid_fraction;
    if (rows->count > UINT32_MAX)
        return sdr_fail(SDR_RUNTIME, "%s: more than 4 294 967 295 rows", run->data->name);
    run->train_rows.count = (uint32_t)rows->count;
    if (share == 0)
        return SDR_OK;
    SDR_TRY(sdr_allocate(&run->train_rows.row, rows->count, sizeof(uint32_t), "row numbers"));
    SDR_TRY(sdr_allocate(&run->valid_rows.row, rows->count, sizeof(uint32_t), "row numbers"));
    /* By a hash of the row's number: every file has one split, whatever the seed and the order of
     * training. */
    uint64_t below = (uint64_t)(share * 0x1p64);
    run->train_rows.count = 0;
    for (uint32_t row = 0; row < rows->count; row++) {
        struct sdr_row_list *list =
            sdr_hash64(&row, sizeof row, 0) < below ? &run->valid_rows : &run->train_rows;
        list->row[list->count++] = row;
    }
    if (!run->train_rows.count || !run->valid_rows.count)
        return sdr_fail(SDR_USAGE, "--valid-fraction %g leaves no rows for %s", share,
                        run->train_rows.count ? "validation" : "training");
    run->valid = run->data;
    return SDR_OK;
}

static inline uint32_t listed(const struct sdr_row_list *list, uint32_t i)
{
    return list->row ? list->row[i] : i;
}

/* ---- weights of rows ---- */
static enum sdr_status class_weights(const struct sdr_run *run, double *weight)
{
    const char *spec = run->options.settings.class_weight;
    uint32_t count = run->classes.count;
    for (uint32_t k = 0; k < count; k++)
        weight[k] = 1;
    if (strcmp(spec, "none") == 0)
        return SDR_OK;
    if (!count)
        return sdr_fail(SDR_USAGE, "--class-weight needs classes; the model '%s' has none",
                        run->kind->name);
    if (strcmp(spec, "balanced") == 0) {
        for (uint32_t k = 0; k < count; k++)
            weight[k] = 0;
        for (uint32_t i = 0; i < run->train_rows.count; i++) {
            float t = run->target[listed(&run->train_rows, i)];
            weight[run->kind->task == SDR_BINARY ? t > 0 : (uint32_t)t] += 1;
        }
        for (uint32_t k = 0; k < count; k++)
            weight[k] = weight[k] > 0 ? run->train_rows.count / (count * weight[k]) : 1;
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
            number = sdr_class_of_text(&run->classes, text);
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
    SDR_TRY(sdr_allocate(&by_class, run->classes.count + 1, sizeof(double), "class weights"));
    enum sdr_status status = class_weights(run, by_class);
    bool plain = !rows->weight && strcmp(run->options.settings.class_weight, "none") == 0;
    if (status == SDR_OK && !plain)
        status = sdr_allocate(&run->row_weight, rows->count, sizeof(float), "row weights");
    if (status == SDR_OK && !plain) {
        for (uint64_t row = 0; row < rows->count; row++) {
            float t = run->target[row];
            double w = rows->weight ? rows->weight[row] : 1.0;
            if (run->classes.count)
                w *= by_class[run->kind->task == SDR_BINARY ? t > 0 : (uint32_t)t];
            run->row_weight[row] = (float)w;
        }
        for (uint32_t i = 0; i < run->train_rows.count; i++)
            sum += run->row_weight[listed(&run->train_rows, i)];
        if (!(sum > 0))
            status = sdr_fail(SDR_BAD_DATA, "%s: all rows have weight zero", run->data->name);
        for (uint64_t row = 0; row < rows->count && sum > 0; row++)
            run->row_weight[row] = (float)(run->row_weight[row] * (run->train_rows.count / sum));
    }
    sdr_release(by_class);
    return status;
}

/* ---- sizes of features ---- */
struct moment {
    double sum, square;
    uint64_t count;
};

static enum sdr_status feature_moments(const struct sdr_run *run, struct moment **moments)
{
    enum { PASS = 8192 };
    uint32_t passed = 0;
    const struct sdr_rows *rows = &run->data->rows;
    SDR_TRY(sdr_allocate(moments, rows->features, sizeof **moments, "feature statistics"));
    struct moment *m = *moments;
    for (uint32_t i = 0; i < run->train_rows.count; i++) {
        uint32_t row = listed(&run->train_rows, i);
        if (row >= passed + PASS) {
            sdr_rows_passed(rows, passed, row);
            passed = row;
        }
        if (rows->dense) {
            const float *x = sdr_dense_row(rows, row);
            for (uint32_t j = 0; j < rows->features; j++) {
                m[j].sum += x[j];
                m[j].square += (double)x[j] * x[j];
                m[j].count += x[j] != 0;
            }
            continue;
        }
        struct sdr_sparse_row r = sdr_sparse_row(rows, row);
        for (uint32_t n = 0; n < r.n; n++) {
            uint32_t j = sdr_row_index(&r, n);
            m[j].sum += r.x[n];
            m[j].square += (double)r.x[n] * r.x[n];
            m[j].count++;
        }
    }
    return SDR_OK;
}

/* The size of a feature: its standard deviation where rows are dense or the penalty asks for it,
   the root mean square of its non-zeros otherwise. A feature that never varies has size 1. */
static double feature_size(const struct moment *m, double rows, bool deviation)
{
    double variance = m->square / rows - (m->sum / rows) * (m->sum / rows);
    double size = deviation ? sqrt(fmax(variance, 0)) : m->count ? sqrt(m->square / m->count) : 0;
    double noise = 1e-6 * sqrt(m->square / rows); /* below this a deviation is rounding */
    return size > noise && size > 1e-30 && size < 1e30 ? size : 1.0;
}

/* Distances do not change if all rows are moved, but rounding does. Rows that are mostly zeros stay. */
static enum sdr_status center_rows(struct sdr_run *run)
{
    struct moment *moments;
    const struct sdr_rows *rows = &run->data->rows;
    if (!rows->dense && run->data->nonzeros < rows->count * rows->features / 2)
        return SDR_OK;
    SDR_TRY(feature_moments(run, &moments));
    enum sdr_status status =
        sdr_allocate(&run->center, run->data->rows.features, sizeof(float), "feature means");
    for (uint32_t j = 0; j < run->data->rows.features && status == SDR_OK; j++)
        run->center[j] = (float)(moments[j].sum / run->train_rows.count);
    sdr_release(moments);
    return status;
}

static enum sdr_status measure_features(struct sdr_run *run)
{
    const struct sdr_settings *s = &run->options.settings;
    const struct sdr_rows *rows = &run->data->rows;
    /* Whoever gives a step size means it in the units of the data. */
    bool own_penalty = run->optimizer->own_penalty && (s->l1 > 0 || s->l2 > 0);
    bool scaled = s->standardize || s->scale == SDR_SCALE_FEATURE ||
                  (s->scale == SDR_SCALE_AUTO && s->lr == 0 && !own_penalty);
    bool deviation = rows->dense || s->standardize;
    double count = run->train_rows.count, typical = 0;
    struct moment *moments;
    if (run->kind->pairs && (s->standardize || s->scale == SDR_SCALE_FEATURE))
        return sdr_fail(SDR_USAGE, "--%s does nothing with --model %s: its features have no size",
                        s->standardize ? "standardize" : "scale feature", run->kind->name);
    if (run->kind->pairs)
        scaled = false;
    if (run->kind->task == SDR_CLUSTERS)
        return center_rows(run);
    if (s->standardize && s->scale == SDR_SCALE_NONE)
        return sdr_fail(SDR_USAGE,
                        "--standardize takes steps in scaled units: not with --scale none");
    /* With --lr and no scales nothing below is needed. */
    if (!scaled && s->lr > 0 && !rows->dense)
        return SDR_OK;
    SDR_TRY(feature_moments(run, &moments));
    enum sdr_status status = SDR_OK;
    if (scaled)
        status = sdr_allocate(&run->scale, rows->features, sizeof(float), "feature scales");
    /* Centering dense rows only moves the intercept; it makes the path to the minimum short. */
    if (status == SDR_OK && scaled && rows->dense && s->intercept)
        status = sdr_allocate(&run->center, rows->features, sizeof(float), "feature means");
    bool all_one = true;
    for (uint32_t j = 0; j < rows->features && status == SDR_OK; j++) {
        double size = scaled ? feature_size(&moments[j], count, deviation) : 1.0;
        double square = moments[j].square / count, mean = moments[j].sum / count;
        if (scaled)
            run->scale[j] = (float)(1 / size);
        if (run->center) {
            run->center[j] = (float)mean;
            square -= mean * mean;
        }
        all_one = all_one && size == 1.0;
        typical += fmax(square, 0) / (size * size);
    }
    if (all_one) {
        sdr_release(run->scale); /* binary features: nothing to scale */
        run->scale = NULL;
    }
    run->typical_row = typical > 0 ? typical : 1;
    sdr_release(moments);
    return status;
}

/* Squared length of the longest row in the units steps are taken in: what plain steps on a loss that grows without
   bound must not exceed. */
double sdr_longest_row(const struct sdr_run *run)
{
    enum { PASS = 8192 };
    const struct sdr_rows *rows = &run->data->rows;
    double longest = 0;
    uint32_t passed = 0;
    for (uint32_t i = 0; i < run->train_rows.count; i++) {
        uint32_t row = listed(&run->train_rows, i);
        if (row >= passed + PASS) {
            sdr_rows_passed(rows, passed, row);
            passed = row;
        }
        double square = run->options.settings.intercept ? 1 : 0;
        if (rows->dense) {
            const float *x = sdr_dense_row(rows, row);
            for (uint32_t j = 0; j < rows->features; j++) {
                double v = (double)x[j] - (run->center ? run->center[j] : 0);
                v *= run->scale ? run->scale[j] : 1;
                square += v * v;
            }
        } else {
            struct sdr_sparse_row r = sdr_sparse_row(rows, row);
            for (uint32_t n = 0; n < r.n; n++) {
                double v = r.x[n] * (run->scale ? run->scale[sdr_row_index(&r, n)] : 1);
                square += v * v;
            }
        }
        longest = fmax(longest, square);
    }
    return longest;
}

static void measure_targets(struct sdr_run *run)
{
    double sum = 0, square = 0, weights = 0;
    run->target_size = 1;
    if (run->kind->task != SDR_REGRESSION)
        return;
    for (uint32_t i = 0; i < run->train_rows.count; i++) {
        uint32_t row = listed(&run->train_rows, i);
        double w = run->row_weight ? run->row_weight[row] : 1;
        weights += w;
        sum += w * run->target[row];
        square += w * (double)run->target[row] * run->target[row];
    }
    run->target_mean = sum / weights;
    double variance = square / weights - run->target_mean * run->target_mean;
    if (variance > 0)
        run->target_size = sqrt(variance);
}

/* Ids of ratings say which side they are of. */
static enum sdr_status find_sides(struct sdr_run *run)
{
    const struct sdr_schema *schema = &run->data->schema;
    uint32_t features = run->data->rows.features;
    if (!run->kind->rank || schema->category.count + schema->numbers < features)
        return SDR_OK;
    SDR_TRY(sdr_allocate(&run->side, features, 1, "sides of ratings"));
    for (uint32_t j = schema->numbers; j < features; j++)
        run->side[j] = strncmp(schema->category.text[j - schema->numbers], "item:", 5) == 0;
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
    SDR_TRY(sdr_targets(run->data, &run->classes, run->kind->task, &run->target));
    for (uint32_t i = 0; i < run->train_rows.count; i++)
        if (isnan(run->target[listed(&run->train_rows, i)])) /* read with another model's schema */
            return sdr_fail(SDR_BAD_DATA, "%s: a training row has a label that is no class",
                            run->data->name);
    SDR_TRY(weigh_rows(run));
    SDR_TRY(measure_features(run));
    measure_targets(run);
    SDR_TRY(find_sides(run));
    run->problem =
        (struct sdr_problem){.rows = rows,
                             .target = run->target,
                             .row_weight = run->row_weight,
                             .metric_weight = rows->weight,
                             .center = run->center,
                             .side = run->side,
                             .features = rows->features,
                             .outputs = run->kind->outputs ? run->kind->outputs(run->model_options)
                                        : run->kind->task == SDR_CLASSES ? run->classes.count
                                                                         : 1,
                             .classes = run->classes.count,
                             .intercept = s->intercept,
                             .model_options = run->model_options,
                             .kernels = sdr_linear_kernels(sdr_cpu_best())};
    if (!run->valid)
        return SDR_OK;
    run->valid_problem = run->problem;
    run->valid_problem.row_weight = rows->weight; /* class weights are for training */
    if (run->valid != run->data) {
        SDR_TRY(sdr_targets(run->valid, &run->classes, run->kind->task, &run->valid_target));
        run->valid_problem.rows = &run->valid->rows;
        run->valid_problem.target = run->valid_target;
        run->valid_problem.row_weight = run->valid_problem.metric_weight = run->valid->rows.weight;
        run->valid_rows.count = (uint32_t)run->valid->rows.count;
        for (uint64_t row = 0; row < run->valid->rows.count && run->kind->pairs; row++)
            if (run->valid->rows.dense || sdr_sparse_row(&run->valid->rows, row).n > 2)
                return sdr_fail(SDR_BAD_DATA, "%s: row %llu has more than two features",
                                run->valid->name, (unsigned long long)row + 1);
        uint32_t known = 0;
        for (uint32_t row = 0; row < run->valid_rows.count; row++)
            known += !isnan(run->valid_target[row]);
        if (!known)
            return sdr_fail(SDR_BAD_DATA, "%s: none of its labels occurs in the training data",
                            run->valid->name);
    }
    return SDR_OK;
}

void sdr_problem_release(struct sdr_run *run)
{
    sdr_classes_free(&run->classes);
    sdr_release(run->target);
    sdr_release(run->valid_target);
    sdr_release(run->row_weight);
    sdr_release(run->scale);
    sdr_release(run->center);
    sdr_release(run->side);
    sdr_release(run->train_rows.row);
    sdr_release(run->valid_rows.row);
    sdr_release(run->model_options);
}
