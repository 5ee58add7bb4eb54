/* Block rotation of a run's rows (sync/rotation.c). */
#ifndef SDR_ROTATION_H
#define SDR_ROTATION_H

#include "team/node.h"

struct sdr_rotation;

enum sdr_status sdr_rotation_create(struct sdr_run *run); /* sets run->shared.rotation */
void sdr_rotation_destroy(struct sdr_rotation *r);
/* Computes the order of the coming epoch: rounds in random order, each cell by cell. */
void sdr_rotation_order(struct sdr_run *run);
/* Rows left in the current round. */
uint64_t sdr_rotation_left(const struct sdr_run *run);

#endif
