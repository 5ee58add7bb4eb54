/* What all linear models share: two blocks, scores z = xᵀw + b, gradients as factors u·xᵀ.
   A model file adds its loss; see any of them. */
#ifndef SDR_MODEL_LINEAR_H
#define SDR_MODEL_LINEAR_H

#include "kernel/linear.h"
#include "plugin.h"

/* Block 0 "weight" (features × outputs), block 1 "intercept" (1 × outputs) if there is one. */
int sdr_linear_shape(const struct sdr_problem *problem, struct sdr_block *block);
void sdr_linear_score(const struct sdr_problem *problem, const struct sdr_block *block,
                      const float *w, const struct sdr_batch *batch, float *score);
void sdr_linear_gradient(const struct sdr_model_kind *kind, const struct sdr_problem *problem,
                         const struct sdr_block *block, const float *w,
                         const struct sdr_batch *batch, float *scratch, struct sdr_update *update);

#define SDR_LINEAR                                                                                 \
    .linear = true, .shape = sdr_linear_shape, .score = sdr_linear_score,                          \
    .gradient = sdr_linear_gradient

#endif
