/* Networks: scores, and gradients layer by layer. See layers.h.

   A pass goes over the rows of a leaf together. Values of units lie in one of two orders: by rows, value[row·units + unit],
   for dense layers; by lanes, value[unit·lanes + row], for images, where every pixel is a vector over the rows. Lanes are the
   rows rounded up to 16; the gradients of those too many are zero. */
#include "base/rng.h"
#include "model/layers.h"

#include <stdint.h>
#include <string.h>

/* In the workspace, which is zero at first: what the pass is made of, then its arrays. */
struct pass {
    bool made;
    bool by_example; /* the first layer is dense, and reads sparse rows as they are */
    struct sdr_layers net;
    uint32_t count, lanes; /* rows of the batch */
    int at;                /* the layer whose parts are made */
    float *input;          /* as the first layer wants it; NULL: the examples themselves */
    struct place {
        bool by_lanes, in_place;
        float *value, *delta;               /* what comes out, and its gradient */
        float *turned, *turned_delta;       /* the same, in the order of the next layer */
        float *mask;                        /* dropout */
        float *padded, *padded_delta;       /* convolution: its input with zeros around */
        float *weight_sum, *bias_sum;       /* convolution: gradients */
    } place[SDR_LAYERS_MOST];
    float *back; /* weights of a dense layer, transposed */
    float *one;  /* ones, as many as lanes */
    size_t *tap, *column, *pixel, *nowhere; /* convolution: offsets */
};

/* ---- memory ---- */
struct heap {
    unsigned char *base; /* NULL: sizes alone */
    size_t used;
};

static void *take(struct heap *heap, size_t count, size_t size)
{
    enum { LINE = 64 };
    void *memory = heap->base ? heap->base + heap->used : NULL;
    heap->used += (count * size + LINE - 1) / LINE * LINE;
    return memory;
}

static float *take_floats(struct heap *heap, size_t count)
{
    return take(heap, count, sizeof(float));
}

static bool is_elementwise(const struct sdr_layer *layer)
{
    return layer->type == SDR_LAYER_ACTIVATION || layer->type == SDR_LAYER_DROPOUT;
}

/* Layers that go on from the layer before keep its order; the first takes that of its images. */
static bool goes_by_lanes(const struct pass *pass, int l)
{
    const struct sdr_layer *layer = &pass->net.layer[l];
    if (!is_elementwise(layer))
        return layer->type != SDR_LAYER_DENSE;
    if (l > 0)
        return pass->place[l - 1].by_lanes;
    for (; l < pass->net.count; l++)
        if (!is_elementwise(&pass->net.layer[l]))
            return pass->net.layer[l].type != SDR_LAYER_DENSE;
    return false;
}

/* A layer may overwrite the values of the one before if that does not need them for its gradient. */
static bool is_in_place(const struct pass *pass, int l)
{
    enum sdr_layer_type before = l > 0 ? pass->net.layer[l - 1].type : SDR_LAYER_POOL;
    return is_elementwise(&pass->net.layer[l]) && before != SDR_LAYER_POOL && before != SDR_LAYER_ACTIVATION;
}

static size_t values_of(const struct pass *pass, const struct sdr_volume *volume, bool by_lanes)
{
    return sdr_volume_size(volume) * (by_lanes ? pass->lanes : pass->count);
}

static struct sdr_volume padded(const struct sdr_layer *layer)
{
    return (struct sdr_volume){layer->in.channels, layer->in.rows + 2 * layer->pad, layer->in.cols + 2 * layer->pad};
}

static void place_conv(const struct pass *pass, const struct sdr_layer *layer, struct place *place, struct heap *heap)
{
    size_t weights = (size_t)layer->in.channels * layer->size * layer->size * layer->out.channels;
    struct sdr_volume around = padded(layer);
    place->weight_sum = take_floats(heap, weights);
    place->bias_sum = take_floats(heap, layer->out.channels);
    if (layer->pad) {
        place->padded = take_floats(heap, values_of(pass, &around, true));
        place->padded_delta = take_floats(heap, values_of(pass, &around, true));
    }
}

