/* Workers that take the steps themselves. Each has the optimizer's state, and steps on the values it was sent
   and its own steps that these do not have in them yet: it reads what it wrote. What a step changed goes to
   the servers, packed in the order in which the batch meets its features; they add it up. Penalties are the
   servers' (a proximal step on the sum). */
#include "base/memory.h"
#include "run/run.h"
#include "server/network.h"

#include <string.h>

enum sdr_status sdr_own_writes_create(struct sdr_node *node)
{
    struct sdr_task *task = node->task;
    const struct sdr_parameters *p = &node->run->parameters;
    SDR_TRY(sdr_allocate(&task->step, (size_t)node->servers, sizeof(struct sdr_body *), "steps"));
    for (int s = 0; s < p->optimizer->slots; s++)
        SDR_TRY(sdr_allocate(&task->slot[s], p->count, sizeof(float), "a worker's state"));
    if (node->run->network->keeps)
        SDR_TRY(sdr_allocate(&task->local, p->count, sizeof(float), "a worker's values"));
    return SDR_OK;
}

static void drop_parts(struct sdr_node *node, struct sdr_body **part)
{
    for (int s = 0; part && s < node->servers; s++) {
        sdr_body_drop(part[s]);
        part[s] = NULL;
    }
}

static struct sdr_own_step *own_step(struct sdr_task *task, uint64_t number)
{
    return &task->own[number % task->own_room];
}

/* Those that all values to come have in them are not needed any more. */
static void forget_applied(struct sdr_node *node)
{
    struct sdr_task *task = node->task;
    for (; task->first < task->applied && task->first < task->taken; task->first++)
        drop_parts(node, own_step(task, task->first)->part);
}

void sdr_own_writes_free(struct sdr_node *node)
{
    struct sdr_task *task = node->task;
    for (uint64_t i = 0; i < task->own_room; i++) {
        drop_parts(node, task->own[i].part);
        sdr_release(task->own[i].part);
    }
    drop_parts(node, task->step);
    sdr_forget_patches(task);
    sdr_body_drop(task->early.body);
    sdr_release(task->patch);
    sdr_release(task->own);
    sdr_release(task->step);
    sdr_release(task->slot[0]);
    sdr_release(task->slot[1]);
    sdr_release(task->local);
}

/* Values of a server that a step on this batch changes. */
static uint64_t pass(struct sdr_node *node, int server, struct sdr_workspace *workspace,
                     const struct sdr_batch *batch, float *w, float *packed, enum sdr_pass how)
{
    const struct sdr_network *net = node->run->network;
    const struct sdr_parameters *p = &node->run->parameters;
    uint32_t cols = p->block[0].cols, first = net->cut[server], end = net->cut[server + 1];
    uint64_t spans[2][2] = {{(uint64_t)first * cols, (uint64_t)(end - first) * cols}, {0, 0}};
    uint64_t count = 0;
    if (!batch->rows->dense) {
        count = sdr_pass_values(workspace, batch, first, end, cols, w, packed, how);
        spans[0][1] = 0;
    }
    if (server == 0 && p->blocks > 1) {
        spans[1][0] = p->block[1].offset;
        spans[1][1] = sdr_values_behind(p);
    }
    for (int i = 0; i < 2; i++) {
        float *value = w + spans[i][0], *place = packed + count;
        for (uint64_t k = 0; k < spans[i][1]; k++)
            if (how == SDR_PACK)
                place[k] = value[k];
            else
                value[k] = how == SDR_ADD ? value[k] + place[k] : place[k];
        count += spans[i][1];
    }
    return count;
}

static float *changes(struct sdr_body *body)
{
    const struct sdr_gradient_head *head =
        (const struct sdr_gradient_head *)(const void *)body->data;
    return (float *)(void *)(body->data + sdr_dloss_offset(head->leaves));
}

/* Its own steps from where it has got to, up to a number. */
static enum sdr_status recall(struct sdr_node *node, struct sdr_workspace *workspace,
                              uint64_t *from, uint64_t end)
{
    struct sdr_task *task = node->task;
    for (; *from < end && *from < task->taken; (*from)++) {
        const struct sdr_own_step *own = own_step(task, *from);
        struct sdr_batch batch;
        SDR_TRY(sdr_network_batch(node->run, own->batch, node->worker, workspace->own_row, &batch));
        for (int s = 0; s < node->servers; s++)
            pass(node, s, workspace, &batch, workspace->w, changes(own->part[s]), SDR_ADD);
    }
    return SDR_OK;
}

/* The values on the desk get the worker's own steps that they lack. */
static enum sdr_status recall_all(struct sdr_node *node, struct sdr_workspace *workspace,
                                  const struct sdr_batch *batch)
{
    struct sdr_task *task = node->task;
    forget_applied(node);
    task->seen = task->fresh + (task->taken - task->included);
    if (task->kept) /* they are in what it goes on from */
        return SDR_OK;
    uint64_t at = task->first, sent = task->included;
    for (uint32_t i = 0; i < task->patches; i++) { /* values that have more of them in them */
        SDR_TRY(recall(node, workspace, &at, task->patch[i].included));
        sdr_apply_patch(node, workspace, batch, &task->patch[i]);
        sent = task->patch[i].included;
    }
    task->seen = task->fresh + (task->taken - sent);
    return recall(node, workspace, &at, task->taken);
}

