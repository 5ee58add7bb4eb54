/* The functions that loops of peers call: messages between any two peers, and batches by number. */
#include "base/memory.h"
#include "peer/peers.h"
#include "run/order.h"
#include "run/run.h"
#include "server/network.h"
#include "server/sampler.h"
#include "server/traffic.h"

#include <time.h>

int sdr_peer_id(const struct sdr_node *node)
{
    return node->id;
}

int sdr_peers(const struct sdr_node *node)
{
    return node->workers;
}

const void *sdr_peer_options(const struct sdr_node *node)
{
    return node->options;
}

struct sdr_peer *sdr_peer_of(const struct sdr_node *node)
{
    return node->run->network->peers->peer[node->id];
}

bool sdr_peer_deterministic(const struct sdr_node *node)
{
    return node->run->options.settings.deterministic;
}

bool sdr_peer_is_lost(const struct sdr_node *node, int peer)
{
    const struct sdr_peer *own = sdr_peer_of(node);
    for (uint64_t i = 0; i < own->group.losses; i++)
        if (own->group.lost[i].peer == peer)
            return true;
    return false;
}

bool sdr_peers_on_one_machine(const struct sdr_node *node)
{
    return node->run->use.transport->one_machine(node);
}

int64_t sdr_peer_now(const struct sdr_node *node)
{
    return node->run->use.transport->now(node);
}

/* ---- members ---- */
uint64_t sdr_peer_losses(const struct sdr_node *node)
{
    return sdr_peer_of(node)->group.losses;
}

int sdr_peer_members(const struct sdr_node *node)
{
    return sdr_peer_of(node)->group.members;
}

int sdr_peer_rank(const struct sdr_node *node)
{
    return sdr_peer_of(node)->group.rank;
}

int sdr_peer_member(const struct sdr_node *node, int rank)
{
    return sdr_peer_of(node)->group.member[rank];
}

void sdr_peer_part_without_lost(struct sdr_node *node)
{
    struct sdr_peer *peer = sdr_peer_of(node);
    peer->group.members = 0;
    for (int p = 0; p < node->workers; p++) {
        if (p == node->id)
            peer->group.rank = peer->group.members;
        if (!sdr_peer_is_lost(node, p))
            peer->group.member[peer->group.members++] = p;
    }
}

void sdr_peer_again(struct sdr_node *node)
{
    struct sdr_peer *peer = sdr_peer_of(node);
    peer->number -=
        sdr_peers_number_alike(&node->run->network->policy) ? 1 : (uint64_t)node->workers;
    peer->report = (struct sdr_peer_report){0};
    if (node->id > 0)
        return;
    struct sdr_peer_books *books = &node->run->network->peers->books;
    for (uint64_t i = 0; i < peer->group.losses; i++) /* their parts are others' now */
        books->told[peer->group.lost[i].peer] = false;
}

/* ---- messages ---- */
enum sdr_status sdr_peer_body(struct sdr_node *node, uint64_t bytes, struct sdr_body **body)
{
    return sdr_body_create(node->run->network->pool, bytes, body);
}

enum sdr_status sdr_peer_send(struct sdr_node *node, int to, int32_t tag, struct sdr_body *body)
{
    struct sdr_peer *peer = sdr_peer_of(node);
    struct sdr_message message = {.kind = SDR_MESSAGE_PEER, .to = to, .about = tag, .body = body};
    if (peer->over || sdr_peer_is_lost(node, to)) {
        sdr_body_drop(body);
        return peer->over ? SDR_PEER_OVER : SDR_OK;
    }
    peer->report.bytes += body ? body->bytes : 0;
    return sdr_send(node, &message);
}

enum sdr_status sdr_peer_keep(struct sdr_peer *peer, const struct sdr_message *message)
{
    enum sdr_status status = sdr_grow(&peer->pending, &peer->from, peer->count, &peer->room,
                                      sizeof *peer->pending, "messages");
    if (status == SDR_OK)
        peer->pending[(peer->from + peer->count++) % peer->room] = *message;
    else
        sdr_body_drop(message->body);
    return status;
}

