/* Role team: everything that the loop of a worker on shared memory may call. */
#ifndef SDR_TEAM_ROLE_H
#define SDR_TEAM_ROLE_H

#include "team/node.h"

/* The next batch; *more is false when the run is over (then the loop returns SDR_OK). Evaluates,
   checkpoints and reports at the boundaries. Never blocks on anybody. */
enum sdr_status sdr_next_batch(struct sdr_node *node, struct sdr_batch *batch, bool *more);
/* A batch of all rows: one update an epoch. */
enum sdr_status sdr_next_full_batch(struct sdr_node *node, struct sdr_batch *batch, bool *more);
/* The parameters that the batch reads, after they paid the penalties they owe. */
void sdr_pull(struct sdr_node *node, const struct sdr_batch *batch, struct sdr_view *view);
/* The gradient of the batch's mean loss at the view; borrowed until the next call. */
enum sdr_status sdr_gradient(struct sdr_node *node, const struct sdr_view *view,
                             const struct sdr_batch *batch, struct sdr_update *update);
/* One step of the optimizer. */
void sdr_commit(struct sdr_node *node, const struct sdr_update *update);

/* Fast path for batches of one row: sdr_next_chunk returns up to 64 rows, and sdr_fused_steps does pull,
   gradient and commit for each, bit-identical to the slow path. For models that declare `fused`. */
bool sdr_can_fuse(const struct sdr_node *node);
enum sdr_status sdr_next_chunk(struct sdr_node *node, struct sdr_batch *chunk, bool *more);
void sdr_fused_steps(struct sdr_node *node, const struct sdr_batch *chunk);

/* ---- several workers on one machine ---- */
/* plan->share rows for whoever asks first, or of the worker's own shard. A barrier comes at the end of an
   epoch, before a checkpoint and at the end of the run; nobody waits otherwise. */
enum sdr_status sdr_next_share(struct sdr_node *node, struct sdr_batch *share, bool *more);
/* Its two halves: a share if one is left, and the barrier that comes if none is. */
bool sdr_try_next_share(struct sdr_node *node, struct sdr_batch *share);
enum sdr_status sdr_barrier_due(struct sdr_node *node, bool *more);
/* The same plan->share rows for all workers, with a barrier before every round. */
enum sdr_status sdr_next_round(struct sdr_node *node, struct sdr_batch *round, bool *more);
/* Polls the clock and requests, for loops that hand out rows themselves. */
enum sdr_status sdr_look(struct sdr_node *node);
/* Waits until all workers are here. */
enum sdr_status sdr_barrier(struct sdr_node *node);
/* Work shared out between two barriers: the next piece of `pieces`; false: all are taken. */
bool sdr_next_piece(struct sdr_node *node, uint64_t pieces, uint64_t *piece);
/* At most `count` rows of a batch from row `from` on. */
struct sdr_batch sdr_part(const struct sdr_node *node, const struct sdr_batch *batch, uint64_t from,
                          uint64_t count);

/* One step for every batch of a share, one after the other. */
enum sdr_status sdr_train(struct sdr_node *node, const struct sdr_batch *share);
/* Steps go to this replica from now on. A worker begins with the one of its own number. */
void sdr_use_replica(struct sdr_node *node, uint64_t replica);
/* Copies the shared parameters to the replica, for training on a share. */
void sdr_pull_replica(struct sdr_node *node, const struct sdr_batch *share);
/* Adds what the replica changed since to the shared parameters, by atomic adds. */
void sdr_push_delta(struct sdr_node *node);
/* Records that the worker stepped on these rows in place. */
void sdr_stepped(struct sdr_node *node, const struct sdr_batch *rows);
/* Replay of a recorded run by one thread: the node acts as worker after worker, in the recorded order. It
   pulls and trains on `share`, or pushes what it changed where share->count is 0. */
bool sdr_replays(const struct sdr_node *node);
enum sdr_status sdr_next_recorded(struct sdr_node *node, struct sdr_batch *share, bool *more);
/* The replica pays all penalties it owes: then it can be merged. */
void sdr_catch_up(struct sdr_node *node);
/* Merges the changes of the first `replicas` replicas into a part of the shared parameters, in their
   order. */
void sdr_merge(struct sdr_node *node, int replicas, uint64_t part, uint64_t parts);
/* True if the worker's last share completed the planned number of updates, counting those made in earlier epochs. The
   same for all workers. */
