/* Support vector machine: hinge loss max(0, 1 − yz), y = ±1. */
#include "model/linear.h"

static double loss(const void *options, const float *score, uint32_t outputs, float target,
                   float *dloss)
{
    (void)options, (void)outputs;
    double short_of = 1.0 - (double)score[0] * target;
    dloss[0] = short_of > 0 ? -target : 0.0f;
    return short_of > 0 ? short_of : 0.0;
}

SDR_REGISTER(model_kind, hinge) = {
    .name = "hinge",
    .summary = "two classes: linear support vector machine (hinge loss)",
    .truth = SDR_BINARY,
    .curvature = 0, /* not smooth */
    .loss = loss,
    SDR_LINEAR,
};
