/* Data-parallel SGD without a server, as PyTorch's DistributedDataParallel does it: every worker has a replica of the
   parameters and computes the gradient of its part of a batch; the gradients are summed around a ring, and every replica
   takes the same step.

   The gradient is cut into buckets, each into as many chunks as there are workers. Reduce-scatter: in step t worker r sends
   chunk r − t to the next one and adds what it receives to chunk r − t − 1; after P − 1 steps it has the sum of chunk r + 1.
   All-gather: these go around once more. All workers together send 2·N·(P − 1) values in 2(P − 1) steps a bucket. The ring of
   a bucket begins as soon as the backward pass has finished its values, the last layer's first, and goes on between the
   layers. Few values go up and down a binomial tree instead: 2·log₂P messages one after the other, not 2(P − 1).

   A sum around a ring begins at another worker for every chunk, so its last bits depend on P. With --deterministic the parts
   themselves, as factors where they are fewer bytes, go to everybody, and everybody adds them up in the order of the
   rows: the bits of one worker. */
#include "base/memory.h"
#include "peer/role.h"

#include <string.h>

struct options {
    uint64_t bucket, tree, check;
    bool overlap;
};
static const struct sdr_option table[] = {
    {"bucket", SDR_SIZE, "1M", "SIZE", 0, 0, "bytes of the gradient that are summed at a time",
     offsetof(struct options, bucket), 0},
    {"overlap", SDR_FLAG, "yes", NULL, 0, 0,
     "sums what is finished while the rest of the gradient is computed",
     offsetof(struct options, overlap), 0},
    {"tree", SDR_SIZE, "8K", "SIZE", 0, 0, "gradients of up to this size are summed by a tree",
     offsetof(struct options, tree), 0},
    {"check", SDR_INTEGER, "100", "N", 0, 1e12,
     "updates after which all replicas are compared; a difference ends the run; 0: never",
     offsetof(struct options, check), 0},
    {0}};

struct bucket {
    uint64_t first, count; /* values */
    int step;              /* the next one to receive; −1: not started */
};
struct own {
    float *gradient;       /* owned */
    struct bucket *bucket; /* owned */
    uint64_t buckets, values;
    int rank, peers;
    struct sdr_body **body; /* owned, per worker: updates */
};

static enum sdr_status send(struct sdr_node *node, int to, int32_t tag, const float *value,
                            uint64_t count)
{
    struct sdr_body *body = NULL;
    if (count) {
        SDR_TRY(sdr_peer_body(node, count * sizeof *value, &body));
        memcpy(body->data, value, count * sizeof *value);
    }
    return sdr_peer_send(node, to, tag, body);
}

static enum sdr_status check_length(struct sdr_node *node, int from, const struct sdr_body *body,
                                    uint64_t count)
{
    if ((body ? body->bytes : 0) == count * sizeof(float))
        return SDR_OK;
    return sdr_fail(SDR_RUNTIME, "worker %d: worker %d sent a part of another length",
                    sdr_peer_id(node), from);
}

static void add(float *restrict to, const float *restrict from, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        to[i] += from[i];
}

/* ---- ring ---- */
static int after(const struct own *own)
{
    return (own->rank + 1) % own->peers;
}

static int before(const struct own *own)
{
    return (own->rank + own->peers - 1) % own->peers;
}

/* The values of a chunk; its number may be below 0 or too large by less than P. */
static float *chunk(const struct own *own, const struct bucket *bucket, int number, uint64_t *count)
{
    uint64_t peers = (uint64_t)own->peers;
    uint64_t c = (uint64_t)((number + own->peers) % own->peers);
    uint64_t first = bucket->count * c / peers;
    *count = bucket->count * (c + 1) / peers - first;
    return own->gradient + bucket->first + first;
}

static bool is_done(const struct own *own, const struct bucket *bucket)
{
    return bucket->step == 2 * (own->peers - 1);
}

static enum sdr_status start(struct sdr_node *node, const struct own *own, struct bucket *bucket)
{
    uint64_t count;
    const float *first = chunk(own, bucket, own->rank, &count);
    bucket->step = 0;
    return own->peers > 1
               ? send(node, after(own), (int32_t)(bucket - own->bucket), first, count)
               : SDR_OK;
}

