/* Relaxed multi-way graph cut: the third problem of the Hogwild! paper (Niu, Recht, Ré and Wright,
   2011; after Călinescu, Karloff and Rabani, 1998). Minimises Σ w_uv·‖x_u − x_v‖₁ over the edges;
   every vertex v has a point x_v in the simplex over the parts.

   A row is an edge: its label is the weight, its two features are the vertices. The first `parts`
   features are terminals, fixed in one corner of the simplex each; an edge to a terminal pulls a
   vertex towards that part. A step on an edge pulls its two ends together and projects both onto
   the simplex. */
#include "kind/model.h"

#include <math.h>
#include <string.h>

enum { PARTS_MOST = 256 };

struct options {
    uint64_t parts;
};
static const struct sdr_option table[] = {{"parts", SDR_INTEGER, "2", "N", 2, PARTS_MOST,
                                           "number of parts; the first N features are their "
                                           "terminals",
                                           offsetof(struct options, parts), 0},
                                          {0}};

static uint32_t parts_of(const struct sdr_problem *problem)
{
    return (uint32_t)((const struct options *)problem->model_options)->parts;
}

static int shape(const struct sdr_problem *problem, struct sdr_block *block)
{
    block[0] = (struct sdr_block){.name = "part",
                                  .rows = problem->features,
                                  .cols = parts_of(problem),
                                  .per_feature = true,
                                  .penalised = true};
    return 1;
}

/* All vertices start at the center of the simplex. */
static enum sdr_status start(const struct sdr_problem *problem, const struct sdr_block *block,
                             const struct sdr_batch *rows, double size, struct sdr_span span,
                             float *w)
{
    uint32_t parts = parts_of(problem);
    (void)rows, (void)size;
    for (uint32_t v = 0; v < problem->features; v++)
        for (uint32_t k = 0; k < parts; k++) {
            uint64_t at = block[0].offset + (uint64_t)v * parts + k;
            if (at >= span.first && at < span.end)
                w[at] = v >= parts ? 1.0f / (float)parts : (float)(v == k);
        }
    return SDR_OK;
}

static enum sdr_status check(const struct sdr_problem *problem, const char *name)
{
    const struct sdr_rows *rows = problem->rows;
    if (problem->named_features)
        return sdr_fail(SDR_BAD_DATA,
                        "%s: edges join vertices of one kind, numbered from 1: LIBSVM rows "
                        "'weight one:1 other:1' (triples have users and items)",
                        name);
    if (rows->features <= parts_of(problem))
        return sdr_fail(SDR_BAD_DATA, "%s: %u vertices are not more than the %u terminals", name,
                        rows->features, parts_of(problem));
    for (uint64_t row = 0; row < rows->count; row++) {
        if (rows->dense || sdr_sparse_row(rows, row).n != 2)
            return sdr_fail(SDR_BAD_DATA,
                            "%s: row %llu is no edge: --model graph-cut needs rows of two "
                            "features, the ends, labelled with the edge's weight",
                            name, (unsigned long long)row + 1);
        if (problem->target[row] < 0)
            return sdr_fail(SDR_BAD_DATA, "%s: row %llu: the weight of an edge is negative", name,
                            (unsigned long long)row + 1);
    }
    return SDR_OK;
}

static const float *end_of(const struct sdr_view *view, uint32_t row, uint32_t n)
{
    const struct sdr_block *block = &view->block[0];
    struct sdr_sparse_row r = sdr_sparse_row(view->problem->rows, row);
    return n < r.n ? view->w + block->offset + (size_t)sdr_row_index(&r, n) * block->cols : NULL;
}

static float distance(const float *a, const float *b, uint32_t parts)
{
    float sum = 0;
    for (uint32_t k = 0; k < parts && a && b; k++)
        sum += fabsf(a[k] - b[k]);
    return sum;
}

static enum sdr_status score(const struct sdr_view *view, const struct sdr_batch *batch,
                             void *workspace, float *scores)
{
    (void)workspace;
    for (uint32_t i = 0; i < batch->count; i++)
        scores[i] = distance(end_of(view, batch->row[i], 0), end_of(view, batch->row[i], 1),
                             view->block[0].cols);
    return SDR_OK;
}

