/* Role team: the functions that a worker loop on shared memory may call. */
#ifndef SDR_TEAM_ROLE_H
#define SDR_TEAM_ROLE_H

#include "team/node.h"

/* The next batch; *more is false when the run is over (then the loop returns SDR_OK). Evaluates,
   writes checkpoints and reports at the boundaries. Never blocks. */
enum sdr_status sdr_next_batch(struct sdr_node *node, struct sdr_batch *batch, bool *more);
/* A batch of all rows: one update per epoch. */
enum sdr_status sdr_next_full_batch(struct sdr_node *node, struct sdr_batch *batch, bool *more);
/* The parameters that the batch reads, with all penalties due applied. */
void sdr_pull(struct sdr_node *node, const struct sdr_batch *batch, struct sdr_view *view);
/* The gradient of the batch's mean loss at the view; borrowed until the next call. */
enum sdr_status sdr_gradient(struct sdr_node *node, const struct sdr_view *view,
                             const struct sdr_batch *batch, struct sdr_update *update);
/* One step of the optimizer. */
void sdr_commit(struct sdr_node *node, const struct sdr_update *update);

/* Fast path for batches of one row: sdr_next_chunk returns up to 64 rows, and sdr_fused_steps does
   pull, gradient and commit for each, bit-identical to the slow path. For models that declare
   `fused`. */
bool sdr_can_fuse(const struct sdr_node *node);
enum sdr_status sdr_next_chunk(struct sdr_node *node, struct sdr_batch *chunk, bool *more);
void sdr_fused_steps(struct sdr_node *node, const struct sdr_batch *chunk);

/* ---- several workers on one machine ---- */
/* The next plan->share rows, first come first served, or of the worker's own shard. Includes a
   barrier at the end of an epoch, before a checkpoint and at the end of the run; otherwise it does
   not block. */
enum sdr_status sdr_next_share(struct sdr_node *node, struct sdr_batch *share, bool *more);
/* The two halves of sdr_next_share: takes a share if there is one; else the barrier. */
bool sdr_try_next_share(struct sdr_node *node, struct sdr_batch *share);
enum sdr_status sdr_barrier_due(struct sdr_node *node, bool *more);
/* The same plan->share rows for all workers, with a barrier before every round. */
enum sdr_status sdr_next_round(struct sdr_node *node, struct sdr_batch *round, bool *more);
/* Polls the clock and requests, for loops that hand out rows themselves. */
enum sdr_status sdr_poll(struct sdr_node *node);
/* Waits for all workers. */
enum sdr_status sdr_barrier(struct sdr_node *node);
/* Distributes work between two barriers: the next of `pieces` pieces, of this worker's own first;
   false if none is left. */
bool sdr_next_piece(struct sdr_node *node, uint64_t pieces, uint64_t *piece);
/* At most `count` rows of a batch from row `from` on. */
struct sdr_batch sdr_part(const struct sdr_node *node, const struct sdr_batch *batch, uint64_t from,
                          uint64_t count);

/* One step for every batch of a share, one after the other. */
enum sdr_status sdr_train(struct sdr_node *node, const struct sdr_batch *share);
/* Directs steps to this replica. A worker starts with the replica of its own number. */
void sdr_use_replica(struct sdr_node *node, uint64_t replica);
/* Copies the shared parameters to the replica, before training on a share. */
void sdr_pull_replica(struct sdr_node *node, const struct sdr_batch *share);
/* Adds the replica's changes since the pull to the shared parameters, atomically. */
void sdr_push_delta(struct sdr_node *node);
/* Records that the worker stepped on these rows in place. */
void sdr_stepped(struct sdr_node *node, const struct sdr_batch *rows);
/* Replays a recorded run on one thread: the node acts as one worker after the other, in the
   recorded order. It pulls and trains on `share`, or pushes if share->count is 0. */
bool sdr_replays(const struct sdr_node *node);
enum sdr_status sdr_next_recorded(struct sdr_node *node, struct sdr_batch *share, bool *more);
/* Applies all penalties due to the replica, before a merge. */
void sdr_catch_up(struct sdr_node *node);
/* Merges the changes of the first `replicas` replicas into a part of the shared parameters, in
   order. */
void sdr_merge(struct sdr_node *node, int replicas, uint64_t part, uint64_t parts);
/* True if the worker's last share completed the planned number of updates, counting those made in
   earlier epochs. The same for all workers. */
bool sdr_share_is_whole(const struct sdr_node *node);
/* Sets a part of every replica to the average of all. */
void sdr_average(struct sdr_node *node, uint64_t part, uint64_t parts);

/* Joint updates: all workers compute one update together. Penalties by spans of values, gradients
   by leaves, their sum, steps by spans, each separated by a barrier. Bit-identical to a single
   worker. */
