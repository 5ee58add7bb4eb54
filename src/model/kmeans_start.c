/* The initial centers of k-means: rows far from each other, by greedy k-means++ (Arthur and
   Vassilvitskii, 2007). */
#include "base/memory.h"
#include "base/rng.h"
#include "kernel/cluster.h"
#include "kernel/linear.h"
#include "model/kmeans.h"

#include <math.h>
#include <string.h>

enum { CANDIDATES_MOST = 16 };
/* A sample of the rows, with the distance of each to the nearest center chosen so far. */
struct seeding {
    const struct sdr_problem *problem;
    uint32_t *row; /* row numbers, `count` of them */
    uint32_t count;
    float *length;       /* squared length of each row */
    double *distance;    /* squared, to the nearest center */
    uint32_t candidates; /* rows tried for each next center */
    uint32_t candidate[CANDIDATES_MOST];
    const float *origin;
    float *point;   /* the candidates, features × candidates */
    float *product; /* rows × candidates: inner products */
};

/* Copies a row, scaled and centered as the kernels see it, into one column of `to`. */
static void copy_row(const struct sdr_problem *problem, uint32_t row, float *to, size_t columns)
{
    const struct sdr_rows *rows = problem->rows;
    if (rows->dense) {
        const float *x = sdr_dense_row(rows, row);
        for (uint32_t j = 0; j < rows->features; j++)
            to[j * columns] = problem->center ? x[j] - problem->center[j] : x[j];
        return;
    }
    struct sdr_sparse_row r = sdr_sparse_row(rows, row);
    for (uint32_t j = 0; j < rows->features; j++)
        to[j * columns] = problem->center ? -problem->center[j] : 0;
    for (uint32_t n = 0; n < r.n; n++)
        to[sdr_row_index(&r, n) * columns] += r.x[n];
}

/* Squared distance of sample row n to candidate t. */
static double apart(const struct seeding *s, struct sdr_centers *c, uint32_t n, uint32_t t)
{
    uint32_t i = s->candidate[t];
    double d =
        (double)s->length[n] + s->length[i] - 2 * (double)s->product[(size_t)n * s->candidates + t];
    if (n == i)
        return 0;
    return d < SDR_CANCELLED * s->length[n] ? sdr_kmeans_exact(s->problem, c, s->row[n], t) : d;
}

static double weight_of(const struct seeding *s, uint32_t n)
{
    return s->problem->row_weight ? s->problem->row_weight[s->row[n]] : 1.0;
}

/* Draws a row with probability proportional to distance × weight. */
static uint32_t draw(const struct seeding *s, struct sdr_stream *stream, double sum)
{
    double left = sdr_stream_uniform(stream) * sum;
    if (!(sum > 0) || !isfinite(sum))
        return (uint32_t)sdr_stream_below(stream, s->count);
    for (uint32_t i = 0; i < s->count; i++) {
        left -= weight_of(s, i) * s->distance[i];
        if (left < 0)
            return i;
    }
    return s->count - 1;
}

/* Picks the candidate that minimises the remaining sum of distances as the next center and returns
   its number. *sum: the sum of distances, before and after. */
static uint32_t choose(struct seeding *s, struct sdr_stream *stream, double *sum)
{
    struct sdr_centers c = {.sum = s->point,
                            .origin = s->origin,
                            .count = s->candidates,
                            .kernels = sdr_cluster_kernels(sdr_cpu_level())};
    double left[CANDIDATES_MOST] = {0};
    uint32_t best = 0;
    float length[SDR_TOGETHER];
    for (uint32_t t = 0; t < s->candidates; t++) {
        c.whole[t] = -1;
        s->candidate[t] = draw(s, stream, *sum);
        copy_row(s->problem, s->row[s->candidate[t]], s->point + t, s->candidates);
    }
    c.origin_length = sdr_kmeans_square(s->origin, s->problem->features);
    if (!s->problem->rows->dense && c.origin_length > 0)
        s->problem->kernels->scores(s->point, s->origin, NULL, s->problem->features, s->candidates,
                                    c.moved);
    for (uint32_t n = 0; n < s->count; n += SDR_TOGETHER) {
        uint32_t some = s->count - n < SDR_TOGETHER ? s->count - n : SDR_TOGETHER;
        sdr_kmeans_multiply(s->problem, &c, s->row + n, some,
                            s->product + (size_t)n * s->candidates, length);
    }
    for (uint32_t n = 0; n < s->count; n++)
        for (uint32_t t = 0; t < s->candidates; t++)
            left[t] += weight_of(s, n) * fmin(apart(s, &c, n, t), s->distance[n]);
    for (uint32_t t = 1; t < s->candidates; t++)
        best = left[t] < left[best] ? t : best;
    for (uint32_t n = 0; n < s->count; n++)
        s->distance[n] = fmin(apart(s, &c, n, best), s->distance[n]);
    *sum = left[best];
    return s->candidate[best];
}

