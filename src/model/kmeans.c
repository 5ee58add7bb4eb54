/* k-means (Lloyd, 1957; as SGD: Bottou and Bengio, 1995; in batches: Sculley, 2010). Loss of a row:
   the squared distance to the nearest center.

   The parameters are statistics: for each cluster the sum and the count of its rows; a center is
   origin + sum / count. A batch adds its rows to their nearest clusters, which is a gradient step
   of size 1/count on the center. Sums can be added in any order and from any worker, so every
   strategy preserves the contributions of all workers. Sums are halved after every epoch, and the
   weight of rows rises from 1 to 2 within an epoch (schedule `recent`), so that assignments to
   early, poor centers soon lose their influence.

   --sync batch is Lloyd's algorithm: the sums of all rows, recomputed in every epoch.

   Distances are computed as differences of squares, so the origin should lie among the rows: it is
   their mean, or zero for mostly-zero rows. It is stored with the model. Starts from rows far from
   each other: greedy k-means++ (Arthur and Vassilvitskii, 2007). */
#include "model/kmeans.h"
#include "base/memory.h"
#include "base/rng.h"
#include "kernel/cluster.h"
#include "kernel/linear.h"

#include <math.h>
#include <string.h>

enum {
    CLUSTERS_MOST = 4096,
    TOGETHER = 24 /* rows multiplied at a time: a multiple of what the kernels of any level take */
};

struct options {
    uint64_t clusters;
};
static const struct sdr_option table[] = {{"clusters", SDR_INTEGER, "8", "K", 1, CLUSTERS_MOST,
                                           "number of clusters", offsetof(struct options, clusters),
                                           0},
                                          {0}};

static uint32_t outputs_of(const void *options)
{
    return (uint32_t)((const struct options *)options)->clusters;
}

static int shape(const struct sdr_problem *problem, struct sdr_block *block)
{
    block[0] = (struct sdr_block){
        .name = "sum", .rows = problem->features, .cols = problem->outputs, .per_feature = true};
    block[1] = (struct sdr_block){.name = "count", .rows = 1, .cols = problem->outputs};
    block[2] =
        (struct sdr_block){.name = "origin", .rows = problem->features, .cols = 1, .fixed = true};
    return 3;
}

/* Precomputed terms of the distances, shared by all rows. */
struct centers {
    const float *sum, *origin;
    uint32_t count;
    float share[CLUSTERS_MOST]; /* 2 / count */
    float norm[CLUSTERS_MOST];  /* squared length of sum / count */
    float moved[CLUSTERS_MOST]; /* sparse rows: Σ sum·origin */
    double origin_length;       /* squared */
    const struct sdr_cluster_kernels *kernels;
};

static double square_of(const float *x, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += (double)x[i] * x[i];
    return sum;
}

static void prepare_centers(const struct sdr_view *view, struct centers *c)
{
    const struct sdr_problem *problem = view->problem;
    const float *count = view->w + view->block[1].offset;
    c->sum = view->w + view->block[0].offset;
    c->origin = view->w + view->block[2].offset;
    c->count = problem->outputs;
    c->kernels = sdr_cluster_kernels(sdr_cpu_level());
    for (uint32_t k = 0; k < c->count; k++)
        c->share[k] = count[k] > 0 ? 1.0f / count[k] : 0.0f; /* 0: damaged model */
    c->kernels->squares(c->sum, c->share, problem->features, c->count, c->norm);
    for (uint32_t k = 0; k < c->count; k++)
        c->share[k] *= 2;
    c->origin_length = square_of(c->origin, problem->features);
    memset(c->moved, 0, c->count * sizeof *c->moved);
    if (!problem->rows->dense && c->origin_length > 0)
        problem->kernels->scores(c->sum, c->origin, NULL, problem->features, c->count, c->moved);
}

/* Squared distance of a row from the origin. */
static float length_of(const struct sdr_problem *problem, const struct centers *c, uint32_t row)
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

