/* Nodes that exchange messages: what they are made of, and its end. How they run: network_run.c. */
#include "server/network.h"
#include "base/fetch.h"
#include "base/memory.h"
#include "peer/peers.h"
#include "run/features.h"
#include "run/job.h"
#include "run/order.h"
#include "run/run.h"
#include "run/run_plugins.h"
#include "server/compute_times.h"
#include "server/membership.h"
#include "server/own_writes.h"
#include "server/placement.h"
#include "server/sampler.h"
#include "server/server.h"
#include "server/worker.h"
#include "train.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static enum sdr_status make_workspace(const struct sdr_run *run, bool worker,
                                      struct sdr_workspace *workspace)
{
    const struct sdr_network *net = run->network;
    /* A worker has a part of a joint batch, or a batch of one or several steps. */
    uint64_t count = run->layout.count, batch = net->policy.batch, local = net->policy.local;
    uint64_t leaves = net->policy.joint ? sdr_leaves((uint32_t)batch)
                                        : (batch + local - 1) / local * sdr_leaves((uint32_t)local);
    if (!worker || !net->policy.compact) {
        SDR_TRY(sdr_allocate(&workspace->w, count, sizeof *workspace->w, "a worker's view"));
        SDR_TRY(sdr_marks_create(&workspace->marks, run->problem.features));
    }
    SDR_TRY(sdr_allocate(&workspace->row, net->policy.batch, sizeof *workspace->row,
                         "rows of a batch"));
    if (worker) {
        SDR_TRY(sdr_gradient_space_create(&workspace->space, run->use.kind, &run->problem,
                                          &run->layout));
        SDR_TRY(sdr_allocate(&workspace->losses, leaves, sizeof *workspace->losses, "losses"));
    }
    if (!net->policy.steps)
        return SDR_OK;
    SDR_TRY(sdr_allocate(&workspace->part, (size_t)run->layout.blocks, sizeof *workspace->part,
                         "steps"));
    SDR_TRY(sdr_allocate(&workspace->packed, count, sizeof *workspace->packed, "steps"));
    SDR_TRY(sdr_allocate(&workspace->before, count, sizeof *workspace->before, "steps"));
    SDR_TRY(
        sdr_allocate(&workspace->own_row, net->policy.batch, sizeof *workspace->own_row, "steps"));
    return sdr_parameters_stepper(&workspace->stepper, &run->parameters, workspace->w);
}

static void free_workspace(struct sdr_workspace *workspace)
{
    if (workspace->stepper.layout)
        sdr_parameters_destroy(&workspace->stepper);
    sdr_gradient_space_free(&workspace->space);
    sdr_wire_writer_free(&workspace->writer);
    sdr_wire_reader_free(&workspace->reader);
    sdr_marks_free(&workspace->marks);
    sdr_subset_free(&workspace->subset);
    sdr_release(workspace->losses);
    sdr_release(workspace->part);
    sdr_release(workspace->packed);
    sdr_release(workspace->before);
    sdr_release(workspace->own_row);
    sdr_release(workspace->w);
    sdr_release(workspace->row);
}

/* Cuts the values into spans by how often rows touch them, as measured by the first process. If
   servers are in different processes, three quarters of the cost are size, so that no process
   holds more than 4/3 of its share. */
static enum sdr_status cut_values(struct sdr_run *run)
{
    struct sdr_network *net = run->network;
    size_t count = (size_t)net->servers;
    uint32_t *touched, looked_at;
    SDR_TRY(sdr_allocate(&net->span, count, sizeof *net->span, "servers"));
    if (run->process == 0) {
        SDR_TRY(sdr_features_touched(run, &touched, &looked_at));
        sdr_cut_spans(&run->layout, touched, looked_at, sdr_servers_apart(net) ? 0.75 : 0,
                      (uint32_t)count, net->span);
        sdr_release(touched);
    }
    SDR_TRY(sdr_share(run, net->span, count * sizeof *net->span));
    return sdr_spans_sound(&run->layout, net->span, (uint32_t)count)
               ? SDR_OK
               : sdr_fail(SDR_RUNTIME, "process 0 sent parts of the parameters that make no sense");
}

