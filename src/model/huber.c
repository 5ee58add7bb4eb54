/* Huber's robust regression (1964): ½r² for |r| ≤ δ, δ(|r| − δ/2) beyond, r = z − y. */
#include "model/linear.h"

#include <math.h>

struct options {
    double delta;
};
static const struct sdr_option table[] = {
    {"delta", SDR_NUMBER, "1", NULL, 1e-30, 1e30,
     "residual, in units of the label, from which the loss grows linearly",
     offsetof(struct options, delta), 0},
    {0}};

static double loss(const void *options, const float *score, uint32_t outputs, float target,
                   float *dloss)
{
    (void)outputs;
    double delta = ((const struct options *)options)->delta;
    double residual = (double)score[0] - target, size = fabs(residual);
    dloss[0] = (float)(size <= delta ? residual : copysign(delta, residual));
    return size <= delta ? 0.5 * residual * residual : delta * (size - 0.5 * delta);
}

SDR_REGISTER(model_kind, huber) = {
    .name = "huber",
    .summary = "linear regression, robust against outliers (Huber loss)",
    .options = table,
    .options_size = sizeof(struct options),
    .truth = SDR_REGRESSION,
    .curvature = 1,
    .loss = loss,
    SDR_LINEAR,
};
