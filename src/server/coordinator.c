/* The coordinator: assigns batches, accepts gradients, decides what is applied. Called by the
   server loops of strategies. */
#include "server/coordinator.h"
#include "base/memory.h"
#include "run/checkpoint.h"
#include "run/run.h"
#include "server/combine.h"
#include "server/membership.h"
#include "server/network.h"
#include "server/placement.h"
#include "server/server.h"
#include "server/traffic.h"
#include "team/accounting.h"

#include <string.h>

uint64_t sdr_current_version(const struct sdr_node *node)
{
    return node->run->parameters.version;
}

uint64_t sdr_gradients_left(const struct sdr_node *node)
{
    const struct sdr_network *net = node->run->network;
    return net->lead.queue.unapplied * (net->policy.joint ? net->policy.quorum : 1);
}

uint64_t sdr_quorum(const struct sdr_node *node)
{
    uint64_t quorum = node->run->network->policy.quorum, left = sdr_gradients_left(node);
    return quorum < left ? quorum : left;
}

double sdr_epochs_done(const struct sdr_node *node)
{
    const struct sdr_run *run = node->run;
    return (double)run->progress.epoch + (double)run->progress.at * run->pace.per_row;
}

bool sdr_is_busy(const struct sdr_node *node, int worker)
{
    return node->run->network->lead.assignment[worker].busy;
}

bool sdr_is_gone(const struct sdr_node *node, int worker)
{
    return node->run->network->lead.assignment[worker].gone;
}

/* A joint batch has one number for all workers; the queue advances when it is applied. */
uint64_t sdr_next_number(struct sdr_network *net)
{
    return net->policy.joint ? net->lead.queue.next : sdr_batch_queue_take(&net->lead.queue);
}

enum sdr_status sdr_return_number(struct sdr_network *net, uint64_t number)
{
    return net->policy.joint ? SDR_OK : sdr_batch_queue_return(&net->lead.queue, number);
}

static enum sdr_status number_applied(struct sdr_network *net, uint64_t number)
{
    if (net->policy.joint)
        sdr_batch_queue_take(&net->lead.queue);
    return sdr_batch_queue_mark_applied(&net->lead.queue, number);
}

uint64_t sdr_tasks_given(const struct sdr_node *node, int worker)
{
    return node->run->network->lead.assignment[worker].tasks;
}

static enum sdr_status assign(struct sdr_node *node, int worker, uint8_t flags)
{
    struct sdr_network *net = node->run->network;
    struct sdr_assignment *of = &net->lead.assignment[worker];
    flags |= of->busy ? SDR_URGENT : 0;
    if (of->gone)
        return SDR_OK;
    if (of->busy)
        SDR_TRY(sdr_return_number(net, of->batch));
    net->lead.idle -= of->idle;
    of->idle = sdr_batch_queue_waiting(&net->lead.queue) == 0;
    net->lead.idle += of->idle;
    if (of->idle)
        return SDR_OK;
    of->waited_for = !of->busy && net->lead.last != worker ? net->lead.last : -1;
    of->assigned = node->run->use.transport->now(node);
    if (of->busy) /* it has not waited */
        of->came = of->assigned;
    of->batch = sdr_next_number(net);
    of->version = sdr_current_version(node);
    of->busy = true;
    of->tasks++;
    for (int s = 1; s < net->servers && !(flags & SDR_KEEP); s++) {
        struct sdr_message message = {.kind = SDR_MESSAGE_ANSWER,
                                      .flags = flags,
                                      .to = s,
                                      .about = worker,
                                      .version = of->version,
                                      .batch = of->batch,
                                      .value = node->run->parameters.penalty_due};
        SDR_TRY(sdr_send(node, &message));
    }
    return sdr_send_task(node, worker, of->batch, flags);
}

enum sdr_status sdr_assign(struct sdr_node *node, int worker)
{
    return assign(node, worker, 0);
}

enum sdr_status sdr_assign_kept(struct sdr_node *node, int worker)
{
    return assign(node, worker, SDR_KEEP);
}

/* Assigns returned batches to workers that found the queue empty. */
static enum sdr_status assign_idle(struct sdr_node *node)
{
    struct sdr_network *net = node->run->network;
    for (int w = 0;
         w < net->workers && net->lead.idle > 0 && sdr_batch_queue_waiting(&net->lead.queue) > 0;
         w++)
        if (net->lead.assignment[w].idle)
            SDR_TRY(sdr_assign(node, w));
    return SDR_OK;
}

