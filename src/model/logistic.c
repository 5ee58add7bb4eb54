/* Logistic regression: loss log(1 + exp(−yz)), y = ±1. */
#include "kernel/math.h"
#include "model/linear.h"

static double loss(const void *options, const float *score, uint32_t outputs, float target,
                   float *dloss)
{
    (void)options, (void)outputs;
    double x = (double)score[0] * -target, e = sdr_exp(x);
    dloss[0] = (float)(-target * e / (1.0 + e));
    return sdr_log1p_of_exp(x, e);
}

static void probability(const float *score, uint32_t outputs, float *p)
{
    (void)outputs;
    p[1] = (float)(1.0 / (1.0 + sdr_exp(-(double)score[0])));
    p[0] = (float)(1.0 / (1.0 + sdr_exp((double)score[0])));
}

SDR_REGISTER(model_kind, logistic) = {
    .name = "logistic",
    .summary = "two classes: logistic regression",
    .truth = SDR_BINARY,
    .curvature = 0.25,
    .loss = loss,
    .probability = probability,
    SDR_LINEAR,
};
