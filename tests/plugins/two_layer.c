/* For tests alone: a network of two layers, tanh between them, softmax loss. It has what the models
   of the library lack: four blocks, a gradient in two stages, and parts of forms that linear models
   do not have.

       h = tanh(x·W1 + b1)    z = h·W2 + b2

   `two-layer` gives W2 as factors with stored activations, and biases as sums over the examples;
   `two-layer-dense` multiplies all but W1 out. Both are the same gradient. */
#include "base/rng.h"
#include "kernel/math.h"
#include "model/linear.h"

#include <math.h>
#include <string.h>

struct options {
    uint64_t hidden;
};
static const struct sdr_option table[] = {{"hidden", SDR_INTEGER, "5", "N", 1, 4096,
                                           "units between the layers",
                                           offsetof(struct options, hidden), 0},
                                          {0}};

enum { W1, B1, W2, B2, BLOCKS };

extern const struct sdr_model_kind sdr_model_kind_softmax, sdr_model_kind_two_layer_dense;

static uint32_t hidden_of(const struct sdr_problem *problem)
{
    return (uint32_t)((const struct options *)problem->model_options)->hidden;
}

static int shape(const struct sdr_problem *problem, struct sdr_block *block)
{
    uint32_t hidden = hidden_of(problem), outputs = problem->outputs;
    block[W1] = (struct sdr_block){.name = "weight1",
                                   .rows = problem->features,
                                   .cols = hidden,
                                   .per_feature = true,
                                   .penalised = true};
    block[B1] = (struct sdr_block){.name = "bias1", .rows = 1, .cols = hidden};
    block[W2] =
        (struct sdr_block){.name = "weight2", .rows = hidden, .cols = outputs, .penalised = true};
    block[B2] = (struct sdr_block){.name = "bias2", .rows = 1, .cols = outputs};
    return BLOCKS;
}

/* Normal values, so that scores begin at about 1 for features of size 1. */
static enum sdr_status start(const struct sdr_problem *problem, const struct sdr_block *block,
                             const struct sdr_batch *rows, double size, struct sdr_span span,
                             float *w)
{
    struct sdr_stream stream = sdr_stream_open(problem->seed, SDR_FOR_START, 0);
    (void)rows, (void)size;
    for (int b = W1; b < BLOCKS; b += W2 - W1)
        for (uint64_t i = 0; i < (uint64_t)block[b].rows * block[b].cols; i++) {
            uint64_t at = block[b].offset + i;
            double value = sdr_stream_normal(&stream) / sqrt((double)block[b].rows);
            if (at >= span.first && at < span.end)
                w[at] = (float)value;
        }
    return SDR_OK;
}

/* In the workspace, one behind the other, for `rows` rows. */
struct room {
    float *h, *delta1, *delta2; /* rows × hidden, the same, rows × outputs */
    float *sum_b1, *sum_w2, *sum_b2;
};

static struct room room_of(const struct sdr_problem *problem, uint32_t rows, float *at)
{
    size_t hidden = hidden_of(problem), outputs = problem->outputs;
    struct room room = {.h = at};
    room.delta1 = room.h + rows * hidden;
    room.delta2 = room.delta1 + rows * hidden;
    room.sum_b1 = room.delta2 + rows * outputs;
    room.sum_w2 = room.sum_b1 + hidden;
    room.sum_b2 = room.sum_w2 + hidden * outputs;
    return room;
}

static size_t workspace_bytes(const struct sdr_problem *problem, uint32_t rows)
{
    size_t hidden = hidden_of(problem), outputs = problem->outputs;
    return (rows * (2 * hidden + outputs) + hidden + hidden * outputs + outputs) * sizeof(float);
}

/* h and z of one row; with our own exp the bits are the same everywhere. */
static void forward(const struct sdr_view *view, uint32_t row, float *h, float *z)
{
    const struct sdr_problem *problem = view->problem;
    const struct sdr_rows *rows = problem->rows;
    const struct sdr_linear_kernels *kernels = problem->kernels;
    const float *w1 = view->w + view->block[W1].offset, *w2 = view->w + view->block[W2].offset;
    uint32_t hidden = view->block[W1].cols, outputs = view->block[W2].cols;
    memcpy(h, view->w + view->block[B1].offset, hidden * sizeof *h);
    memcpy(z, view->w + view->block[B2].offset, outputs * sizeof *z);
    if (rows->dense) {
        kernels->scores(w1, sdr_dense_row(rows, row), problem->center, rows->features, hidden, h);
    } else {
        struct sdr_sparse_row r = sdr_sparse_row(rows, row);
        if (r.index16)
            kernels->scores16(w1, r.index16, r.x, r.n, hidden, h);
        else
            kernels->scores32(w1, r.index32, r.x, r.n, hidden, h);
    }
    for (uint32_t k = 0; k < hidden; k++) {
        double e = sdr_exp(-2 * fabs(h[k]));
        h[k] = (float)copysign((1 - e) / (1 + e), h[k]);
    }
    kernels->scores(w2, h, NULL, hidden, outputs, z);
}

static enum sdr_status score(const struct sdr_view *view, const struct sdr_batch *batch,
                             void *workspace, float *scores)
{
    for (uint32_t i = 0; i < batch->count; i++)
        forward(view, batch->row[i], workspace, scores + (size_t)i * view->problem->outputs);
    return SDR_OK;
}

static double loss(const void *options, const float *scores, uint32_t outputs, float target,
                   float *dloss)
{
    return sdr_model_kind_softmax.loss(options, scores, outputs, target, dloss);
}

