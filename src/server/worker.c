/* Nodes that exchange messages: a worker's side. */
#include "base/memory.h"
#include "run/run.h"
#include "server/network.h"

#include <string.h>

void sdr_forget_task(struct sdr_node *node)
{
    struct sdr_task *task = node->task;
    for (int s = 0; s < node->servers; s++) {
        sdr_body_drop(task->piece[s]);
        task->piece[s] = NULL;
    }
    task->arrived = 0;
}

/* Values of a task, or a part of them. What is older than what has arrived was overtaken. */
static enum sdr_status take_piece(struct sdr_node *node, const struct sdr_message *message)
{
    struct sdr_task *task = node->task;
    bool same = task->batch == message->batch && task->version == message->version;
    if (message->version < task->version) {
        sdr_body_drop(message->body);
        return SDR_OK;
    }
    if (message->flags & SDR_PATCH)
        return sdr_keep_patch(task, message);
    task->kept = message->flags & SDR_KEEP;
    if (task->kept) {
        task->batch = message->batch;
        task->rate = message->value;
        task->applied = (uint64_t)message->about;
        task->arrived = node->servers;
        return SDR_OK;
    }
    if (!same || task->arrived == 0) {
        sdr_forget_task(node);
        task->batch = message->batch;
        task->version = task->fresh = message->version;
        task->sparse = message->flags & SDR_SPARSE;
    }
    if (message->from == 0) {
        task->rate = message->value;
        task->included = task->applied = (uint64_t)message->about;
    }
    task->arrived++;
    sdr_body_drop(task->piece[message->from]);
    task->piece[message->from] = message->body;
    return SDR_OK;
}

/* Values are sent ahead: a task that follows the one that has come. */
static bool is_of_another(const struct sdr_node *node, const struct sdr_message *message)
{
    const struct sdr_task *task = node->task;
    return task->arrived == node->servers && task->batch != message->batch &&
           !(message->flags & SDR_PATCH);
}

static enum sdr_status next_message(struct sdr_node *node, struct sdr_message *message)
{
    struct sdr_task *task = node->task;
    if (task->early.kind == SDR_MESSAGE_NONE)
        return node->run->transport->receive(node, message);
    *message = task->early;
    task->early = (struct sdr_message){0};
    return SDR_OK;
}

enum sdr_status sdr_await_task(struct sdr_node *node, bool *more)
{
    const struct sdr_transport *transport = node->run->transport;
    int64_t before = transport->now(node);
    struct sdr_task *task = node->task;
    task->arrived = 0; /* what the last task was made of is of no use */
    sdr_forget_patches(task);
    do {
        struct sdr_message message;
        SDR_TRY(next_message(node, &message));
        *more = message.kind != SDR_MESSAGE_STOP;
        if (*more && is_of_another(node, &message)) {
            task->early = message;
            break;
        }
        if (*more)
            SDR_TRY(take_piece(node, &message));
        else
            sdr_body_drop(message.body);
    } while (*more && (task->arrived < node->servers ||
                       (node->run->network->eager && transport->any(node))));
    task->number++;
    if (*more) /* the end is not waited for */
        task->waited += transport->now(node) - before;
    return SDR_OK;
}

const float *sdr_assemble_view(struct sdr_node *node, struct sdr_workspace *workspace,
                               const struct sdr_batch *batch)
{
    const struct sdr_network *net = node->run->network;
    const struct sdr_task *task = node->task;
    const struct sdr_parameters *p = &node->run->parameters;
    uint32_t cols = p->block[0].cols;
    if (task->kept)
        return memcpy(workspace->w, task->local, p->count * sizeof *workspace->w);
    if (node->servers == 1 && !task->sparse) {
        const float *whole = (const float *)(const void *)task->piece[0]->data;
        return net->steps ? memcpy(workspace->w, whole, p->count * sizeof *whole) : whole;
    }
    for (int s = 0; s < node->servers; s++) {
        float *from = (float *)(void *)task->piece[s]->data;
        uint64_t count = (uint64_t)(net->cut[s + 1] - net->cut[s]) * cols;
        if (task->sparse)
            count = sdr_pass_values(workspace, batch, net->cut[s], net->cut[s + 1], cols,
                                    workspace->w, from, SDR_UNPACK);
        else
            memcpy(workspace->w + (size_t)net->cut[s] * cols, from, count * sizeof *from);
        if (s == 0 && p->blocks > 1)
            memcpy(workspace->w + p->block[1].offset, from + count,
                   sdr_values_behind(p) * sizeof *from);
    }
    return workspace->w;
}

