/* Data-parallel SGD without a server, as PyTorch's DistributedDataParallel does it: every worker has a replica of the
   parameters and computes the gradient of its part of a batch; the gradients are summed around a ring, and every replica
   takes the same step.

   The gradient is cut into buckets, each into as many chunks as there are workers. Reduce-scatter: in step t worker r sends
   chunk r − t to the next one and adds what it receives to chunk r − t − 1; after P − 1 steps it has the sum of chunk r + 1.
   All-gather: these go around once more. All workers together send 2·N·(P − 1) values in 2(P − 1) steps a bucket. The ring of
   a bucket begins as soon as the backward pass has finished its values, the last layer's first, and goes on between the
   layers. Few values go up and down a binomial tree instead: 2·log₂P messages one after the other, not 2(P − 1).

   A worker that dies breaks the ring. Those left may be one update apart: the dead one may have passed the last chunks on to
   some of them and not to others. They tell worker 0 how far they are; whoever has the sum of the last update sends it to
   those who do not, and all go on with parts of batches among fewer.

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
    {"bucket", SDR_SIZE, "1M", "SIZE", 0, 0, "bytes of the gradient that are summed at a time; at least a 256th of it",
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
    float *gradient;       /* the sum of this update */
    float *last;           /* that of the one before */
    float *memory;         /* owned: both */
    struct bucket *bucket; /* owned */
    uint64_t buckets, values;
    int rank, peers;        /* among those alive */
    int32_t tag;            /* the first tag: larger after every death */
    struct sdr_body **body; /* owned, per worker: updates */
    uint64_t done;          /* updates */
    bool stepped;           /* the present one is done, and not accounted for yet */
    struct sdr_node *node;
    uint64_t ready; /* values of the gradient that are final */
};
/* Tags behind those of the buckets, from own.tag on. */
enum { UP, DOWN, PART, HERE, GO, SUM, TAGS };

static int32_t tag_of(const struct own *own, int what)
{
    return own->tag + (int32_t)own->buckets + what;
}

static int32_t tag_of_bucket(const struct own *own, const struct bucket *bucket)
{
    return own->tag + (int32_t)(bucket - own->bucket);
}

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
static int after(const struct sdr_node *node, const struct own *own)
{
    return sdr_peer_member(node, (own->rank + 1) % own->peers);
}

static int before(const struct sdr_node *node, const struct own *own)
{
    return sdr_peer_member(node, (own->rank + own->peers - 1) % own->peers);
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
               ? send(node, after(node, own), tag_of_bucket(own, bucket), first, count)
               : SDR_OK;
}

/* What has come is added, or in the second half is the sum; it goes on to the next worker until it has been everywhere. */
static enum sdr_status take_step(struct sdr_node *node, const struct own *own,
                                 struct bucket *bucket, struct sdr_body *body)
{
    int half = own->peers - 1, t = bucket->step++;
    uint64_t count;
    float *to = chunk(own, bucket, t < half ? own->rank - t - 1 : own->rank - (t - half), &count);
    enum sdr_status status = check_length(node, before(node, own), body, count);
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
    return sdr_peer_send(node, after(node, own), tag_of_bucket(own, bucket), body);
}

/* Begins the buckets whose values are all final, and does what can be done without waiting. */
static enum sdr_status progress(void *context)
{
    const struct own *own = context;
    struct sdr_node *node = own->node;
    bool any;
    SDR_TRY(sdr_peer_any(node, &any)); /* takes in what has arrived, also for later buckets */
    for (uint64_t b = 0; b < own->buckets; b++) {
        struct bucket *bucket = &own->bucket[b];
        if (bucket->step < 0 && bucket->first + bucket->count <= own->ready)
            SDR_TRY(start(node, own, bucket));
        for (bool came = true; came && bucket->step >= 0 && !is_done(own, bucket);) {
            struct sdr_body *body;
            SDR_TRY(sdr_peer_poll(node, before(node, own), tag_of_bucket(own, bucket), &body, &came));
            if (came)
                SDR_TRY(take_step(node, own, bucket, body));
        }
    }
    return SDR_OK;
}

/* Waits for the first bucket that is not done, while the others go on. */
static enum sdr_status finish(struct sdr_node *node, struct own *own)
{
    own->ready = own->values;
    for (uint64_t b = 0; b < own->buckets;) {
        struct sdr_body *body;
        SDR_TRY(progress(own));
        while (b < own->buckets && is_done(own, &own->bucket[b]))
            b++;
        if (b == own->buckets)
            return SDR_OK;
        SDR_TRY(sdr_peer_receive(node, before(node, own), tag_of_bucket(own, &own->bucket[b]), &body));
        SDR_TRY(take_step(node, own, &own->bucket[b], body));
    }
    return SDR_OK;
}

/* ---- tree ---- */
static enum sdr_status receive(struct sdr_node *node, const struct own *own, int from, int what,
                               uint64_t values, struct sdr_body **body)
{
    SDR_TRY(sdr_peer_receive(node, from, tag_of(own, what), body));
    enum sdr_status status = check_length(node, from, *body, values);
    if (status != SDR_OK)
        sdr_body_drop(*body);
    return status;
}