static enum sdr_status open_seeding(struct seeding *s, const struct sdr_problem *problem,
                                    const struct sdr_batch *rows, const float *origin)
{
    const double work = 1e9; /* multiplications: well below a second */
    uint32_t candidates = 2 + (uint32_t)log(problem->outputs);
    double some = fmax(work / ((double)problem->outputs * candidates * problem->features),
                       8.0 * problem->outputs);
    struct sdr_centers c = {.origin = origin, .kernels = sdr_cluster_kernels(sdr_cpu_level())};
    *s = (struct seeding){.problem = problem,
                          .origin = origin,
                          .candidates = candidates < CANDIDATES_MOST ? candidates : CANDIDATES_MOST,
                          .count = rows->count < some ? rows->count : (uint32_t)some};
    size_t points = (size_t)problem->features * s->candidates;
    SDR_TRY(sdr_allocate(&s->row, s->count, sizeof *s->row, "seeding"));
    SDR_TRY(sdr_allocate(&s->length, s->count, sizeof *s->length, "seeding"));
    SDR_TRY(sdr_allocate(&s->distance, s->count, sizeof *s->distance, "seeding"));
    SDR_TRY(sdr_allocate(&s->product, (size_t)s->count * s->candidates, sizeof(float), "seeding"));
    SDR_TRY(sdr_allocate(&s->point, points, sizeof *s->point, "seeding"));
    c.origin_length = sdr_kmeans_square(origin, problem->features);
    sdr_sample(problem->seed, rows->count, s->count, s->row);
    for (uint32_t i = 0; i < s->count; i++) {
        if (rows->row)
            s->row[i] = rows->row[s->row[i]];
        s->distance[i] = INFINITY;
        s->length[i] = sdr_kmeans_length(problem, &c, s->row[i]);
    }
    return SDR_OK;
}

/* Writes all blocks to `w`. */
static enum sdr_status choose_centers(const struct sdr_problem *problem,
                                      const struct sdr_block *block, const struct sdr_batch *rows,
                                      float *w)
{
    uint32_t clusters = problem->outputs;
    struct sdr_stream stream = sdr_stream_open(problem->seed, SDR_FOR_START, 0);
    struct seeding s;
    double sum = INFINITY;
    for (uint32_t j = 0; j < problem->features && problem->center; j++)
        w[block[2].offset + j] = problem->center[j];
    enum sdr_status status = open_seeding(&s, problem, rows, w + block[2].offset);
    for (uint32_t k = 0; k < clusters && status == SDR_OK; k++) {
        uint32_t chosen = choose(&s, &stream, &sum);
        copy_row(problem, s.row[chosen], w + block[0].offset + k, clusters);
        w[block[1].offset + k] = 1;
    }
    sdr_release(s.row);
    sdr_release(s.length);
    sdr_release(s.distance);
    sdr_release(s.product);
    sdr_release(s.point);
    return status;
}

/* Centers are rows that lie far from one another: all are chosen, whoever holds them. */
enum sdr_status sdr_kmeans_start(const struct sdr_problem *problem, const struct sdr_block *block,
                                 const struct sdr_batch *rows, double size, struct sdr_span span,
                                 float *w)
{
    uint64_t count = block[2].offset + (uint64_t)block[2].rows * block[2].cols;
    uint64_t end = span.end < count ? span.end : count;
    float *all;
    (void)size;
    if (rows->count < problem->outputs)
        return sdr_fail(SDR_BAD_DATA, "kmeans:%u needs at least as many rows: there are %u",
                        problem->outputs, rows->count);
    SDR_TRY(sdr_allocate(&all, count, sizeof *all, "centers to start from"));
    enum sdr_status status = choose_centers(problem, block, rows, all);
    if (status == SDR_OK && span.first < end)
        memcpy(w + span.first, all + span.first, (end - span.first) * sizeof *w);
    sdr_release(all);
    return status;
}
