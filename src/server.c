/* Nodes that exchange messages: the servers' side, of the first one, which decides, and of those that follow. */
#include "base/memory.h"
#include "network.h"
#include "run.h"

#include <string.h>

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
    enum sdr_status status = sdr_grow(&server->backlog, NULL, server->backlogged,
                                      &server->backlog_room, sizeof *server->backlog, "messages");
    if (status != SDR_OK) {
        sdr_body_drop(message->body);
        return status;
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
    for (uint64_t i = 0; i < count && run->network->steps; i++)
        SDR_TRY(sdr_steps_add(node, &gradient[i]));
    if (run->network->steps)
        return SDR_OK;
    for (uint64_t i = 0; i < count; i++)
        rows += ((const struct sdr_gradient_head *)(const void *)gradient[i].body->data)->rows;
    SDR_TRY(room_for(server, rows + 1, (rows + 1) * floats));
    struct sdr_batch batch = {.rows = &run->data->rows, .row = server->row};
    for (uint64_t i = 0; i < count; i++) {
        const struct sdr_gradient_head *head =
            (const struct sdr_gradient_head *)(const void *)gradient[i].body->data;
        struct sdr_batch part;
        SDR_TRY(sdr_network_batch(run, gradient[i].batch, gradient[i].worker,
                                  server->row + batch.count, &part));
        const float *u =
            (const float *)(const void *)(gradient[i].body->data + sdr_slopes_at(head->leaves));
        float *to = server->u + batch.count * floats;
        memcpy(to, u, head->rows * floats * sizeof *u);
        for (uint64_t n = 0; n < head->rows * floats && gradient[i].weight != 1; n++)
            to[n] = gradient[i].weight > 0 ? to[n] * gradient[i].weight
                                           : 0; /* it may not be a number */
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
    uint64_t behind = node->server == 0 ? sdr_values_behind(p) : 0;
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
    uint64_t count = sdr_pass_values(&server->desk, &batch, server->first, server->end, cols,
                                     p->value, server->desk.w, SDR_PACK);
    if (node->server == 0 && p->blocks > 1) {
        memcpy(server->desk.w + count, p->value + p->block[1].offset,
               sdr_values_behind(p) * sizeof(float));
        count += sdr_values_behind(p);
    }
    SDR_TRY(sdr_body_create(run->network->pool, count * sizeof(float), body));
    memcpy((*body)->data, server->desk.w, count * sizeof(float));
    return SDR_OK;
}

enum sdr_status sdr_current_values(struct sdr_node *node, int worker, uint64_t number,
                                   struct sdr_body **body)
{
    if (node->run->network->sparse)
        return pick_values(node, number, worker, body);
    SDR_TRY(take_snapshot(node, number));
    *body = sdr_body_hold(server_of(node)->snapshot);
    return SDR_OK;
}

static enum sdr_status send_task(struct sdr_node *node, int worker, uint64_t number, uint8_t flags)
{
    struct sdr_network *net = node->run->network;
    struct sdr_server *server = server_of(node);
    struct sdr_message message = {.kind = SDR_MESSAGE_TASK,
                                  .flags = flags | (net->sparse ? SDR_SPARSE : 0),
                                  .to = net->servers + worker,
                                  .version = server->parameters->version,
                                  .batch = number};
    SDR_TRY(sdr_current_values(node, worker, number, &message.body));
    if (node->server == 0) {
        struct sdr_assignment *of = &net->assignment[worker];
        of->bytes = (uint32_t)sdr_message_bytes(&message);
        of->tokens -= (double)of->bytes;
        message.about = (int32_t)of->steps;
        message.value = sdr_rate_at(node->run, node->run->at);
    }
    return sdr_send(node, &message);
}

/* ---- servers that follow the first one ---- */
struct decision {
    double rate, charge;
    uint64_t count;
    struct {
        uint64_t batch, version;
        int32_t worker;
        float weight;
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

void sdr_release_held(struct sdr_held **link)
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
        sdr_release_held(link);
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
    *gradient = (struct sdr_gradient){
        .worker = worker, .batch = batch, .version = version, .body = (*link)->body};
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
    for (uint64_t i = 0; i < decision->count; i++)
        gradient[i].weight = decision->of[i].weight;
    if (status == SDR_OK) {
        server->parameters->charge = decision->charge;
        status = step(node, gradient, decision->count, decision->rate);
    }
    for (uint64_t i = 0; i < decision->count && status == SDR_OK; i++)
        sdr_release_held(
            find_held(server, gradient[i].worker, gradient[i].batch, gradient[i].version));
    sdr_release(gradient);
    SDR_TRY(status);
    struct sdr_message applied = {.kind = SDR_MESSAGE_APPLIED, .to = 0};
    return sdr_send(node, &applied);
}

enum sdr_status sdr_follow(struct sdr_node *node)
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
            server->parameters->charge = message.value;
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

double sdr_epochs_done(const struct sdr_node *node)
{
    const struct sdr_run *run = node->run;
    return (double)run->epoch + (double)run->at * run->per_row;
}

bool sdr_is_busy(const struct sdr_node *node, int worker)
{
    return node->run->network->assignment[worker].busy;
}

enum sdr_status sdr_deal_again(struct sdr_network *net, uint64_t number)
{
    if (net->parts) /* all parts of a batch are dealt together */
        return SDR_OK;
    SDR_TRY(sdr_grow(&net->again, &net->again_from, net->again_count, &net->again_room,
                     sizeof *net->again, "batches"));
    net->again[(net->again_from + net->again_count++) % net->again_room] = number;
    return SDR_OK;
}

uint64_t sdr_deal_number(struct sdr_network *net)
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
    if (of->gone)
        return SDR_OK;
    if (of->busy)
        SDR_TRY(sdr_deal_again(net, of->batch));
    of->waited_for = !of->busy && net->last != worker ? net->last : -1;
    of->assigned = node->run->transport->now(node);
    if (of->busy) /* it has not waited */
        of->came = of->assigned;
    of->batch = sdr_deal_number(net);
    of->version = sdr_current_version(node);
    of->busy = true;
    for (int s = 1; s < net->servers; s++) {
        struct sdr_message message = {.kind = SDR_MESSAGE_ANSWER,
                                      .flags = flags,
                                      .to = s,
                                      .about = worker,
                                      .version = of->version,
                                      .batch = of->batch,
                                      .value = node->run->parameters.charge};
        SDR_TRY(sdr_send(node, &message));
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
        SDR_TRY(sdr_send(node, &message));
    }
    return SDR_OK;
}

/* What the ledger will say of a gradient that has come. */
static void receipt(struct sdr_node *node, const struct sdr_message *message,
                    struct sdr_gradient *gradient)
{
    struct sdr_network *net = node->run->network;
    int worker = message->from - net->servers;
    struct sdr_assignment *of = &net->assignment[worker];
    const struct sdr_gradient_head *head =
        (const struct sdr_gradient_head *)(const void *)message->body->data;
    int64_t now = node->run->transport->now(node);
    double under_way = (double)(now - of->assigned) * 1e-9 - head->computing;
    *gradient = (struct sdr_gradient){
        .worker = worker,
        .batch = message->batch,
        .version = message->version,
        .body = message->body,
        .weight = 1,
        .record = {.worker = (uint32_t)worker,
                   .waited_for = of->waited_for,
                   .read = message->version,
                   .bytes = of->bytes + (uint32_t)sdr_message_bytes(message),
                   .computing = head->computing,
                   .travelling = (float)(under_way > 0 ? under_way : 0),
                   .waiting = (float)((double)(of->assigned - of->came) * 1e-9)}};
    of->busy = of->offered; /* then it has begun with that */
    of->came = now;
    net->last = worker;
    if (of->offered) {
        of->offered = false;
        of->batch = of->next;
        of->assigned = now;
        of->waited_for = -1;
    }
}

/* A worker is gone: what it had is dealt again. */
static enum sdr_status lose(struct sdr_node *node, const struct sdr_message *message,
                            struct sdr_gradient *gradient)
{
    struct sdr_network *net = node->run->network;
    struct sdr_assignment *of = &net->assignment[message->about];
    *gradient = (struct sdr_gradient){.worker = message->about, .lost = true};
    if (of->busy)
        SDR_TRY(sdr_deal_again(net, of->batch));
    if (of->offered)
        SDR_TRY(sdr_deal_again(net, of->next));
    of->busy = of->offered = false;
    of->gone = true;
    net->left--;
    sdr_note(&node->run->options, "worker %d is gone: process %llu was silent for %.1f s",
             message->about, (unsigned long long)message->batch, message->value);
    return SDR_OK;
}

enum sdr_status sdr_go_on_without(struct sdr_node *node, const struct sdr_gradient *lost,
                                  uint64_t needed)
{
    struct sdr_run *run = node->run;
    int left = run->network->left;
    const char *rest = "";
    if ((uint64_t)left >= needed)
        return SDR_OK;
    if (run->options.settings.run && run->process == 0) {
        SDR_TRY(sdr_checkpoint_write(run));
        rest = "; a checkpoint was written, go on with --resume";
    }
    return sdr_fail(SDR_PEER_LOST,
                    "worker %d was lost: %d of %d are left, and --sync %s waits for %llu%s",
                    lost->worker, left, run->network->workers, run->strategy->name,
                    (unsigned long long)needed, rest);
}

/* Watching must not end what is watched. */
static void enter(struct sdr_node *node, struct sdr_gradient *gradient, uint64_t applied)
{
    struct sdr_network *net = node->run->network;
    gradient->record.applied = applied;
    if (sdr_ledger_note(&net->ledger, &gradient->record) == SDR_OK || net->ledger_trouble)
        return;
    sdr_note(&node->run->options, "%s; training goes on", sdr_error());
    net->ledger_trouble = true;
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
        if (message.kind == SDR_MESSAGE_LOST)
            return lose(node, &message, gradient);
        if (message.kind == SDR_MESSAGE_GRADIENT) {
            int worker = message.from - net->servers;
            struct sdr_assignment *of = &net->assignment[worker];
            if (of->busy && of->batch == message.batch &&
                (of->version == message.version || net->steps)) {
                receipt(node, &message, gradient);
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
    enter(node, gradient, SDR_LEDGER_DROPPED);
    SDR_TRY(drop_everywhere(node, gradient->worker, gradient->batch, gradient->version));
    return sdr_deal_again(node->run->network, gradient->batch);
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
    for (uint64_t i = 0; i < count; i++)
        gradient[i].weight = gradient[i].version < net->anew ? 0 : gradient[i].weight;
    SDR_TRY(spread_decision(node, gradient, count, rate));
    for (uint64_t i = 0; i < count; i++) {
        const struct sdr_gradient_head *head =
            (const struct sdr_gradient_head *)(const void *)gradient[i].body->data;
        uint64_t missed = sdr_current_version(node) - gradient[i].version;
        net->applied++;
        net->assignment[gradient[i].worker].steps++;
        enter(node, &gradient[i], sdr_current_version(node));
        net->staleness += missed;
        net->stalest = missed > net->stalest ? missed : net->stalest;
        rows += head->rows;
        if (gradient[i].version < net->anew)
            continue;
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
        SDR_TRY(sdr_send(node, &message));
    }
    return SDR_OK;
}