bool sdr_share_is_whole(const struct sdr_node *node);
/* Averages a part of all replicas: each becomes the average. */
void sdr_average(struct sdr_node *node, uint64_t part, uint64_t parts);

/* An update that all workers compute together: catch up by spans of values, gradients by leaves, sum,
   steps by spans, with a barrier between any two. The sums are those of a single worker. */
void sdr_joint_catch_up(struct sdr_node *node, const struct sdr_batch *batch, uint64_t part);
enum sdr_status sdr_joint_gradient(struct sdr_node *node, const struct sdr_batch *batch,
                                   uint64_t leaf);
/* Barrier: the last worker to arrive adds the leaves up to one update. */
enum sdr_status sdr_joint_sum(struct sdr_node *node);
void sdr_joint_step(struct sdr_node *node, const struct sdr_batch *batch, uint64_t part);

/* Cyclades: finds the components of the next window; trains on one bin, rows that have no feature in common
   with those of another bin. */
enum { SDR_BINS = 16 };
void sdr_plan_ahead(struct sdr_node *node, const struct sdr_batch *window);
enum sdr_status sdr_train_apart(struct sdr_node *node, const struct sdr_batch *window,
                                uint64_t bin);

/* Rotation: trains on one cell of a round, rows of two features that have none in common with those of
   another cell. */
enum { SDR_ROTATING = 16 };
enum sdr_status sdr_train_cell(struct sdr_node *node, const struct sdr_batch *round, uint64_t cell);

/* Locks the parameters that a batch touches. */
void sdr_lock(struct sdr_node *node, const struct sdr_batch *batch);
void sdr_unlock(struct sdr_node *node, const struct sdr_batch *batch);
/* Workers in a fixed circle. On its turn a worker commits the gradient it has in flight, if it has one and
   the run is not over, and takes its next batch; between its turns it computes the gradient of that. */
enum sdr_status sdr_wait_turn(struct sdr_node *node);
enum sdr_status sdr_commit_pending(struct sdr_node *node, bool *more);
void sdr_next_turn_batch(struct sdr_node *node, struct sdr_batch *batch);
void sdr_pass_turn(struct sdr_node *node);
enum sdr_status sdr_keep_pending(struct sdr_node *node, const struct sdr_update *gradient);

/* ---- loops that take their own steps, in double ---- */
/* An array that lives with the node and is saved in checkpoints. */
enum sdr_status sdr_node_array(struct sdr_node *node, const char *name, uint64_t count,
                               double **value);
/* Same, with a new length; old contents are discarded. */
enum sdr_status sdr_node_array_renew(struct sdr_node *node, const char *name, uint64_t count,
                                     double **value);
/* What the model can do with all rows at once: the gradient of a smooth mean loss, or rounds that are no
   steps (Lloyd's). */
bool sdr_has_full_gradient(const struct sdr_node *node);
bool sdr_has_rounds(const struct sdr_node *node);
/* The mean loss and its gradient at w, values in the layout of the blocks. */
void sdr_full_gradient(struct sdr_node *node, const double *w, double *loss, double *gradient);
/* product = B·v, with B = curvature·XᵀX/N a bound on the second derivatives of the mean loss. */
void sdr_curve(struct sdr_node *node, const double *v, double *product);
/* One round of the model on all rows, on --threads threads, with the same bits for any number of them: it
   improves w; *loss is that of the present weights. converged: the reason to stop once w does not change. */
enum sdr_status sdr_full_round(struct sdr_node *node, double *loss, double *w);
const char *sdr_rounds_converged(const struct sdr_node *node);
/* The run is over after this update, for a reason (static text). */
void sdr_stop(struct sdr_node *node, const char *why);
/* Sets the weights and counts one update. */
void sdr_put(struct sdr_node *node, const double *w, double loss);
/* Proximal step of the penalty in place: w ← argmin ½‖w − x‖²/step + penalty(w), per value
 * step·unit². */
void sdr_proximal(struct sdr_node *node, double *w, double step);
/* The penalty of weights w. */
double sdr_penalty(struct sdr_node *node, const double *w);
/* Unit of value i: steps are taken in multiples of it (1 without scales). */
double sdr_unit(const struct sdr_node *node, uint64_t i);
uint64_t sdr_values(const struct sdr_node *node);
/* The weights as they stand: the loop's starting point. */
const float *sdr_weights(struct sdr_node *node);

#endif
