/* Values sent ahead (ESSP and managed communication: Wei et al., 2015). While a worker is busy,
   the server sends it the values of its next batch, and patches as they change: the worker
   continues without asking. A link may have a budget in bytes per second; then the largest
   relative changes go first. */
#include "server/prefetch.h"
#include "base/memory.h"
#include "run/run.h"
#include "server/coordinator.h"
#include "server/network.h"
#include "server/server.h"
#include "server/traffic.h"
#include "server/worker.h"
#include "team/accounting.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Limit of patches per batch: they would pile up at a very slow worker. */
enum { PATCHES_MOST = 64 };

/* ---- server ---- */
static void refill(struct sdr_assignment *of, double budget, double size, int64_t now)
{
    double most = fmax(0.1 * budget, size); /* capacity of the bucket: a tenth of a second */
    of->tokens = fmin(of->tokens + budget * (double)(now - of->filled) * 1e-9, most);
    of->filled = now;
}

static enum sdr_status send_prefetch(struct sdr_node *node, int worker, struct sdr_message *message)
{
    struct sdr_network *net = node->run->network;
    struct sdr_assignment *of = &net->lead.assignment[worker];
    message->kind = SDR_MESSAGE_TASK;
    message->to = net->servers + worker;
    message->about = (int32_t)of->steps;
    message->batch = of->next;
    of->next_bytes += (uint32_t)sdr_message_bytes(message);
    of->tokens -= (double)sdr_message_bytes(message);
    return sdr_send(node, message);
}

struct change {
    float size; /* relative to the value */
    uint32_t place;
};

static int larger_first(const void *a, const void *b)
{
    const struct change *x = a, *y = b;
    return x->size != y->size ? (x->size < y->size) - (x->size > y->size)
                              : (x->place > y->place) - (x->place < y->place);
}

static uint64_t find_changes(const float *was, const float *now, uint64_t count,
                             struct change *change)
{
    uint64_t changes = 0;
    for (uint64_t i = 0; i < count; i++)
        if (was[i] != now[i])
            change[changes++] =
                (struct change){fabsf(now[i] - was[i]) / (fabsf(was[i]) + 1e-6f), (uint32_t)i};
    return changes;
}

/* Packs the changes since the values were sent, within the budget: indices, then values. `sent`
   is updated to what the worker then has. */
static enum sdr_status patch(struct sdr_node *node, int worker, struct sdr_body *values,
                             double budget)
{
    struct sdr_network *net = node->run->network;
    struct sdr_assignment *of = &net->lead.assignment[worker];
    uint64_t count = values->bytes / sizeof(float), some;
    const float *now = (const float *)(const void *)values->data;
    struct sdr_message message = {.flags = SDR_PATCH, .version = of->version};
    struct change *change;
    struct sdr_body *had;
    SDR_TRY(sdr_allocate(&change, count, sizeof *change, "changes"));
    uint64_t changes =
        find_changes((const float *)(const void *)of->sent->data, now, count, change);
    double room = (of->tokens - SDR_HEADER_BYTES) / 8;
    some = budget > 0 && room < (double)changes ? (uint64_t)fmax(room, 0) : changes;
    if (some < changes)
        qsort(change, changes, sizeof *change, larger_first);
    message.value = (double)(some < changes ? of->version : sdr_current_version(node));
    enum sdr_status status = some ? sdr_body_create(net->pool, some * 8, &message.body) : SDR_OK;
    if (status == SDR_OK && some)
        status = sdr_body_create(net->pool, values->bytes, &had);
    if (status == SDR_OK && some) {
        uint32_t *place = (uint32_t *)(void *)message.body->data;
        float *value = (float *)(void *)(place + some), *has = (float *)(void *)had->data;
        memcpy(has, of->sent->data, values->bytes);
        for (uint64_t i = 0; i < some; i++) {
            place[i] = change[i].place;
            has[place[i]] = value[i] = now[place[i]];
        }
        sdr_body_drop(of->sent);
        of->sent = had;
        of->patches++;
        status = send_prefetch(node, worker, &message);
    } else {
        sdr_body_drop(message.body);
    }
    sdr_release(change);
    return status;
}

