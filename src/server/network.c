/* Nodes that exchange messages: batches by number, values that travel, and how a run of them goes. See network.h;
   what loops are made of is in worker.c and leader.c. */
#include "server/network.h"
#include "base/memory.h"
#include "peer/peers.h"
#include "run/run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- batches by number ---- */
/* Its epoch, and the place of its first row there. */
static uint64_t epoch_of(const struct sdr_network *net, uint64_t number, uint64_t *place)
{
    uint64_t epoch = sdr_divide(&net->epochs, number, place);
    *place *= net->batch;
    return epoch;
}

static uint32_t rows_from(const struct sdr_run *run, uint64_t place)
{
    uint64_t left = run->train_rows.count - place;
    return (uint32_t)(left < run->network->batch ? left : run->network->batch);
}

uint32_t sdr_network_rows(const struct sdr_run *run, uint64_t number)
{
    uint64_t place;
    epoch_of(run->network, number, &place);
    return rows_from(run, place);
}

void sdr_part_of(const struct sdr_network *net, uint32_t rows, int worker, uint32_t *from,
                 uint32_t *end)
{
    *from = 0;
    *end = rows;
    if (!net->joint)
        return;
    uint64_t unit = net->part_unit, units = (rows + unit - 1) / unit;
    uint64_t workers = (uint64_t)net->workers;
    uint64_t first = units * (uint64_t)worker / workers * unit;
    uint64_t last = units * (uint64_t)(worker + 1) / workers * unit;
    *from = (uint32_t)(first < rows ? first : rows);
    *end = (uint32_t)(last < rows ? last : rows);
}

static enum sdr_status copy_rows(struct sdr_run *run, uint64_t epoch, uint64_t place,
                                 uint32_t count, uint32_t *row)
{
    struct sdr_network *net = run->network;
    struct sdr_sampler *sampler = &net->sampler;
    uint64_t at = epoch & (sampler->slots - 1);
    enum sdr_status status = SDR_OK;
    if (!net->single_threaded)
        pthread_mutex_lock(&sampler->lock);
    if (!sampler->slot[at].order)
        status =
            sdr_allocate(&sampler->slot[at].order, run->train_rows.count, sizeof *row, "row order");
    if (status == SDR_OK && sampler->slot[at].epoch != epoch) {
        sdr_epoch_order(run, epoch, sampler->slot[at].order);
        sampler->slot[at].epoch = epoch;
    }
    if (status == SDR_OK)
        memcpy(row, sampler->slot[at].order + place, count * sizeof *row);
    if (!net->single_threaded)
        pthread_mutex_unlock(&sampler->lock);
    return status;
}

enum sdr_status sdr_network_batch(struct sdr_run *run, uint64_t number, int worker, uint32_t *row,
                                  struct sdr_batch *batch)
{
    struct sdr_network *net = run->network;
    uint64_t place, epoch = epoch_of(net, number, &place);
    uint32_t rows = rows_from(run, place), from = 0, end = rows;
    if (worker >= 0)
        sdr_part_of(net, rows, worker, &from, &end);
    SDR_TRY(copy_rows(run, epoch, place + from, end - from, row));
    if (run->data->checked)
        SDR_TRY(sdr_data_demand(run->data, row, end - from));
    /* Gradients are of mean losses: over the batch and, since their mean is taken, over the quorum. */
    uint64_t of = net->joint ? rows : rows * net->quorum;
    *batch = (struct sdr_batch){.rows = &run->data->rows,
                                .row = row,
                                .count = end - from,
                                .number = number,
                                .at = place + from,
                                .of = (uint32_t)of};
    return SDR_OK;
}

/* ---- values that a batch touches ---- */
/* Calls for memory are many and small where rows are sparse: both ends walk over the batch in the same order,
   so that values travel without saying whose they are. */
static inline void pass_one(float *value, float *place, uint32_t cols, enum sdr_pass how)
{
    for (uint32_t k = 0; k < cols; k++)
        if (how == SDR_PACK)
            place[k] = value[k];
        else
            value[k] = how == SDR_ADD ? value[k] + place[k] : place[k];
}

