/* Shared by all linear models: two blocks, scores z = xᵀw + b, gradients as factors u·xᵀ. A model
   file adds its loss. */
#ifndef SDR_MODEL_LINEAR_H
#define SDR_MODEL_LINEAR_H

#include "kernel/linear.h"
#include "kind/model.h"

/* Block 0 "weight" (features × outputs), block 1 "intercept" (1 × outputs), if enabled. */
int sdr_linear_shape(const struct sdr_problem *problem, struct sdr_block *block);
size_t sdr_linear_workspace(const struct sdr_problem *problem, uint32_t rows);
enum sdr_status sdr_linear_score(const struct sdr_view *view, const struct sdr_batch *batch,
                                 void *workspace, float *score);
enum sdr_status sdr_linear_gradient(const struct sdr_model_kind *kind, const struct sdr_view *view,
                                    const struct sdr_batch *batch, int stage, void *workspace,
                                    struct sdr_update *update);
void sdr_linear_uncenter(const struct sdr_block *block, const float *center, float *w);
extern const struct sdr_fused_model sdr_linear_fused;
extern const struct sdr_full_batch sdr_linear_full;

#define SDR_LINEAR                                                                                 \
    .needs = SDR_NEEDS_LABELS, .fused = &sdr_linear_fused, .full = &sdr_linear_full,               \
    .shape = sdr_linear_shape, .workspace = sdr_linear_workspace, .score = sdr_linear_score,       \
    .gradient = sdr_linear_gradient, .uncenter = sdr_linear_uncenter

#endif
