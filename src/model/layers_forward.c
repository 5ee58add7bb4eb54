/* Networks: from the rows of a leaf to the values of the last layer. See layers_pass.h. */
#include "base/rng.h"
#include "model/layers_pass.h"

#include <string.h>

/* ---- input ---- */
/* The unit of a feature: files may have the channels of a pixel together. */
static size_t unit_of(const struct sdr_layers *net, uint32_t feature)
{
    const struct sdr_volume *in = &net->layer[0].in;
    if (in->channels == 1 || !net->channels_last)
        return feature;
    return (size_t)(feature % in->channels) * in->rows * in->cols + feature / in->channels;
}

/* Shifted and scaled, in the order of the first layer. */
static void load_pixels(const struct sdr_view *view, const struct sdr_batch *batch,
                        struct sdr_pass *pass)
{
    const struct sdr_rows *rows = view->problem->rows;
    const float *two = view->w + view->block[pass->net.input].offset;
    float shift = two[0], scale = two[1], *to = pass->input;
    uint32_t features = rows->features;
    bool by_lanes = pass->place[0].by_lanes;
    size_t per_unit = by_lanes ? pass->lanes : 1, per_row = by_lanes ? 1 : features;
    size_t values = by_lanes ? (size_t)features * pass->lanes : (size_t)features * batch->count;
    if (!rows->dense)
        for (size_t i = 0; i < values; i++)
            to[i] = (0 - shift) * scale;
    enum { SIDE = 16 };
    for (uint32_t from = 0; from < features && rows->dense; from += SIDE)
        for (uint32_t i = 0; i < batch->count; i++) {
            const float *x = sdr_dense_row(rows, batch->row[i]);
            for (uint32_t j = from; j < features && j < from + SIDE; j++)
                to[unit_of(&pass->net, j) * per_unit + i * per_row] = (x[j] - shift) * scale;
        }
    for (uint32_t i = 0; i < batch->count && !rows->dense; i++) {
        struct sdr_sparse_row r = sdr_sparse_row(rows, batch->row[i]);
        for (uint32_t n = 0; n < r.n; n++)
            to[unit_of(&pass->net, sdr_row_index(&r, n)) * per_unit + i * per_row] =
                (r.x[n] - shift) * scale;
    }
}

/* Centered copies of dense rows. */
static void load_rows(const struct sdr_problem *problem, const struct sdr_batch *batch, float *to)
{
    uint32_t features = problem->rows->features;
    for (uint32_t i = 0; i < batch->count; i++, to += features) {
        const float *x = sdr_dense_row(problem->rows, batch->row[i]);
        if (!problem->center)
            memcpy(to, x, features * sizeof *to);
        for (uint32_t j = 0; j < features && problem->center; j++)
            to[j] = x[j] - problem->center[j];
    }
}

/* ---- forward ---- */
static void dense_forward(const struct sdr_view *view, const struct sdr_batch *batch,
                          const struct sdr_pass *pass, int l)
{
    const struct sdr_layer *layer = &pass->net.layer[l];
    const struct sdr_product_kernels *kernels = view->problem->kernels->products;
    const struct sdr_rows *rows = view->problem->rows;
    const float *weight = view->w + view->block[layer->block].offset;
    const float *bias = view->w + view->block[layer->block + 1].offset;
    uint32_t units = layer->out.channels;
    float *to = pass->place[l].value;
    for (uint32_t i = 0; i < pass->count; i++)
        memcpy(to + (size_t)i * units, bias, units * sizeof *to);
    for (uint32_t i = 0; i < pass->count && l == 0 && pass->by_example; i++) {
        struct sdr_sparse_row r = sdr_sparse_row(rows, batch->row[i]);
        if (r.index16)
            kernels->gather16(weight, r.index16, r.x, r.n, units, to + (size_t)i * units);
        else
            kernels->gather32(weight, r.index32, r.x, r.n, units, to + (size_t)i * units);
    }
    if (l == 0 && pass->by_example)
        return;
    uint32_t inputs = (uint32_t)sdr_volume_size(&layer->in);
    struct sdr_product product = {.to = to,
                                  .to_row = units,
                                  .a = sdr_pass_input(pass, l),
                                  .a_row = inputs,
                                  .a_step = 1,
                                  .b = weight,
                                  .b_step = units,
                                  .rows = pass->count,
                                  .cols = units,
                                  .inner = inputs,
                                  .add = true};
    kernels->product(&product);
}

void sdr_move_image(const struct sdr_layer *layer, uint32_t lanes, float *image, float *around,
                    bool in)
{
    struct sdr_volume large = sdr_padded(layer);
    size_t line = (size_t)layer->in.cols * lanes;
    for (size_t c = 0; c < layer->in.channels; c++)
        for (size_t y = 0; y < layer->in.rows; y++) {
            float *small = image + (c * layer->in.rows + y) * line;
            float *middle =
                around + ((c * large.rows + y + layer->pad) * large.cols + layer->pad) * lanes;
            memcpy(in ? middle : small, in ? small : middle, line * sizeof *image);
        }
}

void sdr_conv_tables(const struct sdr_pass *pass, const struct sdr_layer *layer)
{
    struct sdr_volume in = sdr_padded(layer);
    size_t p = 0, q = 0;
    for (size_t c = 0; c < in.channels; c++)
        for (size_t v = 0; v < layer->size; v++)
            for (size_t u = 0; u < layer->size; u++, p++) {
                pass->tap[p] = ((c * in.rows + v) * in.cols + u) * pass->lanes;
                pass->column[p] = p * layer->out.channels;
            }
    for (size_t y = 0; y < layer->out.rows; y++)
        for (size_t x = 0; x < layer->out.cols; x++, q++) {
            pass->pixel[q] = (y * in.cols + x) * layer->stride * pass->lanes;
            pass->nowhere[q] = 0;
        }
}

