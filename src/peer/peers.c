/* The peers of a run: their replicas, start and end. */
#include "peer/peers.h"
#include "base/memory.h"
#include "run/job.h"
#include "run/run.h"
#include "server/network.h"
#include "server/placement.h"

#include <string.h>

enum sdr_status sdr_peers_create(struct sdr_run *run)
{
    struct sdr_network *net = run->network;
    struct sdr_peers *peers;
    SDR_TRY(sdr_allocate(&peers, 1, sizeof *peers, "workers"));
    net->peers = peers;
    SDR_TRY(sdr_allocate(&peers->peer, (size_t)net->workers, sizeof *peers->peer, "workers"));
    if (run->process > 0)
        return SDR_OK;
    struct sdr_peer_books *books = &peers->books;
    size_t count = (size_t)net->workers;
    SDR_TRY(sdr_peer_states_create(run));
    SDR_TRY(sdr_allocate(&books->done, count, sizeof *books->done, "workers"));
    SDR_TRY(sdr_allocate(&books->report, count, sizeof *books->report, "workers"));
    return sdr_allocate(&books->told, count, sizeof *books->told, "workers");
}

static void free_peer(struct sdr_peer *peer)
{
    sdr_helper_destroy(peer->helper);
    for (; peer->count; peer->count--, peer->from = (peer->from + 1) % peer->room)
        sdr_body_drop(peer->pending[peer->from].body);
    if (peer->replicated)
        sdr_parameters_destroy(&peer->replica);
    sdr_release(peer->pending);
    sdr_release(peer->group.lost);
    sdr_release(peer->group.member);
    sdr_release(peer->row);
    sdr_release(peer->all_pieces);
    sdr_release(peer->packed);
    sdr_release(peer->exchange.row);
    sdr_wire_writer_free(&peer->exchange.writer);
    sdr_wire_reader_free(&peer->exchange.reader);
    if (peer->exchange.sum.layout)
        sdr_sum_free(&peer->exchange.sum);
    for (int l = 0; l < SDR_PEER_LEAVES; l++)
        sdr_gradient_space_free(&peer->leaf[l].space);
    sdr_release(peer);
}

void sdr_peers_destroy(struct sdr_run *run)
{
    struct sdr_peers *peers = run->network->peers;
    if (!peers)
        return;
    for (int p = 0; p < run->network->workers && peers->peer; p++)
        if (peers->peer[p])
            free_peer(peers->peer[p]);
    sdr_release(peers->peer);
    sdr_release(peers->books.report);
    sdr_release(peers->books.told);
    sdr_release(peers->books.done);
    sdr_release(peers);
    run->network->peers = NULL;
}

/* ---- start ---- */
/* All processes start as process 0 does, from initial values or a checkpoint. */
struct beginning {
    uint64_t number;
    double rate; /* --lr, or what restarts have made of it */
    bool over, resumed, saves;
    /* Of the parameters: what penalties are charged by. */
    uint64_t version, begun;
    double step, penalty_due;
    float constant[2][SDR_CONSTANTS];
};

static enum sdr_status begin_alike(struct sdr_run *run, struct beginning *beginning)
{
    struct sdr_parameters *p = &run->parameters;
    *beginning = (struct beginning){.number = run->network->lead.queue.next,
                                    .version = p->version,
                                    .rate = run->pace.rate,
                                    .over = run->end.over,
                                    .resumed = run->end.resumed,
                                    .saves = run->shared.replicas > 0,
                                    .begun = p->begun,
                                    .step = p->rate,
                                    .penalty_due = p->penalty_due};
    memcpy(beginning->constant[0], p->constant, sizeof p->constant);
    memcpy(beginning->constant[1], p->unpenalised, sizeof p->unpenalised);
    SDR_TRY(sdr_share(run, beginning, sizeof *beginning));
    SDR_TRY(sdr_share(run, p->value, p->layout->count * sizeof *p->value));
    for (int s = 0; s < p->rule.optimizer->slots; s++)
        SDR_TRY(sdr_share(run, p->slot[s], p->layout->count * sizeof *p->slot[s]));
    if (p->penalty_paid)
        SDR_TRY(sdr_share(run, p->penalty_paid, p->layout->count * sizeof *p->penalty_paid));
    memcpy(p->constant, beginning->constant[0], sizeof p->constant);
    memcpy(p->unpenalised, beginning->constant[1], sizeof p->unpenalised);
    p->begun = beginning->begun;
    p->rate = beginning->step;
    p->penalty_due = beginning->penalty_due;
    p->version = beginning->version;
    run->pace.rate = beginning->rate;
    return SDR_OK;
}