/* Takes the i-th kept message; those before it move up. */
static struct sdr_message take(struct sdr_peer *peer, uint64_t i)
{
    struct sdr_message message = peer->pending[(peer->from + i) % peer->room];
    for (; i > 0; i--)
        peer->pending[(peer->from + i) % peer->room] =
            peer->pending[(peer->from + i - 1) % peer->room];
    peer->from = (peer->from + 1) % peer->room;
    peer->count--;
    return message;
}

enum sdr_status sdr_peer_pump(struct sdr_node *node)
{
    const struct sdr_transport *transport = node->run->use.transport;
    struct sdr_peer *peer = sdr_peer_of(node);
    struct sdr_message message;
    int64_t before = transport->now(node);
    SDR_TRY(transport->receive(node, &message));
    int64_t waited = transport->now(node) - before;
    peer->waited += waited;
    peer->report.waiting += (float)((double)waited * 1e-9);
    switch (message.kind) {
    case SDR_MESSAGE_PEER:
        if (message.about != SDR_TAG_ASK)
            return sdr_peer_keep(peer, &message);
        sdr_body_drop(message.body);
        return sdr_peer_give_model(node);
    case SDR_MESSAGE_REPORT: return sdr_peer_file_report(node, &message);
    case SDR_MESSAGE_LOST: return sdr_peer_lose(node, &message);
    case SDR_MESSAGE_STOP: peer->over = true;
    } /* NONE: requests are polled between updates */
    sdr_body_drop(message.body);
    return peer->over ? SDR_PEER_OVER : SDR_OK;
}

/* Finds the first kept message of a peer with a tag. */
static bool find(const struct sdr_peer *peer, int from, int32_t tag, uint64_t *i)
{
    for (*i = 0; *i < peer->count; ++*i) {
        const struct sdr_message *message = &peer->pending[(peer->from + *i) % peer->room];
        if (message->kind == SDR_MESSAGE_PEER && message->from == from && message->about == tag)
            return true;
    }
    return false;
}

enum sdr_status sdr_peer_receive(struct sdr_node *node, int from, int32_t tag,
                                 struct sdr_body **body)
{
    struct sdr_peer *peer = sdr_peer_of(node);
    uint64_t i;
    *body = NULL;
    while (!find(peer, from, tag, &i))
        SDR_TRY(sdr_peer_pump(node));
    *body = take(peer, i).body;
    return SDR_OK;
}

enum sdr_status sdr_peer_poll(struct sdr_node *node, int from, int32_t tag, struct sdr_body **body,
                              bool *came)
{
    struct sdr_peer *peer = sdr_peer_of(node);
    uint64_t i;
    *body = NULL;
    while (node->run->use.transport->any(node))
        SDR_TRY(sdr_peer_pump(node));
    *came = find(peer, from, tag, &i);
    if (*came)
        *body = take(peer, i).body;
    return SDR_OK;
}

void sdr_peer_forget(struct sdr_node *node, int32_t below)
{
    struct sdr_peer *peer = sdr_peer_of(node);
    for (uint64_t left = peer->count; left > 0; left--) { /* once around the ring */
        struct sdr_message message = peer->pending[peer->from];
        bool old = message.kind == SDR_MESSAGE_PEER && message.about < below;
        peer->from = (peer->from + 1) % peer->room;
        if (old)
            sdr_body_drop(message.body);
        else
            peer->pending[(peer->from + peer->count - 1) % peer->room] = message;
        peer->count -= old;
    }
}

static bool find_any(const struct sdr_peer *peer, uint64_t *i)
{
    for (*i = 0; *i < peer->count; ++*i)
        if (peer->pending[(peer->from + *i) % peer->room].kind == SDR_MESSAGE_PEER)
            return true;
    return false;
}

enum sdr_status sdr_peer_receive_any(struct sdr_node *node, int *from, int32_t *tag,
                                     struct sdr_body **body)
{
    struct sdr_peer *peer = sdr_peer_of(node);
    uint64_t i;
    *body = NULL;
    while (!find_any(peer, &i))
        SDR_TRY(sdr_peer_pump(node));
    struct sdr_message message = take(peer, i);
    *from = message.from;
    *tag = message.about;
    *body = message.body;
    return SDR_OK;
}

enum sdr_status sdr_peer_receive_if_there(struct sdr_node *node, int from, int32_t tag,
                                          struct sdr_body **body)
{
    bool came = false;
    for (*body = NULL; !came && !sdr_peer_is_lost(node, from);) {
        SDR_TRY(sdr_peer_poll(node, from, tag, body, &came));
        if (!came)
            SDR_TRY(sdr_peer_pump(node));
    }
    return SDR_OK;
}

