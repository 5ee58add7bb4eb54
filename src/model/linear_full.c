/* The gradient of linear models over all rows, in double and on all threads: for --sync batch.

   Rows are read once. A block of rows that fits the first caches goes through three steps: scores z
   = Xw + b, losses and their derivatives u, and the sums Xᵀu. Centers are taken out of the loops:
   with rows x − c,
       z = xᵀw + (b − cᵀw)        and        Σ u(x − c) = Σ ux − c·Σ u.

   Rows are cut into leaves by their numbers alone, and leaves are added up in order: the bits do
   not depend on threads.

   Models compute losses from scores in float. The loss ℓ at the float nearest to z is corrected to
   first order, ℓ(z) ≈ ℓ(z') + u·(z − z'), and so has an error of 1e-15·z² instead of 1e-8·z: line
   searches compare objectives that differ in the last digits. */
#include "base/memory.h"
#include "base/thread.h"
#include "kernel/full.h"
#include "model/linear.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 64 }; /* rows of a block, at most */

struct summing {
    const struct sdr_model_kind *kind;
    const struct sdr_problem *problem;
    const struct sdr_batch *rows;
    const struct sdr_full_kernels *kernels;
    bool curve;
    uint32_t leaves, block; /* block: rows of a block */
    size_t row, length,
        size; /* doubles from output to output (dense rows); of the sums of a leaf; of a leaf */
    double *w, *bias;   /* owned: weights as the kernels read them; a constant per output */
    double *leaf;       /* owned: for each, sums of rows, sums of u, loss, scores of a block */
    double share;       /* factor on the sums */
    uint64_t intercept; /* index of the intercept */
    double *gradient;   /* the result */
};

static double *leaf_of(const struct summing *job, size_t index)
{
    return job->leaf + index * job->size;
}

/* Scores of a block without the bias, one output after the other. */
static void score_block(const struct summing *job, const uint32_t *row, const float *const *x,
                        uint32_t count, double *score)
{
    const struct sdr_rows *rows = job->problem->rows;
    uint32_t outputs = job->problem->outputs;
    if (rows->dense) {
        job->kernels->scores(job->w, job->row, outputs, x, count, rows->features, score);
        return;
    }
    for (uint32_t i = 0; i < count; i++, score += outputs) {
        struct sdr_sparse_row r = sdr_sparse_row(rows, row[i]);
        if (r.index16)
            job->kernels->scores16(job->w, outputs, r.index16, r.x, r.n, score);
        else
            job->kernels->scores32(job->w, outputs, r.index32, r.x, r.n, score);
    }
}

static void add_block(const struct summing *job, const uint32_t *row, const float *const *x,
                      uint32_t count, const double *u, double *sum)
{
    const struct sdr_rows *rows = job->problem->rows;
    uint32_t outputs = job->problem->outputs;
    if (rows->dense) {
        job->kernels->add(sum, job->row, outputs, x, count, rows->features, u);
        return;
    }
    for (uint32_t i = 0; i < count; i++, u += outputs) {
        struct sdr_sparse_row r = sdr_sparse_row(rows, row[i]);
        if (r.index16)
            job->kernels->add16(sum, outputs, r.index16, r.x, r.n, u);
        else
            job->kernels->add32(sum, outputs, r.index32, r.x, r.n, u);
    }
}

/* The loss of one row. z: in, its scores; out, the derivatives of the loss by them. */
static double loss_of(const struct summing *job, uint32_t row, double *z, float *u)
{
    const struct sdr_problem *problem = job->problem;
    uint32_t outputs = problem->outputs;
    double apart = 0;
    for (uint32_t k = 0; k < outputs; k++)
        u[k] = (float)z[k];
    double loss = job->kind->loss(problem->model_options, u, outputs, problem->target[row], u);
    for (uint32_t k = 0; k < outputs; k++) {
        apart += u[k] * (z[k] - (float)z[k]);
        z[k] = u[k];
    }
    return loss + apart;
}

