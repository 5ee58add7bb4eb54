/* Nodes that exchange messages: what their loops are made of. See network.h. */
#include "network.h"
#include "base/memory.h"
#include "run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- batches by number ---- */
static uint64_t place_of(const struct sdr_network *net, uint64_t number)
{
    return number % net->per_epoch * net->batch;
}

uint32_t sdr_network_rows(const struct sdr_run *run, uint64_t number)
{
    uint64_t left = run->train_rows.count - place_of(run->network, number);
    return (uint32_t)(left < run->network->batch ? left : run->network->batch);
}

/* A worker's part of a batch: whole leaves, as equal as can be. */
static void part_of(const struct sdr_network *net, uint32_t rows, int worker, uint32_t *from,
                    uint32_t *end)
{
    *from = 0;
    *end = rows;
    if (!net->parts)
        return;
    uint64_t leaves = (rows + SDR_LEAF_ROWS - 1) / SDR_LEAF_ROWS, workers = (uint64_t)net->workers;
    uint64_t first = leaves * (uint64_t)worker / workers * SDR_LEAF_ROWS;
    uint64_t last = leaves * (uint64_t)(worker + 1) / workers * SDR_LEAF_ROWS;
    *from = (uint32_t)(first < rows ? first : rows);
    *end = (uint32_t)(last < rows ? last : rows);
}

static enum sdr_status copy_rows(struct sdr_run *run, uint64_t number, uint32_t from, uint32_t end,
                                 uint32_t *row)
{
    struct sdr_network *net = run->network;
    struct sdr_sampler *sampler = &net->sampler;
    uint64_t epoch = number / net->per_epoch, at = epoch % sampler->slots;
    enum sdr_status status = SDR_OK;
    pthread_mutex_lock(&sampler->lock);
    if (!sampler->slot[at].order)
        status =
            sdr_allocate(&sampler->slot[at].order, run->train_rows.count, sizeof *row, "row order");
    if (status == SDR_OK && sampler->slot[at].epoch != epoch) {
        sdr_order_of(run, epoch, sampler->slot[at].order);
        sampler->slot[at].epoch = epoch;
    }
    if (status == SDR_OK)
        memcpy(row, sampler->slot[at].order + place_of(net, number) + from,
               (end - from) * sizeof *row);
    pthread_mutex_unlock(&sampler->lock);
    return status;
}

enum sdr_status sdr_network_batch(struct sdr_run *run, uint64_t number, int worker, uint32_t *row,
                                  struct sdr_batch *batch)
{
    struct sdr_network *net = run->network;
    uint32_t rows = sdr_network_rows(run, number), from = 0, end = rows;
    if (worker >= 0)
        part_of(net, rows, worker, &from, &end);
    SDR_TRY(copy_rows(run, number, from, end, row));
    /* Gradients are of mean losses: over the batch and, since their mean is taken, over the quorum. */
    uint64_t of = net->parts ? rows : rows * net->quorum;
    *batch = (struct sdr_batch){.rows = &run->data->rows,
                                .row = row,
                                .count = end - from,
                                .number = number,
                                .at = place_of(net, number) + from,
                                .of = (uint32_t)of};
    return SDR_OK;
}

/* ---- values that a batch touches ---- */
/* Calls for memory are many and small where rows are sparse: both ends walk over the batch in the same order,
   so that values travel without saying whose they are. */
static uint64_t pass_values(struct sdr_desk *desk, const struct sdr_batch *batch, uint32_t first,
                            uint32_t end, uint32_t cols, float *w, float *packed, bool pack)
{
    uint64_t count = 0;
    uint32_t stamp = ++desk->stamp;
    for (uint32_t i = 0; i < batch->count; i++) {
        struct sdr_sparse_row r = sdr_sparse_row(batch->rows, batch->row[i]);
        for (uint32_t n = 0; n < r.n; n++) {
            uint32_t j = sdr_row_index(&r, n);
            if (desk->mark[j] == stamp || j < first || j >= end)
                continue;
            desk->mark[j] = stamp;
            float *value = w + (size_t)j * cols, *place = packed + count;
            for (uint32_t k = 0; k < cols && pack; k++)
                place[k] = value[k];
            for (uint32_t k = 0; k < cols && !pack; k++)
                value[k] = place[k];
            count += cols;
        }
    }
    if (stamp == UINT32_MAX) {
        memset(desk->mark, 0, batch->rows->features * sizeof *desk->mark);
        desk->stamp = 0;
    }
    return count;
}

/* Blocks behind the first are the first server's. */
static uint64_t values_behind(const struct sdr_parameters *p)
{
    return p->count - (p->blocks > 1 ? p->block[1].offset : p->count);
}

/* ---- a worker ---- */
static enum sdr_status send(struct sdr_node *node, struct sdr_message *message)
{
    struct sdr_network *net = node->run->network;
    message->from = node->id;
    atomic_fetch_add_explicit(&net->bytes, sdr_message_bytes(message), memory_order_relaxed);
    atomic_fetch_add_explicit(&net->messages, 1, memory_order_relaxed);
    return node->run->transport->send(node, message);
}

