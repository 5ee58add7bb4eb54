/* Least squares: loss ½(z − y)². */
#include "model/squared.h"
#include "model/linear.h"

SDR_REGISTER(model_kind, squared) = {
    .name = "squared",
    .summary = "linear regression (least squares)",
    .truth = SDR_REGRESSION,
    .curvature = 1,
    .loss = sdr_squared_loss,
    SDR_LINEAR,
};
