/* Data-parallel SGD with a master, as PyTorch's DataParallel does it: worker 0 sends its parameters to all others,
   everybody computes the gradient of its part of a batch, worker 0 adds the gradients up in the order of the workers and takes
   the step. Its messages are 2·N·(P − 1) values an update, where the ring of allreduce has 2·N·(P − 1)/P a worker. */
#include "base/memory.h"
#include "peer/role.h"

#include <string.h>

enum { WEIGHTS, GRADIENT }; /* tags */

static enum sdr_status check_length(const struct sdr_body *body, int from, uint64_t values)
{
    return (body ? body->bytes : 0) == values * sizeof(float)
               ? SDR_OK
               : sdr_fail(SDR_RUNTIME, "worker %d sent a message of another length", from);
}

static enum sdr_status receive(struct sdr_node *node, int from, int32_t tag, uint64_t values,
                               struct sdr_body **body)
{
    SDR_TRY(sdr_peer_receive(node, from, tag, body));
    enum sdr_status status = check_length(*body, from, values);
    if (status != SDR_OK)
        sdr_body_drop(*body);
    return status;
}

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
    SDR_TRY(receive(node, 0, WEIGHTS, values, &body));
    sdr_peer_set_weights(node, (const float *)(const void *)body->data);
    sdr_body_drop(body);
    return SDR_OK;
}

static enum sdr_status gather_gradients(struct sdr_node *node, float *gradient, uint64_t values)
{
    for (int from = 1; from < sdr_peers(node); from++) {
        struct sdr_body *body;
        SDR_TRY(receive(node, from, GRADIENT, values, &body));
        const float *came = (const float *)(const void *)body->data;
        for (uint64_t i = 0; i < values; i++)
            gradient[i] += came[i];
        sdr_body_drop(body);
    }
    return SDR_OK;
}

static enum sdr_status send_gradient(struct sdr_node *node, const float *gradient, uint64_t values)
{
    struct sdr_body *body;
    SDR_TRY(sdr_peer_body(node, values * sizeof *gradient, &body));
    memcpy(body->data, gradient, values * sizeof *gradient);
    return sdr_peer_send(node, 0, GRADIENT, body);
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
                       : send_gradient(node, gradient, values));
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