/* With the columns and the direction known the loop over entries has few branches. */
static inline __attribute__((always_inline)) uint64_t pass_rows(
    const struct sdr_workspace *workspace, const struct sdr_batch *batch, uint32_t first,
    uint32_t end, uint32_t cols, float *w, float *packed, enum sdr_pass how)
{
    uint64_t count = 0;
    uint32_t stamp = workspace->stamp, *mark = workspace->mark;
    for (uint32_t i = 0; i < batch->count; i++) {
        struct sdr_sparse_row r = sdr_sparse_row(batch->rows, batch->row[i]);
        for (uint32_t n = 0; n < r.n; n++) {
            uint32_t j = sdr_row_index(&r, n);
            if (mark[j] == stamp || j < first || j >= end)
                continue;
            mark[j] = stamp;
            pass_one(w + (size_t)j * cols, packed + count, cols, how);
            count += cols;
        }
    }
    return count;
}

uint64_t sdr_pass_values(struct sdr_workspace *workspace, const struct sdr_batch *batch,
                         uint32_t first, uint32_t end, uint32_t cols, float *w, float *packed,
                         enum sdr_pass how)
{
    uint64_t count;
    workspace->stamp++;
    if (cols == 1 && how == SDR_PACK)
        count = pass_rows(workspace, batch, first, end, 1, w, packed, SDR_PACK);
    else if (cols == 1 && how == SDR_UNPACK)
        count = pass_rows(workspace, batch, first, end, 1, w, packed, SDR_UNPACK);
    else
        count = pass_rows(workspace, batch, first, end, cols, w, packed, how);
    if (workspace->stamp == UINT32_MAX) {
        memset(workspace->mark, 0, batch->rows->features * sizeof *workspace->mark);
        workspace->stamp = 0;
    }
    return count;
}

/* Blocks behind the first are the first server's. */
uint64_t sdr_values_behind(const struct sdr_parameters *p)
{
    return p->count - (p->blocks > 1 ? p->block[1].offset : p->count);
}

/* ---- messages ---- */
static void add(const struct sdr_network *net, atomic_uint_fast64_t *sum, uint64_t count)
{
    if (net->single_threaded)
        atomic_store_explicit(sum, atomic_load_explicit(sum, memory_order_relaxed) + count,
                              memory_order_relaxed);
    else
        atomic_fetch_add_explicit(sum, count, memory_order_relaxed);
}

enum sdr_status sdr_send(struct sdr_node *node, struct sdr_message *message)
{
    struct sdr_network *net = node->run->network;
    message->from = node->id;
    add(net, &net->bytes, sdr_message_bytes(message));
    add(net, &net->messages, 1);
    return node->run->transport->send(node, message);
}

/* ---- what holds workers up ---- */
static double slowness(const struct sdr_node *node)
{
    const float *of = node->run->network->slowness;
    return of ? of[node->worker] : 1;
}

static int64_t delay(const struct sdr_node *node, const struct sdr_work *work)
{
    const struct sdr_network *net = node->run->network;
    if (!net->delay.terms)
        return 0;
    return sdr_delay_draw(&net->delay, ~node->run->options.settings.seed, (uint32_t)node->worker,
                          work->number);
}

/* The next step's share of a time; the shares of all steps add up to it. */
static int64_t step_share(const struct sdr_work *work, int64_t time)
{
    double before = 0, after = 0, sum = 0;
    if (work->steps == 1)
        return time;
    for (uint32_t i = 0; i < work->steps; i++) {
        sum += work->cost ? work->cost[i] : 1;
        before = i + 1 == work->next ? sum : before;
        after = i == work->next ? sum : after;
    }
    if (!(sum > 0))
        return work->next == 0 ? time : 0;
    int64_t end = after == sum ? time : (int64_t)((double)time * (after / sum));
    return end - (before == sum ? time : (int64_t)((double)time * (before / sum)));
}

