/* Shared by mini-batch k-means (kmeans.c), Lloyd's algorithm (kmeans_lloyd.c), distances
   (kmeans_distance.c), initial centers (kmeans_start.c) and states (kmeans_state.c). */
#ifndef SDR_MODEL_KMEANS_H
#define SDR_MODEL_KMEANS_H

#include "kind/model.h"

enum {
    SDR_CLUSTERS_MOST = 4096,
    SDR_TOGETHER =
        24 /* rows multiplied at a time: a multiple of what the kernels of any level take */
};

/* Precomputed terms of the distances, shared by all rows. */
struct sdr_centers {
    const float *sum, *origin;
    const float *rows; /* of each cluster; NULL: one */
    uint32_t count;
    float share[SDR_CLUSTERS_MOST];  /* 2 / count */
    float norm[SDR_CLUSTERS_MOST];   /* squared length of sum / count */
    float moved[SDR_CLUSTERS_MOST];  /* sparse rows: Σ sum·origin */
    double whole[SDR_CLUSTERS_MOST]; /* squared length of a center, once known; negative: not yet */
    double origin_length;            /* squared */
    const struct sdr_cluster_kernels *kernels;
};

double sdr_kmeans_square(const float *x, uint32_t n); /* Σ x² */
/* Squared distance of a row from the origin. */
float sdr_kmeans_length(const struct sdr_problem *problem, const struct sdr_centers *c,
                        uint32_t row);
/* Products of up to SDR_TOGETHER rows with the sums, and the rows' squared lengths. */
void sdr_kmeans_multiply(const struct sdr_problem *problem, const struct sdr_centers *c,
                         const uint32_t *row, uint32_t count, float *product, float *length);
/* Differences of squares below this share of the squared length are no distances, but rounding. */
#define SDR_CANCELLED 1e-3f
/* Squared distance of a row from a center, term by term. */
double sdr_kmeans_exact(const struct sdr_problem *problem, struct sdr_centers *c, uint32_t row,
                        uint32_t k);
/* Scores are −(squared distance): the nearest center has the largest. */
enum sdr_status sdr_kmeans_score(const struct sdr_view *view, const struct sdr_batch *batch,
                                 void *workspace, float *scores);
enum sdr_status sdr_kmeans_start(const struct sdr_problem *problem, const struct sdr_block *block,
                                 const struct sdr_batch *rows, double size, struct sdr_span span,
                                 float *w);
/* Finds the nearest cluster of every row of a batch; returns the weighted sum of squared distances.
   `bound`, if not NULL, gets a lower bound of the squared distance to every other center, safe
   against rounding. */
double sdr_kmeans_assign(const struct sdr_view *view, const struct sdr_batch *batch,
                         uint32_t *cluster, float *bound);
extern const struct sdr_full_batch sdr_kmeans_lloyd;
extern const struct sdr_model_state sdr_kmeans_state;

#endif
