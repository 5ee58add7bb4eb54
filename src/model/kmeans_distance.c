/* Distances of rows from the centers of k-means.

   They are computed as differences of squares, |x|² − 2xc + |c|², all products of several rows at a
   time. So the origin should lie among the rows: it is their mean, or zero for mostly-zero rows. It
   is stored with the model. */
#include "kernel/cluster.h"
#include "kernel/linear.h"
#include "model/kmeans.h"

#include <math.h>
#include <string.h>

double sdr_kmeans_square(const float *x, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += (double)x[i] * x[i];
    return sum;
}

static void prepare(const struct sdr_view *view, struct sdr_centers *c)
{
    const struct sdr_problem *problem = view->problem;
    const float *count = view->w + view->block[1].offset;
    c->sum = view->w + view->block[0].offset;
    c->origin = view->w + view->block[2].offset;
    c->count = problem->outputs;
    c->rows = count;
    c->kernels = sdr_cluster_kernels(sdr_cpu_level());
    for (uint32_t k = 0; k < c->count; k++)
        c->whole[k] = -1;
    for (uint32_t k = 0; k < c->count; k++)
        c->share[k] = count[k] > 0 ? 1.0f / count[k] : 0.0f; /* 0: damaged model */
    c->kernels->squares(c->sum, c->share, problem->features, c->count, c->norm);
    for (uint32_t k = 0; k < c->count; k++)
        c->share[k] *= 2;
    c->origin_length = sdr_kmeans_square(c->origin, problem->features);
    memset(c->moved, 0, c->count * sizeof *c->moved);
    if (!problem->rows->dense && c->origin_length > 0)
        problem->kernels->scores(c->sum, c->origin, NULL, problem->features, c->count, c->moved);
}

float sdr_kmeans_length(const struct sdr_problem *problem, const struct sdr_centers *c,
                        uint32_t row)
{
    const struct sdr_rows *rows = problem->rows;
    if (rows->dense)
        return c->kernels->length(sdr_dense_row(rows, row), c->origin, rows->features);
    struct sdr_sparse_row r = sdr_sparse_row(rows, row);
    if (c->origin_length == 0)
        return c->kernels->length(r.x, NULL, r.n);
    double length = c->origin_length; /* double: origin and row may be far from zero */
    for (uint32_t n = 0; n < r.n; n++) {
        double o = c->origin[sdr_row_index(&r, n)], x = r.x[n];
        length += (x - o) * (x - o) - o * o;
    }
    return (float)length;
}

void sdr_kmeans_multiply(const struct sdr_problem *problem, const struct sdr_centers *c,
                         const uint32_t *row, uint32_t count, float *product, float *length)
{
    const struct sdr_rows *rows = problem->rows;
    const float *x[SDR_TOGETHER];
    for (uint32_t i = 0; i < count; i++)
        length[i] = sdr_kmeans_length(problem, c, row[i]);
    if (rows->dense) {
        for (uint32_t i = 0; i < count; i++)
            x[i] = sdr_dense_row(rows, row[i]);
        memset(product, 0, (size_t)count * c->count * sizeof *product);
        problem->kernels->scores_together(c->sum, x, count, c->origin, rows->features, c->count,
                                          product);
        return;
    }
    for (uint32_t i = 0; i < count; i++, product += c->count) {
        struct sdr_sparse_row r = sdr_sparse_row(rows, row[i]);
        for (uint32_t k = 0; k < c->count; k++)
            product[k] = -c->moved[k];
        if (r.index16)
            problem->kernels->scores16(c->sum, r.index16, r.x, r.n, c->count, product);
        else
            problem->kernels->scores32(c->sum, r.index32, r.x, r.n, c->count, product);
    }
}

/* ---- distances that rounding would hide ----
   |x|² − 2xc + |c|² in floats is wrong by some millionths of |x|². The distance of a row to a center
   nearer than √SDR_CANCELLED·|x| is computed term by term, and so are those to all centers that come
   as near within the rounding error. */
#define ROUNDING 4e-5f

static double center_at(const struct sdr_centers *c, uint32_t k, uint32_t j, double share)
{
    return c->origin[j] + (double)c->sum[(size_t)j * c->count + k] * share;
}

