/* A node: the context of a strategy's loop, in any role. */
#ifndef SDR_NODE_H
#define SDR_NODE_H

#include "kind/strategy.h"
#include "kind/transport.h"
#include "server/ledger.h"
#include "update/gradient.h"

struct sdr_run;

/* An array that a loop keeps between updates; checkpoints save it under its name. */
struct sdr_node_array {
    char name[24];
    double *value; /* owned by the node */
    uint64_t count;
};
enum { SDR_NODE_ARRAYS = 8 };

struct sdr_task;
struct sdr_node {
    struct sdr_run *run; /* for the helpers; loops do not access it */
    int id, worker, workers;
    int server,
        servers; /* only with messages; worker or server is −1 if the node has no such role */
    struct sdr_task *task;       /* owned, only with messages: the worker's task */
    void *endpoint;              /* of the transport */
    const void *options;         /* of the strategy */
    const struct sdr_plan *plan; /* the strategy's decisions */
    void *state; /* of the strategy, state_size bytes: zero, or restored from a checkpoint */
    struct sdr_node_array array[SDR_NODE_ARRAYS];
    int arrays;
    struct sdr_parameters *parameters;  /* target of its steps: the run's, an alias, a replica */
    struct sdr_loss_sum *loss_sum;      /* of the steps on these parameters */
    struct sdr_gradient_space space;    /* owned: workspace for gradients */
    float *snapshot;                    /* owned: values copied for a batch, or NULL */
    uint64_t staleness, stalest, steps; /* staleness: sum and maximum; number of steps */
    uint64_t dealt;                     /* rows taken from its shard in this epoch */
    uint64_t taken;                     /* shares taken from its shard */
};

#endif
