/* Regression on document-like sparse rows (see zipf.h): y = ⟨w, x⟩ + noise × N(0, 1); 30 % of the
   weights are N(0, 1), the others zero. */
#include "data/zipf.h"

struct truth {
    struct sdr_zipf zipf;
    float *weight; /* owned, by rank */
    double noise;
};

static void make(const void *context, uint64_t number, struct sdr_generate_row *row)
{
    const struct truth *truth = context;
    struct sdr_stream stream = sdr_stream_open(truth->zipf.seed, SDR_FOR_GENERATE, number);
    sdr_zipf_row(&truth->zipf, &stream, row);
    row->label = (float)(sdr_zipf_score(&truth->zipf, row, truth->weight) +
                         truth->noise * sdr_stream_normal(&stream));
}

static enum sdr_status generate(const struct sdr_generate_options *given, const char *path)
{
    struct sdr_generate_options completed, *options = &completed;
    uint64_t nnz = given->features / 4 && given->features < 4 * 84 ? given->features / 4 : 84;
    SDR_TRY(sdr_generate_complete(given, 47236, nnz, 1 << 28, options));
    struct truth truth = {.noise = options->noise};
    struct sdr_text text = {0};
    enum sdr_status status;
    SDR_TRY(sdr_zipf_build(&truth.zipf, options->features, options->nnz, options->seed));
    SDR_CHECK(sdr_zipf_weights(&truth.zipf, 0, &truth.weight));
    struct sdr_generate_table table = {
        .rows = options->rows,
        .features = truth.zipf.features,
        .most = sdr_zipf_most(&truth.zipf),
        .scratch = sdr_zipf_scratch(&truth.zipf),
        .labels = SDR_LABEL_NUMBER,
        .make = make,
        .truth = &truth,
    };
    SDR_CHECK(sdr_generate_table(&table, path));
    sdr_truth_begin(&text, "sparse-regression", options);
    sdr_truth_weights(&text, "weights", truth.weight, truth.zipf.features, truth.zipf.place);
    status = sdr_truth_write(&text, path);
cleanup:
    sdr_release(truth.weight);
    sdr_zipf_free(&truth.zipf);
    return status;
}

SDR_REGISTER(generator, sparse_regression) = {
    .name = "sparse-regression",
    .summary = "Zipf words with tf-idf values, a planted sparse linear function and noise",
    .make = generate,
};
