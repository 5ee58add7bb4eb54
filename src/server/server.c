/* Every server: its span of the parameters, and the loop of all servers but the coordinator. */
#include "server/server.h"
#include "base/memory.h"
#include "run/run.h"
#include "server/combine.h"
#include "server/coordinator.h"
#include "server/membership.h"
#include "server/network.h"
#include "server/own_writes.h"
#include "server/sampler.h"
#include "server/traffic.h"
#include "team/accounting.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- every server ---- */
struct sdr_server *sdr_server_of(const struct sdr_node *node)
{
    return &node->run->network->server[node->server];
}

static enum sdr_status defer_message(struct sdr_server *server, const struct sdr_message *message)
{
    if (server->backlogged == server->backlog_room &&
        server->backlog_at > 0) { /* entries already taken */
        server->backlogged -= server->backlog_at;
        memmove(server->backlog, server->backlog + server->backlog_at,
                server->backlogged * sizeof *server->backlog);
        server->backlog_at = 0;
    }
    enum sdr_status status = sdr_grow(&server->backlog, NULL, server->backlogged,
                                      &server->backlog_room, sizeof *server->backlog, "messages");
    if (status != SDR_OK) {
        sdr_body_drop(message->body);
        return status;
    }
    server->backlog[server->backlogged++] = *message;
    return SDR_OK;
}

enum sdr_status sdr_next_message(struct sdr_node *node, struct sdr_message *message)
{
    struct sdr_server *server = sdr_server_of(node);
    if (server->backlog_at == server->backlogged) {
        server->backlog_at = server->backlogged = 0;
        return node->run->use.transport->receive(node, message);
    }
    *message = server->backlog[server->backlog_at++];
    return SDR_OK;
}

/* The loss is remembered: whoever tolerates one failure, of a checkpoint say, fails at the next
   wait. */
enum sdr_status sdr_lost_server(struct sdr_node *node, const struct sdr_message *lost)
{
    struct sdr_run *run = node->run;
    sdr_fail(SDR_PEER_LOST,
             "server %d was lost with its part of the parameters: process %llu was silent for "
             "%.1f s%s",
             lost->from, (unsigned long long)lost->batch, lost->value,
             run->options.settings.run ? "; go on from the last checkpoint with --resume"
                                       : "; with --run there would be checkpoints");
    if (node->server == 0)
        snprintf(run->network->lead.server_lost, sizeof run->network->lead.server_lost, "%s",
                 sdr_error());
    return SDR_PEER_LOST;
}

enum sdr_status sdr_servers_there(const struct sdr_node *node)
{
    const char *lost = node->run->network->lead.server_lost;
    return lost[0] ? sdr_fail(SDR_PEER_LOST, "%s", lost) : SDR_OK;
}

/* Takes a message from the backlog. */
static bool take_deferred(struct sdr_server *server, int kind, int from,
                          struct sdr_message *message)
{
    uint64_t i = server->backlog_at;
    while (i < server->backlogged &&
           (server->backlog[i].kind != kind || (from >= 0 && server->backlog[i].from != from)))
        i++;
    if (i == server->backlogged)
        return false;
    *message = server->backlog[i];
    server->backlogged--;
    memmove(server->backlog + i, server->backlog + i + 1,
            (server->backlogged - i) * sizeof *server->backlog);
    return true;
}

enum sdr_status sdr_await_kind(struct sdr_node *node, int kind, int from,
                               struct sdr_message *message)
{
    struct sdr_server *server = sdr_server_of(node);
    SDR_TRY(sdr_servers_there(node));
    if (take_deferred(server, kind, from, message))
        return SDR_OK;
    for (;;) {
        SDR_TRY(node->run->use.transport->receive(node, message));
        if (message->kind == kind && (from < 0 || message->from == from))
            return SDR_OK;
        if (message->kind == SDR_MESSAGE_LOST && message->about < 0)
            return sdr_lost_server(node, message);
        if (message->kind != SDR_MESSAGE_NONE)
            SDR_TRY(defer_message(server, message));
    }
}

enum sdr_status sdr_server_row_room(struct sdr_server *server, uint64_t rows)
{
    if (rows <= server->row_room)
        return SDR_OK;
    sdr_release(server->row);
    server->row = NULL;
    server->row_room = 0;
    SDR_TRY(sdr_allocate(&server->row, rows, sizeof *server->row, "rows of an update"));
    server->row_room = rows;
    return SDR_OK;
}

