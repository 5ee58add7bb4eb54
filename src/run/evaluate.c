/* Loss and metrics of given weights on given rows. Rows are cut into fixed leaves whose sums are
   added in order: the result does not depend on the number of threads. */
#include "run/evaluate.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/thread.h"
#include "run/run.h"
#include "update/subset.h"

#include <math.h>
#include <stdio.h>

enum { LEAF = 4096, CHUNK = 64 };

struct job {
    const struct sdr_model_kind *kind;
    const struct sdr_problem *problem;
    struct sdr_view view;
    const struct sdr_row_list *rows;
    struct sdr_evaluation *leaf;
};

static uint32_t best_output(const float *score, uint32_t outputs)
{
    uint32_t best = 0;
    for (uint32_t k = 1; k < outputs; k++)
        if (score[k] > score[best])
            best = k;
    return best;
}

/* Overwrites score with ∂loss/∂score. */
static void count_row(const struct job *job, uint32_t row, float *score, struct sdr_evaluation *sum)
{
    const struct sdr_problem *problem = job->problem;
    float target = problem->target[row];
    double weight = problem->metric_weight ? problem->metric_weight[row] : 1.0;
    sum->rows++;
    if (job->kind->truth == SDR_UNSUPERVISED) {
        sum->counted += weight;
    } else if (job->kind->truth != SDR_REGRESSION) {
        sum->counted += weight;
        if (isnan(target)) { /* an unknown label cannot be right, and has no loss */
            sum->unknown++;
            return;
        }
        bool right = job->kind->truth == SDR_BINARY
                         ? (score[0] > 0) == (target > 0)
                         : best_output(score, problem->outputs) == (uint32_t)target;
        sum->correct += right ? weight : 0.0;
    } else {
        double error = (double)score[0] - target;
        sum->counted += weight;
        sum->error_square += weight * error * error;
        sum->target_sum += weight * target;
        sum->target_square += weight * (double)target * target;
    }
    weight = problem->row_weight ? problem->row_weight[row] : 1.0;
    if (job->kind->row_penalty)
        sum->penalty += weight * job->kind->row_penalty(&job->view, row);
    sum->loss +=
        weight * job->kind->loss(problem->model_options, score, problem->outputs, target, score);
    sum->weight += weight;
}

/* Rows from … end − 1 of the list, added to a sum in their order. */
static enum sdr_status evaluate_rows(const struct job *job, uint32_t from, uint32_t end,
                                     struct sdr_evaluation *sum)
{
    uint32_t outputs = job->problem->outputs;
    unsigned char *workspace = NULL;
    float *score = NULL;
    enum sdr_status status = sdr_allocate(&score, (size_t)CHUNK * outputs, sizeof(float), "scores");
    if (status == SDR_OK)
        status = sdr_allocate(&workspace, job->kind->workspace(job->problem, CHUNK), 1, "scores");
    for (uint32_t at = from; at < end && status == SDR_OK; at += CHUNK) {
        uint32_t row[CHUNK], count = end - at < CHUNK ? end - at : CHUNK;
        for (uint32_t i = 0; i < count; i++)
            row[i] = sdr_listed(job->rows, at + i);
        struct sdr_batch batch = {.rows = job->problem->rows, .row = row, .count = count};
        status = job->kind->score(&job->view, &batch, workspace, score);
        for (uint32_t i = 0; i < count && status == SDR_OK; i++)
            count_row(job, row[i], score + (size_t)i * outputs, sum);
    }
    sdr_release(workspace);
    sdr_release(score);
    return status;
}

static uint32_t leaf_end(const struct sdr_row_list *rows, size_t leaf)
{
    uint64_t end = ((uint64_t)leaf + 1) * LEAF;
    return end < rows->count ? (uint32_t)end : rows->count;
}

static enum sdr_status evaluate_leaf(void *context, size_t index)
{
    struct job *job = context;
    uint32_t first = (uint32_t)index * LEAF, end = leaf_end(job->rows, index);
    enum sdr_status status = evaluate_rows(job, first, end, &job->leaf[index]);
    if (job->rows->row && first < end)
        sdr_rows_release(job->problem->rows, job->rows->row[first], job->rows->row[end - 1] + 1);
    else
        sdr_rows_release(job->problem->rows, first, end);
    return status;
}

