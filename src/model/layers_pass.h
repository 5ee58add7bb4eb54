/* One pass of a network over the rows of a leaf, forward and backward: shared by layers_pass.c
   (memory, stages), layers_forward.c and layers_backward.c.

   Values of units lie in one of two orders: by rows, value[row·units + unit], for dense layers; by
   lanes, value[unit·lanes + row], for images, where every pixel is a vector over the rows. Lanes
   are the rows rounded up to 16; the gradients of those too many are zero. */
#ifndef SDR_MODEL_LAYERS_PASS_H
#define SDR_MODEL_LAYERS_PASS_H

#include "model/layers.h"

/* In the workspace, which is zero at first: what the pass is made of, then its arrays. */
struct sdr_pass {
    bool made;
    bool by_example; /* the first layer is dense, and reads sparse rows as they are */
    struct sdr_layers net;
    uint32_t count, lanes; /* rows of the batch */
    int at;                /* the layer whose parts are made */
    float *input;          /* as the first layer wants it; NULL: the examples themselves */
    struct sdr_place {
        bool by_lanes, in_place;
        float *value, *delta; /* what comes out, and its gradient */
        /* the same, in the order of the next layer; dense ones need no gradient */
        float *turned, *turned_delta;
        float *mask;                  /* dropout */
        float *padded, *padded_delta; /* convolution: its input with zeros around */
        float *weight_sum, *bias_sum; /* convolution: gradients */
    } place[SDR_LAYERS_MOST];
    float *scratch;                         /* of a layer */
    float *one;                             /* ones, as many as lanes */
    size_t *tap, *column, *pixel, *nowhere; /* convolution: offsets */
};

static inline size_t sdr_pass_values(const struct sdr_pass *pass, const struct sdr_volume *volume,
                                     bool by_lanes)
{
    return sdr_volume_size(volume) * (by_lanes ? pass->lanes : pass->count);
}

/* What layer l reads. */
static inline const float *sdr_pass_input(const struct sdr_pass *pass, int l)
{
    if (l == 0)
        return pass->input;
    const struct sdr_place *before = &pass->place[l - 1];
    return before->turned ? before->turned : before->value;
}

/* The input of a convolution, with its border. */
static inline struct sdr_volume sdr_padded(const struct sdr_layer *layer)
{
    return (struct sdr_volume){layer->in.channels, layer->in.rows + 2 * layer->pad,
                               layer->in.cols + 2 * layer->pad};
}

static inline uint32_t sdr_taps(const struct sdr_layer *layer)
{
    return layer->in.channels * layer->size * layer->size;
}

/* Whether windows neither overlap nor leave anything out. */
static inline bool sdr_pool_tiles(const struct sdr_layer *layer)
{
    return layer->stride == layer->size && layer->in.rows % layer->size == 0 &&
           layer->in.cols % layer->size == 0;
}

static inline struct sdr_pooling sdr_pooling_of(const struct sdr_pass *pass,
                                                const struct sdr_layer *layer)
{
    return (struct sdr_pooling){layer->in.channels, layer->in.rows, layer->in.cols, layer->out.rows,
                                layer->out.cols,    layer->size,    layer->stride,  pass->lanes};
}

/* Copies the image in, or out of, the middle of a padded one. */
void sdr_move_image(const struct sdr_layer *layer, uint32_t lanes, float *image, float *around,
                    bool in);
/* Offsets of a convolution: of what a kernel reads around its first pixel, of that pixel, of rows
   of the weights. */
void sdr_conv_tables(const struct sdr_pass *pass, const struct sdr_layer *layer);
void sdr_multiply(float *x, const float *mask, size_t count); /* x ← x·mask */

/* Values of all layers, those of the last one by rows; `training`: with dropout. */
void sdr_pass_forward(const struct sdr_view *view, const struct sdr_batch *batch,
                      struct sdr_pass *pass, bool training);
/* The gradient of the values of layer l − 1, given that of layer l. */
void sdr_pass_backward(const struct sdr_view *view, const struct sdr_pass *pass, int l);
/* Adds the parts of layer l, given the gradient of its values. */
void sdr_pass_parts(const struct sdr_view *view, const struct sdr_batch *batch,
                    const struct sdr_pass *pass, int l, struct sdr_update *update);

#endif