static void forget_task(struct sdr_node *node)
{
    struct sdr_errand *task = node->task;
    for (int s = 0; s < node->servers; s++) {
        sdr_body_drop(task->piece[s]);
        task->piece[s] = NULL;
    }
    task->arrived = 0;
}

/* Values of a task, or a part of them. What is older than what has arrived was overtaken. */
static void take_piece(struct sdr_node *node, struct sdr_message *message)
{
    struct sdr_errand *task = node->task;
    bool same = task->batch == message->batch && task->version == message->version;
    if (message->version < task->version) {
        sdr_body_drop(message->body);
        return;
    }
    if (!same || task->arrived == 0) {
        forget_task(node);
        task->batch = message->batch;
        task->version = message->version;
        task->sparse = message->flags & SDR_SPARSE;
    }
    task->arrived++;
    sdr_body_drop(task->piece[message->from]);
    task->piece[message->from] = message->body;
}

enum sdr_status sdr_await_task(struct sdr_node *node, bool *more)
{
    const struct sdr_transport *transport = node->run->transport;
    int64_t before = transport->now(node);
    struct sdr_errand *task = node->task;
    task->arrived = 0; /* what the last task was made of is of no use */
    do {
        struct sdr_message message;
        SDR_TRY(transport->receive(node, &message));
        *more = message.kind != SDR_MESSAGE_STOP;
        if (*more)
            take_piece(node, &message);
        else
            sdr_body_drop(message.body);
    } while (*more && task->arrived < node->servers);
    task->number++;
    if (*more) /* the end is not waited for */
        task->waited += transport->now(node) - before;
    return SDR_OK;
}

/* A gradient as it travels: losses and weights by leaves, then the slopes. */
struct gradient_head {
    uint32_t rows, leaves;
    struct sdr_tally tally[];
};

static size_t slopes_at(uint32_t leaves)
{
    size_t bytes = sizeof(struct gradient_head) + leaves * sizeof(struct sdr_tally);
    return (bytes + SDR_ALIGN - 1) / SDR_ALIGN * SDR_ALIGN;
}

/* The values to work from: as they came, or put together on the desk. */
static const float *lay_out(struct sdr_node *node, struct sdr_desk *desk,
                            const struct sdr_batch *batch)
{
    const struct sdr_network *net = node->run->network;
    const struct sdr_errand *task = node->task;
    const struct sdr_parameters *p = &node->run->parameters;
    uint32_t cols = p->block[0].cols;
    if (node->servers == 1 && !task->sparse)
        return (const float *)(const void *)task->piece[0]->data;
    for (int s = 0; s < node->servers; s++) {
        float *from = (float *)(void *)task->piece[s]->data;
        uint64_t count = (uint64_t)(net->cut[s + 1] - net->cut[s]) * cols;
        if (task->sparse)
            count =
                pass_values(desk, batch, net->cut[s], net->cut[s + 1], cols, desk->w, from, false);
        else
            memcpy(desk->w + (size_t)net->cut[s] * cols, from, count * sizeof *from);
        if (s == 0 && p->blocks > 1)
            memcpy(desk->w + p->block[1].offset, from + count, values_behind(p) * sizeof *from);
    }
    return desk->w;
}

static enum sdr_status compute(void *argument, const atomic_uint *stop)
{
    struct sdr_node *node = argument;
    struct sdr_run *run = node->run;
    struct sdr_network *net = run->network;
    struct sdr_errand *task = node->task;
    struct sdr_desk *desk = &net->desk[net->desks == 1 ? 0 : node->worker];
    struct gradient_head *head = (struct gradient_head *)(void *)task->gradient->data;
    struct sdr_batch batch;
    SDR_TRY(sdr_network_batch(run, task->batch, node->worker, desk->row, &batch));
    const float *w = lay_out(node, desk, &batch);
    float *u = (float *)(void *)(task->gradient->data + slopes_at(head->leaves));
    for (uint32_t leaf = 0; leaf < head->leaves && !atomic_load(stop); leaf++) {
        struct sdr_batch part = batch;
        struct sdr_update update;
        uint32_t from = leaf * SDR_LEAF_ROWS;
        part.row += from;
        part.at += from;
        part.count = batch.count - from < SDR_LEAF_ROWS ? batch.count - from : SDR_LEAF_ROWS;
        for (uint32_t i = 0; i < part.count; i++) /* shuffled rows lie anywhere */
            sdr_fetch_row(&run->problem, part.row[i]);
        run->kind->gradient(run->kind, &run->problem, run->parameters.block, w, &part,
                            u + (size_t)from * run->example_floats, &update);
        head->tally[leaf] = (struct sdr_tally){update.loss, update.weight};
    }
    if (task->sparse) /* the next batch needs others */
        forget_task(node);
    return SDR_OK;
}