static uint32_t listed(const struct summing *job, uint64_t at)
{
    return job->rows->row ? job->rows->row[at] : (uint32_t)at;
}

/* Turns the scores of a block into factors of its rows, adds them up, and returns the sum of
   losses. Meanwhile the rows from `ahead` to `end` are fetched: losses read no memory, and the CPU
   does not see a stream in the scores of several rows at a time. 500 000 rows of 100 features, one
   thread: 23 ms a pass, and 35 ms without. */
static double factors_of_block(const struct summing *job, const uint32_t *row, uint32_t count,
                               uint64_t ahead, uint64_t end, double *score, float *scratch,
                               double *sum)
{
    const float *weights = job->problem->row_weight;
    uint32_t outputs = job->problem->outputs;
    double total = 0;
    for (uint32_t i = 0; i < count; i++, score += outputs) {
        double weight = weights ? weights[row[i]] : 1.0;
        if (ahead + i < end)
            sdr_fetch_row(job->problem, listed(job, ahead + i));
        for (uint32_t k = 0; k < outputs; k++)
            score[k] += job->bias[k];
        if (!job->curve)
            total += weight * loss_of(job, row[i], score, scratch);
        for (uint32_t k = 0; k < outputs; k++) {
            score[k] *= weight;
            sum[k] += score[k];
        }
    }
    return total;
}

static enum sdr_status sum_leaf(void *context, size_t index)
{
    enum { PASS = 8192 }; /* rows between releases of streamed data */
    const struct summing *job = context;
    const struct sdr_rows *rows = job->problem->rows;
    uint32_t outputs = job->problem->outputs, row[BLOCK], count;
    double *sum = leaf_of(job, index), *factors = sum + job->length, *loss = factors + outputs;
    double *score = loss + 1;
    float *scratch = (float *)(void *)(score + (size_t)job->block * outputs);
    const float *x[BLOCK];
    uint64_t all = job->rows->count;
    uint64_t at = all * index / job->leaves, end = all * (index + 1) / job->leaves, passed = at;
    memset(sum, 0, (job->length + outputs + 1) * sizeof *sum);
    for (; at < end; at += count) {
        count = end - at < job->block ? (uint32_t)(end - at) : job->block;
        for (uint32_t i = 0; i < count; i++) {
            row[i] = listed(job, at + i);
            x[i] = rows->dense ? sdr_dense_row(rows, row[i]) : NULL;
        }
        score_block(job, row, x, count, score);
        *loss += factors_of_block(job, row, count, at + count, end, score, scratch, factors);
        add_block(job, row, x, count, score, sum);
        if (at + count >= passed + PASS || at + count == end) {
            sdr_rows_release(rows, listed(job, passed), (uint64_t)row[count - 1] + 1);
            passed = at + count;
        }
    }
    return SDR_OK;
}

/* Adds the leaves up, in order, for some of the features. */
enum { TOGETHER = 4096 };
static enum sdr_status join_leaves(void *context, size_t index)
{
    const struct summing *job = context;
    const struct sdr_problem *problem = job->problem;
    const float *center = problem->center;
    uint32_t outputs = problem->outputs, first = (uint32_t)index * TOGETHER;
    uint32_t end = problem->features - first < TOGETHER ? problem->features : first + TOGETHER;
    for (uint32_t k = 0; k < outputs; k++) {
        double factors = 0;
        for (uint32_t l = 0; l < job->leaves; l++)
            factors += leaf_of(job, l)[job->length + k];
        if (problem->intercept && index == 0)
            job->gradient[job->intercept + k] = factors * job->share;
        for (uint32_t j = first; j < end; j++) {
            size_t at = (size_t)j * outputs + k;
            size_t from = problem->rows->dense ? k * job->row + j : at;
            double sum = 0;
            for (uint32_t l = 0; l < job->leaves; l++)
                sum += leaf_of(job, l)[from];
            if (center)
                sum -= center[j] * factors;
            job->gradient[at] = sum * job->share;
        }
    }
    return SDR_OK;
}

