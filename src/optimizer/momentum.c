/* Heavy-ball momentum (Polyak, 1964): v ← βv − ηg(w); w ← w + v. */
#include "optimizer/step.h"

#define SDR_STEP_SLOTS 1 /* s0 = v */

struct options {
    double beta;
};
static const struct sdr_option table[] = {
    {"beta", SDR_NUMBER, "0.9", NULL, 0, 0.9999, "share of the last step that is kept",
     offsetof(struct options, beta), 0},
    {0}};

static void begin(const void *options, uint64_t update, double rate, const struct sdr_target *target,
                  float c[SDR_CONSTANTS])
{
    (void)update, (void)target;
    const struct options *o = options;
    c[0] = (float)-rate;
    c[1] = (float)o->beta;
    c[2] = (float)(1 / (1 - o->beta));
}

SDR_INLINE lanes step(const float *c, lanes g, lanes *s0, lanes *s1)
{
    (void)s1;
    return *s0 = *s0 * c[1] + g * c[0];
}

/* A lasting gradient moves w by η/(1 − β) a step; the penalty must pull as hard. */
SDR_INLINE lanes metric(const float *c, lanes s0, lanes s1)
{
    (void)s0, (void)s1;
    return lanes_all(c[2]);
}

#include "optimizer/step_loops.h"

SDR_REGISTER_PER_CPU(optimizer, momentum) = {
    .name = "momentum",
    .summary = "gradient steps with heavy-ball momentum",
    .options = table,
    .options_size = sizeof(struct options),
    .slots = SDR_STEP_SLOTS,
    .rate = 0.05,
    .rate_power = 2,
    .uniform = true,
    .begin = begin,
    SDR_STEP_LOOPS,
};
