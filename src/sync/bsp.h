/* Bulk-synchronous SGD with shared memory. The version with messages is a quorum of all workers
   (quorum.c). */
#ifndef SDR_SYNC_BSP_H
#define SDR_SYNC_BSP_H

#include "kind/strategy.h"

enum sdr_status sdr_bsp_plan(const void *options, struct sdr_plan *plan);
enum sdr_status sdr_bsp_worker(struct sdr_node *node);

#endif
