/* Workers that take steps. Each holds the optimizer state, and steps on the values it was sent
   plus its own steps that these values lack: it reads its own writes. The change of a step goes
   to the servers, packed in the order in which the batch first touches its features; servers add
   it. Servers also charge the penalties, by a proximal step on the sum. */
#include "server/own_writes.h"
#include "base/memory.h"
#include "run/run.h"
#include "server/network.h"
#include "server/prefetch.h"
#include "server/sampler.h"
#include "server/server.h"
#include "server/traffic.h"
#include "server/worker.h"

#include <string.h>

enum sdr_status sdr_own_writes_create(struct sdr_node *node)
{
    struct sdr_task *task = node->task;
    const struct sdr_parameters *p = &node->run->parameters;
    for (int s = 0; s < p->rule.optimizer->slots; s++)
        SDR_TRY(
            sdr_allocate(&task->own.slot[s], p->layout->count, sizeof(float), "a worker's state"));
    if (node->run->network->policy.keeps)
        SDR_TRY(
            sdr_allocate(&task->own.local, p->layout->count, sizeof(float), "a worker's values"));
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
    return &task->own.step[number % task->own.room];
}

/* Drops the steps that all values to come will include. */
static void forget_applied(struct sdr_node *node)
{
    struct sdr_task *task = node->task;
    for (; task->own.first < task->own.applied && task->own.first < task->own.taken;
         task->own.first++)
        drop_parts(node, own_step(task, task->own.first)->part);
}

void sdr_own_writes_free(struct sdr_node *node)
{
    struct sdr_task *task = node->task;
    for (uint64_t i = 0; i < task->own.room; i++) {
        drop_parts(node, task->own.step[i].part);
        sdr_release(task->own.step[i].part);
    }
    sdr_forget_patches(task);
    sdr_body_drop(task->own.early.body);
    sdr_release(task->own.patch);
    sdr_release(task->own.step);
    sdr_release(task->own.slot[0]);
    sdr_release(task->own.slot[1]);
    sdr_release(task->own.local);
}

/* Adds one of its own steps, stored as the messages that were sent. */
static enum sdr_status add_own(struct sdr_node *node, struct sdr_workspace *workspace,
                               const struct sdr_own_step *own)
{
    const struct sdr_network *net = node->run->network;
    struct sdr_batch batch;
    SDR_TRY(sdr_network_batch(node->run, own->batch, node->worker, workspace->own_row, &batch));
    for (int s = 0; s < node->servers; s++) {
        struct sdr_wire_facts facts;
        struct sdr_update step;
        SDR_TRY(sdr_wire_read(&net->wire, own->part[s]->data, own->part[s]->bytes, batch.count,
                              net->span[s], &workspace->reader, &facts, &step));
        step.batch = batch;
        SDR_TRY(
            sdr_step_add(&node->run->layout, &workspace->marks, &step, net->span[s], workspace->w));
    }
    return SDR_OK;
}

/* Adds its own steps from the last one added up to a number. */
static enum sdr_status recall(struct sdr_node *node, struct sdr_workspace *workspace,
                              uint64_t *from, uint64_t end)
{
    struct sdr_task *task = node->task;
    for (; *from < end && *from < task->own.taken; (*from)++)
        SDR_TRY(add_own(node, workspace, own_step(task, *from)));
    return SDR_OK;
}

/* Adds the worker's own steps that the values in the workspace lack. */
static enum sdr_status recall_all(struct sdr_node *node, struct sdr_workspace *workspace,
                                  const struct sdr_batch *batch)
{
    struct sdr_task *task = node->task;
    forget_applied(node);
    task->own.seen = task->own.fresh + (task->own.taken - task->own.included);
    if (task->own.kept) /* the values it continues from include them */
        return SDR_OK;
    uint64_t at = task->own.first, sent = task->own.included;
    for (uint32_t i = 0; i < task->own.patches;
         i++) { /* patched values include more of its own steps */
        SDR_TRY(recall(node, workspace, &at, task->own.patch[i].included));
        SDR_TRY(sdr_apply_patch(node, workspace, batch, &task->own.patch[i]));
        sent = task->own.patch[i].included;
    }
    task->own.seen = task->own.fresh + (task->own.taken - sent);
    return recall(node, workspace, &at, task->own.taken);
}

