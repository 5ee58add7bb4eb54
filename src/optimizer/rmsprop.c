/* RMSProp (Tieleman and Hinton, 2012): r ← ρr + (1−ρ)g²; w ← w − ηg/(√r + ε). */
#include "optimizer/mean_square.h"

#define SDR_STEP_SLOTS 1 /* s0 = r */

struct options {
    struct mean_square square;
};
static const struct sdr_option table[] = {
    SDR_MEAN_SQUARE_OPTIONS(struct options, square, "0.99", "1e-8",
                            "added to the root, against division by zero"),
    {0}};

static void begin(const void *options, uint64_t update, double rate,
                  const struct sdr_target *target, float c[SDR_CONSTANTS])
{
    (void)update, (void)target;
    mean_square_begin(&((const struct options *)options)->square, rate, c);
}

SDR_INLINE lanes metric(const float *c, lanes amount, lanes s0, lanes s1)
{
    (void)s1;
    return amount / (lanes_sqrt(s0) + c[3]);
}

SDR_INLINE lanes step(const float *c, lanes g, lanes *s0, lanes *s1)
{
    (void)s1;
    *s0 = mean_square(c, *s0, g);
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
    .rate_layers = 0.001,
    .begin = begin,
    SDR_STEP_LOOPS,
};
