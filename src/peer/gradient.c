/* Gradients and steps of peers: every replica takes the same steps. A gradient is one vector, the last block first: networks
   finish their last layer first. */
#include "base/hash.h"
#include "base/memory.h"
#include "peer/peers.h"
#include "run/run.h"
#include "server/network.h"
#include "server/sampler.h"

#include <string.h>

/* ---- the vector ---- */
void sdr_peer_vector_make(const struct sdr_layout *layout, struct sdr_peer_vector *vector)
{
    *vector = (struct sdr_peer_vector){0};
    for (int b = layout->blocks; b-- > 0;) {
        vector->first[b] = vector->count;
        if (!layout->block[b].fixed)
            vector->count += (uint64_t)layout->block[b].rows * layout->block[b].cols;
    }
}

void sdr_peer_vector_copy(const struct sdr_peer_vector *vector, const struct sdr_layout *layout,
                          const float *array, float *to)
{
    for (int b = 0; b < layout->blocks; b++) {
        const struct sdr_block *block = &layout->block[b];
        if (!block->fixed)
            memcpy(to + vector->first[b], array + block->offset,
                   (size_t)block->rows * block->cols * sizeof *to);
    }
}

void sdr_peer_vector_set(const struct sdr_peer_vector *vector, const struct sdr_layout *layout,
                         const float *from, float *array)
{
    for (int b = 0; b < layout->blocks; b++) {
        const struct sdr_block *block = &layout->block[b];
        if (!block->fixed)
            memcpy(array + block->offset, from + vector->first[b],
                   (size_t)block->rows * block->cols * sizeof *array);
    }
}

uint64_t sdr_peer_values(const struct sdr_node *node)
{
    return sdr_peer_of(node)->vector.count;
}

uint64_t sdr_peer_ready(const struct sdr_node *node)
{
    return sdr_peer_of(node)->vector.ready;
}

uint64_t sdr_peer_hash(struct sdr_node *node)
{
    const struct sdr_parameters *p = node->parameters; /* penalties are charged alike, or not yet */
    return sdr_hash64(p->value, p->layout->count * sizeof *p->value, 0);
}

/* ---- gradients ---- */
struct sdr_view sdr_peer_view(const struct sdr_node *node)
{
    const struct sdr_parameters *p = node->parameters;
    return (struct sdr_view){&node->run->problem, p->layout->block, p->value, p->version};
}

static void add_part(struct sdr_node *node, const struct sdr_part *part,
                     const struct sdr_batch *batch)
{
    struct sdr_parameters *p = node->parameters;
    struct sdr_peer *peer = sdr_peer_of(node);
    /* Marks of gradients count down from the top, so that they never equal those of updates. */
    struct sdr_expansion to = {.layout = p->layout,
                               .kernels = p->rule.kernels,
                               .center = p->rule.center,
                               .scratch = &p->scratch,
                               .mark = peer->mark,
                               .times = 1};
    sdr_part_add(&to, part, batch, 0, p->layout->block[part->block].rows,
                 peer->gradient + peer->vector.first[part->block]);
}

static void next_mark(struct sdr_peer *peer)
{
    peer->mark = peer->mark > 1 ? peer->mark - 1 : UINT32_MAX;
}

/* All leaves of a batch but the last, completely. */
static enum sdr_status add_leaves(struct sdr_node *node, const struct sdr_view *view,
                                  uint32_t leaves, int stages, const atomic_uint *stop)
{
    struct sdr_peer *peer = sdr_peer_of(node);
    for (uint32_t l = 0; l + 1 < leaves && !atomic_load(stop); l++) {
        struct sdr_batch leaf = sdr_leaf(peer->batch, l);
        sdr_leaf_begin(&peer->space, view, &leaf, &peer->update);
        for (int stage = 0; stage < stages; stage++)
            SDR_TRY(sdr_leaf_stage(&peer->space, view, stage, &peer->update));
        next_mark(peer);
        for (int p = 0; p < peer->update.parts; p++)
            add_part(node, &peer->update.part[p], &leaf);
        peer->report.loss += peer->update.loss;
        peer->report.weight += peer->update.weight;
    }
    return SDR_OK;
}

