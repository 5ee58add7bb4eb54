/* Documents from latent Dirichlet allocation (Blei et al. 2003): topics over --features words from
   a Dirichlet prior around a Zipf law, mixtures of --classes topics (default 20) from
   Dirichlet(0.1), about --nnz words (default 100) per document. Values are word counts, labels the
   main topics. A .txt file gets lines "document word count", counted from 1. */
#include "data/generate.h"

#include <math.h>
#include <stdlib.h>

enum {
    TOPICS = 20,
    TOPICS_MOST = 1000,
    LENGTH = 100,
    LENGTH_MOST = 1 << 20,
    TOP_WORDS = 10,
    NUMBERS_MOST = 1 << 28,
    FEATURES_MOST = 1 << 24
};
static const double ALPHA = 0.1;

struct truth {
    uint64_t seed;
    uint32_t features, topics;
    double length;
    struct sdr_alias *word;     /* owned: one per topic */
    uint32_t (*top)[TOP_WORDS]; /* owned: the most frequent words of each topic */
};
struct scratch {
    double mixture[TOPICS_MOST];
    uint32_t count[]; /* per word; zero between rows */
};

/* Gamma(shape, 1): Marsaglia and Tsang 2000; shapes below 1 by Gamma(shape + 1) U^(1/shape). */
static double draw_gamma(double shape, struct sdr_stream *stream)
{
    double boost = 1;
    if (shape < 1) {
        boost = pow(1 - sdr_stream_uniform(stream), 1 / shape);
        shape += 1;
    }
    double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        double x = sdr_stream_normal(stream), v = 1 + c * x;
        if (v <= 0)
            continue;
        v = v * v * v;
        if (log(1 - sdr_stream_uniform(stream)) < 0.5 * x * x + d - d * v + d * log(v))
            return boost * d * v;
    }
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Cumulative sums of the mixture; returns the main topic. */
static uint32_t draw_mixture(const struct truth *truth, double *mixture, struct sdr_stream *stream)
{
    double sum = 0, most = -1;
    uint32_t main_topic = 0;
    for (uint32_t t = 0; t < truth->topics; t++) {
        double weight = draw_gamma(ALPHA, stream) + 1e-12;
        if (weight > most) {
            most = weight;
            main_topic = t;
        }
        mixture[t] = sum += weight;
    }
    return main_topic;
}

