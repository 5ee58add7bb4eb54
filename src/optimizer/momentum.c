/* Heavy-ball momentum (Polyak, 1964): v ← βv − ηg(w); w ← w + v. */
#include "optimizer/velocity.h"

#define SDR_STEP_SLOTS 1 /* s0 = v */

struct options {
    double beta;
};
static const struct sdr_option table[] = {SDR_BETA_OPTION(struct options, beta), {0}};

static void begin(const void *options, uint64_t update, double rate,
                  const struct sdr_target *target, float c[SDR_CONSTANTS])
{
    (void)update, (void)target;
    const struct options *o = options;
    c[0] = (float)-rate;
    c[1] = (float)o->beta;
    c[2] = lasting(o->beta);
}

SDR_INLINE lanes step(const float *c, lanes g, lanes *s0, lanes *s1)
{
    (void)s1;
    return *s0 = *s0 * c[1] + g * c[0];
}

SDR_INLINE lanes metric(const float *c, lanes amount, lanes s0, lanes s1)
{
    (void)s0, (void)s1;
    return amount * c[2];
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
    .rate_layers = 0.02,
    .uniform = true,
    .begin = begin,
    SDR_STEP_LOOPS,
};