/* Rows of a peer's part of a joint batch, or of its batch. Parts grow if the loop goes on without a
   lost peer. */
static uint64_t rows_most(const struct sdr_run *run)
{
    const struct sdr_policy *policy = &run->network->policy;
    uint64_t workers = (uint64_t)run->workers, unit = policy->part_unit;
    if (policy->share)
        return policy->share < policy->batch / workers + 1 ? policy->share
                                                           : policy->batch / workers + 1;
    if (!policy->joint || run->use.strategy->peer->lost)
        return policy->batch;
    return (policy->batch / unit / workers + 1) * unit;
}

/* The first peer of a process steps on the run's parameters, unless replicas differ; others have
   replicas. */
static enum sdr_status make_peer(struct sdr_node *node, bool first, uint64_t number)
{
    struct sdr_run *run = node->run;
    struct sdr_network *net = run->network;
    struct sdr_peer *peer;
    SDR_TRY(sdr_allocate(&peer, 1, sizeof *peer, "workers"));
    net->peers->peer[node->id] = peer;
    bool differ = run->use.strategy->peer->local, replicated = !first || differ;
    node->parameters = replicated ? &peer->replica : &run->parameters;
    if (replicated) {
        peer->replicated = true;
        SDR_TRY(sdr_parameters_replicate(&peer->replica, &run->parameters, true, false));
        if (peer->replica.penalty_paid)
            memcpy(peer->replica.penalty_paid, run->parameters.penalty_paid,
                   run->layout.count * sizeof *peer->replica.penalty_paid);
    }
    peer->number = number + (sdr_peers_number_alike(&net->policy) ? 0 : (uint64_t)node->id);
    peer->random = sdr_stream_open(run->options.settings.seed, SDR_FOR_STATES, (uint64_t)node->id);
    SDR_TRY(sdr_allocate(&peer->group.member, (size_t)net->workers, sizeof *peer->group.member,
                         "workers"));
    for (int p = 0; p < net->workers; p++)
        peer->group.member[peer->group.members++] = p;
    peer->group.rank = node->id;
    SDR_TRY(sdr_allocate(&peer->row, rows_most(run), sizeof *peer->row, "rows of a batch"));
    if (run->options.settings.deterministic)
        SDR_TRY(sdr_allocate(&peer->exchange.row, net->policy.batch, sizeof *peer->exchange.row,
                             "rows of a batch"));
    sdr_peer_vector_make(&run->layout, &peer->vector);
    SDR_TRY(sdr_peer_states_begin(node));
    peer->leaf[0].created = true;
    return sdr_gradient_space_create(&peer->leaf[0].space, run->use.kind, &run->problem,
                                     &run->layout);
}

static enum sdr_status loop(struct sdr_node *node)
{
    enum sdr_status status = node->run->use.strategy->peer->peer(node);
    return status == SDR_PEER_OVER ? SDR_OK : status;
}

enum sdr_status sdr_peers_work(struct sdr_run *run)
{
    struct sdr_network *net = run->network;
    struct beginning beginning;
    bool first = true;
    SDR_TRY(begin_alike(run, &beginning));
    if (beginning.over)
        return SDR_OK;
    for (int i = 0; i < net->nodes; i++)
        if (sdr_is_here(&net->node[i])) {
            SDR_TRY(make_peer(&net->node[i], first, beginning.number));
            first = false;
        }
    net->peers->books.missing = net->workers;
    net->peers->books.version = run->parameters.version;
    net->peers->saves = beginning.saves;
    if (beginning.resumed && beginning.saves)
        SDR_TRY(sdr_peer_states_resume(run));
    SDR_TRY(run->use.transport->launch(run, loop));
    for (int p = 0; p < net->workers; p++)
        if (net->peers->peer[p]) {
            net->traffic.waited += net->peers->peer[p]->waited;
            net->traffic.present++;
        }
    return SDR_OK;
}
