/* Networks of dense layers (multi-layer perceptrons). */
#include "model/layers.h"

#define HIDDEN(units)                                                                              \
    {                                                                                              \
        "hidden", SDR_TEXT, units, "UNITS", 0, 0, "units of the hidden layers, '-' between them",  \
            offsetof(struct sdr_layer_options, hidden), 0                                          \
    }
#define ACTIVATION(f)                                                                              \
    {                                                                                              \
        "activation", SDR_TEXT, f, "NAMES", 0, 0,                                                  \
            "relu, tanh or sigmoid; one for all hidden layers, or one each with '-' between them", \
            offsetof(struct sdr_layer_options, activation), 0                                      \
    }

static const struct sdr_option usual[] = {HIDDEN("300-100"), ACTIVATION("relu"), {0}};
static const struct sdr_option one[] = {HIDDEN("100"), ACTIVATION("sigmoid"), {0}};
static const struct sdr_option three[] = {
    HIDDEN("300-100-50"), ACTIVATION("sigmoid-relu-sigmoid"), {0}};

SDR_REGISTER(model_kind, mlp_regression) = {
    .name = "mlp-regression",
    .summary = "a network of dense layers for numbers, squared loss",
    .options = usual,
    .needs = SDR_NEEDS_LABELS,
    SDR_LAYERS_REGRESSION,
};

SDR_REGISTER(model_kind, mlp) = {
    .name = "mlp",
    .summary = "a network of dense layers (multi-layer perceptron)",
    .options = usual,
    .needs = SDR_NEEDS_LABELS,
    .regression = &sdr_model_kind_mlp_regression,
    SDR_LAYERS_CLASSES,
};

SDR_REGISTER(model_kind, mlp_100) = {
    .name = "mlp-100",
    .summary = "mlp with one hidden layer of 100 sigmoid units",
    .options = one,
    .needs = SDR_NEEDS_LABELS,
    SDR_LAYERS_CLASSES,
};

SDR_REGISTER(model_kind, mlp_300_100_50) = {
    .name = "mlp-300-100-50",
    .summary = "mlp with three hidden layers: sigmoid, relu, sigmoid",
    .options = three,
    .needs = SDR_NEEDS_LABELS,
    SDR_LAYERS_CLASSES,
};
