/* The worker of every strategy with a server: what it is given it computes, unless that is cancelled, and sends. */
#ifndef SDR_SYNC_WORKER_LOOP_H
#define SDR_SYNC_WORKER_LOOP_H

#include "server/role.h"

enum sdr_status sdr_worker_loop(struct sdr_node *node);

#endif
