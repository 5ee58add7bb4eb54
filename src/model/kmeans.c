/* k-means (Lloyd, 1957; as SGD: Bottou and Bengio, 1995; in batches: Sculley, 2010). Loss of a row:
   the squared distance to the nearest center.

   The parameters are statistics: for each cluster the sum and the count of its rows; a center is
   origin + sum / count. A batch adds its rows to their nearest clusters, which is a gradient step
   of size 1/count on the center. Sums can be added in any order and from any worker, so every
   strategy preserves the contributions of all workers. Sums are halved after every epoch, and the
   weight of rows rises from 1 to 2 within an epoch (schedule `recent`), so that assignments to
   early, poor centers soon lose their influence.

   --sync batch is Lloyd's algorithm: the sums of all rows, recomputed in every epoch.

   Distances: kmeans_distance.c. Initial centers: kmeans_start.c. */
#include "model/kmeans.h"

struct options {
    uint64_t clusters;
};
static const struct sdr_option table[] = {{"clusters", SDR_INTEGER, "8", "K", 1, SDR_CLUSTERS_MOST,
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
    .start = sdr_kmeans_start,
    .workspace = workspace_bytes,
    .score = sdr_kmeans_score,
    .gradient = statistic,
    .epoch_end = halve,
};
