/* Sending messages, and checking those received. */
#include "server/traffic.h"
#include "run/run.h"
#include "server/network.h"
#include "server/placement.h"
#include "server/worker.h"

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

static bool has_worker(const struct sdr_node *node, const struct sdr_message *message)
{
    return message->about >= 0 && message->about < node->workers;
}

static bool has_batch(const struct sdr_message *message)
{
    return message->batch < UINT64_C(1) << 53;
}

/* A task without a body has no values: a batch of no rows touches none. */
static bool task_sound(const struct sdr_node *node, const struct sdr_message *message)
{
    return has_batch(message) && message->about >= 0 &&
           (!(message->flags & SDR_KEEP) || node->task->own.local) &&
           (!(message->flags & SDR_PATCH) || (message->body && message->body->bytes % 8 == 0));
}

bool sdr_message_sound(const struct sdr_node *node, const struct sdr_message *message)
{
    bool from_worker = message->from >= node->servers, from_first = message->from == 0;
    if (message->from < 0 || message->from >= node->servers + node->workers)
        return false;
    switch (message->kind) {
    case SDR_MESSAGE_NONE:
        return node->server == 0;
    case SDR_MESSAGE_JOINED:
        return node->server >= 0 && message->about >= 0 &&
               (uint64_t)message->about < node->run->use.transport->workers_most;
    case SDR_MESSAGE_LOST: /* −1: a server was lost */
        return sdr_hears_of_deaths(node->run->network, node->id) &&
               (message->about == -1 || has_worker(node, message));
    case SDR_MESSAGE_TASK:
        return node->worker >= 0 && !from_worker && task_sound(node, message);
    case SDR_MESSAGE_GRADIENT:
        return node->server >= 0 && from_worker && message->body && has_batch(message);
    case SDR_MESSAGE_APPLY:
        return node->server > 0 && from_first && message->body;
    case SDR_MESSAGE_DROP:
    case SDR_MESSAGE_ANSWER:
        return node->server > 0 && from_first && has_worker(node, message) && has_batch(message);
    case SDR_MESSAGE_ORDER:
        return node->server > 0 && from_first;
    case SDR_MESSAGE_APPLIED:
    case SDR_MESSAGE_DONE:
        return node->server == 0 && !from_worker && !from_first;
    case SDR_MESSAGE_STOP:
        return from_first;
    default:
        return false;
    }
}
