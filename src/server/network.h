/* Nodes that exchange messages: servers, which hold the parameters, and workers, which compute
   gradients.

   Batches have numbers: number n is a range of the rows of epoch n / (batches of an epoch), the
   same for every node. The coordinator assigns them, and assigns again those that were cancelled or
   lost: every number is applied exactly once. A worker gets a number and values, and sends back its
   gradient as factors (∂loss/∂score of its examples); every server multiplies them out for its own
   features.

   Nodes are numbered: servers from 0, then workers. */
#ifndef SDR_NETWORK_H
#define SDR_NETWORK_H

#include "server/compute_times.h"
#include "server/coordinator.h"
#include "server/message.h"
#include "server/role.h"
#include "server/sampler.h"
#include "server/shards.h"
#include "server/slots.h"
#include "server/traffic.h"
#include "update/parameters.h"
#include "update/values.h"
#include "update/wire.h"

/* Workspace for gradients, one per computing thread. */
struct sdr_workspace {
    float *w; /* owned, as long as the parameters: the view, assembled from pieces */
    struct sdr_marks marks;
    uint32_t *row;                   /* owned: the rows of a batch */
    struct sdr_gradient_space space; /* of a worker */
    struct sdr_loss_sum *losses;     /* owned: one per leaf */
    struct sdr_part *part;           /* owned: of a step */
    struct sdr_wire_writer writer;
    struct sdr_wire_reader reader;
    /* Steps on w with the state of a worker, if workers take steps. */
    struct sdr_parameters stepper;
    struct sdr_subset subset; /* the batch by itself, with compact views */
    float *packed;            /* owned: values to be sent, if workers take steps */
    float *before;            /* owned: values before the steps, for every server; likewise */
    uint32_t *own_row;        /* owned: rows of an earlier batch; likewise */
};

/* Decisions of the strategy and the options. */
struct sdr_policy {
    uint64_t quorum; /* gradients of an update */
    /* every worker computes its part of one batch, and all wait for it */
    bool joint;
    uint32_t part_unit; /* rows per unit of a part: a leaf if bits matter, or 1 */
    bool sparse;        /* workers are sent only the values that their batch touches */
    bool compact;       /* and hold only these, not a view as long as the parameters */
    bool cancels;       /* the strategy may cancel work */
    bool steps;         /* workers take steps and send the change */
    bool eager;         /* values are sent ahead */
    bool keeps;         /* workers may have to continue from their present values */
    /* rows of every worker's shard in a batch, whether joint or not; 0: no shards */
    uint64_t share;
    uint64_t batch;            /* rows of a batch */
    uint32_t local;            /* rows of a step, if workers take several per batch */
    uint64_t per_epoch;        /* batches per epoch */
    struct sdr_divisor epochs; /* divides by per_epoch */
};

struct sdr_network {
    int servers, workers, nodes; /* servers is 0: workers are peers */
    int processes;               /* of the job */
    bool dedicated;              /* servers have their own processes, without workers */
    struct sdr_peers *peers;     /* owned; NULL: there are servers */
    struct sdr_node *node;       /* owned: all of them */
    struct sdr_pool *pool;       /* owned */
    void *shared;                /* of the transport */
    /* Prefetches the memory that a worker needs next; NULL: no prefetch. */
    void (*fetch)(const struct sdr_node *node);
    bool single_threaded;            /* all nodes are on one thread: no locks needed */
    struct sdr_span *span;           /* owned: the values of each server */
    struct sdr_wire wire;            /* encoding of updates */
    struct sdr_server *server;       /* owned */
    struct sdr_workspace *workspace; /* owned */
    int workspaces;
    struct sdr_task *task; /* owned, per worker */
    struct sdr_sampler sampler;
    struct sdr_policy policy;
    struct sdr_coordinator lead;
    struct sdr_traffic traffic;
    struct sdr_slots slots;
    struct sdr_state_counts states; /* of all peers, as far as they have reported */
    struct sdr_channel *channel;    /* owned: see traffic.c */
    int channel_nodes;              /* that these are for; 0: messages are not numbered */
    bool admits;                    /* what arrives is checked */
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
