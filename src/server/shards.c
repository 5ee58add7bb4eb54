#include "server/shards.h"
#include "base/memory.h"
#include "run/run.h"
#include "server/network.h"

#include <string.h>

/* What an order carries in `about`, one byte each. */
static int32_t pack_order(enum sdr_order order, enum sdr_array array, bool valid)
{
    return (int32_t)order | (int32_t)array << 8 | (int32_t)valid << 16;
}

static float *array_of(const struct sdr_run *run, const struct sdr_parameters *p,
                       enum sdr_array array)
{
    switch (array) {
    case SDR_ARRAY_VALUE:
        return p->value;
    case SDR_ARRAY_SLOT0:
    case SDR_ARRAY_SLOT1:
        return p->slot[array - SDR_ARRAY_SLOT0];
    case SDR_ARRAY_PAID:
        return p->penalty_paid;
    case SDR_ARRAY_NOW:
        return p->ready;
    case SDR_ARRAY_GOOD:
        return run->kept.good;
    case SDR_ARRAY_BEST:
        return run->kept.best;
    default:
        return NULL;
    }
}

static bool covers(struct sdr_span outer, struct sdr_span inner)
{
    return inner.first >= outer.first && inner.first <= inner.end && inner.end <= outer.end;
}

static struct sdr_span common(struct sdr_span a, struct sdr_span b)
{
    struct sdr_span both = {a.first > b.first ? a.first : b.first, a.end < b.end ? a.end : b.end};
    return both.first < both.end ? both : (struct sdr_span){0, 0};
}

/* ---- a server that follows the coordinator ---- */
/* The rows that an order lists, of the training or the validation data. */
static enum sdr_status rows_of(const struct sdr_run *run, const struct sdr_message *order,
                               struct sdr_batch *batch)
{
    bool valid = order->about >> 16 & 1;
    struct sdr_data *data = valid && run->valid ? run->valid : run->data;
    const struct sdr_rows *rows = valid ? run->set.valid_problem.rows : &run->data->rows;
    uint64_t count = order->body ? order->body->bytes / sizeof(uint32_t) : 0;
    const uint32_t *row = order->body ? (const uint32_t *)(const void *)order->body->data : NULL;
    if (!rows || rows->dense || count > UINT32_MAX)
        return sdr_fail(SDR_RUNTIME, "the first server asked for rows that are not there");
    for (uint64_t i = 0; i < count; i++)
        if (row[i] >= rows->count)
            return sdr_fail(SDR_RUNTIME, "the first server asked for row %u of %llu", row[i],
                            (unsigned long long)rows->count);
    *batch = (struct sdr_batch){.rows = rows, .row = row, .count = (uint32_t)count};
    return data->checked ? sdr_data_demand(data, row, (uint32_t)count) : SDR_OK;
}

static enum sdr_status gather(struct sdr_run *run, struct sdr_server *server, float *from,
                              const struct sdr_batch *batch, struct sdr_body **body)
{
    struct sdr_workspace *workspace = &server->workspace;
    uint64_t count = sdr_move_values(&run->layout, &workspace->marks, batch, server->span, from,
                                     workspace->w, run->layout.count, SDR_GATHER);
    SDR_TRY(sdr_body_create(run->network->pool, count * sizeof(float), body));
    memcpy((*body)->data, workspace->w, count * sizeof(float));
    return SDR_OK;
}

static enum sdr_status begin_as(struct sdr_parameters *p, const struct sdr_message *order)
{
    if (!order->body || order->body->bytes != sizeof p->constant)
        return sdr_fail(SDR_RUNTIME, "the first server sent no constants of a step");
    p->version = order->version;
    p->penalty_due = order->value;
    memcpy(p->constant, order->body->data, sizeof p->constant);
    return SDR_OK;
}

/* Orders that move values. */
static enum sdr_status exchange(struct sdr_node *node, const struct sdr_message *order,
                                struct sdr_message *answer)
{
    struct sdr_run *run = node->run;
    struct sdr_server *server = sdr_server_of(node);
    float *array = array_of(run, server->parameters, order->about >> 8 & 0xff);
    struct sdr_span span = {order->version, order->batch};
    uint64_t count = span.end - span.first;
    struct sdr_batch batch;
    if (!array)
        return sdr_fail(SDR_RUNTIME, "the first server asked for values that there are not");
    if ((order->about & 0xff) == SDR_ORDER_PULL) {
        SDR_TRY(rows_of(run, order, &batch));
        return gather(run, server, array, &batch, &answer->body);
    }
    if (!covers(server->span, span) || count > SDR_PIECE)
        return sdr_fail(SDR_RUNTIME, "the first server asked for values of another server");
    if ((order->about & 0xff) == SDR_ORDER_READ) {
        SDR_TRY(sdr_body_create(run->network->pool, count * sizeof(float), &answer->body));
        memcpy(answer->body->data, array + span.first, count * sizeof(float));
        return SDR_OK;
    }
    if (!order->body || order->body->bytes != count * sizeof(float))
        return sdr_fail(SDR_RUNTIME, "the first server sent other values than it said");
    memcpy(array + span.first, order->body->data, count * sizeof(float));
    return SDR_OK;
}