/* For every pixel of the result, all kernels on all rows: kernels × rows = weightsᵀ · (taps ×
   rows). */
static void conv_forward(const struct sdr_view *view, const struct sdr_pass *pass, int l)
{
    const struct sdr_layer *layer = &pass->net.layer[l];
    const struct sdr_place *place = &pass->place[l];
    const float *bias = view->w + view->block[layer->block + 1].offset;
    const float *in = sdr_pass_input(pass, l);
    size_t pixels = (size_t)layer->out.rows * layer->out.cols, lanes = pass->lanes;
    sdr_conv_tables(pass, layer);
    if (layer->pad) {
        struct sdr_volume around = sdr_padded(layer);
        memset(place->padded, 0, sdr_pass_values(pass, &around, true) * sizeof(float));
        sdr_move_image(layer, pass->lanes, (float *)(uintptr_t)in, place->padded, true);
        in = place->padded;
    }
    for (size_t q = 0; q < pixels; q++) {
        for (size_t k = 0; k < layer->out.channels; k++)
            for (size_t i = 0; i < lanes; i++)
                pass->scratch[k * lanes + i] = bias[k];
        struct sdr_product product = {.to = pass->scratch,
                                      .to_row = lanes,
                                      .a = view->w + view->block[layer->block].offset,
                                      .a_row = 1,
                                      .a_at = pass->column,
                                      .b = in + pass->pixel[q],
                                      .b_at = pass->tap,
                                      .rows = layer->out.channels,
                                      .cols = pass->lanes,
                                      .inner = sdr_taps(layer),
                                      .add = true};
        view->problem->kernels->products->product(&product);
        for (size_t k = 0; k < layer->out.channels; k++)
            memcpy(place->value + (k * pixels + q) * lanes, pass->scratch + k * lanes,
                   lanes * sizeof(float));
    }
}

/* Masks are drawn by the batch's number, the row's place in the epoch, the layer and the unit: the
   same for any number of workers. */
static void draw_mask(const struct sdr_view *view, const struct sdr_batch *batch,
                      const struct sdr_pass *pass, int l)
{
    const struct sdr_layer *layer = &pass->net.layer[l];
    const struct sdr_place *place = &pass->place[l];
    size_t units = sdr_volume_size(&layer->in);
    size_t per_unit = place->by_lanes ? pass->lanes : 1, per_row = place->by_lanes ? 1 : units;
    float kept = 1 / (1 - layer->drop);
    uint32_t limit = (uint32_t)(layer->drop * 65536);
    enum { DRAWS = 8 };
    for (uint32_t i = 0; i < pass->lanes && (place->by_lanes || i < pass->count); i++)
        for (size_t u = 0; u < units; u += DRAWS) {
            struct sdr_random4 random =
                sdr_philox(view->problem->seed, SDR_FOR_DROPOUT + 256u * (uint32_t)l,
                           batch->number << 32 ^ (batch->at + i), (uint32_t)(u / DRAWS));
            for (size_t d = 0; d < DRAWS && u + d < units; d++) {
                uint32_t draw = random.word[d / 2] >> (d % 2 * 16) & 0xFFFF;
                place->mask[(u + d) * per_unit + i * per_row] = draw < limit ? 0 : kept;
            }
        }
}

void sdr_multiply(float *x, const float *mask, size_t count)
{
    for (size_t i = 0; i < count; i++)
        x[i] *= mask[i];
}

static void elementwise_forward(const struct sdr_view *view, const struct sdr_batch *batch,
                                const struct sdr_pass *pass, int l, bool training)
{
    const struct sdr_layer *layer = &pass->net.layer[l];
    const struct sdr_place *place = &pass->place[l];
    size_t values = sdr_pass_values(pass, &layer->out, place->by_lanes);
    if (!place->in_place)
        memcpy(place->value, sdr_pass_input(pass, l), values * sizeof(float));
    if (layer->type == SDR_LAYER_ACTIVATION) {
        view->problem->kernels->products->activate(layer->f, place->value, values);
    } else if (training) {
        draw_mask(view, batch, pass, l);
        sdr_multiply(place->value, place->mask, values);
    }
}

/* A copy in the order that the next layer wants. */
static void turn(const struct sdr_view *view, const struct sdr_pass *pass, int l)
{
    const struct sdr_place *place = &pass->place[l];
    uint32_t units = (uint32_t)sdr_volume_size(&pass->net.layer[l].out);
    const struct sdr_product_kernels *kernels = view->problem->kernels->products;
    if (!place->turned)
        return;
    if (place->by_lanes)
        kernels->transpose(place->value, pass->lanes, units, pass->count, place->turned, units);
    else
        kernels->transpose(place->value, units, pass->count, units, place->turned, pass->lanes);
}

void sdr_pass_forward(const struct sdr_view *view, const struct sdr_batch *batch,
                      struct sdr_pass *pass, bool training)
{
    if (pass->net.input >= 0)
        load_pixels(view, batch, pass);
    else if (!pass->by_example)
        load_rows(view->problem, batch, pass->input);
    for (int l = 0; l < pass->net.count; l++) {
        const struct sdr_layer *layer = &pass->net.layer[l];
        struct sdr_pooling window = sdr_pooling_of(pass, layer);
        switch (layer->type) {
        case SDR_LAYER_DENSE: dense_forward(view, batch, pass, l); break;
        case SDR_LAYER_CONV: conv_forward(view, pass, l); break;
        case SDR_LAYER_POOL:
            view->problem->kernels->products->pool(&window, sdr_pass_input(pass, l),
                                                   pass->place[l].value);
            break;
        default: elementwise_forward(view, batch, pass, l, training);
        }
        turn(view, pass, l);
    }
}
