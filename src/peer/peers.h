/* The peers of a run: set up by network.c, shared by the functions of role.h. */
#ifndef SDR_PEERS_H
#define SDR_PEERS_H

#include "base/rng.h"
#include "peer/role.h"
#include "server/network.h"
#include "team/node.h"
#include "update/parameters.h"
#include "update/wire.h"

/* A peer's report to peer 0, per update. */
struct sdr_peer_report {
    double loss, weight; /* sums over its rows */
    uint64_t rows;
    uint64_t bytes;   /* sent for the update, without headers */
    uint64_t hash;    /* of its replica; 0: not asked for */
    uint64_t updates; /* that it has made on its replica, if replicas differ */
    struct sdr_state_counts states;
    float computing, waiting; /* seconds */
};

/* Whether numbers of batches are the same for all peers: each has a part of a batch. */
static inline bool sdr_peers_number_alike(const struct sdr_policy *policy)
{
    return policy->joint || policy->share;
}

/* The values of a gradient in one vector: blocks that move, the last one first. */
struct sdr_peer_vector {
    uint64_t first[SDR_BLOCKS_MOST]; /* value of a block */
    bool final[SDR_BLOCKS_MOST];     /* the gradient of a block is complete */
    uint64_t count, ready;           /* values; those complete, from the beginning on */
};
void sdr_peer_vector_make(const struct sdr_layout *layout, struct sdr_peer_vector *vector);
/* Between an array of the parameters and a vector. Fixed blocks stay. */
void sdr_peer_vector_copy(const struct sdr_peer_vector *vector, const struct sdr_layout *layout,
                          const float *array, float *to);
void sdr_peer_vector_set(const struct sdr_peer_vector *vector, const struct sdr_layout *layout,
                         const float *from, float *array);

/* Handles messages while the peer computes, in real time. */
struct sdr_helper;
enum sdr_status sdr_helper_compute(struct sdr_node *node, struct sdr_work *work, bool *done);
bool sdr_helper_works(const struct sdr_helper *helper); /* for whoever handles messages */
void sdr_helper_destroy(struct sdr_helper *helper);

/* A peer that has died: its process, and for how many seconds that was silent. */
struct sdr_peer_loss {
    int peer;
    uint64_t process;
    double silent;
};

/* Who is there. */
struct sdr_peer_group {
    struct sdr_peer_loss *lost; /* owned */
    uint64_t losses, lost_room;
    uint64_t told; /* losses that the user knows of */
    int *member;   /* owned: peers that have parts of a batch, in order */
    int members, rank;
};

/* Updates of all peers, if bits matter. */
struct sdr_peer_exchange {
    struct sdr_sum sum;
    uint32_t *row; /* owned: of all parts of a batch */
    struct sdr_wire_writer writer;
    struct sdr_wire_reader reader;
};

/* Leaves whose gradients are computed stage by stage. The first one is also used for whole
   batches. */
enum { SDR_PEER_LEAVES = 8 };
struct sdr_peer_leaf {
    bool created;
    struct sdr_gradient_space space; /* owned */
    struct sdr_update update;
};

/* A peer that lives in this process. */
struct sdr_peer {
    /* Of the run's parameters; the first peer here has these themselves. */
    struct sdr_parameters replica;
    bool replicated;
    struct sdr_message *pending; /* owned: a ring of messages not asked for yet */
    uint64_t from, count, room;
    struct sdr_peer_group group;
    bool accounting; /* its own report is entered, those of others are not all there */
    bool over;
    /* Batches. */
    uint64_t number;    /* of the next batch */
    uint64_t epoch, at; /* of the present one, and of the first row of all its parts */
    uint32_t *row;      /* owned: of its part of a batch */
    struct sdr_peer_leaf leaf[SDR_PEER_LEAVES];
    uint32_t mark;                 /* mark of its last gradient */
    const struct sdr_batch *batch; /* borrowed while a gradient is computed */
    float *gradient;               /* borrowed meanwhile */
    struct sdr_peer_vector vector;
    struct sdr_peer_exchange exchange;
    int64_t waited;                /* nanoseconds, for messages */
    uint64_t draws;                /* of times, so far */
    struct sdr_helper *helper;     /* owned; NULL: not needed so far */
    struct sdr_peer_report report; /* of the present update, or of those since the last one */
    int64_t reported;              /* when: nanoseconds */
    unsigned char *packed;         /* owned: pieces of a state; NULL: there are no slots */
    uint32_t *all_pieces;          /* owned: 0, 1, 2 …, of a state; NULL: there are no slots */
    struct sdr_stream random;      /* its choices of peers, slots and pieces */
};

