/* The worker of every strategy with a server: what it is given it computes, unless that is cancelled, and sends. */
#ifndef SDR_SYNC_CLIENT_H
#define SDR_SYNC_CLIENT_H

#include "team/node.h"

enum sdr_status sdr_client(struct sdr_node *node);

#endif
