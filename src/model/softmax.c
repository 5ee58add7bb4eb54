/* Multinomial logistic regression: loss log Σ_k exp(z_k) − z_y for the class y. */
#include "kernel/math.h"
#include "model/linear.h"

/* Writes exp(z_k − max z) and returns their sum; *top is max z. */
static double exponentials(const float *score, uint32_t outputs, float *e, double *top)
{
    float most = score[0];
    double sum = 0;
    for (uint32_t k = 1; k < outputs; k++)
        most = score[k] > most ? score[k] : most;
    for (uint32_t k = 0; k < outputs; k++) {
        double x = sdr_exp((double)score[k] - most);
        e[k] = (float)x;
        sum += x;
    }
    *top = most;
    return sum;
}

static double loss(const void *options, const float *score, uint32_t outputs, float target,
                   float *dloss)
{
    (void)options;
    uint32_t class_number = (uint32_t)target;
    double own = score[class_number], top; /* before dloss, which may alias score */
    double sum = exponentials(score, outputs, dloss, &top);
    float share = (float)(1.0 / sum);
    for (uint32_t k = 0; k < outputs; k++)
        dloss[k] *= share;
    dloss[class_number] -= 1.0f;
    return sdr_log(sum) + top - own;
}

static void probability(const float *score, uint32_t outputs, float *p)
{
    double top, sum = exponentials(score, outputs, p, &top);
    for (uint32_t k = 0; k < outputs; k++)
        p[k] = (float)(p[k] / sum);
}

SDR_REGISTER(model_kind, softmax) = {
    .name = "softmax",
    .summary = "several classes: multinomial logistic regression",
    .truth = SDR_CLASSES,
    .picks = true,
    .curvature = 0.5,
    .loss = loss,
    .probability = probability,
    SDR_LINEAR,
};
