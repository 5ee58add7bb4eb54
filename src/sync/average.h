/* SimuParallelSGD and local SGD: on shared memory (average.c), and with messages
   (average_peers.c). */
#ifndef SDR_SYNC_AVERAGE_H
#define SDR_SYNC_AVERAGE_H

#include "kind/strategy.h"

struct sdr_average_options {
    uint64_t every; /* updates of a worker between two averages; 0: one average, at the end */
};
extern const struct sdr_peer_ops sdr_average_peers;

#endif
