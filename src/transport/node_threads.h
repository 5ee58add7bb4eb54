/* Nodes that run as threads of this process, until all have returned or one has failed. */
#ifndef SDR_TRANSPORT_NODE_THREADS_H
#define SDR_TRANSPORT_NODE_THREADS_H

#include "transport/mailbox.h"

struct sdr_node_threads {
    struct sdr_mailbox *mailbox; /* owned, per node of the run */
    int nodes;
    int64_t launched;
    atomic_bool broken;
    pthread_mutex_t lock; /* guards what follows */
    enum sdr_status status;
    char sentence[1024];
    enum sdr_status (*loop)(struct sdr_node *node);
};

enum sdr_status sdr_node_threads_open(struct sdr_run *run, struct sdr_node_threads *threads);
void sdr_node_threads_free(struct sdr_node_threads *threads);
/* Runs the loops of those nodes that lives_here says; node->seat is its box, and run->network->shared begins
   with the node threads. */
enum sdr_status sdr_node_threads_launch(struct sdr_run *run,
                                        enum sdr_status (*loop)(struct sdr_node *node),
                                        bool (*lives_here)(const struct sdr_node *node));
/* Something failed, with the sentence of this thread: nobody waits any longer. */
void sdr_node_threads_abort(struct sdr_node_threads *threads, enum sdr_status status);
enum sdr_status sdr_node_threads_status(struct sdr_node_threads *threads);

#endif
