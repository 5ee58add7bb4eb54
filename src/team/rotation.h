/* Rows of two features by cells of a rotation: what the rest of a run asks of them. */
#ifndef SDR_ROTATION_H
#define SDR_ROTATION_H

#include "team/node.h"

struct sdr_rotation;

enum sdr_status sdr_rotation_create(struct sdr_run *run); /* run->rotation */
void sdr_rotation_destroy(struct sdr_rotation *r);
/* The order of the epoch that begins: rounds in random order, a round's rows cell by cell. */
void sdr_rotation_order(struct sdr_run *run);
/* How many rows are left of the round that the run is in. */
uint64_t sdr_rotation_left(const struct sdr_run *run);

#endif
