/* Between k-means by batches (kmeans.c) and by rounds over all rows (kmeans_lloyd.c). */
#ifndef SDR_MODEL_KMEANS_H
#define SDR_MODEL_KMEANS_H

#include "kind/model.h"

/* The cluster nearest to every row of a batch, and with `bound` a squared distance that no other
   center of the row undercuts, whatever rounding did. Returns the weighted sum of the distances. */
double sdr_kmeans_assign(const struct sdr_view *view, const struct sdr_batch *batch,
                         uint32_t *cluster, float *bound);
extern const struct sdr_full_batch sdr_kmeans_lloyd;

#endif