/* Whether there is such an order, and what it needs. */
static bool can_be_obeyed(const struct sdr_run *run, const struct sdr_server *server, int32_t about)
{
    const struct sdr_parameters *p = server->parameters;
    int32_t order = about & 0xff;
    if (about < 0 || about >> 17 || order >= SDR_ORDERS)
        return false;
    switch (order) {
    case SDR_ORDER_KEEP_GOOD:
        return run->kept.good && p->ready;
    case SDR_ORDER_KEEP_BEST:
        return run->kept.best && p->ready;
    case SDR_ORDER_RESET:
        return run->kept.good;
    case SDR_ORDER_SAVE:
        return !server->saved.any;
    case SDR_ORDER_RESTORE:
        return server->saved.any;
    default:
        return true;
    }
}

enum sdr_status sdr_obey(struct sdr_node *node, const struct sdr_message *order)
{
    struct sdr_run *run = node->run;
    struct sdr_server *server = sdr_server_of(node);
    struct sdr_parameters *p = server->parameters;
    struct sdr_message answer = {
        .kind = SDR_MESSAGE_DONE, .to = 0, .about = order->about, .value = 1};
    if (!can_be_obeyed(run, server, order->about))
        return sdr_fail(SDR_RUNTIME, "the first server gave an order that makes no sense");
    switch (order->about & 0xff) {
    case SDR_ORDER_READY:
        sdr_parameters_ready(p);
        answer.value = sdr_parameters_finite(p);
        break;
    case SDR_ORDER_KEEP_GOOD:
    case SDR_ORDER_KEEP_BEST:
        sdr_parameters_keep(p, array_of(run, p,
                                        (order->about & 0xff) == SDR_ORDER_KEEP_GOOD
                                            ? SDR_ARRAY_GOOD
                                            : SDR_ARRAY_BEST));
        break;
    case SDR_ORDER_RESET:
        sdr_parameters_reset(p, run->kept.good);
        break;
    case SDR_ORDER_SAVE:
        SDR_TRY(sdr_parameters_save(p, &server->saved));
        break;
    case SDR_ORDER_RESTORE:
        sdr_parameters_restore(p, &server->saved);
        break;
    case SDR_ORDER_BEGIN:
        SDR_TRY(begin_as(p, order));
        break;
    default:
        SDR_TRY(exchange(node, order, &answer));
    }
    return sdr_send(node, &answer);
}

/* ---- the coordinator ---- */
static enum sdr_status ask(struct sdr_run *run, int server, struct sdr_message *order)
{
    order->kind = SDR_MESSAGE_ORDER;
    order->to = server;
    return sdr_send(&run->network->node[0], order);
}

/* The answer of a server; *body, if that is asked for, is the caller's. */
static enum sdr_status await_answer(struct sdr_run *run, int server, struct sdr_body **body,
                                    bool *yes)
{
    struct sdr_message answer;
    SDR_TRY(sdr_await_kind(&run->network->node[0], SDR_MESSAGE_DONE, server, &answer));
    *yes = *yes && answer.value != 0;
    if (body)
        *body = answer.body;
    else
        sdr_body_drop(answer.body);
    return SDR_OK;
}

static bool is_elsewhere(const struct sdr_run *run, int server)
{
    return sdr_process_of(run->network, server) != run->process;
}

enum sdr_status sdr_shards_order(struct sdr_run *run, enum sdr_order order, bool *all)
{
    struct sdr_network *net = run->network;
    const struct sdr_parameters *p = &run->parameters;
    bool yes = true;
    for (int s = 0; s < net->servers; s++) {
        struct sdr_message message = {
            .about = pack_order(order, 0, false), .version = p->version, .value = p->penalty_due};
        if (!is_elsewhere(run, s))
            continue;
        if (order == SDR_ORDER_BEGIN) {
            SDR_TRY(sdr_body_create(net->pool, sizeof p->constant, &message.body));
            memcpy(message.body->data, p->constant, sizeof p->constant);
        }
        SDR_TRY(ask(run, s, &message));
    }
    for (int s = 0; s < net->servers; s++)
        if (is_elsewhere(run, s))
            SDR_TRY(await_answer(run, s, NULL, &yes));
    if (all)
        *all = yes;
    return SDR_OK;
}

