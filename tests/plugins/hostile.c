/* For tests: transports that damage messages, by a seeded generator. `hostile` wraps sim,
   `hostile-threads` wraps threads; as they are they change nothing.

   how=replace   the damaged message comes in place of the genuine one: any damage
   how=before    an extra message comes before the genuine one, with damage that a receiver can tell
   how=after     an extra message comes after the genuine one: any damage, or none

   Damaged bodies are as long as their bytes, so that sanitizers see a byte too many. What
   sdr_wire_unpack refuses between processes, nodes that do not exist and kinds that do not travel,
   does not get past this transport either. */
#include "base/memory.h"
#include "base/rng.h"
#include "run/run.h"
#include "server/network.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum how { REPLACE, BEFORE, AFTER };
struct options {
    uint64_t seed, most;
    double share, silence;
    int how;
    char *dies;
};
static const struct sdr_option table[] = {
    {"share", SDR_NUMBER, "0", "FRACTION", 0, 1, "of the messages that are damaged",
     offsetof(struct options, share), 0},
    {"how", SDR_CHOICE, "replace", "replace|before|after", 0, 0, "what comes of the genuine one",
     offsetof(struct options, how), 0},
    {"seed", SDR_INTEGER, "1", "N", 0, 1e15, "of the damage", offsetof(struct options, seed), 0},
    {"most", SDR_INTEGER, "1000000000", "N", 0, 1e15, "messages that are damaged",
     offsetof(struct options, most), 0},
    {"silence", SDR_NUMBER, "0", "SECONDS", 0, 1e6, "as of sim", offsetof(struct options, silence),
     0},
    {"dies", SDR_TEXT, "", "W@T", 0, 0, "as of sim", offsetof(struct options, dies), 0},
    {0}};

/* One run at a time. The pool outlives it: messages may be held until the end of the program. */
static struct {
    const struct options *options;
    const struct sdr_transport *inner;
    void *inner_options; /* owned */
    struct sdr_pool *pool;
    atomic_uint_fast64_t sent, damaged;
} hostile;

/* ---- damage ---- */
/* A body as long as its bytes; it never goes back to the pool of the run. */
static enum sdr_status make_body(const struct sdr_network *net, const void *bytes, uint64_t count,
                                 struct sdr_body **body)
{
    unsigned char *memory;
    SDR_TRY(sdr_allocate(&memory, sizeof **body + count, 1, "a test"));
    *body = (struct sdr_body *)(void *)memory;
    (*body)->home = hostile.pool;
    (*body)->single_threaded = net->single_threaded;
    (*body)->bytes = count;
    (*body)->data = (*body)->room = (*body)->memory;
    atomic_store(&(*body)->refs, 1);
    if (bytes && count)
        memcpy((*body)->data, bytes, count);
    return SDR_OK;
}

/* Numbers that are often at the edge of something. */
static uint64_t edge(struct sdr_stream *random, uint64_t near)
{
    static const uint64_t wild[] = {
        0, 1, INT32_MAX, UINT32_MAX, UINT64_C(1) << 52, UINT64_C(1) << 53, INT64_MAX, UINT64_MAX};
    switch (sdr_stream_below(random, 4)) {
    case 0: return wild[sdr_stream_below(random, sizeof wild / sizeof *wild)];
    case 1: return near + sdr_stream_below(random, 9) - 4;
    case 2: return near ^ UINT64_C(1) << sdr_stream_below(random, 64);
    default: return (uint64_t)sdr_stream_u32(random) << 32 | sdr_stream_u32(random);
    }
}

static double no_number(struct sdr_stream *random)
{
    static const double wild[] = {NAN, INFINITY, -INFINITY};
    return wild[sdr_stream_below(random, 3)];
}

/* Of any field that travels. */
static void damage_header(struct sdr_stream *random, struct sdr_message *message)
{
    static const double value[] = {0, -1, 1e300, 0x1p64, -0.0, 1e-300};
    switch (sdr_stream_below(random, 9)) {
    case 0: message->kind = (uint8_t)sdr_stream_below(random, SDR_MESSAGE_KINDS); break;
    case 1: message->flags ^= (uint8_t)(1 << sdr_stream_below(random, 8)); break;
    case 2: message->from = (int32_t)edge(random, (uint64_t)message->from); break;
    case 3: message->about = (int32_t)edge(random, (uint64_t)message->about); break;
    case 4: message->version = edge(random, message->version); break;
    case 5: message->batch = edge(random, message->batch); break;
    case 6:
        message->value =
            sdr_stream_below(random, 2) ? no_number(random) : value[sdr_stream_below(random, 6)];
        break;
    case 7: message->sequence = (uint16_t)sdr_stream_u32(random); break;
    default:
        message->kind = (uint8_t)sdr_stream_u32(random);
        message->flags = (uint8_t)sdr_stream_u32(random);
        message->batch = edge(random, message->batch);
    }
}

