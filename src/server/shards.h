/* Parameters whose servers live in several processes. Between two updates, while nobody trains, the coordinator
   gives the servers elsewhere orders: each makes its weights ready, keeps them, goes back to them, sends or
   receives values of its span. Whatever needs all values (evaluation, checkpoints, the model file) asks here, and
   holds a piece of them at a time.

   Where all servers live in the coordinator's process they share its arrays, and nobody needs orders. */
#ifndef SDR_SERVER_SHARDS_H
#define SDR_SERVER_SHARDS_H

#include "update/subset.h"

struct sdr_run;
struct sdr_node;
struct sdr_message;

enum sdr_order {
    SDR_ORDER_READY,     /* make the weights ready: penalties are paid. Answer: all are finite */
    SDR_ORDER_KEEP_GOOD, /* keep the weights that are ready */
    SDR_ORDER_KEEP_BEST,
    SDR_ORDER_RESET,   /* go back to the good weights, without optimizer state */
    SDR_ORDER_SAVE,    /* remember values and state, which making weights ready may change */
    SDR_ORDER_RESTORE, /* and put them back */
    SDR_ORDER_BEGIN,   /* take over version, penalty and step constants of the coordinator */
    SDR_ORDER_READ,    /* send values of an array */
    SDR_ORDER_WRITE,   /* replace values of an array */
    SDR_ORDER_PULL,    /* send the values that listed rows read */
    SDR_ORDERS,
};

/* Arrays of parameters. NOW: the weights that were made ready last; GOOD, BEST: those that were kept. */
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

/* One of them, for whoever reads it piece by piece. */
struct sdr_shard_array {
    struct sdr_run *run;
    enum sdr_array array;
};

/* Values that are asked for at a time: what the coordinator holds of other processes' values. */
enum { SDR_PIECE = 1 << 20 };

/* All servers elsewhere carry out an order that needs no values. *all: every answer was yes; may be NULL. */
enum sdr_status sdr_shards_order(struct sdr_run *run, enum sdr_order order, bool *all);
/* At most SDR_PIECE values of a span, wherever they live: out of an array, or into it. */
enum sdr_status sdr_shards_read(struct sdr_run *run, enum sdr_array array, struct sdr_span span,
                                float *to);
enum sdr_status sdr_shards_write(struct sdr_run *run, enum sdr_array array, struct sdr_span span,
                                 const float *from);
/* The values that some rows (of the validation data, or of training) read, from NOW, GOOD or BEST, into the
   subset made of these rows. */
enum sdr_status sdr_shards_pull(struct sdr_run *run, enum sdr_array array, bool valid,
                                const struct sdr_batch *rows, struct sdr_subset *subset);
/* Servers elsewhere return from their loops. */
enum sdr_status sdr_shards_stop(struct sdr_run *run);

/* A server that follows the coordinator: carries out an order and answers. */
enum sdr_status sdr_obey(struct sdr_node *node, const struct sdr_message *order);

#endif
