/* Shared by mini-batch k-means (kmeans.c), Lloyd's algorithm (kmeans_lloyd.c) and states
   (kmeans_state.c). */
#ifndef SDR_MODEL_KMEANS_H
#define SDR_MODEL_KMEANS_H

#include "kind/model.h"

/* Finds the nearest cluster of every row of a batch; returns the weighted sum of squared distances.
   `bound`, if not NULL, gets a lower bound of the squared distance to every other center, safe
   against rounding. */
double sdr_kmeans_assign(const struct sdr_view *view, const struct sdr_batch *batch,
                         uint32_t *cluster, float *bound);
extern const struct sdr_full_batch sdr_kmeans_lloyd;
extern const struct sdr_model_state sdr_kmeans_state;

#endif