/* The worker of rank r is the parent of r + 2^k for every 2^k below its lowest bit: sums go up, the total comes down. */
static enum sdr_status sum_by_tree(struct sdr_node *node, const struct own *own)
{
    int bit = 1;
    struct sdr_body *body;
    for (; bit < own->peers && !(own->rank & bit); bit *= 2)
        if (own->rank + bit < own->peers) {
            SDR_TRY(receive(node, own, sdr_peer_member(node, own->rank + bit), UP, own->values, &body));
            add(own->gradient, (const float *)(const void *)body->data, own->values);
            sdr_body_drop(body);
        }
    if (own->rank > 0) {
        int parent = sdr_peer_member(node, own->rank - bit);
        SDR_TRY(send(node, parent, tag_of(own, UP), own->gradient, own->values));
        SDR_TRY(receive(node, own, parent, DOWN, own->values, &body));
        memcpy(own->gradient, body->data, own->values * sizeof *own->gradient);
        sdr_body_drop(body);
    }
    for (bit /= 2; bit > 0; bit /= 2)
        if (own->rank + bit < own->peers)
            SDR_TRY(send(node, sdr_peer_member(node, own->rank + bit), tag_of(own, DOWN), own->gradient,
                         own->values));
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
    bool small = own->values && own->values * sizeof(float) <= options->tree && own->peers > 2;
    sdr_peer_gradient(node, batch, own->gradient, &work);
    for (uint64_t b = 0; b < own->buckets; b++)
        own->bucket[b].step = -1;
    own->ready = 0;
    if (options->overlap && !small && own->peers > 1) {
        work.progress = progress;
        work.context = own;
    }
    while (work.next < work.steps) {
        SDR_TRY(sdr_peer_compute(node, &work));
        own->ready = sdr_peer_ready(node);
        if (work.progress)
            SDR_TRY(progress(own));
    }
    SDR_TRY(small ? sum_by_tree(node, own) : finish(node, own));
    sdr_peer_step(node, own->gradient);
    return SDR_OK;
}

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
            status = sdr_peer_send(node, sdr_peer_member(node, to), tag_of(own, PART),
                                   sdr_body_hold(own->body[own->rank]));
    for (int from = 0; from < own->peers && status == SDR_OK; from++)
        if (from != own->rank)
            status = sdr_peer_receive(node, sdr_peer_member(node, from), tag_of(own, PART),
                                      &own->body[from]);
    if (status == SDR_OK)
        status = sdr_peer_step_updates(node, own->body);
    for (int p = 0; p < own->peers; p++) {
        sdr_body_drop(own->body[p]);
        own->body[p] = NULL;
    }
    return status;
}

static void note_step(struct sdr_node *node, struct own *own)
{
    const struct options *options = sdr_peer_options(node);
    own->done++;
    own->stepped = true;
    if (options->check && own->done % options->check == 0)
        sdr_peer_check_replica(node);
}

/* One update; a second call goes on where a death broke the first one off. */
static enum sdr_status go_on(struct sdr_node *node, struct own *own)
{
    struct sdr_batch batch;
    if (!own->stepped) {
        SDR_TRY(sdr_peer_next_batch(node, &batch));
        SDR_TRY(sdr_peer_deterministic(node) ? update_in_order(node, own, &batch)
                                             : update(node, own, &batch));
        note_step(node, own);
    }
    SDR_TRY(sdr_peer_account(node));
    own->stepped = false;
    float *sum = own->gradient; /* others may need it, until they are as far */
    own->gradient = own->last;
    own->last = sum;
    return SDR_OK;
}

/* ---- deaths ---- */
static void join(struct sdr_node *node, struct own *own)
{
    own->rank = sdr_peer_rank(node);
    own->peers = sdr_peer_members(node);
    own->tag = (int32_t)(sdr_peer_losses(node) * (own->buckets + TAGS));
}

static enum sdr_status lost(struct sdr_node *node, int peer)
{
    return sdr_peer_deterministic(node) ? sdr_peer_give_up(node, peer) : SDR_PEER_REGROUP;
}

/* What workers tell worker 0: how many updates they have done, and whom they miss. */
struct place {
    uint64_t done, lost;
};
/* What it answers: how many updates are done, and who has the sum of the last. */
struct agreement {
    uint64_t done;
    int64_t donor;
};

/* Differs for different sets of the lost, whatever the order in which they were heard of. */
static uint64_t set_of_lost(const struct sdr_node *node)
{
    uint64_t set = 0;
    for (int p = 0; p < sdr_peers(node); p++)
        if (sdr_peer_is_lost(node, p))
            set += ((uint64_t)p + 1) * UINT64_C(0x9e3779b97f4a7c15);
    return set;
}

