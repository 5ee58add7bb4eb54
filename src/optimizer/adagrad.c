/* AdaGrad (Duchi, Hazan and Singer, 2011): G ← G + g²; w ← w − ηg/(√G + ε). */
#include "optimizer/step.h"

#define SDR_STEP_SLOTS 1 /* s0 = G */

struct options {
    double epsilon;
};
static const struct sdr_option table[] = {{"epsilon", SDR_NUMBER, "1e-10", NULL, 0, 1,
                                           "added to the root, against division by zero",
                                           offsetof(struct options, epsilon), 0},
                                          {0}};

static void begin(const void *options, uint64_t update, double rate,
                  const struct sdr_target *target, float c[SDR_CONSTANTS])
{
    (void)update, (void)target;
    c[0] = (float)-rate;
    c[1] = (float)((const struct options *)options)->epsilon;
}

SDR_INLINE lanes metric(const float *c, lanes amount, lanes s0, lanes s1)
{
    (void)s1;
    return amount / (lanes_sqrt(s0) + c[1]);
}

SDR_INLINE lanes step(const float *c, lanes g, lanes *s0, lanes *s1)
{
    (void)s1;
    *s0 = *s0 + g * g;
    return g * c[0] / (lanes_sqrt(*s0) + c[1]);
}

#include "optimizer/step_loops.h"

SDR_REGISTER_PER_CPU(optimizer, adagrad) = {
    .name = "adagrad",
    .summary = "steps divided by the root of the sum of squared gradients",
    .options = table,
    .options_size = sizeof(struct options),
    .slots = SDR_STEP_SLOTS,
    .rate = 0.75,
    .rate_power = 1,
    .rate_layers = 0.01,
    .sums = true,
    .begin = begin,
    SDR_STEP_LOOPS,
};
