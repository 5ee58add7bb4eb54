/* Matrix factorisation: rating(a, b) = mean + bias_a + bias_b + <f_a, f_b> for a row with two
   features, a user and an item (Koren, Bell and Volinsky, 2009). Loss: half the squared error.
   Penalty: per rating, l2/2 times the squared norm of the two rows of factors and biases it
   touches. The objective is the weighted mean of both over the ratings. --l2 instead penalises
   every row once, however often it is rated.

   Users and items share one numbering of features, so the blocks of factors and biases have a row
   for each. The mean is fixed: every rating of every worker would write to it, and the biases can
   express the same. A row that lacks one of the two (an unknown user) is scored with the other
   alone. */
#include "base/rng.h"
#include "kernel/linear.h"
#include "kind/model.h"
#include "model/squared.h"

#include <math.h>

struct options {
    uint64_t rank;
    bool bias;
    double l2, l2_item;
};
static const struct sdr_option table[] = {
    {"rank", SDR_INTEGER, "16", "N", 1, 4096, "latent factors of each user and item",
     offsetof(struct options, rank), 0},
    {"bias", SDR_FLAG, "yes", NULL, 0, 0, "add a bias to each user and item",
     offsetof(struct options, bias), 0},
    {"l2", SDR_NUMBER, "0.02", "X", 0, 1e6,
     "L2 penalty that each rating puts on the factors and biases of its user and item",
     offsetof(struct options, l2), 0},
    {"l2-item", SDR_NUMBER, "-1", "X", -1, 1e6, "the same for items; -1: as l2",
     offsetof(struct options, l2_item), 0},
    {0}};

static const struct options *options_of(const struct sdr_problem *problem)
{
    return problem->model_options;
}

static int shape(const struct sdr_problem *problem, struct sdr_block *block)
{
    const struct options *o = options_of(problem);
    int blocks = 0;
    block[blocks++] = (struct sdr_block){.name = "factor",
                                         .rows = problem->features,
                                         .cols = (uint32_t)o->rank,
                                         .per_feature = true,
                                         .penalised = true};
    if (o->bias)
        block[blocks++] = (struct sdr_block){.name = "bias",
                                             .rows = problem->features,
                                             .cols = 1,
                                             .per_feature = true,
                                             .penalised = true};
    if (problem->intercept)
        block[blocks++] =
            (struct sdr_block){.name = "intercept", .rows = 1, .cols = 1, .fixed = true};
    return blocks;
}

/* The biases of all features; NULL: the model has none. */
static const float *biases(const struct sdr_view *view)
{
    return options_of(view->problem)->bias ? view->w + view->block[1].offset : NULL;
}

static float mean(const struct sdr_view *view)
{
    return view->problem->intercept
               ? view->w[view->block[options_of(view->problem)->bias ? 2 : 1].offset]
               : 0;
}

/* Small random factors: at zero the gradient vanishes. */
static enum sdr_status start(const struct sdr_problem *problem, const struct sdr_block *block,
                             const struct sdr_batch *rows, double size, struct sdr_span span,
                             float *w)
{
    (void)rows;
    uint64_t rank = options_of(problem)->rank;
    double scale = 0.5 * sqrt(size / sqrt((double)rank));
    struct sdr_stream stream = sdr_stream_open(problem->seed, SDR_FOR_START, 0);
    for (uint64_t j = 0; j < block[0].rows; j++)
        for (uint64_t k = 0; k < rank; k++) {
            uint64_t at = block[0].offset + j * rank + k;
            /* drawn whether it is wanted or not */
            double value = scale * sdr_stream_normal(&stream);
            if (at >= span.first && at < span.end)
                w[at] = (float)value;
        }
    return SDR_OK;
}

static enum sdr_status check(const struct sdr_problem *problem, const char *name)
{
    const struct sdr_rows *rows = problem->rows;
    if (rows->dense)
        return sdr_fail(SDR_BAD_DATA,
                        "%s: --model mf needs rows of two features, a user and an item "
                        "(--format triples)",
                        name);
    for (uint64_t row = 0; row < rows->count; row++)
        if (sdr_sparse_row(rows, row).n != 2)
            return sdr_fail(SDR_BAD_DATA,
                            "%s: row %llu has %u features, but --model mf needs two, a user and an "
                            "item (--format triples)",
                            name, (unsigned long long)row + 1, sdr_sparse_row(rows, row).n);
    return SDR_OK;
}

/* Per row: its two features, and the gradients of their factors and biases. */
static size_t workspace_bytes(const struct sdr_problem *problem, uint32_t rows)
{
    return (size_t)rows * 2 * (sizeof(uint32_t) + (options_of(problem)->rank + 1) * sizeof(float));
}

static uint32_t rank_of(const struct sdr_problem *problem)
{
    return (uint32_t)options_of(problem)->rank;
}

static void pair_penalty(const void *options, float l2[2])
{
    const struct options *o = options;
    l2[0] = (float)o->l2;
    l2[1] = (float)(o->l2_item >= 0 ? o->l2_item : o->l2);
}

