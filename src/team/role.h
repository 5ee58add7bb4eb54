/* All that the loop of a worker may call that shares memory with the others: batches, its view of the
   blocks, gradients, steps, barriers. */
#ifndef SDR_TEAM_ROLE_H
#define SDR_TEAM_ROLE_H

#include "team/node.h"

/* The next batch; *more is false when the run is over (then the loop returns SDR_OK). Evaluates,
   checkpoints and reports at the boundaries. Never blocks on anybody. */
enum sdr_status sdr_next_batch(struct sdr_node *node, struct sdr_batch *batch, bool *more);
/* A batch of all rows: one update an epoch. */
enum sdr_status sdr_next_full_batch(struct sdr_node *node, struct sdr_batch *batch, bool *more);
/* The parameters the batch needs, with lazy penalties settled. */
void sdr_pull(struct sdr_node *node, const struct sdr_batch *batch, struct sdr_view *view);
/* The gradient of the batch's mean loss at the view; borrowed until the next call. */
enum sdr_status sdr_gradient(struct sdr_node *node, const struct sdr_view *view,
                             const struct sdr_batch *batch, struct sdr_update *update);
/* One step of the optimizer. */
void sdr_commit(struct sdr_node *node, const struct sdr_update *update);

/* Batches of one row, the same steps with less ado: a stretch of rows is dealt, and a walk over it
   pulls, takes the gradient and commits for one row after the other. Only models with one output
   and batches of one row can walk. */
bool sdr_can_fuse(const struct sdr_node *node);
enum sdr_status sdr_next_chunk(struct sdr_node *node, struct sdr_batch *chunk, bool *more);
void sdr_fused_steps(struct sdr_node *node, const struct sdr_batch *chunk);

/* ---- several workers on one machine ---- */
/* plan->share rows for whoever asks first, or of the worker's own shard. Workers meet at the end of
   an epoch, and where a checkpoint or the end of the run is due; nobody waits otherwise. */
enum sdr_status sdr_next_share(struct sdr_node *node, struct sdr_batch *share, bool *more);
/* The two halves of it: a share if there is one now, and the meeting that is due if there is none. */
bool sdr_try_next_share(struct sdr_node *node, struct sdr_batch *share);
enum sdr_status sdr_barrier_due(struct sdr_node *node, bool *more);
/* The same plan->share rows for all workers, who meet before every round. */
enum sdr_status sdr_next_round(struct sdr_node *node, struct sdr_batch *round, bool *more);
/* A look at the clock and at requests, for loops that deal in another way. */
enum sdr_status sdr_look(struct sdr_node *node);
/* Waits until all workers are here. */
enum sdr_status sdr_barrier(struct sdr_node *node);
/* Work that is shared out between two meetings: the next piece of `pieces`; false: all are taken. */
bool sdr_next_piece(struct sdr_node *node, uint64_t pieces, uint64_t *piece);
/* Rows from … from + count − 1 of a batch, as far as it goes. */
struct sdr_batch sdr_part(const struct sdr_node *node, const struct sdr_batch *batch, uint64_t from,
                          uint64_t count);

/* One step for every batch of a share, one after the other. */
enum sdr_status sdr_train(struct sdr_node *node, const struct sdr_batch *share);
/* Steps go to a private copy from now on. A worker begins with the copy of its own number. */
void sdr_use_replica(struct sdr_node *node, uint64_t copy);
/* The copy becomes what the shared parameters are, for training on a share. */
void sdr_pull_replica(struct sdr_node *node, const struct sdr_batch *share);
/* What was changed since is added to the shared parameters, while others do the same. */
void sdr_push_delta(struct sdr_node *node);
/* Rows were stepped on in place, if that is recorded. */
void sdr_stepped(struct sdr_node *node, const struct sdr_batch *rows);
/* A recorded run is gone through again: the node becomes worker after worker, in the order of the
   record, and is to take and train on `share`, or to give what it changed (share->count is 0). */