static enum sdr_status drop_everywhere(struct sdr_node *node, int worker, uint64_t batch,
                                       uint64_t version)
{
    struct sdr_network *net = node->run->network;
    net->lead.dropped++;
    for (int s = 1; s < net->servers; s++) {
        struct sdr_message message = {
            .kind = SDR_MESSAGE_DROP, .to = s, .about = worker, .version = version, .batch = batch};
        SDR_TRY(sdr_send(node, &message));
    }
    return SDR_OK;
}

/* Accepts a gradient from its worker: fills the ledger record, and updates the worker's
   assignment. */
static enum sdr_status accept_gradient(struct sdr_node *node, const struct sdr_message *message,
                                       struct sdr_gradient *gradient)
{
    struct sdr_network *net = node->run->network;
    int worker = message->from - net->servers;
    struct sdr_assignment *assigned = &net->lead.assignment[worker];
    struct sdr_wire_facts facts;
    if (!message->body || !sdr_wire_facts_of(message->body->data, message->body->bytes, &facts)) {
        sdr_body_drop(message->body);
        return sdr_fail(SDR_RUNTIME, "worker %d sent a gradient that cannot be read", worker);
    }
    int64_t now = node->run->use.transport->now(node);
    double under_way = (double)(now - assigned->assigned) * 1e-9 - facts.computing;
    *gradient = (struct sdr_gradient){
        .worker = worker,
        .batch = message->batch,
        .version = message->version,
        .body = message->body,
        .weight = 1,
        .record = {.worker = (uint32_t)worker,
                   .waited_for = assigned->waited_for,
                   .read = message->version,
                   .batch = message->batch,
                   .bytes = assigned->bytes + (uint32_t)sdr_message_bytes(message),
                   .computing = facts.computing,
                   .travelling = (float)(under_way > 0 ? under_way : 0),
                   .waiting = (float)((double)(assigned->assigned - assigned->came) * 1e-9)}};
    assigned->busy = assigned->prefetched; /* it continues with the prefetched task */
    assigned->came = now;
    net->lead.last = worker;
    if (assigned->prefetched) {
        assigned->prefetched = false;
        assigned->batch = assigned->next;
        assigned->bytes = assigned->next_bytes;
        assigned->assigned = now;
        assigned->waited_for = -1;
    }
    return SDR_OK;
}

/* A worker is lost: its batches return to the queue. */
static enum sdr_status lose(struct sdr_node *node, const struct sdr_message *message,
                            struct sdr_gradient *gradient)
{
    struct sdr_network *net = node->run->network;
    struct sdr_assignment *of = &net->lead.assignment[message->about];
    *gradient = (struct sdr_gradient){.worker = message->about, .lost = true};
    if (of->gone) /* it was told before */
        return SDR_OK;
    if (of->busy)
        SDR_TRY(sdr_return_number(net, of->batch));
    if (of->prefetched)
        SDR_TRY(sdr_return_number(net, of->next));
    sdr_member_lose(node, message->about);
    sdr_note(&node->run->options, "worker %d is gone: process %llu was silent for %.1f s",
             message->about, (unsigned long long)message->batch, message->value);
    return SDR_OK;
}

enum sdr_status sdr_go_on_without(struct sdr_node *node, const struct sdr_gradient *lost,
                                  uint64_t needed)
{
    struct sdr_run *run = node->run;
    int left = run->network->lead.alive;
    const char *rest = "";
    if ((uint64_t)left >= needed)
        return SDR_OK;
    if (run->options.settings.run && run->process == 0) {
        SDR_TRY(sdr_shards_sync(run));
        rest =
            sdr_checkpoint_write(run) != SDR_OK ? "; the checkpoint could not be written"
            : run->options.settings.deterministic
                ? "; a checkpoint was written, go on with --resume"
                : "; a checkpoint was written, go on with --resume and as many workers as before";
    }
    return sdr_fail(SDR_PEER_LOST,
                    "worker %d was lost: %d of %d are left, and --sync %s waits for %llu%s",
                    lost->worker, left, run->network->workers, run->use.strategy->name,
                    (unsigned long long)needed, rest);
}

/* A failure to log must not end the run. */
static void log_gradient(struct sdr_node *node, struct sdr_gradient *gradient, uint64_t applied)
{
    struct sdr_network *net = node->run->network;
    gradient->record.applied = applied;
    if (sdr_ledger_note(&net->lead.ledger, &gradient->record) != SDR_OK)
        sdr_network_lose(node->run);
}