enum sdr_status sdr_peer_any(struct sdr_node *node, bool *any)
{
    uint64_t i;
    while (node->run->use.transport->any(node))
        SDR_TRY(sdr_peer_pump(node));
    *any = find_any(sdr_peer_of(node), &i);
    return SDR_OK;
}

/* ---- sums by the transport ---- */
bool sdr_peer_has_sums(const struct sdr_node *node)
{
    return node->run->use.transport->sum && node->run->processes == node->workers;
}

enum sdr_status sdr_peer_sum(struct sdr_node *node, float *value, uint64_t count, void *request)
{
    return node->run->use.transport->sum(node, value, count, request);
}

enum sdr_status sdr_peer_summed(struct sdr_node *node, void *request, bool *done)
{
    return node->run->use.transport->summed(node, request, done);
}

enum sdr_status sdr_peer_await_sum(struct sdr_node *node, void *request)
{
    enum { LOOKS = 200 };
    static const struct timespec nap = {.tv_nsec = 20000};
    const struct sdr_transport *transport = node->run->use.transport;
    struct sdr_peer *peer = sdr_peer_of(node);
    int64_t before = transport->now(node);
    bool done = false, any;
    for (int looks = 0; !done; looks++) {
        SDR_TRY(sdr_peer_any(node, &any)); /* a death, or the end of the run */
        SDR_TRY(transport->summed(node, request, &done));
        if (!done && looks >= LOOKS)
            nanosleep(&nap, NULL);
    }
    int64_t waited = transport->now(node) - before;
    peer->waited += waited;
    peer->report.waiting += (float)((double)waited * 1e-9);
    return SDR_OK;
}

/* ---- work ---- */
enum sdr_status sdr_peer_compute(struct sdr_node *node, struct sdr_work *work)
{
    const struct sdr_transport *transport = node->run->use.transport;
    struct sdr_peer *peer = sdr_peer_of(node);
    int64_t before = transport->now(node);
    bool done;
    if (work->next == 0) {
        work->certain = true; /* only the end of the run is urgent */
        work->draws = work->draws ? work->draws : 1;
        work->number = peer->draws + 1;
        peer->draws += work->draws;
    }
    SDR_TRY(work->progress && !transport->simulated ? sdr_helper_compute(node, work, &done)
                                                    : transport->compute(node, work, &done));
    peer->report.computing += (float)((double)(transport->now(node) - before) * 1e-9);
    while (!done) /* the end of the run has come, or a failure */
        SDR_TRY(sdr_peer_pump(node));
    return SDR_OK;
}

/* ---- batches ---- */
enum sdr_status sdr_peer_next_batch(struct sdr_node *node, struct sdr_batch *batch)
{
    struct sdr_run *run = node->run;
    const struct sdr_network *net = run->network;
    struct sdr_peer *peer = sdr_peer_of(node);
    bool any;
    if (run->use.strategy->peer->alone) /* nobody waits: what has come meanwhile */
        SDR_TRY(sdr_peer_any(node, &any));
    while (net->policy.share && !sdr_network_share_exists(run, peer->number))
        peer->number++;
    uint64_t number = peer->number;
    peer->epoch = sdr_divide(&net->policy.epochs, number, &peer->at);
    if (run->use.strategy->peer->alone && peer->epoch >= run->pace.epochs)
        return sdr_peer_await_end(node);
    if (net->policy.share)
        SDR_TRY(sdr_network_shard_batch(run, number, node->worker, peer->row, batch));
    else if (net->policy.joint)
        SDR_TRY(sdr_network_share(run, number, peer->group.rank, peer->group.members, peer->row,
                                  batch));
    else
        SDR_TRY(sdr_network_batch(run, number, node->worker, peer->row, batch));
    peer->at = net->policy.share ? sdr_shard_place(run, node->worker, batch->at)
                                 : peer->at * net->policy.batch;
    peer->number += sdr_peers_number_alike(&net->policy) ? 1 : (uint64_t)net->workers;
    peer->report.rows = batch->count + (run->use.strategy->peer->alone ? peer->report.rows : 0);
    return SDR_OK;
}
