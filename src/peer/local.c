/* Every peer takes steps of its own on a replica of its own; models, and their mean. */
#include "base/memory.h"
#include "peer/peers.h"
#include "run/order.h"
#include "run/run.h"
#include "server/network.h"

#include <string.h>

/* ---- steps ---- */
static enum sdr_status step(struct sdr_node *node, const struct sdr_batch *batch,
                            const atomic_uint *stop)
{
    struct sdr_parameters *p = node->parameters;
    struct sdr_peer *peer = sdr_peer_of(node);
    sdr_parameters_catch_up(p, batch, sdr_all(p->layout));
    struct sdr_view view = sdr_peer_view(node);
    SDR_TRY(sdr_batch_gradient(&peer->leaf[0].space, &view, batch, 0, NULL, stop,
                               &peer->leaf[0].update));
    if (atomic_load(stop))
        return SDR_OK;
    sdr_parameters_apply(p, &peer->leaf[0].update, sdr_peer_rate(node->run, peer, batch->at));
    peer->report.updates++;
    peer->report.loss += peer->leaf[0].update.loss;
    peer->report.weight += peer->leaf[0].update.weight;
    return SDR_OK;
}

static enum sdr_status train(void *argument, uint32_t number, const atomic_uint *stop)
{
    struct sdr_node *node = argument;
    const struct sdr_batch *share = sdr_peer_of(node)->batch;
    uint32_t size = node->run->network->policy.local;
    bool fused = size == 1 && node->run->problem.outputs == 1 && node->run->use.kind->fused;
    uint32_t chunk = fused ? SDR_FUSED_ROWS : size; /* as shared memory places them */
    (void)number;
    for (uint32_t from = 0; from < share->count && !atomic_load(stop); from += size) {
        struct sdr_batch batch = *share;
        batch.row += from;
        batch.at = sdr_shard_place(node->run, node->worker, share->at + from / chunk * chunk) +
                   from % chunk;
        batch.count = share->count - from < size ? share->count - from : size;
        batch.of = batch.count;
        batch.number = node->parameters->version;
        SDR_TRY(step(node, &batch, stop));
    }
    return SDR_OK;
}

void sdr_peer_train(struct sdr_node *node, const struct sdr_batch *share, struct sdr_work *work)
{
    uint32_t size = node->run->network->policy.local;
    sdr_peer_of(node)->batch = share;
    *work = (struct sdr_work){
        .run = train, .argument = node, .steps = 1, .draws = (share->count + size - 1) / size};
}

bool sdr_peer_share_is_whole(const struct sdr_node *node)
{
    return sdr_network_share_whole(node->run, sdr_peer_of(node)->number - 1);
}

/* ---- models ---- */
/* Arrays of a model: the values, and optimizer state that the weights of the user follow from:
   FTRL's, Nesterov's. */
static int arrays_of(const struct sdr_parameters *p)
{
    const struct sdr_optimizer *o = p->rule.optimizer;
    return o->own_penalty || o->publish ? 1 + o->slots : 1;
}

/* Those that workers go on from: other state stays with its worker. */
int sdr_peer_arrays_to_set(const struct sdr_parameters *p)
{
    return p->rule.optimizer->own_penalty ? arrays_of(p) : 1;
}

uint64_t sdr_peer_model_values(const struct sdr_node *node)
{
    return sdr_peer_values(node) * (uint64_t)arrays_of(node->parameters);
}

void sdr_peer_copy_model(struct sdr_node *node, float *to)
{
    struct sdr_parameters *p = node->parameters;
    const struct sdr_peer_vector *vector = &sdr_peer_of(node)->vector;
    sdr_parameters_catch_up_all(p);
    for (int i = 0; i < arrays_of(p); i++)
        sdr_peer_vector_copy(vector, p->layout, sdr_parameters_array(p, i),
                             to + (uint64_t)i * vector->count);
}

static void set_model(const struct sdr_node *node, struct sdr_parameters *p, int arrays,
                      const float *from)
{
    const struct sdr_peer_vector *vector = &sdr_peer_of(node)->vector;
    for (int i = 0; i < arrays; i++)
        sdr_peer_vector_set(vector, p->layout, from + (uint64_t)i * vector->count,
                            sdr_parameters_array(p, i));
}

void sdr_peer_set_model(struct sdr_node *node, const float *from)
{
    set_model(node, node->parameters, sdr_peer_arrays_to_set(node->parameters), from);
}

enum sdr_status sdr_peer_give_model(struct sdr_node *node)
{
    struct sdr_body *body;
    SDR_TRY(sdr_peer_body(node, sdr_peer_model_values(node) * sizeof(float), &body));
    sdr_peer_copy_model(node, (float *)(void *)body->data);
    return sdr_peer_send(node, 0, SDR_TAG_MODEL, body);
}

/* The model of a peer; NULL: it is lost. */
static enum sdr_status take_model(struct sdr_node *node, int from, struct sdr_body **body)
{
    SDR_TRY(sdr_peer_receive_if_there(node, from, SDR_TAG_MODEL, body));
    if (*body && (*body)->bytes != sdr_peer_model_values(node) * sizeof(float)) {
        sdr_body_drop(*body);
        return sdr_fail(SDR_RUNTIME, "worker %d sent a model that makes no sense", from);
    }
    return SDR_OK;
}

/* In the order of the peers, in double, as sync/average_peers.c does. */
enum sdr_status sdr_peer_mean_model(struct sdr_node *node, float *mean)
{
    uint64_t values = sdr_peer_model_values(node);
    enum sdr_status status = SDR_OK;
    double *sum, models = 1;
    SDR_TRY(sdr_allocate(&sum, values, sizeof *sum, "a mean of models"));
    for (int to = 1; to < node->workers && status == SDR_OK; to++)
        status = sdr_peer_send(node, to, SDR_TAG_ASK, NULL);
    if (status == SDR_OK)
        sdr_peer_copy_model(node, mean);
    for (uint64_t i = 0; i < values; i++)
        sum[i] = mean[i];
    for (int from = 1; from < node->workers && status == SDR_OK; from++) {
        struct sdr_body *body;
        status = take_model(node, from, &body);
        const float *value =
            status == SDR_OK && body ? (const float *)(const void *)body->data : NULL;
        for (uint64_t i = 0; i < values && value; i++)
            sum[i] += value[i];
        models += value != NULL;
        sdr_body_drop(status == SDR_OK ? body : NULL);
    }
    for (uint64_t i = 0; i < values; i++)
        mean[i] = (float)(sum[i] / models);
    sdr_release(sum);
    return status;
}

/* Updates that all workers have made in this joint batch. */
static uint64_t steps_of_all(const struct sdr_node *node, uint64_t number)
{
    const struct sdr_run *run = node->run;
    uint64_t steps = 0, size = run->network->policy.local;
    for (int w = 0; w < node->workers; w++)
        steps += (sdr_network_shard(run, number, w).count + size - 1) / size;
    return steps;
}

void sdr_peer_publish(struct sdr_node *node, const float *model)
{
    struct sdr_parameters *p = &node->run->parameters;
    if (node->id > 0)
        return;
    set_model(node, p, arrays_of(p), model);
    for (int i = arrays_of(p); i <= p->rule.optimizer->slots; i++)
        memcpy(sdr_parameters_array(p, i), sdr_parameters_array(node->parameters, i),
               p->layout->count * sizeof(float));
    if (node->run->network->policy.joint)
        p->version += steps_of_all(node, sdr_peer_of(node)->number - 1);
    sdr_parameters_begin(p, node->run->pace.rate);
}
