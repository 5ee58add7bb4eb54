/* AdaDelta (Zeiler, 2012): r ← ρr + (1−ρ)g²; d = g·√(a + ε)/√(r + ε); a ← ρa + (1−ρ)d²; w ← w − ηd. */
#include "optimizer/step.h"

#define SDR_STEP_SLOTS 2 /* s0 = r, s1 = a */

struct options {
    double rho, epsilon;
};
static const struct sdr_option table[] = {
    {"rho", SDR_NUMBER, "0.9", NULL, 0, 0.999999, "share of the old mean squares that is kept",
     offsetof(struct options, rho), 0},
    {"epsilon", SDR_NUMBER, "1e-6", NULL, 0, 1, "inside both roots; sets the size of the first steps",
     offsetof(struct options, epsilon), 0},
    {0}};

static void begin(const void *options, uint64_t update, double rate, const struct sdr_target *target,
                  float c[SDR_CONSTANTS])
{
    (void)update, (void)target;
    const struct options *o = options;
    c[0] = (float)-rate;
    c[1] = (float)o->rho;
    c[2] = (float)(1 - o->rho);
    c[3] = (float)o->epsilon;
}

SDR_INLINE lanes metric(const float *c, lanes s0, lanes s1)
{
    return lanes_sqrt(s1 + c[3]) / lanes_sqrt(s0 + c[3]);
}

SDR_INLINE lanes step(const float *c, lanes g, lanes *s0, lanes *s1)
{
    *s0 = *s0 * c[1] + g * g * c[2];
    lanes d = g * (lanes_sqrt(*s1 + c[3]) / lanes_sqrt(*s0 + c[3]));
    *s1 = *s1 * c[1] + d * d * c[2];
    return d * c[0];
}

#include "optimizer/step_loops.h"

SDR_REGISTER_PER_CPU(optimizer, adadelta) = {
    .name = "adadelta",
    .summary = "steps sized by the running means of past steps and gradients",
    .options = table,
    .options_size = sizeof(struct options),
    .slots = SDR_STEP_SLOTS,
    .rate = 1.0,
    .rate_power = 0,
    .begin = begin,
    SDR_STEP_LOOPS,
};