static enum sdr_status tell(struct sdr_node *node, const struct own *own, int to, int what,
                            const void *bytes, size_t count)
{
    struct sdr_body *body;
    SDR_TRY(sdr_peer_body(node, count, &body));
    memcpy(body->data, bytes, count);
    return sdr_peer_send(node, to, tag_of(own, what), body);
}

static enum sdr_status hear(struct sdr_node *node, const struct own *own, int from, int what,
                            void *bytes, size_t count)
{
    struct sdr_body *body;
    SDR_TRY(sdr_peer_receive(node, from, tag_of(own, what), &body));
    bool whole = body && body->bytes == count;
    if (whole)
        memcpy(bytes, body->data, count);
    sdr_body_drop(body);
    return whole ? SDR_OK
                 : sdr_fail(SDR_RUNTIME, "worker %d sent a message of another length", from);
}

/* Worker 0 asks all how far they are. */
static enum sdr_status agree(struct sdr_node *node, const struct own *own, struct agreement *agreement)
{
    struct place place = {own->done, set_of_lost(node)};
    uint64_t lost = place.lost;
    *agreement = (struct agreement){own->done, 0};
    if (own->rank > 0) {
        SDR_TRY(tell(node, own, 0, HERE, &place, sizeof place));
        SDR_TRY(hear(node, own, 0, GO, agreement, sizeof *agreement));
        return agreement->donor >= 0 && agreement->donor < own->peers
                   ? SDR_OK
                   : sdr_fail(SDR_RUNTIME, "worker 0 sent a message that makes no sense");
    }
    for (int r = 1; r < own->peers; r++) {
        do /* who misses somebody else will hear of the others, and so will worker 0 */
            SDR_TRY(hear(node, own, sdr_peer_member(node, r), HERE, &place, sizeof place));
        while (place.lost != lost);
        if (place.done > agreement->done)
            *agreement = (struct agreement){place.done, r};
    }
    for (int r = 1; r < own->peers; r++)
        SDR_TRY(tell(node, own, sdr_peer_member(node, r), GO, agreement, sizeof *agreement));
    return SDR_OK;
}

/* The donor gives the sum of its last update to everybody; those who have it take it and do nothing with it. */
static enum sdr_status catch_up(struct sdr_node *node, struct own *own, const struct agreement *agreement)
{
    struct sdr_body *body;
    const float *sum = own->stepped ? own->gradient : own->last;
    if (own->rank == agreement->donor) {
        for (int r = 0; r < own->peers; r++)
            if (r != own->rank)
                SDR_TRY(send(node, sdr_peer_member(node, r), tag_of(own, SUM), sum, own->values));
    } else {
        SDR_TRY(receive(node, own, sdr_peer_member(node, (int)agreement->donor), SUM, own->values, &body));
        if (own->done < agreement->done) {
            memcpy(own->gradient, body->data, own->values * sizeof *own->gradient);
            sdr_peer_step(node, own->gradient);
            note_step(node, own);
        }
        sdr_body_drop(body);
    }
    return SDR_OK;
}

/* Until no other worker dies meanwhile. */
static enum sdr_status regroup(struct sdr_node *node, struct own *own)
{
    enum sdr_status status;
    struct agreement agreement;
    do {
        sdr_peer_part_without_lost(node);
        join(node, own);
        sdr_peer_forget(node, own->tag);
        status = agree(node, own, &agreement);
        if (status == SDR_OK && agreement.done > 0)
            status = catch_up(node, own, &agreement);
    } while (status == SDR_PEER_REGROUP);
    SDR_TRY(status);
    if (!own->stepped)
        sdr_peer_again(node);
    return SDR_OK;
}

static enum sdr_status train(struct sdr_node *node, struct own *own)
{
    for (;;) {
        enum sdr_status status = go_on(node, own);
        if (status == SDR_PEER_REGROUP)
            status = regroup(node, own);
        SDR_TRY(status);
    }
}

/* Buckets of about the size that is asked for, all alike. */
static enum sdr_status make_buckets(struct sdr_node *node, struct own *own)
{
    const struct options *options = sdr_peer_options(node);
    enum { MOST = 256 }; /* every one is looked at whenever a message comes */
    uint64_t bytes = own->values * sizeof(float), least = bytes / MOST + sizeof(float);
    uint64_t size = options->bucket > least ? options->bucket : least;
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
    struct own own = {.node = node, .values = sdr_peer_values(node)};
    enum sdr_status status =
        sdr_allocate(&own.memory, 2 * own.values, sizeof *own.memory, "a gradient");
    own.gradient = own.memory;
    own.last = own.memory + own.values;
    if (status == SDR_OK)
        status = sdr_allocate(&own.body, (size_t)sdr_peers(node), sizeof *own.body, "workers");
    if (status == SDR_OK)
        status = make_buckets(node, &own);
    join(node, &own);
    if (status == SDR_OK)
        status = train(node, &own);
    sdr_release(own.memory);
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
    .peer = &(const struct sdr_peer_ops){.peer = peer, .lost = lost},
};
