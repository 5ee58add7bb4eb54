/* AdamW (Loshchilov and Hutter, 2019): Adam with decoupled weight decay,
     w ← w·(1 − ηλ) − η·m̂/(√v̂ + ε),
   as published and as in PyTorch: the weight before the step decays. Decay is lazy like every
   penalty (optimizer/step.h), so it is paid after the step. Two corrections make the result exact:
   the penalty due of a step is −ln(1 − ηλ)/λ, whose flow e^(−λ·due) is exactly 1 − ηλ; and the step
   is divided by 1 − ηλ, which the later decay cancels:
     (w + s/(1 − ηλ))·(1 − ηλ) = w·(1 − ηλ) + s. */
#include "kernel/math.h"
#include "optimizer/adam.h"

struct options {
    struct moments m;
    double decay;
};
static const struct sdr_option table[] = {
    SDR_MOMENT_OPTIONS(struct options, m),
    {"decay", SDR_NUMBER, "0.01", NULL, 0, 1e6,
     "weight decay λ, in place of --l2: a step of size η multiplies weights by 1 - ηλ",
     offsetof(struct options, decay), 0},
    {0}};

/* ηλ, clipped below one: a larger decay sets weights to (nearly) zero instead of flipping their
   sign. */
static double lost(const struct options *o, double rate)
{
    return fmin(rate * o->decay, 1 - 0x1p-20);
}

static void begin(const void *options, uint64_t update, double rate,
                  const struct sdr_target *target, float c[SDR_CONSTANTS])
{
    const struct options *o = options;
    bool decays = target->l2 > 0; /* the intercept does not decay */
    moments_begin(&o->m, update, decays ? rate / (1 - lost(o, rate)) : rate, c);
}

static double decay(const void *options)
{
    return ((const struct options *)options)->decay;
}

static double penalty_due(const void *options, uint64_t update, double rate)
{
    const struct options *o = options;
    double x = lost(o, rate), minus_log; /* −log(1 − x); for small x, 1 − x rounds */
    (void)update;
    minus_log = x < 1e-3 ? x * (1 + x * (1.0 / 2 + x * (1.0 / 3 + x * (1.0 / 4 + x / 5))))
                         : -sdr_log(1 - x);
    return o->decay > 0 ? minus_log / o->decay : 0;
}

SDR_INLINE lanes metric(const float *c, lanes amount, lanes s0, lanes s1)
{
    (void)c, (void)s0, (void)s1;
    return amount;
}

#include "optimizer/step_loops.h"

SDR_REGISTER_PER_CPU(optimizer, adamw) = {
    .name = "adamw",
    .summary = "adam with decoupled weight decay",
    .options = table,
    .options_size = sizeof(struct options),
    .slots = SDR_STEP_SLOTS,
    .rate = 0.01,
    .rate_power = 1,
    .rate_layers = 0.003,
    .begin = begin,
    .decay = decay,
    .penalty_due = penalty_due,
    SDR_STEP_LOOPS,
};