static float score_row(const struct sdr_view *view, uint32_t row)
{
    const struct sdr_problem *problem = view->problem;
    struct sdr_sparse_row r = sdr_sparse_row(problem->rows, row);
    uint32_t rank = view->block[0].cols;
    const float *factor = view->w + view->block[0].offset, *bias = biases(view);
    float score =
        r.n > 1 ? problem->kernels->dot(factor + (size_t)sdr_row_index(&r, 0) * rank,
                                        factor + (size_t)sdr_row_index(&r, 1) * rank, NULL, rank)
                : 0;
    for (uint32_t n = 0; n < r.n && n < 2 && bias; n++)
        score += bias[sdr_row_index(&r, n)];
    return score + mean(view);
}

static enum sdr_status score(const struct sdr_view *view, const struct sdr_batch *batch,
                             void *workspace, float *scores)
{
    (void)workspace;
    for (uint32_t i = 0; i < batch->count; i++)
        scores[i] = score_row(view, batch->row[i]);
    return SDR_OK;
}

/* l2/2 · ‖·‖² of the factors and biases of the two features. */
static double row_penalty(const struct sdr_view *view, uint32_t row)
{
    const struct sdr_problem *problem = view->problem;
    struct sdr_sparse_row r = sdr_sparse_row(problem->rows, row);
    const float *bias = biases(view);
    size_t rank = view->block[0].cols;
    float l2[2];
    double sum = 0;
    pair_penalty(problem->model_options, l2);
    for (uint32_t n = 0; n < r.n && n < 2; n++) {
        uint32_t j = sdr_row_index(&r, n);
        const float *value = view->w + view->block[0].offset + j * rank;
        double square = bias ? (double)bias[j] * bias[j] : 0;
        for (size_t k = 0; k < rank; k++)
            square += (double)value[k] * value[k];
        sum += 0.5 * l2[sdr_side(problem, j, n)] * square;
    }
    return sum;
}

static void add_part(struct sdr_update *update, int block, uint32_t rows, const uint32_t *index,
                     const float *value)
{
    update->part[update->parts++] = (struct sdr_part){.block = block,
                                                      .form = SDR_ROWS,
                                                      .distinct = rows == 1,
                                                      .count = 2 * rows,
                                                      .index = index,
                                                      .value = value};
}

static enum sdr_status gradient(const struct sdr_model_kind *kind, const struct sdr_view *view,
                                const struct sdr_batch *batch, int stage, void *workspace,
                                struct sdr_update *update)
{
    const struct sdr_problem *problem = view->problem;
    const struct options *o = options_of(problem);
    uint32_t rank = (uint32_t)o->rank, *index = workspace;
    float *value = (float *)(void *)(index + 2 * (size_t)batch->count);
    float *own = value + 2 * (size_t)batch->count * rank; /* gradients of biases */
    const float *factor = view->w + view->block[0].offset, *bias = biases(view);
    float share = 1.0f / (float)(batch->of ? batch->of : batch->count), l2[2];
    double sum = 0, weights = 0;
    (void)stage;
    pair_penalty(o, l2);
    for (uint32_t i = 0; i < batch->count; i++) {
        uint32_t row = batch->row[i];
        float *one = value + 2 * (size_t)i * rank, *two = one + rank, dloss;
        struct sdr_sparse_row r = sdr_sparse_row(problem->rows, row);
        uint32_t *at = index + 2 * (size_t)i;
        at[0] = sdr_row_index(&r, 0);
        at[1] = sdr_row_index(&r, 1);
        const float *a = factor + (size_t)at[0] * rank, *b = factor + (size_t)at[1] * rank;
        float weight = problem->row_weight ? problem->row_weight[row] : 1.0f;
        float z = score_row(view, row);
        float l2_a = weight * l2[sdr_side(problem, at[0], 0)];
        float l2_b = weight * l2[sdr_side(problem, at[1], 1)];
        sum += weight * kind->loss(o, &z, 1, problem->target[row], &dloss);
        weights += weight;
        dloss *= weight;
        for (uint32_t k = 0; k < rank; k++) {
            one[k] = (dloss * b[k] + l2_a * a[k]) * share;
            two[k] = (dloss * a[k] + l2_b * b[k]) * share;
        }
        if (bias) {
            own[2 * (size_t)i] = (dloss + l2_a * bias[at[0]]) * share;
            own[2 * (size_t)i + 1] = (dloss + l2_b * bias[at[1]]) * share;
        }
    }
    update->loss = sum;
    update->weight = weights;
    add_part(update, 0, batch->count, index, value);
    if (bias)
        add_part(update, 1, batch->count, index, own);
    return SDR_OK;
}

static const struct sdr_fused_model fused = {rank_of, pair_penalty};

SDR_REGISTER(model_kind, mf) = {
    .name = "mf",
    .summary = "ratings of items by users: matrix factorisation with biases",
    .options = table,
    .options_size = sizeof(struct options),
    .truth = SDR_REGRESSION,
    .curvature = 1,
    .needs = SDR_NEEDS_LABELS | SDR_NEEDS_PAIRS | SDR_NEEDS_SIDES,
    .bilinear = true,
    .defaults = {.sync = "rotation", .optimizer = "sgd", .step = 0.35, .epochs = 10},
    .fused = &fused,
    .loss = sdr_squared_loss,
    .shape = shape,
    .start = start,
    .check = check,
    .workspace = workspace_bytes,
    .row_penalty = row_penalty,
    .score = score,
    .gradient = gradient,
};
