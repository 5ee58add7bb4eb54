/* Half the squared error, ½(z − y)², and its derivative: the loss of least squares and of
   ratings. */
#ifndef SDR_MODEL_SQUARED_H
#define SDR_MODEL_SQUARED_H

#include <stdint.h>

static inline double sdr_squared_loss(const void *options, const float *score, uint32_t outputs,
                                      float target, float *dloss)
{
    (void)options, (void)outputs;
    double residual = (double)score[0] - target;
    dloss[0] = (float)residual;
    return 0.5 * residual * residual;
}

#endif
