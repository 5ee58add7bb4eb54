/* Networks: from the gradient of the scores back to the first layer. See layers_pass.h. */
#include "model/layers_pass.h"

#include <string.h>

/* Where layer l puts the gradient of its input. */
static float *delta_of_input(const struct sdr_pass *pass, int l)
{
    const struct sdr_place *before = &pass->place[l - 1];
    return before->turned_delta ? before->turned_delta : before->delta;
}

/* inputs × rows = weights · (units × rows): transposes the gradient, which is smaller than the
   weights. */
static void dense_backward(const struct sdr_view *view, const struct sdr_pass *pass, int l)
{
    const struct sdr_layer *layer = &pass->net.layer[l];
    const struct sdr_place *before = &pass->place[l - 1];
    const struct sdr_product_kernels *kernels = view->problem->kernels->products;
    uint32_t inputs = (uint32_t)sdr_volume_size(&layer->in), units = layer->out.channels;
    float *by_units = pass->scratch, *by_inputs = by_units + (size_t)units * pass->lanes;
    kernels->transpose(pass->place[l].delta, units, pass->count, units, by_units, pass->lanes);
    if (before->by_lanes && pass->count < pass->lanes) /* lanes without a row get zeros */
        memset(before->delta, 0, (size_t)inputs * pass->lanes * sizeof(float));
    struct sdr_product product = {.to = before->by_lanes ? before->delta : by_inputs,
                                  .to_row = pass->lanes,
                                  .a = view->w + view->block[layer->block].offset,
                                  .a_row = units,
                                  .a_step = 1,
                                  .b = by_units,
                                  .b_step = pass->lanes,
                                  .rows = inputs,
                                  .cols = pass->count,
                                  .inner = units};
    kernels->product(&product);
    if (!before->by_lanes)
        kernels->transpose(by_inputs, pass->lanes, inputs, pass->count, before->delta, inputs);
}

/* Every pixel of the result gives its gradient back to the pixels its kernels read. The gradients
   of a pixel are copied first: they lie whole images apart, often at the same place of the
   cache. */
static void conv_backward(const struct sdr_view *view, const struct sdr_pass *pass, int l)
{
    const struct sdr_layer *layer = &pass->net.layer[l];
    const struct sdr_place *place = &pass->place[l];
    struct sdr_volume around = sdr_padded(layer);
    size_t pixels = (size_t)layer->out.rows * layer->out.cols, lanes = pass->lanes;
    float *to = layer->pad ? place->padded_delta : delta_of_input(pass, l);
    memset(to, 0, sdr_pass_values(pass, &around, true) * sizeof *to);
    sdr_conv_tables(pass, layer);
    for (size_t q = 0; q < pixels; q++) {
        for (size_t k = 0; k < layer->out.channels; k++)
            memcpy(pass->scratch + k * lanes, place->delta + (k * pixels + q) * lanes,
                   lanes * sizeof(float));
        struct sdr_product product = {.to = to + pass->pixel[q],
                                      .to_at = pass->tap,
                                      .a = view->w + view->block[layer->block].offset,
                                      .a_row = layer->out.channels,
                                      .a_step = 1,
                                      .b = pass->scratch,
                                      .b_step = lanes,
                                      .rows = sdr_taps(layer),
                                      .cols = pass->lanes,
                                      .inner = layer->out.channels,
                                      .add = true};
        view->problem->kernels->products->product(&product);
    }
    if (layer->pad)
        sdr_move_image(layer, pass->lanes, delta_of_input(pass, l), to, false);
}

