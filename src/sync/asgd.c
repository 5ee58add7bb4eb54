/* ASGD (Keuper and Pfreundt, 2015): asynchronous SGD by one-sided communication of states. No
   server, no barrier, nobody waits.

   Every worker has its own shard of the rows and its own state w. It takes the steps of a share, Δ
   in all, and writes its state into the memory of a random peer. What it finds in its own memory,
   the state w_j of another one, is merged:

       w ← w − Δ − ε · (w − ½ (w + w_j)) · δ(w_j),   δ = 1 if ‖(w − Δ) − w_j‖² < ‖w − w_j‖², else 0

   The Parzen window δ takes a state only if the own steps have come closer to it, anyhow. Those of
   optimizers with a state of their own, as Adam, hardly ever do among many parameters: then all
   states are taken (window=auto). Of k states that are taken the mean with the own one is in the
   place of ½ (w + w_j). ε is 1 (blend=full) or, as in the paper, the step size (blend=rate). States
   may be overwritten before they are read, or torn: the window tolerates that.

   The result is the state of worker 0, as in the paper, or the mean of all. */
#include "base/memory.h"
#include "peer/role.h"
#include "sync/parzen.h"

#include <math.h>
#include <string.h>

enum window { AUTO, PARZEN, OPEN, CLOSED };
enum blend { FULL, RATE };
enum final { FIRST, AVERAGE };
struct options {
    uint64_t every, slots;
    int window, blend, final; /* of the enums above */
    double part;
    bool send, touched, adapt;
};
static const struct sdr_option table[] = {
    {"every", SDR_INTEGER, "0", "N", 0, 1e9,
     "updates of a worker between two messages; 0: 500 rows, more if the model is large, at most a "
     "tenth of an epoch",
     offsetof(struct options, every), 0},
    {"slots", SDR_INTEGER, "4", "N", 1, 1024, "states of others that a worker has room for",
     offsetof(struct options, slots), 0},
    {"send", SDR_FLAG, "yes", NULL, 0, 0, "no: workers never hear of each other",
     offsetof(struct options, send), 0},
    {"part", SDR_NUMBER, "1", "F", 1e-6, 1,
     "fraction of the state in a message: random pieces of it", offsetof(struct options, part), 0},
    {"touched", SDR_FLAG, "no", NULL, 0, 0,
     "messages have only pieces that have changed since the last one (k-means: centers)",
     offsetof(struct options, touched), 0},
    {"window", SDR_CHOICE, "auto", "auto|parzen|open|closed", 0, 0,
     "states that are merged: those that the Parzen window takes, all that are not torn, or none; "
     "auto: parzen with --optimizer sgd, else open",
     offsetof(struct options, window), 0},
    {"blend", SDR_CHOICE, "full", "full|rate", 0, 0,
     "how far a worker moves to the mean with a state: all the way, or times the step size",
     offsetof(struct options, blend), 0},
    {"final", SDR_CHOICE, "first", "first|average", 0, 0,
     "the result: the state of worker 0, or the mean of all", offsetof(struct options, final), 0},
    {"adapt", SDR_FLAG, "no", NULL, 0, 0, "messages become rarer while the network cannot keep up",
     offsetof(struct options, adapt), 0},
    {0}};

/* A worker, apart from its replica. */
struct own {
    struct sdr_state_shape shape;
    float *before, *after;   /* owned: the state before the steps of a share, and behind them */
    bool known;              /* `after` is the present state */
    float *sum;              /* owned: of the states that are merged */
    uint32_t *merged;        /* owned, per piece: how many */
    float *told;             /* owned: the state of the last message, with touched=yes */
    bool *marked;            /* owned: pieces of a message */
    uint64_t shares;         /* since the last message */
    uint64_t wait;           /* shares between two messages; adapt=yes changes it */
    unsigned char *memory[]; /* owned, per slot: what was found there */
};

static uint64_t local(const void *options, const struct sdr_facts *facts)
{
    /* WORK: values that are computed with for each that is sent */
    enum { ROWS = 500, WORK = 20, MESSAGES = 10 };
    uint64_t every = ((const struct options *)options)->every;
    double rows = fmax(ROWS, WORK * (double)facts->parameters / fmax(facts->row_values, 1));
    rows = fmin(rows, (double)facts->shard / MESSAGES); /* an epoch, at least */
    return every ? every : (uint64_t)fmax(1, floor(rows / (double)facts->batch));
}

