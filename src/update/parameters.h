/* The parameters of a model where they live: values, optimizer state, lazy penalties, averages.
   The run owns one. Workers that share it have a twin: another handle on the same arrays, or a copy
   of them that remembers what it was copied from. */
#ifndef SDR_OPTIMIZER_PARAMETERS_H
#define SDR_OPTIMIZER_PARAMETERS_H

#include "kernel/linear.h"
#include "plugin.h"

struct sdr_penalty {
    double l1, l2, group; /* weights on the mean loss */
    bool standardize;     /* on weights in units of the features' standard deviations */
};

struct sdr_parameters {
    struct sdr_block block[SDR_BLOCKS_MOST];
    int blocks;
    uint64_t count; /* values, padding between blocks included */
    const struct sdr_optimizer *optimizer;
    const void *optimizer_options; /* borrowed */
    struct sdr_penalty penalty;
    const float *scale, *center; /* borrowed, per feature; may be NULL */
    const struct sdr_linear_kernels *kernels;
    uint64_t version;                      /* updates applied */
    double penalty_due;                    /* Σ rate since all penalties were settled */
    float *value, *slot[2], *penalty_paid; /* owned; charged is NULL without a penalty */
    double *sum;                           /* owned; sum of published weights, NULL: no averaging */
    uint64_t summed;
    double rate;    /* of the step that was begun, */
    uint64_t begun; /* and its number, from 1 */
    float constant[SDR_CONSTANTS];
    struct sdr_target target[SDR_BLOCKS_MOST]; /* each block as a step sees it */
    /* Scratch of batches: gradient rows of the touched features. Owned, NULL for single rows. */
    float *gradient;
    float *sums; /* per feature, with one output: its gradient while it is summed up */
    uint32_t *touched, *place; /* place[j] is valid where mark[j] is of this update */
    uint32_t *mark;
    float *published;                           /* owned: the weights as others see them */
    void (*project)(float *row, uint32_t cols); /* of the model, on touched rows; or NULL */
    bool whole;     /* a gradient depends on all values, whatever the row */
    bool still;     /* the intercept keeps the value it starts with */
    bool borrowed;  /* values and state belong to another handle */
    float *base[3]; /* owned: values and state as they were taken; NULL: no copy */
};

/* Lays out the blocks (sets their offsets) and allocates; batches: room for gradients of many rows.
 */
enum sdr_status sdr_parameters_create(struct sdr_parameters *p, const struct sdr_block *block,
                                      int blocks, const struct sdr_optimizer *optimizer,
                                      const void *optimizer_options,
                                      const struct sdr_penalty *penalty, const float *scale,
                                      const float *center, const struct sdr_linear_kernels *kernels,
                                      bool batches, bool average);
void sdr_parameters_destroy(struct sdr_parameters *p);
/* A twin with scratch of its own: on the same arrays, or with a copy of them, which with `base`
   remembers what it was taken from, so that it can give while others do. */
enum sdr_status sdr_parameters_replicate(struct sdr_parameters *p, const struct sdr_parameters *of,
                                         bool copy, bool base);
/* Copies version, penalty due and step constants to an alias of the same arrays. */
void sdr_parameters_follow(struct sdr_parameters *p, const struct sdr_parameters *of);
/* A twin that takes steps on borrowed values, with state that is lent to it, and charges no penalties. */
enum sdr_status sdr_parameters_stepper(struct sdr_parameters *p, const struct sdr_parameters *of,
                                       float *value);
void sdr_parameters_lend(struct sdr_parameters *p, float *const slot[2]);

/* Settles the penalties of the values a batch will read. O(non-zeros of the batch). */
void sdr_parameters_catch_up(struct sdr_parameters *p, const struct sdr_batch *batch);
/* Settles the values of the features first … end − 1. */
void sdr_parameters_catch_up_span(struct sdr_parameters *p, uint32_t first, uint32_t end);
/* Settles everything; O(values). */
void sdr_parameters_catch_up_all(struct sdr_parameters *p);
/* The values a batch will read, to their places in an array as long as the parameters. */
void sdr_parameters_copy_touched(const struct sdr_parameters *p, const struct sdr_batch *batch,
                                 float *to);