/* The weight of the most frequent class: the accuracy of a constant. */
static enum sdr_status weigh_majority(const struct job *job, double *majority)
{
    const struct sdr_problem *problem = job->problem;
    double *weight;
    SDR_TRY(sdr_allocate(&weight, problem->classes, sizeof *weight, "weights of classes"));
    for (uint32_t i = 0; i < job->rows->count; i++) {
        uint32_t row = sdr_listed(job->rows, i);
        float target = problem->target[row];
        if (!isnan(target))
            weight[job->kind->truth == SDR_BINARY ? target > 0 : (uint32_t)target] +=
                problem->metric_weight ? problem->metric_weight[row] : 1.0;
    }
    for (uint32_t k = 0; k < problem->classes; k++)
        *majority = fmax(*majority, weight[k]);
    sdr_release(weight);
    return SDR_OK;
}

/* Adds the sums of all leaves in order; then the figures that need no weights. */
static enum sdr_status add_leaves(const struct job *job, size_t leaves,
                                  struct sdr_evaluation *result)
{
    *result = (struct sdr_evaluation){0};
    for (size_t i = 0; i < leaves; i++) {
        const struct sdr_evaluation *leaf = &job->leaf[i];
        result->loss += leaf->loss;
        result->weight += leaf->weight;
        result->penalty += leaf->penalty;
        result->correct += leaf->correct;
        result->counted += leaf->counted;
        result->target_sum += leaf->target_sum;
        result->target_square += leaf->target_square;
        result->error_square += leaf->error_square;
        result->rows += leaf->rows;
        result->unknown += leaf->unknown;
    }
    return job->problem->classes ? weigh_majority(job, &result->majority) : SDR_OK;
}

enum sdr_status sdr_evaluate(const struct sdr_model_kind *kind, const struct sdr_problem *problem,
                             const struct sdr_block *block, const float *w,
                             const struct sdr_row_list *rows, int threads,
                             struct sdr_evaluation *result)
{
    struct job job = {kind, problem, {problem, block, w, 0}, rows, NULL};
    size_t leaves = ((size_t)rows->count + LEAF - 1) / LEAF;
    SDR_TRY(sdr_allocate(&job.leaf, leaves, sizeof *job.leaf, "evaluation"));
    enum sdr_status status = sdr_parallel(threads, leaves, evaluate_leaf, &job);
    if (status == SDR_OK)
        status = add_leaves(&job, leaves, result);
    sdr_release(job.leaf);
    return status;
}

/* ---- values in other processes ---- */
/* Leaves evaluated at a time, each from its own subset of rows and values. */
enum { TOGETHER = 8 };
struct pulled {
    const struct job *job;
    const struct sdr_pull *pull;
    struct sdr_subset subset[TOGETHER];
    size_t first_leaf;
};

static enum sdr_status evaluate_subset(void *context, size_t which)
{
    struct pulled *pulled = context;
    struct sdr_subset *subset = &pulled->subset[which];
    struct sdr_row_list all = {NULL, subset->batch.count};
    struct job job = {pulled->job->kind,
                      &subset->problem,
                      {&subset->problem, subset->layout.block, subset->w, 0},
                      &all,
                      NULL};
    return evaluate_rows(&job, 0, all.count, &pulled->job->leaf[pulled->first_leaf + which]);
}

/* Pulls rows from … end − 1 of a leaf, and the values that they read. */
static enum sdr_status pull_rows(struct pulled *pulled, size_t which, uint32_t from, uint32_t end)
{
    const struct job *job = pulled->job;
    uint32_t row[LEAF];
    struct sdr_batch batch = {.rows = job->problem->rows, .row = row};
    for (uint32_t i = from; i < end; i++)
        row[batch.count++] = sdr_listed(job->rows, i);
    SDR_TRY(sdr_subset_make(&pulled->subset[which], job->problem, pulled->pull->layout, &batch));
    return pulled->pull->pull(pulled->pull->context, &pulled->subset[which]);
}

