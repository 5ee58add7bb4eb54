/* Loss and metrics of given weights on given rows. Rows are cut into fixed leaves whose sums are
   added in order: the result does not depend on the number of threads. */
#include "base/json.h"
#include "base/memory.h"
#include "base/thread.h"
#include "run/run.h"

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

/* score is overwritten with slopes. */
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
        if (isnan(target)) { /* a label training never saw cannot be right, and has no loss */
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

static enum sdr_status evaluate_leaf(void *context, size_t index)
{
    struct job *job = context;
    uint32_t outputs = job->problem->outputs;
    uint32_t first = (uint32_t)index * LEAF, end = first + LEAF;
    unsigned char *workspace = NULL;
    float *score = NULL;
    if (end > job->rows->count || end < first)
        end = job->rows->count;
    enum sdr_status status = sdr_allocate(&score, (size_t)CHUNK * outputs, sizeof(float), "scores");
    if (status == SDR_OK)
        status = sdr_allocate(&workspace, job->kind->workspace(job->problem, CHUNK), 1, "scores");
    for (uint32_t at = first; at < end && status == SDR_OK; at += CHUNK) {
        uint32_t row[CHUNK], count = end - at < CHUNK ? end - at : CHUNK;
        for (uint32_t i = 0; i < count; i++)
            row[i] = job->rows->row ? job->rows->row[at + i] : at + i;
        struct sdr_batch batch = {.rows = job->problem->rows, .row = row, .count = count};
        status = job->kind->score(&job->view, &batch, workspace, score);
        for (uint32_t i = 0; i < count && status == SDR_OK; i++)
            count_row(job, row[i], score + (size_t)i * outputs, &job->leaf[index]);
    }
    sdr_release(workspace);
    sdr_release(score);
    if (job->rows->row && first < end)
        sdr_rows_release(job->problem->rows, job->rows->row[first], job->rows->row[end - 1] + 1);
    else
        sdr_rows_release(job->problem->rows, first, end);
    return status;
}

/* The weight of the most frequent class among the rows: what a constant gets right. */
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

enum sdr_status sdr_evaluate(const struct sdr_model_kind *kind, const struct sdr_problem *problem,
                             const struct sdr_block *block, const float *w,
                             const struct sdr_row_list *rows, int threads,
                             struct sdr_evaluation *result)
{
    struct job job = {kind, problem, {problem, block, w, 0}, rows, NULL};
    size_t leaves = ((size_t)rows->count + LEAF - 1) / LEAF;
    *result = (struct sdr_evaluation){0};
    SDR_TRY(sdr_allocate(&job.leaf, leaves, sizeof *job.leaf, "evaluation"));
    enum sdr_status status = sdr_parallel(threads, leaves, evaluate_leaf, &job);
    for (size_t i = 0; i < leaves && status == SDR_OK; i++) {
        const struct sdr_evaluation *leaf = &job.leaf[i];
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
    sdr_release(job.leaf);
    if (status == SDR_OK && problem->classes)
        status = weigh_majority(&job, &result->majority);
    return status;
}

double sdr_evaluation_loss(const struct sdr_evaluation *e)
{
    return e->weight > 0 ? e->loss / e->weight : NAN;
}

double sdr_objective(const struct sdr_run *run, const struct sdr_evaluation *e, const float *w)
{
    double own = e->weight > 0 ? e->penalty / e->weight : 0;
    return sdr_evaluation_loss(e) + own + sdr_parameters_penalty(&run->parameters, w, NULL);
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

/* JSON has no NaN: what cannot be said is left out. */
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
