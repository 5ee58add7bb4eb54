/* AdaDelta (Zeiler, 2012): r ← ρr + (1−ρ)g²; d = g·√(a + ε)/√(r + ε); a ← ρa + (1−ρ)d²; w ← w − ηd.
 */
#include "optimizer/mean_square.h"

#define SDR_STEP_SLOTS 2 /* s0 = r, s1 = a */

struct options {
    struct mean_square square;
};
static const struct sdr_option table[] = {
    SDR_MEAN_SQUARE_OPTIONS(struct options, square, "0.9", "1e-6",
                            "inside both roots; sets the size of the first steps"),
    {0}};

static void begin(const void *options, uint64_t update, double rate,
                  const struct sdr_target *target, float c[SDR_CONSTANTS])
{
    (void)update, (void)target;
    mean_square_begin(&((const struct options *)options)->square, rate, c);
}

SDR_INLINE lanes metric(const float *c, lanes amount, lanes s0, lanes s1)
{
    return amount * lanes_sqrt(s1 + c[3]) / lanes_sqrt(s0 + c[3]);
}

SDR_INLINE lanes step(const float *c, lanes g, lanes *s0, lanes *s1)
{
    *s0 = mean_square(c, *s0, g);
    lanes d = g * (lanes_sqrt(*s1 + c[3]) / lanes_sqrt(*s0 + c[3]));
    *s1 = mean_square(c, *s1, d);
    return d * c[0];
}

#include "optimizer/step_loops.h"

SDR_REGISTER_PER_CPU(optimizer, adadelta) = {
    .name = "adadelta",
    .summary = "steps sized by running means of past steps and gradients; finds its own step size",
    .options = table,
    .options_size = sizeof(struct options),
    .slots = SDR_STEP_SLOTS,
    .rate = 1.0,
    .rate_power = 0,
    .rate_layers = 1.0,
    .begin = begin,
    SDR_STEP_LOOPS,
};
