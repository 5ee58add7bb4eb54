/* A Gaussian mixture: --classes centres from N(0, 1), points at centre + noise × N(0, 1), each with
   the number of its cluster as label. Clusters differ in size by up to about a factor of two. */
#include "data/generate.h"

enum { CLUSTERS = 10, CLUSTERS_MOST = 1 << 20, NUMBERS_MOST = 1 << 28, FEATURES_MOST = 1 << 22 };

struct truth {
    uint64_t seed;
    uint32_t features, clusters;
    float *centre; /* owned: (clusters, features) */
    struct sdr_alias share;
    double noise;
};

static void make(const void *context, uint64_t number, struct sdr_generate_row *row)
{
    const struct truth *truth = context;
    struct sdr_stream stream = sdr_stream_open(truth->seed, SDR_FOR_GENERATE, number);
    uint32_t cluster = sdr_alias_draw(&truth->share, &stream);
    const float *centre = truth->centre + (size_t)cluster * truth->features;
    for (uint32_t j = 0; j < truth->features; j++)
        row->value[j] = (float)(centre[j] + truth->noise * sdr_stream_normal(&stream));
    row->label = (float)cluster;
}

static enum sdr_status draw_truth(struct truth *truth)
{
    struct sdr_stream stream = sdr_stream_open(truth->seed, SDR_FOR_GENERATE, SDR_TRUTH_STREAM);
    size_t numbers = (size_t)truth->clusters * truth->features;
    double *share;
    SDR_TRY(sdr_allocate(&truth->centre, numbers, sizeof *truth->centre, "the centres"));
    SDR_TRY(sdr_allocate(&share, truth->clusters, sizeof *share, "the clusters"));
    for (uint32_t c = 0; c < truth->clusters; c++)
        share[c] = 1 + sdr_stream_uniform(&stream);
    for (size_t i = 0; i < numbers; i++)
        truth->centre[i] = (float)sdr_stream_normal(&stream);
    enum sdr_status status = sdr_alias_build(&truth->share, share, truth->clusters);
    sdr_release(share);
    return status;
}

static enum sdr_status generate(const struct sdr_generate_options *given, const char *path)
{
    struct sdr_generate_options completed, *options = &completed;
    SDR_TRY(sdr_generate_complete(given, 20, 0, FEATURES_MOST, options));
    struct truth truth = {.seed = options->seed, .noise = options->noise};
    struct sdr_text text = {0};
    enum sdr_status status;
    uint64_t clusters = options->classes < 1 ? CLUSTERS : options->classes;
    if (clusters > CLUSTERS_MOST || clusters * options->features > NUMBERS_MOST)
        return sdr_fail(SDR_USAGE, "--classes %llu are too many clusters",
                        (unsigned long long)clusters);
    truth.clusters = (uint32_t)clusters;
    truth.features = (uint32_t)options->features;
    SDR_CHECK(draw_truth(&truth));
    struct sdr_generate_table table = {
        .rows = options->rows,
        .features = truth.features,
        .labels = SDR_LABEL_CLASS,
        .make = make,
        .truth = &truth,
    };
    SDR_CHECK(sdr_generate_table(&table, path));
    sdr_truth_begin(&text, "clusters", options);
    sdr_truth_number(&text, "clusters", truth.clusters);
    sdr_truth_weights(&text, "centres", truth.centre, (size_t)truth.clusters * truth.features,
                      NULL);
    status = sdr_truth_write(&text, path);
cleanup:
    sdr_release(truth.centre);
    sdr_alias_free(&truth.share);
    return status;
}

SDR_REGISTER(generator, clusters) = {
    .name = "clusters",
    .summary = "a Gaussian mixture; labels are the clusters",
    .make = generate,
};