/* The gradient of the input of layer l, given that of its values. */
static void go_back(const struct sdr_view *view, const struct sdr_pass *pass, int l)
{
    const struct sdr_layer *layer = &pass->net.layer[l];
    const struct sdr_place *place = &pass->place[l];
    struct sdr_pooling window = sdr_pooling_of(pass, layer);
    size_t values = sdr_pass_values(pass, &layer->out, place->by_lanes);
    float *to = delta_of_input(pass, l);
    switch (layer->type) {
    case SDR_LAYER_DENSE: dense_backward(view, pass, l); break;
    case SDR_LAYER_CONV: conv_backward(view, pass, l); break;
    case SDR_LAYER_POOL:
        if (!sdr_pool_tiles(layer))
            memset(to, 0, sdr_pass_values(pass, &layer->in, true) * sizeof *to);
        view->problem->kernels->products->unpool(&window, sdr_pass_input(pass, l), place->value,
                                                 place->delta, to);
        break;
    default:
        if (layer->type == SDR_LAYER_ACTIVATION)
            view->problem->kernels->products->slope(layer->f, place->value, place->delta, values);
        else
            sdr_multiply(place->delta, place->mask, values);
        if (!place->in_place)
            memcpy(to, place->delta, values * sizeof *to);
    }
}

/* From the order of layer l to that of the layer before; dense layers have done it. */
static void turn_back(const struct sdr_view *view, const struct sdr_pass *pass, int l)
{
    const struct sdr_place *before = &pass->place[l - 1];
    uint32_t units = (uint32_t)sdr_volume_size(&pass->net.layer[l].in);
    if (before->turned_delta)
        view->problem->kernels->products->transpose(before->turned_delta, pass->lanes, units,
                                                    pass->count, before->delta, units);
}

static void dense_parts(const struct sdr_batch *batch, const struct sdr_pass *pass, int l,
                        struct sdr_update *update)
{
    const struct sdr_layer *layer = &pass->net.layer[l];
    update->part[update->parts++] = (struct sdr_part){.block = layer->block,
                                                      .form = SDR_FACTORS,
                                                      .right = l == 0 ? SDR_EXAMPLES : SDR_STORED,
                                                      .count = batch->count,
                                                      .value = pass->place[l].delta,
                                                      .v = l == 0 ? NULL : sdr_pass_input(pass, l)};
    update->part[update->parts++] = (struct sdr_part){.block = layer->block + 1,
                                                      .form = SDR_FACTORS,
                                                      .right = SDR_ONES,
                                                      .count = batch->count,
                                                      .value = pass->place[l].delta};
}

static void conv_parts(const struct sdr_view *view, const struct sdr_pass *pass, int l,
                       struct sdr_update *update)
{
    const struct sdr_layer *layer = &pass->net.layer[l];
    const struct sdr_place *place = &pass->place[l];
    uint32_t pixels = layer->out.rows * layer->out.cols, kernels = layer->out.channels;
    sdr_conv_tables(pass, layer);
    for (uint32_t i = 0; i < pass->lanes; i++)
        pass->one[i] = 1;
    struct sdr_cross weights = {.to = place->weight_sum,
                                .to_row = kernels,
                                .a = layer->pad ? place->padded : sdr_pass_input(pass, l),
                                .a_at = pass->tap,
                                .q_at = pass->pixel,
                                .b = place->delta,
                                .b_row = (size_t)pixels * pass->lanes,
                                .rows = sdr_taps(layer),
                                .cols = kernels,
                                .inner = pixels,
                                .lanes = pass->lanes};
    struct sdr_cross biases = weights;
    biases.to = place->bias_sum;
    biases.a = pass->one;
    biases.a_at = biases.q_at = pass->nowhere;
    biases.rows = 1;
    view->problem->kernels->products->cross(&weights);
    view->problem->kernels->products->cross(&biases);
    update->part[update->parts++] = (struct sdr_part){.block = layer->block,
                                                      .form = SDR_DENSE,
                                                      .count = weights.rows * kernels,
                                                      .value = place->weight_sum};
    update->part[update->parts++] = (struct sdr_part){
        .block = layer->block + 1, .form = SDR_DENSE, .count = kernels, .value = place->bias_sum};
}

void sdr_pass_backward(const struct sdr_view *view, const struct sdr_pass *pass, int l)
{
    go_back(view, pass, l);
    turn_back(view, pass, l);
}

void sdr_pass_parts(const struct sdr_view *view, const struct sdr_batch *batch,
                    const struct sdr_pass *pass, int l, struct sdr_update *update)
{
    if (pass->net.layer[l].type == SDR_LAYER_DENSE)
        dense_parts(batch, pass, l, update);
    else
        conv_parts(view, pass, l, update);
}
