/* RMSProp (Tieleman and Hinton, 2012): r ← ρr + (1−ρ)g²; w ← w − ηg/(√r + ε). */
#include "optimizer/step.h"

#define SDR_STEP_SLOTS 1 /* s0 = r */

struct options {
    double rho, epsilon;
};
static const struct sdr_option table[] = {
    {"rho", SDR_NUMBER, "0.99", NULL, 0, 0.999999, "share of the old mean square that is kept",
     offsetof(struct options, rho), 0},
    {"epsilon", SDR_NUMBER, "1e-8", NULL, 0, 1, "added to the root, against division by zero",
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
    (void)s1;
    return 1.0f / (lanes_sqrt(s0) + c[3]);
}

SDR_INLINE lanes step(const float *c, lanes g, lanes *s0, lanes *s1)
{
    (void)s1;
    *s0 = *s0 * c[1] + g * g * c[2];
    return g * c[0] / (lanes_sqrt(*s0) + c[3]);
}

#include "optimizer/step_loops.h"

SDR_REGISTER_PER_CPU(optimizer, rmsprop) = {
    .name = "rmsprop",
    .summary = "steps divided by the root of a running mean of squared gradients",
    .options = table,
    .options_size = sizeof(struct options),
    .slots = SDR_STEP_SLOTS,
    .rate = 0.01,
    .rate_power = 1,
    .begin = begin,
    SDR_STEP_LOOPS,
};
