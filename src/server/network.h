/* Nodes that exchange messages: servers, where the parameters live, and workers, which compute gradients.

   Batches have numbers: number n is a stretch of the rows of epoch n / (batches of an epoch), the same for
   every node. The first server hands them out, and again those that were cancelled or lost, so that every number
   is applied once, whoever was fast or slow. A worker is given a number and the values to work from, and
   sends back the slopes of its examples; servers multiply them out, each for its own features.

   Nodes: servers first, from 0 on, then workers. */
#ifndef SDR_NETWORK_H
#define SDR_NETWORK_H

#include "server/compute_times.h"
#include "server/coordinator.h"
#include "server/message.h"
#include "server/role.h"
#include "server/sampler.h"
#include "server/shards.h"
#include "server/traffic.h"
#include "update/parameters.h"
#include "update/values.h"
#include "update/wire.h"

/* Asks for memory that will be written to. Always inline: a function that only prefetches counts as without
   effect, and its calls are dropped. */
static inline __attribute__((always_inline)) void sdr_fetch_to_write(const void *from, size_t bytes)
{
    enum { LINE = 64 };
    for (size_t i = 0; i < bytes; i += LINE)
        __builtin_prefetch((const unsigned char *)from + i, 1);
}

/* Where gradients are computed: one for every thread that does. */
struct sdr_workspace {
    float *w; /* owned, as long as the parameters: values that came in pieces */
    struct sdr_marks marks;
    uint32_t *row;                   /* owned: the rows of a batch */
    struct sdr_gradient_space space; /* of a worker */
    struct sdr_loss_sum *losses;     /* owned: one a leaf */
    struct sdr_part *part;           /* owned: of a step */
    struct sdr_wire_writer writer;
    struct sdr_wire_reader reader;
    /* Takes steps on w, with the state of a worker; where workers do. */
    struct sdr_parameters stepper;
    struct sdr_subset subset; /* a batch by itself, where views hold what it touches alone */
    float *packed;     /* owned: values on their way into a message; where workers take steps */
    float *before;     /* owned: the values before the steps, for every server; the same */
    uint32_t *own_row; /* owned: the rows of an earlier batch; the same */
};

/* What the strategy and the options decided. */
struct sdr_policy {
    uint64_t quorum;           /* gradients of an update */
    bool joint;                /* every worker computes its part of one batch */
    uint32_t part_unit;        /* rows that a part is made of: leaves where bits matter, or 1 */
    bool sparse;               /* workers are sent what their batch touches */
    bool compact;              /* and hold that alone, not a view as long as the parameters */
    bool cancels;              /* the strategy may cancel work */
    bool steps;                /* workers take steps, and send these */
    bool eager;                /* workers are sent values ahead */
    bool keeps;                /* workers may have to go on from the values they have */
    uint64_t batch;            /* rows of a batch */
    uint32_t local;            /* rows of a step, where workers take several with a batch */
    uint64_t per_epoch;        /* batches */
    struct sdr_divisor epochs; /* by that */
};

struct sdr_network {
    int servers, workers, nodes; /* servers is 0: workers are peers */
    int processes;               /* of the job */
    bool dedicated;              /* servers have processes without workers */
    struct sdr_peers *peers;     /* owned; NULL: there are servers */
    struct sdr_node *node;       /* owned: all of them */
    struct sdr_pool *pool;       /* owned */
    void *shared;                /* the transport's */
    /* Asks for the memory that a worker needs when it goes on; NULL: nothing is asked for. */
    void (*fetch)(const struct sdr_node *node);
    bool single_threaded;            /* all nodes are on one thread: nothing needs a lock */
    struct sdr_span *span;           /* owned: the values of each server */
    struct sdr_wire wire;            /* how updates travel */
    struct sdr_server *server;       /* owned */
    struct sdr_workspace *workspace; /* owned */
    int workspaces;
    struct sdr_task *task; /* owned, per worker */
    struct sdr_sampler sampler;
    struct sdr_policy policy;
    struct sdr_coordinator lead;
    struct sdr_traffic traffic;
    struct sdr_channel *channel; /* owned: see traffic.c */
    int channel_nodes;           /* that these are for; 0: messages are not numbered */
    bool admits;                 /* loops of a strategy run: what arrives is checked */
    struct sdr_compute_times times;
    struct sdr_shard_array array[SDR_ARRAYS]; /* for checkpoints */
};

enum sdr_status sdr_network_create(struct sdr_run *run, uint64_t quorum);
void sdr_network_destroy(struct sdr_run *run);
/* Trains, by the loops of the strategy. */
enum sdr_status sdr_network_work(struct sdr_run *run);
/* For checkpoints: stores the batch numbers not applied yet with the node's arrays. */
enum sdr_status sdr_network_save(struct sdr_run *run);
/* Writes the ledger's records; a failure is reported, and training goes on. */
void sdr_network_keep(struct sdr_run *run);
/* Notes that records of the ledger are lost, for the reason in sdr_error(). */
void sdr_network_lose(struct sdr_run *run);

#endif
