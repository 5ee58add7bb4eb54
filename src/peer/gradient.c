/* Gradients and steps of peers: every replica takes the same steps, with dense gradients. */
#include "peer/peers.h"
#include "run/run.h"

#include <string.h>

uint64_t sdr_peer_values(const struct sdr_node *node)
{
    return node->parameters->layout->count;
}

const float *sdr_peer_weights(struct sdr_node *node)
{
    sdr_parameters_catch_up_all(node->parameters);
    return node->parameters->value;
}

static enum sdr_status compute(void *argument, uint32_t step, const atomic_uint *stop)
{
    struct sdr_node *node = argument;
    struct sdr_parameters *p = node->parameters;
    struct sdr_peer *peer = sdr_peer_of(node);
    const struct sdr_batch *batch = peer->batch;
    struct sdr_view view = {&node->run->problem, p->layout->block, sdr_peer_weights(node),
                            p->version};
    struct sdr_update update;
    (void)step;
    SDR_TRY(sdr_batch_gradient(&peer->space, &view, batch, 0, NULL, stop, &update));
    /* Marks of gradients count down from the top, so that they never equal those of updates. */
    peer->mark = peer->mark ? peer->mark - 1 : UINT32_MAX;
    struct sdr_expansion to = {.layout = p->layout,
                               .kernels = p->rule.kernels,
                               .center = p->rule.center,
                               .scratch = &p->scratch,
                               .mark = peer->mark,
                               .times = 1};
    memset(peer->gradient, 0, p->layout->count * sizeof *peer->gradient);
    sdr_update_expand(&to, &update, sdr_all(p->layout), peer->gradient);
    peer->report.loss += update.loss;
    peer->report.weight += update.weight;
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

/* The step size follows from the batch's position in the epoch, the same for all peers. */
static double rate_of(const struct sdr_run *run, const struct sdr_peer *peer)
{
    double rate;
    struct sdr_schedule_time when = {(double)peer->epoch, (double)peer->at, run->pace.per_row,
                                     run->pace.length};
    run->use.schedule->factors(run->use.schedule_options, &when, 1, &rate);
    return rate * run->pace.rate;
}

void sdr_peer_step(struct sdr_node *node, const float *gradient)
{
    struct sdr_parameters *p = node->parameters;
    struct sdr_part part[SDR_BLOCKS_MOST];
    struct sdr_update update;
    sdr_update_dense(p->layout, gradient, sdr_all(p->layout), part, &update);
    update.version = p->version;
    sdr_parameters_apply(p, &update, rate_of(node->run, sdr_peer_of(node)));
}
