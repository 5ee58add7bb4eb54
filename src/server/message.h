/* Messages between nodes, and their bodies. */
#ifndef SDR_MESSAGE_H
#define SDR_MESSAGE_H

#include "base/fail.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The body of a message. Immutable once sent; reference-counted. The last holder returns it to
   its pool. */
struct sdr_pool;
struct sdr_arena;
struct sdr_body {
    atomic_uint refs;
    uint16_t class;
    bool single_threaded; /* all holders are on one thread: no atomics needed */
    uint64_t bytes;
    struct sdr_pool *home;
    struct sdr_body *next;  /* while it is free in the pool */
    struct sdr_body *whole; /* held: this is a part of it; NULL: it is not */
    /* For the process whose memory this is: set when the last holder here lets it go. NULL: it is
       of this process. */
    atomic_uint *freed;
    unsigned char *data; /* its own room, or memory of the whole or of another process */
    unsigned char *room; /* owned: behind it, or in the pool's arena */
    _Alignas(64) unsigned char memory[];
};

/* Free bodies by size: loops allocate nothing. */
enum sdr_status sdr_pool_create(bool single_threaded, struct sdr_pool **pool);
void sdr_pool_destroy(struct sdr_pool *pool);
/* From now on bodies of more than `least` bytes have their room in an arena, which is the
   caller's. */
void sdr_pool_share(struct sdr_pool *pool, struct sdr_arena *arena, uint64_t least);
enum sdr_status sdr_body_create(struct sdr_pool *pool, uint64_t bytes, struct sdr_body **body);
/* Adds to the reference count; returns the old count. */
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
/* A part of another body, without a copy: whoever writes there must know that its receiver is
   done. */
enum sdr_status sdr_body_part(struct sdr_body *whole, uint64_t from, uint64_t bytes,
                              struct sdr_body **part);
/* A body in the memory of another process, which waits for *freed. */
enum sdr_status sdr_body_elsewhere(struct sdr_pool *pool, unsigned char *data, uint64_t bytes,
                                   atomic_uint *freed, struct sdr_body **body);
void sdr_body_drop(struct sdr_body *body); /* NULL: no effect */

enum sdr_message_kind {
    SDR_MESSAGE_NONE,     /* timeout: the coordinator may poll the clock */
    SDR_MESSAGE_TASK,     /* server → worker: a batch, and the values to compute from */
    SDR_MESSAGE_GRADIENT, /* worker → server */
    SDR_MESSAGE_APPLY,    /* coordinator → other servers: gradients to apply as one update */
    SDR_MESSAGE_DROP,     /* coordinator → other servers: a gradient that will not be applied */
    SDR_MESSAGE_ANSWER,   /* coordinator → other servers: send a worker its task */
    SDR_MESSAGE_APPLIED,  /* another server → coordinator */
    SDR_MESSAGE_ORDER,    /* coordinator → server in another process: see server/shards.h */
    SDR_MESSAGE_DONE,     /* server in another process → coordinator: its answer */
    SDR_MESSAGE_STOP,     /* the run is over */
    SDR_MESSAGE_JOINED,   /* transport → servers: worker `about` has joined */
    SDR_MESSAGE_LOST,     /* transport → servers, or all nodes without one: `from` is lost */
    SDR_MESSAGE_PEER,     /* peer → peer: `about` is its tag */
    SDR_MESSAGE_REPORT,   /* peer → peer 0: its part of an update, see peer/peers.h */
    /* peer → slot `about` of a peer: written on arrival, see server/slots.h */
    SDR_MESSAGE_PUT,
    SDR_MESSAGE_KINDS,
};
/* Kinds that a transport makes itself, and that never come from another node. */
static inline bool sdr_message_is_local(uint8_t kind)
{
    return kind == SDR_MESSAGE_NONE || kind == SDR_MESSAGE_JOINED || kind == SDR_MESSAGE_LOST;
}
enum sdr_message_flag {
    SDR_URGENT = 1, /* cancels the receiver's computation */
    SDR_SPARSE = 2, /* the values are only those that the batch touches */
    SDR_PATCH = 4,  /* changes of the values of a task */
    SDR_KEEP = 8,   /* a task without values: the worker continues from its own */
    SDR_TORN = 16,  /* only a part of a PUT arrives */
};
struct sdr_message {
    uint8_t kind, flags;
    uint16_t sequence; /* among those of its sender to its receiver; sdr_send gives it */
    int32_t from, to;  /* nodes, not processes */
    /* ANSWER, DROP, JOINED, LOST: the worker (LOST of a server: −1); TASK: number of the
       worker's own steps in the values; ORDER: the order. */
    int32_t about;
    uint64_t version; /* of the values: those carried, or those a gradient was computed from */
    uint64_t batch;   /* number of the batch */
    /* ANSWER: penalty due; TASK, if workers take steps: step size; PATCH: version of the patched
       values; LOST: seconds of silence. */
    double value;
    struct sdr_body *body; /* given away by send, owned after receive; may be NULL */
};
/* Size of the header on the wire, before the body. */
enum { SDR_HEADER_BYTES = 48 };
static inline uint64_t sdr_message_bytes(const struct sdr_message *message)
{
    return SDR_HEADER_BYTES + (message->body ? message->body->bytes : 0);
}

#endif