/* Gathers the values that a step on this batch changes, server by server. */
static uint64_t gather(struct sdr_node *node, struct sdr_workspace *workspace,
                       const struct sdr_batch *batch, int server, float *to)
{
    const struct sdr_layout *layout = &node->run->layout;
    return sdr_move_values(layout, &workspace->marks, batch, node->run->network->span[server],
                           workspace->w, to, layout->count, SDR_GATHER);
}

enum sdr_status sdr_own_writes_begin(struct sdr_node *node, struct sdr_workspace *workspace,
                                     const struct sdr_batch *batch)
{
    uint64_t count = 0;
    SDR_TRY(recall_all(node, workspace, batch));
    sdr_parameters_lend(&workspace->stepper, node->task->own.slot);
    for (int s = 0; s < node->servers; s++)
        count += gather(node, workspace, batch, s, workspace->before + count);
    return SDR_OK;
}

void sdr_own_writes_step(struct sdr_node *node, struct sdr_workspace *workspace,
                         const struct sdr_update *update)
{
    struct sdr_task *task = node->task;
    struct sdr_parameters *p = &workspace->stepper;
    sdr_parameters_begin_as(p, ++task->own.steps, task->own.rate);
    sdr_parameters_apply_span(p, update, sdr_all(p->layout));
    sdr_parameters_finish(p, task->own.rate);
}

enum sdr_status sdr_own_writes_end(struct sdr_node *node, struct sdr_workspace *workspace,
                                   const struct sdr_batch *batch,
                                   const struct sdr_wire_facts *facts)
{
    const struct sdr_run *run = node->run;
    const float *before = workspace->before;
    struct sdr_task *task = node->task;
    for (int s = 0; s < node->servers; s++) {
        struct sdr_update step;
        uint64_t count =
            sdr_step_gather(&run->layout, &workspace->marks, batch, run->network->span[s],
                            workspace->w, workspace->packed, workspace->part, &step);
        for (uint64_t i = 0; i < count; i++)
            workspace->packed[i] -= before[i];
        before += count;
        SDR_TRY(sdr_pack_update(node, workspace, s, &step, facts, &task->result[s]));
    }
    if (task->own.local)
        memcpy(task->own.local, workspace->w, run->layout.count * sizeof *task->own.local);
    return SDR_OK;
}

static enum sdr_status room_for_own(struct sdr_node *node)
{
    struct sdr_task *task = node->task;
    uint64_t room = task->own.room ? 2 * task->own.room : 2;
    struct sdr_own_step *larger;
    if (task->own.taken - task->own.first < task->own.room)
        return SDR_OK;
    SDR_TRY(sdr_allocate(&larger, room, sizeof *larger, "steps"));
    for (uint64_t i = task->own.first; i < task->own.taken; i++)
        larger[i % room] = *own_step(task, i);
    sdr_release(task->own.step);
    task->own.step = larger;
    task->own.room = room;
    return SDR_OK;
}

enum sdr_status sdr_own_writes_push(struct sdr_node *node)
{
    struct sdr_task *task = node->task;
    SDR_TRY(room_for_own(node));
    struct sdr_own_step *own = own_step(task, task->own.taken);
    if (!own->part)
        SDR_TRY(sdr_allocate(&own->part, (size_t)node->servers, sizeof *own->part, "steps"));
    own->batch = task->batch;
    task->own.taken++;
    for (int s = node->servers - 1; s >= 0; s--) { /* the coordinator last: what it has, all have */
        own->part[s] = task->result[s];
        task->result[s] = NULL;
        struct sdr_message message = {.kind = SDR_MESSAGE_GRADIENT,
                                      .to = s,
                                      .version = task->own.seen,
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
    struct sdr_wire_facts facts;
    struct sdr_update step;
    SDR_TRY(sdr_read_update(node, gradient, server->workspace.row, &facts, &step));
    sdr_parameters_catch_up(p, &step.batch, server->span);
    if (gradient->weight > 0)
        SDR_TRY(sdr_step_add(p->layout, &server->workspace.marks, &step, server->span, p->value));
    sdr_parameters_finish(p, facts.rate);
    return SDR_OK;
}
