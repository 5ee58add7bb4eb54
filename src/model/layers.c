/* Networks: from a text to layers, blocks and initial values. See layers.h. */
#include "model/layers.h"
#include "base/memory.h"
#include "base/rng.h"
#include "model/linear.h"
#include "model/squared.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- text ---- */
/* Reads a number at *text, if there is one, and moves behind it. */
static bool take_number(const char **text, uint32_t most, uint32_t *number)
{
    uint64_t value = 0;
    const char *at = *text;
    for (; *at >= '0' && *at <= '9' && value <= most; at++)
        value = 10 * value + (uint64_t)(*at - '0');
    if (at == *text || value > most)
        return false;
    *number = (uint32_t)value;
    *text = at;
    return true;
}

static bool take_word(const char **text, const char *word)
{
    size_t length = strlen(word);
    if (strncmp(*text, word, length) != 0)
        return false;
    *text += length;
    return true;
}

enum { UNITS_MOST = 1 << 24, SIDE_MOST = 1 << 16, WORD_MOST = 64 };

/* s and p behind a window: "s2p1". */
static bool take_window(const char **text, struct sdr_layer *layer, bool padded)
{
    bool sound = true;
    while (**text && sound)
        sound = (take_word(text, "s") && take_number(text, SIDE_MOST, &layer->stride) &&
                 layer->stride > 0) ||
                (padded && take_word(text, "p") && take_number(text, SIDE_MOST, &layer->pad) &&
                 layer->pad < layer->size);
    return sound;
}

static bool read_activation(const char *word, struct sdr_layer *layer)
{
    static const char *const name[] = {"relu", "tanh", "sigmoid"};
    for (int f = 0; f < 3; f++)
        if (strcmp(word, name[f]) == 0) {
            *layer = (struct sdr_layer){.type = SDR_LAYER_ACTIVATION, .f = (enum sdr_activation)f};
            return true;
        }
    return false;
}

static bool read_layer(const char *word, struct sdr_layer *layer)
{
    const char *text = word;
    *layer = (struct sdr_layer){.stride = 1};
    if (read_activation(word, layer))
        return true;
    if (take_word(&text, "dense")) {
        layer->type = SDR_LAYER_DENSE;
        return take_number(&text, UNITS_MOST, &layer->out.channels) && layer->out.channels > 0 &&
               !*text;
    }
    if (take_word(&text, "conv")) {
        layer->type = SDR_LAYER_CONV;
        return take_number(&text, UNITS_MOST, &layer->out.channels) && layer->out.channels > 0 &&
               take_word(&text, "x") && take_number(&text, SIDE_MOST, &layer->size) &&
               layer->size > 0 && take_window(&text, layer, true);
    }
    if (take_word(&text, "pool")) {
        layer->type = SDR_LAYER_POOL;
        bool sound = take_number(&text, SIDE_MOST, &layer->size) && layer->size > 0;
        layer->stride = layer->size;
        return sound && take_window(&text, layer, false);
    }
    if (take_word(&text, "dropout")) {
        char *end;
        layer->type = SDR_LAYER_DROPOUT;
        layer->drop = strtof(text, &end);
        return end != text && !*end && layer->drop >= 0 && layer->drop < 1;
    }
    return false;
}

/* The next word of a list with '-' between its words; false: there is none. */
static bool next_word(const char **list, char word[WORD_MOST])
{
    size_t length = strcspn(*list, "-");
    if (!**list)
        return false;
    snprintf(word, WORD_MOST, "%.*s", (int)length, *list);
    *list += length;
    *list += **list == '-';
    return true;
}

static enum sdr_status read_layers(const char *text, struct sdr_layers *layers)
{
    char word[WORD_MOST];
    while (next_word(&text, word)) {
        if (layers->count >= SDR_LAYERS_MOST - 1)
            return sdr_fail(SDR_USAGE, "a network has more than %d layers", SDR_LAYERS_MOST - 1);
        if (!read_layer(word, &layers->layer[layers->count++]))
            return sdr_fail(SDR_USAGE,
                            "'%s' is no layer: there are dense100, conv20x5 (also s2p1: stride, "
                            "padding below 5), pool2, relu, tanh, sigmoid, dropout0.5",
                            word);
    }
    return SDR_OK;
}

