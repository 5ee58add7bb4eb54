/* The functions that the loop of a peer may call. Peers are nodes without a server: each has a
   replica of the parameters, and any two of them exchange messages. Peer 0 does the bookkeeping of
   the run: it evaluates, writes checkpoints and decides when the run is over; at the end its
   replica, or what it publishes, is the model.

   A loop is plain blocking code, the same on every transport:

       for (;;) {
           SDR_TRY(sdr_peer_next_batch(node, &batch));
           sdr_peer_gradient(node, &batch, gradient, &work);
           while (work.next < work.steps)
               SDR_TRY(sdr_peer_compute(node, &work));
           … send and receive until all peers have the sum …
           sdr_peer_step(node, gradient);
           SDR_TRY(sdr_peer_account(node));
       }

   Every call that returns a status may return SDR_PEER_OVER, which the loop returns, as it
   does a failure: SDR_TRY does that. In both cases the loop frees its own allocations. */
#ifndef SDR_PEER_ROLE_H
#define SDR_PEER_ROLE_H

#include "kind/strategy.h"
#include "kind/transport.h"
#include "kind/update.h"
#include "server/message.h"
#include "server/slots.h"

struct sdr_peer_ops {
    /* Steps that a worker takes on its own shard and its own replica between two exchanges, with
       sdr_peer_train; UINT64_MAX: all of an epoch. NULL: replicas are alike, and batches are not of
       shards. */
    uint64_t (*local)(const void *options, const struct sdr_facts *facts);
    /* With `local`: nobody waits for others. A peer ends with its own last batch; the run ends with
       the last peer. */
    bool alone;
    /* Slots of every peer for states of others, with sdr_peer_put_state; NULL: none. */
    int (*slots)(const void *options);
    /* At peer 0, if alone: publishes the model, which is evaluated, saved or given to the user
       next. */
    enum sdr_status (*publish)(struct sdr_node *node);
    /* The loop of a peer. Returns only when one of the functions below tells it to. */
    enum sdr_status (*peer)(struct sdr_node *node);
    /* A peer has died; called within a receiving call, once on each of the others. The loop
       continues without it if this returns SDR_OK; another status is what the call returns, such as
       SDR_PEER_REGROUP. NULL: the run ends, with a checkpoint. The loss of peer 0 always ends the
       run. */
    enum sdr_status (*lost)(struct sdr_node *node, int peer);
};

/* The run is over: not a failure. */
#define SDR_PEER_OVER ((enum sdr_status)1000)
/* For `lost`: breaks off what the loop is doing, which then agrees with the others how to go on. */
#define SDR_PEER_REGROUP ((enum sdr_status)1001)

int sdr_peer_id(const struct sdr_node *node); /* 0 … sdr_peers(node) − 1 */
int sdr_peers(const struct sdr_node *node);
const void *sdr_peer_options(const struct sdr_node *node); /* the strategy's own */
bool sdr_peer_is_lost(const struct sdr_node *node, int peer);
bool sdr_peers_on_one_machine(const struct sdr_node *node);
int64_t sdr_peer_now(const struct sdr_node *node); /* nanoseconds: the transport's time */

/* ---- deaths ---- */
/* For `lost`: ends the run, as without that function. */
enum sdr_status sdr_peer_give_up(struct sdr_node *node, int lost);
uint64_t sdr_peer_losses(const struct sdr_node *node); /* peers that have died, as far as known */
/* The members have parts of a joint batch, by their ranks: all peers, until lost ones are left out.
   All that go on must do so between the same two batches. */
int sdr_peer_members(const struct sdr_node *node);
int sdr_peer_rank(const struct sdr_node *node);
int sdr_peer_member(const struct sdr_node *node, int rank);
void sdr_peer_part_without_lost(struct sdr_node *node);
/* The next batch is the last one once more: it was broken off. */
void sdr_peer_again(struct sdr_node *node);
/* Drops messages with a tag below this one that have come and were not asked for. */
void sdr_peer_forget(struct sdr_node *node, int32_t below);

