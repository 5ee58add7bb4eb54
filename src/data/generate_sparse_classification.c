/* Document-like sparse rows (see zipf.h), classes by a planted sparse linear separator. Two
   classes: y = +1 if ⟨w, x⟩ > threshold, for about 47 % of the rows as in RCV1's CCAT; more
   classes: the largest ⟨w_c, x⟩. A fraction `noise` of the labels is flipped (or replaced by a
   random other class), so the best possible accuracy is 1 − noise. */
#include "data/zipf.h"

#include <stdlib.h>

enum { TRIALS = 16384, CLASSES_MOST = 1000 };

struct truth {
    struct sdr_zipf zipf;
    uint32_t classes;
    float **weight; /* owned: one vector for two classes, else one per class; by rank */
    double threshold, noise;
};

static uint32_t vectors(const struct truth *truth)
{
    return truth->classes > 2 ? truth->classes : 1;
}

static void make(const void *context, uint64_t number, struct sdr_generate_row *row)
{
    const struct truth *truth = context;
    struct sdr_stream stream = sdr_stream_open(truth->zipf.seed, SDR_FOR_GENERATE, number);
    sdr_zipf_row(&truth->zipf, &stream, row);
    bool wrong = sdr_stream_uniform(&stream) < truth->noise;
    double best = sdr_zipf_score(&truth->zipf, row, truth->weight[0]);
    if (truth->classes == 2) {
        row->label = (best > truth->threshold) != wrong ? 1 : -1;
        return;
    }
    uint32_t class = 0;
    for (uint32_t c = 1; c < truth->classes; c++) {
        double score = sdr_zipf_score(&truth->zipf, row, truth->weight[c]);
        if (score > best) {
            best = score;
            class = c;
        }
    }
    if (wrong)
        class =
            (class + 1 + (uint32_t)sdr_stream_below(&stream, truth->classes - 1)) % truth->classes;
    row->label = (float)class;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The 53 % quantile of the scores of rows outside of any file, so that it does not depend on
   --rows. */
static enum sdr_status find_threshold(struct truth *truth)
{
    double *score = NULL;
    struct sdr_generate_row row = {0};
    enum sdr_status status;
    uint32_t most = sdr_zipf_most(&truth->zipf);
    SDR_CHECK(sdr_allocate(&score, TRIALS, sizeof *score, "trial rows"));
    SDR_CHECK(sdr_allocate(&row.index, most, sizeof *row.index, "trial rows"));
    SDR_CHECK(sdr_allocate(&row.value, most, sizeof *row.value, "trial rows"));
    SDR_CHECK(sdr_allocate(&row.scratch, sdr_zipf_scratch(&truth->zipf), 1, "trial rows"));
    for (uint64_t i = 0; i < TRIALS; i++) {
        struct sdr_stream stream =
            sdr_stream_open(truth->zipf.seed, SDR_FOR_GENERATE, SDR_TRIAL_STREAM + i);
        sdr_zipf_row(&truth->zipf, &stream, &row);
        score[i] = sdr_zipf_score(&truth->zipf, &row, truth->weight[0]);
    }
    qsort(score, TRIALS, sizeof *score, by_size);
    truth->threshold = score[(size_t)(0.53 * TRIALS)];
cleanup:
    sdr_release(score);
    sdr_release(row.index);
    sdr_release(row.value);
    sdr_release(row.scratch);
    return status;
}

static enum sdr_status write_truth(const struct truth *truth,
                                   const struct sdr_generate_options *options, const char *path)
{
    struct sdr_text text = {0};
    sdr_truth_begin(&text, "sparse-classification", options);
    if (truth->classes == 2) {
        sdr_truth_number(&text, "threshold", truth->threshold);
        sdr_truth_weights(&text, "weights", truth->weight[0], truth->zipf.features,
                          truth->zipf.place);
    }
    return sdr_truth_write(&text, path);
}

static enum sdr_status generate(const struct sdr_generate_options *given, const char *path)
{
    struct sdr_generate_options completed, *options = &completed;
    uint64_t nnz = given->features / 4 && given->features < 4 * 84 ? given->features / 4 : 84;
    SDR_TRY(sdr_generate_complete(given, 47236, nnz, 1 << 28, options));
    SDR_TRY(sdr_generate_share(options));
    struct truth truth = {.classes = options->classes > 2 ? (uint32_t)options->classes : 2,
                          .noise = options->noise};
    enum sdr_status status;
    if (options->classes > CLASSES_MOST)
        return sdr_fail(SDR_USAGE, "--classes must be at most %d here", CLASSES_MOST);
    SDR_TRY(sdr_zipf_build(&truth.zipf, options->features, options->nnz, options->seed));
    SDR_CHECK(
        sdr_allocate(&truth.weight, vectors(&truth), sizeof *truth.weight, "the true weights"));
    for (uint32_t c = 0; c < vectors(&truth); c++)
        SDR_CHECK(sdr_zipf_weights(&truth.zipf, c, &truth.weight[c]));
    if (truth.classes == 2)
        SDR_CHECK(find_threshold(&truth));
    struct sdr_generate_table table = {
        .rows = options->rows,
        .features = truth.zipf.features,
        .most = sdr_zipf_most(&truth.zipf),
        .scratch = sdr_zipf_scratch(&truth.zipf),
        .labels = truth.classes == 2 ? SDR_LABEL_SIGN : SDR_LABEL_CLASS,
        .make = make,
        .truth = &truth,
    };
    SDR_CHECK(sdr_generate_table(&table, path));
    status = write_truth(&truth, options, path);
cleanup:
    for (uint32_t c = 0; truth.weight && c < vectors(&truth); c++)
        sdr_release(truth.weight[c]);
    sdr_release(truth.weight);
    sdr_zipf_free(&truth.zipf);
    return status;
}

SDR_REGISTER(generator, sparse_classification) = {
    .name = "sparse-classification",
    .summary = "documents like RCV1: Zipf words, tf-idf, a planted sparse separator",
    .make = generate,
};
