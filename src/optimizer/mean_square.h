/* Shared by optimizers with a moving average of squared gradients: r ← ρr + (1−ρ)g². */
#ifndef SDR_OPTIMIZER_MEAN_SQUARE_H
#define SDR_OPTIMIZER_MEAN_SQUARE_H

#include "optimizer/step.h"

struct mean_square {
    double rho, epsilon;
};
#define SDR_MEAN_SQUARE_OPTIONS(type, member, rho_preset, epsilon_preset, epsilon_help)            \
    {"rho",                                                                                        \
     SDR_NUMBER,                                                                                   \
     rho_preset,                                                                                   \
     NULL,                                                                                         \
     0,                                                                                            \
     0.999999,                                                                                     \
     "decay rate of the running mean of squared gradients",                                        \
     offsetof(type, member.rho),                                                                   \
     0},                                                                                           \
    {                                                                                              \
        "epsilon", SDR_NUMBER, epsilon_preset, NULL, 0, 1, epsilon_help,                           \
            offsetof(type, member.epsilon), 0                                                      \
    }

/* c[0] = −rate, c[1] = ρ, c[2] = 1 − ρ, c[3] = ε */
static inline void mean_square_begin(const struct mean_square *o, double rate,
                                     float c[SDR_CONSTANTS])
{
    c[0] = (float)-rate;
    c[1] = (float)o->rho;
    c[2] = (float)(1 - o->rho);
    c[3] = (float)o->epsilon;
}

SDR_INLINE lanes mean_square(const float *c, lanes r, lanes g)
{
    return r * c[1] + g * g * c[2];
}

#endif
