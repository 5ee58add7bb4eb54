/* How nodes that exchange messages run: the queue of batches, the loops of the strategy, the end.
   The functions that loops call are in worker.c and coordinator.c. */
#include "peer/peers.h"
#include "run/checkpoint.h"
#include "run/run.h"
#include "server/network.h"
#include "server/placement.h"
#include "server/server.h"
#include "server/worker.h"
#include "train.h"

#include <stdio.h>
#include <string.h>

/* The coordinator. If other servers live in other processes, everything that needs all values is
   done while they still answer. */
static enum sdr_status lead(struct sdr_node *node)
{
    struct sdr_run *run = node->run;
    bool apart = sdr_servers_apart(run->network);
    if (apart) {
        SDR_TRY(sdr_checkpoint_hand_out(run));
        SDR_TRY(sdr_shards_order(run, SDR_ORDER_BEGIN, NULL));
        SDR_TRY(sdr_run_begin(run));
    }
    SDR_TRY(run->end.over ? sdr_dismiss(node) : run->use.strategy->server->server(node));
    if (!apart)
        return SDR_OK;
    SDR_TRY(sdr_run_conclude(run));
    return sdr_shards_stop(run);
}

static enum sdr_status loop(struct sdr_node *node)
{
    if (node->server == 0)
        return lead(node);
    return node->server > 0 ? sdr_follow_coordinator(node)
                            : node->run->use.strategy->server->worker(node);
}

void sdr_network_keep(struct sdr_run *run)
{
    struct sdr_network *net = run->network;
    enum sdr_status status =
        sdr_ledger_flush(&net->lead.ledger, run->end.resumed ? run->parameters.version : 0);
    if (status != SDR_OK)
        sdr_network_lose(run);
}

void sdr_network_lose(struct sdr_run *run)
{
    struct sdr_network *net = run->network;
    if (net->lead.ledger_lost[0])
        return;
    snprintf(net->lead.ledger_lost, sizeof net->lead.ledger_lost, "%s", sdr_error());
    sdr_note(&run->options, "%s; training goes on", sdr_error());
}

enum sdr_status sdr_network_save(struct sdr_run *run)
{
    const struct sdr_batch_queue *queue = &run->network->lead.queue;
    double *saved;
    if (run->process > 0)
        return SDR_OK;
    SDR_TRY(sdr_node_array_renew(&run->shared.node[0], "batches",
                                 sdr_batch_queue_saved_count(queue), &saved));
    sdr_batch_queue_save(queue, saved);
    return sdr_peer_states_save(run);
}

/* From the start, or from a checkpoint. */
static enum sdr_status fill_queue(struct sdr_run *run)
{
    struct sdr_network *net = run->network;
    const struct sdr_node *kept = &run->shared.node[0];
    uint64_t most = UINT64_C(1) << 52, end = most; /* numbers are saved as doubles */
    if (run->pace.epochs < most / net->policy.per_epoch)
        end = run->pace.epochs * net->policy.per_epoch;
    for (int i = 0; i < kept->arrays; i++)
        if (strcmp(kept->array[i].name, "batches") == 0)
            return sdr_batch_queue_resume(&net->lead.queue, kept->array[i].value,
                                          kept->array[i].count, end);
    sdr_batch_queue_start(
        &net->lead.queue,
        run->progress.epoch * net->policy.per_epoch + run->progress.at / net->policy.batch, end);
    return SDR_OK;
}

static void tell_refused(const struct sdr_run *run)
{
    unsigned long long refused = atomic_load(&run->network->traffic.refused);
    if (refused)
        sdr_note(&run->options, "%llu messages made no sense here and were dropped", refused);
}

enum sdr_status sdr_network_work(struct sdr_run *run)
{
    struct sdr_network *net = run->network;
    SDR_TRY(fill_queue(run));
    for (int s = 1; s < net->servers; s++)
        if (net->server[s].alias.layout)
            sdr_parameters_follow(&net->server[s].alias, &run->parameters);
    sdr_network_keep(run);
    net->admits = !run->use.transport->simulated; /* there, all nodes are this thread */
    if (net->peers) {
        SDR_TRY(sdr_peers_work(run));
        sdr_network_keep(run);
        tell_refused(run);
        return SDR_OK;
    }
    if (run->end.resumed && net->policy.steps && run->use.optimizer->slots)
        sdr_note(&run->options,
                 "what workers knew of --optimizer %s is not in the checkpoint: steps are larger "
                 "at first",
                 run->use.optimizer->name);
    SDR_TRY(run->use.transport->launch(run, loop));
    sdr_network_keep(run);
    for (int i = net->servers; i < net->nodes; i++) {
        if (!net->node[i].task)
            continue;
        net->traffic.waited += net->node[i].task->waited;
        net->traffic.present += net->node[i].task->number > 0;
    }
    tell_refused(run);
    return SDR_OK;
}