/* "300-100" and "relu", or an activation for every layer. */
static enum sdr_status read_hidden(const char *hidden, const char *activation,
                                   struct sdr_layers *layers)
{
    char units[WORD_MOST], f[WORD_MOST] = "";
    while (next_word(&hidden, units)) {
        const char *text = units;
        struct sdr_layer dense = {.type = SDR_LAYER_DENSE, .stride = 1}, after;
        if (layers->count + 2 >= SDR_LAYERS_MOST)
            return sdr_fail(SDR_USAGE, "a network has more than %d layers", SDR_LAYERS_MOST - 1);
        if (!take_number(&text, UNITS_MOST, &dense.out.channels) || *text || !dense.out.channels)
            return sdr_fail(SDR_USAGE, "'%s' is no number of units (hidden=300-100: two layers)",
                            units);
        next_word(&activation, f); /* the last one holds for the rest */
        if (!read_activation(f, &after))
            return sdr_fail(SDR_USAGE,
                            "'%s' is no activation: relu, tanh, sigmoid, one for all layers or one "
                            "each with '-'",
                            f);
        layers->layer[layers->count++] = dense;
        layers->layer[layers->count++] = after;
    }
    return *activation ? sdr_fail(SDR_USAGE, "more activations than hidden layers") : SDR_OK;
}

/* ---- sizes ---- */
/* Rows, columns and channels of an example: by the option, or as its file gives them. Three numbers
   are channels first if the first is 4 or less. */
static enum sdr_status read_image(const struct sdr_problem *problem, const char *text,
                                  struct sdr_volume *image, bool *channels_last)
{
    uint32_t d[3] = {problem->image[0], problem->image[1], problem->image[2]};
    *channels_last = true;
    if (text && *text) {
        const char *at = text;
        d[2] = 1;
        bool sound = take_number(&at, SIDE_MOST, &d[0]) && take_word(&at, "x") &&
                     take_number(&at, SIDE_MOST, &d[1]);
        if (sound && take_word(&at, "x"))
            sound = take_number(&at, SIDE_MOST, &d[2]);
        if (!sound || *at)
            return sdr_fail(SDR_USAGE, "'%s' is no size of images: image=28x28, or image=32x32x3",
                            text);
    } else if (!d[0] || !d[1]) {
        return sdr_fail(
            SDR_USAGE,
            "the file does not say how large its images are: image=28x28, or image=32x32x3");
    } else if (d[2] && d[0] <= 4 && d[0] < d[2]) {
        *channels_last = false;
    }
    d[2] += !d[2];
    *image = *channels_last ? (struct sdr_volume){d[2], d[0], d[1]}
                            : (struct sdr_volume){d[0], d[1], d[2]};
    uint64_t pixels = (uint64_t)image->rows * image->cols;
    if (pixels * image->channels != problem->features || pixels > UNITS_MOST)
        return sdr_fail(
            SDR_USAGE,
            "images of %u × %u pixels and %u channels have %llu values, but rows have %u features",
            image->rows, image->cols, image->channels, (unsigned long long)pixels * image->channels,
            problem->features);
    return SDR_OK;
}

/* What comes out of a layer, given what goes in. */
static enum sdr_status size_layer(struct sdr_layer *layer)
{
    struct sdr_volume in = layer->in;
    if (layer->type == SDR_LAYER_DENSE) {
        layer->out.rows = layer->out.cols = 1;
        return (uint64_t)sdr_volume_size(&in) * layer->out.channels <= UINT32_MAX
                   ? SDR_OK
                   : sdr_fail(SDR_USAGE,
                              "a layer of the network has more than 4 294 967 295 weights");
    }
    if (layer->type == SDR_LAYER_ACTIVATION || layer->type == SDR_LAYER_DROPOUT) {
        layer->out = in;
        return SDR_OK;
    }
    uint64_t rows = in.rows + 2ull * layer->pad, cols = in.cols + 2ull * layer->pad;
    if (rows < layer->size || cols < layer->size)
        return sdr_fail(SDR_USAGE, "a window of %u × %u pixels is larger than its image, %u × %u",
                        layer->size, layer->size, in.rows, in.cols);
    layer->out.rows = (uint32_t)((rows - layer->size) / layer->stride + 1);
    layer->out.cols = (uint32_t)((cols - layer->size) / layer->stride + 1);
    if (layer->type == SDR_LAYER_POOL)
        layer->out.channels = in.channels;
    bool large =
        (double)in.channels * layer->size * layer->size * layer->out.channels > UINT32_MAX ||
        (uint64_t)layer->out.channels * layer->out.rows * layer->out.cols > UNITS_MOST;
    return large ? sdr_fail(SDR_USAGE, "a layer of the network is too large") : SDR_OK;
}