/* Damage that a receiver can tell from the message alone and what it knows of the run. False: none
   was found. */
static bool damage_plainly(struct sdr_stream *random, const struct sdr_network *net,
                           struct sdr_message *message)
{
    int32_t node = message->from;
    bool of_peers = message->kind == SDR_MESSAGE_PEER;
    switch (sdr_stream_below(random, 7)) {
    case 0: /* these two have the same fields */
        if (message->kind == SDR_MESSAGE_ANSWER || message->kind == SDR_MESSAGE_DROP)
            return false;
        do
            message->kind ^= (uint8_t)(1 + sdr_stream_below(random, 255));
        while (sdr_message_is_local(message->kind));
        return message->kind != SDR_MESSAGE_PEER; /* with what is in it: the loop's own matter */
    case 1: message->flags ^= (uint8_t)(16 << sdr_stream_below(random, 4)); return true;
    case 2:
        message->about = message->kind == SDR_MESSAGE_DROP || message->kind == SDR_MESSAGE_ANSWER
                             ? net->workers + (int32_t)sdr_stream_below(random, 1000)
                             : -1 - (int32_t)sdr_stream_below(random, 1000);
        return !of_peers;
    case 3: message->batch = (UINT64_C(1) << 52) + edge(random, 0) / 2; return !of_peers;
    case 4: /* of another run */
        message->sequence += (uint16_t)(1 + sdr_stream_below(random, UINT16_MAX));
        return true;
    case 5:
        message->from = (int32_t)sdr_stream_below(random, (uint64_t)net->nodes);
        return message->from != node;
    default: message->value = no_number(random); return true;
    }
}

/* A few bytes, most often near the beginning, where counts and lengths are. */
static void damage_bytes(struct sdr_stream *random, struct sdr_body *body)
{
    static const float wild[] = {NAN, INFINITY, -INFINITY, 1e38f, -1e-45f};
    enum { HEADS = 128 };
    for (uint64_t times = 1 + sdr_stream_below(random, 3); times > 0 && body->bytes >= 4; times--) {
        uint64_t room = body->bytes - 3;
        if (room > HEADS && sdr_stream_below(random, 4))
            room = HEADS;
        unsigned char *at = body->data + sdr_stream_below(random, room);
        uint32_t word = (uint32_t)edge(random, *at);
        switch (sdr_stream_below(random, 3)) {
        case 0: *at ^= (unsigned char)(1 << sdr_stream_below(random, 8)); break;
        case 1: memcpy(at, &wild[sdr_stream_below(random, 5)], 4); break;
        default: memcpy(body->data + (uint64_t)(at - body->data) / 4 * 4, &word, 4);
        }
    }
}

static enum sdr_status damage_body(struct sdr_stream *random, const struct sdr_network *net,
                                   struct sdr_message *message)
{
    struct sdr_body *whole = message->body;
    uint64_t bytes = whole ? whole->bytes : 0;
    enum sdr_status status = SDR_OK;
    switch (whole ? sdr_stream_below(random, 6) : 5) {
    case 0: /* it is cut off, often at a multiple of what it is made of */
        status = make_body(net, whole->data, sdr_stream_below(random, bytes + 1) / 4 * 4,
                           &message->body);
        break;
    case 1:
        status = make_body(net, NULL, bytes + 1 + sdr_stream_below(random, 64), &message->body);
        if (status == SDR_OK)
            memcpy(message->body->data, whole->data, bytes);
        break;
    case 2: message->body = NULL; break;
    case 5:
        status = make_body(net, NULL, sdr_stream_below(random, 300), &message->body);
        for (uint64_t i = 0; status == SDR_OK && i < message->body->bytes; i++)
            message->body->data[i] = (unsigned char)sdr_stream_u32(random);
        break;
    default: damage_bytes(random, whole); return SDR_OK;
    }
    sdr_body_drop(whole);
    return status;
}

static bool travels(const struct sdr_network *net, const struct sdr_message *message)
{
    return !sdr_message_is_local(message->kind) && message->from >= 0 && message->from < net->nodes;
}

/* A damaged copy of a message; false: there is none this time. */
static bool damage(struct sdr_stream *random, const struct sdr_network *net,
                   const struct sdr_message *message, struct sdr_message *copy)
{
    enum sdr_status status = SDR_OK;
    *copy = *message;
    if (message->body)
        status = make_body(net, message->body->data, message->body->bytes, &copy->body);
    if (status != SDR_OK)
        return false;
    bool wanted = true;
    if (hostile.options->how == BEFORE)
        wanted = damage_plainly(random, net, copy);
    else if (hostile.options->how == AFTER && sdr_stream_below(random, 4) == 0)
        wanted = true; /* it comes twice */
    else if (sdr_stream_below(random, 2))
        damage_header(random, copy);
    else
        status = damage_body(random, net, copy);
    if (status == SDR_OK && wanted && travels(net, copy))
        return true;
    sdr_body_drop(copy->body);
    return false;
}