bool sdr_replays(const struct sdr_node *node);
enum sdr_status sdr_next_recorded(struct sdr_node *node, struct sdr_batch *share, bool *more);
/* Penalties that are due on the copy are charged: then it can be merged. */
void sdr_catch_up(struct sdr_node *node);
/* A part of the shared parameters takes in what the first `copies` copies changed, in their order. */
void sdr_merge(struct sdr_node *node, int copies, uint64_t part, uint64_t parts);
/* True if the worker's last share completed the planned number of updates, counting those made in earlier epochs. The
   same for all workers. */
bool sdr_share_is_whole(const struct sdr_node *node);
/* A part of the copies is averaged, over all of them; each becomes the average. */
void sdr_average(struct sdr_node *node, uint64_t part, uint64_t parts);

/* An update that all workers compute, piece by piece, with meetings between the three. Gradients are
   computed leaf by leaf, and multiplied out in the order of the rows by ranges of features, one part
   per worker: the sums are those of a single worker. */
void sdr_joint_catch_up(struct sdr_node *node, const struct sdr_batch *batch, uint64_t part);
enum sdr_status sdr_joint_gradient(struct sdr_node *node, const struct sdr_batch *batch,
                                   uint64_t leaf);
/* Waits until all leaves are computed: then they are one update. */
enum sdr_status sdr_joint_sum(struct sdr_node *node);
void sdr_joint_step(struct sdr_node *node, const struct sdr_batch *batch, uint64_t part);

/* Windows that are cut into bins of rows which have no feature in common: looks for the components of
   the window that comes next; trains on one bin. */
enum { SDR_BINS = 16 };
void sdr_plan_ahead(struct sdr_node *node, const struct sdr_batch *window);
enum sdr_status sdr_train_apart(struct sdr_node *node, const struct sdr_batch *window,
                                uint64_t bin);

/* Rounds of cells of a rotation, rows of two features which have none in common with those of another
   cell: trains on one cell. */
enum { SDR_ROTATING = 16 };
enum sdr_status sdr_train_cell(struct sdr_node *node, const struct sdr_batch *round, uint64_t cell);

/* Guards the parameters that a batch touches. */
void sdr_lock(struct sdr_node *node, const struct sdr_batch *batch);
void sdr_unlock(struct sdr_node *node, const struct sdr_batch *batch);
/* Workers in a fixed circle: waits until it is this one's turn; hands it on. On its turn a worker steps with the gradient
   that it has in flight, if there is one and the run is not over, and is given its next batch; between its turns it
   computes the gradient of that. */
enum sdr_status sdr_wait_turn(struct sdr_node *node);
enum sdr_status sdr_commit_pending(struct sdr_node *node, bool *more);
void sdr_next_turn_batch(struct sdr_node *node, struct sdr_batch *batch);
void sdr_pass_turn(struct sdr_node *node);
enum sdr_status sdr_keep_pending(struct sdr_node *node, const struct sdr_update *gradient);

/* For loops that take their own steps: the weights in double, with their units. */
enum sdr_status sdr_node_array(struct sdr_node *node, const char *name, uint64_t count,
                               double **value);
/* Same, with a new length; old contents are discarded. */
enum sdr_status sdr_node_array_renew(struct sdr_node *node, const char *name, uint64_t count,
                                     double **value);
/* Which of these the model can do with all rows at once: the gradient of its smooth mean loss, or rounds
   of its own that are no steps. */
bool sdr_has_full_gradient(const struct sdr_node *node);
bool sdr_has_rounds(const struct sdr_node *node);
/* Smooth part of the objective and its gradient at w (values in the layout of the blocks): the mean
 * loss. */
void sdr_full_gradient(struct sdr_node *node, const double *w, double *loss, double *gradient);
/* product = B·v, with B = curvature·XᵀX/N a bound on the second derivatives of the mean loss. */
void sdr_curve(struct sdr_node *node, const double *v, double *product);
/* A round of the model on all rows, on --threads threads, with the same bits for any number of them: w
   becomes better; *loss is that of the weights as they are. Why there is nothing more to do once w does
   not change. */
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