/* One step of size `rate`. FACTORS, ROWS or DENSE gradients. */
void sdr_parameters_apply(struct sdr_parameters *p, const struct sdr_update *update, double rate);
/* The same in parts, for several threads: begin; then every range of features [first, end) once, in
   any order or at the same time, and the intercept; then finish. */
void sdr_parameters_begin(struct sdr_parameters *p, double rate);
/* The same with state that has seen another number of updates: this is number `update`, from 1. */
void sdr_parameters_begin_as(struct sdr_parameters *p, uint64_t update, double rate);
void sdr_parameters_catch_up_range(struct sdr_parameters *p, const struct sdr_batch *batch,
                                   uint32_t first, uint32_t end);
void sdr_parameters_apply_range(struct sdr_parameters *p, const struct sdr_update *update,
                                uint32_t first, uint32_t end);
void sdr_parameters_apply_intercept(struct sdr_parameters *p, const struct sdr_update *update,
                                    double rate);
void sdr_parameters_finish(struct sdr_parameters *p, double rate);
/* The penalty that update number `update`, of size `rate`, makes due. */
double sdr_step_penalty(const struct sdr_parameters *p, uint64_t update, double rate);
/* A step on everything but the intercept, uncounted: begin, and all of the features. */
void sdr_parameters_apply_weights(struct sdr_parameters *p, const struct sdr_update *update,
                                  double rate);
/* One step for each row of a walk; what lies with the parameters is filled in. */
void sdr_parameters_fused_steps(struct sdr_parameters *p, struct sdr_fused_steps *fused);

/* The arrays of a copy move to the memory near a worker. */
struct sdr_affinity;
void sdr_replica_place(struct sdr_parameters *copy, struct sdr_affinity *affinity, int worker);
/* A copy takes the values and state of the parameters that workers share, and adds what it changed
   to them; both while others do the same. calm, of so many copies: see the kernel merge; NULL: it
   adds all. */
void sdr_replica_pull(struct sdr_parameters *copy, const struct sdr_parameters *shared);
void sdr_replica_push(struct sdr_parameters *copy, struct sdr_parameters *shared,
                      const float *damping, int copies);
/* Copies that were all taken from `shared` as it stands become one with it, in their order: part
   number `part` of `parts`. The work of the parts may go on in parallel. calm: see the kernel. */
void sdr_replicas_merge(struct sdr_parameters *shared, struct sdr_parameters *copy, int copies,
                        const float *damping, uint64_t part, uint64_t parts);
/* Values and state become the means of the copies', for evaluation. */
void sdr_replicas_mean(struct sdr_parameters *p, struct sdr_parameters *copy, int copies);
/* The values of all copies become their mean; state that is not the value itself stays with each. In
   parts, as above. */
void sdr_replicas_blend(struct sdr_parameters *copy, int copies, uint64_t part, uint64_t parts);
/* Values that are a function of the state (FTRL's) are computed anew from it, as a step of size
   `rate` would; values that must lie in a set are put back into it. */
void sdr_parameters_recompute(struct sdr_parameters *p, double rate);
/* Sums and counts of clusters lose half their weight against what will be added. */
void sdr_parameters_halve(struct sdr_parameters *p);
/* Starts over from these values: no state, no penalty due, no average. */
void sdr_parameters_reset(struct sdr_parameters *p, const float *value);
/* The weights as they stand, settled: borrowed until the next call. */
const float *sdr_parameters_weights(struct sdr_parameters *p);
/* Adds the weights to the average (Polyak and Ruppert). */
void sdr_parameters_average(struct sdr_parameters *p);
/* The average, or the weights if nothing was averaged: borrowed until the next call. */
const float *sdr_parameters_result(struct sdr_parameters *p);
/* Penalty of weights w, or of exact where it is not NULL, as the objective counts it. */
double sdr_parameters_penalty(const struct sdr_parameters *p, const float *w, const double *exact);

#endif
