/* Least squares: loss ½(z − y)². */
#include "model/linear.h"

static double loss(const void *options, const float *score, uint32_t outputs, float target,
                   float *slope)
{
    (void)options, (void)outputs;
    double residual = (double)score[0] - target;
    slope[0] = (float)residual;
    return 0.5 * residual * residual;
}

SDR_REGISTER(model_kind, squared) = {
    .name = "squared",
    .summary = "linear regression, squared error",
    .task = SDR_REGRESSION,
    .curvature = 1,
    .loss = loss,
    SDR_LINEAR,
};