/* Rows per pull: about a million values, and whole chunks. */
static uint32_t rows_at_a_time(const struct pulled *pulled, const struct sdr_rows *rows)
{
    const struct sdr_layout *layout = pulled->pull->layout;
    double each = 0, entries = (double)rows->start[rows->count] / (double)rows->count;
    for (int b = 0; b < layout->blocks; b++)
        each += layout->block[b].per_feature ? entries * layout->block[b].cols : 0;
    double most = (double)(1 << 20) / (each + 1) / CHUNK;
    return most < 1 ? CHUNK : most > LEAF / CHUNK ? LEAF : (uint32_t)most * CHUNK;
}

enum sdr_status sdr_evaluate_pulled(const struct sdr_model_kind *kind,
                                    const struct sdr_problem *problem, const struct sdr_pull *pull,
                                    const struct sdr_row_list *rows, int threads,
                                    struct sdr_evaluation *result)
{
    struct job job = {kind, problem, {0}, rows, NULL};
    struct pulled *pulled;
    size_t leaves = ((size_t)rows->count + LEAF - 1) / LEAF;
    SDR_TRY(sdr_allocate(&pulled, 1, sizeof *pulled, "evaluation"));
    enum sdr_status status = sdr_allocate(&job.leaf, leaves, sizeof *job.leaf, "evaluation");
    pulled->job = &job;
    pulled->pull = pull;
    uint32_t step = rows_at_a_time(pulled, problem->rows);
    for (size_t leaf = 0; leaf < leaves && status == SDR_OK; leaf += TOGETHER) {
        size_t count = leaves - leaf < TOGETHER ? leaves - leaf : TOGETHER;
        pulled->first_leaf = leaf;
        for (uint32_t from = 0; from < LEAF && status == SDR_OK; from += step) {
            for (size_t i = 0; i < count && status == SDR_OK; i++) {
                uint32_t begin = (uint32_t)(leaf + i) * LEAF + from, end = begin + step;
                uint32_t last = leaf_end(rows, leaf + i);
                end = end < last ? end : last;
                status = pull_rows(pulled, i, begin < end ? begin : end, end);
            }
            if (status == SDR_OK)
                status = sdr_parallel(threads, count, evaluate_subset, pulled);
        }
    }
    if (status == SDR_OK)
        status = add_leaves(&job, leaves, result);
    for (size_t i = 0; i < TOGETHER; i++)
        sdr_subset_free(&pulled->subset[i]);
    sdr_release(job.leaf);
    sdr_release(pulled);
    return status;
}

double sdr_evaluation_loss(const struct sdr_evaluation *e)
{
    return e->weight > 0 ? e->loss / e->weight : NAN;
}

double sdr_evaluation_metric(const struct sdr_evaluation *e, enum sdr_truth task)
{
    if (task == SDR_UNSUPERVISED)
        return NAN;
    if (task != SDR_REGRESSION)
        return e->counted > 0 ? e->correct / e->counted : NAN;
    double total = e->target_square - e->target_sum * e->target_sum / e->counted;
    return total > 0 ? 1 - e->error_square / total : NAN;
}

/* JSON has no NaN: such a number is omitted. */
static void add_number(json_t *object, const char *prefix, const char *name, double value)
{
    char key[64];
    snprintf(key, sizeof key, "%s%s", prefix, name);
    if (isfinite(value))
        sdr_json_set(object, key, json_real(value));
}

void sdr_evaluation_json(const struct sdr_evaluation *e, const struct sdr_model_kind *kind,
                         const char *prefix, json_t *object)
{
    enum sdr_truth task = kind->truth;
    add_number(object, prefix, "loss", sdr_evaluation_loss(e));
    if (task == SDR_UNSUPERVISED) {
        if (kind->total)
            add_number(object, prefix, kind->total, e->loss);
    } else if (task != SDR_REGRESSION) {
        add_number(object, prefix, "accuracy", sdr_evaluation_metric(e, task));
        add_number(object, prefix, "baseline", e->majority / e->counted);
        if (e->unknown)
            add_number(object, prefix, "unknown_labels", (double)e->unknown);
    } else {
        add_number(object, prefix, "rmse", sqrt(e->error_square / e->counted));
        add_number(object, prefix, "r2", sdr_evaluation_metric(e, task));
    }
}
