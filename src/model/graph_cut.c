/* Cuts of a graph into several parts, relaxed: the third problem of the Hogwild! paper (Niu, Recht, Ré
   and Wright, 2011; after Călinescu, Karloff and Rabani, 1998). Minimises Σ w_uv·‖x_u − x_v‖₁ over the
   edges, where every vertex has a point x_v in the simplex of the parts. A row is an edge: its label is
   the weight, its two features are the vertices. The first `parts` features are terminals, one in each
   corner of the simplex: edges to them say where a vertex would like to be. Terminals do not move.

   A step on an edge pulls its two ends together; both are put back into the simplex. */
#include "plugin.h"

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
    block[0] = (struct sdr_block){
        .name = "part", .rows = problem->features, .cols = parts_of(problem), .per_feature = true};
    return 1;
}

/* All vertices begin in the middle. */
static enum sdr_status start(const struct sdr_problem *problem, const struct sdr_block *block,
                             const struct sdr_batch *rows, uint64_t seed, double size, float *w)
{
    uint32_t parts = parts_of(problem);
    (void)rows, (void)seed, (void)size;
    for (uint32_t v = 0; v < problem->features; v++)
        for (uint32_t k = 0; k < parts; k++)
            w[block[0].offset + (size_t)v * parts + k] =
                v >= parts ? 1.0f / (float)parts : (float)(v == k);
    return SDR_OK;
}

static enum sdr_status check(const struct sdr_problem *problem, const char *name)
{
    const struct sdr_rows *rows = problem->rows;
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

static const float *end_of(const struct sdr_problem *problem, const struct sdr_block *block,
                           const float *w, uint32_t row, uint32_t n)
{
    struct sdr_sparse_row r = sdr_sparse_row(problem->rows, row);
    return n < r.n ? w + block[0].offset + (size_t)sdr_row_index(&r, n) * block[0].cols : NULL;
}

static float distance(const float *a, const float *b, uint32_t parts)
{
    float sum = 0;
    for (uint32_t k = 0; k < parts && a && b; k++)
        sum += fabsf(a[k] - b[k]);
    return sum;
}

static void score(const struct sdr_problem *problem, const struct sdr_block *block, const float *w,
                  const struct sdr_batch *batch, float *scores)
{
    for (uint32_t i = 0; i < batch->count; i++)
        scores[i] = distance(end_of(problem, block, w, batch->row[i], 0),
                             end_of(problem, block, w, batch->row[i], 1), block[0].cols);
}

static double loss(const void *options, const float *score, uint32_t outputs, float target,
                   float *dloss)
{
    (void)options, (void)outputs;
    double value = (double)target * score[0];
    dloss[0] = target;
    return value;
}

static uint32_t scratch_floats(const struct sdr_problem *problem)
{
    return 1 + 2 * parts_of(problem);
}

static void gradient(const struct sdr_model_kind *kind, const struct sdr_problem *problem,
                     const struct sdr_block *block, const float *w, const struct sdr_batch *batch,
                     float *scratch, struct sdr_update *update)
{
    uint32_t parts = block[0].cols, stride = scratch_floats(problem);
    float share = 1.0f / (float)(batch->of ? batch->of : batch->count);
    double sum = 0, weights = 0;
    for (uint32_t i = 0; i < batch->count; i++) {
        uint32_t row = batch->row[i];
        struct sdr_sparse_row r = sdr_sparse_row(problem->rows, row);
        const float *a = end_of(problem, block, w, row, 0), *b = end_of(problem, block, w, row, 1);
        float *one = scratch + (size_t)i * stride + 1, *two = one + parts, dloss;
        float weight = problem->row_weight ? problem->row_weight[row] : 1.0f;
        float apart = distance(a, b, parts);
        bool moves[2] = {sdr_row_index(&r, 0) >= parts, sdr_row_index(&r, 1) >= parts};
        sum += weight * kind->loss(problem->model_options, &apart, 1, problem->target[row], &dloss);
        weights += weight;
        one[-1] = 0;
        for (uint32_t k = 0; k < parts; k++) {
            float pull = a[k] == b[k] ? 0 : copysignf(dloss * weight * share, a[k] - b[k]);
            one[k] = moves[0] ? pull : 0;
            two[k] = moves[1] ? -pull : 0;
        }
    }
    *update = (struct sdr_update){.form = SDR_ENTRIES,
                                  .sense = SDR_GRADIENT,
                                  .outputs = parts,
                                  .u = scratch,
                                  .stride = stride,
                                  .examples = *batch,
                                  .loss = sum,
                                  .weight = weights};
}

/* The nearest point of the simplex (Michelot, 1986): what is too much is taken from all alike, and who
   would fall below zero leaves. */
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
    .truth = SDR_CUT,
    .pairs = true,
    .epochs = 20,
    .loss = loss,
    .shape = shape,
    .start = start,
    .check = check,
    .scratch = scratch_floats,
    .project = project,
    .score = score,
    .gradient = gradient,
};