/* ---- messages ---- */
/* Allocates a body: the caller's, until it is sent or dropped (sdr_body_drop). */
enum sdr_status sdr_peer_body(struct sdr_node *node, uint64_t bytes, struct sdr_body **body);
/* Never waits. Takes ownership of the body, also on failure; it may be NULL. To a lost peer: no
   effect. */
enum sdr_status sdr_peer_send(struct sdr_node *node, int to, int32_t tag, struct sdr_body *body);
/* Waits for the next message of a peer with a tag; others that arrive meanwhile are kept. *body
   is the caller's, or NULL. */
enum sdr_status sdr_peer_receive(struct sdr_node *node, int from, int32_t tag,
                                 struct sdr_body **body);
/* Waits for the next message of any peer, in order of arrival. */
enum sdr_status sdr_peer_receive_any(struct sdr_node *node, int *from, int32_t *tag,
                                     struct sdr_body **body);
/* Without waiting: *came is false if there is no such message yet. */
enum sdr_status sdr_peer_poll(struct sdr_node *node, int from, int32_t tag, struct sdr_body **body,
                              bool *came);
/* Whether a message has arrived: receive_any would not wait. */
enum sdr_status sdr_peer_any(struct sdr_node *node, bool *any);

/* Sums by the transport itself (kind/transport.h), if it has them and every process has one peer.
   _await handles messages meanwhile. */
bool sdr_peer_has_sums(const struct sdr_node *node);
enum sdr_status sdr_peer_sum(struct sdr_node *node, float *value, uint64_t count, void *request);
enum sdr_status sdr_peer_summed(struct sdr_node *node, void *request, bool *done);
enum sdr_status sdr_peer_await_sum(struct sdr_node *node, void *request);

/* ---- work ---- */
/* Runs one step of the work. The loop sets run, argument, steps and cost. */
enum sdr_status sdr_peer_compute(struct sdr_node *node, struct sdr_work *work);

/* ---- training ---- */
/* The next batch: this peer's part of one that all compute (strategy.joint), the next rows of its
   shard (`local`), or one of its own. Batches have numbers, the same for all peers
   (server/network.h). Borrowed until the next call. */
enum sdr_status sdr_peer_next_batch(struct sdr_node *node, struct sdr_batch *batch);
bool sdr_peer_deterministic(const struct sdr_node *node); /* --deterministic */
uint64_t sdr_peer_values(const struct sdr_node *node);    /* of a gradient */
uint64_t sdr_peer_hash(struct sdr_node *node);            /* of the replica's values */
/* Sets up work that computes the gradient of the batch, at the replica, into `gradient`,
   sdr_peer_values long. Over all parts of a joint batch, gradients add up to that of its mean
   loss. After every step of the work some values more, from the beginning on, are final. batch
   and gradient must stay valid until it is done. */
void sdr_peer_gradient(struct sdr_node *node, const struct sdr_batch *batch, float *gradient,
                       struct sdr_work *work);
uint64_t sdr_peer_ready(const struct sdr_node *node); /* how many are final */
/* of the block that a value belongs to */
uint64_t sdr_peer_block_end(const struct sdr_node *node, uint64_t at);
/* One step of the optimizer on the replica, with a gradient of all values. */
void sdr_peer_step(struct sdr_node *node, const float *gradient);
/* The same with the bits of one worker, whatever the number of peers: sets up work that computes
   this peer's part as an update; packs it; steps with those of all peers, by their number (NULL: it
   has no rows). */