static bool is_trained(const struct sdr_layer *layer)
{
    return layer->type == SDR_LAYER_DENSE || layer->type == SDR_LAYER_CONV;
}

enum sdr_status sdr_layers_describe(const struct sdr_problem *problem, struct sdr_layers *layers)
{
    const struct sdr_layer_options *options = problem->model_options;
    struct sdr_volume size = {problem->features, 1, 1};
    int block = 0, dense = 0, conv = 0;
    *layers = (struct sdr_layers){.input = -1, .output = -1, .channels_last = true};
    if (options->layers)
        SDR_TRY(read_layers(options->layers, layers));
    else
        SDR_TRY(read_hidden(options->hidden, options->activation, layers));
    layers->layer[layers->count++] =
        (struct sdr_layer){.type = SDR_LAYER_DENSE, .stride = 1, .out = {problem->outputs, 1, 1}};
    if (layers->layer[0].type != SDR_LAYER_DENSE) {
        SDR_TRY(read_image(problem, options->image, &size, &layers->channels_last));
        layers->input = block++;
    }
    for (int l = 0; l < layers->count; l++) {
        struct sdr_layer *layer = &layers->layer[l];
        if (size.rows == 1 && size.cols == 1 && l > 0 &&
            (layer->type == SDR_LAYER_CONV || layer->type == SDR_LAYER_POOL) &&
            layers->layer[l - 1].type == SDR_LAYER_DENSE)
            return sdr_fail(SDR_USAGE, "convolutions and pooling come before dense layers");
        layer->in = size;
        SDR_TRY(size_layer(layer));
        size = layer->out;
        layer->block = -1;
        if (is_trained(layer)) {
            layer->number = layer->type == SDR_LAYER_DENSE ? ++dense : ++conv;
            layer->block = block;
            block += 2;
            layers->trained++;
        }
    }
    if (problem->classes == 0)
        layers->output = block++;
    return block <= SDR_BLOCKS_MOST
               ? SDR_OK
               : sdr_fail(SDR_USAGE, "a network has more than %d layers", SDR_BLOCKS_MOST / 2 - 1);
}

/* ---- blocks ---- */
int sdr_layers_shape(const struct sdr_problem *problem, struct sdr_block *block)
{
    struct sdr_layers layers;
    int blocks = 0;
    if (sdr_layers_describe(problem, &layers) != SDR_OK)
        return -1;
    if (layers.input >= 0)
        block[blocks++] = (struct sdr_block){.name = "input", .rows = 1, .cols = 2, .fixed = true};
    for (int l = 0; l < layers.count; l++) {
        const struct sdr_layer *layer = &layers.layer[l];
        if (!is_trained(layer))
            continue;
        bool conv = layer->type == SDR_LAYER_CONV;
        struct sdr_block *weight = &block[blocks++], *bias = &block[blocks++];
        uint32_t in = conv ? layer->in.channels * layer->size * layer->size
                           : (uint32_t)sdr_volume_size(&layer->in);
        *weight = (struct sdr_block){.rows = in,
                                     .cols = layer->out.channels,
                                     .penalised = true,
                                     .per_feature = l == 0 && !conv};
        *bias = (struct sdr_block){.rows = 1, .cols = layer->out.channels};
        snprintf(weight->name, sizeof weight->name, "%s%d.weight", conv ? "conv" : "dense",
                 layer->number);
        snprintf(bias->name, sizeof bias->name, "%s%d.bias", conv ? "conv" : "dense",
                 layer->number);
    }
    if (layers.output >= 0)
        block[blocks++] = (struct sdr_block){.name = "output", .rows = 1, .cols = 2, .fixed = true};
    return blocks;
}

enum sdr_status sdr_layers_check(const struct sdr_problem *problem, const char *name)
{
    struct sdr_layers layers;
    (void)name;
    return sdr_layers_describe(problem, &layers);
}