/* Lays the arrays out for this many rows. */
static void lay_out(struct pass *pass, uint32_t rows, struct heap *heap)
{
    size_t back = 0, taps = 0, pixels = 0;
    pass->count = rows;
    pass->lanes = (rows + 15) / 16 * 16;
    for (int l = 0; l < pass->net.count; l++) {
        const struct sdr_layer *layer = &pass->net.layer[l];
        struct place *place = &pass->place[l];
        *place = (struct place){.by_lanes = goes_by_lanes(pass, l), .in_place = is_in_place(pass, l)};
        if (l == 0 && !pass->by_example)
            pass->input = take_floats(heap, values_of(pass, &layer->in, place->by_lanes));
        size_t values = values_of(pass, &layer->out, place->by_lanes);
        place->value = place->in_place ? place[-1].value : take_floats(heap, values);
        place->delta = place->in_place ? place[-1].delta : take_floats(heap, values);
        if (l > 0 && place->by_lanes != place[-1].by_lanes) {
            place[-1].turned = take_floats(heap, values_of(pass, &layer->in, place->by_lanes));
            place[-1].turned_delta = take_floats(heap, values_of(pass, &layer->in, place->by_lanes));
        }
        if (layer->type == SDR_LAYER_DROPOUT)
            place->mask = take_floats(heap, values);
        if (layer->type == SDR_LAYER_DENSE && l > 0 && sdr_volume_size(&layer->in) * layer->out.channels > back)
            back = sdr_volume_size(&layer->in) * layer->out.channels;
        if (layer->type == SDR_LAYER_CONV) {
            size_t inputs = (size_t)layer->in.channels * layer->size * layer->size;
            size_t outputs = (size_t)layer->out.rows * layer->out.cols;
            place_conv(pass, layer, place, heap);
            taps = inputs > taps ? inputs : taps;
            pixels = outputs > pixels ? outputs : pixels;
        }
    }
    pass->back = take_floats(heap, back);
    pass->one = take_floats(heap, pass->lanes);
    pass->tap = take(heap, taps, sizeof(size_t));
    pass->column = take(heap, taps, sizeof(size_t));
    pass->pixel = take(heap, pixels, sizeof(size_t));
    pass->nowhere = take(heap, pixels, sizeof(size_t));
}

static enum sdr_status describe(const struct sdr_problem *problem, struct pass *pass)
{
    SDR_TRY(sdr_layers_describe(problem, &pass->net));
    pass->by_example = pass->net.input < 0 && !problem->rows->dense;
    return SDR_OK;
}

int sdr_layers_stages(const struct sdr_problem *problem)
{
    struct sdr_layers layers;
    return sdr_layers_describe(problem, &layers) == SDR_OK ? layers.trained : 1;
}

size_t sdr_layers_workspace(const struct sdr_problem *problem, uint32_t rows)
{
    struct pass pass = {0};
    struct heap heap = {.used = sizeof pass};
    if (describe(problem, &pass) == SDR_OK)
        lay_out(&pass, rows, &heap);
    return heap.used + 64;
}

static enum sdr_status begin(const struct sdr_problem *problem, const struct sdr_batch *batch,
                             void *workspace, struct pass **pass)
{
    struct heap heap = {workspace, 0};
    *pass = take(&heap, sizeof **pass, 1);
    if (!(*pass)->made)
        SDR_TRY(describe(problem, *pass));
    (*pass)->made = true;
    if ((*pass)->count != batch->count)
        lay_out(*pass, batch->count, &heap);
    return SDR_OK;
}

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
static void load_pixels(const struct sdr_view *view, const struct sdr_batch *batch, struct pass *pass)
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
            to[unit_of(&pass->net, sdr_row_index(&r, n)) * per_unit + i * per_row] = (r.x[n] - shift) * scale;
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

/* What layer l reads. */
static const float *input_of(const struct pass *pass, int l)
{
    const struct place *before = &pass->place[l - 1];
    return l == 0 ? pass->input : before->turned ? before->turned : before->value;
}

