/* States of replicas, written into slots of other peers: the pieces that are told, by number, and
   their values. */
#include "base/memory.h"
#include "peer/peers.h"
#include "run/run.h"

#include <string.h>

enum { PIECE = 64 }; /* values of a piece, unless the model says otherwise */
struct head {
    uint32_t pieces, from;
};

static struct sdr_state_shape shape_of(const struct sdr_run *run, uint64_t arrays)
{
    const struct sdr_model_state *state = run->use.kind->state;
    struct sdr_peer_vector vector;
    struct sdr_state_shape shape = {.piece = PIECE};
    sdr_peer_vector_make(&run->layout, &vector);
    shape.values = state ? state->values(run->layout.block, &shape.piece) : vector.count * arrays;
    shape.pieces = (uint32_t)((shape.values + shape.piece - 1) / shape.piece);
    return shape;
}

static uint64_t bytes_of(const struct sdr_state_shape *shape)
{
    return sizeof(struct head) + shape->pieces * sizeof(uint32_t) + shape->values * sizeof(float);
}

enum sdr_status sdr_peers_expose(struct sdr_run *run)
{
    const struct sdr_peer_ops *ops = run->use.strategy->peer;
    if (!ops->slots)
        return SDR_OK;
    struct sdr_state_shape shape =
        shape_of(run, (uint64_t)sdr_peer_arrays_to_set(&run->parameters));
    return sdr_slots_create(run, ops->slots(run->use.strategy_options), bytes_of(&shape));
}

/* ---- a replica's state ---- */
struct sdr_state_shape sdr_peer_state_shape(const struct sdr_node *node)
{
    return shape_of(node->run, (uint64_t)sdr_peer_arrays_to_set(node->parameters));
}

uint64_t sdr_peer_state_bytes(const struct sdr_node *node)
{
    return node->run->network->slots.bytes;
}

void sdr_peer_copy_state(struct sdr_node *node, float *to)
{
    struct sdr_parameters *p = node->parameters;
    const struct sdr_model_state *state = node->run->use.kind->state;
    const struct sdr_peer_vector *vector = &sdr_peer_of(node)->vector;
    sdr_parameters_catch_up_all(p);
    if (state)
        state->copy(p->layout->block, p->value, to);
    for (int i = 0; i < sdr_peer_arrays_to_set(p) && !state; i++)
        sdr_peer_vector_copy(vector, p->layout, sdr_parameters_array(p, i),
                             to + (uint64_t)i * vector->count);
}

void sdr_peer_set_state(struct sdr_node *node, const float *from)
{
    struct sdr_parameters *p = node->parameters;
    const struct sdr_model_state *state = node->run->use.kind->state;
    const struct sdr_peer_vector *vector = &sdr_peer_of(node)->vector;
    if (state)
        state->set(p->layout->block, from, p->value);
    for (int i = 0; i < sdr_peer_arrays_to_set(p) && !state; i++)
        sdr_peer_vector_set(vector, p->layout, from + (uint64_t)i * vector->count,
                            sdr_parameters_array(p, i));
    sdr_parameters_recompute(p, node->run->pace.rate);
}

/* ---- choices ---- */
double sdr_peer_draw(struct sdr_node *node)
{
    return sdr_stream_uniform(&sdr_peer_of(node)->random);
}

int sdr_peer_any_other(struct sdr_node *node)
{
    struct sdr_peer *peer = sdr_peer_of(node);
    uint64_t others = (uint64_t)node->workers - 1 - peer->group.losses;
    if (!others)
        return -1;
    uint64_t nth = sdr_stream_below(&peer->random, others);
    for (int p = 0; p < node->workers; p++)
        if (p != node->id && (!peer->group.losses || !sdr_peer_is_lost(node, p)) && nth-- == 0)
            return p;
    return -1;
}

double sdr_peer_step_size(const struct sdr_node *node)
{
    const struct sdr_peer *peer = sdr_peer_of(node);
    return sdr_peer_rate(node->run, peer, peer->at);
}

bool sdr_peer_plain_steps(const struct sdr_node *node)
{
    return node->parameters->rule.optimizer->slots == 0;
}

/* ---- out ---- */
static struct head head_of(const struct sdr_state_shape *shape, const bool *marked, int from)
{
    struct head head = {.from = (uint32_t)from, .pieces = marked ? 0 : shape->pieces};
    for (uint32_t i = 0; i < shape->pieces && marked; i++)
        head.pieces += marked[i];
    return head;
}

