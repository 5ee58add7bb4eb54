/* FTRL-Proximal (McMahan et al., 2013) with per-coordinate rates:
     σ = (√(n + g²) − √n)/η;  z ← z + g − σw;  n ← n + g²
     w = 0 if |z| ≤ tλ₁, else −(z − sign(z)·tλ₁)/((β + √n)/η + tλ₂)
   The penalty grows with the number of updates t, which makes it a penalty on the mean loss as in
   all other optimizers. The paper has a constant λ, which equals --penalty-on sum after one
   epoch. */
#include "optimizer/step.h"

#define SDR_STEP_SLOTS 2 /* s0 = z, s1 = n */
#define SDR_STEP_ASSIGNS

struct options {
    double beta;
};
static const struct sdr_option table[] = {
    {"beta", SDR_NUMBER, "1", NULL, 0, 1e6,
     "added to the root of the sum of squared gradients; larger: smaller first steps",
     offsetof(struct options, beta), 0},
    {0}};

static void begin(const void *options, uint64_t update, double rate,
                  const struct sdr_target *target, float c[SDR_CONSTANTS])
{
    c[0] = (float)(1 / rate);
    c[1] = (float)(((const struct options *)options)->beta / rate);
    c[2] = (float)((double)update * target->l1);
    c[3] = (float)((double)update * target->l2);
}

/* The weight as a function of z and n. */
SDR_INLINE lanes value_of_state(const float *c, lanes s0, lanes s1)
{
    lanes over = lanes_positive(lanes_abs(s0) - c[2]);
    lanes size = over / (lanes_sqrt(s1) * c[0] + (c[1] + c[3]));
    return -lanes_copysign(lanes_select(over > 0.0f, size, over), s0);
}

SDR_INLINE lanes step(const float *c, lanes g, lanes w, lanes *s0, lanes *s1)
{
    lanes n = *s1 + g * g;
    lanes sigma = (lanes_sqrt(n) - lanes_sqrt(*s1)) * c[0];
    *s0 = *s0 + g - sigma * w;
    *s1 = n;
    return value_of_state(c, *s0, *s1);
}

#include "optimizer/step_loops.h"

SDR_REGISTER_PER_CPU(optimizer, ftrl) = {
    .name = "ftrl",
    .summary = "follow the regularised leader, proximal (FTRL): exact zeros with --l1",
    .options = table,
    .options_size = sizeof(struct options),
    .slots = SDR_STEP_SLOTS,
    .rate = 0.5,
    .rate_power = 1,
    .rate_layers = 0.05,
    .own_penalty = true,
    .sums = true,
    .begin = begin,
    SDR_STEP_LOOPS,
};