/* The parameters of a server in this process: the run's for the first one, an alias for others. */
static enum sdr_status give_parameters(struct sdr_run *run, struct sdr_server *server, bool first)
{
    struct sdr_network *net = run->network;
    bool apart = sdr_servers_apart(net);
    server->parameters = first ? &run->parameters : &server->alias;
    if (!first) {
        SDR_TRY(sdr_parameters_replicate(&server->alias, &run->parameters, false, false));
        if (apart && run->process > 0)
            SDR_TRY(sdr_allocate(&server->alias.published, run->layout.count, sizeof(float),
                                 "the model"));
    }
    if (apart) { /* the coordinator acts for all servers of its process */
        struct sdr_span *held =
            run->process == 0 ? &run->parameters.held : &server->parameters->held;
        held->first = first || run->process > 0 ? server->span.first : held->first;
        held->end = server->span.end;
    }
    return sdr_start_values(run, server->span);
}

static enum sdr_status refuse_wide_rows(const struct sdr_run *run)
{
    for (int b = 0; b < run->layout.blocks; b++)
        if (run->layout.block[b].cols > SDR_PIECE)
            return sdr_fail(SDR_USAGE,
                            "rows of %u parameters cannot be exchanged between servers in several "
                            "processes: leave --servers out",
                            run->layout.block[b].cols);
    return SDR_OK;
}

static enum sdr_status make_servers(struct sdr_run *run)
{
    struct sdr_network *net = run->network;
    bool apart = sdr_servers_apart(net), first = true;
    SDR_TRY(sdr_allocate(&net->server, (size_t)net->servers, sizeof *net->server, "servers"));
    SDR_TRY(cut_values(run));
    if (apart)
        SDR_TRY(refuse_wide_rows(run));
    for (int s = 0; s < net->servers; s++) {
        struct sdr_server *server = &net->server[s];
        server->span = net->span[s];
        if (!sdr_is_here(&net->node[s]))
            continue;
        SDR_TRY(give_parameters(run, server, first));
        first = false;
        if (net->policy.sparse || net->policy.steps || apart)
            SDR_TRY(make_workspace(run, false, &server->workspace));
        SDR_TRY(sdr_sum_create(&server->sum, &run->layout));
        SDR_TRY(sdr_members_start(&net->node[s], net->workers));
    }
    return SDR_OK;
}

/* Sending only the touched values pays if they are few. Threads share one copy of all values by
   reference, which costs a 32nd of picking a value; workers that start from one version share
   the copy. */
static bool picks_values(const struct sdr_run *run)
{
    const struct sdr_network *net = run->network;
    const struct sdr_rows *rows = &run->data->rows;
    double per_row = (double)run->data->nonzeros / (double)rows->count;
    double each = (double)net->policy.batch / (net->policy.joint ? net->workers : 1);
    double walked = per_row * each, values = (double)run->layout.count;
    bool few = walked < 2.0 * rows->features && values > 64; /* so few cost less than picking */
    bool alike = net->policy.quorum == (uint64_t)net->workers || net->policy.cancels;
    if (run->use.transport->by_reference)
        few = run->use.transport->simulated ? few && !alike
                                            : 32 * walked * (alike ? net->workers : 1) < values;
    return !rows->dense && run->use.kind->reads == SDR_READS_TOUCHED && few && !net->policy.keeps;
}

/* A view as long as the parameters is cheaper than renumbering the features of every batch, as
   long as it takes at most 4 MB. Workers in the process of the servers hold no more than these
   do. */
static bool compacts_views(const struct sdr_run *run)
{
    enum { VALUES_MOST = 1 << 20 };
    const struct sdr_network *net = run->network;
    return net->policy.sparse && !net->policy.steps && net->processes > 1 &&
           run->layout.count > VALUES_MOST && sdr_subset_suits(run->use.kind, &run->problem);
}

static void fetch_worker(const struct sdr_node *node)
{
    const struct sdr_network *net = node->run->network;
    sdr_fetch_to_write(node->task, sizeof *node->task);
    sdr_fetch_to_write(&net->lead.assignment[node->worker], sizeof *net->lead.assignment);
    sdr_fetch_to_write(&net->lead.ledger.sum[node->worker], sizeof *net->lead.ledger.sum);
}

static enum sdr_status make_nodes(struct sdr_run *run)
{
    struct sdr_network *net = run->network;
    SDR_TRY(sdr_allocate(&net->node, (size_t)net->nodes, sizeof *net->node, "nodes"));
    for (int i = 0; i < net->nodes; i++)
        net->node[i] = (struct sdr_node){.run = run,
                                         .id = i,
                                         .worker = i < net->servers ? -1 : i - net->servers,
                                         .workers = net->workers,
                                         .server = i < net->servers ? i : -1,
                                         .servers = net->servers,
                                         .options = run->use.strategy_options};
    return SDR_OK;
}

