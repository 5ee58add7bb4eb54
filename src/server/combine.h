/* Aggregates that work value by value, and pairwise distances of gradients. */
#ifndef SDR_SERVER_COMBINE_H
#define SDR_SERVER_COMBINE_H

#include "server/role.h"

/* Combines gradients by the aggregate, over the server's values. */
enum sdr_status sdr_combine(struct sdr_node *node, const struct sdr_gradient *gradient,
                            uint64_t count, struct sdr_update *update);
/* Squared distances (count × count), over the server's values. */
enum sdr_status sdr_distances(struct sdr_node *node, const struct sdr_gradient *gradient,
                              uint64_t count, double *distance);

#endif
