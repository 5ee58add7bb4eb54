/* Sums of vectors over peers: see ring.h. */
#include "sync/ring.h"
#include "base/memory.h"

#include <string.h>

struct sdr_bucket {
    uint64_t first, count; /* values */
    int step;              /* the next one to receive; −1: not started */
    _Alignas(16) unsigned char request[SDR_SUM_REQUEST]; /* of the transport's sum */
};

/* ---- messages ---- */
enum sdr_status sdr_send_bytes(struct sdr_node *node, int to, int32_t tag, const void *bytes,
                               uint64_t count)
{
    struct sdr_body *body = NULL;
    if (count) {
        SDR_TRY(sdr_peer_body(node, count, &body));
        memcpy(body->data, bytes, count);
    }
    return sdr_peer_send(node, to, tag, body);
}

static enum sdr_status check_length(const struct sdr_node *node, int from,
                                    const struct sdr_body *body, uint64_t count)
{
    if ((body ? body->bytes : 0) == count)
        return SDR_OK;
    return sdr_fail(SDR_RUNTIME, "worker %d: worker %d sent a message of another length",
                    sdr_peer_id(node), from);
}

enum sdr_status sdr_receive_bytes(struct sdr_node *node, int from, int32_t tag, uint64_t count,
                                  struct sdr_body **body)
{
    SDR_TRY(sdr_peer_receive(node, from, tag, body));
    enum sdr_status status = check_length(node, from, *body, count);
    if (status != SDR_OK)
        sdr_body_drop(*body);
    return status;
}

/* ---- members and buckets ---- */
/* Where a bucket ends: with the block that fills an eighth of it, so that it can begin when the
   backward pass has finished that block; and at `most` values. */
static uint64_t end_of(const struct sdr_ring *ring, uint64_t first, uint64_t most)
{
    uint64_t limit = ring->values - first < most ? ring->values : first + most, end = first, next;
    while (end - first < most / 8 && (next = sdr_peer_block_end(ring->node, end)) > end &&
           next < limit)
        end = next;
    return end - first < most / 8 || end == first ? limit : end;
}

enum sdr_status sdr_ring_create(struct sdr_node *node, uint64_t values, uint64_t bucket_bytes,
                                struct sdr_ring *ring)
{
    enum { MOST = 256 }; /* every one is looked at whenever a message comes */
    uint64_t most = bucket_bytes / sizeof(float), least = values / (MOST / 8) + 1;
    most = most > least ? most : least;
    *ring = (struct sdr_ring){.node = node, .values = values};
    SDR_TRY(sdr_allocate(&ring->bucket, MOST + 1, sizeof *ring->bucket, "buckets of a gradient"));
    for (uint64_t first = 0, end = 0; ring->buckets == 0 || first < values; first = end) {
        end = end_of(ring, first, most);
        ring->bucket[ring->buckets++] =
            (struct sdr_bucket){.first = first, .count = end - first, .step = -1};
    }
    return SDR_OK;
}

void sdr_ring_free(struct sdr_ring *ring)
{
    sdr_release(ring->bucket);
}

void sdr_ring_join(struct sdr_ring *ring, int32_t tag)
{
    ring->rank = sdr_peer_rank(ring->node);
    ring->peers = sdr_peer_members(ring->node);
    ring->tag = tag;
}

void sdr_ring_begin(struct sdr_ring *ring, struct sdr_body *memory)
{
    ring->memory = memory;
    ring->vector = (float *)(void *)memory->data;
    ring->ready = 0;
    for (uint64_t b = 0; b < ring->buckets; b++)
        ring->bucket[b].step = -1;
}

static int32_t tag_of(const struct sdr_ring *ring, const struct sdr_bucket *bucket)
{
    return ring->tag + (int32_t)(bucket - ring->bucket);
}

static void add(float *restrict to, const float *restrict from, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        to[i] += from[i];
}