int64_t sdr_compute_time(const struct sdr_node *node, struct sdr_work *work)
{
    const struct sdr_network *net = node->run->network;
    if (work->next > 0)
        return step_share(work, work->time);
    int64_t time = 0;
    for (uint32_t i = 0; i < work->draws && time < INT64_C(1) << 60; i++)
        time += sdr_delay_draw(&net->compute, node->run->options.settings.seed,
                               (uint32_t)node->worker, work->number * work->draws + i);
    work->time = (int64_t)fmin((double)time * slowness(node), 1e18) + delay(node, work);
    return step_share(work, work->time);
}

int64_t sdr_compute_delay(const struct sdr_node *node, const struct sdr_work *work, int64_t took)
{
    return (int64_t)fmin((double)took * (slowness(node) - 1), 1e18) +
           step_share(work, delay(node, work));
}

enum sdr_status sdr_parse_factors(const char *text, char between, const char *owner, int workers,
                                  float **factors)
{
    const char ends[] = {between, 0};
    if (!*factors)
        SDR_TRY(sdr_allocate(factors, (size_t)workers, sizeof(float), owner));
    for (int w = 0; w < workers; w++)
        (*factors)[w] = 1;
    for (const char *at = text; *at;) {
        char item[64];
        size_t length = strcspn(at, ends);
        snprintf(item, sizeof item, "%.*s", (int)(length < 63 ? length : 63), at);
        char *colon = strchr(item, ':'), *end = colon ? item + strlen(item) - 1 : item;
        uint64_t worker;
        double factor;
        if (!colon || end <= colon || *end != 'x')
            return sdr_fail(SDR_USAGE, "%s takes WORKER:FACTORx, such as 2:3x, not '%s'", owner,
                            item);
        *colon = *end = 0;
        if (!sdr_parse_u64(item, &worker) || !sdr_parse_double(colon + 1, &factor) ||
            !(factor >= 1 && factor <= 1e6))
            return sdr_fail(SDR_USAGE,
                            "%s takes WORKER:FACTORx with a factor of 1 or more, not '%.*s'", owner,
                            (int)length, at);
        if (worker >= (uint64_t)workers)
            return sdr_fail(SDR_USAGE, "%s %s: workers are 0 … %d", owner, text, workers - 1);
        (*factors)[worker] = (float)factor;
        at += length + (at[length] == between);
    }
    return SDR_OK;
}

static enum sdr_status parse_delays(struct sdr_run *run)
{
    const struct sdr_settings *s = &run->options.settings;
    struct sdr_network *net = run->network;
    SDR_TRY(sdr_delay_parse(s->compute ? s->compute : "const:1", "--compute", &net->compute));
    if (s->delay)
        SDR_TRY(sdr_delay_parse(s->delay, "--delay", &net->delay));
    return s->slow ? sdr_parse_factors(s->slow, ',', "--slow", net->workers, &net->slowness)
                   : SDR_OK;
}

/* ---- a run ---- */
static enum sdr_status make_workspace(const struct sdr_run *run, struct sdr_workspace *workspace)
{
    SDR_TRY(sdr_allocate(&workspace->w, run->parameters.count, sizeof *workspace->w,
                         "a worker's view"));
    SDR_TRY(sdr_allocate(&workspace->mark, run->problem.features, sizeof *workspace->mark,
                         "a worker's view"));
    SDR_TRY(sdr_allocate(&workspace->row, run->network->batch, sizeof *workspace->row,
                         "rows of a batch"));
    if (!run->network->steps)
        return SDR_OK;
    SDR_TRY(sdr_allocate(&workspace->packed, run->parameters.count, sizeof *workspace->packed,
                         "steps"));
    SDR_TRY(sdr_allocate(&workspace->own_row, run->network->batch, sizeof *workspace->own_row,
                         "steps"));
    return sdr_parameters_stepper(&workspace->stepper, &run->parameters, workspace->w);
}

static void free_workspace(struct sdr_workspace *workspace)
{
    if (workspace->stepper.count)
        sdr_parameters_destroy(&workspace->stepper);
    sdr_release(workspace->packed);
    sdr_release(workspace->own_row);
    sdr_release(workspace->w);
    sdr_release(workspace->mark);
    sdr_release(workspace->row);
}

