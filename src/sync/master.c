/* Data-parallel SGD with a master, as PyTorch's DataParallel does it: worker 0 sends its parameters
   to all others, everybody computes the gradient of its part of a batch, worker 0 adds the
   gradients up in the order of the workers and takes the step. Its messages are 2·N·(P − 1) values
   an update, where the ring of allreduce has 2·N·(P − 1)/P a worker. */
#include "base/memory.h"
#include "sync/ring.h"

enum { WEIGHTS, GRADIENT }; /* tags */

static enum sdr_status spread_weights(struct sdr_node *node, uint64_t values)
{
    struct sdr_body *body;
    enum sdr_status status = SDR_OK;
    SDR_TRY(sdr_peer_body(node, values * sizeof(float), &body));
    sdr_peer_copy_weights(node, (float *)(void *)body->data);
    for (int to = 1; to < sdr_peers(node) && status == SDR_OK; to++)
        status = sdr_peer_send(node, to, WEIGHTS, sdr_body_hold(body));
    sdr_body_drop(body);
    return status;
}

static enum sdr_status take_weights(struct sdr_node *node, uint64_t values)
{
    struct sdr_body *body;
    SDR_TRY(sdr_receive_bytes(node, 0, WEIGHTS, values * sizeof(float), &body));
    sdr_peer_set_weights(node, (const float *)(const void *)body->data);
    sdr_body_drop(body);
    return SDR_OK;
}

static enum sdr_status gather_gradients(struct sdr_node *node, float *gradient, uint64_t values)
{
    for (int from = 1; from < sdr_peers(node); from++) {
        struct sdr_body *body;
        SDR_TRY(sdr_receive_bytes(node, from, GRADIENT, values * sizeof(float), &body));
        const float *came = (const float *)(const void *)body->data;
        for (uint64_t i = 0; i < values; i++)
            gradient[i] += came[i];
        sdr_body_drop(body);
    }
    return SDR_OK;
}

static enum sdr_status train(struct sdr_node *node, float *gradient, uint64_t values)
{
    bool master = sdr_peer_id(node) == 0;
    for (;;) {
        struct sdr_batch batch;
        struct sdr_work work;
        SDR_TRY(sdr_peer_next_batch(node, &batch));
        SDR_TRY(master ? spread_weights(node, values) : take_weights(node, values));
        sdr_peer_gradient(node, &batch, gradient, &work);
        while (work.next < work.steps)
            SDR_TRY(sdr_peer_compute(node, &work));
        SDR_TRY(master ? gather_gradients(node, gradient, values)
                       : sdr_send_bytes(node, 0, GRADIENT, gradient, values * sizeof *gradient));
        if (master)
            sdr_peer_step(node, gradient);
        SDR_TRY(sdr_peer_account(node));
    }
}

static enum sdr_status peer(struct sdr_node *node)
{
    uint64_t values = sdr_peer_values(node);
    float *gradient = NULL;
    enum sdr_status status = sdr_allocate(&gradient, values, sizeof *gradient, "a gradient");
    if (status == SDR_OK)
        status = train(node, gradient, values);
    sdr_release(gradient);
    return status;
}

SDR_REGISTER(strategy, master) = {
    .name = "master",
    .summary = "worker 0 sends its parameters to all, and adds up their gradients (DataParallel)",
    .many = true,
    .joint = true,
    .peer = &(const struct sdr_peer_ops){.peer = peer},
};