enum sdr_status sdr_compute_gradient(struct sdr_node *node, bool *done)
{
    struct sdr_run *run = node->run;
    struct sdr_network *net = run->network;
    struct sdr_errand *task = node->task;
    uint32_t from, end;
    part_of(net, sdr_network_rows(run, task->batch), node->worker, &from, &end);
    uint32_t rows = end - from, leaves = (rows + SDR_LEAF_ROWS - 1) / SDR_LEAF_ROWS;
    size_t bytes = slopes_at(leaves) + (size_t)rows * run->example_floats * sizeof(float);
    sdr_body_drop(task->gradient);
    task->gradient = NULL;
    SDR_TRY(sdr_body_create(net->pool, bytes, &task->gradient));
    struct gradient_head *head = (struct gradient_head *)(void *)task->gradient->data;
    *head = (struct gradient_head){rows, leaves};
    struct sdr_work work = {compute, node, !net->cancels};
    return run->transport->compute(node, &work, done);
}

enum sdr_status sdr_push_gradient(struct sdr_node *node)
{
    struct sdr_errand *task = node->task;
    for (int s = 0; s < node->servers; s++) {
        struct sdr_message message = {.kind = SDR_MESSAGE_GRADIENT,
                                      .to = s,
                                      .version = task->version,
                                      .batch = task->batch,
                                      .body = sdr_body_hold(task->gradient)};
        SDR_TRY(send(node, &message));
    }
    sdr_body_drop(task->gradient);
    task->gradient = NULL;
    return SDR_OK;
}

/* ---- every server: its part of the parameters ---- */
static struct sdr_server *server_of(const struct sdr_node *node)
{
    return &node->run->network->server[node->server];
}

static enum sdr_status keep(struct sdr_server *server, const struct sdr_message *message)
{
    if (server->backlogged == server->backlog_room && server->backlog_at > 0) { /* what was taken */
        server->backlogged -= server->backlog_at;
        memmove(server->backlog, server->backlog + server->backlog_at,
                server->backlogged * sizeof *server->backlog);
        server->backlog_at = 0;
    }
    if (server->backlogged == server->backlog_room) {
        uint64_t room = server->backlog_room ? 2 * server->backlog_room : 64;
        struct sdr_message *larger;
        enum sdr_status status = sdr_allocate(&larger, room, sizeof *larger, "messages");
        if (status != SDR_OK) {
            sdr_body_drop(message->body);
            return status;
        }
        if (server->backlogged)
            memcpy(larger, server->backlog, server->backlogged * sizeof *larger);
        sdr_release(server->backlog);
        server->backlog = larger;
        server->backlog_room = room;
    }
    server->backlog[server->backlogged++] = *message;
    return SDR_OK;
}

/* The next message, with what was put aside first. */
static enum sdr_status next_message(struct sdr_node *node, struct sdr_message *message)
{
    struct sdr_server *server = server_of(node);
    if (server->backlog_at == server->backlogged) {
        server->backlog_at = server->backlogged = 0;
        return node->run->transport->receive(node, message);
    }
    *message = server->backlog[server->backlog_at++];
    return SDR_OK;
}

static enum sdr_status room_for(struct sdr_server *server, uint64_t rows, uint64_t floats)
{
    if (rows > server->row_room) {
        sdr_release(server->row);
        server->row = NULL;
        server->row_room = 0;
        SDR_TRY(sdr_allocate(&server->row, rows, sizeof *server->row, "rows of an update"));
        server->row_room = rows;
    }
    if (floats > server->u_room) {
        sdr_release(server->u);
        server->u = NULL;
        server->u_room = 0;
        SDR_TRY(sdr_allocate(&server->u, floats, sizeof *server->u, "slopes of an update"));
        server->u_room = floats;
    }
    return SDR_OK;
}

/* One step on the server's features, with gradients in the order given. */
static enum sdr_status step(struct sdr_node *node, const struct sdr_gradient *gradient,
                            uint64_t count, double rate)
{
    struct sdr_run *run = node->run;
    struct sdr_server *server = server_of(node);
    struct sdr_parameters *p = server->parameters;
    uint64_t rows = 0, floats = run->example_floats;
    bool sums = run->kind->task == SDR_CLUSTERS;
    for (uint64_t i = 0; i < count; i++)
        rows += ((const struct gradient_head *)(const void *)gradient[i].body->data)->rows;
    SDR_TRY(room_for(server, rows + 1, (rows + 1) * floats));
    struct sdr_batch batch = {.rows = &run->data->rows, .row = server->row};
    for (uint64_t i = 0; i < count; i++) {
        const struct gradient_head *head =
            (const struct gradient_head *)(const void *)gradient[i].body->data;
        struct sdr_batch part;
        SDR_TRY(sdr_network_batch(run, gradient[i].batch, gradient[i].worker,
                                  server->row + batch.count, &part));
        memcpy(server->u + batch.count * floats, gradient[i].body->data + slopes_at(head->leaves),
               head->rows * floats * sizeof(float));
        batch.count += head->rows;
    }
    struct sdr_update update = {.form = sums               ? SDR_COLUMNS
                                        : run->kind->pairs ? SDR_ENTRIES
                                                           : SDR_FACTORS,
                                .outputs = p->block[0].cols,
                                .u = server->u,
                                .stride = run->example_floats,
                                .examples = batch};
    sdr_parameters_begin(p, rate);
    sdr_parameters_apply_range(p, &update, server->first, server->end);
    if (node->server == 0 && p->blocks > 1)
        sdr_parameters_apply_intercept(p, &update, rate);
    sdr_parameters_finish(p, rate);
    return SDR_OK;
}