/* ---- ring ---- */
static int after(const struct sdr_ring *ring)
{
    return sdr_peer_member(ring->node, (ring->rank + 1) % ring->peers);
}

static int before(const struct sdr_ring *ring)
{
    return sdr_peer_member(ring->node, (ring->rank + ring->peers - 1) % ring->peers);
}

/* The values of a chunk; its number may be below 0 or too large by less than P. */
static float *chunk(const struct sdr_ring *ring, const struct sdr_bucket *bucket, int number,
                    uint64_t *count)
{
    uint64_t peers = (uint64_t)ring->peers;
    uint64_t c = (uint64_t)((number + ring->peers) % ring->peers);
    uint64_t first = bucket->count * c / peers;
    *count = bucket->count * (c + 1) / peers - first;
    return ring->vector + bucket->first + first;
}

static bool is_done(const struct sdr_ring *ring, const struct sdr_bucket *bucket)
{
    return bucket->step == 2 * (ring->peers - 1);
}

bool sdr_ring_busy(const struct sdr_ring *ring)
{
    for (uint64_t b = 0; b < ring->buckets; b++)
        if (ring->bucket[b].step >= 0 && !is_done(ring, &ring->bucket[b]))
            return true;
    return false;
}

/* Sends values of the vector, as they are, to the next member. */
static enum sdr_status pass_on(const struct sdr_ring *ring, const struct sdr_bucket *bucket,
                               const float *values, uint64_t count)
{
    struct sdr_body *body = NULL;
    if (count)
        SDR_TRY(sdr_body_part(ring->memory, (uint64_t)(values - ring->vector) * sizeof *values,
                              count * sizeof *values, &body));
    return sdr_peer_send(ring->node, after(ring), tag_of(ring, bucket), body);
}

static enum sdr_status start(const struct sdr_ring *ring, struct sdr_bucket *bucket)
{
    uint64_t count;
    bucket->step = 0;
    if (ring->by_transport)
        return sdr_peer_sum(ring->node, ring->vector + bucket->first, bucket->count,
                            bucket->request);
    if (ring->peers == 1)
        return SDR_OK;
    const float *first = chunk(ring, bucket, ring->rank, &count);
    return pass_on(ring, bucket, first, count);
}

/* What has come is added, or in the second half is the sum; it goes on to the next worker until it
   has been everywhere. A chunk that was sent changes only when its sum comes back, which the
   receiver has contributed to. */
static enum sdr_status take_step(const struct sdr_ring *ring, struct sdr_bucket *bucket,
                                 struct sdr_body *body)
{
    int half = ring->peers - 1, t = bucket->step++;
    uint64_t count;
    float *to =
        chunk(ring, bucket, t < half ? ring->rank - t - 1 : ring->rank - (t - half), &count);
    enum sdr_status status = check_length(ring->node, before(ring), body, count * sizeof *to);
    const float *came = body ? (const float *)(const void *)body->data : NULL;
    if (status == SDR_OK && count && t < half)
        add(to, came, count);
    else if (status == SDR_OK && count)
        memcpy(to, came, count * sizeof *to);
    sdr_body_drop(body);
    return status != SDR_OK || is_done(ring, bucket) ? status : pass_on(ring, bucket, to, count);
}

static enum sdr_status poll_sum(const struct sdr_ring *ring, struct sdr_bucket *bucket)
{
    bool done;
    SDR_TRY(sdr_peer_summed(ring->node, bucket->request, &done));
    if (done)
        bucket->step = 2 * (ring->peers - 1);
    return SDR_OK;
}

