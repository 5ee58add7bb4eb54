/* What the loop of a peer may call. Peers are nodes without a server: each has a replica of the parameters, and any two
   of them exchange messages. Peer 0 keeps the books of the run: it evaluates, writes checkpoints and decides when the
   run is over; at the end its replica is the model.

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

   Every call that returns a status may return SDR_PEER_OVER, with which the loop returns, as with a failure: SDR_TRY
   does that. What the loop has allocated it frees in both cases. */
#ifndef SDR_PEER_ROLE_H
#define SDR_PEER_ROLE_H

#include "kind/strategy.h"
#include "kind/transport.h"
#include "kind/update.h"
#include "server/message.h"

struct sdr_peer_ops {
    /* The loop of a peer. Does not return before a call of these tells it to. */
    enum sdr_status (*peer)(struct sdr_node *node);
    /* A peer has died; called from within a call that receives, once on each of the others. The loop goes on without it if
       this returns SDR_OK. NULL: the run ends then, with a checkpoint. Peer 0 cannot be done without. */
    enum sdr_status (*lost)(struct sdr_node *node, int peer);
};

/* The run is over: no failure. */
#define SDR_PEER_OVER ((enum sdr_status)1000)

int sdr_peer_id(const struct sdr_node *node); /* 0 … sdr_peers(node) − 1 */
int sdr_peers(const struct sdr_node *node);
const void *sdr_peer_options(const struct sdr_node *node); /* the strategy's own */
bool sdr_peer_is_lost(const struct sdr_node *node, int peer);
int64_t sdr_peer_now(const struct sdr_node *node); /* nanoseconds: the transport's time */

/* ---- messages ---- */
/* Room for bytes that travel: the caller's, until it is sent or dropped (sdr_body_drop). */
enum sdr_status sdr_peer_body(struct sdr_node *node, uint64_t bytes, struct sdr_body **body);
/* Never waits. The body is given away in every case; it may be NULL. To one that is lost: nothing happens. */
enum sdr_status sdr_peer_send(struct sdr_node *node, int to, int32_t tag, struct sdr_body *body);
/* Waits for the next message from a peer with a tag; others that come meanwhile are kept. *body is the caller's, or NULL. */
enum sdr_status sdr_peer_receive(struct sdr_node *node, int from, int32_t tag,
                                 struct sdr_body **body);
/* Waits for the next message, whoever sent it, in the order of arrival. */
enum sdr_status sdr_peer_receive_any(struct sdr_node *node, int *from, int32_t *tag,
                                     struct sdr_body **body);
/* Whether a message has come: receive_any would not wait. */
enum sdr_status sdr_peer_any(struct sdr_node *node, bool *any);

/* ---- work ---- */
/* One step of the work. run, argument, steps and cost are the loop's to set. */
enum sdr_status sdr_peer_compute(struct sdr_node *node, struct sdr_work *work);

/* ---- training ---- */
/* The next batch: this peer's part of one that all compute (strategy.joint), else one of its own. Batches have numbers,
   the same for all peers (server/network.h). Borrowed until the next call. */
enum sdr_status sdr_peer_next_batch(struct sdr_node *node, struct sdr_batch *batch);
uint64_t sdr_peer_values(const struct sdr_node *node); /* of the parameters, padding included */
const float *sdr_peer_weights(struct sdr_node *node);  /* the replica: borrowed until a step */
/* Work that computes the gradient of the batch, at the replica, into `gradient`: sdr_peer_values of them. Over all parts
   of a joint batch gradients add up to that of its mean loss. batch and gradient stay until it is done. */
void sdr_peer_gradient(struct sdr_node *node, const struct sdr_batch *batch, float *gradient,
                       struct sdr_work *work);
/* One step of the optimizer on the replica, with a gradient of all values. */
void sdr_peer_step(struct sdr_node *node, const float *gradient);
/* After every update that a peer has taken part in. Peer 0 waits until all have told it of theirs if the batch is joint,
   counts the rows and losses, and does what is due: it ends epochs, and the run. The others do not wait. */
enum sdr_status sdr_peer_account(struct sdr_node *node);
/* Peer 0's: the run is over with this update, for a reason (static text). On others it does nothing. */
void sdr_peer_stop(struct sdr_node *node, const char *why);

#endif