/* All values of the server's features, as they are: made once a version, however many are sent it. */
static enum sdr_status take_snapshot(struct sdr_node *node, uint64_t batch)
{
    struct sdr_run *run = node->run;
    struct sdr_server *server = server_of(node);
    struct sdr_parameters *p = server->parameters;
    uint64_t cols = p->block[0].cols, count = (server->end - server->first) * cols;
    uint64_t behind = node->server == 0 ? values_behind(p) : 0;
    bool whole = node->servers == 1;
    if (server->snapshot && server->version == p->version)
        return SDR_OK;
    sdr_body_drop(server->snapshot);
    server->snapshot = NULL;
    if (run->network
            ->parts) { /* nothing else will be read, and bits depend on when a penalty is charged */
        struct sdr_batch rows;
        SDR_TRY(room_for(server, run->network->batch, 0));
        SDR_TRY(sdr_network_batch(run, batch, -1, server->row, &rows));
        sdr_parameters_settle_range(p, &rows, server->first, server->end);
    } else {
        sdr_parameters_settle_span(p, server->first, server->end);
    }
    uint64_t floats = whole ? p->count : count + behind;
    SDR_TRY(sdr_body_create(run->network->pool, floats * sizeof(float), &server->snapshot));
    float *to = (float *)(void *)server->snapshot->data;
    if (whole) {
        memcpy(to, p->value, floats * sizeof *to);
    } else {
        memcpy(to, p->value + server->first * cols, count * sizeof *to);
        if (behind)
            memcpy(to + count, p->value + p->block[1].offset, behind * sizeof *to);
    }
    server->version = p->version;
    return SDR_OK;
}

/* The values that a batch touches, of the server's features. */
static enum sdr_status pick_values(struct sdr_node *node, uint64_t number, int worker,
                                   struct sdr_body **body)
{
    struct sdr_run *run = node->run;
    struct sdr_server *server = server_of(node);
    struct sdr_parameters *p = server->parameters;
    struct sdr_batch batch;
    uint32_t cols = p->block[0].cols;
    SDR_TRY(sdr_network_batch(run, number, worker, server->desk.row, &batch));
    sdr_parameters_settle_range(p, &batch, server->first, server->end);
    uint64_t count = pass_values(&server->desk, &batch, server->first, server->end, cols, p->value,
                                 server->desk.w, true);
    if (node->server == 0 && p->blocks > 1) {
        memcpy(server->desk.w + count, p->value + p->block[1].offset,
               values_behind(p) * sizeof(float));
        count += values_behind(p);
    }
    SDR_TRY(sdr_body_create(run->network->pool, count * sizeof(float), body));
    memcpy((*body)->data, server->desk.w, count * sizeof(float));
    return SDR_OK;
}

static enum sdr_status send_task(struct sdr_node *node, int worker, uint64_t number, uint8_t flags)
{
    struct sdr_network *net = node->run->network;
    struct sdr_server *server = server_of(node);
    struct sdr_message message = {.kind = SDR_MESSAGE_TASK,
                                  .flags = flags,
                                  .to = net->servers + worker,
                                  .version = server->parameters->version,
                                  .batch = number};
    if (net->sparse) {
        message.flags |= SDR_SPARSE;
        SDR_TRY(pick_values(node, number, worker, &message.body));
    } else {
        SDR_TRY(take_snapshot(node, number));
        message.body = sdr_body_hold(server->snapshot);
    }
    return send(node, &message);
}

/* ---- servers that follow the first one ---- */
struct decision {
    double rate, charge;
    uint64_t count;
    struct {
        uint64_t batch, version;
        int32_t worker;
    } of[];
};

/* The link to a gradient of a worker, or to the end of its list. */
static struct sdr_held **find_held(struct sdr_server *server, int worker, uint64_t batch,
                                   uint64_t version)
{
    struct sdr_held **link = &server->held[worker];
    while (*link && ((*link)->batch != batch || (*link)->version != version))
        link = &(*link)->next;
    return link;
}

static void release_held(struct sdr_held **link)
{
    struct sdr_held *held = *link;
    *link = held->next;
    sdr_body_drop(held->body);
    sdr_release(held);
}

/* A gradient, or the word that it will not be needed, whichever comes first. */
static enum sdr_status hold(struct sdr_server *server, int worker,
                            const struct sdr_message *message)
{
    struct sdr_held **link = find_held(server, worker, message->batch, message->version);
    if (*link) { /* the other of the two is here */
        sdr_body_drop(message->body);
        release_held(link);
        return SDR_OK;
    }
    enum sdr_status status = sdr_allocate(link, 1, sizeof **link, "a gradient");
    if (status != SDR_OK) {
        sdr_body_drop(message->body);
        return status;
    }
    **link = (struct sdr_held){message->batch, message->version, message->body, NULL};
    return SDR_OK;
}

