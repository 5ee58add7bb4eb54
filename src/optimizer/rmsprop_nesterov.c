/* RMSProp with Nesterov's look-ahead on the scaled step:
   r ← ρr + (1−ρ)g²; v ← βv − ηg/(√r + ε) with g taken at w + βv; w ← w + v. */
#include "optimizer/look_ahead.h"

#define SDR_STEP_SLOTS 2 /* s0 = r, s1 = v; the value is w + βv */

struct options {
    double rho, beta, epsilon;
};
static const struct sdr_option table[] = {
    {"rho", SDR_NUMBER, "0.99", NULL, 0, 0.999999, "share of the old mean square that is kept",
     offsetof(struct options, rho), 0},
    {"beta", SDR_NUMBER, "0.9", NULL, 0, 0.9999, "share of the last step that is kept",
     offsetof(struct options, beta), 0},
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
    c[4] = (float)o->beta;
    c[5] = (float)(1 / (1 - o->beta));
}

SDR_INLINE lanes metric(const float *c, lanes s0, lanes s1)
{
    (void)s1;
    return c[5] / (lanes_sqrt(s0) + c[3]);
}

SDR_INLINE lanes step(const float *c, lanes g, lanes *s0, lanes *s1)
{
    *s0 = *s0 * c[1] + g * g * c[2];
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
    .begin = begin,
    .publish = publish,
    SDR_STEP_LOOPS,
};
