/* The state of replicas that differ, for checkpoints. At the end of an epoch every peer puts its
   state where the checkpoint looks for it, in the first process: directly, or by a message. There
   are no checkpoints in between. */
#include "base/memory.h"
#include "peer/peers.h"
#include "run/job.h"
#include "run/run.h"
#include "server/network.h"
#include "server/traffic.h"

#include <string.h>

struct head {
    uint64_t version;
    double penalty_due;
    float constant[SDR_CONSTANTS];
};

/* Arrays of a state: values, the optimizer's, penalties paid. */
static int arrays_of(const struct sdr_parameters *p)
{
    return 1 + p->rule.optimizer->slots + (p->penalty_paid != NULL);
}

static float *array_of(const struct sdr_parameters *p, int i)
{
    return i <= p->rule.optimizer->slots ? sdr_parameters_array(p, i) : p->penalty_paid;
}

static void copy_head(const struct sdr_parameters *p, struct head *head)
{
    *head = (struct head){.version = p->version, .penalty_due = p->penalty_due};
    memcpy(head->constant, p->constant, sizeof head->constant);
}

static void set_head(struct sdr_parameters *p, const struct head *head)
{
    p->version = head->version;
    p->penalty_due = head->penalty_due;
    memcpy(p->constant, head->constant, sizeof head->constant);
}

enum sdr_status sdr_peer_states_create(struct sdr_run *run)
{
    if (!run->use.strategy->peer->local || !run->options.settings.run)
        return SDR_OK;
    SDR_TRY(sdr_allocate(&run->shared.replica, (size_t)run->workers, sizeof *run->shared.replica,
                         "copies of the model"));
    while (run->shared.replicas < run->workers) { /* counted first, so that a failed one is freed */
        struct sdr_parameters *copy = &run->shared.replica[run->shared.replicas++];
        SDR_TRY(sdr_parameters_replicate(copy, &run->parameters, true, false));
        sdr_scratch_free(&copy->scratch); /* it takes no steps */
    }
    return SDR_OK;
}

/* ---- to the first process ---- */
static enum sdr_status send_state(struct sdr_node *node)
{
    const struct sdr_parameters *p = node->parameters;
    size_t count = p->layout->count * sizeof(float);
    struct sdr_message message = {.kind = SDR_MESSAGE_PEER, .to = 0, .about = SDR_TAG_STATE};
    struct head head;
    SDR_TRY(sdr_peer_body(node, sizeof head + (size_t)arrays_of(p) * count, &message.body));
    copy_head(p, &head);
    memcpy(message.body->data, &head, sizeof head);
    for (int i = 0; i < arrays_of(p); i++)
        memcpy(message.body->data + sizeof head + (size_t)i * count, array_of(p, i), count);
    return sdr_send(node, &message);
}

enum sdr_status sdr_peer_give_state(struct sdr_node *node)
{
    struct sdr_run *run = node->run;
    struct head head;
    if (!run->network->peers->saves)
        return SDR_OK;
    if (run->process > 0 || !run->network->policy.joint) /* others may be an epoch ahead */
        return send_state(node);
    copy_head(node->parameters, &head);
    set_head(&run->shared.replica[node->id], &head);
    for (int i = 0; i < arrays_of(node->parameters); i++)
        memcpy(array_of(&run->shared.replica[node->id], i), array_of(node->parameters, i),
               run->layout.count * sizeof(float));
    return SDR_OK;
}

static enum sdr_status take_state(struct sdr_node *node, int from)
{
    struct sdr_parameters *copy = &node->run->shared.replica[from];
    size_t count = copy->layout->count * sizeof(float);
    struct sdr_body *body;
    struct head head;
    SDR_TRY(sdr_peer_receive_if_there(node, from, SDR_TAG_STATE, &body));
    if (!body && sdr_peer_is_lost(node, from))
        return SDR_OK;
    bool sound = body && body->bytes == sizeof head + (size_t)arrays_of(copy) * count;
    if (sound) {
        memcpy(&head, body->data, sizeof head);
        set_head(copy, &head);
    }
    for (int i = 0; i < arrays_of(copy) && sound; i++)
        memcpy(array_of(copy, i), body->data + sizeof head + (size_t)i * count, count);
    sdr_body_drop(body);
    return sound ? SDR_OK
                 : sdr_fail(SDR_RUNTIME, "worker %d sent a state that makes no sense", from);
}

