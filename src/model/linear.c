/* Linear models: see linear.h. */
#include "model/linear.h"

int sdr_linear_shape(const struct sdr_problem *problem, struct sdr_block *block)
{
    block[0] = (struct sdr_block){.name = "weight",
                                  .rows = problem->features,
                                  .cols = problem->outputs,
                                  .per_feature = true,
                                  .penalised = true};
    block[1] = (struct sdr_block){.name = "intercept", .rows = 1, .cols = problem->outputs};
    return problem->intercept ? 2 : 1;
}

size_t sdr_linear_workspace(const struct sdr_problem *problem, uint32_t rows)
{
    return (size_t)rows * problem->outputs * sizeof(float);
}

static float score_one(const struct sdr_problem *problem, const float *w, uint64_t row)
{
    const struct sdr_rows *rows = problem->rows;
    const struct sdr_linear_kernels *kernels = problem->kernels;
    if (rows->dense)
        return kernels->dot(w, sdr_dense_row(rows, row), problem->center, rows->features);
    struct sdr_sparse_row r = sdr_sparse_row(rows, row);
    return r.index16 ? kernels->dot16(w, r.index16, r.x, r.n)
                     : kernels->dot32(w, r.index32, r.x, r.n);
}

/* Scores of sparse rows with several outputs. */
static void score_sparse(const struct sdr_problem *problem, const float *w, uint64_t row,
                         float *score)
{
    struct sdr_sparse_row r = sdr_sparse_row(problem->rows, row);
    if (r.index16)
        problem->kernels->scores16(w, r.index16, r.x, r.n, problem->outputs, score);
    else
        problem->kernels->scores32(w, r.index32, r.x, r.n, problem->outputs, score);
}

/* Dense rows with several outputs, some at a time, so that each weight loaded serves several
   rows. */
static void score_dense(const struct sdr_problem *problem, const float *w, const uint32_t *row,
                        uint32_t count, float *score)
{
    enum { TOGETHER = 72 }; /* a multiple of what the kernels of any level take */
    const float *x[TOGETHER];
    if (count == 1) {
        problem->kernels->scores(w, sdr_dense_row(problem->rows, row[0]), problem->center,
                                 problem->features, problem->outputs, score);
        return;
    }
    for (uint32_t i = 0, n; i < count; i += n) {
        n = count - i < TOGETHER ? count - i : TOGETHER;
        for (uint32_t r = 0; r < n; r++)
            x[r] = sdr_dense_row(problem->rows, row[i + r]);
        problem->kernels->scores_together(w, x, n, problem->center, problem->features,
                                          problem->outputs, score + (size_t)i * problem->outputs);
    }
}

enum sdr_status sdr_linear_score(const struct sdr_view *view, const struct sdr_batch *batch,
                                 void *workspace, float *score)
{
    const struct sdr_problem *problem = view->problem;
    const float *weight = view->w + view->block[0].offset;
    const float *intercept = problem->intercept ? view->w + view->block[1].offset : NULL;
    uint32_t outputs = problem->outputs;
    (void)workspace;
    for (uint32_t i = 0; i < batch->count; i++) {
        float *to = score + (size_t)i * outputs;
        if (outputs == 1) {
            *to = score_one(problem, weight, batch->row[i]) + (intercept ? *intercept : 0.0f);
            continue;
        }
        for (uint32_t k = 0; k < outputs; k++)
            to[k] = intercept ? intercept[k] : 0.0f;
        if (!problem->rows->dense)
            score_sparse(problem, weight, batch->row[i], to);
    }
    if (outputs > 1 && problem->rows->dense)
        score_dense(problem, weight, batch->row, batch->count, score);
    return SDR_OK;
}

enum sdr_status sdr_linear_gradient(const struct sdr_model_kind *kind, const struct sdr_view *view,
                                    const struct sdr_batch *batch, int stage, void *workspace,
                                    struct sdr_update *update)
{
    const struct sdr_problem *problem = view->problem;
    uint32_t outputs = problem->outputs;
    float share = 1.0f / (float)(batch->of ? batch->of : batch->count), *dloss = workspace;
    double loss = 0, weights = 0;
    (void)stage;
    SDR_TRY(sdr_linear_score(view, batch, NULL, dloss));
    for (uint32_t i = 0; i < batch->count; i++) {
        uint32_t row = batch->row[i];
        float *u = dloss + (size_t)i * outputs; /* in: scores; out: derivatives */
        float weight = problem->row_weight ? problem->row_weight[row] : 1.0f;
        loss += weight * kind->loss(problem->model_options, u, outputs, problem->target[row], u);
        weights += weight;
        if (weight * share != 1.0f)
            for (uint32_t k = 0; k < outputs; k++)
                u[k] *= weight * share;
    }
    update->loss = loss;
    update->weight = weights;
    update->part[update->parts++] =
        (struct sdr_part){.form = SDR_FACTORS, .count = batch->count, .value = dloss};
    if (problem->intercept)
        update->part[update->parts++] = (struct sdr_part){.block = 1,
                                                          .form = SDR_FACTORS,
                                                          .right = SDR_ONES,
                                                          .count = batch->count,
                                                          .value = dloss};
    return SDR_OK;
}

/* Folds the centering into the intercept: training saw x − center, prediction sees x, hence b ← b −
   Σ w_j·center_j. */
void sdr_linear_uncenter(const struct sdr_block *block, const float *center, float *w)
{
    const struct sdr_block *weight = &block[0];
    float *intercept = w + block[1].offset;
    for (uint32_t k = 0; k < weight->cols; k++) {
        double moved = intercept[k];
        for (uint32_t j = 0; j < weight->rows; j++)
            moved -= (double)w[weight->offset + (uint64_t)j * weight->cols + k] * center[j];
        intercept[k] = (float)moved;
    }
}

const struct sdr_fused_model sdr_linear_fused = {NULL, NULL};