enum sdr_status sdr_read_update(struct sdr_node *node, const struct sdr_gradient *gradient,
                                uint32_t *row, struct sdr_wire_facts *facts,
                                struct sdr_update *update)
{
    struct sdr_run *run = node->run;
    struct sdr_workspace *workspace = &sdr_server_of(node)->workspace;
    struct sdr_batch batch;
    SDR_TRY(sdr_network_batch(run, gradient->batch, gradient->worker, row, &batch));
    enum sdr_status status =
        sdr_wire_read(&run->network->wire, gradient->body->data, gradient->body->bytes, batch.count,
                      sdr_server_of(node)->span, &workspace->reader, facts, update);
    if (status != SDR_OK)
        return sdr_fail(SDR_RUNTIME, "worker %d: %s", gradient->worker, sdr_error());
    if (update->sense != (run->network->policy.steps ? SDR_STEP : run->use.kind->sense))
        return sdr_fail(SDR_RUNTIME, "worker %d sent something else than a %s", gradient->worker,
                        run->network->policy.steps ? "step" : "gradient");
    update->batch = batch;
    update->version = gradient->version;
    return SDR_OK;
}

/* Rows of a gradient: of a batch, or of its worker's part of one. */
static uint32_t rows_of(const struct sdr_run *run, const struct sdr_gradient *gradient)
{
    uint32_t from, end;
    sdr_part_of(run->network, sdr_network_rows(run, gradient->batch), gradient->worker, &from,
                &end);
    return end - from;
}

enum sdr_status sdr_server_step(struct sdr_node *node, const struct sdr_gradient *gradient,
                                uint64_t count, double rate)
{
    struct sdr_run *run = node->run;
    struct sdr_server *server = sdr_server_of(node);
    struct sdr_parameters *p = server->parameters;
    struct sdr_wire_facts facts;
    struct sdr_update update;
    uint64_t rows = 0;
    for (uint64_t i = 0; i < count && run->network->policy.steps; i++)
        SDR_TRY(sdr_server_add_step(node, &gradient[i]));
    if (run->network->policy.steps)
        return SDR_OK;
    for (uint64_t i = 0; i < count && run->network->policy.batch * count > server->row_room; i++)
        rows += rows_of(run, &gradient[i]);
    SDR_TRY(sdr_server_row_room(server, rows));
    if (run->use.aggregate->combine && count > 1) {
        SDR_TRY(sdr_combine(node, gradient, count, &update));
        sdr_parameters_begin(p, rate);
        sdr_parameters_apply_span(p, &update, server->span);
        sdr_parameters_finish(p, rate);
        return SDR_OK;
    }
    bool summed = count > 1 || gradient[0].weight != 1; /* otherwise the gradient is the update */
    if (summed)
        sdr_sum_begin(&server->sum, run->use.kind->sense);
    rows = 0;
    for (uint64_t i = 0; i < count; i++) {
        SDR_TRY(sdr_read_update(node, &gradient[i], server->row + rows, &facts, &update));
        rows += update.batch.count;
        if (summed)
            SDR_TRY(sdr_sum_add(&server->sum, &update, gradient[i].weight));
    }
    if (summed)
        update = *sdr_sum_end(&server->sum, true);
    sdr_parameters_begin(p, rate);
    sdr_parameters_apply_span(p, &update, server->span);
    sdr_parameters_finish(p, rate);
    return SDR_OK;
}

/* All values of the server's span: one snapshot per version, shared by all receivers. */
static enum sdr_status take_snapshot(struct sdr_node *node, uint64_t batch)
{
    struct sdr_run *run = node->run;
    struct sdr_server *server = sdr_server_of(node);
    struct sdr_parameters *p = server->parameters;
    uint64_t count = server->span.end - server->span.first;
    if (server->snapshot && server->version == p->version)
        return SDR_OK;
    sdr_body_drop(server->snapshot);
    server->snapshot = NULL;
    /* Charges only the values that the batch reads: bits depend on when a penalty is charged. */
    if (run->network->policy.joint) {
        struct sdr_batch rows;
        SDR_TRY(sdr_server_row_room(server, run->network->policy.batch));
        SDR_TRY(sdr_network_batch(run, batch, -1, server->row, &rows));
        sdr_parameters_catch_up(p, &rows, server->span);
    } else {
        sdr_parameters_catch_up_span(p, server->span);
    }
    SDR_TRY(sdr_body_create(run->network->pool, count * sizeof(float), &server->snapshot));
    memcpy(server->snapshot->data, p->value + server->span.first, count * sizeof(float));
    server->version = p->version;
    return SDR_OK;
}