/* ---- forward ---- */
static void dense_forward(const struct sdr_view *view, const struct sdr_batch *batch,
                          const struct pass *pass, int l)
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
                                  .a = input_of(pass, l),
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

/* Copies the image in, or out of, the middle of a padded one. */
static void move_image(const struct sdr_layer *layer, uint32_t lanes, float *image, float *around, bool in)
{
    struct sdr_volume large = padded(layer);
    size_t line = (size_t)layer->in.cols * lanes;
    for (size_t c = 0; c < layer->in.channels; c++)
        for (size_t y = 0; y < layer->in.rows; y++) {
            float *small = image + (c * layer->in.rows + y) * line;
            float *middle = around + ((c * large.rows + y + layer->pad) * large.cols + layer->pad) * lanes;
            memcpy(in ? middle : small, in ? small : middle, line * sizeof *image);
        }
}

/* Offsets of a convolution: of what a kernel reads around its first pixel, of that pixel, of rows of the weights. */
static void make_tables(const struct pass *pass, const struct sdr_layer *layer)
{
    struct sdr_volume in = padded(layer);
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

static uint32_t taps_of(const struct sdr_layer *layer)
{
    return layer->in.channels * layer->size * layer->size;
}

/* For every pixel of the result, all kernels on all rows: kernels × rows = weightsᵀ · (taps × rows). */
static void conv_forward(const struct sdr_view *view, const struct pass *pass, int l)
{
    const struct sdr_layer *layer = &pass->net.layer[l];
    const struct place *place = &pass->place[l];
    const float *bias = view->w + view->block[layer->block + 1].offset;
    const float *in = input_of(pass, l);
    size_t pixels = (size_t)layer->out.rows * layer->out.cols, lanes = pass->lanes;
    make_tables(pass, layer);
    if (layer->pad) {
        struct sdr_volume around = padded(layer);
        memset(place->padded, 0, values_of(pass, &around, true) * sizeof(float));
        move_image(layer, pass->lanes, (float *)(uintptr_t)in, place->padded, true);
        in = place->padded;
    }
    for (size_t k = 0; k < layer->out.channels; k++)
        for (size_t i = 0; i < pixels * lanes; i++)
            place->value[k * pixels * lanes + i] = bias[k];
    for (size_t q = 0; q < pixels; q++) {
        struct sdr_product product = {.to = place->value + q * lanes,
                                      .to_row = pixels * lanes,
                                      .a = view->w + view->block[layer->block].offset,
                                      .a_row = 1,
                                      .a_at = pass->column,
                                      .b = in + pass->pixel[q],
                                      .b_at = pass->tap,
                                      .rows = layer->out.channels,
                                      .cols = pass->lanes,
                                      .inner = taps_of(layer),
                                      .add = true};
        view->problem->kernels->products->product(&product);
    }
}

static struct sdr_pooling window_of(const struct pass *pass, const struct sdr_layer *layer)
{
    return (struct sdr_pooling){layer->in.channels, layer->in.rows, layer->in.cols, layer->out.rows,
                               layer->out.cols,    layer->size,    layer->stride,  pass->lanes};
}

/* Masks are drawn by the batch's number, the row's place in the epoch, the layer and the unit: the same for any number of
   workers. */
static void draw_mask(const struct sdr_view *view, const struct sdr_batch *batch,
                      const struct pass *pass, int l)
{
    const struct sdr_layer *layer = &pass->net.layer[l];
    const struct place *place = &pass->place[l];
    size_t units = sdr_volume_size(&layer->in);
    size_t per_unit = place->by_lanes ? pass->lanes : 1, per_row = place->by_lanes ? 1 : units;
    float kept = 1 / (1 - layer->drop);
    uint32_t limit = (uint32_t)(layer->drop * 65536);
    enum { DRAWS = 8 };
    for (uint32_t i = 0; i < pass->lanes && (place->by_lanes || i < pass->count); i++)
        for (size_t u = 0; u < units; u += DRAWS) {
            struct sdr_random4 random = sdr_philox(view->problem->seed, SDR_FOR_DROPOUT + 256u * (uint32_t)l,
                                                   batch->number << 32 ^ (batch->at + i), (uint32_t)(u / DRAWS));
            for (size_t d = 0; d < DRAWS && u + d < units; d++) {
                uint32_t draw = random.word[d / 2] >> (d % 2 * 16) & 0xFFFF;
                place->mask[(u + d) * per_unit + i * per_row] = draw < limit ? 0 : kept;
            }
        }
}

static void multiply(float *x, const float *mask, size_t count)
{
    for (size_t i = 0; i < count; i++)
        x[i] *= mask[i];
}

static void elementwise_forward(const struct sdr_view *view, const struct sdr_batch *batch,
                                const struct pass *pass, int l, bool training)
{
    const struct sdr_layer *layer = &pass->net.layer[l];
    const struct place *place = &pass->place[l];
    size_t values = values_of(pass, &layer->out, place->by_lanes);
    if (!place->in_place)
        memcpy(place->value, input_of(pass, l), values * sizeof(float));
    if (layer->type == SDR_LAYER_ACTIVATION) {
        view->problem->kernels->products->activate(layer->f, place->value, values);
    } else if (training) {
        draw_mask(view, batch, pass, l);
        multiply(place->value, place->mask, values);
    }
}

/* A copy in the order that the next layer wants. */
static void turn(const struct sdr_view *view, const struct pass *pass, int l)
{
    const struct place *place = &pass->place[l];
    uint32_t units = (uint32_t)sdr_volume_size(&pass->net.layer[l].out);
    const struct sdr_product_kernels *kernels = view->problem->kernels->products;
    if (!place->turned)
        return;
    if (place->by_lanes)
        kernels->transpose(place->value, pass->lanes, units, pass->count, place->turned, units);
    else
        kernels->transpose(place->value, units, pass->count, units, place->turned, pass->lanes);
}

static void forward(const struct sdr_view *view, const struct sdr_batch *batch, struct pass *pass,
                    bool training)
{
    if (pass->net.input >= 0)
        load_pixels(view, batch, pass);
    else if (!pass->by_example)
        load_rows(view->problem, batch, pass->input);
    for (int l = 0; l < pass->net.count; l++) {
        const struct sdr_layer *layer = &pass->net.layer[l];
        struct sdr_pooling window = window_of(pass, layer);
        switch (layer->type) {
        case SDR_LAYER_DENSE:
            dense_forward(view, batch, pass, l);
            break;
        case SDR_LAYER_CONV:
            conv_forward(view, pass, l);
            break;
        case SDR_LAYER_POOL:
            view->problem->kernels->products->pool(&window, input_of(pass, l), pass->place[l].value);
            break;
        default:
            elementwise_forward(view, batch, pass, l, training);
        }
        turn(view, pass, l);
    }
}

/* Mean and size of the labels, in regression. */
static const float *output_of(const struct sdr_view *view, const struct pass *pass)
{
    static const float plain[2] = {0, 1};
    return pass->net.output < 0 ? plain : view->w + view->block[pass->net.output].offset;
}

enum sdr_status sdr_layers_score(const struct sdr_view *view, const struct sdr_batch *batch,
                                 void *workspace, float *score)
{
    struct pass *pass;
    SDR_TRY(begin(view->problem, batch, workspace, &pass));
    forward(view, batch, pass, false);
    const float *out = output_of(view, pass), *last = pass->place[pass->net.count - 1].value;
    for (size_t i = 0; i < (size_t)batch->count * view->problem->outputs; i++)
        score[i] = out[0] + out[1] * last[i];
    return SDR_OK;
}

/* ---- backward ---- */
/* Losses, and the gradient of the mean loss by the last layer's values. */
static void differentiate(const struct sdr_model_kind *kind, const struct sdr_view *view,
                          const struct sdr_batch *batch, const struct pass *pass, struct sdr_update *update)
{
    const struct sdr_problem *problem = view->problem;
    const struct place *last = &pass->place[pass->net.count - 1];
    const float *out = output_of(view, pass);
    uint32_t outputs = problem->outputs;
    float share = 1.0f / (float)(batch->of ? batch->of : batch->count);
    update->loss = update->weight = 0;
    for (uint32_t i = 0; i < batch->count; i++) {
        uint32_t row = batch->row[i];
        float weight = problem->row_weight ? problem->row_weight[row] : 1.0f;
        float *delta = last->delta + (size_t)i * outputs;
        for (uint32_t k = 0; k < outputs; k++)
            delta[k] = out[0] + out[1] * last->value[(size_t)i * outputs + k];
        update->loss += weight * kind->loss(problem->model_options, delta, outputs, problem->target[row], delta);
        update->weight += weight;
        for (uint32_t k = 0; k < outputs; k++)
            delta[k] *= out[1] * weight * share;
    }
}

/* Where layer l puts the gradient of its input. */
static float *delta_of_input(const struct pass *pass, int l)
{
    const struct place *before = &pass->place[l - 1];
    return before->turned ? before->turned_delta : before->delta;
}

static void dense_backward(const struct sdr_view *view, const struct pass *pass, int l)
{
    const struct sdr_layer *layer = &pass->net.layer[l];
    const struct sdr_product_kernels *kernels = view->problem->kernels->products;
    uint32_t inputs = (uint32_t)sdr_volume_size(&layer->in), units = layer->out.channels;
    kernels->transpose(view->w + view->block[layer->block].offset, units, inputs, units, pass->back, inputs);
    struct sdr_product product = {.to = delta_of_input(pass, l),
                                  .to_row = inputs,
                                  .a = pass->place[l].delta,
                                  .a_row = units,
                                  .a_step = 1,
                                  .b = pass->back,
                                  .b_step = inputs,
                                  .rows = pass->count,
                                  .cols = inputs,
                                  .inner = units};
    kernels->product(&product);
}

/* Every pixel of the result gives its gradient back to the pixels its kernels read. */
static void conv_backward(const struct sdr_view *view, const struct pass *pass, int l)
{
    const struct sdr_layer *layer = &pass->net.layer[l];
    const struct place *place = &pass->place[l];
    struct sdr_volume around = padded(layer);
    size_t pixels = (size_t)layer->out.rows * layer->out.cols;
    float *to = layer->pad ? place->padded_delta : delta_of_input(pass, l);
    memset(to, 0, values_of(pass, &around, true) * sizeof *to);
    make_tables(pass, layer);
    for (size_t q = 0; q < pixels; q++) {
        struct sdr_product product = {.to = to + pass->pixel[q],
                                      .to_at = pass->tap,
                                      .a = view->w + view->block[layer->block].offset,
                                      .a_row = layer->out.channels,
                                      .a_step = 1,
                                      .b = place->delta + q * pass->lanes,
                                      .b_step = pixels * pass->lanes,
                                      .rows = taps_of(layer),
                                      .cols = pass->lanes,
                                      .inner = layer->out.channels,
                                      .add = true};
        view->problem->kernels->products->product(&product);
    }
    if (layer->pad)
        move_image(layer, pass->lanes, delta_of_input(pass, l), to, false);
}

/* The gradient of the input of layer l, given that of its values. */
static void backward(const struct sdr_view *view, const struct pass *pass, int l)
{
    const struct sdr_layer *layer = &pass->net.layer[l];
    const struct place *place = &pass->place[l];
    struct sdr_pooling window = window_of(pass, layer);
    size_t values = values_of(pass, &layer->out, place->by_lanes);
    float *to = delta_of_input(pass, l);
    switch (layer->type) {
    case SDR_LAYER_DENSE:
        dense_backward(view, pass, l);
        break;
    case SDR_LAYER_CONV:
        conv_backward(view, pass, l);
        break;
    case SDR_LAYER_POOL:
        memset(to, 0, values_of(pass, &layer->in, true) * sizeof *to);
        view->problem->kernels->products->unpool(&window, input_of(pass, l), place->value, place->delta, to);
        break;
    default:
        if (layer->type == SDR_LAYER_ACTIVATION)
            view->problem->kernels->products->slope(layer->f, place->value, place->delta, values);
        else
            multiply(place->delta, place->mask, values);
        if (!place->in_place)
            memcpy(to, place->delta, values * sizeof *to);
    }
}

/* From the order of layer l to that of the layer before; lanes without a row get zeros. */
static void turn_back(const struct sdr_view *view, const struct pass *pass, int l)
{
    const struct place *before = &pass->place[l - 1];
    const struct sdr_product_kernels *kernels = view->problem->kernels->products;
    uint32_t units = (uint32_t)sdr_volume_size(&pass->net.layer[l].in);
    if (!before->turned)
        return;
    if (before->by_lanes) {
        memset(before->delta, 0, (size_t)units * pass->lanes * sizeof(float));
        kernels->transpose(before->turned_delta, units, pass->count, units, before->delta, pass->lanes);
    } else {
        kernels->transpose(before->turned_delta, pass->lanes, units, pass->count, before->delta, units);
    }
}

static void dense_parts(const struct sdr_batch *batch, const struct pass *pass, int l,
                        struct sdr_update *update)
{
    const struct sdr_layer *layer = &pass->net.layer[l];
    update->part[update->parts++] = (struct sdr_part){.block = layer->block,
                                                      .form = SDR_FACTORS,
                                                      .right = l == 0 ? SDR_EXAMPLES : SDR_STORED,
                                                      .count = batch->count,
                                                      .value = pass->place[l].delta,
                                                      .v = l == 0 ? NULL : input_of(pass, l)};
    update->part[update->parts++] = (struct sdr_part){.block = layer->block + 1,
                                                      .form = SDR_FACTORS,
                                                      .right = SDR_ONES,
                                                      .count = batch->count,
                                                      .value = pass->place[l].delta};
}

static void conv_parts(const struct sdr_view *view, const struct pass *pass, int l,
                       struct sdr_update *update)
{
    const struct sdr_layer *layer = &pass->net.layer[l];
    const struct place *place = &pass->place[l];
    uint32_t pixels = layer->out.rows * layer->out.cols, kernels = layer->out.channels;
    make_tables(pass, layer);
    for (uint32_t i = 0; i < pass->lanes; i++)
        pass->one[i] = 1;
    struct sdr_cross weights = {.to = place->weight_sum,
                                .to_row = kernels,
                                .a = layer->pad ? place->padded : input_of(pass, l),
                                .a_at = pass->tap,
                                .q_at = pass->pixel,
                                .b = place->delta,
                                .b_row = (size_t)pixels * pass->lanes,
                                .rows = taps_of(layer),
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
    update->part[update->parts++] = (struct sdr_part){
        .block = layer->block, .form = SDR_DENSE, .count = weights.rows * kernels, .value = place->weight_sum};
    update->part[update->parts++] = (struct sdr_part){
        .block = layer->block + 1, .form = SDR_DENSE, .count = kernels, .value = place->bias_sum};
}

/* A stage per layer with parameters, the last one first. */
enum sdr_status sdr_layers_gradient(const struct sdr_model_kind *kind, const struct sdr_view *view,
                                    const struct sdr_batch *batch, int stage, void *workspace,
                                    struct sdr_update *update)
{
    struct pass *pass;
    SDR_TRY(begin(view->problem, batch, workspace, &pass));
    if (stage == 0) {
        forward(view, batch, pass, true);
        differentiate(kind, view, batch, pass, update);
        pass->at = pass->net.count;
    }
    do {
        if (pass->at < pass->net.count) {
            backward(view, pass, pass->at);
            turn_back(view, pass, pass->at);
        }
        pass->at--;
    } while (pass->net.layer[pass->at].block < 0);
    if (pass->net.layer[pass->at].type == SDR_LAYER_DENSE)
        dense_parts(batch, pass, pass->at, update);
    else
        conv_parts(view, pass, pass->at, update);
    return SDR_OK;
}
