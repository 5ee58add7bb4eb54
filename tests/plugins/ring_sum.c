/* For tests: peers sum vectors around a ring, and check what comes out. Data-parallel SGD: the
   gradients of all parts of a batch are summed, and every replica takes the same step.

   A vector has as many chunks as there are peers, some of them empty if it is short.
   Reduce-scatter: in step s peer r sends chunk r − s to the next one, and adds what it receives to
   chunk r − s − 1; after P − 1 steps it has the sum of chunk r + 1. All-gather: these go around
   once more. All peers together send 2·N·(P − 1) values. */
#include "base/memory.h"
#include "peer/role.h"

#include <math.h>
#include <string.h>

struct options {
    uint64_t values;
};
static const struct sdr_option table[] = {{"values", SDR_INTEGER, "5", "N", 0, 100000,
                                           "length of a test vector that is summed, too",
                                           offsetof(struct options, values), 0},
                                          {0}};

enum { RING = 1, DIRECT, REPLICA }; /* tags */

/* What a peer has. */
struct own {
    uint64_t sent;            /* values, around the ring */
    float *gradient, *number; /* owned: what is summed */
    float *part;              /* owned: the peer's own gradient */
    double *sum, *size;       /* owned: the direct sum, and that of absolute values */
};

static uint64_t first_of(uint64_t values, int chunk, int peers)
{
    return values * (uint64_t)chunk / (uint64_t)peers;
}

static enum sdr_status send(struct sdr_node *node, int to, int32_t tag, const void *bytes,
                            size_t count)
{
    struct sdr_body *body = NULL;
    if (count)
        SDR_TRY(sdr_peer_body(node, count, &body));
    if (count)
        memcpy(body->data, bytes, count);
    return sdr_peer_send(node, to, tag, body);
}

/* One step of a peer: a chunk goes to the next one, another comes from the one before. */
static enum sdr_status pass(struct sdr_node *node, struct own *own, float *vector, uint64_t values,
                            int out, int in, bool add)
{
    int id = sdr_peer_id(node), peers = sdr_peers(node);
    int before = (id + peers - 1) % peers, after = (id + 1) % peers;
    uint64_t from = first_of(values, out, peers), end = first_of(values, out + 1, peers);
    struct sdr_body *body;
    own->sent += end - from;
    SDR_TRY(send(node, after, RING, vector + from, (end - from) * sizeof *vector));
    SDR_TRY(sdr_peer_receive(node, before, RING, &body));
    from = first_of(values, in, peers);
    end = first_of(values, in + 1, peers);
    if ((body ? body->bytes : 0) != (end - from) * sizeof *vector) {
        sdr_body_drop(body);
        return sdr_fail(SDR_RUNTIME, "peer %d: a chunk of another length", id);
    }
    const float *came = body ? (const float *)(const void *)body->data : NULL;
    for (uint64_t i = from; i < end; i++)
        vector[i] = add ? vector[i] + came[i - from] : came[i - from];
    sdr_body_drop(body);
    return SDR_OK;
}

static enum sdr_status ring_sum(struct sdr_node *node, struct own *own, float *vector,
                                uint64_t values)
{
    int id = sdr_peer_id(node), peers = sdr_peers(node);
    own->sent = 0;
    for (int s = 0; s < peers - 1; s++)
        SDR_TRY(pass(node, own, vector, values, (id - s + peers) % peers,
                     (id - s - 1 + peers) % peers, true));
    for (int s = 0; s < peers - 1; s++)
        SDR_TRY(pass(node, own, vector, values, (id + 1 - s + peers) % peers,
                     (id - s + peers) % peers, false));
    /* Of every chunk a peer sends two copies, but for the two that it does not pass on again. */
    uint64_t all = 2 * values;
    for (int i = 1; i <= 2; i++) {
        int kept = (id + i) % peers;
        all -= first_of(values, kept + 1, peers) - first_of(values, kept, peers);
    }
    return own->sent == (peers > 1 ? all : 0)
               ? SDR_OK
               : sdr_fail(SDR_RUNTIME, "peer %d sent %llu values, not %llu", id,
                          (unsigned long long)own->sent, (unsigned long long)all);
}

/* Whole numbers: the sum is exact in any order. */
static enum sdr_status sum_numbers(struct sdr_node *node, struct own *own, uint64_t update)
{
    const struct options *options = sdr_peer_options(node);
    uint64_t peers = (uint64_t)sdr_peers(node), values = options->values;
    for (uint64_t i = 0; i < values; i++)
        own->number[i] = (float)((uint64_t)(sdr_peer_id(node) + 1) * (i % 97 + update % 7 + 1));
    SDR_TRY(ring_sum(node, own, own->number, values));
    for (uint64_t i = 0; i < values; i++)
        if (own->number[i] != (float)(peers * (peers + 1) / 2 * (i % 97 + update % 7 + 1)))
            return sdr_fail(SDR_RUNTIME, "peer %d: value %llu of the ring is %g", sdr_peer_id(node),
                            (unsigned long long)i, own->number[i]);
    return SDR_OK;
}