/* More leaves serve more threads, but each has sums as long as the weights: adding rows to them
   must take longer than adding them up. Depends on the data alone. */
static uint32_t count_leaves(const struct sdr_problem *problem, uint64_t rows)
{
    const uint64_t most = 64, fold = 4, least_work = 1 << 14, values_most = 1 << 25;
    uint64_t features = problem->features, values = features * problem->outputs;
    uint64_t entries =
        problem->rows->dense ? rows * features : problem->rows->start[problem->rows->count];
    uint64_t work = entries * problem->outputs, leaves = most;
    uint64_t limit[] = {entries / (fold * features), work / least_work, values_most / values, rows};
    for (size_t i = 0; i < sizeof limit / sizeof *limit; i++)
        leaves = limit[i] < leaves ? limit[i] : leaves;
    uint64_t least = work / least_work > most && rows > 1 ? 2 : 1;
    return (uint32_t)(leaves > least ? leaves : least);
}

/* Copies the weights as the kernels read them. */
static enum sdr_status arrange(struct summing *job, const double *w)
{
    const struct sdr_problem *problem = job->problem;
    uint32_t features = problem->features, outputs = problem->outputs;
    bool dense = problem->rows->dense != NULL;
    SDR_TRY(sdr_allocate(&job->w, job->length, sizeof *job->w, "weights"));
    SDR_TRY(sdr_allocate(&job->bias, outputs, sizeof *job->bias, "weights"));
    for (uint32_t k = 0; k < outputs; k++) {
        double bias = problem->intercept ? w[job->intercept + k] : 0.0;
        for (uint32_t j = 0; j < features; j++) {
            size_t at = (size_t)j * outputs + k;
            job->w[dense ? k * job->row + j : at] = w[at];
            bias -= problem->center ? w[at] * problem->center[j] : 0.0;
        }
        job->bias[k] = bias;
    }
    return SDR_OK;
}

static uint32_t rows_of_block(const struct sdr_problem *problem)
{
    enum { BYTES = 1 << 16, LEAST = 8 };
    uint64_t fit = problem->rows->dense ? BYTES / (problem->features * sizeof(float) + 1) : BLOCK;
    return (uint32_t)(fit > BLOCK ? BLOCK : fit < LEAST ? LEAST : fit);
}

static enum sdr_status full_gradient(const struct sdr_model_kind *kind, const struct sdr_view *view,
                                     const struct sdr_batch *rows, int threads, const double *w,
                                     bool curve, double *loss, double *gradient)
{
    const struct sdr_problem *problem = view->problem;
    uint64_t features = problem->features, outputs = problem->outputs;
    struct summing job = {.kind = kind,
                          .problem = problem,
                          .rows = rows,
                          .kernels = sdr_full_kernels(sdr_cpu_level()),
                          .curve = curve,
                          .leaves = count_leaves(problem, rows->count),
                          .block = rows_of_block(problem),
                          .share = (curve ? kind->curvature : 1.0) / rows->count,
                          .intercept = problem->intercept ? view->block[1].offset : 0,
                          .gradient = gradient};
    job.row = (features + SDR_FULL_WIDTH - 1) / SDR_FULL_WIDTH * SDR_FULL_WIDTH;
    job.length = problem->rows->dense ? job.row * outputs : features * outputs;
    job.size = job.length + 2 * outputs + 1 + job.block * outputs;
    job.size = (job.size + SDR_FULL_WIDTH - 1) / SDR_FULL_WIDTH * SDR_FULL_WIDTH;
    enum sdr_status status = arrange(&job, w);
    if (status == SDR_OK)
        status = sdr_allocate(&job.leaf, job.leaves * job.size, sizeof *job.leaf, "sums of rows");
    if (status == SDR_OK)
        status = sdr_parallel(threads, job.leaves, sum_leaf, &job);
    if (status == SDR_OK)
        status = sdr_parallel(threads, (features + TOGETHER - 1) / TOGETHER, join_leaves, &job);
    *loss = 0;
    for (uint32_t l = 0; l < job.leaves && status == SDR_OK; l++)
        *loss += leaf_of(&job, l)[job.length + outputs] / rows->count;
    sdr_release(job.w);
    sdr_release(job.bias);
    sdr_release(job.leaf);
    return status;
}

