/* The parameters of a model where they live: values, optimizer state, lazy penalties, averages.
   The run owns one. Workers that share it have an alias, another handle on the same arrays, or a
   replica, a copy of them that remembers what it was copied from. */
#ifndef SDR_UPDATE_PARAMETERS_H
#define SDR_UPDATE_PARAMETERS_H

#include "update/update.h"

struct sdr_penalty {
    double l1, l2, group; /* weights on the mean loss */
    bool standardize;     /* on weights in units of the features' standard deviations */
};

/* How steps are taken: the same for all replicas. All pointers are borrowed. */
struct sdr_step_rule {
    const struct sdr_optimizer *optimizer;
    const void *optimizer_options;
    struct sdr_penalty penalty;
    const float *scale, *center; /* per feature; may be NULL */
    const struct sdr_linear_kernels *kernels;
    void (*project)(float *row, uint32_t cols); /* of the model, on stepped rows; or NULL */
    enum sdr_reads reads;                       /* of a gradient */
};

/* The mean of published weights over time (Polyak and Ruppert). */
struct sdr_average {
    double *sum; /* owned; NULL: no averaging */
    uint64_t summed;
};

struct sdr_parameters {
    const struct sdr_layout *layout; /* borrowed */
    struct sdr_step_rule rule;
    /* The values that live in this process: all, or the share of its servers. Arrays are as long as all
       values, so that a value has one index everywhere; what is not held is never touched, and pages that
       are never touched take no memory. */
    struct sdr_span held;
    uint64_t version;                      /* updates applied */
    double penalty_due;                    /* Σ rate since all values last paid */
    float *value, *slot[2], *penalty_paid; /* owned; penalty_paid is NULL without a penalty */
    double rate;                           /* of the step that was begun, */
    uint64_t begun;                        /* and its number, from 1 */
    float constant[SDR_CONSTANTS];         /* of that step */
    float unpenalised[SDR_CONSTANTS];      /* for blocks without a penalty, where they differ */
    struct sdr_target *target;             /* owned: each block as a step sees it */
    struct sdr_scratch scratch;            /* for batches; empty where all are single rows */
    struct sdr_average average;
    float *published; /* owned: the weights as others see them */
    float *ready;     /* weights that were made ready last: published, or the values themselves */
    float *base[3];   /* owned: values and state of a replica as they were pulled; NULL: none */
    bool borrowed;    /* an alias: values and state belong to another handle */
};

/* batches: room for gradients of many rows. */
enum sdr_status sdr_parameters_create(struct sdr_parameters *p, const struct sdr_layout *layout,
                                      const struct sdr_step_rule *rule, bool batches, bool average);
void sdr_parameters_destroy(struct sdr_parameters *p);
/* An alias with scratch of its own; or with `copy` a replica, which with `base` remembers what it was
   pulled from, so that it can push while others do. */
enum sdr_status sdr_parameters_replicate(struct sdr_parameters *p, const struct sdr_parameters *of,
                                         bool copy, bool base);
/* Copies version, penalty due and step constants to an alias of the same arrays. */
void sdr_parameters_follow(struct sdr_parameters *p, const struct sdr_parameters *of);
/* An alias that takes steps on borrowed values, with state that is lent to it, and pays no penalties. */
enum sdr_status sdr_parameters_stepper(struct sdr_parameters *p, const struct sdr_parameters *of,
                                       float *value);
void sdr_parameters_lend(struct sdr_parameters *p, float *const slot[2]);

/* ---- lazy penalties (regularize.c) ---- */
/* The values within a span that a batch will read pay what is due. O(non-zeros of the batch). */
void sdr_parameters_catch_up(struct sdr_parameters *p, const struct sdr_batch *batch,
                             struct sdr_span span);
/* All values of a span pay. */
void sdr_parameters_catch_up_span(struct sdr_parameters *p, struct sdr_span span);
/* All values that are held pay, and sums start over; O(values). */
void sdr_parameters_catch_up_all(struct sdr_parameters *p);
/* What update number `update`, of size `rate`, adds to the penalty due. */
double sdr_step_penalty(const struct sdr_parameters *p, uint64_t update, double rate);
/* Penalty of weights w, or of exact where it is not NULL, as the objective counts it. */
double sdr_parameters_penalty(const struct sdr_parameters *p, const float *w, const double *exact);
/* The same in pieces: sums over the values of consecutive spans, `w` of the first one of each. */
struct sdr_penalty_sum {
    double absolute, square, group;
};
void sdr_penalty_add(const struct sdr_parameters *p, const float *w, struct sdr_span span,
                     struct sdr_penalty_sum *sum);
double sdr_penalty_total(const struct sdr_parameters *p, const struct sdr_penalty_sum *sum);

