/* AdamW (Loshchilov and Hutter, 2019): Adam whose weight decay w ← w − ηλw does not pass through
 * the moments. */
#include "optimizer/adam.h"

struct options {
    struct moments m;
    double decay;
};
static const struct sdr_option table[] = {SDR_MOMENT_OPTIONS(struct options, m),
                                          {"decay", SDR_NUMBER, "0.01", NULL, 0, 1e6,
                                           "weight decay, in place of --l2",
                                           offsetof(struct options, decay), 0},
                                          {0}};

static void begin(const void *options, uint64_t update, double rate,
                  const struct sdr_target *target, float c[SDR_CONSTANTS])
{
    (void)target;
    moments_begin(&((const struct options *)options)->m, update, rate, c);
}

static double decay(const void *options)
{
    return ((const struct options *)options)->decay;
}

SDR_INLINE lanes metric(const float *c, lanes s0, lanes s1)
{
    (void)c, (void)s0, (void)s1;
    return lanes_all(1.0f);
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
    .begin = begin,
    .decay = decay,
    SDR_STEP_LOOPS,
};