/* ---- curvatures ---- */
/* Adds the squares of a leaf's rows; behind the sums, the entries of its longest row. */
static enum sdr_status square_leaf(void *context, size_t index)
{
    const struct summing *job = context;
    const struct sdr_problem *problem = job->problem;
    const struct sdr_rows *rows = problem->rows;
    double *sum = leaf_of(job, index), *most = sum + job->length;
    uint64_t all = job->rows->count;
    uint64_t first = all * index / job->leaves, end = all * (index + 1) / job->leaves;
    for (uint64_t at = first; at < end; at++) {
        uint32_t row = listed(job, at);
        double weight = problem->row_weight ? problem->row_weight[row] : 1.0;
        if (rows->dense) {
            const float *x = sdr_dense_row(rows, row);
            for (uint32_t j = 0; j < rows->features; j++) {
                double value = (double)x[j] - (problem->center ? problem->center[j] : 0.0f);
                sum[j] += weight * value * value;
            }
            continue;
        }
        struct sdr_sparse_row r = sdr_sparse_row(rows, row);
        for (uint32_t n = 0; n < r.n; n++)
            sum[sdr_row_index(&r, n)] += weight * r.x[n] * r.x[n];
        *most = r.n > *most ? r.n : *most;
    }
    sdr_rows_release(rows, listed(job, first), (uint64_t)listed(job, end - 1) + 1);
    return SDR_OK;
}

/* D = curvature·mean x² per feature. A row with m entries gives (Σ x_j v_j)² ≤ m·Σ x_j² v_j², so
   that B ≼ m·D with the longest row's m; an intercept is one entry more. Rows that are scaled by
   their deviations, and all weigh the same, need no pass: their mean squares are known. */
static enum sdr_status curvatures(const struct sdr_model_kind *kind, const struct sdr_view *view,
                                  const struct sdr_batch *rows, int threads, double *diagonal,
                                  double *most)
{
    const struct sdr_problem *problem = view->problem;
    uint32_t features = problem->features, outputs = problem->outputs;
    bool dense = problem->rows->dense != NULL;
    bool known = dense && problem->center && problem->scale && !problem->row_weight;
    struct summing job = {.problem = problem, .rows = rows, .length = features};
    job.leaves = known ? 0 : count_leaves(problem, rows->count);
    job.size = (features + 1 + SDR_FULL_WIDTH) / SDR_FULL_WIDTH * SDR_FULL_WIDTH;
    SDR_TRY(sdr_allocate(&job.leaf, job.leaves * job.size, sizeof *job.leaf, "squares of rows"));
    enum sdr_status status = sdr_parallel(threads, job.leaves, square_leaf, &job);
    *most = dense ? features : 0;
    for (uint32_t l = 0; l < job.leaves; l++)
        *most = fmax(*most, leaf_of(&job, l)[features]);
    *most += problem->intercept;
    for (uint32_t j = 0; j < features; j++) {
        double square = known ? 1 / ((double)problem->scale[j] * problem->scale[j]) : 0;
        for (uint32_t l = 0; l < job.leaves; l++)
            square += leaf_of(&job, l)[j] / rows->count;
        for (uint32_t k = 0; k < outputs; k++)
            diagonal[(size_t)j * outputs + k] = kind->curvature * square;
    }
    for (uint32_t k = 0; k < outputs && problem->intercept; k++)
        diagonal[view->block[1].offset + k] = kind->curvature;
    sdr_release(job.leaf);
    return status;
}

const struct sdr_full_batch sdr_linear_full = {.gradient = full_gradient, .curvatures = curvatures};