void sdr_peer_update(struct sdr_node *node, const struct sdr_batch *batch, struct sdr_work *work);
enum sdr_status sdr_peer_pack(struct sdr_node *node, struct sdr_body **body);
enum sdr_status sdr_peer_step_updates(struct sdr_node *node, struct sdr_body *const *body);
/* Values of the replica as a vector, in the order of a gradient, and back. */
void sdr_peer_copy_weights(struct sdr_node *node, float *to);
void sdr_peer_set_weights(struct sdr_node *node, const float *from);
/* Local steps: sets up work that trains the replica on a share, one step for every --batch rows. */
void sdr_peer_train(struct sdr_node *node, const struct sdr_batch *share, struct sdr_work *work);
/* True if the share completed the planned number of steps, counting those of earlier epochs: the
   same for all peers. */
bool sdr_peer_share_is_whole(const struct sdr_node *node);
/* A model as a vector: what steps change, apart from optimizer state that does not determine
   values. */
uint64_t sdr_peer_model_values(const struct sdr_node *node);
void sdr_peer_copy_model(struct sdr_node *node, float *to);
void sdr_peer_set_model(struct sdr_node *node, const float *from);
/* At peer 0: the model that is evaluated, saved and given to the user. No effect on others. */
void sdr_peer_publish(struct sdr_node *node, const float *model);
/* At peer 0: the mean of the models of all peers that are there. They answer between two
   batches. */
enum sdr_status sdr_peer_mean_model(struct sdr_node *node, float *mean);

/* ---- states: the values of replicas that differ, written into slots of other peers, see
   server/slots.h ---- */
/* A state is values in pieces of equal length, the last one may be shorter: those of the
   parameters; of k-means the centers. */
struct sdr_state_shape {
    uint64_t values, piece;
    uint32_t pieces;
};
static inline uint64_t sdr_state_length(const struct sdr_state_shape *shape, uint32_t piece)
{
    return piece + 1 < shape->pieces ? shape->piece
                                     : shape->values - (uint64_t)piece * shape->piece;
}
struct sdr_state_shape sdr_peer_state_shape(const struct sdr_node *node);
uint64_t sdr_peer_state_bytes(const struct sdr_node *node); /* room for one that was found */
void sdr_peer_copy_state(struct sdr_node *node, float *to);
void sdr_peer_set_state(struct sdr_node *node, const float *from);
/* Writes the marked pieces (NULL: all) of a state into a random slot of a peer. *sent is false if
   an earlier one is still on its way to it, and nothing was done. */
enum sdr_status sdr_peer_put_state(struct sdr_node *node, int to, const float *state,
                                   const bool *marked, bool *sent);
/* What others have written: takes the next one, from *slot on, into `memory`, sdr_peer_state_bytes
   long. False: there is none. Begin with slot 0. Pieces are in increasing order, their values one
   behind the other. */
struct sdr_state {
    uint32_t pieces;
    const uint32_t *piece;
    const float *value;
    bool torn;
};
bool sdr_peer_take_state(struct sdr_node *node, int *slot, void *memory, struct sdr_state *state);
/* A random peer that is there, other than this one; −1: there is none. */
int sdr_peer_any_other(struct sdr_node *node);
double sdr_peer_draw(struct sdr_node *node); /* uniform in [0, 1) */
/* For the results. */
void sdr_peer_count_states(struct sdr_node *node, uint64_t accepted, uint64_t rejected);
double sdr_peer_step_size(const struct sdr_node *node); /* at the beginning of the present batch */
/* along the gradient: the optimizer has no state */
bool sdr_peer_plain_steps(const struct sdr_node *node);

/* With the next account: peer 0 compares the replicas of all peers, and a difference ends the
   run. */
void sdr_peer_check_replica(struct sdr_node *node);
/* After every update that a peer has taken part in. Peer 0 counts rows and losses, and does what
   is due: it ends epochs, and the run; if the batch is joint, it first waits for the reports of
   all peers. The others do not wait. Broken off by a death, it is called again. */
enum sdr_status sdr_peer_account(struct sdr_node *node);
/* At peer 0: ends the run with this update, for a reason (static text). No effect on others. */
void sdr_peer_stop(struct sdr_node *node, const char *why);

#endif