/* ---- initial values ---- */
/* Shift and scale of all pixels together, of a sample: mean 0, variance 1. */
static void measure_pixels(const struct sdr_batch *rows, float *shift, float *scale)
{
    enum { SAMPLE = 2000 };
    double sum = 0, square = 0;
    uint64_t count = rows->count < SAMPLE ? rows->count : SAMPLE;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t place = i * rows->count / count;
        uint64_t row = rows->row ? rows->row[place] : place;
        if (rows->rows->dense) {
            const float *x = sdr_dense_row(rows->rows, row);
            for (uint32_t j = 0; j < rows->rows->features; j++) {
                sum += x[j];
                square += (double)x[j] * x[j];
            }
            continue;
        }
        struct sdr_sparse_row r = sdr_sparse_row(rows->rows, row);
        for (uint32_t n = 0; n < r.n; n++) {
            sum += r.x[n];
            square += (double)r.x[n] * r.x[n];
        }
    }
    double values = (double)count * rows->rows->features, mean = sum / values;
    double deviation = sqrt(fmax(square / values - mean * mean, 0));
    *shift = (float)mean;
    *scale = deviation > 0 ? (float)(1 / deviation) : 1;
}

static void measure_labels(const struct sdr_problem *problem, const struct sdr_batch *rows,
                           double size, float output[2])
{
    double sum = 0;
    for (uint32_t i = 0; i < rows->count; i++)
        sum += problem->target[rows->row ? rows->row[i] : i];
    output[0] = (float)(sum / rows->count);
    output[1] = (float)size;
}

/* Normal values of variance gain/n for n inputs: 2 before a relu (He et al.), else 1 (Xavier). In a
   dense first layer n is the squared length of a row in scaled units, and a weight is in units of
   its feature's scale. */
static void start_weights(const struct sdr_problem *problem, const struct sdr_layers *layers, int l,
                          const struct sdr_block *block, struct sdr_span span, float *w)
{
    const struct sdr_layer *next = l + 1 < layers->count ? &layers->layer[l + 1] : NULL;
    struct sdr_stream stream = sdr_stream_open(problem->seed, SDR_FOR_START, (uint64_t)l);
    bool relu = next && next->type == SDR_LAYER_ACTIVATION && next->f == SDR_RELU;
    double inputs = block->per_feature ? fmax(problem->row_square, 1) : (double)block->rows;
    double size = sqrt((relu ? 2 : 1) / inputs);
    for (uint32_t j = 0; j < block->rows; j++)
        for (uint32_t k = 0; k < block->cols; k++) {
            uint64_t at = block->offset + (uint64_t)j * block->cols + k;
            double value = sdr_stream_normal(&stream) * size;
            if (block->per_feature && problem->scale)
                value *= problem->scale[j];
            if (at >= span.first && at < span.end)
                w[at] = (float)value;
        }
}

/* A fixed block of two values, as far as it is in the span. */
static void put_two(const struct sdr_block *block, struct sdr_span span, const float value[2],
                    float *w)
{
    if (block->offset >= span.first && block->offset < span.end)
        memcpy(w + block->offset, value, 2 * sizeof *value);
}

enum sdr_status sdr_layers_start(const struct sdr_problem *problem, const struct sdr_block *block,
                                 const struct sdr_batch *rows, double size, struct sdr_span span,
                                 float *w)
{
    struct sdr_layers layers;
    float two[2];
    SDR_TRY(sdr_layers_describe(problem, &layers));
    for (int l = 0; l < layers.count; l++)
        if (layers.layer[l].block >= 0)
            start_weights(problem, &layers, l, &block[layers.layer[l].block], span, w);
    if (layers.input >= 0) {
        measure_pixels(rows, &two[0], &two[1]);
        put_two(&block[layers.input], span, two, w);
    }
    if (layers.output >= 0) {
        measure_labels(problem, rows, size, two);
        put_two(&block[layers.output], span, two, w);
    }
    return SDR_OK;
}

/* Only a dense first layer sees centered rows. */
void sdr_layers_uncenter(const struct sdr_block *block, const float *center, float *w)
{
    if (block[0].per_feature)
        sdr_linear_uncenter(block, center, w);
}

/* ---- losses ---- */
double sdr_layers_loss(const void *options, const float *score, uint32_t outputs, float target,
                       float *dloss)
{
    return sdr_model_kind_softmax.loss(options, score, outputs, target, dloss);
}

void sdr_layers_probability(const float *score, uint32_t outputs, float *p)
{
    sdr_model_kind_softmax.probability(score, outputs, p);
}

double sdr_layers_squared(const void *options, const float *score, uint32_t outputs, float target,
                          float *dloss)
{
    return sdr_squared_loss(options, score, outputs, target, dloss);
}
