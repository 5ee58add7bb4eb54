/* Gaussian features, classes by planted linear functions. Two classes: y = +1 if ⟨w, x⟩ > 0, w ~
   N(0, 1)/√d; more classes: the largest ⟨w_c, x⟩. A fraction `noise` of the labels is flipped (or
   replaced by a random other class). */
#include "data/generate.h"

#include <math.h>

enum { CLASSES_MOST = 1000, FEATURES_MOST = 1 << 22 };

struct truth {
    uint64_t seed;
    uint32_t features, classes;
    float *weight; /* owned: (vectors, features) */
    double noise;
};

static uint32_t vectors(const struct truth *truth)
{
    return truth->classes > 2 ? truth->classes : 1;
}

static double score(const struct truth *truth, uint32_t vector, const float *x)
{
    const float *weight = truth->weight + (size_t)vector * truth->features;
    double sum = 0;
    for (uint32_t j = 0; j < truth->features; j++)
        sum += (double)weight[j] * x[j];
    return sum;
}

static void make(const void *context, uint64_t number, struct sdr_generate_row *row)
{
    const struct truth *truth = context;
    struct sdr_stream stream = sdr_stream_open(truth->seed, SDR_FOR_GENERATE, number);
    for (uint32_t j = 0; j < truth->features; j++)
        row->value[j] = (float)sdr_stream_normal(&stream);
    bool wrong = sdr_stream_uniform(&stream) < truth->noise;
    double best = score(truth, 0, row->value);
    if (truth->classes == 2) {
        row->label = (best > 0) != wrong ? 1 : -1;
        return;
    }
    uint32_t class = 0;
    for (uint32_t c = 1; c < truth->classes; c++) {
        double other = score(truth, c, row->value);
        if (other > best) {
            best = other;
            class = c;
        }
    }
    if (wrong)
        class =
            (class + 1 + (uint32_t)sdr_stream_below(&stream, truth->classes - 1)) % truth->classes;
    row->label = (float)class;
}

static enum sdr_status generate(const struct sdr_generate_options *given, const char *path)
{
    struct sdr_generate_options completed, *options = &completed;
    SDR_TRY(sdr_generate_complete(given, 100, 0, FEATURES_MOST, options));
    SDR_TRY(sdr_generate_share(options));
    struct truth truth = {.seed = options->seed,
                          .noise = options->noise,
                          .classes = options->classes > 2 ? (uint32_t)options->classes : 2};
    struct sdr_text text = {0};
    enum sdr_status status;
    if (options->classes > CLASSES_MOST)
        return sdr_fail(SDR_USAGE, "--classes must be at most %d here", CLASSES_MOST);
    truth.features = (uint32_t)options->features;
    size_t count = (size_t)vectors(&truth) * truth.features;
    SDR_TRY(sdr_allocate(&truth.weight, count, sizeof *truth.weight, "the true weights"));
    struct sdr_stream stream = sdr_stream_open(options->seed, SDR_FOR_GENERATE, SDR_TRUTH_STREAM);
    for (size_t i = 0; i < count; i++)
        truth.weight[i] = (float)(sdr_stream_normal(&stream) / sqrt(truth.features));
    struct sdr_generate_table table = {
        .rows = options->rows,
        .features = truth.features,
        .labels = truth.classes == 2 ? SDR_LABEL_SIGN : SDR_LABEL_CLASS,
        .make = make,
        .truth = &truth,
    };
    SDR_CHECK(sdr_generate_table(&table, path));
    sdr_truth_begin(&text, "dense-classification", options);
    sdr_truth_weights(&text, "weights", truth.weight, count, NULL); /* class × features + feature */
    status = sdr_truth_write(&text, path);
cleanup:
    sdr_release(truth.weight);
    return status;
}

SDR_REGISTER(generator, dense_classification) = {
    .name = "dense-classification",
    .summary = "Gaussian features, classes by planted linear functions",
    .make = generate,
};