/* Allocates the state of servers and the tasks of workers. */
static enum sdr_status make_server_role(struct sdr_run *run)
{
    struct sdr_network *net = run->network;
    const struct sdr_server_ops *ops = run->use.strategy->server;
    net->fetch = fetch_worker;
    net->policy.cancels = ops->cancels && ops->cancels(run->use.strategy_options);
    net->policy.eager = ops->eager;
    net->policy.sparse = picks_values(run);
    net->policy.compact = compacts_views(run);
    SDR_TRY(make_servers(run));
    net->workspaces = run->use.transport->simulated ? 1 : net->workers;
    SDR_TRY(
        sdr_allocate(&net->workspace, (size_t)net->workspaces, sizeof *net->workspace, "workers"));
    for (int i = 0; i < net->workspaces; i++)
        if (net->workspaces == 1 || sdr_is_here(&net->node[net->servers + i]))
            SDR_TRY(make_workspace(run, true, &net->workspace[i]));
    SDR_TRY(sdr_allocate(&net->task, (size_t)net->workers, sizeof *net->task, "workers"));
    for (int i = net->servers; i < net->nodes; i++) {
        struct sdr_node *node = &net->node[i];
        if (!sdr_is_here(node))
            continue;
        node->task = &net->task[node->worker];
        SDR_TRY(sdr_allocate(&node->task->piece, 2 * (size_t)net->servers,
                             sizeof *node->task->piece, "workers"));
        node->task->result = node->task->piece + net->servers;
        if (run->use.codec && run->use.codec->lossy)
            SDR_TRY(sdr_allocate(&node->task->residual, run->layout.count, sizeof(float),
                                 "what a codec left out"));
        if (net->policy.steps)
            SDR_TRY(sdr_own_writes_create(node));
    }
    return SDR_OK;
}

/* Values that a row touches. */
static double row_values(const struct sdr_run *run)
{
    double values = 0, entries = run->data->rows.dense
                                     ? run->problem.features
                                     : (double)run->data->nonzeros / (double)run->data->rows.count;
    for (int b = 0; b < run->layout.blocks; b++) {
        const struct sdr_block *block = &run->layout.block[b];
        values += (block->per_feature ? entries : block->rows) * block->cols;
    }
    return values;
}

/* A batch is a share of every worker's shard: the rows of its steps between two exchanges. */
static void share_shards(struct sdr_run *run)
{
    struct sdr_policy *policy = &run->network->policy;
    uint64_t batch = run->pace.update_rows, workers = (uint64_t)run->workers,
             rows = run->set.train_rows.count;
    struct sdr_facts facts = {.rows = rows,
                              .shard = rows / workers,
                              .batch = batch,
                              .parameters = run->layout.count,
                              .row_values = row_values(run)};
    uint64_t steps = run->use.strategy->peer->local(run->use.strategy_options, &facts);
    uint64_t longest = ((rows + workers - 1) / workers + batch - 1) / batch;
    if (steps == UINT64_MAX)
        steps = longest;
    if (steps > UINT64_MAX / batch)
        steps = UINT64_MAX / batch;
    policy->joint = !run->use.strategy->peer->alone;
    policy->share = run->shared.plan.share = steps * batch;
    policy->batch = rows;
    policy->per_epoch = sdr_shard_shares_most(run);
}

