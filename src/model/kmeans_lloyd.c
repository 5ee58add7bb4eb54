/* A round of Lloyd's algorithm: assigns all rows to their nearest centers and sums them up.

   Rows are cut into leaves by their number alone, so the sums do not depend on threads. A leaf
   stores its sums cluster by cluster, so that adding a row writes consecutive memory.

   Most rows keep their center between rounds. As in Hamerly (2010), each row has a lower bound of
   its distance to any other center, lowered by how far centers move; while its own center is nearer
   than the bound, no other center is computed. */
#include "base/memory.h"
#include "base/thread.h"
#include "kernel/cluster.h"
#include "model/kmeans.h"

#include <math.h>
#include <string.h>

struct leaf {
    double *sum, *count; /* owned: clusters × features; clusters */
    double loss;
};
struct memory {
    uint32_t *cluster; /* owned, per training row: its nearest center */
    float *other;      /* owned, per row: lower bound of the distance to other centers */
    float *center;     /* owned: clusters × features, relative to the origin */
    float drift;       /* the longest move of a center since the last round */
    bool begun;        /* `cluster` and `other` are valid */
};
struct summing {
    const struct sdr_view *view;
    const struct sdr_batch *rows;
    struct memory *known;
    struct leaf *leaf;
    uint32_t leaves;
};
enum { CHUNK = 256 };

/* Adds a row without centering; join_leaves subtracts the problem's center once. */
static void add_row(const struct sdr_rows *rows, uint32_t row, float weight, double *sum)
{
    if (rows->dense) {
        const float *x = sdr_dense_row(rows, row);
        for (uint32_t j = 0; j < rows->features; j++)
            sum[j] += weight * x[j];
        return;
    }
    struct sdr_sparse_row r = sdr_sparse_row(rows, row);
    for (uint32_t n = 0; n < r.n; n++)
        sum[sdr_row_index(&r, n)] += weight * r.x[n];
}

/* Squared distance of a dense row to its assigned center. */
static float own_distance(const struct summing *job, uint32_t row, uint64_t place)
{
    const struct sdr_view *view = job->view;
    uint32_t features = view->block[0].rows;
    return sdr_cluster_kernels(sdr_cpu_level())
        ->distance(sdr_dense_row(view->problem->rows, row), view->w + view->block[2].offset,
                   job->known->center + (uint64_t)job->known->cluster[place] * features, features);
}

/* Lists the rows of a chunk whose bound does not exclude other centers. */
static uint32_t list_doubtful(const struct summing *job, const uint32_t *row, uint64_t at,
                              uint32_t count, uint32_t *doubtful)
{
    const float surely = 1.0001f; /* safety margin against rounding */
    struct memory *known = job->known;
    uint32_t listed = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (known->begun) {
            if (i + 4 < count)
                sdr_fetch_row(job->view->problem, row[i + 4]);
            float other = known->other[at + i] - known->drift;
            if (other > 0 && sqrtf(own_distance(job, row[i], at + i)) * surely < other) {
                known->other[at + i] = other;
                continue;
            }
        }
        doubtful[listed++] = i;
    }
    return listed;
}

/* Finds the nearest centers of the rows of a chunk. Returns the sum of their losses. */
static double assign_chunk(const struct summing *job, const uint32_t *row, uint64_t at,
                           uint32_t count, uint32_t *cluster)
{
    const float *weight = job->view->problem->row_weight;
    struct memory *known = job->known;
    float bound[CHUNK];
    uint32_t doubtful[CHUNK], asked[CHUNK], found[CHUNK];
    struct sdr_batch batch = {.rows = job->view->problem->rows, .row = asked, .count = count};
    double loss = 0;
    if (!known) {
        batch.row = row;
        return sdr_kmeans_assign(job->view, &batch, cluster, NULL);
    }
    batch.count = list_doubtful(job, row, at, count, doubtful);
    for (uint32_t i = 0; i < batch.count; i++)
        asked[i] = row[doubtful[i]];
    sdr_kmeans_assign(job->view, &batch, found, bound);
    for (uint32_t i = 0; i < batch.count; i++) {
        known->cluster[at + doubtful[i]] = found[i];
        known->other[at + doubtful[i]] = bound[i] > 0 ? sqrtf(bound[i]) * 0.9999f : 0;
    }
    for (uint32_t i = 0; i < count; i++) {
        cluster[i] = known->cluster[at + i];
        loss += (weight ? weight[row[i]] : 1.0) * own_distance(job, row[i], at + i);
    }
    return loss;
}

static enum sdr_status sum_leaf(void *context, size_t index)
{
    struct summing *job = context;
    const struct sdr_problem *problem = job->view->problem;
    const uint32_t *list = job->rows->row;
    struct leaf *leaf = &job->leaf[index];
    uint64_t rows = job->rows->count, clusters = problem->outputs;
    uint64_t first = rows * index / job->leaves, end = rows * (index + 1) / job->leaves;
    uint32_t row[CHUNK], cluster[CHUNK], count;
    memset(leaf->sum, 0, clusters * problem->features * sizeof *leaf->sum);
    memset(leaf->count, 0, clusters * sizeof *leaf->count);
    leaf->loss = 0;
    for (uint64_t at = first; at < end; at += count) {
        for (count = 0; count < CHUNK && at + count < end; count++)
            row[count] = list ? list[at + count] : (uint32_t)(at + count);
        leaf->loss += assign_chunk(job, row, at, count, cluster);
        for (uint32_t i = 0; i < count; i++) {
            float weight = problem->row_weight ? problem->row_weight[row[i]] : 1.0f;
            add_row(problem->rows, row[i], weight,
                    leaf->sum + (uint64_t)cluster[i] * problem->features);
            leaf->count[cluster[i]] += weight;
        }
        sdr_rows_release(problem->rows, row[0], row[count - 1] + 1);
    }
    return SDR_OK;
}