/* A gradient that the first server has decided on may still be under way. */
static enum sdr_status await_held(struct sdr_node *node, int worker, uint64_t batch,
                                  uint64_t version, struct sdr_gradient *gradient)
{
    struct sdr_server *server = server_of(node);
    struct sdr_held **link;
    while (!*(link = find_held(server, worker, batch, version))) {
        struct sdr_message message;
        SDR_TRY(node->run->transport->receive(node, &message));
        if (message.kind == SDR_MESSAGE_GRADIENT)
            SDR_TRY(hold(server, message.from - node->servers, &message));
        else
            SDR_TRY(keep(server, &message));
    }
    *gradient = (struct sdr_gradient){worker, batch, version, (*link)->body};
    return SDR_OK;
}

static enum sdr_status follow_decision(struct sdr_node *node, const struct sdr_message *message)
{
    struct sdr_server *server = server_of(node);
    const struct decision *decision = (const struct decision *)(const void *)message->body->data;
    struct sdr_gradient *gradient;
    SDR_TRY(sdr_allocate(&gradient, decision->count, sizeof *gradient, "gradients"));
    enum sdr_status status = SDR_OK;
    for (uint64_t i = 0; i < decision->count && status == SDR_OK; i++)
        status = await_held(node, decision->of[i].worker, decision->of[i].batch,
                            decision->of[i].version, &gradient[i]);
    if (status == SDR_OK) {
        server->parameters->charge = decision->charge;
        status = step(node, gradient, decision->count, decision->rate);
    }
    for (uint64_t i = 0; i < decision->count && status == SDR_OK; i++)
        release_held(find_held(server, gradient[i].worker, gradient[i].batch, gradient[i].version));
    sdr_release(gradient);
    SDR_TRY(status);
    struct sdr_message applied = {.kind = SDR_MESSAGE_APPLIED, .to = 0};
    return send(node, &applied);
}

static enum sdr_status follow(struct sdr_node *node)
{
    struct sdr_server *server = server_of(node);
    for (;;) {
        struct sdr_message message;
        enum sdr_status status = SDR_OK;
        SDR_TRY(next_message(node, &message));
        switch ((enum sdr_message_kind)message.kind) {
        case SDR_MESSAGE_GRADIENT:
            SDR_TRY(hold(server, message.from - node->servers, &message));
            continue;
        case SDR_MESSAGE_DROP:
            status = hold(server, message.about, &message);
            break;
        case SDR_MESSAGE_APPLY:
            status = follow_decision(node, &message);
            break;
        case SDR_MESSAGE_ANSWER: /* an evaluation may have charged all penalties since the last step */
            server->parameters->charge = message.charge;
            status = send_task(node, message.about, message.batch, message.flags);
            break;
        case SDR_MESSAGE_STOP:
            return SDR_OK;
        default:
            break;
        }
        sdr_body_drop(message.body);
        SDR_TRY(status);
    }
}

/* ---- the first server ---- */
uint64_t sdr_current_version(const struct sdr_node *node)
{
    return node->run->parameters.version;
}

uint64_t sdr_quorum(const struct sdr_node *node)
{
    return node->run->network->quorum;
}

bool sdr_is_busy(const struct sdr_node *node, int worker)
{
    return node->run->network->assignment[worker].busy;
}

static enum sdr_status deal_again(struct sdr_network *net, uint64_t number)
{
    if (net->parts) /* all parts of a batch are dealt together */
        return SDR_OK;
    if (net->again_count == net->again_room) {
        uint64_t room = net->again_room ? 2 * net->again_room : 64, *larger;
        SDR_TRY(sdr_allocate(&larger, room, sizeof *larger, "batches"));
        for (uint64_t i = 0; i < net->again_count; i++)
            larger[i] = net->again[(net->again_from + i) % net->again_room];
        sdr_release(net->again);
        net->again = larger;
        net->again_from = 0;
        net->again_room = room;
    }
    net->again[(net->again_from + net->again_count++) % net->again_room] = number;
    return SDR_OK;
}

static uint64_t deal_number(struct sdr_network *net)
{
    if (net->parts)
        return net->next;
    if (!net->again_count)
        return net->next++;
    uint64_t number = net->again[net->again_from];
    net->again_from = (net->again_from + 1) % net->again_room;
    net->again_count--;
    return number;
}

enum sdr_status sdr_assign(struct sdr_node *node, int worker)
{
    struct sdr_network *net = node->run->network;
    struct sdr_assignment *of = &net->assignment[worker];
    uint8_t flags = of->busy ? SDR_URGENT : 0;
    if (of->busy)
        SDR_TRY(deal_again(net, of->batch));
    *of = (struct sdr_assignment){deal_number(net), sdr_current_version(node), true};
    for (int s = 1; s < net->servers; s++) {
        struct sdr_message message = {.kind = SDR_MESSAGE_ANSWER,
                                      .flags = flags,
                                      .to = s,
                                      .about = worker,
                                      .version = of->version,
                                      .batch = of->batch,
                                      .charge = node->run->parameters.charge};
        SDR_TRY(send(node, &message));
    }
    return send_task(node, worker, of->batch, flags);
}

static enum sdr_status drop_everywhere(struct sdr_node *node, int worker, uint64_t batch,
                                       uint64_t version)
{
    struct sdr_network *net = node->run->network;
    net->dropped++;
    for (int s = 1; s < net->servers; s++) {
        struct sdr_message message = {
            .kind = SDR_MESSAGE_DROP, .to = s, .about = worker, .version = version, .batch = batch};
        SDR_TRY(send(node, &message));
    }
    return SDR_OK;
}