void sdr_joint_catch_up(struct sdr_node *node, const struct sdr_batch *batch, uint64_t part);
enum sdr_status sdr_joint_gradient(struct sdr_node *node, const struct sdr_batch *batch,
                                   uint64_t leaf);
/* Barrier; the last worker to arrive adds the leaves up. */
enum sdr_status sdr_joint_sum(struct sdr_node *node);
void sdr_joint_step(struct sdr_node *node, const struct sdr_batch *batch, uint64_t part);

/* Cyclades: computes the components of the next window; trains on one bin. Rows of different bins
   have no feature in common. */
enum { SDR_BINS = 16 };
void sdr_plan_ahead(struct sdr_node *node, const struct sdr_batch *window);
enum sdr_status sdr_train_apart(struct sdr_node *node, const struct sdr_batch *window,
                                uint64_t bin);

/* Rotation: trains on one cell of a round. Cells of one round have no feature in common, so workers
   need no locks. */
enum { SDR_ROTATING = 16 };
enum sdr_status sdr_train_cell(struct sdr_node *node, const struct sdr_batch *round, uint64_t cell);

/* Locks the parameters that a batch touches. */
void sdr_lock(struct sdr_node *node, const struct sdr_batch *batch);
void sdr_unlock(struct sdr_node *node, const struct sdr_batch *batch);
/* Workers in a fixed cyclic order. On its turn a worker commits its gradient in flight, if any and
   if the run is not over, and takes its next batch; between turns it computes that batch's
   gradient. */
enum sdr_status sdr_wait_turn(struct sdr_node *node);
enum sdr_status sdr_commit_pending(struct sdr_node *node, bool *more);
void sdr_next_turn_batch(struct sdr_node *node, struct sdr_batch *batch);
void sdr_pass_turn(struct sdr_node *node);
enum sdr_status sdr_keep_pending(struct sdr_node *node, const struct sdr_update *gradient);

/* ---- loops that take their own steps, in double ---- */
/* An array of the node that checkpoints save. */
enum sdr_status sdr_node_array(struct sdr_node *node, const char *name, uint64_t count,
                               double **value);
/* The same with a new length; old contents are discarded. */
enum sdr_status sdr_node_array_renew(struct sdr_node *node, const char *name, uint64_t count,
                                     double **value);
/* Whether the model supports full-batch training: the gradient of a smooth mean loss, or its own
   rounds (Lloyd's algorithm). */
bool sdr_has_full_gradient(const struct sdr_node *node);
bool sdr_has_rounds(const struct sdr_node *node);
/* One pass over the rows, on --threads threads, with the same bits for any number of threads: the
   mean loss and its gradient at w; both arrays have the layout of the blocks. */
enum sdr_status sdr_full_gradient(struct sdr_node *node, const double *w, double *loss,
                                  double *gradient);
/* One pass: product = B·v, where B = curvature·XᵀX/N bounds the Hessian of the mean loss. */
enum sdr_status sdr_curve(struct sdr_node *node, const double *v, double *product);
/* The diagonal D of B, 0 where no row has a value, and a bound *most with B ≼ most·D. One pass at
   most. */
enum sdr_status sdr_curvatures(struct sdr_node *node, double *diagonal, double *most);
/* One round of the model on all rows, on --threads threads, with the same bits for any number of
   threads. It improves w; *loss is the loss of the current weights. _converged: the reason to stop
   once w no longer changes. */
enum sdr_status sdr_full_round(struct sdr_node *node, double *loss, double *w);
const char *sdr_rounds_converged(const struct sdr_node *node);
/* Ends the run after this update; `why` is static text. */
void sdr_stop(struct sdr_node *node, const char *why);
/* Sets the weights and counts one update. */
void sdr_put(struct sdr_node *node, const double *w, double loss);
/* Proximal step of the penalty in place: w ← argmin ½‖w − x‖²/step + penalty(w), per value
 * step·unit². */
void sdr_proximal(struct sdr_node *node, double *w, double step);
/* Weights of |w| and ½w² of value i in the penalty. */
void sdr_penalty_of(const struct sdr_node *node, uint64_t i, double *l1, double *l2);
/* Whether there is a penalty on groups of values. */
bool sdr_has_groups(const struct sdr_node *node);
/* The penalty of weights w. */
double sdr_penalty(struct sdr_node *node, const double *w);
/* Scale of value i: steps are taken in multiples of it (1 without scaling). */
double sdr_unit(const struct sdr_node *node, uint64_t i);
uint64_t sdr_values(const struct sdr_node *node);
/* The current weights: the loop's starting point. */
const float *sdr_weights(struct sdr_node *node);

#endif