/* Packs the values of the server's span that a batch touches. */
static enum sdr_status pick_values(struct sdr_node *node, uint64_t number, int worker,
                                   struct sdr_body **body)
{
    struct sdr_run *run = node->run;
    struct sdr_server *server = sdr_server_of(node);
    struct sdr_workspace *workspace = &server->workspace;
    struct sdr_parameters *p = server->parameters;
    struct sdr_batch batch;
    SDR_TRY(sdr_network_batch(run, number, worker, workspace->row, &batch));
    sdr_parameters_catch_up(p, &batch, server->span);
    uint64_t count = sdr_move_values(p->layout, &workspace->marks, &batch, server->span, p->value,
                                     workspace->w, p->layout->count, SDR_GATHER);
    SDR_TRY(sdr_body_create(run->network->pool, count * sizeof(float), body));
    memcpy((*body)->data, workspace->w, count * sizeof(float));
    return SDR_OK;
}

enum sdr_status sdr_current_values(struct sdr_node *node, int worker, uint64_t number,
                                   struct sdr_body **body)
{
    if (node->run->network->policy.sparse)
        return pick_values(node, number, worker, body);
    SDR_TRY(take_snapshot(node, number));
    *body = sdr_body_hold(sdr_server_of(node)->snapshot);
    return SDR_OK;
}

enum sdr_status sdr_send_task(struct sdr_node *node, int worker, uint64_t number, uint8_t flags)
{
    struct sdr_network *net = node->run->network;
    struct sdr_server *server = sdr_server_of(node);
    struct sdr_message message = {.kind = SDR_MESSAGE_TASK,
                                  .flags = flags | (net->policy.sparse ? SDR_SPARSE : 0),
                                  .to = net->servers + worker,
                                  .version = server->parameters->version,
                                  .batch = number};
    if (!(flags & SDR_KEEP))
        SDR_TRY(sdr_current_values(node, worker, number, &message.body));
    if (node->server == 0) {
        struct sdr_assignment *of = &net->lead.assignment[worker];
        of->bytes = (uint32_t)sdr_message_bytes(&message);
        of->tokens -= (double)of->bytes;
        message.about = (int32_t)of->steps;
        if (net->policy.steps)
            message.value = sdr_rate_at(node->run, node->run->progress.at);
    }
    return sdr_send(node, &message);
}

/* ---- servers that follow the coordinator ---- */
/* The link to a worker's gradient, or to the end of its list. */
static struct sdr_pending **find_pending(struct sdr_server *server, int worker, uint64_t batch,
                                         uint64_t version)
{
    struct sdr_pending **link = &server->pending[worker];
    while (*link && ((*link)->batch != batch || (*link)->version != version))
        link = &(*link)->next;
    return link;
}

void sdr_release_pending(struct sdr_pending **link)
{
    struct sdr_pending *pending = *link;
    *link = pending->next;
    sdr_body_drop(pending->body);
    sdr_release(pending);
}

/* Stores a gradient, or the decision to drop it, whichever comes first. */
static enum sdr_status keep_pending(struct sdr_server *server, int worker,
                                    const struct sdr_message *message)
{
    struct sdr_pending **link = find_pending(server, worker, message->batch, message->version);
    if (*link) { /* the other of the two is here, or the same once more */
        if (!(*link)->body != !message->body)
            sdr_release_pending(link);
        sdr_body_drop(message->body);
        return SDR_OK;
    }
    enum sdr_status status = sdr_allocate(link, 1, sizeof **link, "a gradient");
    if (status != SDR_OK) {
        sdr_body_drop(message->body);
        return status;
    }
    **link = (struct sdr_pending){
        .batch = message->batch, .version = message->version, .body = message->body};
    return SDR_OK;
}

/* All messages of the lost worker have arrived by now: its process was silent for the timeout. */
static enum sdr_status hear_of_death(struct sdr_node *node, const struct sdr_message *lost)
{
    if (lost->about < 0)
        return sdr_lost_server(node, lost);
    sdr_member_lose(node, lost->about);
    return SDR_OK;
}

