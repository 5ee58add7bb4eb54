/* Gradients and steps of peers: every replica takes the same steps, with gradients of all values. */
#include "peer/peers.h"
#include "run/run.h"

#include <string.h>

uint64_t sdr_peer_values(const struct sdr_node *node)
{
    return node->parameters->count;
}

const float *sdr_peer_weights(struct sdr_node *node)
{
    sdr_parameters_catch_up_all(node->parameters);
    return node->parameters->value;
}

/* out += Σ u_i·x_iᵀ, in the order of the rows; the intercept's part is Σ u_i. */
static void expand(const struct sdr_parameters *p, const struct sdr_update *update, float *out)
{
    const struct sdr_batch *batch = &update->examples;
    const struct sdr_rows *rows = batch->rows;
    uint32_t outputs = update->outputs;
    float *intercept = p->blocks > 1 ? out + p->block[1].offset : NULL;
    for (uint32_t i = 0; i < batch->count; i++) {
        const float *u = update->u + (size_t)i * update->stride;
        for (uint32_t k = 0; k < outputs && intercept; k++)
            intercept[k] += u[k];
        if (rows->dense) {
            const float *x = sdr_dense_row(rows, batch->row[i]);
            for (uint32_t j = 0; j < rows->features; j++)
                for (uint32_t k = 0; k < outputs; k++)
                    out[(size_t)j * outputs + k] += u[k] * (p->center ? x[j] - p->center[j] : x[j]);
            continue;
        }
        struct sdr_sparse_row r = sdr_sparse_row(rows, batch->row[i]);
        for (uint32_t n = 0; n < r.n; n++)
            for (uint32_t k = 0; k < outputs; k++)
                out[(size_t)sdr_row_index(&r, n) * outputs + k] += u[k] * r.x[n];
    }
}

static enum sdr_status compute(void *argument, uint32_t step, const atomic_uint *stop)
{
    struct sdr_node *node = argument;
    struct sdr_run *run = node->run;
    struct sdr_peer *peer = sdr_peer_of(node);
    const struct sdr_batch *batch = peer->batch;
    const float *w = sdr_peer_weights(node);
    (void)step;
    memset(peer->gradient, 0, node->parameters->count * sizeof *peer->gradient);
    for (uint32_t from = 0; from < batch->count && !atomic_load(stop); from += SDR_LEAF_ROWS) {
        struct sdr_batch leaf = *batch;
        struct sdr_update update;
        leaf.row += from;
        leaf.at += from;
        leaf.count = batch->count - from < SDR_LEAF_ROWS ? batch->count - from : SDR_LEAF_ROWS;
        for (uint32_t i = 0; i < leaf.count; i++) /* shuffled rows lie anywhere */
            sdr_fetch_row(&run->problem, leaf.row[i]);
        run->kind->gradient(run->kind, &run->problem, node->parameters->block, w, &leaf, peer->u,
                            &update);
        expand(node->parameters, &update, peer->gradient);
        peer->report.loss += update.loss;
        peer->report.weight += update.weight;
    }
    return SDR_OK;
}

void sdr_peer_gradient(struct sdr_node *node, const struct sdr_batch *batch, float *gradient,
                       struct sdr_work *work)
{
    struct sdr_peer *peer = sdr_peer_of(node);
    peer->batch = batch;
    peer->gradient = gradient;
    *work = (struct sdr_work){.run = compute, .argument = node, .steps = 1};
}

/* The size of a step is that of its batch's place in the epoch, the same for all. */
static double rate_of(const struct sdr_run *run, const struct sdr_peer *peer)
{
    double rate;
    struct sdr_schedule_time when = {(double)peer->epoch, (double)peer->at, run->per_row,
                                     run->length};
    run->schedule->factors(run->schedule_options, &when, 1, &rate);
    return rate * run->rate;
}

void sdr_peer_step(struct sdr_node *node, const float *gradient)
{
    struct sdr_parameters *p = node->parameters;
    struct sdr_update update = {
        .form = SDR_DENSE, .outputs = p->block[0].cols, .value = gradient, .version = p->version};
    sdr_parameters_apply(p, &update, rate_of(node->run, sdr_peer_of(node)));
}
