/* Nodes that exchange messages: servers, where the parameters live, and workers, which compute gradients.

   Batches have numbers: number n is a stretch of the rows of epoch n / (batches of an epoch), the same for
   every node. The first server hands them out, and again those that were cancelled or lost, so that every number
   is applied once, whoever was fast or slow. A worker is given a number and the values to work from, and
   sends back the slopes of its examples; servers multiply them out, each for its own features.

   Nodes: servers first, from 0 on, then workers. */
#ifndef SDR_NETWORK_H
#define SDR_NETWORK_H

#include "base/delay.h"
#include "base/memory.h"
#include "server/batch_queue.h"
#include "server/message.h"
#include "server/role.h"
#include "server/shards.h"
#include "update/parameters.h"
#include "update/values.h"
#include "update/wire.h"
#include <pthread.h>

/* Asks for memory that will be written to. Always inline: a function that only prefetches counts as without
   effect, and its calls are dropped. */
static inline __attribute__((always_inline)) void sdr_fetch_to_write(const void *from, size_t bytes)
{
    enum { LINE = 64 };
    for (size_t i = 0; i < bytes; i += LINE)
        __builtin_prefetch((const unsigned char *)from + i, 1);
}

/* Where gradients are computed: one for every thread that does. */
struct sdr_workspace {
    float *w; /* owned, as long as the parameters: values that came in pieces */
    struct sdr_marks marks;
    uint32_t *row;                   /* owned: the rows of a batch */
    struct sdr_gradient_space space; /* of a worker */
    struct sdr_loss_sum *losses;     /* owned: one a leaf */
    struct sdr_part *part;           /* owned: of a step */
    struct sdr_wire_writer writer;
    struct sdr_wire_reader reader;
    struct sdr_parameters
        stepper;              /* takes steps on w, with the state of a worker; where workers do */
    struct sdr_subset subset; /* a batch by itself, where views hold what it touches alone */
    float *packed;     /* owned: values on their way into a message; where workers take steps */
    float *before;     /* owned: the values before the steps, for every server; the same */
    uint32_t *own_row; /* owned: the rows of an earlier batch; the same */
};

/* A server's side. Gradients that the first server has not decided on yet, or that it has decided to drop
   before they arrived. */
struct sdr_pending {
    uint64_t batch, version;
    struct sdr_body *body;    /* owned; NULL: it will be dropped when it comes */
    bool decided;             /* it is in the decision that is followed now */
    struct sdr_pending *next; /* owned: of the same worker */
};
struct sdr_server {
    struct sdr_parameters
        *parameters; /* the run's, or an alias of them; NULL: it lives elsewhere */
    struct sdr_parameters alias;
    struct sdr_span span;           /* its values */
    struct sdr_body *snapshot;      /* owned: the values of a version; NULL: none yet */
    uint64_t version;               /* of the snapshot */
    struct sdr_workspace workspace; /* for gathering what batches touch, and reading updates */
    struct sdr_sum sum;             /* of the gradients of an update */
    uint32_t *row;                  /* owned: rows of an update */
    uint64_t row_room;
    float *dense; /* owned: gradients multiplied out, for aggregates that need it; NULL: none */
    uint64_t dense_room;
    uint32_t combined;            /* the last mark of such a gradient */
    struct sdr_saved saved;       /* of a server elsewhere, on order */
    int places;                   /* workers that it knows: see membership.c */
    bool *gone;                   /* owned, per worker: it was lost, or has not joined */
    struct sdr_pending **pending; /* owned, per worker: other servers than the first */
    struct sdr_message *backlog; /* owned: messages that came while something else was waited for */
    uint64_t backlogged, backlog_room, backlog_at;
};

/* Division by a number that stays, for dividends below 2^63: every message asks where its batch is. */
struct sdr_divisor {
    uint64_t by, inverse;
};
static inline struct sdr_divisor sdr_divisor(uint64_t by)
{
    return (struct sdr_divisor){by, UINT64_MAX / by};
}
static inline uint64_t sdr_divide(const struct sdr_divisor *d, uint64_t number, uint64_t *rest)
{
    __extension__ typedef unsigned __int128 wide;
    uint64_t quotient = (uint64_t)((wide)number * d->inverse >> 64); /* or one too small */
    bool more = number - quotient * d->by >= d->by;
    quotient += more;
    *rest = number - quotient * d->by;
    return quotient;
}

/* The orders of the epochs that batches are dealt from. */
struct sdr_sampler {
    pthread_mutex_t lock;
    uint64_t slots; /* a power of two */
    struct {
        uint64_t epoch;
        uint32_t *order; /* owned; NULL: not laid yet */
    } * slot;
};