static uint32_t draw_topic(const struct truth *truth, const double *mixture,
                           struct sdr_stream *stream)
{
    double place = sdr_stream_uniform(stream) * mixture[truth->topics - 1];
    uint32_t low = 0, high = truth->topics - 1;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (mixture[middle] > place)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static uint32_t longest(const struct truth *truth)
{
    return (uint32_t)(8 * truth->length) + 10;
}

static void make(const void *context, uint64_t number, struct sdr_generate_row *row)
{
    const struct truth *truth = context;
    struct scratch *scratch = row->scratch;
    struct sdr_stream stream = sdr_stream_open(truth->seed, SDR_FOR_GENERATE, number);
    row->label = (float)draw_mixture(truth, scratch->mixture, &stream);
    double wanted = ceil(draw_gamma(4, &stream) * truth->length / 4);
    uint32_t length = wanted < longest(truth) ? (uint32_t)wanted : longest(truth), count = 0;
    for (uint32_t i = 0; i < length; i++) {
        uint32_t topic = draw_topic(truth, scratch->mixture, &stream);
        uint32_t word = sdr_alias_draw(&truth->word[topic], &stream);
        if (scratch->count[word]++ == 0)
            row->index[count++] = word;
    }
    qsort(row->index, count, sizeof *row->index, by_number);
    for (uint32_t k = 0; k < count; k++) {
        row->value[k] = (float)scratch->count[row->index[k]];
        scratch->count[row->index[k]] = 0;
    }
    row->count = count;
}

/* Keeps the TOP_WORDS largest, largest first. */
static void keep_top(const double *weight, uint32_t count, uint32_t top[TOP_WORDS])
{
    uint32_t kept = 0;
    for (uint32_t w = 0; w < count; w++) {
        uint32_t at = kept < TOP_WORDS ? kept++ : TOP_WORDS;
        if (at == TOP_WORDS && weight[w] <= weight[top[TOP_WORDS - 1]])
            continue;
        for (at = at == TOP_WORDS ? TOP_WORDS - 1 : at; at > 0 && weight[top[at - 1]] < weight[w];
             at--)
            top[at] = top[at - 1];
        top[at] = w;
    }
}

static enum sdr_status draw_topics(struct truth *truth)
{
    double *weight, sum = 0;
    uint32_t *place = NULL;
    enum sdr_status status;
    SDR_TRY(sdr_allocate(&weight, truth->features, sizeof *weight, "the topics"));
    SDR_CHECK(sdr_allocate(&place, truth->features, sizeof *place, "the topics"));
    SDR_CHECK(sdr_allocate(&truth->word, truth->topics, sizeof *truth->word, "the topics"));
    SDR_CHECK(sdr_allocate(&truth->top, truth->topics, sizeof *truth->top, "the topics"));
    struct sdr_stream stream = sdr_stream_open(truth->seed, SDR_FOR_GENERATE, SDR_TRUTH_STREAM);
    sdr_shuffle(place, truth->features, &stream); /* so that words are not in frequency order */
    for (uint32_t w = 0; w < truth->features; w++)
        sum += 1 / (w + 20.0);
    for (uint32_t t = 0; t < truth->topics; t++) {
        stream = sdr_stream_open(truth->seed, SDR_FOR_GENERATE, SDR_TRUTH_STREAM + 1 + t);
        for (uint32_t w = 0; w < truth->features; w++) {
            double shape = truth->features * 0.01 / ((w + 20.0) * sum);
            weight[place[w]] = draw_gamma(shape > 1e-4 ? shape : 1e-4, &stream) + 1e-12;
        }
        keep_top(weight, truth->features, truth->top[t]);
        SDR_CHECK(sdr_alias_build(&truth->word[t], weight, truth->features));
    }
cleanup:
    sdr_release(weight);
    sdr_release(place);
    return status;
}

static enum sdr_status write_truth(const struct truth *truth,
                                   const struct sdr_generate_options *options, const char *path)
{
    struct sdr_text text = {0};
    uint32_t words = truth->features < TOP_WORDS ? truth->features : TOP_WORDS;
    sdr_truth_begin(&text, "documents", options);
    sdr_truth_number(&text, "topics", truth->topics);
    sdr_truth_number(&text, "alpha", ALPHA);
    sdr_text_add(&text, ",\n \"top_words\": ["); /* counted from 0 */
    for (uint32_t t = 0; t < truth->topics; t++) {
        sdr_text_add(&text, t ? ",\n  [" : "[");
        for (uint32_t i = 0; i < words; i++)
            sdr_text_add(&text, "%s%u", i ? ", " : "", truth->top[t][i]);
        sdr_text_add(&text, "]");
    }
    sdr_text_add(&text, "]");
    return sdr_truth_write(&text, path);
}

static enum sdr_status generate(const struct sdr_generate_options *given, const char *path)
{
    struct sdr_generate_options completed, *options = &completed;
    SDR_TRY(sdr_generate_complete(given, 5000, LENGTH, FEATURES_MOST, options));
    struct truth truth = {.seed = options->seed,
                          .topics = options->classes > 2 ? (uint32_t)options->classes : TOPICS,
                          .length = options->nnz ? (double)options->nnz : LENGTH};
    enum sdr_status status;
    if (options->classes > TOPICS_MOST || truth.topics * options->features > NUMBERS_MOST ||
        options->nnz > LENGTH_MOST)
        return sdr_fail(SDR_USAGE,
                        "documents take at most %d topics (--classes) and %d words a "
                        "document (--nnz)",
                        TOPICS_MOST, LENGTH_MOST);
    truth.features = (uint32_t)options->features;
    SDR_CHECK(draw_topics(&truth));
    struct sdr_generate_table table = {
        .rows = options->rows,
        .features = truth.features,
        .most = longest(&truth) < truth.features ? longest(&truth) : truth.features,
        .scratch = sizeof(struct scratch) + truth.features * sizeof(uint32_t),
        .labels = SDR_LABEL_CLASS,
        .whole = true,
        .triples = true,
        .make = make,
        .truth = &truth,
    };
    SDR_CHECK(sdr_generate_table(&table, path));
    status = write_truth(&truth, options, path);
cleanup:
    for (uint32_t t = 0; truth.word && t < truth.topics; t++)
        sdr_alias_free(&truth.word[t]);
    sdr_release(truth.word);
    sdr_release(truth.top);
    return status;
}

SDR_REGISTER(generator, documents) = {
    .name = "documents",
    .summary = "word counts drawn from latent Dirichlet allocation; labels are the main topics",
    .make = generate,
};