/* By how often rows touch them, which the first process has looked at. */
static enum sdr_status cut_features(struct sdr_run *run)
{
    struct sdr_network *net = run->network;
    size_t count = (size_t)net->servers + 1;
    uint32_t *touched, looked_at;
    SDR_TRY(sdr_allocate(&net->cut, count, sizeof *net->cut, "servers"));
    if (run->process == 0) {
        SDR_TRY(sdr_features_touched(run, &touched, &looked_at));
        sdr_features_cut(touched, run->problem.features, (uint32_t)net->servers, net->cut);
        sdr_release(touched);
    }
    return sdr_share(run, net->cut, count * sizeof *net->cut);
}

static enum sdr_status make_servers(struct sdr_run *run)
{
    struct sdr_network *net = run->network;
    SDR_TRY(sdr_allocate(&net->server, (size_t)net->servers, sizeof *net->server, "servers"));
    SDR_TRY(cut_features(run));
    for (int s = 0; s < net->servers; s++) {
        struct sdr_server *server = &net->server[s];
        server->first = net->cut[s];
        server->end = net->cut[s + 1];
        server->parameters = s ? &server->alias : &run->parameters;
        if (s)
            SDR_TRY(sdr_parameters_replicate(&server->alias, &run->parameters, false, false));
        if (net->sparse || net->steps)
            SDR_TRY(make_workspace(run, &server->workspace));
        SDR_TRY(sdr_allocate(&server->pending, (size_t)net->workers, sizeof *server->pending,
                             "servers"));
    }
    return SDR_OK;
}

static enum sdr_status make_sampler(struct sdr_run *run)
{
    struct sdr_network *net = run->network;
    uint64_t outstanding = (uint64_t)net->workers * net->batch / run->train_rows.count;
    uint64_t least = 4 * (outstanding + 1); /* batches that are dealt again may be old */
    for (net->sampler.slots = 1; net->sampler.slots < least;)
        net->sampler.slots *= 2;
    pthread_mutex_init(&net->sampler.lock, NULL);
    SDR_TRY(sdr_allocate(&net->sampler.slot, net->sampler.slots, sizeof *net->sampler.slot,
                         "row orders"));
    for (uint64_t i = 0; i < net->sampler.slots; i++)
        net->sampler.slot[i].epoch = UINT64_MAX;
    return SDR_OK;
}

/* Values that a batch touches are worth picking out where they are few, and where a copy of all of them is
   not shared by everybody anyway. */
static bool picks_values(const struct sdr_run *run)
{
    const struct sdr_network *net = run->network;
    const struct sdr_rows *rows = &run->data->rows;
    double per_row = (double)run->data->nonzeros / (double)rows->count;
    double each = (double)net->batch / (net->joint ? net->workers : 1);
    double walked = per_row * each, values = (double)run->parameters.count;
    bool few = walked < 2.0 * rows->features && values > 64; /* so few cost less than picking */
    if (run->transport->by_reference && !run->transport->simulated)
        few = 32 * walked < values; /* copying is that much quicker, and nothing is sent */
    bool alike = net->quorum == (uint64_t)net->workers || net->cancels;
    return !rows->dense && !run->parameters.whole && few && !net->keeps &&
           !(alike && run->transport->by_reference);
}

static void fetch_worker(const struct sdr_node *node)
{
    const struct sdr_network *net = node->run->network;
    sdr_fetch_to_write(node->task, sizeof *node->task);
    sdr_fetch_to_write(&net->assignment[node->worker], sizeof *net->assignment);
    sdr_fetch_to_write(&net->ledger.sum[node->worker], sizeof *net->ledger.sum);
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
                                         .options = run->strategy_options};
    return SDR_OK;
}

