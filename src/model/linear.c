/* Linear models: see linear.h. */
#include "model/linear.h"

#include <stdio.h>
#include <string.h>

int sdr_linear_shape(const struct sdr_problem *problem, struct sdr_block *block)
{
    block[0] = (struct sdr_block){
        .name = "weight", .rows = problem->features, .cols = problem->outputs, .per_feature = true};
    block[1] = (struct sdr_block){.name = "intercept", .rows = 1, .cols = problem->outputs};
    return problem->intercept ? 2 : 1;
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

static void score_many(const struct sdr_problem *problem, const float *w, uint64_t row,
                       float *score)
{
    const struct sdr_rows *rows = problem->rows;
    const struct sdr_linear_kernels *kernels = problem->kernels;
    uint32_t outputs = problem->outputs;
    if (rows->dense) {
        kernels->scores(w, sdr_dense_row(rows, row), problem->center, rows->features, outputs,
                        score);
        return;
    }
    struct sdr_sparse_row r = sdr_sparse_row(rows, row);
    if (r.index16)
        kernels->scores16(w, r.index16, r.x, r.n, outputs, score);
    else
        kernels->scores32(w, r.index32, r.x, r.n, outputs, score);
}

void sdr_linear_score(const struct sdr_problem *problem, const struct sdr_block *block,
                      const float *w, const struct sdr_batch *batch, float *score)
{
    const float *weight = w + block[0].offset;
    const float *intercept = problem->intercept ? w + block[1].offset : NULL;
    uint32_t outputs = problem->outputs;
    for (uint32_t i = 0; i < batch->count; i++, score += outputs) {
        if (outputs == 1) {
            *score = score_one(problem, weight, batch->row[i]) + (intercept ? *intercept : 0.0f);
            continue;
        }
        for (uint32_t k = 0; k < outputs; k++)
            score[k] = intercept ? intercept[k] : 0.0f;
        score_many(problem, weight, batch->row[i], score);
    }
}

void sdr_linear_gradient(const struct sdr_model_kind *kind, const struct sdr_problem *problem,
                         const struct sdr_block *block, const float *w,
                         const struct sdr_batch *batch, float *scratch, struct sdr_update *update)
{
    uint32_t outputs = problem->outputs;
    float share = 1.0f / (float)(batch->of ? batch->of : batch->count);
    double loss = 0, weights = 0;
    sdr_linear_score(problem, block, w, batch, scratch);
    for (uint32_t i = 0; i < batch->count; i++) {
        uint32_t row = batch->row[i];
        float *u = scratch + (size_t)i * outputs; /* scores in, slopes out */
        float weight = problem->row_weight ? problem->row_weight[row] : 1.0f;
        loss += weight * kind->loss(problem->model_options, u, outputs, problem->target[row], u);
        weights += weight;
        if (weight * share != 1.0f)
            for (uint32_t k = 0; k < outputs; k++)
                u[k] *= weight * share;
    }
    *update = (struct sdr_update){.form = SDR_FACTORS,
                                  .sense = SDR_GRADIENT,
                                  .outputs = outputs,
                                  .u = scratch,
                                  .stride = outputs,
                                  .examples = *batch,
                                  .loss = loss,
                                  .weight = weights};
}