enum sdr_status sdr_await_gradient(struct sdr_node *node, struct sdr_gradient *gradient, bool *more)
{
    struct sdr_network *net = node->run->network;
    for (;;) {
        struct sdr_message message;
        SDR_TRY(next_message(node, &message));
        if (message.kind == SDR_MESSAGE_NONE) { /* nobody has come for a while */
            SDR_TRY(sdr_look_around(node->run));
            *more = !node->run->over;
            if (!*more)
                return SDR_OK;
            continue;
        }
        if (message.kind == SDR_MESSAGE_GRADIENT) {
            int worker = message.from - net->servers;
            struct sdr_assignment *of = &net->assignment[worker];
            if (of->busy && of->batch == message.batch && of->version == message.version) {
                of->busy = false;
                *gradient =
                    (struct sdr_gradient){worker, message.batch, message.version, message.body};
                return SDR_OK;
            }
            /* It crossed the message that cancelled it. */
            SDR_TRY(drop_everywhere(node, worker, message.batch, message.version));
        }
        sdr_body_drop(message.body);
    }
}

enum sdr_status sdr_drop(struct sdr_node *node, struct sdr_gradient *gradient)
{
    sdr_body_drop(gradient->body);
    gradient->body = NULL;
    SDR_TRY(drop_everywhere(node, gradient->worker, gradient->batch, gradient->version));
    return deal_again(node->run->network, gradient->batch);
}

/* The other servers take the same step, and say when they have. */
static enum sdr_status spread_decision(struct sdr_node *node, const struct sdr_gradient *gradient,
                                       uint64_t count, double rate)
{
    struct sdr_network *net = node->run->network;
    struct sdr_body *body;
    if (net->servers == 1)
        return SDR_OK;
    size_t bytes = sizeof(struct decision) + count * sizeof(((struct decision *)0)->of[0]);
    SDR_TRY(sdr_body_create(net->pool, bytes, &body));
    struct decision *decision = (struct decision *)(void *)body->data;
    decision->rate = rate;
    decision->charge = node->run->parameters.charge;
    decision->count = count;
    for (uint64_t i = 0; i < count; i++) {
        decision->of[i].batch = gradient[i].batch;
        decision->of[i].version = gradient[i].version;
        decision->of[i].worker = gradient[i].worker;
    }
    enum sdr_status status = SDR_OK;
    for (int s = 1; s < net->servers && status == SDR_OK; s++) {
        struct sdr_message message = {.kind = SDR_MESSAGE_APPLY,
                                      .to = s,
                                      .version = sdr_current_version(node),
                                      .body = sdr_body_hold(body)};
        status = status == SDR_OK ? send(node, &message) : status;
    }
    sdr_body_drop(body);
    return status;
}

static enum sdr_status await_others(struct sdr_node *node)
{
    for (int waiting = node->servers - 1; waiting > 0;) {
        struct sdr_message message;
        SDR_TRY(node->run->transport->receive(node, &message));
        if (message.kind == SDR_MESSAGE_APPLIED)
            waiting--;
        else if (message.kind != SDR_MESSAGE_NONE)
            SDR_TRY(keep(server_of(node), &message));
    }
    return SDR_OK;
}

/* Sums of losses are taken in the order of the rows where bits matter. */
static void sort_by_worker(struct sdr_gradient *gradient, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) /* one of every worker: each has its place */
        while ((uint64_t)gradient[i].worker != i) {
            struct sdr_gradient other = gradient[gradient[i].worker];
            gradient[gradient[i].worker] = gradient[i];
            gradient[i] = other;
        }
}

enum sdr_status sdr_apply(struct sdr_node *node, struct sdr_gradient *gradient, uint64_t count,
                          bool *more)
{
    struct sdr_run *run = node->run;
    struct sdr_network *net = run->network;
    uint64_t rows = 0;
    double rate = sdr_rate_at(run, run->at);
    if (net->parts)
        sort_by_worker(gradient, count);
    SDR_TRY(spread_decision(node, gradient, count, rate));
    for (uint64_t i = 0; i < count; i++) {
        const struct gradient_head *head =
            (const struct gradient_head *)(const void *)gradient[i].body->data;
        uint64_t missed = sdr_current_version(node) - gradient[i].version;
        net->steps++;
        net->staleness += missed;
        net->stalest = missed > net->stalest ? missed : net->stalest;
        rows += head->rows;
        for (uint32_t leaf = 0; leaf < head->leaves; leaf++) {
            run->tally.loss += head->tally[leaf].loss;
            run->tally.weight += head->tally[leaf].weight;
        }
    }
    SDR_TRY(step(node, gradient, count, rate));
    SDR_TRY(await_others(node));
    for (uint64_t i = 0; i < count; i++) {
        sdr_body_drop(gradient[i].body);
        gradient[i].body = NULL;
    }
    net->next += net->parts;
    net->ended = run->transport->now(node);
    SDR_TRY(sdr_account(run, rows));
    *more = !run->over;
    return SDR_OK;
}

