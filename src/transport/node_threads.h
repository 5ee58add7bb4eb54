/* Nodes as threads of this process; runs until all have returned or one has failed. */
#ifndef SDR_TRANSPORT_NODE_THREADS_H
#define SDR_TRANSPORT_NODE_THREADS_H

#include "transport/mailbox.h"

struct sdr_node_threads {
    struct sdr_mailbox *mailbox; /* owned, per node of the run */
    int nodes;
    unsigned char *slots; /* owned: see server/slots.h */
    int64_t launched;
    atomic_bool broken;
    pthread_mutex_t lock; /* guards what follows */
    enum sdr_status status;
    char sentence[1024];
    enum sdr_status (*loop)(struct sdr_node *node);
};

enum sdr_status sdr_node_threads_open(struct sdr_run *run, struct sdr_node_threads *threads);
void sdr_node_threads_free(struct sdr_node_threads *threads);
/* Memory for the slots of all nodes. */
enum sdr_status sdr_node_threads_expose(struct sdr_run *run);
/* Runs the loops of the nodes for which lives_here is true. node->endpoint is its mailbox, and
   run->network->shared begins with the node threads. */
enum sdr_status sdr_node_threads_launch(struct sdr_run *run,
                                        enum sdr_status (*loop)(struct sdr_node *node),
                                        bool (*lives_here)(const struct sdr_node *node));
/* Records a failure, with the message of this thread; ends all waits. */
void sdr_node_threads_abort(struct sdr_node_threads *threads, enum sdr_status status);
enum sdr_status sdr_node_threads_status(struct sdr_node_threads *threads);

#endif
