/* Regression on Gaussian features: y = ⟨w, x⟩ + b + noise × N(0, 1), w ~ N(0, 1), b = 1. With --nnz
   only that many weights are non-zero (for the lasso). */
#include "data/generate.h"

enum { FEATURES_MOST = 1 << 22 };

struct truth {
    uint64_t seed;
    uint32_t features;
    float *weight; /* owned */
    double noise;
};

static void make(const void *context, uint64_t number, struct sdr_generate_row *row)
{
    const struct truth *truth = context;
    struct sdr_stream stream = sdr_stream_open(truth->seed, SDR_FOR_GENERATE, number);
    double sum = 1;
    for (uint32_t j = 0; j < truth->features; j++) {
        row->value[j] = (float)sdr_stream_normal(&stream);
        sum += (double)truth->weight[j] * row->value[j];
    }
    row->label = (float)(sum + truth->noise * sdr_stream_normal(&stream));
}

/* The first nnz features of a random permutation get weights; 0: all features. */
static enum sdr_status draw_weights(struct truth *truth, uint64_t nnz)
{
    uint32_t *order;
    struct sdr_stream stream = sdr_stream_open(truth->seed, SDR_FOR_GENERATE, SDR_TRUTH_STREAM);
    SDR_TRY(
        sdr_allocate(&truth->weight, truth->features, sizeof *truth->weight, "the true weights"));
    SDR_TRY(sdr_allocate(&order, truth->features, sizeof *order, "the true weights"));
    sdr_shuffle(order, truth->features, &stream);
    uint64_t count = nnz == 0 || nnz > truth->features ? truth->features : nnz;
    for (uint64_t i = 0; i < count; i++)
        truth->weight[order[i]] = (float)sdr_stream_normal(&stream);
    sdr_release(order);
    return SDR_OK;
}

static enum sdr_status generate(const struct sdr_generate_options *given, const char *path)
{
    struct sdr_generate_options completed, *options = &completed;
    SDR_TRY(sdr_generate_complete(given, 100, 0, FEATURES_MOST, options));
    struct truth truth = {.seed = options->seed, .noise = options->noise};
    struct sdr_text text = {0};
    enum sdr_status status;
    truth.features = (uint32_t)options->features;
    SDR_CHECK(draw_weights(&truth, options->nnz));
    struct sdr_generate_table table = {
        .rows = options->rows,
        .features = truth.features,
        .labels = SDR_LABEL_NUMBER,
        .make = make,
        .truth = &truth,
    };
    SDR_CHECK(sdr_generate_table(&table, path));
    sdr_truth_begin(&text, "dense-regression", options);
    sdr_truth_number(&text, "bias", 1);
    sdr_truth_weights(&text, "weights", truth.weight, truth.features, NULL);
    status = sdr_truth_write(&text, path);
cleanup:
    sdr_release(truth.weight);
    return status;
}

SDR_REGISTER(generator, dense_regression) = {
    .name = "dense-regression",
    .summary = "Gaussian features, a planted linear function and noise; --nnz non-zero weights",
    .make = generate,
};