static void probability(const float *scores, uint32_t outputs, float *p)
{
    sdr_model_kind_softmax.probability(scores, outputs, p);
}

static int stages(const struct sdr_problem *problem)
{
    (void)problem;
    return 2;
}

/* to (n) = Σ value_i (n) over the examples. */
static const float *sum_of(const float *value, uint32_t count, size_t n, float *to)
{
    memset(to, 0, n * sizeof *to);
    for (uint32_t i = 0; i < count; i++)
        for (size_t k = 0; k < n; k++)
            to[k] += value[i * n + k];
    return to;
}

static struct sdr_part bias(int block, const float *value, uint32_t count, uint32_t cols,
                            bool dense, float *sum)
{
    if (dense)
        return (struct sdr_part){.block = block,
                                 .form = SDR_DENSE,
                                 .count = cols,
                                 .value = sum_of(value, count, cols, sum)};
    return (struct sdr_part){
        .block = block, .form = SDR_FACTORS, .right = SDR_ONES, .count = count, .value = value};
}

/* Forward, and the last layer. */
static void last_layer(const struct sdr_view *view, const struct sdr_batch *batch,
                       const struct room *room, bool dense, struct sdr_update *update)
{
    const struct sdr_problem *problem = view->problem;
    uint32_t hidden = hidden_of(problem), outputs = problem->outputs;
    float share = 1.0f / (float)(batch->of ? batch->of : batch->count);
    update->loss = update->weight = 0;
    for (uint32_t i = 0; i < batch->count; i++) {
        uint32_t row = batch->row[i];
        float weight = problem->row_weight ? problem->row_weight[row] : 1.0f;
        float *delta = room->delta2 + (size_t)i * outputs;
        forward(view, row, room->h + (size_t)i * hidden, delta);
        update->loss +=
            weight * loss(problem->model_options, delta, outputs, problem->target[row], delta);
        update->weight += weight;
        for (uint32_t k = 0; k < outputs; k++)
            delta[k] *= weight * share;
    }
    struct sdr_part part = {.block = W2,
                            .form = SDR_FACTORS,
                            .right = SDR_STORED,
                            .count = batch->count,
                            .value = room->delta2,
                            .v = room->h};
    if (dense) {
        memset(room->sum_w2, 0, (size_t)hidden * outputs * sizeof(float));
        for (uint32_t i = 0; i < batch->count; i++)
            for (uint32_t j = 0; j < hidden; j++)
                for (uint32_t k = 0; k < outputs; k++)
                    room->sum_w2[j * outputs + k] +=
                        room->h[(size_t)i * hidden + j] * room->delta2[(size_t)i * outputs + k];
        part = (struct sdr_part){
            .block = W2, .form = SDR_DENSE, .count = hidden * outputs, .value = room->sum_w2};
    }
    update->part[update->parts++] = part;
    update->part[update->parts++] =
        bias(B2, room->delta2, batch->count, outputs, dense, room->sum_b2);
}

/* delta1 = (W2·delta2)·(1 − h²). */
static void first_layer(const struct sdr_view *view, const struct sdr_batch *batch,
                        const struct room *room, bool dense, struct sdr_update *update)
{
    uint32_t hidden = hidden_of(view->problem), outputs = view->problem->outputs;
    const float *w2 = view->w + view->block[W2].offset;
    for (uint32_t i = 0; i < batch->count; i++)
        for (uint32_t j = 0; j < hidden; j++) {
            float h = room->h[(size_t)i * hidden + j], back = 0;
            for (uint32_t k = 0; k < outputs; k++)
                back += w2[j * outputs + k] * room->delta2[(size_t)i * outputs + k];
            room->delta1[(size_t)i * hidden + j] = back * (1 - h * h);
        }
    update->part[update->parts++] = (struct sdr_part){
        .block = W1, .form = SDR_FACTORS, .count = batch->count, .value = room->delta1};
    update->part[update->parts++] =
        bias(B1, room->delta1, batch->count, hidden, dense, room->sum_b1);
}

static enum sdr_status gradient(const struct sdr_model_kind *kind, const struct sdr_view *view,
                                const struct sdr_batch *batch, int stage, void *workspace,
                                struct sdr_update *update)
{
    struct room room = room_of(view->problem, batch->count, workspace);
    bool dense = kind == &sdr_model_kind_two_layer_dense;
    (stage == 0 ? last_layer : first_layer)(view, batch, &room, dense, update);
    return SDR_OK;
}

#define TWO_LAYER                                                                                  \
    .options = table, .options_size = sizeof(struct options), .truth = SDR_CLASSES,                \
    .reads = SDR_READS_ALL, .needs = SDR_NEEDS_LABELS, .picks = true, .no_intercept = true,        \
    .defaults = {.batch = 32}, .curvature = 0.5, .loss = loss, .probability = probability,         \
    .shape = shape, .start = start, .workspace = workspace_bytes, .stages = stages,                \
    .score = score, .gradient = gradient, .uncenter = sdr_linear_uncenter

SDR_REGISTER(model_kind, two_layer) = {
    .name = "two-layer",
    .summary = "for tests: two layers, gradients as factors",
    TWO_LAYER,
};

SDR_REGISTER(model_kind, two_layer_dense) = {
    .name = "two-layer-dense",
    .summary = "for tests: two layers, gradients of the last one multiplied out",
    TWO_LAYER,
};