/* Everybody sends its gradient to everybody. */
static enum sdr_status sum_directly(struct sdr_node *node, struct own *own)
{
    uint64_t values = sdr_peer_values(node);
    int id = sdr_peer_id(node), peers = sdr_peers(node);
    memset(own->sum, 0, values * sizeof *own->sum);
    memset(own->size, 0, values * sizeof *own->size);
    for (int to = 0; to < peers; to++)
        if (to != id)
            SDR_TRY(send(node, to, DIRECT, own->part, values * sizeof *own->part));
    for (int from = 0; from < peers; from++) {
        struct sdr_body *body = NULL;
        if (from != id)
            SDR_TRY(sdr_peer_receive(node, from, DIRECT, &body));
        if (from != id && (body ? body->bytes : 0) != values * sizeof *own->part) {
            sdr_body_drop(body);
            return sdr_fail(SDR_RUNTIME, "peer %d: a gradient of another length", id);
        }
        const float *came = body ? (const float *)(const void *)body->data : own->part;
        for (uint64_t i = 0; i < values; i++) {
            own->sum[i] += came[i];
            own->size[i] += fabs((double)came[i]);
        }
        sdr_body_drop(body);
    }
    return SDR_OK;
}

static enum sdr_status sum_gradients(struct sdr_node *node, struct own *own)
{
    uint64_t values = sdr_peer_values(node);
    memcpy(own->part, own->gradient, values * sizeof *own->part);
    SDR_TRY(ring_sum(node, own, own->gradient, values));
    SDR_TRY(sum_directly(node, own));
    for (uint64_t i = 0; i < values; i++)
        if (fabs(own->gradient[i] - own->sum[i]) > 1e-5 * own->size[i])
            return sdr_fail(
                SDR_RUNTIME, "peer %d: value %llu of the gradient is %g, and %g directly",
                sdr_peer_id(node), (unsigned long long)i, own->gradient[i], own->sum[i]);
    return SDR_OK;
}

/* Replicas are the same to the bit: each is compared with the next one's. */
static enum sdr_status compare_replicas(struct sdr_node *node)
{
    int id = sdr_peer_id(node), peers = sdr_peers(node);
    uint64_t hash = sdr_peer_hash(node);
    struct sdr_body *body;
    SDR_TRY(send(node, (id + 1) % peers, REPLICA, &hash, sizeof hash)); /* alone: to itself */
    SDR_TRY(sdr_peer_receive(node, (id + peers - 1) % peers, REPLICA, &body));
    bool same = body && body->bytes == sizeof hash && memcmp(body->data, &hash, sizeof hash) == 0;
    sdr_body_drop(body);
    return same ? SDR_OK
                : sdr_fail(SDR_RUNTIME, "peer %d has another replica than its neighbour", id);
}

static enum sdr_status train(struct sdr_node *node, struct own *own)
{
    for (uint64_t update = 0;; update++) {
        struct sdr_batch batch;
        struct sdr_work work;
        SDR_TRY(sdr_peer_next_batch(node, &batch));
        SDR_TRY(sum_numbers(node, own, update));
        sdr_peer_gradient(node, &batch, own->gradient, &work);
        while (work.next < work.steps)
            SDR_TRY(sdr_peer_compute(node, &work));
        SDR_TRY(sum_gradients(node, own));
        sdr_peer_step(node, own->gradient);
        SDR_TRY(compare_replicas(node));
        SDR_TRY(sdr_peer_account(node));
    }
}

static enum sdr_status peer(struct sdr_node *node)
{
    const struct options *options = sdr_peer_options(node);
    uint64_t values = sdr_peer_values(node);
    struct own own = {0};
    enum sdr_status status = sdr_allocate(&own.gradient, values, sizeof *own.gradient, "a test");
    if (status == SDR_OK)
        status = sdr_allocate(&own.part, values, sizeof *own.part, "a test");
    if (status == SDR_OK)
        status = sdr_allocate(&own.sum, values, sizeof *own.sum, "a test");
    if (status == SDR_OK)
        status = sdr_allocate(&own.size, values, sizeof *own.size, "a test");
    if (status == SDR_OK)
        status = sdr_allocate(&own.number, options->values, sizeof *own.number, "a test");
    if (status == SDR_OK)
        status = train(node, &own);
    sdr_release(own.gradient);
    sdr_release(own.part);
    sdr_release(own.sum);
    sdr_release(own.size);
    sdr_release(own.number);
    return status;
}

static const struct sdr_peer_ops ops = {.peer = peer};
SDR_REGISTER(strategy, ring_sum) = {
    .name = "ring-sum",
    .summary = "for tests: gradients are summed around a ring, and checked",
    .options = table,
    .options_size = sizeof(struct options),
    .many = true,
    .joint = true,
    .peer = &ops,
};
