/* A worker's task: receiving values, computing, sending the update. */
#include "server/worker.h"
#include "base/memory.h"
#include "run/run.h"
#include "server/network.h"
#include "server/own_writes.h"
#include "server/prefetch.h"
#include "server/sampler.h"
#include "server/traffic.h"

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

/* Stores the values of a task, or a piece of them. Pieces older than those that have arrived are
   obsolete. */
static enum sdr_status take_piece(struct sdr_node *node, const struct sdr_message *message)
{
    struct sdr_task *task = node->task;
    bool same = task->batch == message->batch && task->version == message->version;
    bool steps = node->run->network->policy.steps;
    if (steps && ((uint64_t)message->about > task->own.taken || !(message->value >= 0))) {
        sdr_body_drop(message->body);
        return sdr_fail(SDR_RUNTIME, "server %d sent a task that makes no sense", message->from);
    }
    if (message->version < task->version) {
        sdr_body_drop(message->body);
        return SDR_OK;
    }
    if (message->flags & SDR_PATCH)
        return sdr_keep_patch(task, message);
    task->own.kept = message->flags & SDR_KEEP;
    if (task->own.kept) {
        task->batch = message->batch;
        task->own.rate = message->value;
        task->own.applied = (uint64_t)message->about;
        task->arrived = node->servers;
        return SDR_OK;
    }
    if (!same || task->arrived == 0) {
        sdr_forget_task(node);
        task->batch = message->batch;
        task->version = task->own.fresh = message->version;
        task->sparse = message->flags & SDR_SPARSE;
    }
    if (message->from == 0) {
        task->own.rate = message->value;
        task->own.included = task->own.applied = (uint64_t)message->about;
    }
    task->arrived++;
    sdr_body_drop(task->piece[message->from]);
    task->piece[message->from] = message->body;
    return SDR_OK;
}

static enum sdr_status wrong_count(int server, uint64_t count, uint64_t wanted)
{
    return sdr_fail(SDR_RUNTIME, "server %d sent %llu values in place of %llu", server,
                    (unsigned long long)count, (unsigned long long)wanted);
}

/* Whether a message is of the next task, sent ahead. */
static bool is_of_another(const struct sdr_node *node, const struct sdr_message *message)
{
    const struct sdr_task *task = node->task;
    return task->arrived == node->servers && task->batch != message->batch &&
           !(message->flags & SDR_PATCH);
}

static enum sdr_status next_message(struct sdr_node *node, struct sdr_message *message)
{
    struct sdr_task *task = node->task;
    if (task->own.early.kind == SDR_MESSAGE_NONE)
        return node->run->use.transport->receive(node, message);
    *message = task->own.early;
    task->own.early = (struct sdr_message){0};
    return SDR_OK;
}

enum sdr_status sdr_await_task(struct sdr_node *node, bool *more)
{
    const struct sdr_transport *transport = node->run->use.transport;
    int64_t before = transport->now(node);
    struct sdr_task *task = node->task;
    task->arrived = 0; /* pieces of the last task are obsolete */
    sdr_forget_patches(task);
    do {
        struct sdr_message message;
        SDR_TRY(next_message(node, &message));
        *more = message.kind != SDR_MESSAGE_STOP;
        if (*more && is_of_another(node, &message)) {
            task->own.early = message;
            break;
        }
        if (*more)
            SDR_TRY(take_piece(node, &message));
        else
            sdr_body_drop(message.body);
    } while (*more && (task->arrived < node->servers ||
                       (node->run->network->policy.eager && transport->any(node))));
    task->number++;
    if (*more) /* time waiting for the end of the run does not count */
        task->waited += transport->now(node) - before;
    return SDR_OK;
}

/* Assembles a subset: the batch by itself, with the values that its rows read. */
static enum sdr_status assemble_subset(struct sdr_node *node, struct sdr_subset *subset,
                                       const struct sdr_batch *batch)
{
    const struct sdr_run *run = node->run;
    SDR_TRY(sdr_subset_make(subset, &run->problem, &run->layout, batch));
    for (int s = 0; s < node->servers; s++) {
        struct sdr_body *piece = node->task->piece[s];
        uint64_t count = piece ? piece->bytes / sizeof(float) : 0;
        uint64_t placed = sdr_subset_scatter(subset, &run->layout, run->network->span[s],
                                             piece ? (float *)(void *)piece->data : NULL, count);
        if (placed != count)
            return wrong_count(s, count, placed);
    }
    return SDR_OK;
}

