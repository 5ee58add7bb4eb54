/* Networks: the memory of a pass, scores, and gradients layer by layer. See layers_pass.h. */
#include "model/layers_pass.h"

#include <string.h>

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
static bool goes_by_lanes(const struct sdr_pass *pass, int l)
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

/* A layer may overwrite the values of the one before if that does not need them for its
   gradient. */
static bool is_in_place(const struct sdr_pass *pass, int l)
{
    enum sdr_layer_type before = l > 0 ? pass->net.layer[l - 1].type : SDR_LAYER_POOL;
    return is_elementwise(&pass->net.layer[l]) && before != SDR_LAYER_POOL &&
           before != SDR_LAYER_ACTIVATION;
}

static void place_conv(const struct sdr_pass *pass, const struct sdr_layer *layer,
                       struct sdr_place *place, struct heap *heap)
{
    size_t weights = (size_t)layer->in.channels * layer->size * layer->size * layer->out.channels;
    struct sdr_volume around = sdr_padded(layer);
    place->weight_sum = take_floats(heap, weights);
    place->bias_sum = take_floats(heap, layer->out.channels);
    if (layer->pad) {
        place->padded = take_floats(heap, sdr_pass_values(pass, &around, true));
        place->padded_delta = take_floats(heap, sdr_pass_values(pass, &around, true));
    }
}

/* Vectors over the rows: gradients of a dense layer on both sides, values of a pixel of all
   kernels. */
static size_t scratch_of(const struct sdr_layer *layer, int l)
{
    if (layer->type == SDR_LAYER_CONV)
        return layer->out.channels;
    return layer->type == SDR_LAYER_DENSE && l > 0
               ? layer->out.channels + sdr_volume_size(&layer->in)
               : 0;
}

/* Lays the arrays out for this many rows. */
static void lay_out(struct sdr_pass *pass, uint32_t rows, struct heap *heap)
{
    size_t scratch = 0, taps = 0, pixels = 0;
    pass->count = rows;
    pass->lanes = (rows + 15) / 16 * 16;
    for (int l = 0; l < pass->net.count; l++) {
        const struct sdr_layer *layer = &pass->net.layer[l];
        struct sdr_place *place = &pass->place[l];
        *place = (struct sdr_place){.by_lanes = goes_by_lanes(pass, l),
                                    .in_place = is_in_place(pass, l)};
        if (l == 0 && !pass->by_example)
            pass->input = take_floats(heap, sdr_pass_values(pass, &layer->in, place->by_lanes));
        size_t values = sdr_pass_values(pass, &layer->out, place->by_lanes);
        place->value = place->in_place ? place[-1].value : take_floats(heap, values);
        place->delta = place->in_place ? place[-1].delta : take_floats(heap, values);
        if (l > 0 && place->by_lanes != place[-1].by_lanes) {
            place[-1].turned =
                take_floats(heap, sdr_pass_values(pass, &layer->in, place->by_lanes));
            if (layer->type != SDR_LAYER_DENSE)
                place[-1].turned_delta =
                    take_floats(heap, sdr_pass_values(pass, &layer->in, place->by_lanes));
        }
        if (layer->type == SDR_LAYER_DROPOUT)
            place->mask = take_floats(heap, values);
        size_t needed = scratch_of(layer, l) * pass->lanes;
        scratch = needed > scratch ? needed : scratch;
        if (layer->type == SDR_LAYER_CONV) {
            size_t inputs = (size_t)layer->in.channels * layer->size * layer->size;
            size_t outputs = (size_t)layer->out.rows * layer->out.cols;
            place_conv(pass, layer, place, heap);
            taps = inputs > taps ? inputs : taps;
            pixels = outputs > pixels ? outputs : pixels;
        }
    }
    pass->scratch = take_floats(heap, scratch);
    pass->one = take_floats(heap, pass->lanes);
    pass->tap = take(heap, taps, sizeof(size_t));
    pass->column = take(heap, taps, sizeof(size_t));
    pass->pixel = take(heap, pixels, sizeof(size_t));
    pass->nowhere = take(heap, pixels, sizeof(size_t));
}

static enum sdr_status describe(const struct sdr_problem *problem, struct sdr_pass *pass)
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
    struct sdr_pass pass = {0};
    struct heap heap = {.used = sizeof pass};
    if (describe(problem, &pass) == SDR_OK)
        lay_out(&pass, rows, &heap);
    return heap.used + 64;
}

static enum sdr_status begin(const struct sdr_problem *problem, const struct sdr_batch *batch,
                             void *workspace, struct sdr_pass **pass)
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

/* Mean and size of the labels, in regression. */
static const float *output_of(const struct sdr_view *view, const struct sdr_pass *pass)
{
    static const float plain[2] = {0, 1};
    return pass->net.output < 0 ? plain : view->w + view->block[pass->net.output].offset;
}

enum sdr_status sdr_layers_score(const struct sdr_view *view, const struct sdr_batch *batch,
                                 void *workspace, float *score)
{
    struct sdr_pass *pass;
    SDR_TRY(begin(view->problem, batch, workspace, &pass));
    sdr_pass_forward(view, batch, pass, false);
    const float *out = output_of(view, pass), *last = pass->place[pass->net.count - 1].value;
    for (size_t i = 0; i < (size_t)batch->count * view->problem->outputs; i++)
        score[i] = out[0] + out[1] * last[i];
    return SDR_OK;
}

/* ---- gradient ---- */
/* Losses, and the gradient of the mean loss by the last layer's values. */
static void differentiate(const struct sdr_model_kind *kind, const struct sdr_view *view,
                          const struct sdr_batch *batch, const struct sdr_pass *pass,
                          struct sdr_update *update)
{
    const struct sdr_problem *problem = view->problem;
    const struct sdr_place *last = &pass->place[pass->net.count - 1];
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
        update->loss += weight * kind->loss(problem->model_options, delta, outputs,
                                            problem->target[row], delta);
        update->weight += weight;
        for (uint32_t k = 0; k < outputs; k++)
            delta[k] *= out[1] * weight * share;
    }
}

/* A stage per layer with parameters, the last one first. */
enum sdr_status sdr_layers_gradient(const struct sdr_model_kind *kind, const struct sdr_view *view,
                                    const struct sdr_batch *batch, int stage, void *workspace,
                                    struct sdr_update *update)
{
    struct sdr_pass *pass;
    SDR_TRY(begin(view->problem, batch, workspace, &pass));
    if (stage == 0) {
        sdr_pass_forward(view, batch, pass, true);
        differentiate(kind, view, batch, pass, update);
        pass->at = pass->net.count;
    }
    do {
        if (pass->at < pass->net.count)
            sdr_pass_backward(view, pass, pass->at);
        pass->at--;
    } while (pass->net.layer[pass->at].block < 0);
    sdr_pass_parts(view, batch, pass, pass->at, update);
    return SDR_OK;
}
