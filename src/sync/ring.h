/* Sums of vectors over peers: around a ring in buckets, or by a tree; and the messages of both.

   A vector is cut into buckets, a bucket into as many chunks as there are members. Reduce-scatter:
   in step t the member of rank r sends chunk r − t to the next one and adds what it receives to
   chunk r − t − 1; after P − 1 steps it has the sum of chunk r + 1. All-gather: these go around
   once more. All members together send 2·N·(P − 1) values in 2(P − 1) steps a bucket. Instead, the
   transport may sum the buckets up (MPI_Iallreduce). */
#ifndef SDR_SYNC_RING_H
#define SDR_SYNC_RING_H

#include "peer/role.h"

struct sdr_ring {
    struct sdr_node *node;
    struct sdr_body *memory; /* borrowed: of the vector */
    float *vector;           /* what is summed */
    uint64_t values, buckets;
    struct sdr_bucket *bucket; /* owned */
    uint64_t ready;            /* values that are final, from the beginning on */
    int rank, peers;           /* among the members */
    int32_t tag;               /* the first tag of this membership */
    bool by_transport;         /* the transport sums up: no ring, and nobody may die */
};
enum { SDR_RING_UP, SDR_RING_DOWN, SDR_RING_TAGS }; /* tags behind those of the buckets */

/* Buckets of up to this size, or a 32nd of all values if that is more. */
enum sdr_status sdr_ring_create(struct sdr_node *node, uint64_t values, uint64_t bucket_bytes,
                                struct sdr_ring *ring);
void sdr_ring_free(struct sdr_ring *ring);
bool sdr_ring_busy(const struct sdr_ring *ring); /* a sum is under way */
/* Takes the members as they are now. Messages have tags from `tag` on. */
void sdr_ring_join(struct sdr_ring *ring, int32_t tag);
/* A sum begins, of the values in a body. Messages are parts of it, without copies: it must not
   change before the next sum is complete, which has another body. ring->ready grows as values
   become final. */
void sdr_ring_begin(struct sdr_ring *ring, struct sdr_body *memory);
/* Begins the buckets whose values are all final, and does what can be done without waiting. */
enum sdr_status sdr_ring_progress(void *ring);
enum sdr_status sdr_ring_finish(struct sdr_ring *ring);
/* Sums by the transport, when the run is over: it matches sums by their order, and some members
   have begun the next one. So all take part in it, for up to 10 seconds. */
void sdr_ring_drain(struct sdr_ring *ring, struct sdr_body *memory);
/* The same sum by a binomial tree: 2·log₂P messages one after the other, not 2(P − 1). */
enum sdr_status sdr_ring_tree(struct sdr_ring *ring);

/* A message of `count` bytes, and one of the length that is expected. */
enum sdr_status sdr_send_bytes(struct sdr_node *node, int to, int32_t tag, const void *bytes,
                               uint64_t count);
enum sdr_status sdr_receive_bytes(struct sdr_node *node, int from, int32_t tag, uint64_t count,
                                  struct sdr_body **body);

#endif
