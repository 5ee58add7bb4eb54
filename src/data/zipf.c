#include "data/zipf.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Lengths are exp(N(log length − σ²/2, σ²)), clipped; their mean is `length`. */
static const double SIGMA = 0.6;
enum { GRID = 96, QUANTILES = 64 };

/* The number of draws of a row with standard normal deviate z. */
static uint32_t row_length(double length, double z)
{
    double shortest = ceil(length / 11), longest = ceil(length * 7);
    double draws = exp(log(length) - SIGMA * SIGMA / 2 + SIGMA * z);
    draws = draws < shortest ? shortest : draws > longest ? longest : draws;
    return draws < 1 ? 1 : (uint32_t)draws;
}

/* The q-quantile of the standard normal by bisection; used only during set-up. */
static double normal_quantile(double q)
{
    double low = -8, high = 8;
    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;
        if (erfc(-middle / sqrt(2)) / 2 < q)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}

/* Expected number of distinct features in n draws, Σ 1 − (1 − p)^n, on a geometric grid of n. */
struct growth {
    double step, distinct[GRID];
};

static double distinct_at(const struct growth *growth, double draws)
{
    double place = log(draws < 1 ? 1 : draws) / growth->step;
    size_t k = (size_t)place;
    if (k >= GRID - 1)
        return growth->distinct[GRID - 1];
    return growth->distinct[k] +
           (place - (double)k) * (growth->distinct[k + 1] - growth->distinct[k]);
}

/* Finds the mean length for which rows have nnz distinct features on average. */
static double find_length(const double *p, uint32_t features, double nnz)
{
    struct growth growth = {.step = log(1e7) / (GRID - 1)};
    double low = 1, high = 1e6, z[QUANTILES];
    for (int k = 0; k < GRID; k++)
        for (uint32_t i = 0; i < features; i++)
            growth.distinct[k] += -expm1(exp(growth.step * k) * log1p(-p[i]));
    for (int q = 0; q < QUANTILES; q++)
        z[q] = normal_quantile((q + 0.5) / QUANTILES);
    for (int i = 0; i < 50; i++) {
        double middle = sqrt(low * high), mean = 0;
        for (int q = 0; q < QUANTILES; q++)
            mean += distinct_at(&growth, row_length(middle, z[q])) / QUANTILES;
        if (mean < nnz)
            low = middle;
        else
            high = middle;
    }
    return sqrt(low * high);
}

enum sdr_status sdr_zipf_build(struct sdr_zipf *zipf, uint64_t features, uint64_t nnz,
                               uint64_t seed)
{
    double *p = NULL, sum = 0;
    enum sdr_status status;
    *zipf = (struct sdr_zipf){.features = (uint32_t)features, .seed = seed};
    if (nnz < 1 || nnz * 2 > features)
        return sdr_fail(SDR_USAGE, "--nnz must be from 1 to half of --features here, not %llu",
                        (unsigned long long)nnz);
    SDR_CHECK(sdr_allocate(&p, features, sizeof *p, "the frequencies"));
    SDR_CHECK(sdr_allocate(&zipf->idf, features, sizeof *zipf->idf, "the frequencies"));
    SDR_CHECK(sdr_allocate(&zipf->place, features, sizeof *zipf->place, "the frequencies"));
    SDR_CHECK(sdr_allocate(&zipf->rank, features, sizeof *zipf->rank, "the frequencies"));
    for (uint64_t i = 0; i < features; i++)
        sum += p[i] = pow((double)i + 30, -1.05);
    for (uint64_t i = 0; i < features; i++)
        p[i] /= sum;
    zipf->length = find_length(p, zipf->features, (double)nnz);
    zipf->longest = row_length(zipf->length, 8);
    for (uint64_t i = 0; i < features; i++) {
        double frequency = -expm1(-p[i] * zipf->length);
        /* clipped: a word of every document keeps some weight, so no row is all zeros */
        zipf->idf[i] = (float)-log(frequency > 0.99 ? 0.99 : frequency < 1e-7 ? 1e-7 : frequency);
    }
    struct sdr_stream stream = sdr_stream_open(seed, SDR_FOR_GENERATE, SDR_TRUTH_STREAM);
    sdr_shuffle(zipf->place, zipf->features, &stream);
    for (uint32_t i = 0; i < zipf->features; i++)
        zipf->rank[zipf->place[i]] = i;
    status = sdr_alias_build(&zipf->alias, p, zipf->features);
cleanup:
    sdr_release(p);
    if (status != SDR_OK)
        sdr_zipf_free(zipf);
    return status;
}

void sdr_zipf_free(struct sdr_zipf *zipf)
{
    sdr_alias_free(&zipf->alias);
    sdr_release(zipf->idf);
    sdr_release(zipf->place);
    sdr_release(zipf->rank);
    *zipf = (struct sdr_zipf){0};
}

/* Counts of each feature's draws; zero between rows. */
size_t sdr_zipf_scratch(const struct sdr_zipf *zipf)
{
    return zipf->features * sizeof(uint32_t);
}

uint32_t sdr_zipf_most(const struct sdr_zipf *zipf)
{
    return zipf->longest < zipf->features ? zipf->longest : zipf->features;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

void sdr_zipf_row(const struct sdr_zipf *zipf, struct sdr_stream *stream,
                  struct sdr_generate_row *row)
{
    uint32_t *drawn = row->scratch, count = 0;
    uint32_t length = row_length(zipf->length, sdr_stream_normal(stream));
    if (length > zipf->longest)
        length = zipf->longest;
    for (uint32_t i = 0; i < length; i++) {
        uint32_t feature = zipf->place[sdr_alias_draw(&zipf->alias, stream)];
        if (drawn[feature]++ == 0)
            row->index[count++] = feature;
    }
    qsort(row->index, count, sizeof *row->index, by_number);
    double square = 0;
    for (uint32_t k = 0; k < count; k++) {
        uint32_t feature = row->index[k], times = drawn[feature];
        float value = zipf->idf[zipf->rank[feature]];
        if (times > 1)
            value *= (float)(1 + log(times));
        drawn[feature] = 0;
        row->value[k] = value;
        square += (double)value * value;
    }
    float scale = (float)(1 / sqrt(square));
    for (uint32_t k = 0; k < count; k++)
        row->value[k] *= scale;
    row->count = count;
}

double sdr_zipf_score(const struct sdr_zipf *zipf, const struct sdr_generate_row *row,
                      const float *weight)
{
    double score = 0;
    for (uint32_t k = 0; k < row->count; k++)
        score += (double)row->value[k] * weight[zipf->rank[row->index[k]]];
    return score;
}

enum sdr_status sdr_zipf_weights(const struct sdr_zipf *zipf, uint64_t which, float **weight)
{
    SDR_TRY(sdr_allocate(weight, zipf->features, sizeof **weight, "the true weights"));
    struct sdr_stream stream =
        sdr_stream_open(zipf->seed, SDR_FOR_GENERATE, SDR_TRUTH_STREAM + 1 + which);
    for (uint32_t i = 0; i < zipf->features; i++) {
        double kept = sdr_stream_uniform(&stream), value = sdr_stream_normal(&stream);
        (*weight)[i] = kept < 0.3 ? (float)value : 0;
    }
    return SDR_OK;
}
