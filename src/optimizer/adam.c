/* Adam (Kingma and Ba, 2015). On sparse rows the moments of untouched values do not advance, as in
   SparseAdam. */
#include "optimizer/adam.h"

struct options {
    struct moments m;
};
static const struct sdr_option table[] = {SDR_MOMENT_OPTIONS(struct options, m), {0}};

static void begin(const void *options, uint64_t update, double rate,
                  const struct sdr_target *target, float c[SDR_CONSTANTS])
{
    (void)target;
    moments_begin(&((const struct options *)options)->m, update, rate, c);
}

/* The step per unit of gradient is rate/(√v̂ + ε) = rate·√(1 − β₂ᵗ)/(√v + …). The factor that
   depends on t goes into penalty_due of each step, so that the metric of an untouched value stays
   constant. */
SDR_INLINE lanes metric(const float *c, lanes amount, lanes s0, lanes s1)
{
    (void)s0;
    return amount / (lanes_sqrt(s1) + c[6]);
}

static double penalty_due(const void *options, uint64_t update, double rate)
{
    const struct options *o = options;
    return rate * sqrt(1 - pow(o->m.beta2, (double)update));
}

#include "optimizer/step_loops.h"

SDR_REGISTER_PER_CPU(optimizer, adam) = {
    .name = "adam",
    .summary = "running means of gradients and of their squares, with bias correction",
    .options = table,
    .options_size = sizeof(struct options),
    .slots = SDR_STEP_SLOTS,
    .rate = 0.01,
    .rate_power = 1,
    .rate_layers = 0.003,
    .begin = begin,
    .penalty_due = penalty_due,
    SDR_STEP_LOOPS,
};
