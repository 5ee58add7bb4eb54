/* Networks: layers from the input to the scores, shared by all models that are one. A model file
   adds its options and its loss.

   A network is described by a short text, layers with '-' between them; the last layer, which gives
   the scores, is not written:
       conv20x5      20 kernels of 5 × 5; conv20x5s2p1: stride 2, one pixel of zeros around the image
       pool2         the largest of every 2 × 2 pixels; pool3s2: windows of 3 × 3, stride 2
       dense500      500 units
       relu, tanh, sigmoid
       dropout0.5    in training a unit is 0 with this probability, the others grow by 1/(1 − p)

   Blocks: `input` (shift and scale of pixels, fixed) if the first layer is not dense; per layer
   with parameters NAME.weight (inputs × units) and NAME.bias; `output` (mean and size of the
   labels, fixed) in regression. A dense first layer is per feature: rows may be sparse, features
   have scales and centers like those of a linear model. */
#ifndef SDR_MODEL_LAYERS_H
#define SDR_MODEL_LAYERS_H

#include "kernel/linear.h"
#include "kind/model.h"

enum sdr_layer_type {
    SDR_LAYER_DENSE,
    SDR_LAYER_CONV,
    SDR_LAYER_POOL,
    SDR_LAYER_ACTIVATION,
    SDR_LAYER_DROPOUT
};
struct sdr_volume {
    uint32_t channels, rows, cols;
};
static inline size_t sdr_volume_size(const struct sdr_volume *v)
{
    return (size_t)v->channels * v->rows * v->cols;
}
struct sdr_layer {
    enum sdr_layer_type type;
    enum sdr_activation f;
    struct sdr_volume in, out; /* dense: units × 1 × 1 */
    uint32_t size, stride, pad;
    float drop;
    int block;  /* its weight; the bias is the next one; −1: no parameters */
    int number; /* among the layers of its type with parameters, from 1 */
};
enum { SDR_LAYERS_MOST = 64 };
struct sdr_layers {
    struct sdr_layer layer[SDR_LAYERS_MOST];
    int count, trained; /* layers; those with parameters */
    int input, output;  /* blocks; −1: none */
    /* pixels of a file: rows × columns × channels, not channels × rows × columns */
    bool channels_last;
};

/* The options of all networks; a model's table has some of them. */
struct sdr_layer_options {
    char *layers;              /* the text above; NULL: by the next two */
    char *hidden, *activation; /* units of dense layers, their activations; '-' between them */
    char *image;               /* rows x columns, or x channels; NULL or "": as in the file */
};

/* Turns the options into layers, or fails with a sentence. */
enum sdr_status sdr_layers_describe(const struct sdr_problem *problem, struct sdr_layers *layers);

int sdr_layers_shape(const struct sdr_problem *problem, struct sdr_block *block);
enum sdr_status sdr_layers_check(const struct sdr_problem *problem, const char *name);
enum sdr_status sdr_layers_start(const struct sdr_problem *problem, const struct sdr_block *block,
                                 const struct sdr_batch *rows, double size, struct sdr_span span,
                                 float *w);
void sdr_layers_uncenter(const struct sdr_block *block, const float *center, float *w);
/* layers_pass.c */
int sdr_layers_stages(const struct sdr_problem *problem);
size_t sdr_layers_workspace(const struct sdr_problem *problem, uint32_t rows);
enum sdr_status sdr_layers_score(const struct sdr_view *view, const struct sdr_batch *batch,
                                 void *workspace, float *score);
enum sdr_status sdr_layers_gradient(const struct sdr_model_kind *kind, const struct sdr_view *view,
                                    const struct sdr_batch *batch, int stage, void *workspace,
                                    struct sdr_update *update);

extern const struct sdr_model_kind sdr_model_kind_softmax, sdr_model_kind_squared;
double sdr_layers_loss(const void *options, const float *score, uint32_t outputs, float target,
                       float *dloss);
double sdr_layers_squared(const void *options, const float *score, uint32_t outputs, float target,
                          float *dloss);
void sdr_layers_probability(const float *score, uint32_t outputs, float *p);

#define SDR_LAYERS                                                                                 \
    .options_size = sizeof(struct sdr_layer_options), .reads = SDR_READS_TOUCHED, .layered = true, \
    .no_intercept = true, .check = sdr_layers_check, .shape = sdr_layers_shape,                    \
    .start = sdr_layers_start, .stages = sdr_layers_stages, .workspace = sdr_layers_workspace,     \
    .score = sdr_layers_score, .gradient = sdr_layers_gradient, .uncenter = sdr_layers_uncenter,   \
    .defaults = {.batch = 128, .optimizer = "adam", .sync = "bsp"}
#define SDR_LAYERS_CLASSES                                                                         \
    SDR_LAYERS, .truth = SDR_CLASSES, .picks = true, .curvature = 0.5, .loss = sdr_layers_loss,    \
                .probability = sdr_layers_probability
#define SDR_LAYERS_REGRESSION                                                                      \
    SDR_LAYERS, .truth = SDR_REGRESSION, .curvature = 1, .loss = sdr_layers_squared

#endif