enum sdr_status sdr_network_create(struct sdr_run *run, uint64_t quorum)
{
    const struct sdr_settings *s = &run->options.settings;
    struct sdr_network *net;
    SDR_TRY(sdr_allocate(&net, 1, sizeof *net, "nodes"));
    run->network = net;
    net->servers = run->use.strategy->peer ? 0 : (int)s->servers;
    net->workers = run->workers;
    net->processes = run->processes;
    net->dedicated = s->dedicated_servers && net->servers > 0 && run->processes > 1;
    net->nodes = net->servers + net->workers;
    net->policy.joint = run->use.strategy->joint;
    net->policy.part_unit = s->deterministic ? SDR_LEAF_ROWS : 1;
    net->policy.quorum = quorum;
    uint64_t local = sdr_local_steps(run);
    net->policy.steps = sdr_sends_steps(run);
    net->policy.keeps = sdr_keeps_values(run);
    net->lead.last = -1;
    net->lead.alive = run->workers;
    net->policy.local =
        (uint32_t)(s->batch < run->set.train_rows.count ? s->batch : run->set.train_rows.count);
    net->policy.batch = net->policy.joint ? run->pace.update_rows : net->policy.local * local;
    if (net->policy.batch > run->set.train_rows.count)
        net->policy.batch = run->set.train_rows.count;
    net->policy.per_epoch = (run->set.train_rows.count + net->policy.batch - 1) / net->policy.batch;
    if (!net->servers && run->use.strategy->peer->local)
        share_shards(run);
    net->policy.epochs = sdr_divisor(net->policy.per_epoch);
    net->single_threaded = run->use.transport->simulated;
    net->wire = (struct sdr_wire){
        .layout = &run->layout, .codec = run->use.codec, .codec_options = run->use.codec_options};
    SDR_TRY(sdr_allocate(&run->shared.node, 1, sizeof *run->shared.node,
                         "nodes")); /* saved in checkpoints */
    run->shared.nodes = 1;
    SDR_TRY(sdr_compute_times_parse(run));
    SDR_TRY(sdr_ledger_open(&net->lead.ledger, run->process == 0 ? s->run : NULL, net->workers));
    SDR_TRY(sdr_pool_create(net->single_threaded, &net->pool));
    SDR_TRY(sdr_sampler_create(run));
    SDR_TRY(make_nodes(run));
    SDR_TRY(sdr_channels_create(run));
    if (net->servers == 0 && run->process == 0) /* which tells the others */
        SDR_TRY(sdr_start_values(run, sdr_all(&run->layout)));
    SDR_TRY(net->servers ? make_server_role(run) : sdr_peers_create(run));
    SDR_TRY(run->use.transport->open(run, run->use.transport_options));
    return net->servers ? SDR_OK : sdr_peers_expose(run);
}

void sdr_network_destroy(struct sdr_run *run)
{
    struct sdr_network *net = run->network;
    if (!net)
        return;
    if (net->shared)
        run->use.transport->close(run);
    sdr_peers_destroy(run);
    for (int i = 0; i < net->nodes && net->node; i++) {
        struct sdr_task *task = net->node[i].task;
        if (!task)
            continue;
        if (task->piece)
            sdr_forget_task(&net->node[i]);
        for (int s = 0; s < net->servers && task->result; s++)
            sdr_body_drop(task->result[s]);
        sdr_own_writes_free(&net->node[i]);
        sdr_release(task->residual);
        sdr_release(task->piece);
    }
    for (int w = 0; net->lead.assignment && w < net->server[0].places; w++)
        sdr_body_drop(net->lead.assignment[w].sent);
    sdr_release(net->lead.assignment);
    for (int s = 0; s < net->servers && net->server; s++) {
        struct sdr_server *server = &net->server[s];
        sdr_body_drop(server->snapshot);
        for (int w = 0; w < server->places; w++)
            while (server->pending[w])
                sdr_release_pending(&server->pending[w]);
        while (server->backlog_at < server->backlogged)
            sdr_body_drop(server->backlog[server->backlog_at++].body);
        for (int i = 0; i < 4; i++)
            sdr_release(server->saved.array[i]);
        sdr_release(server->gone);
        sdr_saved_free(&server->saved);
        sdr_release(server->pending);
        sdr_release(server->backlog);
        sdr_release(server->row);
        sdr_release(server->dense);
        if (server->sum.layout)
            sdr_sum_free(&server->sum);
        free_workspace(&server->workspace);
        if (server->alias.layout)
            sdr_parameters_destroy(&server->alias);
    }
    for (int i = 0; i < net->workspaces && net->workspace; i++)
        free_workspace(&net->workspace[i]);
    for (uint64_t i = 0; i < net->sampler.slots && net->sampler.slot; i++)
        sdr_release(net->sampler.slot[i].order);
    if (net->sampler.slots)
        pthread_mutex_destroy(&net->sampler.lock);
    sdr_release(net->sampler.slot);
    sdr_release(net->sampler.grouped);
    sdr_release(net->server);
    sdr_release(net->span);
    sdr_release(net->workspace);
    sdr_release(net->task);
    sdr_release(net->times.slowness);
    sdr_ledger_free(&net->lead.ledger);
    sdr_delay_free(&net->times.compute);
    sdr_delay_free(&net->times.delay);
    sdr_batch_queue_free(&net->lead.queue);
    sdr_release(net->channel);
    sdr_slots_free(&net->slots);
    sdr_release(net->node);
    sdr_pool_destroy(net->pool);
    sdr_release(net);
    run->network = NULL;
}