static double loss(const void *options, const float *score, uint32_t outputs, float target,
                   float *dloss)
{
    (void)options, (void)outputs;
    double value = (double)target * score[0];
    dloss[0] = target;
    return value;
}

/* Per edge: its two vertices and a gradient row for each. */
static size_t workspace_bytes(const struct sdr_problem *problem, uint32_t rows)
{
    return (size_t)rows * 2 * (sizeof(uint32_t) + parts_of(problem) * sizeof(float));
}

static enum sdr_status gradient(const struct sdr_model_kind *kind, const struct sdr_view *view,
                                const struct sdr_batch *batch, int stage, void *workspace,
                                struct sdr_update *update)
{
    const struct sdr_problem *problem = view->problem;
    uint32_t parts = view->block[0].cols, *index = workspace;
    float *value = (float *)(void *)(index + 2 * (size_t)batch->count);
    float share = 1.0f / (float)(batch->of ? batch->of : batch->count);
    double sum = 0, weights = 0;
    (void)stage;
    for (uint32_t i = 0; i < batch->count; i++) {
        uint32_t row = batch->row[i];
        struct sdr_sparse_row r = sdr_sparse_row(problem->rows, row);
        const float *a = end_of(view, row, 0), *b = end_of(view, row, 1);
        float *one = value + 2 * (size_t)i * parts, *two = one + parts, dloss;
        float weight = problem->row_weight ? problem->row_weight[row] : 1.0f;
        float apart = distance(a, b, parts);
        bool moves[2] = {sdr_row_index(&r, 0) >= parts, sdr_row_index(&r, 1) >= parts};
        index[2 * (size_t)i] = sdr_row_index(&r, 0);
        index[2 * (size_t)i + 1] = sdr_row_index(&r, 1);
        sum += weight * kind->loss(problem->model_options, &apart, 1, problem->target[row], &dloss);
        weights += weight;
        for (uint32_t k = 0; k < parts; k++) {
            float pull = a[k] == b[k] ? 0 : copysignf(dloss * weight * share, a[k] - b[k]);
            one[k] = moves[0] ? pull : 0;
            two[k] = moves[1] ? -pull : 0;
        }
    }
    update->loss = sum;
    update->weight = weights;
    update->part[update->parts++] = (struct sdr_part){.form = SDR_ROWS,
                                                      .distinct = batch->count == 1,
                                                      .count = 2 * batch->count,
                                                      .index = index,
                                                      .value = value};
    return SDR_OK;
}

/* Projection onto the simplex (Michelot, 1986): subtracts the same excess from all coordinates and
   drops those that would become negative, until none does. */
static void project(float *x, uint32_t parts)
{
    float excess = 0;
    bool again = true;
    for (uint32_t pass = 0; pass <= parts && again; pass++) {
        float sum = 0, count = 0;
        again = false;
        for (uint32_t k = 0; k < parts; k++)
            if (pass == 0 || x[k] > excess) {
                sum += x[k];
                count++;
            }
        float next = (sum - 1) / (count > 0 ? count : 1);
        for (uint32_t k = 0; k < parts; k++)
            again |= (pass == 0 || x[k] > excess) && x[k] <= next;
        excess = pass == 0 || next > excess ? next : excess;
    }
    for (uint32_t k = 0; k < parts; k++)
        x[k] = x[k] > excess ? x[k] - excess : 0;
}

SDR_REGISTER(model_kind, graph_cut) = {
    .name = "graph-cut",
    .summary = "minimum cut of a graph into parts; rows are edges between vertices",
    .options = table,
    .options_size = sizeof(struct options),
    .truth = SDR_UNSUPERVISED,
    .needs = SDR_NEEDS_LABELS | SDR_NEEDS_PAIRS,
    .no_intercept = true,
    .defaults = {.epochs = 20},
    .loss = loss,
    .shape = shape,
    .start = start,
    .check = check,
    .workspace = workspace_bytes,
    .project = project,
    .score = score,
    .gradient = gradient,
};