enum sdr_status sdr_ring_progress(void *context)
{
    const struct sdr_ring *ring = context;
    struct sdr_node *node = ring->node;
    bool any;
    SDR_TRY(sdr_peer_any(node, &any)); /* takes in what has arrived, also for later buckets */
    for (uint64_t b = 0; b < ring->buckets; b++) {
        struct sdr_bucket *bucket = &ring->bucket[b];
        if (bucket->step < 0 && bucket->first + bucket->count <= ring->ready)
            SDR_TRY(start(ring, bucket));
        if (ring->by_transport && bucket->step >= 0 && !is_done(ring, bucket))
            SDR_TRY(poll_sum(ring, bucket));
        for (bool came = true;
             !ring->by_transport && came && bucket->step >= 0 && !is_done(ring, bucket);) {
            struct sdr_body *body;
            SDR_TRY(sdr_peer_poll(node, before(ring), tag_of(ring, bucket), &body, &came));
            if (came)
                SDR_TRY(take_step(ring, bucket, body));
        }
    }
    return SDR_OK;
}

/* Waits for the first bucket that is not done, while the others go on. */
enum sdr_status sdr_ring_finish(struct sdr_ring *ring)
{
    ring->ready = ring->values;
    for (uint64_t b = 0; b < ring->buckets;) {
        struct sdr_body *body;
        SDR_TRY(sdr_ring_progress(ring));
        while (b < ring->buckets && is_done(ring, &ring->bucket[b]))
            b++;
        if (b == ring->buckets)
            return SDR_OK;
        if (ring->by_transport) {
            SDR_TRY(sdr_peer_await_sum(ring->node, ring->bucket[b].request));
            ring->bucket[b].step = 2 * (ring->peers - 1);
            continue;
        }
        SDR_TRY(sdr_peer_receive(ring->node, before(ring), tag_of(ring, &ring->bucket[b]), &body));
        SDR_TRY(take_step(ring, &ring->bucket[b], body));
    }
    return SDR_OK;
}

void sdr_ring_drain(struct sdr_ring *ring, struct sdr_body *memory)
{
    int64_t until = sdr_peer_now(ring->node) + INT64_C(10000000000);
    bool complete = true;
    for (uint64_t b = 0; b < ring->buckets; b++)
        complete = complete && is_done(ring, &ring->bucket[b]);
    if (complete || !ring->memory)
        sdr_ring_begin(ring, memory);
    for (uint64_t b = 0; b < ring->buckets; b++) {
        struct sdr_bucket *bucket = &ring->bucket[b];
        enum sdr_status status = bucket->step < 0 ? start(ring, bucket) : SDR_OK;
        while (status == SDR_OK && !is_done(ring, bucket) && sdr_peer_now(ring->node) < until)
            status = poll_sum(ring, bucket);
    }
}

/* ---- tree ---- */
/* The member of rank r is the parent of r + 2^k for every 2^k below its lowest bit: sums go up, the
   total comes down. */
enum sdr_status sdr_ring_tree(struct sdr_ring *ring)
{
    struct sdr_node *node = ring->node;
    int32_t up = ring->tag + (int32_t)ring->buckets + SDR_RING_UP, down = up + SDR_RING_DOWN;
    uint64_t bytes = ring->values * sizeof(float);
    int bit = 1;
    struct sdr_body *body;
    for (; bit < ring->peers && !(ring->rank & bit); bit *= 2)
        if (ring->rank + bit < ring->peers) {
            SDR_TRY(
                sdr_receive_bytes(node, sdr_peer_member(node, ring->rank + bit), up, bytes, &body));
            add(ring->vector, (const float *)(const void *)body->data, ring->values);
            sdr_body_drop(body);
        }
    if (ring->rank > 0) {
        int parent = sdr_peer_member(node, ring->rank - bit);
        SDR_TRY(sdr_send_bytes(node, parent, up, ring->vector, bytes));
        SDR_TRY(sdr_receive_bytes(node, parent, down, bytes, &body));
        memcpy(ring->vector, body->data, bytes);
        sdr_body_drop(body);
    }
    for (bit /= 2; bit > 0; bit /= 2)
        if (ring->rank + bit < ring->peers)
            SDR_TRY(sdr_send_bytes(node, sdr_peer_member(node, ring->rank + bit), down,
                                   ring->vector, bytes));
    return SDR_OK;
}