/* Copies a piece of the values, from the server of a span. */
static enum sdr_status place_piece(struct sdr_node *node, struct sdr_workspace *workspace,
                                   const struct sdr_batch *batch, int server)
{
    const struct sdr_network *net = node->run->network;
    const struct sdr_task *task = node->task;
    const struct sdr_body *piece = task->piece[server];
    struct sdr_span span = net->span[server];
    uint64_t count = piece ? piece->bytes / sizeof(float) : 0, moved = span.end - span.first;
    float *from = piece ? (float *)(void *)piece->data : NULL;
    if (task->sparse)
        moved = sdr_move_values(&node->run->layout, &workspace->marks, batch, span, workspace->w,
                                from, count, SDR_SCATTER);
    else if (moved == count)
        memcpy(workspace->w + span.first, from, count * sizeof *from);
    return moved == count ? SDR_OK : wrong_count(server, count, moved);
}

static enum sdr_status assemble_view(struct sdr_node *node, struct sdr_workspace *workspace,
                                     const struct sdr_batch *batch, const float **w)
{
    const struct sdr_network *net = node->run->network;
    const struct sdr_task *task = node->task;
    uint64_t count = node->run->layout.count;
    *w = workspace->w;
    if (task->own.kept) {
        memcpy(workspace->w, task->own.local, count * sizeof *workspace->w);
        return SDR_OK;
    }
    if (node->servers == 1 && !task->sparse && !net->policy.steps && task->piece[0] &&
        task->piece[0]->bytes == count * sizeof(float)) { /* one piece: used in place */
        *w = (const float *)(const void *)task->piece[0]->data;
        return SDR_OK;
    }
    for (int s = 0; s < node->servers; s++)
        SDR_TRY(place_piece(node, workspace, batch, s));
    return SDR_OK;
}

enum sdr_status sdr_pack_update(struct sdr_node *node, struct sdr_workspace *workspace, int server,
                                const struct sdr_update *update, const struct sdr_wire_facts *facts,
                                struct sdr_body **body)
{
    struct sdr_network *net = node->run->network;
    struct sdr_wire_facts own = *facts;
    uint64_t seed = node->task->batch * (uint64_t)node->workers + (uint64_t)node->worker;
    own.leaves = server == 0 ? facts->leaves : 0; /* only the coordinator counts losses */
    sdr_body_drop(*body);
    *body = NULL;
    SDR_TRY(sdr_body_create(
        net->pool, sdr_wire_bound(&net->wire, update, net->span[server], own.leaves), body));
    return sdr_wire_write(&net->wire, update, net->span[server], &own, node->task->residual, seed,
                          &workspace->writer, (*body)->data, &(*body)->bytes);
}

/* Steps or gradients per task: one, except with local steps. */
static uint32_t steps_of(const struct sdr_network *net, uint32_t rows)
{
    uint32_t local = net->policy.local;
    return rows > 0 && rows <= local ? 1 : (rows + local - 1) / local;
}

static enum sdr_status pack_for_all(struct sdr_node *node, struct sdr_workspace *workspace,
                                    const struct sdr_update *update,
                                    const struct sdr_wire_facts *facts, const atomic_uint *stop)
{
    for (int s = 0; s < node->servers && !atomic_load(stop); s++)
        SDR_TRY(sdr_pack_update(node, workspace, s, update, facts, &node->task->result[s]));
    return SDR_OK;
}

/* One gradient of a batch, from the received values. */
static enum sdr_status compute_one(struct sdr_node *node, struct sdr_workspace *workspace,
                                   const struct sdr_batch *batch, const atomic_uint *stop,
                                   struct sdr_wire_facts *facts)
{
    struct sdr_run *run = node->run;
    struct sdr_network *net = run->network;
    struct sdr_subset *subset = net->policy.compact ? &workspace->subset : NULL;
    struct sdr_view view = {&run->problem, run->layout.block, NULL, node->task->version};
    struct sdr_update update = {.sense = run->use.kind->sense};
    uint32_t first =
        (uint32_t)(net->policy.joint ? batch->at % net->policy.batch / SDR_LEAF_ROWS : 0);
    if (subset) {
        SDR_TRY(assemble_subset(node, subset, batch));
        view.problem = &subset->problem;
        view.block = subset->layout.block;
        view.w = subset->w;
    } else {
        SDR_TRY(assemble_view(node, workspace, batch, &view.w));
    }
    if (node->task->sparse) /* the next batch needs others */
        sdr_forget_task(node);
    facts->leaves = sdr_leaves(batch->count);
    facts->losses = workspace->losses;
    if (batch->count)
        SDR_TRY(sdr_batch_gradient(&workspace->space, &view, subset ? &subset->batch : batch, first,
                                   workspace->losses, stop, &update));
    if (subset)
        SDR_TRY(sdr_subset_translate(subset, batch, &update));
    return pack_for_all(node, workspace, &update, facts, stop);
}