/* The values up to the first block that is not final. */
static void find_ready(const struct sdr_layout *layout, struct sdr_peer_vector *vector)
{
    int b = layout->blocks;
    while (b > 0 && (vector->final[b - 1] || layout->block[b - 1].fixed))
        b--;
    vector->ready = b > 0 ? vector->first[b - 1] : vector->count;
}

/* A step per stage of the last leaf; the other leaves come with the first step. */
static enum sdr_status compute(void *argument, uint32_t step, const atomic_uint *stop)
{
    struct sdr_node *node = argument;
    struct sdr_peer *peer = sdr_peer_of(node);
    struct sdr_peer_vector *vector = &peer->vector;
    const struct sdr_layout *layout = node->parameters->layout;
    uint32_t leaves = sdr_leaves(peer->batch->count);
    int stages = sdr_gradient_stages(&peer->space, &node->run->problem);
    if (step == 0) {
        sdr_parameters_catch_up_all(node->parameters);
        memset(peer->gradient, 0, vector->count * sizeof *peer->gradient);
        memset(vector->final, 0, sizeof vector->final);
        vector->ready = 0;
    }
    struct sdr_view view = sdr_peer_view(node);
    if (step == 0) {
        SDR_TRY(add_leaves(node, &view, leaves, stages, stop));
        struct sdr_batch leaf = sdr_leaf(peer->batch, leaves ? leaves - 1 : 0);
        sdr_leaf_begin(&peer->space, &view, &leaf, &peer->update);
        next_mark(peer);
    }
    int before = peer->update.parts;
    if (leaves)
        SDR_TRY(sdr_leaf_stage(&peer->space, &view, (int)step, &peer->update));
    for (int p = before; p < peer->update.parts; p++) {
        add_part(node, &peer->update.part[p], &peer->update.batch);
        vector->final[peer->update.part[p].block] = true;
    }
    if (step == 0) {
        peer->report.loss += peer->update.loss;
        peer->report.weight += peer->update.weight;
    }
    find_ready(layout, vector);
    if ((int)step + 1 == stages)
        vector->ready = vector->count;
    return SDR_OK;
}

void sdr_peer_gradient(struct sdr_node *node, const struct sdr_batch *batch, float *gradient,
                       struct sdr_work *work)
{
    struct sdr_peer *peer = sdr_peer_of(node);
    int stages = sdr_gradient_stages(&peer->space, &node->run->problem);
    peer->batch = batch;
    peer->gradient = gradient;
    *work = (struct sdr_work){.run = compute, .argument = node, .steps = (uint32_t)stages};
}

/* ---- steps ---- */
double sdr_peer_rate(const struct sdr_run *run, const struct sdr_peer *peer, uint64_t at)
{
    double rate;
    struct sdr_schedule_time when = {(double)peer->epoch, (double)at, run->pace.per_row,
                                     run->pace.length};
    run->use.schedule->factors(run->use.schedule_options, &when, 1, &rate);
    return rate * run->pace.rate;
}

void sdr_peer_step(struct sdr_node *node, const float *gradient)
{
    struct sdr_parameters *p = node->parameters;
    const struct sdr_peer *peer = sdr_peer_of(node);
    struct sdr_part part[SDR_BLOCKS_MOST];
    struct sdr_update update = {.sense = node->run->use.kind->sense, .version = p->version, .part = part};
    for (int b = 0; b < p->layout->blocks; b++) {
        const struct sdr_block *block = &p->layout->block[b];
        if (!block->fixed)
            part[update.parts++] = (struct sdr_part){.block = b,
                                                     .form = SDR_DENSE,
                                                     .count = block->rows * block->cols,
                                                     .value = gradient + peer->vector.first[b]};
    }
    sdr_parameters_apply(p, &update, sdr_peer_rate(node->run, peer, peer->at));
}

/* Replicas that are told their values have no penalties to pay: whoever tells them has. */
void sdr_peer_copy_weights(struct sdr_node *node, float *to)
{
    struct sdr_parameters *p = node->parameters;
    sdr_parameters_catch_up_all(p);
    sdr_peer_vector_copy(&sdr_peer_of(node)->vector, p->layout, p->value, to);
}

