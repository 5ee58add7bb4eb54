/* Nesterov's look-ahead, shared by nesterov and rmsprop-nesterov.

   The stored value is the point gradients are taken at, y = w + βv, so that a step needs no second
   array: with v' the new velocity, y' = w + v' + βv' = y + (1 + β)v' − βv. */
#ifndef SDR_OPTIMIZER_LOOK_AHEAD_H
#define SDR_OPTIMIZER_LOOK_AHEAD_H

#include "optimizer/step.h"

SDR_INLINE lanes look_ahead(lanes *velocity, lanes scaled_gradient, float beta)
{
    lanes old = *velocity;
    *velocity = old * beta + scaled_gradient;
    return *velocity * (1.0f + beta) - old * beta;
}

/* w = y − βv for n rows. */
SDR_INLINE void publish_behind(const struct sdr_target *t, const float *velocity, float beta,
                               uint32_t n, uint32_t outputs, float *out)
{
    for (uint32_t j = 0; j < n; j++)
        for (uint32_t k = 0; k < outputs; k++) {
            size_t at = (size_t)j * outputs + k;
            out[at] = t->value[at] - (t->scale ? t->scale[j] : 1.0f) * beta * velocity[at];
        }
}

#endif
