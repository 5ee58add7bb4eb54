/* SimuParallelSGD and local SGD with messages: each worker trains a replica on its own shard. For
   the mean, the model is cut into P parts: worker p gets part p of all models, averages them in the
   order of the workers, as on shared memory, and sends the mean to all. That is 2·N·(P − 1)/P
   values a worker, as around a ring, and the bits of shared memory.

   With every=H workers go on from the mean after H updates. The mean is also taken at the end of
   every epoch, for evaluation; then, and always with every=0, they go on from their own models. */
#include "base/memory.h"
#include "sync/average.h"
#include "sync/ring.h"

#include <string.h>

enum { PART, MEAN }; /* tags */
struct own {
    uint64_t values;
    float *model; /* owned: the replica's values, then the mean */
    double *sum;  /* owned: of the part that this worker averages */
};

static uint64_t local(const void *options, const struct sdr_facts *facts)
{
    (void)facts;
    uint64_t every = ((const struct sdr_average_options *)options)->every;
    return every ? every : UINT64_MAX;
}

static float *part(const struct own *own, const struct sdr_node *node, int p, uint64_t *count)
{
    uint64_t peers = (uint64_t)sdr_peers(node), first = own->values * (uint64_t)p / peers;
    *count = own->values * (uint64_t)(p + 1) / peers - first;
    return own->model + first;
}

/* Sends part p of the model to worker p. */
static enum sdr_status scatter(struct sdr_node *node, const struct own *own)
{
    for (int to = 0; to < sdr_peers(node); to++) {
        uint64_t count;
        const float *value = part(own, node, to, &count);
        if (to != sdr_peer_id(node))
            SDR_TRY(sdr_send_bytes(node, to, PART, value, count * sizeof *value));
    }
    return SDR_OK;
}

/* Averages the own part of all models. */
static enum sdr_status reduce(struct sdr_node *node, const struct own *own)
{
    uint64_t count;
    float *mean = part(own, node, sdr_peer_id(node), &count);
    for (int from = 0; from < sdr_peers(node); from++) {
        struct sdr_body *body = NULL;
        const float *value = mean;
        if (from != sdr_peer_id(node)) {
            SDR_TRY(sdr_receive_bytes(node, from, PART, count * sizeof *value, &body));
            value = body ? (const float *)(const void *)body->data : NULL;
        }
        for (uint64_t i = 0; i < count; i++) /* not 0 + …: that loses the sign of −0 */
            own->sum[i] = from ? own->sum[i] + value[i] : value[i];
        sdr_body_drop(body);
    }
    for (uint64_t i = 0; i < count; i++)
        mean[i] = (float)(own->sum[i] / sdr_peers(node));
    return SDR_OK;
}

/* Sends the own part of the mean to all, and gets the others. */
static enum sdr_status gather(struct sdr_node *node, const struct own *own)
{
    uint64_t count;
    const float *mean = part(own, node, sdr_peer_id(node), &count);
    for (int to = 0; to < sdr_peers(node); to++)
        if (to != sdr_peer_id(node))
            SDR_TRY(sdr_send_bytes(node, to, MEAN, mean, count * sizeof *mean));
    for (int from = 0; from < sdr_peers(node); from++) {
        struct sdr_body *body;
        float *value = part(own, node, from, &count);
        if (from == sdr_peer_id(node))
            continue;
        SDR_TRY(sdr_receive_bytes(node, from, MEAN, count * sizeof *value, &body));
        if (count)
            memcpy(value, body->data, count * sizeof *value);
        sdr_body_drop(body);
    }
    return SDR_OK;
}

static enum sdr_status train(struct sdr_node *node, const struct own *own)
{
    const struct sdr_average_options *options = sdr_peer_options(node);
    for (;;) {
        struct sdr_batch share;
        struct sdr_work work;
        SDR_TRY(sdr_peer_next_batch(node, &share));
        sdr_peer_train(node, &share, &work);
        while (work.next < work.steps)
            SDR_TRY(sdr_peer_compute(node, &work));
        sdr_peer_copy_model(node, own->model);
        SDR_TRY(scatter(node, own));
        SDR_TRY(reduce(node, own));
        SDR_TRY(gather(node, own));
        if (options->every && sdr_peer_share_is_whole(node))
            sdr_peer_set_model(node, own->model);
        sdr_peer_publish(node, own->model);
        SDR_TRY(sdr_peer_account(node));
    }
}

static enum sdr_status peer(struct sdr_node *node)
{
    struct own own = {.values = sdr_peer_model_values(node)};
    enum sdr_status status;
    SDR_CHECK(sdr_allocate(&own.model, own.values, sizeof *own.model, "a mean of models"));
    SDR_CHECK(sdr_allocate(&own.sum, own.values / (uint64_t)sdr_peers(node) + 1, sizeof *own.sum,
                           "a mean of models"));
    status = train(node, &own);
cleanup:
    sdr_release(own.model);
    sdr_release(own.sum);
    return status;
}

const struct sdr_peer_ops sdr_average_peers = {.local = local, .peer = peer};