enum sdr_status sdr_dismiss(struct sdr_node *node)
{
    struct sdr_network *net = node->run->network;
    for (int i = 1; i < net->nodes; i++) {
        struct sdr_message message = {.kind = SDR_MESSAGE_STOP, .flags = SDR_URGENT, .to = i};
        SDR_TRY(send(node, &message));
    }
    return SDR_OK;
}

/* ---- what holds workers up ---- */
static double slowness(const struct sdr_node *node)
{
    const float *of = node->run->network->slowness;
    return of ? of[node->worker] : 1;
}

static int64_t delay(const struct sdr_node *node)
{
    const struct sdr_network *net = node->run->network;
    if (!net->delay.terms)
        return 0;
    return sdr_delay_draw(&net->delay, ~node->run->options.settings.seed, (uint32_t)node->worker,
                          node->task->number);
}

int64_t sdr_network_compute_time(const struct sdr_node *node)
{
    const struct sdr_network *net = node->run->network;
    int64_t time = sdr_delay_draw(&net->compute, node->run->options.settings.seed,
                                  (uint32_t)node->worker, node->task->number);
    return (int64_t)fmin((double)time * slowness(node), 1e18) + delay(node);
}

int64_t sdr_network_held_up(const struct sdr_node *node, int64_t took)
{
    return (int64_t)fmin((double)took * (slowness(node) - 1), 1e18) + delay(node);
}

