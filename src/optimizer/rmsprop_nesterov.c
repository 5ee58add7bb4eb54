/* RMSProp with Nesterov's look-ahead on the scaled step:
     r ← ρr + (1−ρ)g²;  v ← βv − ηg/(√r + ε), g taken at w + βv;  w ← w + v. */
#include "optimizer/mean_square.h"
#include "optimizer/velocity.h"

#define SDR_STEP_SLOTS 2 /* s0 = r, s1 = v; the value is w + βv */

struct options {
    struct mean_square square;
    double beta;
};
static const struct sdr_option table[] = {
    SDR_MEAN_SQUARE_OPTIONS(struct options, square, "0.99", "1e-8",
                            "added to the root, against division by zero"),
    SDR_BETA_OPTION(struct options, beta),
    {0}};

static void begin(const void *options, uint64_t update, double rate,
                  const struct sdr_target *target, float c[SDR_CONSTANTS])
{
    (void)update, (void)target;
    const struct options *o = options;
    mean_square_begin(&o->square, rate, c);
    c[4] = (float)o->beta;
    c[5] = lasting(o->beta);
}

SDR_INLINE lanes metric(const float *c, lanes amount, lanes s0, lanes s1)
{
    (void)s1;
    return amount * c[5] / (lanes_sqrt(s0) + c[3]);
}

SDR_INLINE lanes step(const float *c, lanes g, lanes *s0, lanes *s1)
{
    *s0 = mean_square(c, *s0, g);
    return look_ahead(s1, g * c[0] / (lanes_sqrt(*s0) + c[3]), c[4]);
}

#include "optimizer/step_loops.h"

static void publish(const struct sdr_target *t, uint32_t n, uint32_t outputs, float *out)
{
    publish_behind(t, t->slot[1], t->constant[4], n, outputs, out);
}

SDR_REGISTER_PER_CPU(optimizer, rmsprop_nesterov) = {
    .name = "rmsprop-nesterov",
    .summary = "rmsprop with Nesterov's look-ahead",
    .options = table,
    .options_size = sizeof(struct options),
    .slots = SDR_STEP_SLOTS,
    .rate = 0.001,
    .rate_power = 1,
    .rate_layers = 0.0002,
    .begin = begin,
    .publish = publish,
    SDR_STEP_LOOPS,
};