/* A gradient that the coordinator has decided on may still be in flight. */
static enum sdr_status await_pending(struct sdr_node *node, int worker, uint64_t batch,
                                     uint64_t version, struct sdr_gradient *gradient)
{
    struct sdr_server *server = sdr_server_of(node);
    struct sdr_pending **link;
    while (!*(link = find_pending(server, worker, batch, version))) {
        struct sdr_message message;
        SDR_TRY(node->run->use.transport->receive(node, &message));
        if (message.kind == SDR_MESSAGE_GRADIENT)
            SDR_TRY(keep_pending(server, message.from - node->servers, &message));
        else if (message.kind == SDR_MESSAGE_LOST)
            SDR_TRY(hear_of_death(node, &message));
        else
            SDR_TRY(defer_message(server, &message));
        if (server->gone[worker] && !*find_pending(server, worker, batch, version))
            return sdr_fail(
                SDR_PEER_LOST,
                "worker %d was lost while its gradient was on its way to server %d: go on "
                "from the last checkpoint with --resume",
                worker, node->server);
    }
    if (!(*link)->body || (*link)->decided)
        return sdr_fail(SDR_RUNTIME, "the first server decided twice on a gradient of worker %d",
                        worker);
    (*link)->decided = true;
    *gradient = (struct sdr_gradient){
        .worker = worker, .batch = batch, .version = version, .body = (*link)->body};
    return SDR_OK;
}

/* Checks a decision: its length, its workers and batches. */
static bool decision_sound(const struct sdr_node *node, const struct sdr_body *body)
{
    const struct sdr_decision *decision = (const struct sdr_decision *)(const void *)body->data;
    if (body->bytes < sizeof *decision ||
        decision->count != (body->bytes - sizeof *decision) / sizeof decision->of[0] ||
        (body->bytes - sizeof *decision) % sizeof decision->of[0] || !isfinite(decision->rate) ||
        !isfinite(decision->penalty_due))
        return false;
    for (uint64_t i = 0; i < decision->count; i++)
        if (decision->of[i].worker < 0 || decision->of[i].worker >= node->workers ||
            decision->of[i].batch >= node->run->network->lead.queue.end ||
            !(decision->of[i].weight >= 0 && isfinite(decision->of[i].weight)))
            return false;
    return decision->count > 0;
}

static enum sdr_status follow_decision(struct sdr_node *node, const struct sdr_message *message)
{
    struct sdr_server *server = sdr_server_of(node);
    const struct sdr_decision *decision =
        (const struct sdr_decision *)(const void *)message->body->data;
    struct sdr_gradient *gradient;
    if (!decision_sound(node, message->body))
        return sdr_fail(SDR_RUNTIME, "the coordinator sent a decision that cannot be read");
    SDR_TRY(sdr_allocate(&gradient, decision->count, sizeof *gradient, "gradients"));
    enum sdr_status status = SDR_OK;
    for (uint64_t i = 0; i < decision->count && status == SDR_OK; i++)
        status = await_pending(node, decision->of[i].worker, decision->of[i].batch,
                               decision->of[i].version, &gradient[i]);
    for (uint64_t i = 0; i < decision->count; i++)
        gradient[i].weight = decision->of[i].weight;
    if (status == SDR_OK) {
        server->parameters->penalty_due = decision->penalty_due;
        status = sdr_server_step(node, gradient, decision->count, decision->rate);
    }
    for (uint64_t i = 0; i < decision->count && status == SDR_OK; i++)
        sdr_release_pending(
            find_pending(server, gradient[i].worker, gradient[i].batch, gradient[i].version));
    sdr_release(gradient);
    SDR_TRY(status);
    struct sdr_message applied = {.kind = SDR_MESSAGE_APPLIED, .to = 0};
    return sdr_send(node, &applied);
}

enum sdr_status sdr_follow_coordinator(struct sdr_node *node)
{
    struct sdr_server *server = sdr_server_of(node);
    for (;;) {
        struct sdr_message message;
        enum sdr_status status = SDR_OK;
        SDR_TRY(sdr_next_message(node, &message));
        switch ((enum sdr_message_kind)message.kind) {
        case SDR_MESSAGE_GRADIENT:
            SDR_TRY(keep_pending(server, message.from - node->servers, &message));
            continue;
        case SDR_MESSAGE_DROP: status = keep_pending(server, message.about, &message); break;
        case SDR_MESSAGE_APPLY: status = follow_decision(node, &message); break;
        case SDR_MESSAGE_ANSWER:
            /* an evaluation may have charged all penalties since the last step */
            server->parameters->penalty_due = message.value;
            status = sdr_send_task(node, message.about, message.batch, message.flags);
            break;
        case SDR_MESSAGE_ORDER: status = sdr_obey(node, &message); break;
        case SDR_MESSAGE_JOINED: status = sdr_member_join(node, message.about); break;
        case SDR_MESSAGE_LOST: status = hear_of_death(node, &message); break;
        case SDR_MESSAGE_STOP: return SDR_OK;
        default: break;
        }
        sdr_body_drop(message.body);
        SDR_TRY(status);
    }
}