/* Values before the steps, for every server. */
static enum sdr_status pack_before(struct sdr_node *node, struct sdr_workspace *workspace,
                                   const struct sdr_batch *batch)
{
    struct sdr_task *task = node->task;
    const struct sdr_gradient_head *head =
        (const struct sdr_gradient_head *)(const void *)task->gradient->data;
    for (int s = 0; s < node->servers; s++) {
        uint32_t leaves = s == 0 ? head->leaves : 0; /* losses are the first server's */
        uint64_t count = pass(node, s, workspace, batch, workspace->w, workspace->packed, SDR_PACK);
        sdr_body_drop(task->step[s]);
        task->step[s] = NULL;
        SDR_TRY(sdr_body_create(node->run->network->pool,
                                sdr_dloss_offset(leaves) + count * sizeof(float), &task->step[s]));
        struct sdr_gradient_head *own = (struct sdr_gradient_head *)(void *)task->step[s]->data;
        *own = *head;
        own->leaves = leaves;
        memcpy(changes(task->step[s]), workspace->packed, count * sizeof(float));
    }
    return SDR_OK;
}

enum sdr_status sdr_own_writes_begin(struct sdr_node *node, struct sdr_workspace *workspace,
                                     const struct sdr_batch *batch)
{
    SDR_TRY(recall_all(node, workspace, batch));
    sdr_parameters_lend(&workspace->stepper, node->task->slot);
    return pack_before(node, workspace, batch);
}

void sdr_own_writes_step(struct sdr_node *node, struct sdr_workspace *workspace,
                         const struct sdr_batch *batch, const float *u)
{
    struct sdr_run *run = node->run;
    struct sdr_task *task = node->task;
    struct sdr_parameters *p = &workspace->stepper;
    struct sdr_update update = sdr_update_of(run, u, batch);
    sdr_parameters_begin_as(p, ++task->steps, task->rate);
    sdr_parameters_apply_range(p, &update, 0, p->block[0].rows);
    if (p->blocks > 1)
        sdr_parameters_apply_intercept(p, &update, task->rate);
    sdr_parameters_finish(p, task->rate);
}

void sdr_own_writes_end(struct sdr_node *node, struct sdr_workspace *workspace,
                        const struct sdr_batch *batch)
{
    struct sdr_task *task = node->task;
    const struct sdr_gradient_head *head =
        (const struct sdr_gradient_head *)(const void *)task->gradient->data;
    for (int s = 0; s < node->servers; s++) {
        struct sdr_gradient_head *own = (struct sdr_gradient_head *)(void *)task->step[s]->data;
        float *change = changes(task->step[s]);
        uint64_t count = pass(node, s, workspace, batch, workspace->w, workspace->packed, SDR_PACK);
        for (uint64_t i = 0; i < count; i++)
            change[i] = workspace->packed[i] - change[i];
        memcpy(own->loss_sum, head->loss_sum, own->leaves * sizeof *own->loss_sum);
    }
    if (task->local)
        memcpy(task->local, workspace->w, node->run->parameters.count * sizeof *task->local);
}

static enum sdr_status room_for_own(struct sdr_node *node)
{
    struct sdr_task *task = node->task;
    uint64_t room = task->own_room ? 2 * task->own_room : 2;
    struct sdr_own_step *larger;
    if (task->taken - task->first < task->own_room)
        return SDR_OK;
    SDR_TRY(sdr_allocate(&larger, room, sizeof *larger, "steps"));
    for (uint64_t i = task->first; i < task->taken; i++)
        larger[i % room] = *own_step(task, i);
    sdr_release(task->own);
    task->own = larger;
    task->own_room = room;
    return SDR_OK;
}

enum sdr_status sdr_own_writes_push(struct sdr_node *node)
{
    struct sdr_task *task = node->task;
    float computing =
        ((const struct sdr_gradient_head *)(const void *)task->gradient->data)->computing;
    SDR_TRY(room_for_own(node));
    struct sdr_own_step *own = own_step(task, task->taken);
    if (!own->part)
        SDR_TRY(sdr_allocate(&own->part, (size_t)node->servers, sizeof *own->part, "steps"));
    own->batch = task->batch;
    task->taken++;
    for (int s = node->servers - 1; s >= 0; s--) { /* what the first one has, all have */
        ((struct sdr_gradient_head *)(void *)task->step[s]->data)->computing = computing;
        own->part[s] = task->step[s];
        task->step[s] = NULL;
        struct sdr_message message = {.kind = SDR_MESSAGE_GRADIENT,
                                      .to = s,
                                      .version = task->seen,
                                      .batch = task->batch,
                                      .body = sdr_body_hold(own->part[s])};
        SDR_TRY(sdr_send(node, &message));
    }
    return SDR_OK;
}

enum sdr_status sdr_server_add_step(struct sdr_node *node, const struct sdr_gradient *gradient)
{
    struct sdr_server *server = sdr_server_of(node);
    struct sdr_parameters *p = server->parameters;
    const struct sdr_gradient_head *head =
        (const struct sdr_gradient_head *)(const void *)gradient->body->data;
    struct sdr_batch batch;
    SDR_TRY(sdr_network_batch(node->run, gradient->batch, gradient->worker, server->workspace.row,
                              &batch));
    sdr_parameters_catch_up_range(p, &batch, server->first, server->end);
    if (gradient->weight > 0)
        pass(node, node->server, &server->workspace, &batch, p->value, changes(gradient->body),
             SDR_ADD);
    sdr_parameters_finish(p, head->rate);
    return SDR_OK;
}