/* What the first server knows of a worker. */
struct sdr_assignment {
    uint64_t batch, version;
    bool busy;              /* with that batch */
    bool idle;              /* there was no batch for it */
    bool gone;              /* it was lost, or has not joined */
    uint64_t tasks;         /* given to it */
    uint64_t steps;         /* of its own that were applied */
    int64_t assigned, came; /* transport time: of the task, and of the gradient before it */
    int32_t waited_for;     /* see ledger.h */
    uint32_t bytes;         /* of the task */
    bool prefetched;        /* eager: its next batch, with values */
    int patches;            /* of these values, so far */
    uint64_t next;          /* that batch */
    uint32_t next_bytes;    /* of its values and patches */
    struct sdr_body *sent;  /* owned: those values, as the worker has them */
    double tokens;          /* bytes that may be sent to it now */
    int64_t filled;         /* transport time of that */
};

/* What the strategy and the options decided. */
struct sdr_policy {
    uint64_t quorum;           /* gradients of an update */
    bool joint;                /* every worker computes its part of one batch */
    uint32_t part_unit;        /* rows that a part is made of: leaves where bits matter, or 1 */
    bool sparse;               /* workers are sent what their batch touches */
    bool compact;              /* and hold that alone, not a view as long as the parameters */
    bool cancels;              /* the strategy may cancel work */
    bool steps;                /* workers take steps, and send these */
    bool eager;                /* workers are sent values ahead */
    bool keeps;                /* workers may have to go on from the values they have */
    uint64_t batch;            /* rows of a batch */
    uint32_t local;            /* rows of a step, where workers take several with a batch */
    uint64_t per_epoch;        /* batches */
    struct sdr_divisor epochs; /* by that */
};

/* What the first server keeps: it hands out batches, counts gradients and decides. */
struct sdr_coordinator {
    struct sdr_assignment *assignment; /* owned, per worker */
    struct sdr_batch_queue queue;      /* of the epochs that are planned */
    int idle;                          /* workers that wait because the queue is empty */
    int alive;                         /* workers that were not lost */
    int last;                          /* worker whose gradient came last; −1: none yet */
    uint64_t discard_before; /* gradients of older versions are ignored (after a restart) */
    uint64_t dropped;        /* gradients that came too late */
    uint64_t applied, staleness, stalest; /* gradients; sum and largest of the updates missed */
    struct sdr_ledger ledger;
    char ledger_lost[512]; /* why records of it are lost; "": none are */
    int64_t ended;         /* transport time when the run was over */
};

struct sdr_traffic {
    uint64_t events;                      /* deliveries and ends of work, where time is virtual */
    atomic_uint_fast64_t bytes, messages; /* sent */
    int64_t waited;                       /* nanoseconds, of all workers */
    int present;                          /* workers of this process: those that waited counts */
    atomic_uint_fast64_t refused;         /* messages that could not be what they said */
};

/* Two nodes that exchange messages: the number of the next one, from the first of them to the other and back. Each is
   counted where it is sent, and where it arrives. */
struct sdr_channel {
    uint16_t sent[2], heard[2];
};

/* What gradients take, and what holds workers up. */
struct sdr_compute_times {
    struct sdr_delay compute, delay; /* --compute, --delay; no terms: none */
    float *slowness;                 /* owned, per worker: --slow; NULL: all 1 */
};

struct sdr_network {
    int servers, workers, nodes; /* servers is 0: workers are peers */
    int processes;               /* of the job */
    bool dedicated;              /* servers have processes without workers */
    struct sdr_peers *peers;     /* owned; NULL: there are servers */
    struct sdr_node *node;       /* owned: all of them */
    struct sdr_pool *pool;       /* owned */
    void *shared;                /* the transport's */
    /* Asks for the memory that a worker needs when it goes on; NULL: nothing is asked for. */
    void (*fetch)(const struct sdr_node *node);
    bool single_threaded;            /* all nodes are on one thread: nothing needs a lock */
    struct sdr_span *span;           /* owned: the values of each server */
    struct sdr_wire wire;            /* how updates travel */
    struct sdr_server *server;       /* owned */
    struct sdr_workspace *workspace; /* owned */
    int workspaces;
    struct sdr_sampler sampler;
    struct sdr_policy policy;
    struct sdr_coordinator lead;
    struct sdr_traffic traffic;
    struct sdr_channel *channel; /* owned: see traffic.c */
    int channel_nodes;           /* that these are for; 0: messages are not numbered */
    bool admits;                 /* loops of a strategy run: what arrives is checked */
    struct sdr_compute_times times;
    struct sdr_shard_array array[SDR_ARRAYS]; /* for checkpoints */
};

/* A step that a worker has taken, until the values it is sent have it in them. */
struct sdr_own_step {
    uint64_t batch;
    struct sdr_body **part; /* owned: one for every server */
};

/* What has changed of the values of a task since they were sent. */
struct sdr_patch {
    struct sdr_body *body; /* owned: places among the values, then these */
    uint64_t included;     /* as below, of these */
};

