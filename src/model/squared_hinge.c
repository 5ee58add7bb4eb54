/* Support vector machine with squared hinge loss max(0, 1 − yz)², y = ±1. */
#include "model/linear.h"

static double loss(const void *options, const float *score, uint32_t outputs, float target,
                   float *dloss)
{
    (void)options, (void)outputs;
    double short_of = 1.0 - (double)score[0] * target;
    dloss[0] = short_of > 0 ? (float)(-2 * target * short_of) : 0.0f;
    return short_of > 0 ? short_of * short_of : 0.0;
}

SDR_REGISTER(model_kind, squared_hinge) = {
    .name = "squared-hinge",
    .summary = "two classes: linear support vector machine (squared hinge loss)",
    .truth = SDR_BINARY,
    .curvature = 2,
    .loss = loss,
    SDR_LINEAR,
};
