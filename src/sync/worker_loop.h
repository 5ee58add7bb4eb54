/* The worker loop of all parameter-server strategies: receive a task, compute its gradient, push it
   unless cancelled. */
#ifndef SDR_SYNC_WORKER_LOOP_H
#define SDR_SYNC_WORKER_LOOP_H

#include "server/role.h"

enum sdr_status sdr_worker_loop(struct sdr_node *node);

#endif