/* Where workers take steps: what a worker has written itself, and reads before others do. */
struct sdr_own_writes {
    double rate;             /* the size of the present step */
    uint64_t fresh;          /* version of the values with all patches */
    uint64_t seen;           /* updates in them with its own steps */
    struct sdr_patch *patch; /* owned */
    uint64_t patches, patch_room;
    struct sdr_message early;  /* a task that came before this one was begun; NONE: none */
    uint64_t included;         /* of its own steps, how many the values have in them */
    uint64_t applied;          /* and how many those that it will be sent */
    uint64_t taken;            /* sent so far: of one step each, or of several */
    uint64_t steps;            /* so far */
    struct sdr_own_step *step; /* owned: a ring of those from `first` to taken − 1 */
    uint64_t first, room;
    float *slot[2]; /* owned: the optimizer's state */
    bool kept;      /* this task came without values */
    float *local;   /* owned: the values after its last step, if it may have to go on from them */
};

/* A worker's task, kept with its node. */
struct sdr_task {
    uint64_t batch, version;
    int arrived; /* pieces of its values, of as many as there are servers */
    bool sparse;
    struct sdr_body **piece;  /* owned: one of every server */
    struct sdr_body **result; /* owned: what was computed, for every server */
    float computing;          /* seconds it took */
    float *residual;          /* owned: what a lossy codec left out so far; NULL: nothing */
    uint32_t number;          /* tasks so far */
    int64_t waited;           /* nanoseconds waiting for tasks */
    struct sdr_own_writes own;
};

/* membership.c: workers that are there when a run begins; one that joins, or is back; one that is lost. */
enum sdr_status sdr_members_start(struct sdr_node *server, int workers);
enum sdr_status sdr_member_join(struct sdr_node *server, int worker);
void sdr_member_lose(struct sdr_node *server, int worker);

/* placement.c: the process that a node lives in, and whether that is this one; whether servers live in more than
   one; the workers that the processes of a job make by default. */
int sdr_process_of(const struct sdr_network *net, int node);
bool sdr_is_here(const struct sdr_node *node);
bool sdr_servers_apart(const struct sdr_network *net);
int sdr_workers_of_job(const struct sdr_run *run);

/* Whether a node is told (LOST) that another one is gone: the first server, or every node where there is none; and
   servers that would wait in another process for what was on its way to them. */
static inline bool sdr_hears_of_deaths(const struct sdr_network *net, int node)
{
    return net->servers == 0 || node == 0 || (node < net->servers && sdr_servers_apart(net));
}

/* sampler.c, compute_times.c: of run->network. */
enum sdr_status sdr_sampler_create(struct sdr_run *run);
enum sdr_status sdr_compute_times_parse(struct sdr_run *run);

enum sdr_status sdr_network_create(struct sdr_run *run, uint64_t quorum);
void sdr_network_destroy(struct sdr_run *run);
/* Writes what the ledger has noted; a failure is told, and is not the end. */
void sdr_network_keep(struct sdr_run *run);
/* Records of the ledger are lost, for the reason in sdr_error(). */
void sdr_network_lose(struct sdr_run *run);
/* Trains, by the loops of the strategy. */
enum sdr_status sdr_network_work(struct sdr_run *run);
/* "2:3x,5:1.5x": a factor for every worker, 1 for those that are not named; given away. */
enum sdr_status sdr_parse_factors(const char *text, char between, const char *owner, int workers,
                                  float **factor);
/* For transports: what the next step of a worker's work takes in virtual time, and how much longer than it took it
   is to take in real time, in nanoseconds. */
int64_t sdr_compute_time(const struct sdr_node *node, struct sdr_work *work);
int64_t sdr_compute_delay(const struct sdr_node *node, const struct sdr_work *work, int64_t took);
/* How many rows a batch has; the rows of a worker's part of it, or with −1 of all of it, into `row`. */
uint32_t sdr_network_rows(const struct sdr_run *run, uint64_t number);
enum sdr_status sdr_network_batch(struct sdr_run *run, uint64_t number, int worker, uint32_t *row,
                                  struct sdr_batch *batch);

/* Between network.c, worker.c, server.c and leader.c: */
enum sdr_status sdr_send(struct sdr_node *node, struct sdr_message *message);
/* A worker's part of a batch of `rows` rows: from … end − 1, parts differing by one unit at most. */
void sdr_part_of(const struct sdr_network *net, uint32_t rows, int worker, uint32_t *from,
                 uint32_t *end);
void sdr_forget_task(struct sdr_node *node);
/* The values to work from, in an array as long as the parameters: as they came, or assembled in the workspace. */
enum sdr_status sdr_assemble_view(struct sdr_node *node, struct sdr_workspace *workspace,
                                  const struct sdr_batch *batch, const float **w);