bool sdr_peer_states_there(const struct sdr_node *node)
{
    const struct sdr_peer *peer = sdr_peer_of(node);
    for (int from = 0; node->run->network->peers->saves && from < node->workers; from++) {
        bool there = sdr_peer_is_lost(node, from);
        for (uint64_t i = 0; i < peer->count && !there; i++) {
            const struct sdr_message *message = &peer->pending[(peer->from + i) % peer->room];
            there = message->kind == SDR_MESSAGE_PEER && message->from == from &&
                    message->about == SDR_TAG_STATE;
        }
        if (!there)
            return false;
    }
    return true;
}

enum sdr_status sdr_peer_take_states(struct sdr_node *node)
{
    const struct sdr_peers *peers = node->run->network->peers;
    bool all = !node->run->network->policy.joint;
    for (int from = 0; peers->saves && from < node->workers; from++)
        if ((all || !peers->peer[from]) && !sdr_peer_is_lost(node, from))
            SDR_TRY(take_state(node, from));
    return SDR_OK;
}

/* ---- checkpoints: arrays are saved by run/checkpoint.c, their numbers here ---- */
enum { NUMBERS = 2 };
static const char name[] = "replicas";

enum sdr_status sdr_peer_states_save(struct sdr_run *run)
{
    double *number;
    if (!run->shared.replicas)
        return SDR_OK;
    SDR_TRY(sdr_node_array_renew(&run->shared.node[0], name, NUMBERS * (uint64_t)run->workers,
                                 &number));
    for (int w = 0; w < run->workers; w++) {
        number[NUMBERS * w] = (double)run->shared.replica[w].version;
        number[NUMBERS * w + 1] = run->shared.replica[w].penalty_due;
    }
    return SDR_OK;
}

static enum sdr_status resume_numbers(struct sdr_run *run)
{
    const struct sdr_node *kept = &run->shared.node[0];
    for (int i = 0; i < kept->arrays; i++)
        if (strcmp(kept->array[i].name, name) == 0 &&
            kept->array[i].count == NUMBERS * (uint64_t)run->workers) {
            for (int w = 0; w < run->workers; w++) {
                run->shared.replica[w].version = (uint64_t)kept->array[i].value[NUMBERS * w];
                run->shared.replica[w].penalty_due = kept->array[i].value[NUMBERS * w + 1];
            }
            return SDR_OK;
        }
    return sdr_fail(SDR_BAD_FILE, "the checkpoint has no numbers of the workers");
}

/* All processes see all states, one array at a time, and take those of their peers. */
static enum sdr_status share_state(struct sdr_run *run, int worker, float *buffer)
{
    const struct sdr_peer *peer = run->network->peers->peer[worker];
    const struct sdr_parameters *shape = &run->parameters;
    size_t count = run->layout.count * sizeof *buffer;
    struct head head = {0};
    if (run->process == 0)
        copy_head(&run->shared.replica[worker], &head);
    SDR_TRY(sdr_share(run, &head, sizeof head));
    if (peer)
        set_head(run->network->node[worker].parameters, &head);
    for (int i = 0; i < arrays_of(shape); i++) {
        if (run->process == 0)
            memcpy(buffer, array_of(&run->shared.replica[worker], i), count);
        SDR_TRY(sdr_share(run, buffer, count));
        if (peer)
            memcpy(array_of(run->network->node[worker].parameters, i), buffer, count);
    }
    return SDR_OK;
}

enum sdr_status sdr_peer_states_resume(struct sdr_run *run)
{
    float *buffer;
    if (run->process == 0)
        SDR_TRY(resume_numbers(run));
    SDR_TRY(sdr_allocate(&buffer, run->layout.count, sizeof *buffer, "copies of the model"));
    enum sdr_status status = SDR_OK;
    for (int w = 0; w < run->workers && status == SDR_OK; w++)
        status = share_state(run, w, buffer);
    sdr_release(buffer);
    return status;
}