/* What servers know, and workers that are given tasks. */
static enum sdr_status make_server_role(struct sdr_run *run)
{
    struct sdr_network *net = run->network;
    net->fetch = fetch_worker;
    net->sparse = picks_values(run);
    SDR_TRY(make_servers(run));
    net->workspaces = run->transport->simulated ? 1 : net->workers;
    SDR_TRY(
        sdr_allocate(&net->workspace, (size_t)net->workspaces, sizeof *net->workspace, "workers"));
    for (int i = 0; i < net->workspaces; i++)
        SDR_TRY(make_workspace(run, &net->workspace[i]));
    SDR_TRY(
        sdr_allocate(&net->assignment, (size_t)net->workers, sizeof *net->assignment, "workers"));
    for (int i = net->servers; i < net->nodes; i++) {
        struct sdr_node *node = &net->node[i];
        SDR_TRY(sdr_allocate(&node->task, 1, sizeof *node->task, "workers"));
        SDR_TRY(sdr_allocate(&node->task->piece, (size_t)net->servers, sizeof *node->task->piece,
                             "workers"));
        if (net->steps)
            SDR_TRY(sdr_own_writes_create(node));
    }
    return SDR_OK;
}

enum sdr_status sdr_network_create(struct sdr_run *run, uint64_t quorum)
{
    const struct sdr_settings *s = &run->options.settings;
    struct sdr_network *net;
    SDR_TRY(sdr_allocate(&net, 1, sizeof *net, "nodes"));
    run->network = net;
    net->servers = run->strategy->peer ? 0 : (int)s->servers;
    net->workers = run->workers;
    net->nodes = net->servers + net->workers;
    net->joint = run->strategy->joint;
    net->part_unit = s->deterministic ? SDR_LEAF_ROWS : 1;
    net->quorum = quorum;
    net->cancels = run->strategy->cancels && run->strategy->cancels(run->strategy_options);
    uint64_t local = sdr_local_steps(run);
    net->steps = sdr_sends_steps(run);
    net->keeps = sdr_keeps_values(run);
    net->eager = run->strategy->eager;
    net->last = -1;
    net->alive = run->workers;
    net->local = (uint32_t)(s->batch < run->train_rows.count ? s->batch : run->train_rows.count);
    net->batch = net->joint ? run->update_rows : net->local * local;
    if (net->batch > run->train_rows.count)
        net->batch = run->train_rows.count;
    net->per_epoch = (run->train_rows.count + net->batch - 1) / net->batch;
    net->epochs = sdr_divisor(net->per_epoch);
    net->single_threaded = run->transport->simulated;
    SDR_TRY(sdr_allocate(&run->node, 1, sizeof *run->node, "nodes")); /* what checkpoints keep */
    run->nodes = 1;
    SDR_TRY(parse_delays(run));
    SDR_TRY(sdr_ledger_open(&net->ledger, run->process == 0 ? s->run : NULL, net->workers));
    SDR_TRY(sdr_pool_create(net->single_threaded, &net->pool));
    SDR_TRY(make_sampler(run));
    SDR_TRY(make_nodes(run));
    SDR_TRY(net->servers ? make_server_role(run) : sdr_peers_create(run));
    return run->transport->open(run, run->transport_options);
}

void sdr_network_destroy(struct sdr_run *run)
{
    struct sdr_network *net = run->network;
    if (!net)
        return;
    if (net->shared)
        run->transport->close(run);
    sdr_peers_destroy(run);
    for (int i = 0; i < net->nodes && net->node; i++) {
        struct sdr_task *task = net->node[i].task;
        if (!task)
            continue;
        if (task->piece)
            sdr_forget_task(&net->node[i]);
        sdr_body_drop(task->gradient);
        sdr_own_writes_free(&net->node[i]);
        sdr_release(task->piece);
        sdr_release(task);
    }
    for (int s = 0; s < net->servers && net->server; s++) {
        struct sdr_server *server = &net->server[s];
        sdr_body_drop(server->snapshot);
        for (int w = 0; w < net->workers && server->pending; w++)
            while (server->pending[w])
                sdr_release_pending(&server->pending[w]);
        while (server->backlog_at < server->backlogged)
            sdr_body_drop(server->backlog[server->backlog_at++].body);
        sdr_release(server->pending);
        sdr_release(server->backlog);
        sdr_release(server->row);
        sdr_release(server->u);
        free_workspace(&server->workspace);
        if (s)
            sdr_parameters_destroy(&server->alias);
    }
    for (int i = 0; i < net->workspaces && net->workspace; i++)
        free_workspace(&net->workspace[i]);
    for (uint64_t i = 0; i < net->sampler.slots && net->sampler.slot; i++)
        sdr_release(net->sampler.slot[i].order);
    if (net->sampler.slots)
        pthread_mutex_destroy(&net->sampler.lock);
    sdr_release(net->sampler.slot);
    sdr_release(net->server);
    sdr_release(net->cut);
    sdr_release(net->workspace);
    for (int w = 0; w < net->workers && net->assignment; w++)
        sdr_body_drop(net->assignment[w].sent);
    sdr_release(net->assignment);
    sdr_release(net->slowness);
    sdr_ledger_free(&net->ledger);
    sdr_delay_free(&net->compute);
    sdr_delay_free(&net->delay);
    sdr_batch_queue_free(&net->queue);
    sdr_release(net->node);
    sdr_pool_destroy(net->pool);
    sdr_release(net);
    run->network = NULL;
}