/* Behind the head: the numbers of the pieces and their values; values alone if it is all of
   them. */
static uint64_t pack(const struct sdr_state_shape *shape, const float *state, const bool *marked,
                     uint32_t pieces, unsigned char *bytes)
{
    uint32_t *piece = (uint32_t *)(void *)bytes;
    float *at = (float *)(void *)(piece + pieces);
    for (uint32_t i = 0; i < shape->pieces; i++)
        if (marked[i]) {
            *piece++ = i;
            memcpy(at, state + (uint64_t)i * shape->piece, sdr_state_length(shape, i) * sizeof *at);
            at += sdr_state_length(shape, i);
        }
    return (uint64_t)((unsigned char *)at - bytes);
}

enum sdr_status sdr_peer_put_state(struct sdr_node *node, int to, const float *state,
                                   const bool *marked, bool *sent)
{
    const struct sdr_transport *transport = node->run->use.transport;
    struct sdr_peer *peer = sdr_peer_of(node);
    struct sdr_state_shape shape = sdr_peer_state_shape(node);
    struct head head = head_of(&shape, marked, node->id);
    const void *bytes = state;
    uint64_t count = shape.values * sizeof *state;
    *sent = !transport->idle || transport->idle(node, to);
    if (!*sent)
        return SDR_OK;
    if (head.pieces < shape.pieces) {
        count = pack(&shape, state, marked, head.pieces, peer->packed);
        bytes = peer->packed;
    }
    peer->report.states.sent++;
    peer->report.bytes += sizeof head + count;
    if (node->run->network->slots.at[to] && !transport->simulated)
        peer->report.states.bytes += sizeof head + count;
    int slot = (int)sdr_stream_below(&peer->random, (uint64_t)node->run->network->slots.count);
    return sdr_slot_put(node, to, slot, &head, bytes, count);
}

/* ---- in ---- */
/* Bytes of torn states may be of two: all is checked. */
static bool unpack(const struct sdr_state_shape *shape, const uint32_t *all,
                   const unsigned char *bytes, uint64_t count, struct sdr_state *state)
{
    struct head head;
    uint64_t values = 0, numbers = 0;
    if (count < sizeof head)
        return false;
    memcpy(&head, bytes, sizeof head);
    if (head.pieces == 0 || head.pieces > shape->pieces)
        return false;
    state->pieces = head.pieces;
    state->piece = all;
    if (head.pieces < shape->pieces) {
        state->piece = (const uint32_t *)(const void *)(bytes + sizeof head);
        numbers = head.pieces * sizeof *state->piece;
    }
    if (count < sizeof head + numbers)
        return false;
    state->value = (const float *)(const void *)(bytes + sizeof head + numbers);
    for (uint32_t i = 0; i < head.pieces; i++) {
        if (state->piece[i] >= shape->pieces || (i && state->piece[i] <= state->piece[i - 1]))
            return false;
        values += sdr_state_length(shape, state->piece[i]);
    }
    return count >= sizeof head + numbers + values * sizeof(float);
}

bool sdr_peer_take_state(struct sdr_node *node, int *slot, void *memory, struct sdr_state *state)
{
    const struct sdr_slots *slots = &node->run->network->slots;
    struct sdr_state_shape shape = sdr_peer_state_shape(node);
    struct sdr_peer *peer = sdr_peer_of(node);
    while (*slot < slots->count) {
        struct sdr_found found;
        sdr_slot_read(slots, node->id, (*slot)++, memory, &found);
        if (!found.bytes)
            continue;
        state->torn = found.torn;
        peer->report.states.torn += found.torn;
        if (unpack(&shape, peer->all_pieces, memory, found.bytes, state))
            return true;
    }
    return false;
}

enum sdr_status sdr_peer_states_begin(struct sdr_node *node)
{
    struct sdr_peer *peer = sdr_peer_of(node);
    struct sdr_state_shape shape = sdr_peer_state_shape(node);
    if (!node->run->network->slots.count)
        return SDR_OK;
    SDR_TRY(sdr_allocate(&peer->all_pieces, shape.pieces, sizeof *peer->all_pieces, "states"));
    for (uint32_t i = 0; i < shape.pieces; i++)
        peer->all_pieces[i] = i;
    return sdr_allocate(&peer->packed, bytes_of(&shape), 1, "states");
}

void sdr_peer_count_states(struct sdr_node *node, uint64_t accepted, uint64_t rejected)
{
    sdr_peer_of(node)->report.states.accepted += accepted;
    sdr_peer_of(node)->report.states.rejected += rejected;
}
