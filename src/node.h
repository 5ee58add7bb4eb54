/* What a strategy's loop may use: its batches, its view of the blocks, gradients, steps. */
#ifndef SDR_NODE_H
#define SDR_NODE_H

#include "plugin.h"

struct sdr_run;

/* Arrays a loop keeps between updates; saved in checkpoints under their names. */
struct sdr_node_array {
    char name[24];
    double *value; /* owned by the node */
    uint64_t count;
};
enum { SDR_NODE_ARRAYS = 8 };

struct sdr_node {
    struct sdr_run *run; /* for the helpers below; a loop does not look inside */
    int id, worker, workers;
    const void *options; /* the strategy's own */
    void *state;         /* the strategy's, state_size bytes: zero, or as a checkpoint left it */
    struct sdr_node_array array[SDR_NODE_ARRAYS];
    int arrays;
};

/* The values a gradient is computed from. */
struct sdr_view {
    uint64_t version;
    const float *w; /* borrowed until the next commit */
};

/* The next batch; *more is false when the run is over (then the loop returns SDR_OK). Evaluates,
   checkpoints and reports at the boundaries. Never blocks on anybody. */
enum sdr_status sdr_deal(struct sdr_node *node, struct sdr_batch *batch, bool *more);
/* A batch of all rows: one update an epoch. */
enum sdr_status sdr_deal_all(struct sdr_node *node, struct sdr_batch *batch, bool *more);
/* The parameters the batch needs, with lazy penalties settled. */
void sdr_pull(struct sdr_node *node, const struct sdr_batch *batch, struct sdr_view *view);
/* The gradient of the batch's mean loss at the view; borrowed until the next call. */
void sdr_gradient(struct sdr_node *node, const struct sdr_view *view, const struct sdr_batch *batch,
                  struct sdr_update *update);
/* One step of the optimizer. */
void sdr_commit(struct sdr_node *node, const struct sdr_update *update);

/* Batches of one row, the same steps with less ado: a stretch of rows is dealt, and a walk over it
   pulls, takes the gradient and commits for one row after the other. Only models with one output
   and batches of one row can walk. */
bool sdr_can_walk(const struct sdr_node *node);
enum sdr_status sdr_deal_stretch(struct sdr_node *node, struct sdr_batch *stretch, bool *more);
void sdr_walk(struct sdr_node *node, const struct sdr_batch *stretch);

/* For loops that take their own steps: the weights in double, with their units. */
enum sdr_status sdr_node_array(struct sdr_node *node, const char *name, uint64_t count,
                               double **value);
/* Smooth part of the objective and its gradient at w (values in the layout of the blocks): the mean
 * loss. */
void sdr_full_gradient(struct sdr_node *node, const double *w, double *loss, double *gradient);
/* product = B·v, with B = curvature·XᵀX/N a bound on the second derivatives of the mean loss. */
void sdr_curve(struct sdr_node *node, const double *v, double *product);
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
/* Bound on the second derivative of the loss by a score; 0: the loss is not smooth. */
double sdr_curvature(const struct sdr_node *node);

#endif
