/* Adam's moments (Kingma and Ba, 2015), shared by adam and adamw:
   m ← β₁m + (1−β₁)g; v ← β₂v + (1−β₂)g²; step −η·m̂/(√v̂ + ε), hats: divided by 1 − βᵗ. */
#ifndef SDR_OPTIMIZER_ADAM_H
#define SDR_OPTIMIZER_ADAM_H

#include "optimizer/step.h"

#define SDR_STEP_SLOTS 2 /* s0 = m, s1 = v */

struct moments {
    double beta1, beta2, epsilon;
};
#define SDR_MOMENT_OPTIONS(type, member)                                                           \
    {"beta1",                                                                                      \
     SDR_NUMBER,                                                                                   \
     "0.9",                                                                                        \
     NULL,                                                                                         \
     0,                                                                                            \
     0.999999,                                                                                     \
     "decay rate of the running mean of gradients",                                                \
     offsetof(type, member.beta1),                                                                 \
     0},                                                                                           \
        {"beta2",                                                                                  \
         SDR_NUMBER,                                                                               \
         "0.999",                                                                                  \
         NULL,                                                                                     \
         0,                                                                                        \
         0.99999999,                                                                               \
         "decay rate of the running mean of squared gradients",                                    \
         offsetof(type, member.beta2),                                                             \
         0},                                                                                       \
    {                                                                                              \
        "epsilon", SDR_NUMBER, "1e-8", NULL, 0, 1, "added to the root, against division by zero",  \
            offsetof(type, member.epsilon), 0                                                      \
    }

static inline void moments_begin(const struct moments *o, uint64_t update, double rate,
                                 float c[SDR_CONSTANTS])
{
    double left1 = pow(o->beta1, (double)update), left2 = pow(o->beta2, (double)update);
    c[0] = (float)(-rate / (1 - left1));
    c[1] = (float)o->beta1;
    c[2] = (float)(1 - o->beta1);
    c[3] = (float)o->beta2;
    c[4] = (float)(1 - o->beta2);
    c[5] = (float)sqrt(1 / (1 - left2));
    c[6] = (float)o->epsilon;
}

SDR_INLINE lanes step(const float *c, lanes g, lanes *s0, lanes *s1)
{
    *s0 = *s0 * c[1] + g * c[2];
    *s1 = *s1 * c[3] + g * g * c[4];
    return *s0 * c[0] / (lanes_sqrt(*s1) * c[5] + c[6]);
}

#endif