/* ---- steps (step.c) ---- */
/* One step of size `rate`. */
void sdr_parameters_apply(struct sdr_parameters *p, const struct sdr_update *update, double rate);
/* The same in spans, for several threads or servers: begin; then every span once, in any order or at
   the same time; then finish. */
void sdr_parameters_begin(struct sdr_parameters *p, double rate);
/* The same with state that has seen another number of updates: this is number `update`, from 1. */
void sdr_parameters_begin_as(struct sdr_parameters *p, uint64_t update, double rate);
void sdr_parameters_apply_span(struct sdr_parameters *p, const struct sdr_update *update,
                               struct sdr_span span);
void sdr_parameters_finish(struct sdr_parameters *p, double rate);
/* A step on the blocks that are per feature, or on the others, uncounted; begin is the caller's. */
void sdr_parameters_apply_blocks(struct sdr_parameters *p, const struct sdr_update *update,
                                 bool per_feature);
/* One step for each row; what lies with the parameters is filled in. */
void sdr_parameters_fused_steps(struct sdr_parameters *p, struct sdr_fused_steps *fused);

/* ---- replicas (replicas.c) ---- */
/* The arrays of a replica move to the memory near a worker. */
struct sdr_affinity;
void sdr_replica_place(struct sdr_parameters *replica, struct sdr_affinity *affinity, int worker);
/* A replica pulls the values and state of the parameters that workers share, and pushes what it
   changed to them; both while others do the same. damping, of so many replicas: see the kernel merge;
   NULL: it adds all. */
void sdr_replica_pull(struct sdr_parameters *replica, const struct sdr_parameters *shared);
void sdr_replica_push(struct sdr_parameters *replica, struct sdr_parameters *shared,
                      const float *damping, int replicas);
/* Replicas that were all pulled from `shared` as it stands are merged into it, in their order: part
   number `part` of `parts`. Parts may be merged in parallel. damping: see the kernel. */
void sdr_replicas_merge(struct sdr_parameters *shared, struct sdr_parameters *replica, int replicas,
                        const float *damping, uint64_t part, uint64_t parts);
/* Values and state become the means of the replicas', for evaluation. */
void sdr_replicas_mean(struct sdr_parameters *p, struct sdr_parameters *replica, int replicas);
/* The values of all replicas become their mean; state that is not the value itself stays with each. In
   parts, as above. */
void sdr_replicas_blend(struct sdr_parameters *replica, int replicas, uint64_t part,
                        uint64_t parts);

/* ---- values ---- */
/* The values a batch will read, to their places in an array as long as the parameters. */
void sdr_parameters_copy_touched(const struct sdr_parameters *p, const struct sdr_batch *batch,
                                 float *to);
/* Values that are a function of the state (FTRL's) are computed from it, as a step of size `rate`
   would; values that must lie in a set are put back into it. */
void sdr_parameters_recompute(struct sdr_parameters *p, double rate);
/* Starts over from these values, as far as they are held: no state, no penalty due, no average. */
void sdr_parameters_reset(struct sdr_parameters *p, const float *value);
/* The weights that are held as they stand, penalties paid: borrowed until the next call. */
const float *sdr_parameters_weights(struct sdr_parameters *p);
/* Makes the result below ready; are all of its values finite; copies them to their places in an array. */
void sdr_parameters_ready(struct sdr_parameters *p);
bool sdr_parameters_finite(const struct sdr_parameters *p);
void sdr_parameters_keep(const struct sdr_parameters *p, float *to);
/* Making weights ready pays penalties: what that changes is saved before, and restored to the bit. */
struct sdr_saved {
    float *array[4]; /* owned; NULL: nothing was due */
    double penalty_due;
    bool any; /* something was saved, and not restored yet */
};
enum sdr_status sdr_parameters_save(const struct sdr_parameters *p, struct sdr_saved *saved);
void sdr_parameters_restore(struct sdr_parameters *p, struct sdr_saved *saved);
void sdr_saved_free(struct sdr_saved *saved);
/* Adds the weights to the average. */
void sdr_parameters_average(struct sdr_parameters *p);
/* The average, or the weights if nothing was averaged: borrowed until the next call. */
const float *sdr_parameters_result(struct sdr_parameters *p);

/* Between parameters.c, regularize.c, step.c and replicas.c: values, then state. */
static inline float *sdr_parameters_array(const struct sdr_parameters *p, int i)
{
    return i == 0 ? p->value : p->slot[i - 1];
}
/* The constants of a step hold its penalty: blocks without one have constants of their own. */
static inline bool sdr_constants_differ(const struct sdr_optimizer *optimizer)
{
    return optimizer->own_penalty || optimizer->decay;
}
/* A target whose arrays begin at a row of its block. */
struct sdr_target sdr_target_from(struct sdr_target t, uint32_t row, uint32_t cols);

#endif
