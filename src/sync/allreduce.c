/* Data-parallel SGD without a server, as PyTorch's DistributedDataParallel does it: every worker
   has a replica of the parameters and computes the gradient of its part of a batch; the gradients
   are summed around a ring, and every replica takes the same step.

   The gradient is summed in buckets (sync/ring.h). The ring of a bucket begins as soon as the
   backward pass has finished its values, the last layer's first, and goes on while the other layers
   are computed. Few values go up and down a tree instead.

   A worker that dies breaks the ring. Those left may be one update apart: the dead one may have
   passed the last chunks on to some of them and not to others. They tell worker 0 how far they are;
   whoever has the sum of the last update sends it to those who do not, and all go on with parts of
   batches among fewer.

   A sum around a ring begins at another worker for every chunk, so its last bits depend on P. With
   --deterministic every worker sends its update (dense layers: factors) to all, and all add the
   updates up in the order of the rows: the bits of one worker. */
#include "base/memory.h"
#include "sync/ring.h"

#include <string.h>

enum { BY_RING, BY_MPI };
enum { AUTO, YES, NO };
struct options {
    uint64_t bucket, tree, check;
    int overlap, by;
};
static const struct sdr_option table[] = {
    {"bucket", SDR_SIZE, "4M", "SIZE", 0, 0,
     "largest bucket of the gradient that is summed at once; a layer that fills an eighth of it "
     "ends the bucket",
     offsetof(struct options, bucket), 0},
    {"overlap", SDR_CHOICE, "auto", "auto|yes|no", 0, 0,
     "sum the gradients of finished layers while others are computed; auto: unless all workers are "
     "on one machine",
     offsetof(struct options, overlap), 0},
    {"tree", SDR_SIZE, "8K", "SIZE", 0, 0, "sum gradients of up to this size by a tree, not a ring",
     offsetof(struct options, tree), 0},
    {"by", SDR_CHOICE, "ring", "ring|mpi", 0, 0,
     "how gradients are summed: around a ring of messages, or by MPI_Iallreduce; with mpi the "
     "death of a worker ends the run",
     offsetof(struct options, by), 0},
    {"check", SDR_INTEGER, "100", "N", 0, 1e12,
     "compare all replicas every N updates; a difference ends the run; 0: never",
     offsetof(struct options, check), 0},
    {0}};

struct own {
    struct sdr_body *sum;   /* owned: the gradient of this update, then its sum */
    struct sdr_body *last;  /* owned: the sum of the one before */
    struct sdr_ring ring;   /* owned */
    struct sdr_body **body; /* owned, per worker: updates */
    uint64_t done;          /* updates */
    bool stepped;           /* the present one is done, and not accounted for yet */
    bool drained;           /* sums by MPI: the last one has been, see `drain` */
};
static float *values_of(const struct sdr_body *body)
{
    return (float *)(void *)body->data;
}

/* Tags behind those of the ring. */
enum { PART = SDR_RING_TAGS, HERE, GO, SUM, TAGS };

static int32_t tag_of(const struct own *own, int what)
{
    return own->ring.tag + (int32_t)own->ring.buckets + what;
}

/* ---- updates ---- */
static enum sdr_status compute(struct sdr_node *node, struct sdr_work *work)
{
    while (work->next < work->steps)
        SDR_TRY(sdr_peer_compute(node, work));
    return SDR_OK;
}

/* On one machine a sum is computing, not waiting: nothing hides it, and beside a backward pass it
   costs the caches. LeNet, 64 rows each, two processes on two cores: 10 900 rows/s, 10 100 with
   overlap. */
static bool overlaps(const struct sdr_node *node)
{
    const struct options *options = sdr_peer_options(node);
    return options->overlap == AUTO ? !sdr_peers_on_one_machine(node) : options->overlap == YES;
}

/* Waits for the end of the run. */
static enum sdr_status await_end(struct sdr_node *node)
{
    for (;;) {
        int from;
        int32_t tag;
        struct sdr_body *body;
        SDR_TRY(sdr_peer_receive_any(node, &from, &tag, &body));
        sdr_body_drop(body);
    }
}

/* Behind the gradient, in sums by MPI: whether worker 0 has ended the run, and takes part in the
   last sum for the others' sake. */