static int slots(const void *options)
{
    return (int)((const struct options *)options)->slots;
}

static void look_at_state(struct sdr_node *node, struct own *own)
{
    if (!own->known)
        sdr_peer_copy_state(node, own->after);
    own->known = true;
}

/* ---- merging ---- */
/* Remembers the state before the steps of a share. */
static void begin(struct sdr_node *node, struct own *own)
{
    look_at_state(node, own);
    float *before = own->after;
    own->after = own->before;
    own->before = before;
}

/* δ: whether the own steps have come closer to a state. */
static bool is_closer(const struct own *own, const struct sdr_state *state)
{
    const float *there = state->value;
    struct sdr_parzen parzen = {0};
    for (uint32_t p = 0; p < state->pieces; p++) {
        uint64_t at = state->piece[p] * own->shape.piece,
                 count = sdr_state_length(&own->shape, state->piece[p]);
        sdr_parzen_add(&parzen, own->before + at, own->after + at, there, count);
        there += count;
    }
    return sdr_parzen_takes(&parzen);
}

static void add(struct own *own, const struct sdr_state *state)
{
    const float *there = state->value;
    for (uint32_t p = 0; p < state->pieces; p++) {
        uint64_t at = state->piece[p] * own->shape.piece,
                 count = sdr_state_length(&own->shape, state->piece[p]);
        bool first = own->merged[state->piece[p]]++ == 0;
        for (uint64_t i = 0; i < count; i++)
            own->sum[at + i] = first ? there[i] : own->sum[at + i] + there[i];
        there += count;
    }
}

/* w ← w − Δ − ε (w − mean of w and the merged states), piece by piece. */
static void blend(struct own *own, float weight)
{
    for (uint32_t p = 0; p < own->shape.pieces; p++) {
        uint64_t at = p * own->shape.piece, count = sdr_state_length(&own->shape, p);
        float share = 1.0f / (float)(own->merged[p] + 1);
        for (uint64_t i = at; i < at + count && own->merged[p]; i++)
            own->after[i] -= weight * (own->before[i] - share * (own->before[i] + own->sum[i]));
        own->merged[p] = 0;
    }
}

static int window_of(const struct sdr_node *node)
{
    int window = ((const struct options *)sdr_peer_options(node))->window;
    return window != AUTO ? window : sdr_peer_plain_steps(node) ? PARZEN : OPEN;
}

static void merge(struct sdr_node *node, struct own *own, const struct sdr_state *state, int found)
{
    const struct options *options = sdr_peer_options(node);
    int window = window_of(node);
    uint64_t accepted = 0;
    look_at_state(node, own);
    for (int s = 0; s < found; s++)
        if ((window == OPEN && !state[s].torn) || (window == PARZEN && is_closer(own, &state[s]))) {
            add(own, &state[s]);
            accepted++;
        }
    if (accepted) {
        blend(own, options->blend == FULL ? 1 : fminf(1, (float)sdr_peer_step_size(node)));
        sdr_peer_set_state(node, own->after);
    }
    sdr_peer_count_states(node, accepted, (uint64_t)found - accepted);
}

/* ---- messages ---- */
/* The pieces of a message: those that have changed, or some of them. */
static bool mark(struct sdr_node *node, struct own *own)
{
    const struct options *options = sdr_peer_options(node);
    bool any = false;
    for (uint32_t p = 0; p < own->shape.pieces; p++) {
        uint64_t at = p * own->shape.piece,
                 bytes = sdr_state_length(&own->shape, p) * sizeof *own->told;
        own->marked[p] =
            !(options->touched && memcmp(own->told + at, own->after + at, bytes) == 0) &&
            (options->part == 1 || sdr_peer_draw(node) < options->part);
        any = any || own->marked[p];
    }
    return any;
}

static void remember(struct own *own)
{
    for (uint32_t p = 0; p < own->shape.pieces; p++)
        if (own->marked[p])
            memcpy(own->told + p * own->shape.piece, own->after + p * own->shape.piece,
                   sdr_state_length(&own->shape, p) * sizeof *own->told);
}

/* One message at most is on its way to a peer. If that is slow, messages become rarer, and later
   more frequent again. */
