/* Parameters whose servers live in several processes. Between two updates, while nobody trains, the
   coordinator sends orders to the servers in other processes: make weights ready, keep them,
   restore them, send or receive values of a span. Everything that needs all values (evaluation,
   checkpoints, the model file) goes through this module, which holds one piece of them at a time.

   If all servers live in the coordinator's process they share its arrays, and no orders are
   needed. */
#ifndef SDR_SERVER_SHARDS_H
#define SDR_SERVER_SHARDS_H

#include "update/subset.h"

struct sdr_run;
struct sdr_node;
struct sdr_message;

enum sdr_order {
    SDR_ORDER_READY,     /* charge all penalties. Answer: whether all weights are finite */
    SDR_ORDER_KEEP_GOOD, /* keep the ready weights */
    SDR_ORDER_KEEP_BEST,
    SDR_ORDER_RESET,   /* restore the good weights; clears optimizer state */
    SDR_ORDER_SAVE,    /* save values and state, which READY may change */
    SDR_ORDER_RESTORE, /* restore them */
    SDR_ORDER_BEGIN,   /* take over version, penalty and step constants from the coordinator */
    SDR_ORDER_READ,    /* send values of an array */
    SDR_ORDER_WRITE,   /* replace values of an array */
    SDR_ORDER_PULL,    /* send the values of listed features */
    SDR_ORDER_SYNC,    /* answer: everything sent before was handled */
    SDR_ORDERS,
};

/* Arrays of parameters. NOW: the weights made ready last; GOOD, BEST: those kept. */
enum sdr_array {
    SDR_ARRAY_VALUE,
    SDR_ARRAY_SLOT0,
    SDR_ARRAY_SLOT1,
    SDR_ARRAY_PAID,
    SDR_ARRAY_NOW,
    SDR_ARRAY_GOOD,
    SDR_ARRAY_BEST,
    SDR_ARRAYS,
};

/* An array to be read piece by piece. */
struct sdr_shard_array {
    struct sdr_run *run;
    enum sdr_array array;
};

/* Values per request: the coordinator holds no more of other processes' values. */
enum { SDR_PIECE = 1 << 20 };

/* All servers in other processes carry out an order without values. *all: every answer was yes;
   may be NULL. */
enum sdr_status sdr_shards_order(struct sdr_run *run, enum sdr_order order, bool *all);
/* Reads or writes at most SDR_PIECE values of a span, in any process. */
enum sdr_status sdr_shards_read(struct sdr_run *run, enum sdr_array array, struct sdr_span span,
                                float *to);
enum sdr_status sdr_shards_write(struct sdr_run *run, enum sdr_array array, struct sdr_span span,
                                 const float *from);
/* Gets the values that the rows of a subset read, from NOW, GOOD or BEST. Servers need not have
   these rows. */
enum sdr_status sdr_shards_pull(struct sdr_run *run, enum sdr_array array,
                                struct sdr_subset *subset);
/* Waits until all other servers, those of this process too, have handled what was sent to them:
   nobody changes values then. */
enum sdr_status sdr_shards_sync(struct sdr_run *run);
/* Ends the loops of servers in other processes. */
enum sdr_status sdr_shards_stop(struct sdr_run *run);

/* A server that follows the coordinator: executes an order and answers. */
enum sdr_status sdr_obey(struct sdr_node *node, const struct sdr_message *order);

#endif
