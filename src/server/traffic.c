/* Messages on their way out, counted, and on their way in, checked. */
#include "run/run.h"
#include "server/network.h"

static void add(const struct sdr_network *net, atomic_uint_fast64_t *sum, uint64_t count)
{
    if (net->single_threaded)
        atomic_store_explicit(sum, atomic_load_explicit(sum, memory_order_relaxed) + count,
                              memory_order_relaxed);
    else
        atomic_fetch_add_explicit(sum, count, memory_order_relaxed);
}

enum sdr_status sdr_send(struct sdr_node *node, struct sdr_message *message)
{
    struct sdr_network *net = node->run->network;
    message->from = node->id;
    add(net, &net->traffic.bytes, sdr_message_bytes(message));
    add(net, &net->traffic.messages, 1);
    return node->run->use.transport->send(node, message);
}

/* Whose messages a node takes, by their kind: what cannot be is dropped. */
static bool may_come(const struct sdr_node *node, const struct sdr_message *message)
{
    bool from_worker = message->from >= node->servers, first = message->from == 0;
    switch (message->kind) {
    case SDR_MESSAGE_NONE:
        return node->server == 0;
    case SDR_MESSAGE_JOINED:
        return node->server >= 0;
    case SDR_MESSAGE_LOST:
        return sdr_hears_of_deaths(node->run->network, node->id);
    case SDR_MESSAGE_TASK:
        return node->worker >= 0 && !from_worker;
    case SDR_MESSAGE_GRADIENT:
        return node->server >= 0 && from_worker && message->body;
    case SDR_MESSAGE_APPLY:
        return node->server > 0 && first && message->body;
    case SDR_MESSAGE_DROP:
    case SDR_MESSAGE_ANSWER:
        return node->server > 0 && first;
    case SDR_MESSAGE_ORDER:
        return node->server > 0 && first;
    case SDR_MESSAGE_APPLIED:
    case SDR_MESSAGE_DONE:
        return node->server == 0 && !from_worker && !first;
    case SDR_MESSAGE_STOP:
        return first;
    default:
        return false;
    }
}

bool sdr_message_sound(const struct sdr_node *node, const struct sdr_message *message)
{
    const struct sdr_network *net = node->run->network;
    bool about_worker = message->kind == SDR_MESSAGE_DROP || message->kind == SDR_MESSAGE_ANSWER ||
                        message->kind == SDR_MESSAGE_LOST;
    bool has_batch = message->kind == SDR_MESSAGE_TASK || message->kind == SDR_MESSAGE_GRADIENT ||
                     message->kind == SDR_MESSAGE_ANSWER || message->kind == SDR_MESSAGE_DROP;
    uint64_t most = node->run->use.transport->workers_most;
    int32_t lowest = message->kind == SDR_MESSAGE_LOST ? -1 : 0; /* a server was lost */
    bool sound = message->from >= 0 && message->from < net->nodes && may_come(node, message) &&
                 !(about_worker && (message->about < lowest || message->about >= node->workers)) &&
                 !(message->kind == SDR_MESSAGE_JOINED &&
                   (message->about < 0 || (uint64_t)message->about > most)) &&
                 !(has_batch && message->batch >= UINT64_C(1) << 53);
    if (message->kind == SDR_MESSAGE_TASK && sound) {
        bool kept = message->flags & SDR_KEEP, patch = message->flags & SDR_PATCH;
        sound = message->about >= 0 && (!kept || node->task->own.local) &&
                (!patch || (message->body && message->body->bytes % 8 == 0));
    } /* one without a body has no values: a batch of no rows touches none */
    return sound;
}
