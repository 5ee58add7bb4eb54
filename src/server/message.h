/* Messages between nodes, and the bytes they carry. */
#ifndef SDR_MESSAGE_H
#define SDR_MESSAGE_H

#include "base/fail.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Bytes that travel. Written by whoever made them, never changed once they were sent; freed, into the pool
   they came from, when the last one lets go of them. */
struct sdr_pool;
struct sdr_body {
    atomic_uint refs;
    uint16_t class;
    bool single_threaded; /* whoever holds it is on the same thread: plain counting will do */
    uint64_t bytes;
    struct sdr_pool *home;
    struct sdr_body *next; /* while it rests in the pool */
    _Alignas(64) unsigned char data[];
};

/* Bodies that were let go, by powers of two: loops do not ask the system for memory. */
enum sdr_status sdr_pool_create(bool single_threaded, struct sdr_pool **pool);
void sdr_pool_destroy(struct sdr_pool *pool);
enum sdr_status sdr_body_create(struct sdr_pool *pool, uint64_t bytes, struct sdr_body **body);
/* Adds to a count; what it was before. */
static inline unsigned sdr_body_count(struct sdr_body *body, unsigned change)
{
    if (!body->single_threaded)
        return atomic_fetch_add_explicit(&body->refs, change, memory_order_acq_rel);
    unsigned before = atomic_load_explicit(&body->refs, memory_order_relaxed);
    atomic_store_explicit(&body->refs, before + change, memory_order_relaxed);
    return before;
}
static inline struct sdr_body *sdr_body_hold(struct sdr_body *body)
{
    if (body)
        sdr_body_count(body, 1);
    return body;
}
void sdr_body_drop(struct sdr_body *body); /* NULL: nothing */

enum sdr_message_kind {
    SDR_MESSAGE_NONE,     /* the first server has waited for a while: it may look at the clock */
    SDR_MESSAGE_TASK,     /* server → worker: a batch to work on, and values to work from */
    SDR_MESSAGE_GRADIENT, /* worker → server */
    SDR_MESSAGE_APPLY,    /* first server → the others: gradients that make an update */
    SDR_MESSAGE_DROP,     /* first server → the others: a gradient that will not be applied */
    SDR_MESSAGE_ANSWER,   /* first server → the others: a worker is to be given a task */
    SDR_MESSAGE_APPLIED,  /* another server → the first one */
    SDR_MESSAGE_ORDER,    /* first server → a server elsewhere: see server/shards.h */
    SDR_MESSAGE_DONE,     /* a server elsewhere → the first one: its answer */
    SDR_MESSAGE_STOP,     /* the run is over */
    SDR_MESSAGE_JOINED,   /* transport → servers: worker `about` is there */
    SDR_MESSAGE_LOST,     /* transport → servers, or all nodes without one: `from` is gone */
    SDR_MESSAGE_PEER,     /* peer → peer: `about` is its tag */
    SDR_MESSAGE_REPORT,   /* peer → peer 0: its part of an update, see peer/peers.h */
    SDR_MESSAGE_KINDS,
};
/* NONE, LOST and JOINED are made by the transport where they are received. */
static inline bool sdr_message_travels(uint8_t kind)
{
    return kind < SDR_MESSAGE_KINDS && kind != SDR_MESSAGE_NONE && kind != SDR_MESSAGE_LOST &&
           kind != SDR_MESSAGE_JOINED;
}
enum sdr_message_flag {
    SDR_URGENT = 1, /* ends what the receiver computes: this is how work is cancelled */
    SDR_SPARSE = 2, /* the values are those that the batch touches */
    SDR_PATCH = 4,  /* what has changed of the values that a task came with */
    SDR_KEEP = 8,   /* a task without values: the worker goes on from those it has */
};
struct sdr_message {
    uint8_t kind, flags;
    uint16_t sequence; /* among those of its sender to its receiver; sdr_send gives it */
    int32_t from, to;  /* nodes, not processes */
    int32_t
        about; /* with ANSWER, DROP, JOINED and LOST: the worker (LOST of a server: −1); with TASK: how many of
                              its own steps the values have in them; with ORDER: which */
    uint64_t version; /* of the values: those carried, or those a gradient was computed from */
    uint64_t batch;   /* number of the batch */
    double
        value; /* with ANSWER: the penalty that is due so far; with TASK, where workers take steps: their size;
                              with a PATCH: the version that the values are of with it;
                              with LOST: seconds of silence before */
    struct sdr_body *body; /* given away by send, owned after receive; may be NULL */
};
/* On a wire: a header of this size, and the body. */
enum { SDR_HEADER_BYTES = 48 };
static inline uint64_t sdr_message_bytes(const struct sdr_message *message)
{
    return SDR_HEADER_BYTES + (message->body ? message->body->bytes : 0);
}

#endif