/* "2:3x,5:1.5x": worker 2 takes three times as long, worker 5 half as long again. */
static enum sdr_status parse_slowness(struct sdr_run *run, const char *text)
{
    struct sdr_network *net = run->network;
    SDR_TRY(sdr_allocate(&net->slowness, (size_t)net->workers, sizeof(float), "--slow"));
    for (int w = 0; w < net->workers; w++)
        net->slowness[w] = 1;
    for (const char *at = text; *at;) {
        char item[64];
        size_t length = strcspn(at, ",");
        snprintf(item, sizeof item, "%.*s", (int)(length < 63 ? length : 63), at);
        char *colon = strchr(item, ':'), *end = colon ? item + strlen(item) - 1 : item;
        uint64_t worker;
        double factor;
        if (!colon || end <= colon || *end != 'x')
            return sdr_fail(SDR_USAGE, "--slow takes WORKER:FACTORx, such as 2:3x, not '%s'", item);
        *colon = *end = 0;
        if (!sdr_parse_u64(item, &worker) || !sdr_parse_double(colon + 1, &factor) ||
            !(factor >= 1 && factor <= 1e6))
            return sdr_fail(SDR_USAGE, "--slow takes WORKER:FACTORx with a factor of 1 or more");
        if (worker >= (uint64_t)net->workers)
            return sdr_fail(SDR_USAGE, "--slow %s: workers are 0 … %d", text, net->workers - 1);
        net->slowness[worker] = (float)factor;
        at += length + (at[length] == ',');
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
    return s->slow ? parse_slowness(run, s->slow) : SDR_OK;
}

/* ---- a run ---- */
static enum sdr_status make_desk(const struct sdr_run *run, struct sdr_desk *desk)
{
    SDR_TRY(sdr_allocate(&desk->w, run->parameters.count, sizeof *desk->w, "a worker's view"));
    SDR_TRY(
        sdr_allocate(&desk->mark, run->problem.features, sizeof *desk->mark, "a worker's view"));
    return sdr_allocate(&desk->row, run->network->batch, sizeof *desk->row, "rows of a batch");
}

static void free_desk(struct sdr_desk *desk)
{
    sdr_release(desk->w);
    sdr_release(desk->mark);
    sdr_release(desk->row);
}

static enum sdr_status make_servers(struct sdr_run *run)
{
    struct sdr_network *net = run->network;
    uint32_t *touched, looked_at;
    SDR_TRY(sdr_allocate(&net->server, (size_t)net->servers, sizeof *net->server, "servers"));
    SDR_TRY(sdr_allocate(&net->cut, (size_t)net->servers + 1, sizeof *net->cut, "servers"));
    SDR_TRY(sdr_features_touched(run, &touched, &looked_at));
    sdr_features_cut(touched, run->problem.features, (uint32_t)net->servers, net->cut);
    sdr_release(touched);
    for (int s = 0; s < net->servers; s++) {
        struct sdr_server *server = &net->server[s];
        server->first = net->cut[s];
        server->end = net->cut[s + 1];
        server->parameters = s ? &server->twin : &run->parameters;
        if (s)
            SDR_TRY(sdr_parameters_twin(&server->twin, &run->parameters, false, false));
        if (net->sparse)
            SDR_TRY(make_desk(run, &server->desk));
        SDR_TRY(sdr_allocate(&server->held, (size_t)net->workers, sizeof *server->held, "servers"));
    }
    return SDR_OK;
}

static enum sdr_status make_sampler(struct sdr_run *run)
{
    struct sdr_network *net = run->network;
    uint64_t outstanding = (uint64_t)net->workers * net->batch / run->train_rows.count;
    net->sampler.slots = 4 * (outstanding + 1); /* batches that are dealt again may be old */
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
    bool few = per_row * (double)net->batch < 2.0 * rows->features;
    bool alike = net->quorum == (uint64_t)net->workers || net->cancels;
    return !rows->dense && !run->parameters.whole && !net->parts && few &&
           !(alike && run->transport->by_reference);
}

enum sdr_status sdr_network_create(struct sdr_run *run, uint64_t quorum)
{
    const struct sdr_settings *s = &run->options.settings;
    struct sdr_network *net;
    SDR_TRY(sdr_allocate(&net, 1, sizeof *net, "nodes"));
    run->network = net;
    net->servers = (int)s->servers;
    net->workers = run->workers;
    net->nodes = net->servers + net->workers;
    net->parts = s->deterministic;
    net->quorum = quorum;
    net->cancels = run->strategy->cancels && run->strategy->cancels(run->strategy_options);
    net->batch = s->batch < run->train_rows.count ? s->batch : run->train_rows.count;
    net->per_epoch = (run->train_rows.count + net->batch - 1) / net->batch;
    net->sparse = picks_values(run);
    SDR_TRY(sdr_allocate(&run->node, 1, sizeof *run->node, "nodes")); /* what checkpoints keep */
    run->nodes = 1;
    SDR_TRY(parse_delays(run));
    SDR_TRY(sdr_pool_create(&net->pool));
    SDR_TRY(make_sampler(run));
    SDR_TRY(make_servers(run));
    net->desks = run->transport->simulated ? 1 : net->workers;
    SDR_TRY(sdr_allocate(&net->desk, (size_t)net->desks, sizeof *net->desk, "workers"));
    for (int i = 0; i < net->desks; i++)
        SDR_TRY(make_desk(run, &net->desk[i]));
    SDR_TRY(
        sdr_allocate(&net->assignment, (size_t)net->workers, sizeof *net->assignment, "workers"));
    SDR_TRY(sdr_allocate(&net->node, (size_t)net->nodes, sizeof *net->node, "nodes"));
    for (int i = 0; i < net->nodes; i++) {
        struct sdr_node *node = &net->node[i];
        *node = (struct sdr_node){.run = run,
                                  .id = i,
                                  .worker = i < net->servers ? -1 : i - net->servers,
                                  .workers = net->workers,
                                  .server = i < net->servers ? i : -1,
                                  .servers = net->servers,
                                  .options = run->strategy_options};
        if (node->worker < 0)
            continue;
        SDR_TRY(sdr_allocate(&node->task, 1, sizeof *node->task, "workers"));
        SDR_TRY(sdr_allocate(&node->task->piece, (size_t)net->servers, sizeof *node->task->piece,
                             "workers"));
    }
    return run->transport->open(run, run->transport_options);
}

void sdr_network_destroy(struct sdr_run *run)
{
    struct sdr_network *net = run->network;
    if (!net)
        return;
    if (net->shared)
        run->transport->close(run);
    for (int i = 0; i < net->nodes && net->node; i++) {
        struct sdr_errand *task = net->node[i].task;
        if (!task)
            continue;
        if (task->piece)
            forget_task(&net->node[i]);
        sdr_body_drop(task->gradient);
        sdr_release(task->piece);
        sdr_release(task);
    }
    for (int s = 0; s < net->servers && net->server; s++) {
        struct sdr_server *server = &net->server[s];
        sdr_body_drop(server->snapshot);
        for (int w = 0; w < net->workers && server->held; w++)
            while (server->held[w])
                release_held(&server->held[w]);
        while (server->backlog_at < server->backlogged)
            sdr_body_drop(server->backlog[server->backlog_at++].body);
        sdr_release(server->held);
        sdr_release(server->backlog);
        sdr_release(server->row);
        sdr_release(server->u);
        free_desk(&server->desk);
        if (s)
            sdr_parameters_destroy(&server->twin);
    }
    for (int i = 0; i < net->desks && net->desk; i++)
        free_desk(&net->desk[i]);
    for (uint64_t i = 0; i < net->sampler.slots && net->sampler.slot; i++)
        sdr_release(net->sampler.slot[i].order);
    if (net->sampler.slots)
        pthread_mutex_destroy(&net->sampler.lock);
    sdr_release(net->sampler.slot);
    sdr_release(net->server);
    sdr_release(net->cut);
    sdr_release(net->desk);
    sdr_release(net->assignment);
    sdr_release(net->slowness);
    sdr_release(net->again);
    sdr_release(net->node);
    sdr_pool_destroy(net->pool);
    sdr_release(net);
    run->network = NULL;
}

static enum sdr_status loop(struct sdr_node *node)
{
    const struct sdr_strategy *strategy = node->run->strategy;
    if (node->server == 0)
        return strategy->server(node);
    return node->server > 0 ? follow(node) : strategy->client(node);
}

enum sdr_status sdr_network_work(struct sdr_run *run)
{
    struct sdr_network *net = run->network;
    net->next = run->epoch * net->per_epoch + run->at / net->batch;
    for (int s = 1; s < net->servers; s++)
        net->server[s].twin.version = run->parameters.version;
    SDR_TRY(run->transport->launch(run, loop));
    for (int i = net->servers; i < net->nodes; i++) {
        net->waited += net->node[i].task->waited;
        net->present += net->node[i].task->number > 0;
    }
    return SDR_OK;
}