/* Takes local steps on a batch, one per `local` rows. */
static enum sdr_status compute_steps(struct sdr_node *node, struct sdr_workspace *workspace,
                                     const struct sdr_batch *batch, const atomic_uint *stop,
                                     struct sdr_wire_facts *facts)
{
    struct sdr_run *run = node->run;
    uint32_t local = run->network->policy.local;
    struct sdr_view view = {&run->problem, run->layout.block, NULL, node->task->version};
    SDR_TRY(assemble_view(node, workspace, batch, &view.w));
    if (node->task->sparse)
        sdr_forget_task(node);
    SDR_TRY(sdr_own_writes_begin(node, workspace, batch));
    facts->losses = workspace->losses;
    for (uint32_t from = 0; from < batch->count && !atomic_load(stop); from += local) {
        struct sdr_batch part = *batch;
        struct sdr_update update;
        part.row += from;
        part.at += from;
        part.count = batch->count - from < local ? batch->count - from : local;
        part.of = part.count;
        SDR_TRY(sdr_batch_gradient(&workspace->space, &view, &part, 0,
                                   workspace->losses + facts->leaves, stop, &update));
        facts->leaves += sdr_leaves(part.count);
        if (!atomic_load(stop))
            sdr_own_writes_step(node, workspace, &update);
    }
    return sdr_own_writes_end(node, workspace, batch, facts);
}

static enum sdr_status compute(void *argument, uint32_t step, const atomic_uint *stop)
{
    struct sdr_node *node = argument;
    struct sdr_run *run = node->run;
    struct sdr_network *net = run->network;
    struct sdr_task *task = node->task;
    struct sdr_workspace *workspace = &net->workspace[net->workspaces == 1 ? 0 : node->worker];
    struct sdr_batch batch;
    (void)step;
    SDR_TRY(sdr_network_batch(run, task->batch, node->worker, workspace->row, &batch));
    sdr_fetch_leaf(&run->problem, &batch);
    struct sdr_wire_facts facts = {.rows = batch.count,
                                   .rate = task->own.rate * steps_of(net, batch.count)};
    return net->policy.steps ? compute_steps(node, workspace, &batch, stop, &facts)
                             : compute_one(node, workspace, &batch, stop, &facts);
}

enum sdr_status sdr_compute_gradient(struct sdr_node *node, bool *done)
{
    struct sdr_run *run = node->run;
    struct sdr_network *net = run->network;
    uint32_t rows = sdr_network_rows(run, node->task->batch);
    uint32_t draws = net->policy.joint ? 1 : steps_of(net, rows);
    struct sdr_work work = {.run = compute,
                            .argument = node,
                            .certain = !net->policy.cancels,
                            .steps = 1,
                            .number = node->task->number * draws,
                            .draws = draws};
    int64_t before = run->use.transport->now(node);
    SDR_TRY(run->use.transport->compute(node, &work, done));
    node->task->computing = (float)((double)(run->use.transport->now(node) - before) * 1e-9);
    return SDR_OK;
}

enum sdr_status sdr_push_gradient(struct sdr_node *node)
{
    struct sdr_task *task = node->task;
    for (int s = 0; s < node->servers; s++)
        sdr_wire_set_computing(task->result[s]->data, task->computing);
    if (node->run->network->policy.steps)
        return sdr_own_writes_push(node);
    for (int s = node->servers - 1; s >= 0; s--) { /* the coordinator last: what it has, all have */
        struct sdr_message message = {.kind = SDR_MESSAGE_GRADIENT,
                                      .to = s,
                                      .version = task->version,
                                      .batch = task->batch,
                                      .body = task->result[s]};
        task->result[s] = NULL;
        SDR_TRY(sdr_send(node, &message));
    }
    return SDR_OK;
}
