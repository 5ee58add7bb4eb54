/* Sending messages, and checking those received. */
#include "server/traffic.h"
#include "base/memory.h"
#include "peer/peers.h"
#include "run/run.h"
#include "server/network.h"
#include "server/placement.h"
#include "server/shards.h"
#include "server/worker.h"

#include <math.h>

static void add(const struct sdr_network *net, atomic_uint_fast64_t *sum, uint64_t count)
{
    if (net->single_threaded)
        atomic_store_explicit(sum, atomic_load_explicit(sum, memory_order_relaxed) + count,
                              memory_order_relaxed);
    else
        atomic_fetch_add_explicit(sum, count, memory_order_relaxed);
}

/* ---- numbers of messages ---- */
/* Every message has the number of its place among those of its sender to its receiver. A copy of
   one that has come, and one of another run, has another number than the next. Channels: servers ×
   nodes, or without servers peers × peers; so many peers that this would take more than
   CHANNELS_MOST are simulated, and theirs are not numbered. */
enum { CHANNELS_MOST = 1 << 22 };

/* The channel of two nodes, and the direction in it; NULL: they exchange no messages, or without
   numbers (those of workers that have joined since, too). */
static struct sdr_channel *channel_of(const struct sdr_network *net, int from, int to, int *way)
{
    int low = from < to ? from : to, high = from < to ? to : from;
    *way = from > to;
    if (high >= net->channel_nodes || (net->servers && low >= net->servers))
        return NULL;
    return &net->channel[(size_t)low * (size_t)net->channel_nodes + (size_t)high];
}

/* The first numbers: others for other nodes, and other runs. */
enum sdr_status sdr_channels_create(struct sdr_run *run)
{
    struct sdr_network *net = run->network;
    size_t count = (size_t)(net->servers ? net->servers : net->nodes) * (size_t)net->nodes;
    if (count > CHANNELS_MOST)
        return SDR_OK;
    SDR_TRY(sdr_allocate(&net->channel, count, sizeof *net->channel, "nodes"));
    net->channel_nodes = net->nodes;
    for (size_t i = 0; i < count; i++)
        for (int way = 0; way < 2; way++) {
            uint64_t mixed = (run->options.settings.seed + 1) * UINT64_C(0x9e3779b97f4a7c15) +
                             (2 * i + (size_t)way) * UINT64_C(0xbf58476d1ce4e5b9);
            net->channel[i].sent[way] = net->channel[i].heard[way] = (uint16_t)(mixed >> 48);
        }
    return SDR_OK;
}

/* ---- out ---- */
void sdr_count_bytes(struct sdr_network *net, uint64_t bytes)
{
    add(net, &net->traffic.bytes, bytes);
    add(net, &net->traffic.messages, 1);
}

enum sdr_status sdr_send(struct sdr_node *node, struct sdr_message *message)
{
    struct sdr_network *net = node->run->network;
    int way;
    message->from = node->id;
    struct sdr_channel *channel = channel_of(net, message->from, message->to, &way);
    if (channel && message->kind != SDR_MESSAGE_PUT) /* which may be lost */
        message->sequence = channel->sent[way]++;
    sdr_count_bytes(net, sdr_message_bytes(message));
    return node->run->use.transport->send(node, message);
}