/* What has come is added, or in the second half is the sum; it goes on to the next worker until it has been everywhere. */
static enum sdr_status take_step(struct sdr_node *node, const struct own *own,
                                 struct bucket *bucket, struct sdr_body *body)
{
    int half = own->peers - 1, t = bucket->step++;
    uint64_t count;
    float *to = chunk(own, bucket, t < half ? own->rank - t - 1 : own->rank - (t - half), &count);
    enum sdr_status status = check_length(node, before(own), body, count);
    float *came = body ? (float *)(void *)body->data : NULL;
    if (status != SDR_OK || is_done(own, bucket)) {
        if (status == SDR_OK && count)
            memcpy(to, came, count * sizeof *to);
        sdr_body_drop(body);
        return status;
    }
    if (t < half && count)
        add(came, to, count); /* the body is ours alone */
    if (t >= half - 1 && count)
        memcpy(to, came, count * sizeof *to);
    return sdr_peer_send(node, after(own), (int32_t)(bucket - own->bucket), body);
}

/* Begins the buckets whose values are all final, and does what can be done without waiting. */
static enum sdr_status progress(struct sdr_node *node, const struct own *own, uint64_t ready)
{
    for (uint64_t b = 0; b < own->buckets; b++) {
        struct bucket *bucket = &own->bucket[b];
        if (bucket->step < 0 && bucket->first + bucket->count <= ready)
            SDR_TRY(start(node, own, bucket));
        for (bool came = true; came && bucket->step >= 0 && !is_done(own, bucket);) {
            struct sdr_body *body;
            SDR_TRY(sdr_peer_poll(node, before(own), (int32_t)b, &body, &came));
            if (came)
                SDR_TRY(take_step(node, own, bucket, body));
        }
    }
    return SDR_OK;
}

/* Waits for the first bucket that is not done, while the others go on. */
static enum sdr_status finish(struct sdr_node *node, const struct own *own)
{
    for (uint64_t b = 0; b < own->buckets;) {
        struct sdr_body *body;
        SDR_TRY(progress(node, own, own->values));
        while (b < own->buckets && is_done(own, &own->bucket[b]))
            b++;
        if (b == own->buckets)
            return SDR_OK;
        SDR_TRY(sdr_peer_receive(node, before(own), (int32_t)b, &body));
        SDR_TRY(take_step(node, own, &own->bucket[b], body));
    }
    return SDR_OK;
}

/* ---- tree ---- */
enum { UP = -1, DOWN = -2 }; /* tags; those of buckets are 0 and more */

/* Worker r is the parent of r + 2^k for every 2^k below its lowest bit: sums go up, the total comes down. */
static enum sdr_status sum_by_tree(struct sdr_node *node, const struct own *own)
{
    int bit = 1;
    struct sdr_body *body;
    for (; bit < own->peers && !(own->rank & bit); bit *= 2)
        if (own->rank + bit < own->peers) {
            SDR_TRY(sdr_peer_receive(node, own->rank + bit, UP, &body));
            enum sdr_status status = check_length(node, own->rank + bit, body, own->values);
            if (status == SDR_OK && body)
                add(own->gradient, (const float *)(const void *)body->data, own->values);
            sdr_body_drop(body);
            SDR_TRY(status);
        }
    if (own->rank > 0) {
        SDR_TRY(send(node, own->rank - bit, UP, own->gradient, own->values));
        SDR_TRY(sdr_peer_receive(node, own->rank - bit, DOWN, &body));
        enum sdr_status status = check_length(node, own->rank - bit, body, own->values);
        if (status == SDR_OK && body)
            memcpy(own->gradient, body->data, own->values * sizeof *own->gradient);
        sdr_body_drop(body);
        SDR_TRY(status);
    }
    for (bit /= 2; bit > 0; bit /= 2)
        if (own->rank + bit < own->peers)
            SDR_TRY(send(node, own->rank + bit, DOWN, own->gradient, own->values));
    return SDR_OK;
}

/* ---- updates ---- */
static enum sdr_status compute(struct sdr_node *node, struct sdr_work *work)
{
    while (work->next < work->steps)
        SDR_TRY(sdr_peer_compute(node, work));
    return SDR_OK;
}