static enum sdr_status send(struct sdr_node *node, struct sdr_message *message)
{
    uint64_t number = atomic_fetch_add(&hostile.sent, 1);
    struct sdr_stream random = sdr_stream_open(hostile.options->seed, SDR_FOR_TEST, number);
    struct sdr_message copy;
    if (sdr_stream_uniform(&random) >= hostile.options->share ||
        atomic_load(&hostile.damaged) >= hostile.options->most ||
        !damage(&random, node->run->network, message, &copy))
        return hostile.inner->send(node, message);
    atomic_fetch_add(&hostile.damaged, 1);
    if (hostile.options->how == REPLACE) {
        sdr_body_drop(message->body);
        return hostile.inner->send(node, &copy);
    }
    struct sdr_message *first = hostile.options->how == BEFORE ? &copy : message;
    struct sdr_message *second = first == message ? &copy : message;
    enum sdr_status status = hostile.inner->send(node, first);
    if (status == SDR_OK)
        return hostile.inner->send(node, second);
    sdr_body_drop(second->body);
    return status;
}

/* ---- the rest is the transport's below ---- */
extern const struct sdr_transport sdr_transport_sim, sdr_transport_threads;

static enum sdr_status open_over(const struct sdr_transport *inner, struct sdr_run *run,
                                 const void *options)
{
    hostile.inner = inner;
    hostile.options = options;
    atomic_store(&hostile.sent, 0);
    atomic_store(&hostile.damaged, 0);
    if (!hostile.pool)
        SDR_TRY(sdr_pool_create(false, &hostile.pool));
    if (inner->options) {
        char given[256];
        snprintf(given, sizeof given, "silence=%.17g,dies=%s", hostile.options->silence,
                 hostile.options->dies);
        SDR_TRY(sdr_allocate(&hostile.inner_options, 1, inner->options_size, "a test"));
        SDR_TRY(sdr_option_defaults(inner->options, hostile.inner_options));
        SDR_TRY(sdr_spec_options(inner->options, inner->name, given, hostile.inner_options));
    }
    return inner->open(run, hostile.inner_options);
}

static enum sdr_status open_sim(struct sdr_run *run, const void *options)
{
    return open_over(&sdr_transport_sim, run, options);
}

static enum sdr_status open_threads(struct sdr_run *run, const void *options)
{
    return open_over(&sdr_transport_threads, run, options);
}

static void close_inner(struct sdr_run *run)
{
    hostile.inner->close(run);
    if (hostile.options->share > 0)
        fprintf(stderr, "hostile: damaged %llu messages of %llu\n",
                (unsigned long long)atomic_load(&hostile.damaged),
                (unsigned long long)atomic_load(&hostile.sent));
    if (hostile.inner_options)
        sdr_option_free(hostile.inner->options, hostile.inner_options);
    sdr_release(hostile.inner_options);
    hostile.inner_options = NULL;
}

static enum sdr_status launch(struct sdr_run *run, enum sdr_status (*loop)(struct sdr_node *node))
{
    run->network->admits |= hostile.options->share > 0;
    return hostile.inner->launch(run, loop);
}

static enum sdr_status receive(struct sdr_node *node, struct sdr_message *message)
{
    return hostile.inner->receive(node, message);
}

static enum sdr_status compute(struct sdr_node *node, struct sdr_work *work, bool *done)
{
    return hostile.inner->compute(node, work, done);
}

static bool any(struct sdr_node *node)
{
    return hostile.inner->any(node);
}

static void await(struct sdr_node *node, int64_t nanoseconds)
{
    hostile.inner->wait(node, nanoseconds);
}

static enum sdr_status expose(struct sdr_run *run)
{
    return hostile.inner->expose(run);
}

static bool idle(struct sdr_node *node, int to)
{
    return !hostile.inner->idle || hostile.inner->idle(node, to);
}

static bool one_machine(const struct sdr_node *node)
{
    return hostile.inner->one_machine(node);
}

static int64_t now(const struct sdr_node *node)
{
    return hostile.inner->now(node);
}

/* Values are picked and copied as between processes: bodies are not by reference. */
#define REST                                                                                       \
    .options = table, .options_size = sizeof(struct options), .workers_most = 1024,                \
    .launch = launch, .send = send, .receive = receive, .compute = compute, .any = any,            \
    .wait = await, .one_machine = one_machine, .expose = expose, .idle = idle, .now = now,         \
    .close = close_inner

SDR_REGISTER(transport, hostile) = {
    .name = "hostile",
    .summary = "for tests: sim, with messages damaged",
    .simulated = true,
    .open = open_sim,
    REST,
};

SDR_REGISTER(transport, hostile_threads) = {
    .name = "hostile-threads",
    .summary = "for tests: threads, with messages damaged",
    .open = open_threads,
    REST,
};