static enum sdr_status send(struct sdr_node *node, struct own *own)
{
    enum { RAREST = 1024 };
    const struct options *options = sdr_peer_options(node);
    bool some = options->touched || options->part < 1, sent;
    int to = options->send && ++own->shares >= own->wait ? sdr_peer_any_other(node) : -1;
    if (to < 0)
        return SDR_OK;
    look_at_state(node, own);
    own->shares = 0;
    if (some && !mark(node, own))
        return SDR_OK;
    SDR_TRY(sdr_peer_put_state(node, to, own->after, some ? own->marked : NULL, &sent));
    if (sent && options->touched)
        remember(own);
    if (options->adapt && !sent)
        own->wait = own->wait < RAREST ? 2 * own->wait : RAREST;
    else if (options->adapt && own->wait > 1)
        own->wait--;
    return SDR_OK;
}

/* ---- the loop ---- */
static enum sdr_status train(struct sdr_node *node, struct own *own, struct sdr_state *state)
{
    for (;;) {
        struct sdr_batch share;
        struct sdr_work work;
        int found = 0, slot = 0;
        SDR_TRY(sdr_peer_next_batch(node, &share));
        while (found < slots(sdr_peer_options(node)) &&
               sdr_peer_take_state(node, &slot, own->memory[found], &state[found]))
            found++;
        if (found)
            begin(node, own);
        sdr_peer_train(node, &share, &work);
        while (work.next < work.steps)
            SDR_TRY(sdr_peer_compute(node, &work));
        own->known = false;
        if (found)
            merge(node, own, state, found);
        SDR_TRY(send(node, own));
        SDR_TRY(sdr_peer_account(node));
    }
}

static enum sdr_status publish(struct sdr_node *node)
{
    const struct options *options = sdr_peer_options(node);
    float *model;
    SDR_TRY(sdr_allocate(&model, sdr_peer_model_values(node), sizeof *model, "a model"));
    enum sdr_status status = SDR_OK;
    if (options->final == AVERAGE)
        status = sdr_peer_mean_model(node, model);
    else
        sdr_peer_copy_model(node, model);
    if (status == SDR_OK)
        sdr_peer_publish(node, model);
    sdr_release(model);
    return status;
}

/* The others go on without it: nobody waits for anybody. */
static enum sdr_status lost(struct sdr_node *node, int peer)
{
    (void)node, (void)peer;
    return SDR_OK;
}

static enum sdr_status peer(struct sdr_node *node)
{
    const struct options *options = sdr_peer_options(node);
    struct own *own = NULL;
    struct sdr_state *state = NULL;
    enum sdr_status status;
    SDR_CHECK(
        sdr_allocate(&own, 1, sizeof *own + options->slots * sizeof *own->memory, "a worker"));
    own->shape = sdr_peer_state_shape(node);
    own->wait = 1;
    SDR_CHECK(sdr_allocate(&state, options->slots, sizeof *state, "states"));
    for (uint64_t s = 0; s < options->slots; s++)
        SDR_CHECK(sdr_allocate(&own->memory[s], sdr_peer_state_bytes(node), 1, "states"));
    SDR_CHECK(sdr_allocate(&own->before, own->shape.values, sizeof *own->before, "states"));
    SDR_CHECK(sdr_allocate(&own->after, own->shape.values, sizeof *own->after, "states"));
    SDR_CHECK(sdr_allocate(&own->sum, own->shape.values, sizeof *own->sum, "states"));
    SDR_CHECK(sdr_allocate(&own->told, options->touched ? own->shape.values : 0, sizeof *own->told,
                           "states"));
    SDR_CHECK(sdr_allocate(&own->merged, own->shape.pieces, sizeof *own->merged, "states"));
    SDR_CHECK(sdr_allocate(&own->marked, own->shape.pieces, sizeof *own->marked, "states"));
    status = train(node, own, state);
cleanup:
    for (uint64_t s = 0; own && s < options->slots; s++)
        sdr_release(own->memory[s]);
    if (own) {
        sdr_release(own->before);
        sdr_release(own->after);
        sdr_release(own->sum);
        sdr_release(own->told);
        sdr_release(own->merged);
        sdr_release(own->marked);
    }
    sdr_release(own);
    sdr_release(state);
    return status;
}

static const struct sdr_peer_ops peers = {
    .local = local, .alone = true, .slots = slots, .publish = publish, .peer = peer, .lost = lost};

SDR_REGISTER(strategy, asgd) = {
    .name = "asgd",
    .summary = "every worker trains its own model and writes its state into the memory of others",
    .options = table,
    .options_size = sizeof(struct options),
    .many = true,
    .peer = &peers,
};