/* Computes the centers of this round, cluster by cluster, and their longest move. */
static void move_centers(const struct sdr_view *view, struct memory *known)
{
    const struct sdr_block *block = view->block;
    uint32_t clusters = block[1].cols, features = block[0].rows;
    double most = 0;
    for (uint32_t k = 0; k < clusters; k++) {
        float share = 1 / view->w[block[1].offset + k];
        double way = 0;
        for (uint32_t j = 0; j < features; j++) {
            float *at = &known->center[(uint64_t)k * features + j];
            float now = view->w[block[0].offset + (uint64_t)j * clusters + k] * share;
            way += ((double)now - *at) * ((double)now - *at);
            *at = now;
        }
        most = fmax(most, way);
    }
    known->drift = (float)(sqrt(most) * 1.0001);
}

static void forget(void *memory)
{
    struct memory *known = memory;
    if (!known)
        return;
    sdr_release(known->cluster);
    sdr_release(known->other);
    sdr_release(known->center);
    sdr_release(known);
}

/* Allocates the state kept between rounds; only for dense rows in memory. */
static enum sdr_status open_memory(const struct sdr_view *view, const struct sdr_batch *rows,
                                   void **memory)
{
    const struct sdr_problem *problem = view->problem;
    uint64_t values = (uint64_t)problem->outputs * problem->features;
    struct memory *known;
    if (*memory || problem->rows->streams || !problem->rows->dense)
        return SDR_OK;
    SDR_TRY(sdr_allocate(&known, 1, sizeof *known, "clusters of rows"));
    *memory = known;
    SDR_TRY(sdr_allocate(&known->cluster, rows->count, sizeof *known->cluster, "clusters of rows"));
    SDR_TRY(sdr_allocate(&known->other, rows->count, sizeof *known->other, "clusters of rows"));
    return sdr_allocate(&known->center, values, sizeof *known->center, "clusters of rows");
}

/* Adds the leaves up. Empty clusters keep their center. */
static void join_leaves(const struct summing *job, double *w)
{
    const struct sdr_block *block = job->view->block;
    const float *center = job->view->problem->center;
    uint32_t clusters = block[1].cols, features = block[0].rows;
    for (uint32_t k = 0; k < clusters; k++) {
        double count = 0;
        for (uint32_t l = 0; l < job->leaves; l++)
            count += job->leaf[l].count[k];
        if (count <= 0)
            continue;
        w[block[1].offset + k] = count;
        for (uint32_t j = 0; j < features; j++) {
            double sum = center ? -count * center[j] : 0;
            for (uint32_t l = 0; l < job->leaves; l++)
                sum += job->leaf[l].sum[(uint64_t)k * features + j];
            w[block[0].offset + (uint64_t)j * clusters + k] = sum;
        }
    }
}

static enum sdr_status lloyd(const struct sdr_view *view, const struct sdr_batch *rows, int threads,
                             void **memory, double *loss, double *w)
{
    enum {
        LEAVES_MOST = 64,
        LEAVES_LEAST = 2,
        VALUES_MOST = 1 << 25 /* over all leaves: 256 MB */
    };
    uint64_t clusters = view->problem->outputs, values = clusters * view->problem->features;
    struct leaf leaf[LEAVES_MOST] = {0};
    uint64_t leaves = VALUES_MOST / values;
    leaves = leaves > LEAVES_MOST ? LEAVES_MOST : leaves < LEAVES_LEAST ? LEAVES_LEAST : leaves;
    SDR_TRY(open_memory(view, rows, memory));
    struct summing job = {view, rows, *memory, leaf, (uint32_t)leaves};
    if (job.known)
        move_centers(view, job.known);
    enum sdr_status status = SDR_OK;
    for (uint32_t l = 0; l < job.leaves && status == SDR_OK; l++) {
        status = sdr_allocate(&leaf[l].sum, values + clusters, sizeof(double), "sums of rows");
        leaf[l].count = leaf[l].sum ? leaf[l].sum + values : NULL;
    }
    if (status == SDR_OK)
        status = sdr_parallel(threads, job.leaves, sum_leaf, &job);
    if (status == SDR_OK)
        join_leaves(&job, w);
    if (job.known)
        job.known->begun = true;
    *loss = 0;
    for (uint32_t l = 0; l < job.leaves; l++) {
        *loss += leaf[l].loss / rows->count;
        sdr_release(leaf[l].sum);
    }
    return status;
}

const struct sdr_full_batch sdr_kmeans_lloyd = {
    .round = lloyd, .forget = forget, .converged = "no center moves any more"};