/* ---- in ---- */
/* Whose messages a node takes, by their kind: what cannot be is dropped. */
static bool may_come(const struct sdr_node *node, const struct sdr_message *message)
{
    bool peers = node->servers == 0, from_worker = message->from >= node->servers;
    bool first = message->from == 0;
    switch (message->kind) {
    case SDR_MESSAGE_NONE: return !message->body && node->id == 0;
    case SDR_MESSAGE_JOINED:
        return !message->body && node->server >= 0 && message->about >= 0 &&
               (uint64_t)message->about < node->run->use.transport->workers_most;
    case SDR_MESSAGE_LOST:
        return !message->body && sdr_hears_of_deaths(node->run->network, node->id);
    case SDR_MESSAGE_TASK: return node->worker >= 0 && !from_worker;
    case SDR_MESSAGE_GRADIENT: return node->server >= 0 && from_worker && message->body;
    case SDR_MESSAGE_APPLY: return node->server > 0 && first && message->body;
    case SDR_MESSAGE_DROP:
    case SDR_MESSAGE_ANSWER: return node->server > 0 && first && !message->body;
    case SDR_MESSAGE_ORDER: /* servers that share the coordinator's arrays are only synchronized */
        return first && node->server > 0 &&
               (sdr_process_of(node->run->network, node->id) > 0 ||
                message->about == SDR_ORDER_SYNC);
    case SDR_MESSAGE_APPLIED: return node->server == 0 && !from_worker && !first && !message->body;
    case SDR_MESSAGE_DONE:
        return node->server == 0 && !from_worker && !first &&
               (sdr_process_of(node->run->network, message->from) > 0 ||
                message->about == SDR_ORDER_SYNC);
    case SDR_MESSAGE_STOP:
        return first && node->id != 0 && !message->body && !message->batch && !message->version;
    case SDR_MESSAGE_PEER: return peers;
    case SDR_MESSAGE_PUT:
        return peers && message->about >= 0 && message->about < node->run->network->slots.count &&
               message->body && message->body->bytes >= sizeof(uint64_t) &&
               message->body->bytes <= node->run->network->slots.bytes;
    case SDR_MESSAGE_REPORT:
        return peers && node->id == 0 && message->body && message->batch < UINT64_C(1) << 53 &&
               message->body->bytes == sizeof(struct sdr_peer_report);
    default: return false;
    }
}

/* A task is of the kind that this strategy gives. One without a body has no values: a batch of no
   rows touches none. */
static bool task_sound(const struct sdr_node *node, const struct sdr_message *message)
{
    const struct sdr_policy *policy = &node->run->network->policy;
    const struct sdr_body *body = message->body;
    bool kept = message->flags & SDR_KEEP, patch = message->flags & SDR_PATCH;
    if (message->about < 0 || (kept && (patch || body || !node->task->own.local)))
        return false;
    if (patch)
        return policy->eager && body && body->bytes % 8 == 0 && message->value >= 0 &&
               message->value < 0x1p53;
    return policy->sparse == !!(message->flags & SDR_SPARSE) &&
           !(body && body->bytes % sizeof(float));
}

static uint8_t flags_of(uint8_t kind)
{
    return kind == SDR_MESSAGE_TASK     ? SDR_URGENT | SDR_SPARSE | SDR_PATCH | SDR_KEEP
           : kind == SDR_MESSAGE_ANSWER ? SDR_URGENT
           : kind == SDR_MESSAGE_STOP   ? SDR_URGENT
           : kind == SDR_MESSAGE_PUT    ? SDR_TORN
                                        : 0;
}

bool sdr_message_sound(const struct sdr_node *node, const struct sdr_message *message)
{
    const struct sdr_network *net = node->run->network;
    bool about_worker = message->kind == SDR_MESSAGE_DROP || message->kind == SDR_MESSAGE_ANSWER ||
                        message->kind == SDR_MESSAGE_LOST;
    bool has_batch = message->kind == SDR_MESSAGE_TASK || message->kind == SDR_MESSAGE_GRADIENT ||
                     message->kind == SDR_MESSAGE_ANSWER || message->kind == SDR_MESSAGE_DROP;
    int32_t lowest = message->kind == SDR_MESSAGE_LOST ? -1 : 0; /* a server was lost */
    return message->from >= 0 && message->from < net->nodes && may_come(node, message) &&
           !(message->flags & ~flags_of(message->kind)) && isfinite(message->value) &&
           !(about_worker && (message->about < lowest || message->about >= node->workers)) &&
           !(has_batch && message->batch >= net->lead.queue.end) &&
           (message->kind != SDR_MESSAGE_TASK || task_sound(node, message));
}

bool sdr_message_admitted(struct sdr_network *net, const struct sdr_message *message)
{
    if (message->kind == SDR_MESSAGE_PUT) {
        if (sdr_message_sound(&net->node[message->to], message))
            sdr_slot_arrive(net, message);
        else
            add(net, &net->traffic.refused, 1);
        return false;
    }
    if (!net->admits || sdr_message_is_local(message->kind))
        return true;
    int way;
    struct sdr_channel *channel = NULL;
    bool sound = sdr_message_sound(&net->node[message->to], message);
    if (sound)
        channel = channel_of(net, message->from, message->to, &way);
    if (!sound || (channel && message->sequence != channel->heard[way])) {
        add(net, &net->traffic.refused, 1);
        return false;
    }
    if (channel)
        channel->heard[way]++;
    return true;
}