static float *over_of(const struct sdr_node *node, const struct own *own)
{
    return values_of(own->sum) + sdr_peer_values(node);
}

/* Sums the gradients of all workers, and steps. */
static enum sdr_status update(struct sdr_node *node, struct own *own, const struct sdr_batch *batch)
{
    const struct options *options = sdr_peer_options(node);
    struct sdr_work work;
    struct sdr_ring *ring = &own->ring;
    bool small = !ring->by_transport && ring->values &&
                 ring->values * sizeof(float) <= options->tree && ring->peers > 2;
    sdr_peer_gradient(node, batch, values_of(own->sum), &work);
    sdr_ring_begin(ring, own->sum);
    if (ring->by_transport)
        *over_of(node, own) = 0;
    if (overlaps(node) && !small && ring->peers > 1) {
        work.progress = sdr_ring_progress;
        work.context = ring;
    }
    while (work.next < work.steps) {
        SDR_TRY(sdr_peer_compute(node, &work));
        ring->ready = sdr_peer_ready(node);
        if (work.progress)
            SDR_TRY(sdr_ring_progress(ring));
    }
    SDR_TRY(small ? sdr_ring_tree(ring) : sdr_ring_finish(ring));
    own->drained = ring->by_transport && *over_of(node, own) > 0;
    if (own->drained)
        return await_end(node);
    sdr_peer_step(node, values_of(own->sum));
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
        SDR_TRY(sdr_peer_pack(node, &own->body[own->ring.rank]));
    for (int to = 0; to < own->ring.peers && status == SDR_OK; to++)
        if (to != own->ring.rank)
            status = sdr_peer_send(node, sdr_peer_member(node, to), tag_of(own, PART),
                                   sdr_body_hold(own->body[own->ring.rank]));
    for (int from = 0; from < own->ring.peers && status == SDR_OK; from++)
        if (from != own->ring.rank)
            status = sdr_peer_receive(node, sdr_peer_member(node, from), tag_of(own, PART),
                                      &own->body[from]);
    if (status == SDR_OK)
        status = sdr_peer_step_updates(node, own->body);
    for (int p = 0; p < own->ring.peers; p++) {
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
    struct sdr_body *sum = own->sum; /* others may need it, until they are as far */
    own->sum = own->last;
    own->last = sum;
    return SDR_OK;
}

/* ---- deaths ---- */
static void join(struct sdr_node *node, struct own *own)
{
    sdr_ring_join(&own->ring, (int32_t)(sdr_peer_losses(node) * (own->ring.buckets + TAGS)));
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
    return sdr_send_bytes(node, to, tag_of(own, what), bytes, count);
}

static enum sdr_status hear(struct sdr_node *node, const struct own *own, int from, int what,
                            void *bytes, size_t count)
{
    struct sdr_body *body;
    SDR_TRY(sdr_receive_bytes(node, from, tag_of(own, what), count, &body));
    memcpy(bytes, body->data, count);
    sdr_body_drop(body);
    return SDR_OK;
}

/* Worker 0 asks all how far they are. */
static enum sdr_status agree(struct sdr_node *node, const struct own *own,
                             struct agreement *agreement)
{
    struct place place = {own->done, set_of_lost(node)};
    uint64_t lost = place.lost;
    *agreement = (struct agreement){own->done, 0};
    if (own->ring.rank > 0) {
        SDR_TRY(tell(node, own, 0, HERE, &place, sizeof place));
        SDR_TRY(hear(node, own, 0, GO, agreement, sizeof *agreement));
        return agreement->donor >= 0 && agreement->donor < own->ring.peers
                   ? SDR_OK
                   : sdr_fail(SDR_RUNTIME, "worker 0 sent a message that makes no sense");
    }
    for (int r = 1; r < own->ring.peers; r++) {
        do /* who misses somebody else will hear of the others, and so will worker 0 */
            SDR_TRY(hear(node, own, sdr_peer_member(node, r), HERE, &place, sizeof place));
        while (place.lost != lost);
        if (place.done > agreement->done)
            *agreement = (struct agreement){place.done, r};
    }
    for (int r = 1; r < own->ring.peers; r++)
        SDR_TRY(tell(node, own, sdr_peer_member(node, r), GO, agreement, sizeof *agreement));
    return SDR_OK;
}

/* The donor gives the sum of its last update to everybody; those who have it take it and do nothing
   with it. */
static enum sdr_status catch_up(struct sdr_node *node, struct own *own,
                                const struct agreement *agreement)
{
    struct sdr_body *body;
    const struct sdr_body *sum = own->stepped ? own->sum : own->last;
    uint64_t bytes = own->ring.values * sizeof(float);
    if (own->ring.rank == agreement->donor) {
        for (int r = 0; r < own->ring.peers; r++)
            if (r != own->ring.rank)
                SDR_TRY(tell(node, own, sdr_peer_member(node, r), SUM, sum->data, bytes));
    } else {
        SDR_TRY(sdr_receive_bytes(node, sdr_peer_member(node, (int)agreement->donor),
                                  tag_of(own, SUM), bytes, &body));
        if (own->done < agreement->done) {
            memcpy(own->sum->data, body->data, bytes);
            sdr_peer_step(node, values_of(own->sum));
            note_step(node, own);
        }
        sdr_body_drop(body);
    }
    return SDR_OK;
}

/* Sums of MPI cannot go on without a worker. Worker 0 ends the run; the others wait for that. */
static enum sdr_status end(struct sdr_node *node)
{
    for (int p = 0; p < sdr_peers(node); p++)
        if (sdr_peer_is_lost(node, p))
            SDR_TRY(sdr_peer_give_up(node, p));
    return await_end(node);
}

/* Until no other worker dies meanwhile. */
static enum sdr_status regroup(struct sdr_node *node, struct own *own)
{
    enum sdr_status status;
    struct agreement agreement;
    do {
        sdr_peer_part_without_lost(node);
        join(node, own);
        sdr_peer_forget(node, own->ring.tag);
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
            status = own->ring.by_transport ? end(node) : regroup(node, own);
        SDR_TRY(status);
    }
}

/* The run is over. Of sums by MPI everybody completes the next one. */
static void drain(struct sdr_node *node, struct own *own)
{
    if (!own->ring.by_transport || own->drained)
        return;
    if (sdr_peer_id(node) == 0)
        *over_of(node, own) = 1;
    sdr_ring_drain(&own->ring, own->sum);
}

static enum sdr_status peer(struct sdr_node *node)
{
    const struct options *options = sdr_peer_options(node);
    bool by_mpi = options->by == BY_MPI && sdr_peers(node) > 1;
    uint64_t values = sdr_peer_values(node) + by_mpi;
    struct own own = {0};
    enum sdr_status status;
    if (options->by == BY_MPI && sdr_peer_deterministic(node))
        return sdr_fail(SDR_USAGE,
                        "allreduce:by=mpi sums in an order of its own: not with --deterministic");
    if (options->by == BY_MPI && !sdr_peer_has_sums(node))
        return sdr_fail(SDR_USAGE,
                        "allreduce:by=mpi needs --transport mpi, with one worker in every process");
    SDR_CHECK(sdr_peer_body(node, values * sizeof(float), &own.sum));
    SDR_CHECK(sdr_peer_body(node, values * sizeof(float), &own.last));
    SDR_CHECK(sdr_allocate(&own.body, (size_t)sdr_peers(node), sizeof *own.body, "workers"));
    SDR_CHECK(sdr_ring_create(node, values, options->bucket, &own.ring));
    own.ring.by_transport = by_mpi;
    join(node, &own);
    status = train(node, &own);
    if (status == SDR_PEER_OVER)
        drain(node, &own);
cleanup:
    if (!own.ring.by_transport || !sdr_ring_busy(&own.ring)) /* MPI may still write */
        sdr_body_drop(own.sum);
    sdr_body_drop(own.last);
    sdr_release(own.body);
    sdr_ring_free(&own.ring);
    return status;
}

SDR_REGISTER(strategy, allreduce) = {
    .name = "allreduce",
    .summary =
        "replicas, no server: gradients are summed around a ring during the backward pass (DDP)",
    .options = table,
    .options_size = sizeof(struct options),
    .many = true,
    .joint = true,
    .can_repeat = true,
    .peer = &(const struct sdr_peer_ops){.peer = peer, .lost = lost},
};