/* An update as the message for a server; *body is given away. */
enum sdr_status sdr_pack_update(struct sdr_node *node, struct sdr_workspace *workspace, int server,
                                const struct sdr_update *update, const struct sdr_wire_facts *facts,
                                struct sdr_body **body);
/* Whether a message can be what it says, whoever sent it: kinds and nodes that go together, numbers
   within their bounds. Others are dropped. */
bool sdr_message_sound(const struct sdr_node *node, const struct sdr_message *message);
enum sdr_status sdr_channels_create(struct sdr_run *run);
/* For transports: whether a message may go into the mailbox of its receiver. It is sound, and the next one of its
   sender: a copy, a message of another run or of the wrong sender is not. Those are dropped before they can cancel
   anything. Called once for every message that was sent, in the order of arrival. */
bool sdr_message_admitted(struct sdr_network *net, const struct sdr_message *message);

/* Values for a batch of a worker, as they travel. */
enum sdr_status sdr_current_values(struct sdr_node *node, int worker, uint64_t number,
                                   struct sdr_body **body);
/* The next batch (the queue must not be empty); puts one back. */
uint64_t sdr_next_number(struct sdr_network *net);
enum sdr_status sdr_return_number(struct sdr_network *net, uint64_t number);
/* For checkpoints: the numbers that are not applied are kept with the node's arrays, and taken from there. */
enum sdr_status sdr_network_save(struct sdr_run *run);

/* offers.c: a worker's side. */
enum sdr_status sdr_keep_patch(struct sdr_task *task, const struct sdr_message *message);
enum sdr_status sdr_apply_patch(struct sdr_node *node, struct sdr_workspace *workspace,
                                const struct sdr_batch *batch, const struct sdr_patch *patch);
void sdr_forget_patches(struct sdr_task *task);

/* steps.c: workers that take steps. */
enum sdr_status sdr_own_writes_create(struct sdr_node *node);
void sdr_own_writes_free(struct sdr_node *node);
/* The values in the workspace get the worker's own steps that they lack; steps are taken on them; what these changed is
   kept for the servers. */
enum sdr_status sdr_own_writes_begin(struct sdr_node *node, struct sdr_workspace *workspace,
                                     const struct sdr_batch *batch);
void sdr_own_writes_step(struct sdr_node *node, struct sdr_workspace *workspace,
                         const struct sdr_update *update);
enum sdr_status sdr_own_writes_end(struct sdr_node *node, struct sdr_workspace *workspace,
                                   const struct sdr_batch *batch,
                                   const struct sdr_wire_facts *facts);
enum sdr_status sdr_own_writes_push(struct sdr_node *node);
/* A server adds a step to its values. */
enum sdr_status sdr_server_add_step(struct sdr_node *node, const struct sdr_gradient *gradient);
/* server.c: every server. */
struct sdr_server *sdr_server_of(const struct sdr_node *node);
enum sdr_status sdr_defer_message(struct sdr_server *server, const struct sdr_message *message);
/* The next message, with what was put aside first. */
enum sdr_status sdr_next_message(struct sdr_node *node, struct sdr_message *message);
/* The first server: waits for a message of a kind from another server (−1: any); others are put aside. Fails if a
   server is lost. */
enum sdr_status sdr_await_kind(struct sdr_node *node, int kind, int from,
                               struct sdr_message *message);
enum sdr_status sdr_lost_server(struct sdr_node *node, const struct sdr_message *lost);
/* One step on the server's features, with gradients in the order given. */
enum sdr_status sdr_server_step(struct sdr_node *node, const struct sdr_gradient *gradient,
                                uint64_t count, double rate);
/* Reads the update that a message brought; its rows go to `row`. Borrowed until the next is read. */
enum sdr_status sdr_read_update(struct sdr_node *node, const struct sdr_gradient *gradient,
                                uint32_t *row, struct sdr_wire_facts *facts,
                                struct sdr_update *update);
/* combine.c: what an aggregate makes of gradients value by value, and their squared distances, n × n,
   over the server's values. */
enum sdr_status sdr_combine(struct sdr_node *node, const struct sdr_gradient *gradient,
                            uint64_t count, struct sdr_update *update);
enum sdr_status sdr_distances(struct sdr_node *node, const struct sdr_gradient *gradient,
                              uint64_t count, double *distance);
enum sdr_status sdr_send_task(struct sdr_node *node, int worker, uint64_t number, uint8_t flags);
/* What the first server tells the others to apply. */
struct sdr_decision {
    double rate, penalty_due;
    uint64_t count;
    struct {
        uint64_t batch, version;
        int32_t worker;
        float weight;
    } of[];
};
/* The loop of a server that follows the first one. */
enum sdr_status sdr_follow_coordinator(struct sdr_node *node);
void sdr_release_pending(struct sdr_pending **link);

#endif
