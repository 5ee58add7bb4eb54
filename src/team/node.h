/* A node: what a strategy's loop runs on, in any role. */
#ifndef SDR_NODE_H
#define SDR_NODE_H

#include "kind/strategy.h"
#include "kind/transport.h"
#include "server/ledger.h"
#include "update/gradient.h"

struct sdr_run;

/* Arrays a loop keeps between updates; saved in checkpoints under their names. */
struct sdr_node_array {
    char name[24];
    double *value; /* owned by the node */
    uint64_t count;
};
enum { SDR_NODE_ARRAYS = 8 };

struct sdr_task;
struct sdr_node {
    struct sdr_run *run; /* for the helpers below; a loop does not look inside */
    int id, worker, workers;
    int server,
        servers; /* nodes that exchange messages; worker or server is −1 where it has no such role */
    struct sdr_task *task;       /* of such a worker */
    void *endpoint;              /* the transport's */
    const void *options;         /* the strategy's own */
    const struct sdr_plan *plan; /* what it decided */
    void *state; /* the strategy's, state_size bytes: zero, or as a checkpoint left it */
    struct sdr_node_array array[SDR_NODE_ARRAYS];
    int arrays;
    struct sdr_parameters *parameters; /* it steps on: the run's, an alias or a replica */
    struct sdr_loss_sum *loss_sum;     /* of the steps on these parameters */
    struct sdr_gradient_space
        *space;      /* owned: for gradients; NULL: it computes none, or elsewhere */
    float *snapshot; /* owned: values copied for a batch; NULL: none */
    uint64_t staleness, stalest, steps; /* sum and largest of the updates its gradients missed */
    uint64_t dealt;                     /* rows of its own shard in this epoch */
    uint64_t taken;                     /* shares of it */
};

#endif