enum sdr_status sdr_await_gradient(struct sdr_node *node, struct sdr_gradient *gradient, bool *more)
{
    struct sdr_network *net = node->run->network;
    SDR_TRY(sdr_servers_there(node));
    SDR_TRY(assign_idle(node));
    for (;;) {
        struct sdr_message message;
        SDR_TRY(sdr_next_message(node, &message));
        if (message.kind == SDR_MESSAGE_NONE) {  /* timeout without a message */
            SDR_TRY(sdr_shards_sync(node->run)); /* a checkpoint may be due */
            SDR_TRY(sdr_poll_requests(node->run));
            *more = !node->run->end.over;
            if (!*more)
                return SDR_OK;
            continue;
        }
        if (message.kind == SDR_MESSAGE_LOST && message.about < 0)
            return sdr_lost_server(node, &message);
        if (message.kind == SDR_MESSAGE_LOST)
            return lose(node, &message, gradient);
        if (message.kind == SDR_MESSAGE_JOINED) {
            *gradient = (struct sdr_gradient){.worker = message.about, .joined = true};
            return sdr_member_join(node, message.about);
        }
        if (message.kind == SDR_MESSAGE_GRADIENT) {
            int worker = message.from - net->servers;
            struct sdr_assignment *of = &net->lead.assignment[worker];
            if (of->busy && of->batch == message.batch &&
                (of->version == message.version || net->policy.steps)) {
                return accept_gradient(node, &message, gradient);
            }
            /* The gradient crossed the message that cancelled it. */
            SDR_TRY(drop_everywhere(node, worker, message.batch, message.version));
        }
        sdr_body_drop(message.body);
    }
}

enum sdr_status sdr_drop(struct sdr_node *node, struct sdr_gradient *gradient)
{
    sdr_body_drop(gradient->body);
    gradient->body = NULL;
    log_gradient(node, gradient, SDR_LEDGER_DROPPED);
    SDR_TRY(drop_everywhere(node, gradient->worker, gradient->batch, gradient->version));
    return sdr_return_number(node->run->network, gradient->batch);
}

/* The other servers take the same step, and answer when done. */
static enum sdr_status spread_decision(struct sdr_node *node, const struct sdr_gradient *gradient,
                                       uint64_t count, double rate)
{
    struct sdr_network *net = node->run->network;
    struct sdr_body *body;
    if (net->servers == 1)
        return SDR_OK;
    size_t bytes = sizeof(struct sdr_decision) + count * sizeof(((struct sdr_decision *)0)->of[0]);
    SDR_TRY(sdr_body_create(net->pool, bytes, &body));
    struct sdr_decision *decision = (struct sdr_decision *)(void *)body->data;
    decision->rate = rate;
    decision->penalty_due = node->run->parameters.penalty_due;
    decision->count = count;
    for (uint64_t i = 0; i < count; i++) {
        decision->of[i].batch = gradient[i].batch;
        decision->of[i].version = gradient[i].version;
        decision->of[i].worker = gradient[i].worker;
        decision->of[i].weight = gradient[i].weight;
    }
    enum sdr_status status = SDR_OK;
    for (int s = 1; s < net->servers && status == SDR_OK; s++) {
        struct sdr_message message = {.kind = SDR_MESSAGE_APPLY,
                                      .to = s,
                                      .version = sdr_current_version(node),
                                      .body = sdr_body_hold(body)};
        status = status == SDR_OK ? sdr_send(node, &message) : status;
    }
    sdr_body_drop(body);
    return status;
}

static enum sdr_status await_others(struct sdr_node *node)
{
    for (int s = 1; s < node->servers; s++) {
        struct sdr_message applied;
        SDR_TRY(sdr_await_kind(node, SDR_MESSAGE_APPLIED, -1, &applied));
        sdr_body_drop(applied.body);
    }
    return SDR_OK;
}

/* In deterministic order, losses are summed in the order of the rows. */
static void sort_by_worker(struct sdr_gradient *gradient, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) /* one gradient per worker: its index is the place */
        while ((uint64_t)gradient[i].worker != i) {
            struct sdr_gradient other = gradient[gradient[i].worker];
            gradient[gradient[i].worker] = gradient[i];
            gradient[i] = other;
        }
}