double sdr_kmeans_exact(const struct sdr_problem *problem, struct sdr_centers *c, uint32_t row,
                        uint32_t k)
{
    const struct sdr_rows *rows = problem->rows;
    double share = !c->rows ? 1 : c->rows[k] > 0 ? 1.0 / c->rows[k] : 0, distance = 0;
    if (rows->dense) {
        const float *x = sdr_dense_row(rows, row);
        for (uint32_t j = 0; j < rows->features; j++) {
            double d = x[j] - center_at(c, k, j, share);
            distance += d * d;
        }
        return distance;
    }
    if (c->whole[k] < 0) {
        c->whole[k] = 0;
        for (uint32_t j = 0; j < rows->features; j++)
            c->whole[k] += center_at(c, k, j, share) * center_at(c, k, j, share);
    }
    distance = c->whole[k];
    struct sdr_sparse_row r = sdr_sparse_row(rows, row);
    for (uint32_t n = 0; n < r.n; n++) {
        double center = center_at(c, k, sdr_row_index(&r, n), share), d = r.x[n] - center;
        distance += d * d - center * center;
    }
    return distance < 0 ? 0 : distance;
}

/* The nearest of the centers whose product·share − norm is `least` or more. */
static uint32_t nearest_exactly(const struct sdr_problem *problem, struct sdr_centers *c,
                                uint32_t row, const float *product, float least, double *distance)
{
    uint32_t best = 0;
    *distance = INFINITY;
    for (uint32_t k = 0; k < c->count; k++) {
        if (product[k] * c->share[k] - c->norm[k] < least)
            continue;
        double exact = sdr_kmeans_exact(problem, c, row, k);
        best = exact < *distance ? k : best;
        *distance = exact < *distance ? exact : *distance;
    }
    return best;
}

/* Replaces the scores of the nearest centers by exact ones. */
static void score_exactly(const struct sdr_problem *problem, struct sdr_centers *c, uint32_t row,
                          float length, float *scores)
{
    float best = -INFINITY;
    for (uint32_t k = 0; k < c->count; k++)
        best = scores[k] > best ? scores[k] : best;
    if (-best >= SDR_CANCELLED * length)
        return;
    for (uint32_t k = 0; k < c->count; k++)
        if (scores[k] >= best - ROUNDING * 2 * length)
            scores[k] = (float)-sdr_kmeans_exact(problem, c, row, k);
}

enum sdr_status sdr_kmeans_score(const struct sdr_view *view, const struct sdr_batch *batch,
                                 void *workspace, float *scores)
{
    struct sdr_centers c;
    float length[SDR_TOGETHER];
    (void)workspace;
    prepare(view, &c);
    for (uint32_t i = 0, n; i < batch->count; i += n) {
        n = batch->count - i < SDR_TOGETHER ? batch->count - i : SDR_TOGETHER;
        sdr_kmeans_multiply(view->problem, &c, batch->row + i, n, scores, length);
        for (uint32_t r = 0; r < n; r++, scores += c.count) {
            for (uint32_t k = 0; k < c.count; k++)
                scores[k] = scores[k] * c.share[k] - c.norm[k] - length[r];
            score_exactly(view->problem, &c, batch->row[i + r], length[r], scores);
        }
    }
    return SDR_OK;
}

double sdr_kmeans_assign(const struct sdr_view *view, const struct sdr_batch *batch,
                         uint32_t *cluster, float *bound)
{
    enum { AHEAD = 2 * SDR_TOGETHER }; /* prefetch distance in rows */
    const struct sdr_problem *problem = view->problem;
    struct sdr_centers c;
    float product[SDR_TOGETHER * SDR_CLUSTERS_MOST], length[SDR_TOGETHER], value, second;
    double sum = 0;
    prepare(view, &c);
    for (uint32_t i = 0, n; i < batch->count; i += n) {
        n = batch->count - i < SDR_TOGETHER ? batch->count - i : SDR_TOGETHER;
        for (uint32_t r = i + AHEAD; r < i + AHEAD + n && r < batch->count; r++)
            sdr_fetch_row(problem, batch->row[r]);
        sdr_kmeans_multiply(problem, &c, batch->row + i, n, product, length);
        for (uint32_t r = 0; r < n; r++) {
            double weight = problem->row_weight ? problem->row_weight[batch->row[i + r]] : 1.0f;
            cluster[i + r] = c.kernels->nearest(product + (size_t)r * c.count, c.share, c.norm,
                                                c.count, &value, &second);
            double distance = (double)length[r] - value;
            if (distance < SDR_CANCELLED * length[r]) {
                float least = value - ROUNDING * (length[r] + fabsf(value));
                cluster[i + r] = nearest_exactly(problem, &c, batch->row[i + r],
                                                 product + (size_t)r * c.count, least, &distance);
                second = second < least ? second : value; /* which may be another center's now */
            }
            if (bound)
                bound[i + r] = length[r] - second - ROUNDING * (length[r] + fabsf(second));
            sum += distance > 0 ? weight * distance : 0;
        }
    }
    return sum;
}