/* A part of a span that lives elsewhere. */
static enum sdr_status exchange_with(struct sdr_run *run, int server, enum sdr_order order,
                                     enum sdr_array array, struct sdr_span span, const float *from,
                                     float *to)
{
    uint64_t bytes = (span.end - span.first) * sizeof(float);
    struct sdr_message message = {
        .about = pack_order(order, array, false), .version = span.first, .batch = span.end};
    struct sdr_body *body;
    bool yes = true;
    if (from) {
        SDR_TRY(sdr_body_create(run->network->pool, bytes, &message.body));
        memcpy(message.body->data, from, bytes);
    }
    SDR_TRY(ask(run, server, &message));
    SDR_TRY(await_answer(run, server, &body, &yes));
    enum sdr_status status = SDR_OK;
    if (to && (!body || body->bytes != bytes))
        status = sdr_fail(SDR_RUNTIME, "server %d sent other values than it was asked for", server);
    else if (to)
        memcpy(to, body->data, bytes);
    sdr_body_drop(body);
    return status;
}

enum sdr_status sdr_shards_read(struct sdr_run *run, enum sdr_array array, struct sdr_span span,
                                float *to)
{
    for (int s = 0; s < run->network->servers; s++) {
        struct sdr_span part = common(run->network->span[s], span);
        uint64_t count = part.end - part.first;
        if (count == 0)
            continue;
        if (is_elsewhere(run, s))
            SDR_TRY(exchange_with(run, s, SDR_ORDER_READ, array, part, NULL,
                                  to + (part.first - span.first)));
        else
            memcpy(to + (part.first - span.first),
                   array_of(run, &run->parameters, array) + part.first, count * sizeof *to);
    }
    return SDR_OK;
}

enum sdr_status sdr_shards_write(struct sdr_run *run, enum sdr_array array, struct sdr_span span,
                                 const float *from)
{
    for (int s = 0; s < run->network->servers; s++) {
        struct sdr_span part = common(run->network->span[s], span);
        uint64_t count = part.end - part.first;
        if (count == 0)
            continue;
        if (is_elsewhere(run, s))
            SDR_TRY(exchange_with(run, s, SDR_ORDER_WRITE, array, part,
                                  from + (part.first - span.first), NULL));
        else
            memcpy(array_of(run, &run->parameters, array) + part.first,
                   from + (part.first - span.first), count * sizeof *from);
    }
    return SDR_OK;
}

/* The rows that the order lists, as bytes. */
static enum sdr_status list_rows(struct sdr_run *run, const struct sdr_batch *rows,
                                 struct sdr_body **body)
{
    SDR_TRY(sdr_body_create(run->network->pool, rows->count * sizeof *rows->row, body));
    memcpy((*body)->data, rows->row, rows->count * sizeof *rows->row);
    return SDR_OK;
}

static enum sdr_status place(struct sdr_run *run, int server, struct sdr_body *body,
                             struct sdr_subset *subset)
{
    uint64_t count = body ? body->bytes / sizeof(float) : 0;
    uint64_t placed = sdr_subset_scatter(subset, &run->layout, run->network->span[server],
                                         body ? (float *)(void *)body->data : NULL, count);
    sdr_body_drop(body);
    return placed == count
               ? SDR_OK
               : sdr_fail(SDR_RUNTIME, "server %d sent %llu values in place of %llu", server,
                          (unsigned long long)count, (unsigned long long)placed);
}

enum sdr_status sdr_shards_pull(struct sdr_run *run, enum sdr_array array, bool valid,
                                const struct sdr_batch *rows, struct sdr_subset *subset)
{
    struct sdr_network *net = run->network;
    for (int s = 0; s < net->servers; s++) {
        struct sdr_message message = {.about = pack_order(SDR_ORDER_PULL, array, valid)};
        if (!is_elsewhere(run, s))
            continue;
        SDR_TRY(list_rows(run, rows, &message.body));
        SDR_TRY(ask(run, s, &message));
    }
    for (int s = 0; s < net->servers; s++) {
        struct sdr_body *body;
        bool yes = true;
        if (is_elsewhere(run, s))
            SDR_TRY(await_answer(run, s, &body, &yes));
        else
            SDR_TRY(
                gather(run, &net->server[s], array_of(run, &run->parameters, array), rows, &body));
        SDR_TRY(place(run, s, body, subset));
    }
    return SDR_OK;
}

enum sdr_status sdr_shards_stop(struct sdr_run *run)
{
    for (int s = 0; s < run->network->servers; s++) {
        struct sdr_message stop = {.kind = SDR_MESSAGE_STOP, .flags = SDR_URGENT, .to = s};
        if (s > 0)
            SDR_TRY(sdr_send(&run->network->node[0], &stop));
    }
    return SDR_OK;
}
