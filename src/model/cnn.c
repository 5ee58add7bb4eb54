/* Convolutional networks. */
#include "model/layers.h"

#define LENET "conv20x5-pool2-conv50x5-pool2-dense500-relu"
#define OPTIONS(text)                                                                              \
    {"layers",                                                                                     \
     SDR_TEXT,                                                                                     \
     text,                                                                                         \
     "LAYERS",                                                                                     \
     0,                                                                                            \
     0,                                                                                            \
     "convNxK, poolK, denseN, relu, tanh, sigmoid, dropoutP, with '-' between them; the last "     \
     "layer, one unit per class, comes by itself",                                                 \
     offsetof(struct sdr_layer_options, layers),                                                   \
     0},                                                                                           \
    {                                                                                              \
        "image", SDR_TEXT, NULL, "RxC", 0, 0,                                                      \
            "rows and columns of an image, also RxCxCHANNELS; not given: as in the file",          \
            offsetof(struct sdr_layer_options, image), 0                                           \
    }

static const struct sdr_option usual[] = {
    OPTIONS("conv16x3p1-relu-pool2-conv32x3p1-relu-pool2-dense128-relu"), {0}};
static const struct sdr_option lenet[] = {OPTIONS(LENET), {0}};

SDR_REGISTER(model_kind, cnn_regression) = {
    .name = "cnn-regression",
    .summary = "a convolutional network for numbers, squared loss",
    .options = usual,
    .needs = SDR_NEEDS_LABELS | SDR_NEEDS_NUMBERS,
    SDR_LAYERS_REGRESSION,
};

SDR_REGISTER(model_kind, cnn) = {
    .name = "cnn",
    .summary = "a convolutional network for images",
    .options = usual,
    .needs = SDR_NEEDS_LABELS | SDR_NEEDS_NUMBERS,
    .regression = &sdr_model_kind_cnn_regression,
    SDR_LAYERS_CLASSES,
};

SDR_REGISTER(model_kind, lenet) = {
    .name = "lenet",
    .summary = "a convolutional network: two convolutions, two dense layers",
    .options = lenet,
    .needs = SDR_NEEDS_LABELS | SDR_NEEDS_NUMBERS,
    SDR_LAYERS_CLASSES,
};
