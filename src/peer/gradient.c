/* Gradients and steps of peers: every replica takes the same steps. A gradient is one vector, the
   last block first: networks finish their last layer first. */
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

uint64_t sdr_peer_block_end(const struct sdr_node *node, uint64_t at)
{
    const struct sdr_peer_vector *vector = &sdr_peer_of(node)->vector;
    int b = node->parameters->layout->blocks;
    /* they begin one behind the other, the last one first */
    while (b-- > 0 && vector->first[b] <= at)
        ;
    return b >= 0 ? vector->first[b] : vector->count;
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

/* ---- leaves by stages ---- */
static enum sdr_status begin_leaf(struct sdr_node *node, const struct sdr_view *view,
                                  uint32_t number, struct sdr_peer_leaf *leaf)
{
    struct sdr_batch rows = sdr_leaf(sdr_peer_of(node)->batch, number);
    if (!leaf->created)
        SDR_TRY(sdr_gradient_space_create(&leaf->space, node->run->use.kind, &node->run->problem,
                                          &node->run->layout));
    leaf->created = true;
    sdr_leaf_begin(&leaf->space, view, &rows, &leaf->update);
    return SDR_OK;
}

/* Computes a stage of a leaf and adds its parts to the gradient. */
static enum sdr_status add_stage(struct sdr_node *node, const struct sdr_view *view, int stage,
                                 struct sdr_peer_leaf *leaf)
{
    struct sdr_peer *peer = sdr_peer_of(node);
    int before = leaf->update.parts;
    SDR_TRY(sdr_leaf_stage(&leaf->space, view, stage, &leaf->update));
    peer->mark = peer->mark > 1 ? peer->mark - 1 : UINT32_MAX;
    for (int p = before; p < leaf->update.parts; p++) {
        add_part(node, &leaf->update.part[p], &leaf->update.batch);
        peer->vector.final[leaf->update.part[p].block] = true;
    }
    if (stage == 0) {
        peer->report.loss += leaf->update.loss;
        peer->report.weight += leaf->update.weight;
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

/* All leaves but the last ones, completely; then these begin. */
static enum sdr_status begin(struct sdr_node *node, const struct sdr_view *view, uint32_t leaves,
                             uint32_t staged, int stages, const atomic_uint *stop)
{
    struct sdr_peer *peer = sdr_peer_of(node);
    for (uint32_t l = 0; l + staged < leaves && !atomic_load(stop); l++) {
        SDR_TRY(begin_leaf(node, view, l, &peer->leaf[0]));
        for (int stage = 0; stage < stages; stage++)
            SDR_TRY(add_stage(node, view, stage, &peer->leaf[0]));
    }
    for (uint32_t l = 0; l < staged; l++)
        SDR_TRY(begin_leaf(node, view, leaves - staged + l, &peer->leaf[l]));
    memset(peer->vector.final, 0, sizeof peer->vector.final);
    return SDR_OK;
}

/* A step per stage: of all leaves, or of the last eight, which bounds memory. Leaves are added in
   their order in any case. In virtual time, where stages take the time that is drawn for them, of
   the last leaf alone. */
static enum sdr_status compute(void *argument, uint32_t step, const atomic_uint *stop)
{
    struct sdr_node *node = argument;
    struct sdr_peer *peer = sdr_peer_of(node);
    struct sdr_peer_vector *vector = &peer->vector;
    uint32_t leaves = sdr_leaves(peer->batch->count);
    int stages = sdr_gradient_stages(&peer->leaf[0].space, &node->run->problem);
    uint32_t most = node->run->use.transport->simulated || stages == 1 ? 1 : SDR_PEER_LEAVES;
    uint32_t staged = leaves < most ? leaves : most;
    if (step == 0) {
        sdr_parameters_catch_up_all(node->parameters);
        memset(peer->gradient, 0, vector->count * sizeof *peer->gradient);
    }
    struct sdr_view view = sdr_peer_view(node);
    if (step == 0)
        SDR_TRY(begin(node, &view, leaves, staged, stages, stop));
    for (uint32_t l = 0; l < staged && !atomic_load(stop); l++)
        SDR_TRY(add_stage(node, &view, (int)step, &peer->leaf[l]));
    find_ready(node->parameters->layout, vector);
    if ((int)step + 1 == stages)
        vector->ready = vector->count;
    return SDR_OK;
}

void sdr_peer_gradient(struct sdr_node *node, const struct sdr_batch *batch, float *gradient,
                       struct sdr_work *work)
{
    struct sdr_peer *peer = sdr_peer_of(node);
    int stages = sdr_gradient_stages(&peer->leaf[0].space, &node->run->problem);
    peer->batch = batch;
    peer->gradient = gradient;
    peer->vector.ready = 0;
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
    struct sdr_update update = {
        .sense = node->run->use.kind->sense, .version = p->version, .part = part};
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
    SDR_TRY(sdr_batch_gradient(&peer->leaf[0].space, &view, peer->batch, first, NULL, stop,
                               &peer->leaf[0].update));
    peer->report.loss += peer->leaf[0].update.loss;
    peer->report.weight += peer->leaf[0].update.weight;
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
    SDR_TRY(sdr_peer_body(node, sdr_wire_bound(wire, &peer->leaf[0].update, all, 0), body));
    enum sdr_status status =
        sdr_wire_write(wire, &peer->leaf[0].update, all, &facts, NULL, peer->leaf[0].update.version,
                       &peer->exchange.writer, (*body)->data, &(*body)->bytes);
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
        SDR_TRY(sdr_wire_read(wire, body[p]->data, body[p]->bytes, end - from,
                              sdr_all(wire->layout), &peer->exchange.reader, &facts, &update));
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
