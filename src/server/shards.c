#include "server/shards.h"
#include "base/memory.h"
#include "run/run.h"
#include "server/network.h"
#include "server/placement.h"
#include "server/server.h"
#include "server/traffic.h"

#include <string.h>

/* The content of `about` in an order, one byte each. */
static int32_t pack_order(enum sdr_order order, enum sdr_array array)
{
    return (int32_t)order | (int32_t)array << 8;
}

static float *array_of(const struct sdr_run *run, const struct sdr_parameters *p,
                       enum sdr_array array)
{
    switch (array) {
    case SDR_ARRAY_VALUE: return p->value;
    case SDR_ARRAY_SLOT0:
    case SDR_ARRAY_SLOT1: return p->slot[array - SDR_ARRAY_SLOT0];
    case SDR_ARRAY_PAID: return p->penalty_paid;
    case SDR_ARRAY_NOW: return p->ready;
    case SDR_ARRAY_GOOD: return run->kept.good;
    case SDR_ARRAY_BEST: return run->kept.best;
    default: return NULL;
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
/* Values that a list of features reads, of one server's span: rows of these features in blocks that
   are per feature, all rows of others. Into `to`, or counted if that is NULL. Features outside the
   span read nothing. */
static uint64_t gather(const struct sdr_layout *layout, struct sdr_span span, const float *from,
                       const uint32_t *feature, uint64_t features, float *to)
{
    uint64_t count = 0;
    for (int b = 0; b < layout->blocks; b++) {
        const struct sdr_block *block = &layout->block[b];
        uint32_t first, end, cols = block->cols;
        sdr_rows_within(block, span, &first, &end);
        uint64_t rows = block->per_feature ? features : end - first;
        for (uint64_t i = 0; i < rows; i++) {
            uint32_t row = block->per_feature ? feature[i] : first + (uint32_t)i;
            if (row < first || row >= end)
                continue;
            if (to)
                memcpy(to + count, from + block->offset + (uint64_t)row * cols, cols * sizeof *to);
            count += cols;
        }
    }
    return count;
}

static enum sdr_status gather_body(struct sdr_run *run, struct sdr_span span, const float *from,
                                   const uint32_t *feature, uint64_t features,
                                   struct sdr_body **body)
{
    uint64_t count = gather(&run->layout, span, from, feature, features, NULL);
    SDR_TRY(sdr_body_create(run->network->pool, count * sizeof(float), body));
    gather(&run->layout, span, from, feature, features, (float *)(void *)(*body)->data);
    return SDR_OK;
}

static enum sdr_status begin_as(struct sdr_parameters *p, const struct sdr_message *order)
{
    if (!order->body || order->body->bytes != sizeof p->constant)
        return sdr_fail(SDR_RUNTIME, "the coordinator sent no constants of a step");
    p->version = order->version;
    p->penalty_due = order->value;
    memcpy(p->constant, order->body->data, sizeof p->constant);
    return SDR_OK;
}

/* Features are listed in increasing order: an answer is never longer than the span. */
static bool increasing(const struct sdr_body *body)
{
    const uint32_t *feature = body ? (const uint32_t *)(const void *)body->data : NULL;
    uint64_t features = body ? body->bytes / sizeof *feature : 0;
    for (uint64_t i = 1; i < features; i++)
        if (feature[i] <= feature[i - 1])
            return false;
    return true;
}

/* Executes orders that move values. */
static enum sdr_status exchange(struct sdr_node *node, const struct sdr_message *order,
                                struct sdr_message *answer)
{
    struct sdr_run *run = node->run;
    struct sdr_server *server = sdr_server_of(node);
    float *array = array_of(run, server->parameters, order->about >> 8 & 0xff);
    struct sdr_span span = {order->version, order->batch};
    uint64_t count = span.end - span.first;
    if (!array)
        return sdr_fail(SDR_RUNTIME, "the coordinator asked for values that do not exist");
    if ((order->about & 0xff) == SDR_ORDER_PULL && !increasing(order->body))
        return sdr_fail(SDR_RUNTIME, "the coordinator asked for features twice, or out of order");
    if ((order->about & 0xff) == SDR_ORDER_PULL)
        return gather_body(run, server->span, array,
                           order->body ? (const uint32_t *)(const void *)order->body->data : NULL,
                           order->body ? order->body->bytes / sizeof(uint32_t) : 0, &answer->body);
    if (!covers(server->span, span) || count > SDR_PIECE)
        return sdr_fail(SDR_RUNTIME, "the coordinator asked for values of another server");
    if ((order->about & 0xff) == SDR_ORDER_READ) {
        SDR_TRY(sdr_body_create(run->network->pool, count * sizeof(float), &answer->body));
        memcpy(answer->body->data, array + span.first, count * sizeof(float));
        return SDR_OK;
    }
    if (!order->body || order->body->bytes != count * sizeof(float))
        return sdr_fail(SDR_RUNTIME,
                        "the coordinator sent a different number of values than announced");
    memcpy(array + span.first, order->body->data, count * sizeof(float));
    return SDR_OK;
}

/* Whether there is such an order, and what it needs. */
static bool can_be_obeyed(const struct sdr_run *run, const struct sdr_server *server, int32_t about)
{
    const struct sdr_parameters *p = server->parameters;
    int32_t order = about & 0xff;
    if (about < 0 || about >> 16 || order >= SDR_ORDERS)
        return false;
    switch (order) {
    case SDR_ORDER_KEEP_GOOD: return run->kept.good && p->ready;
    case SDR_ORDER_KEEP_BEST: return run->kept.best && p->ready;
    case SDR_ORDER_RESET: return run->kept.good;
    case SDR_ORDER_SAVE: return !server->saved.any;
    case SDR_ORDER_RESTORE: return server->saved.any;
    default: return true;
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
    case SDR_ORDER_RESET: sdr_parameters_reset(p, run->kept.good); break;
    case SDR_ORDER_SAVE: SDR_TRY(sdr_parameters_save(p, &server->saved)); break;
    case SDR_ORDER_RESTORE: sdr_parameters_restore(p, &server->saved); break;
    case SDR_ORDER_BEGIN: SDR_TRY(begin_as(p, order)); break;
    case SDR_ORDER_SYNC: break;
    default: SDR_TRY(exchange(node, order, &answer));
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

/* Waits for a server's answer to an order; *body, if requested, is the caller's. */
static enum sdr_status await_answer(struct sdr_run *run, int server, int32_t about,
                                    struct sdr_body **body, bool *yes)
{
    struct sdr_message answer = {.about = -1};
    do { /* answers to an earlier order that was given up are dropped */
        sdr_body_drop(answer.body);
        SDR_TRY(sdr_await_kind(&run->network->node[0], SDR_MESSAGE_DONE, server, &answer));
    } while (answer.about != about);
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
            .about = pack_order(order, 0), .version = p->version, .value = p->penalty_due};
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
            SDR_TRY(await_answer(run, s, pack_order(order, 0), NULL, &yes));
    if (all)
        *all = yes;
    return SDR_OK;
}

/* A part of a span in another process. */
static enum sdr_status exchange_with(struct sdr_run *run, int server, enum sdr_order order,
                                     enum sdr_array array, struct sdr_span span, const float *from,
                                     float *to)
{
    uint64_t bytes = (span.end - span.first) * sizeof(float);
    struct sdr_message message = {
        .about = pack_order(order, array), .version = span.first, .batch = span.end};
    struct sdr_body *body;
    bool yes = true;
    if (from) {
        SDR_TRY(sdr_body_create(run->network->pool, bytes, &message.body));
        memcpy(message.body->data, from, bytes);
    }
    SDR_TRY(ask(run, server, &message));
    SDR_TRY(await_answer(run, server, pack_order(order, array), &body, &yes));
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

/* Places what a server has gathered. The rows of a span lie side by side in the subset, in the same
   order. */
static enum sdr_status place(struct sdr_run *run, int server, struct sdr_body *body,
                             struct sdr_subset *subset)
{
    struct sdr_span span = sdr_subset_span(subset, &run->layout, run->network->span[server]);
    uint64_t count = body ? body->bytes / sizeof(float) : 0, placed = 0;
    const float *from = body ? (const float *)(const void *)body->data : NULL;
    for (int b = 0; b < subset->layout.blocks; b++) {
        const struct sdr_block *block = &subset->layout.block[b];
        uint32_t first, end;
        sdr_rows_within(block, span, &first, &end);
        uint64_t values = (uint64_t)(end - first) * block->cols;
        if (values && placed + values <= count)
            memcpy(subset->w + block->offset + (uint64_t)first * block->cols, from + placed,
                   values * sizeof *from);
        placed += values;
    }
    sdr_body_drop(body);
    return placed == count
               ? SDR_OK
               : sdr_fail(SDR_RUNTIME, "server %d sent %llu values in place of %llu", server,
                          (unsigned long long)count, (unsigned long long)placed);
}

enum sdr_status sdr_shards_pull(struct sdr_run *run, enum sdr_array array,
                                struct sdr_subset *subset)
{
    struct sdr_network *net = run->network;
    uint32_t features = subset->rows.features;
    int32_t about = pack_order(SDR_ORDER_PULL, array);
    for (int s = 0; s < net->servers; s++) {
        struct sdr_message message = {.about = about};
        if (!is_elsewhere(run, s))
            continue;
        SDR_TRY(sdr_body_create(net->pool, features * sizeof *subset->feature, &message.body));
        if (features)
            memcpy(message.body->data, subset->feature, features * sizeof *subset->feature);
        SDR_TRY(ask(run, s, &message));
    }
    for (int s = 0; s < net->servers; s++) {
        struct sdr_body *body;
        bool yes = true;
        if (is_elsewhere(run, s))
            SDR_TRY(await_answer(run, s, about, &body, &yes));
        else
            SDR_TRY(gather_body(run, net->span[s], array_of(run, &run->parameters, array),
                                subset->feature, features, &body));
        SDR_TRY(place(run, s, body, subset));
    }
    return SDR_OK;
}

enum sdr_status sdr_shards_sync(struct sdr_run *run)
{
    struct sdr_network *net = run->network;
    bool yes = true;
    for (int s = 1; s < net->servers; s++) {
        struct sdr_message order = {.about = pack_order(SDR_ORDER_SYNC, 0)};
        SDR_TRY(ask(run, s, &order));
    }
    for (int s = 1; s < net->servers; s++)
        SDR_TRY(await_answer(run, s, pack_order(SDR_ORDER_SYNC, 0), NULL, &yes));
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