/* Reports of an update, at peer 0. */
struct sdr_peer_books {
    struct sdr_peer_report *report; /* owned, per peer: a sum if batches are not joint */
    bool *told;                     /* owned, per peer: it has reported */
    int missing;                    /* reports of live peers not received yet */
    bool *done;                     /* owned, per peer: it has reported its last batch */
    struct sdr_peer_report sum;     /* if nobody waits: what was reported, and is not counted yet */
    int64_t updates;                /* likewise */
    /* rows in the place of those that lost peers would have reported */
    double credit;
    uint64_t untrained; /* such rows that were counted */
    uint64_t version;   /* updates at the beginning of the present epoch */
    const char *stop;   /* why the run ends; NULL: it does not */
};

struct sdr_peers {
    bool saves;             /* replicas differ, and the run has checkpoints */
    struct sdr_peer **peer; /* owned, per peer; NULL: it lives in another process */
    struct sdr_peer_books books;
};

enum sdr_status sdr_peers_create(struct sdr_run *run);
enum sdr_status sdr_peers_expose(struct sdr_run *run); /* slots, if the strategy has them */
enum sdr_status sdr_peer_states_begin(struct sdr_node *node);
void sdr_peers_destroy(struct sdr_run *run);
/* Trains, by the loops of the strategy. */
enum sdr_status sdr_peers_work(struct sdr_run *run);

/* Tags of messages that loops do not see. */
enum { SDR_TAG_STATE = INT32_MAX, SDR_TAG_MODEL = INT32_MAX - 1, SDR_TAG_ASK = INT32_MAX - 2 };
/* The state of replicas that differ, for checkpoints (state.c). create, save: in the first process.
   resume: in all. */
enum sdr_status sdr_peer_states_create(struct sdr_run *run);
enum sdr_status sdr_peer_states_save(struct sdr_run *run);
enum sdr_status sdr_peer_states_resume(struct sdr_run *run);
/* At the end of an epoch: every peer gives its state, then peer 0 takes those of other
   processes. */
enum sdr_status sdr_peer_give_state(struct sdr_node *node);
enum sdr_status sdr_peer_take_states(struct sdr_node *node);
bool sdr_peer_states_there(const struct sdr_node *node); /* that would not wait */

/* Arrays of parameters that workers go on from: the values; of FTRL its state, too. */
int sdr_peer_arrays_to_set(const struct sdr_parameters *p);

struct sdr_peer *sdr_peer_of(const struct sdr_node *node);
struct sdr_view sdr_peer_view(const struct sdr_node *node); /* of its replica */
/* The step size at a place of the present epoch: the same for all peers. */
double sdr_peer_rate(const struct sdr_run *run, const struct sdr_peer *peer, uint64_t at);
/* As sdr_peer_receive; *body is NULL, too, if the peer dies. */
enum sdr_status sdr_peer_receive_if_there(struct sdr_node *node, int from, int32_t tag,
                                          struct sdr_body **body);
/* Receives a message and stores it. */
enum sdr_status sdr_peer_pump(struct sdr_node *node);
/* Peer 0 counts a report, or keeps it for the next update. */
enum sdr_status sdr_peer_file_report(struct sdr_node *node, struct sdr_message *message);
/* Peer 0 asks for the model of this one: answers. */
enum sdr_status sdr_peer_give_model(struct sdr_node *node);
/* For bookkeeping: notes a report in the ledger; marks a batch as applied; sends the present report
   to peer 0; ends the run, at peer 0. */
void sdr_peer_log_report(struct sdr_run *run, int worker, uint64_t number,
                         const struct sdr_peer_report *report);
enum sdr_status sdr_peer_mark_applied(struct sdr_run *run, uint64_t number);
enum sdr_status sdr_peer_send_report(struct sdr_node *node, uint64_t number);
enum sdr_status sdr_peer_dismiss(struct sdr_node *node);
/* Peers that are alone (alone.c): a report arrives at peer 0; a batch is done; all batches of a
   peer are: it waits for the end. */
enum sdr_status sdr_peer_enter_alone(struct sdr_run *run, int from, uint64_t number,
                                     const struct sdr_peer_report *report);
enum sdr_status sdr_peer_account_alone(struct sdr_node *node, uint64_t number, bool ends);
enum sdr_status sdr_peer_await_end(struct sdr_node *node);
/* Keeps a message until a loop asks for it. Takes ownership, also on failure. */
enum sdr_status sdr_peer_keep(struct sdr_peer *peer, const struct sdr_message *message);
/* Peer 0 tells the user of deaths. On the thread of its loop. */
void sdr_peer_tell_losses(struct sdr_node *node);
/* A peer has died. */
enum sdr_status sdr_peer_lose(struct sdr_node *node, const struct sdr_message *message);

#endif