enum sdr_status sdr_prefetch(struct sdr_node *node, int worker, double budget)
{
    struct sdr_network *net = node->run->network;
    struct sdr_assignment *of = &net->lead.assignment[worker];
    struct sdr_body *values;
    /* At the end of the run idle workers get the remaining batches first. */
    if (!of->prefetched && sdr_batch_queue_waiting(&net->lead.queue) < (uint64_t)net->workers)
        return SDR_OK;
    uint64_t number = of->prefetched ? of->next : sdr_next_number(net);
    enum sdr_status status = sdr_current_values(node, worker, number, &values);
    if (status != SDR_OK)
        return status;
    if (budget > 0)
        refill(of, budget, (double)values->bytes, node->run->use.transport->now(node));
    if (of->prefetched) {
        status = of->patches < PATCHES_MOST ? patch(node, worker, values, budget) : SDR_OK;
        sdr_body_drop(values);
        return status;
    }
    of->next = number;
    if (budget > 0 && of->tokens < (double)values->bytes) { /* over budget: the worker will ask */
        sdr_body_drop(values);
        return sdr_return_number(net, number);
    }
    of->prefetched = true;
    of->patches = 0;
    of->version = sdr_current_version(node);
    of->next_bytes = 0;
    sdr_body_drop(of->sent);
    of->sent = sdr_body_hold(values);
    struct sdr_message message = {.flags = net->policy.sparse ? SDR_SPARSE : 0,
                                  .version = of->version,
                                  .value = sdr_rate_at(node->run, node->run->progress.at),
                                  .body = values};
    return send_prefetch(node, worker, &message);
}

/* ---- worker ---- */
enum sdr_status sdr_keep_patch(struct sdr_task *task, const struct sdr_message *message)
{
    if (task->arrived == 0 || task->batch != message->batch || task->version != message->version) {
        sdr_body_drop(message->body); /* of a batch that has begun meanwhile */
        return SDR_OK;
    }
    enum sdr_status status = sdr_grow(&task->own.patch, NULL, task->own.patches,
                                      &task->own.patch_room, sizeof *task->own.patch, "changes");
    if (status != SDR_OK) {
        sdr_body_drop(message->body);
        return status;
    }
    task->own.patch[task->own.patches++] =
        (struct sdr_patch){message->body, (uint64_t)message->about};
    task->own.fresh = (uint64_t)message->value;
    return SDR_OK;
}

void sdr_forget_patches(struct sdr_task *task)
{
    while (task->own.patches)
        sdr_body_drop(task->own.patch[--task->own.patches].body);
}

enum sdr_status sdr_apply_patch(struct sdr_node *node, struct sdr_workspace *workspace,
                                const struct sdr_batch *batch, const struct sdr_patch *patch)
{
    const struct sdr_layout *layout = &node->run->layout;
    bool sparse = node->run->network->policy.sparse;
    uint64_t count = patch->body ? patch->body->bytes / 8 : 0, values = layout->count;
    const uint32_t *place = count ? (const uint32_t *)(const void *)patch->body->data : NULL;
    const float *value = (const float *)(const void *)(place + count);
    float *to = sparse ? workspace->packed : workspace->w;
    if (sparse) /* indices count the values that the batch touches */
        values = sdr_move_values(layout, &workspace->marks, batch, sdr_all(layout), workspace->w,
                                 to, layout->count, SDR_GATHER);
    for (uint64_t i = 0; i < count; i++)
        if (place[i] >= values)
            return sdr_fail(SDR_RUNTIME, "the server sent a change of a value that is not there");
    for (uint64_t i = 0; i < count; i++)
        to[place[i]] = value[i];
    if (sparse)
        sdr_move_values(layout, &workspace->marks, batch, sdr_all(layout), workspace->w, to,
                        layout->count, SDR_SCATTER);
    return SDR_OK;
}