void sdr_peer_set_weights(struct sdr_node *node, const float *from)
{
    struct sdr_parameters *p = node->parameters;
    sdr_peer_vector_set(&sdr_peer_of(node)->vector, p->layout, from, p->value);
}

/* ---- updates, for the same bits with any number of peers ---- */
static enum sdr_status compute_update(void *argument, uint32_t step, const atomic_uint *stop)
{
    struct sdr_node *node = argument;
    struct sdr_peer *peer = sdr_peer_of(node);
    struct sdr_batch all;
    (void)step;
    /* Bits depend on when a penalty is charged: now, on what all parts of the batch read. */
    SDR_TRY(sdr_network_batch(node->run, peer->batch->number, -1, peer->exchange.row, &all));
    sdr_parameters_catch_up(node->parameters, &all, sdr_all(node->parameters->layout));
    struct sdr_view view = sdr_peer_view(node);
    uint32_t first = (uint32_t)((peer->batch->at - peer->at) / SDR_LEAF_ROWS);
    SDR_TRY(sdr_batch_gradient(&peer->space, &view, peer->batch, first, NULL, stop, &peer->update));
    peer->report.loss += peer->update.loss;
    peer->report.weight += peer->update.weight;
    return SDR_OK;
}

void sdr_peer_update(struct sdr_node *node, const struct sdr_batch *batch, struct sdr_work *work)
{
    sdr_peer_of(node)->batch = batch;
    *work = (struct sdr_work){.run = compute_update, .argument = node, .steps = 1};
}

enum sdr_status sdr_peer_pack(struct sdr_node *node, struct sdr_body **body)
{
    struct sdr_peer *peer = sdr_peer_of(node);
    const struct sdr_wire *wire = &node->run->network->wire;
    struct sdr_wire_facts facts = {.rows = peer->batch->count};
    struct sdr_span all = sdr_all(wire->layout);
    SDR_TRY(sdr_peer_body(node, sdr_wire_bound(wire, &peer->update, all, 0), body));
    enum sdr_status status = sdr_wire_write(wire, &peer->update, all, &facts, NULL,
                                            peer->update.version, &peer->exchange.writer, (*body)->data,
                                            &(*body)->bytes);
    if (status != SDR_OK)
        sdr_body_drop(*body);
    return status;
}

/* Parts in the order of the peers: leaves are summed in the order of their rows. */
enum sdr_status sdr_peer_step_updates(struct sdr_node *node, struct sdr_body *const *body)
{
    struct sdr_run *run = node->run;
    struct sdr_peer *peer = sdr_peer_of(node);
    const struct sdr_wire *wire = &run->network->wire;
    struct sdr_batch all;
    if (!peer->exchange.sum.layout)
        SDR_TRY(sdr_sum_create(&peer->exchange.sum, wire->layout));
    SDR_TRY(sdr_network_batch(run, peer->batch->number, -1, peer->exchange.row, &all));
    sdr_sum_begin(&peer->exchange.sum, run->use.kind->sense);
    for (int p = 0; p < peer->group.members; p++) {
        struct sdr_update update;
        struct sdr_wire_facts facts;
        uint32_t from, end;
        sdr_share_of(run->network, all.count, p, peer->group.members, &from, &end);
        if (!body[p])
            continue; /* it has no rows */
        SDR_TRY(sdr_wire_read(wire, body[p]->data, body[p]->bytes, end - from, sdr_all(wire->layout),
                              &peer->exchange.reader, &facts, &update));
        update.batch = all;
        update.batch.row += from;
        update.batch.count = end - from;
        SDR_TRY(sdr_sum_add(&peer->exchange.sum, &update, 1));
    }
    struct sdr_update sum = *sdr_sum_end(&peer->exchange.sum, true);
    sum.version = node->parameters->version;
    sum.batch.rows = all.rows;
    sdr_parameters_apply(node->parameters, &sum, sdr_peer_rate(run, peer, peer->at));
    return SDR_OK;
}