/* Products of up to TOGETHER rows with the sums, and the rows' squared lengths. */
static void multiply(const struct sdr_problem *problem, const struct centers *c,
                     const uint32_t *row, uint32_t count, float *product, float *length)
{
    const struct sdr_rows *rows = problem->rows;
    const float *x[TOGETHER];
    for (uint32_t i = 0; i < count; i++)
        length[i] = length_of(problem, c, row[i]);
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

/* Scores are −(squared distance): the nearest center has the largest. */
static enum sdr_status score(const struct sdr_view *view, const struct sdr_batch *batch,
                             void *workspace, float *scores)
{
    struct centers c;
    float length[TOGETHER];
    (void)workspace;
    prepare_centers(view, &c);
    for (uint32_t i = 0, n; i < batch->count; i += n) {
        n = batch->count - i < TOGETHER ? batch->count - i : TOGETHER;
        multiply(view->problem, &c, batch->row + i, n, scores, length);
        for (uint32_t r = 0; r < n; r++, scores += c.count)
            for (uint32_t k = 0; k < c.count; k++)
                scores[k] = scores[k] * c.share[k] - c.norm[k] - length[r];
    }
    return SDR_OK;
}

/* Rounding must not give a row at its center a negative loss. */
static double loss(const void *options, const float *score, uint32_t outputs, float target,
                   float *dloss)
{
    (void)options, (void)target;
    uint32_t best = 0;
    for (uint32_t k = 1; k < outputs; k++)
        best = score[k] > score[best] ? k : best;
    double distance = -(double)score[best];
    for (uint32_t k = 0; k < outputs; k++)
        dloss[k] = k == best && distance > 0 ? -1.0f : 0.0f;
    return distance > 0 ? distance : 0;
}

double sdr_kmeans_assign(const struct sdr_view *view, const struct sdr_batch *batch,
                         uint32_t *cluster, float *bound)
{
    enum { AHEAD = 2 * TOGETHER }; /* prefetch distance in rows */
    const struct sdr_problem *problem = view->problem;
    struct centers c;
    float product[TOGETHER * CLUSTERS_MOST], length[TOGETHER], value, second;
    double sum = 0;
    prepare_centers(view, &c);
    for (uint32_t i = 0, n; i < batch->count; i += n) {
        n = batch->count - i < TOGETHER ? batch->count - i : TOGETHER;
        for (uint32_t r = i + AHEAD; r < i + AHEAD + n && r < batch->count; r++)
            sdr_fetch_row(problem, batch->row[r]);
        multiply(problem, &c, batch->row + i, n, product, length);
        for (uint32_t r = 0; r < n; r++) {
            double weight = problem->row_weight ? problem->row_weight[batch->row[i + r]] : 1.0f;
            cluster[i + r] = c.kernels->nearest(product + (size_t)r * c.count, c.share, c.norm,
                                                c.count, &value, &second);
            if (bound)
                bound[i + r] = length[r] - second - 4e-5f * (length[r] + fabsf(second));
            double distance = (double)length[r] - value;
            sum += distance > 0 ? weight * distance : 0;
        }
    }
    return sum;
}

/* Per row: its cluster and its weight. */
static size_t workspace_bytes(const struct sdr_problem *problem, uint32_t rows)
{
    (void)problem;
    return (size_t)rows * (sizeof(uint32_t) + sizeof(float));
}

/* Adds every row, times its weight, to the sum of its cluster, and its weight to the count. */
static enum sdr_status statistic(const struct sdr_model_kind *kind, const struct sdr_view *view,
                                 const struct sdr_batch *batch, int stage, void *workspace,
                                 struct sdr_update *update)
{
    const float *row_weight = view->problem->row_weight;
    uint32_t *cluster = workspace;
    float *weight = (float *)(void *)(cluster + batch->count);
    double weights = 0;
    (void)kind, (void)stage;
    update->loss = sdr_kmeans_assign(view, batch, cluster, NULL);
    for (uint32_t i = 0; i < batch->count; i++) {
        weight[i] = row_weight ? row_weight[batch->row[i]] : 1.0f;
        weights += weight[i];
    }
    update->weight = weights;
    update->part[update->parts++] = (struct sdr_part){
        .form = SDR_FACTORS, .count = batch->count, .index = cluster, .value = weight};
    update->part[update->parts++] = (struct sdr_part){.block = 1,
                                                      .form = SDR_FACTORS,
                                                      .right = SDR_ONES,
                                                      .count = batch->count,
                                                      .index = cluster,
                                                      .value = weight};
    return SDR_OK;
}

/* Halves sums and counts, so that later rows weigh more. Clusters below one row are left alone:
   they would vanish by rounding. */
static void halve(const struct sdr_block *block, float *w)
{
    size_t clusters = block[1].cols;
    float *sum = w + block[0].offset, *count = w + block[1].offset;
    for (uint32_t k = 0; k < clusters; k++) {
        if (!(count[k] > 1))
            continue;
        count[k] *= 0.5f;
        for (uint32_t j = 0; j < block[0].rows; j++)
            sum[j * clusters + k] *= 0.5f;
    }
}

/* ---- initial centers ---- */
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

/* Squared distance of sample row n to candidate c. */
static double apart(const struct seeding *s, uint32_t n, uint32_t c)
{
    uint32_t i = s->candidate[c];
    double d =
        (double)s->length[n] + s->length[i] - 2 * (double)s->product[(size_t)n * s->candidates + c];
    return n == i || d < 0 ? 0 : d;
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
    struct centers c = {.sum = s->point,
                        .origin = s->origin,
                        .count = s->candidates,
                        .kernels = sdr_cluster_kernels(sdr_cpu_level())};
    double left[CANDIDATES_MOST] = {0};
    uint32_t best = 0;
    float length[TOGETHER];
    for (uint32_t t = 0; t < s->candidates; t++) {
        s->candidate[t] = draw(s, stream, *sum);
        copy_row(s->problem, s->row[s->candidate[t]], s->point + t, s->candidates);
    }
    c.origin_length = square_of(s->origin, s->problem->features);
    if (!s->problem->rows->dense && c.origin_length > 0)
        s->problem->kernels->scores(s->point, s->origin, NULL, s->problem->features, s->candidates,
                                    c.moved);
    for (uint32_t n = 0; n < s->count; n += TOGETHER) {
        uint32_t some = s->count - n < TOGETHER ? s->count - n : TOGETHER;
        multiply(s->problem, &c, s->row + n, some, s->product + (size_t)n * s->candidates, length);
    }
    for (uint32_t n = 0; n < s->count; n++)
        for (uint32_t t = 0; t < s->candidates; t++)
            left[t] += weight_of(s, n) * fmin(apart(s, n, t), s->distance[n]);
    for (uint32_t t = 1; t < s->candidates; t++)
        best = left[t] < left[best] ? t : best;
    for (uint32_t n = 0; n < s->count; n++)
        s->distance[n] = fmin(apart(s, n, best), s->distance[n]);
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
    struct centers c = {.origin = origin, .kernels = sdr_cluster_kernels(sdr_cpu_level())};
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
    c.origin_length = square_of(origin, problem->features);
    sdr_sample(problem->seed, rows->count, s->count, s->row);
    for (uint32_t i = 0; i < s->count; i++) {
        if (rows->row)
            s->row[i] = rows->row[s->row[i]];
        s->distance[i] = INFINITY;
        s->length[i] = length_of(problem, &c, s->row[i]);
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
static enum sdr_status start(const struct sdr_problem *problem, const struct sdr_block *block,
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

SDR_REGISTER(model_kind, kmeans) = {
    .name = "kmeans",
    .summary = "k-means clustering; needs no labels",
    .options = table,
    .options_size = sizeof(struct options),
    .truth = SDR_UNSUPERVISED,
    .reads = SDR_READS_ALL,
    .sense = SDR_STATISTIC,
    .picks = true,
    .total = "inertia",
    .defaults =
        {.sync = "batch", .batch = 1024, .epochs = 10, .optimizer = "sgd", .schedule = "recent"},
    .full = &sdr_kmeans_lloyd,
    .state = &sdr_kmeans_state,
    .outputs = outputs_of,
    .loss = loss,
    .shape = shape,
    .start = start,
    .workspace = workspace_bytes,
    .score = score,
    .gradient = statistic,
    .epoch_end = halve,
};