/* Losses and slopes of rows from `from` on, leaf by leaf; how many leaves. */
static uint32_t compute_leaves(struct sdr_run *run, const float *w, const struct sdr_batch *batch,
                               float *u, struct sdr_loss_sum *loss_sum, const atomic_uint *stop)
{
    uint32_t leaf = 0;
    for (uint32_t from = 0; from < batch->count && !atomic_load(stop); from += SDR_LEAF_ROWS) {
        struct sdr_batch part = *batch;
        struct sdr_update update;
        part.row += from;
        part.at += from;
        part.count = batch->count - from < SDR_LEAF_ROWS ? batch->count - from : SDR_LEAF_ROWS;
        for (uint32_t i = 0; i < part.count; i++) /* shuffled rows lie anywhere */
            sdr_fetch_row(&run->problem, part.row[i]);
        run->kind->gradient(run->kind, &run->problem, run->parameters.block, w, &part,
                            u + (size_t)from * run->example_floats, &update);
        loss_sum[leaf++] = (struct sdr_loss_sum){update.loss, update.weight};
    }
    return leaf;
}

static enum sdr_status compute(void *argument, uint32_t step, const atomic_uint *stop)
{
    struct sdr_node *node = argument;
    struct sdr_run *run = node->run;
    struct sdr_network *net = run->network;
    struct sdr_task *task = node->task;
    struct sdr_workspace *workspace = &net->workspace[net->workspaces == 1 ? 0 : node->worker];
    struct sdr_gradient_head *head = (struct sdr_gradient_head *)(void *)task->gradient->data;
    struct sdr_batch batch;
    (void)step;
    SDR_TRY(sdr_network_batch(run, task->batch, node->worker, workspace->row, &batch));
    const float *w = sdr_assemble_view(node, workspace, &batch);
    if (task->sparse) /* the next batch needs others */
        sdr_forget_task(node);
    if (net->steps)
        SDR_TRY(sdr_own_writes_begin(node, workspace, &batch));
    float *u = (float *)(void *)(task->gradient->data + sdr_dloss_offset(head->leaves));
    uint32_t leaf = 0;
    for (uint32_t from = 0; from < batch.count && !atomic_load(stop); from += net->local) {
        struct sdr_batch part = batch;
        part.row += from;
        part.at += from;
        part.count = batch.count - from < net->local ? batch.count - from : net->local;
        part.of = net->steps ? part.count : batch.of;
        float *dloss = u + (size_t)from * run->example_floats;
        leaf += compute_leaves(run, w, &part, dloss, head->loss_sum + leaf, stop);
        if (net->steps && !atomic_load(stop))
            sdr_own_writes_step(node, workspace, &part, dloss);
    }
    if (net->steps)
        sdr_own_writes_end(node, workspace, &batch);
    return SDR_OK;
}

/* A leaf is never of two steps. */
static uint32_t leaves_of(uint32_t rows, uint32_t local)
{
    uint32_t each = (local + SDR_LEAF_ROWS - 1) / SDR_LEAF_ROWS, rest = rows % local;
    return rows / local * each + (rest + SDR_LEAF_ROWS - 1) / SDR_LEAF_ROWS;
}

enum sdr_status sdr_compute_gradient(struct sdr_node *node, bool *done)
{
    struct sdr_run *run = node->run;
    struct sdr_network *net = run->network;
    struct sdr_task *task = node->task;
    uint32_t from, end;
    sdr_part_of(net, sdr_network_rows(run, task->batch), node->worker, &from, &end);
    uint32_t rows = end - from, leaves = leaves_of(rows, net->local);
    size_t bytes = sdr_dloss_offset(leaves) + (size_t)rows * run->example_floats * sizeof(float);
    sdr_body_drop(task->gradient);
    task->gradient = NULL;
    SDR_TRY(sdr_body_create(net->pool, bytes, &task->gradient));
    struct sdr_gradient_head *head = (struct sdr_gradient_head *)(void *)task->gradient->data;
    *head = (struct sdr_gradient_head){.rows = rows, .leaves = leaves};
    head->rate = task->rate * ((rows + net->local - 1) / net->local);
    struct sdr_work work = {.run = compute,
                            .argument = node,
                            .certain = !net->cancels,
                            .steps = 1,
                            .number = task->number,
                            .draws = net->joint ? 1 : (rows + net->local - 1) / net->local};
    int64_t before = run->transport->now(node);
    SDR_TRY(run->transport->compute(node, &work, done));
    head->computing = (float)((double)(run->transport->now(node) - before) * 1e-9);
    return SDR_OK;
}

enum sdr_status sdr_push_gradient(struct sdr_node *node)
{
    struct sdr_task *task = node->task;
    if (node->run->network->steps)
        return sdr_own_writes_push(node);
    for (int s = node->servers - 1; s >= 0; s--) { /* what the first one has, all have */
        struct sdr_message message = {.kind = SDR_MESSAGE_GRADIENT,
                                      .to = s,
                                      .version = task->version,
                                      .batch = task->batch,
                                      .body = sdr_body_hold(task->gradient)};
        SDR_TRY(sdr_send(node, &message));
    }
    sdr_body_drop(task->gradient);
    task->gradient = NULL;
    return SDR_OK;
}