/* The weight of each gradient in the sum: that of the aggregate, times its own (staleness-aware
   steps; 0 for gradients from before a restart). Parts of one batch, and statistics, are summed up
   as they are. An aggregate that combines value by value gets gradients times their own weight. */
static enum sdr_status weigh(struct sdr_node *node, struct sdr_gradient *gradient, uint64_t count)
{
    struct sdr_run *run = node->run;
    struct sdr_network *net = run->network;
    if (!net->policy.joint && !net->policy.steps && run->use.kind->sense == SDR_GRADIENT &&
        count > 1 && run->use.aggregate->weights) {
        float *weight;
        double *distance = NULL;
        SDR_TRY(sdr_allocate(&weight, count, sizeof *weight, "weights of gradients"));
        enum sdr_status status = SDR_OK;
        if (run->use.aggregate->needs_distances) {
            status = sdr_allocate(&distance, count * count, sizeof *distance, "distances");
            if (status == SDR_OK)
                status = sdr_distances(node, gradient, count, distance);
        }
        if (status == SDR_OK)
            status = run->use.aggregate->weights(run->use.aggregate_options, (uint32_t)count,
                                                 distance, weight);
        sdr_release(distance);
        for (uint64_t i = 0; i < count && status == SDR_OK; i++)
            gradient[i].weight *= weight[i];
        sdr_release(weight);
        SDR_TRY(status);
    }
    for (uint64_t i = 0; i < count; i++)
        if (gradient[i].version < net->lead.discard_before)
            gradient[i].weight = 0;
    return SDR_OK;
}

/* Counts a gradient, its staleness and its losses. */
static enum sdr_status count_gradient(struct sdr_node *node, struct sdr_gradient *gradient,
                                      uint64_t *rows)
{
    struct sdr_run *run = node->run;
    struct sdr_network *net = run->network;
    uint64_t missed = sdr_current_version(node) - gradient->version;
    struct sdr_wire_facts facts;
    sdr_wire_facts_of(gradient->body->data, gradient->body->bytes,
                      &facts); /* checked when it was accepted */
    net->lead.applied++;
    net->lead.assignment[gradient->worker].steps++;
    log_gradient(node, gradient, sdr_current_version(node));
    net->lead.staleness += missed;
    net->lead.stalest = missed > net->lead.stalest ? missed : net->lead.stalest;
    *rows += facts.rows;
    for (uint32_t leaf = 0; leaf < facts.leaves && gradient->version >= net->lead.discard_before;
         leaf++) {
        run->progress.loss_sum.loss += facts.losses[leaf].loss;
        run->progress.loss_sum.weight += facts.losses[leaf].weight;
    }
    return SDR_OK;
}

enum sdr_status sdr_apply(struct sdr_node *node, struct sdr_gradient *gradient, uint64_t count,
                          bool *more)
{
    struct sdr_run *run = node->run;
    struct sdr_network *net = run->network;
    uint64_t rows = 0;
    double rate = sdr_rate_at(run, run->progress.at);
    if (net->policy.joint)
        sort_by_worker(gradient, count);
    SDR_TRY(weigh(node, gradient, count));
    SDR_TRY(spread_decision(node, gradient, count, rate));
    for (uint64_t i = 0; i < count; i++)
        SDR_TRY(count_gradient(node, &gradient[i], &rows));
    SDR_TRY(sdr_server_step(node, gradient, count, rate));
    SDR_TRY(await_others(node));
    for (uint64_t i = 0; i < count; i++) {
        sdr_body_drop(gradient[i].body);
        gradient[i].body = NULL;
    }
    for (uint64_t i = 0; i < (net->policy.joint ? 1 : count); i++)
        SDR_TRY(number_applied(net, gradient[i].batch));
    net->lead.ended = run->use.transport->now(node);
    SDR_TRY(sdr_account(run, rows));
    *more = !run->end.over;
    return SDR_OK;
}

enum sdr_status sdr_dismiss(struct sdr_node *node)
{
    struct sdr_network *net = node->run->network;
    /* Servers in other processes answer requests until the run has concluded. */
    for (int i = sdr_servers_apart(net) ? net->servers : 1; i < net->nodes; i++) {
        struct sdr_message message = {.kind = SDR_MESSAGE_STOP, .flags = SDR_URGENT, .to = i};
        SDR_TRY(sdr_send(node, &message));
    }
    return SDR_OK;
}