/* Sums the gradients of all workers, and steps. */
static enum sdr_status update(struct sdr_node *node, struct own *own, const struct sdr_batch *batch)
{
    const struct options *options = sdr_peer_options(node);
    struct sdr_work work;
    bool small = own->values * sizeof(float) <= options->tree && own->peers > 2;
    sdr_peer_gradient(node, batch, own->gradient, &work);
    for (uint64_t b = 0; b < own->buckets; b++)
        own->bucket[b].step = -1;
    while (work.next < work.steps) {
        SDR_TRY(sdr_peer_compute(node, &work));
        if (options->overlap && !small)
            SDR_TRY(progress(node, own, sdr_peer_ready(node)));
    }
    SDR_TRY(small ? sum_by_tree(node, own) : finish(node, own));
    sdr_peer_step(node, own->gradient);
    return SDR_OK;
}

enum { PART }; /* tag */

/* Everybody gets the parts of all, and steps with their sum in the order of the rows. */
static enum sdr_status update_in_order(struct sdr_node *node, struct own *own,
                                       const struct sdr_batch *batch)
{
    struct sdr_work work;
    enum sdr_status status = SDR_OK;
    sdr_peer_update(node, batch, &work);
    SDR_TRY(compute(node, &work));
    if (batch->count)
        SDR_TRY(sdr_peer_pack(node, &own->body[own->rank]));
    for (int to = 0; to < own->peers && status == SDR_OK; to++)
        if (to != own->rank)
            status = sdr_peer_send(node, to, PART, sdr_body_hold(own->body[own->rank]));
    for (int from = 0; from < own->peers && status == SDR_OK; from++)
        if (from != own->rank)
            status = sdr_peer_receive(node, from, PART, &own->body[from]);
    if (status == SDR_OK)
        status = sdr_peer_step_updates(node, own->body);
    for (int p = 0; p < own->peers; p++) {
        sdr_body_drop(own->body[p]);
        own->body[p] = NULL;
    }
    return status;
}

static enum sdr_status train(struct sdr_node *node, struct own *own)
{
    const struct options *options = sdr_peer_options(node);
    for (uint64_t number = 1;; number++) {
        struct sdr_batch batch;
        SDR_TRY(sdr_peer_next_batch(node, &batch));
        SDR_TRY(sdr_peer_deterministic(node) ? update_in_order(node, own, &batch)
                                             : update(node, own, &batch));
        if (options->check && number % options->check == 0)
            sdr_peer_check_replica(node);
        SDR_TRY(sdr_peer_account(node));
    }
}

/* Buckets of about the size that is asked for, all alike. */
static enum sdr_status make_buckets(struct sdr_node *node, struct own *own)
{
    const struct options *options = sdr_peer_options(node);
    uint64_t bytes = own->values * sizeof(float);
    uint64_t size = options->bucket > sizeof(float) ? options->bucket : sizeof(float);
    own->buckets = (bytes + size - 1) / size;
    own->buckets += own->buckets == 0;
    SDR_TRY(sdr_allocate(&own->bucket, own->buckets, sizeof *own->bucket, "buckets of a gradient"));
    for (uint64_t b = 0; b < own->buckets; b++) {
        own->bucket[b].first = own->values * b / own->buckets;
        own->bucket[b].count = own->values * (b + 1) / own->buckets - own->bucket[b].first;
    }
    return SDR_OK;
}

static enum sdr_status peer(struct sdr_node *node)
{
    struct own own = {
        .rank = sdr_peer_id(node), .peers = sdr_peers(node), .values = sdr_peer_values(node)};
    enum sdr_status status =
        sdr_allocate(&own.gradient, own.values, sizeof *own.gradient, "a gradient");
    if (status == SDR_OK)
        status = sdr_allocate(&own.body, (size_t)own.peers, sizeof *own.body, "workers");
    if (status == SDR_OK)
        status = make_buckets(node, &own);
    if (status == SDR_OK)
        status = train(node, &own);
    sdr_release(own.gradient);
    sdr_release(own.bucket);
    sdr_release(own.body);
    return status;
}

SDR_REGISTER(strategy, allreduce) = {
    .name = "allreduce",
    .summary = "replicas, no server: gradients are summed around a ring during the backward pass (DDP)",
    .options = table,
    .options_size = sizeof(struct options),
    .many = true,
    .joint = true,
    .can_repeat = true,
    .ordered = true,
    .peer = &(const struct sdr_peer_ops){.peer = peer},
};
