/* Shared by optimizers with a velocity: β, and Nesterov's look-ahead. With look-ahead the stored
   value is the point at which gradients are taken, y = w + βv, so a step needs no second array:
   with v' the new velocity, y' = w + v' + βv' = y + (1 + β)v' − βv. */
#ifndef SDR_OPTIMIZER_VELOCITY_H
#define SDR_OPTIMIZER_VELOCITY_H

#include "optimizer/step.h"

#define SDR_BETA_OPTION(type, member)                                                              \
    {                                                                                              \
        "beta", SDR_NUMBER, "0.9", NULL, 0, 0.9999,                                                \
            "momentum coefficient: fraction of the previous step added to the next",               \
            offsetof(type, member), 0                                                              \
    }

/* A constant gradient moves w by rate/(1 − β) per step; the penalty must be as strong. */
static inline float lasting(double beta)
{
    return (float)(1 / (1 - beta));
}

SDR_INLINE lanes look_ahead(lanes *velocity, lanes scaled_gradient, float beta)
{
    lanes old = *velocity;
    *velocity = old * beta + scaled_gradient;
    return *velocity * (1.0f + beta) - old * beta;
}

/* w = y − βv for n rows; if the penalty holds y at zero, w is zero too. */
SDR_INLINE void publish_behind(const struct sdr_target *t, const float *velocity, float beta,
                               uint32_t n, uint32_t outputs, float *out)
{
    for (uint32_t j = 0; j < n; j++)
        for (uint32_t k = 0; k < outputs; k++) {
            size_t at = (size_t)j * outputs + k;
            float q = t->scale ? t->scale[j] : 1.0f, y = t->value[at];
            out[at] = y == 0.0f && t->l1 > 0 ? 0.0f : y - q * beta * velocity[at];
        }
}

#endif