static enum sdr_status loop(struct sdr_node *node)
{
    const struct sdr_strategy *strategy = node->run->strategy;
    if (node->server == 0)
        return node->run->over ? sdr_dismiss(node) : strategy->server(node);
    return node->server > 0 ? sdr_follow_coordinator(node) : strategy->client(node);
}

void sdr_network_keep(struct sdr_run *run)
{
    struct sdr_network *net = run->network;
    enum sdr_status status =
        sdr_ledger_flush(&net->ledger, run->resumed ? run->parameters.version : 0);
    if (status != SDR_OK)
        sdr_network_lose(run);
}

void sdr_network_lose(struct sdr_run *run)
{
    struct sdr_network *net = run->network;
    if (net->ledger_lost[0])
        return;
    snprintf(net->ledger_lost, sizeof net->ledger_lost, "%s", sdr_error());
    sdr_note(&run->options, "%s; training goes on", sdr_error());
}

enum sdr_status sdr_network_save(struct sdr_run *run)
{
    const struct sdr_batch_queue *queue = &run->network->queue;
    double *saved;
    if (run->process > 0)
        return SDR_OK;
    SDR_TRY(
        sdr_node_array_renew(&run->node[0], "batches", sdr_batch_queue_saved_count(queue), &saved));
    sdr_batch_queue_save(queue, saved);
    return SDR_OK;
}

/* From the beginning, or from what a checkpoint has kept. */
static enum sdr_status fill_queue(struct sdr_run *run)
{
    struct sdr_network *net = run->network;
    const struct sdr_node *kept = &run->node[0];
    uint64_t most = UINT64_C(1) << 52, end = most; /* numbers are saved as doubles */
    if (run->epochs < most / net->per_epoch)
        end = run->epochs * net->per_epoch;
    for (int i = 0; i < kept->arrays; i++)
        if (strcmp(kept->array[i].name, "batches") == 0)
            return sdr_batch_queue_resume(&net->queue, kept->array[i].value, kept->array[i].count,
                                          end);
    sdr_batch_queue_start(&net->queue, run->epoch * net->per_epoch + run->at / net->batch, end);
    return SDR_OK;
}

enum sdr_status sdr_network_work(struct sdr_run *run)
{
    struct sdr_network *net = run->network;
    SDR_TRY(fill_queue(run));
    for (int s = 1; s < net->servers; s++)
        sdr_parameters_follow(&net->server[s].alias, &run->parameters);
    sdr_network_keep(run);
    if (net->peers) {
        SDR_TRY(sdr_peers_work(run));
        sdr_network_keep(run);
        return SDR_OK;
    }
    if (run->resumed && net->steps && run->optimizer->slots)
        sdr_note(&run->options,
                 "what workers knew of --optimizer %s is not in the checkpoint: steps are larger "
                 "at first",
                 run->optimizer->name);
    SDR_TRY(run->transport->launch(run, loop));
    sdr_network_keep(run);
    for (int i = net->servers; i < net->nodes; i++) {
        net->waited += net->node[i].task->waited;
        net->present += net->node[i].task->number > 0;
    }
    return SDR_OK;
}
