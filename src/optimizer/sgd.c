/* Stochastic gradient descent (Robbins and Monro, 1951): w ← w − ηg. */
#include "optimizer/step.h"

#define SDR_STEP_SLOTS 0

static void begin(const void *options, uint64_t update, double rate,
                  const struct sdr_target *target, float c[SDR_CONSTANTS])
{
    (void)options, (void)update, (void)target;
    c[0] = (float)-rate;
}

SDR_INLINE lanes step(const float *c, lanes g, lanes *s0, lanes *s1)
{
    (void)s0, (void)s1;
    return g * c[0];
}

SDR_INLINE lanes metric(const float *c, lanes amount, lanes s0, lanes s1)
{
    (void)c, (void)s0, (void)s1;
    return amount;
}

#include "optimizer/step_loops.h"

SDR_REGISTER_PER_CPU(optimizer, sgd) = {
    .name = "sgd",
    .summary = "plain gradient steps",
    .slots = SDR_STEP_SLOTS,
    .rate = 0.5,
    .rate_power = 2,
    .rate_layers = 0.1,
    .uniform = true,
    .begin = begin,
    SDR_STEP_LOOPS,
};
