/* Optimizers: turn a gradient into a step. */
#ifndef SDR_KIND_OPTIMIZER_H
#define SDR_KIND_OPTIMIZER_H

#include "kind/model.h"

/* The target of a step: slices of the parameter array that are stepped together, and the
   constants of the step. All arrays run over values, except scale, which runs over features. */
struct sdr_target {
    float *value;
    float *slot[2];      /* optimizer state; NULL where the optimizer has less */
    float *penalty_paid; /* penalty already charged, in units of Σ rate; NULL: no penalty */
    /* the same, a cell a feature (optimizer/cell_loops.h): fused steps on it alone; NULL: none */
    float *cell;
    const float *scale; /* 1 / size of each feature: steps are taken in scaled units; NULL: all 1 */
    const float *center;   /* dense rows: subtracted from x; NULL: nothing */
    const float *constant; /* what begin() computed */
    float penalty_due;     /* Σ rate so far */
    float l1, l2, group;   /* penalty weights */
    bool standardize;      /* the penalty is on the scaled weights */
    bool plain_decay;      /* l2 ignores scales: standardized, or decoupled decay */
    bool pay_fully;        /* charge the penalty due, however small */
};
enum { SDR_CONSTANTS = 8 };

/* A copy of a row with two features. */
struct sdr_pair {
    uint32_t one, two;
    float target, weight;
};

struct sdr_optimizer;
/* Consecutive steps of one worker, each on a batch of one row with one output; rows of a linear
   model, or pairs. */
struct sdr_fused_steps {
    const struct sdr_problem *problem;
    const struct sdr_model_kind *kind;
    const struct sdr_optimizer *optimizer;
    const uint32_t *row;         /* count of them */
    const struct sdr_pair *pair; /* copies of the same rows; NULL: not copied */
    const uint32_t *ahead;       /* for each, a row to prefetch meanwhile; NULL: none */
    const double *rate;          /* step size of each */
    /* Rows of a window that other workers train on too: the position of each row in it. Then
       rate, penalty_due_at (Σ rate before each row; NULL without penalties) and dloss (output:
       ∂loss/∂score) are indexed by position, and the intercept is not stepped. NULL: rows are
       consecutive. */
    const uint32_t *place;
    const double *penalty_due_at;
    float *dloss;
    uint32_t count;
    uint32_t factors; /* pairs: of a row of the block; else 0 */
    const void *optimizer_options;
    struct sdr_target *weight, *bias, *intercept; /* the last two may be NULL; bias: pairs alone */
    float *constant;                              /* of all targets */
    uint64_t version;                             /* updates so far; incremented */
    double penalty_due;          /* Σ rate so far; increased if there is a penalty */
    double loss_sum, weight_sum; /* over the rows, each before its step; added to */
};

/* Compiled once per CPU level from optimizer/step.h, which has the loops. The state of a value
   advances when a row touches it; penalties of skipped steps are charged when it is next read. */
struct sdr_optimizer {
    SDR_ABOUT;
    int slots;          /* state arrays, each as long as the values, zero at the start */
    double rate;        /* default --lr in units of typical_row^−rate_power */
    double rate_layers; /* default --lr of networks */
    int rate_power;     /* 2: plain gradient steps; 1: steps normalised per value; 0: absolute */
    bool uniform;       /* one metric for all values of a row: group lasso is exact */
    bool own_penalty;   /* charges l1 and l2 itself (FTRL) */
    bool sums;          /* state is a sum of gradients: replicas are added; otherwise averaged */
    /* Constants of update number `update` (from 1) with step size `rate`. */
    void (*begin)(const void *options, uint64_t update, double rate,
                  const struct sdr_target *target, float constant[SDR_CONSTANTS]);
    /* One step with gradient u·x on one output: index and x of a sparse row, or a dense row. */
    void (*sparse16)(const struct sdr_target *t, const uint16_t *index, const float *x, uint32_t n,
                     float u);
    void (*sparse32)(const struct sdr_target *t, const uint32_t *index, const float *x, uint32_t n,
                     float u);
    void (*dense)(const struct sdr_target *t, const float *x, uint32_t n, float u);
    /* One step with gradient x_j·u[k] on rows of `outputs` values. */
    void (*matrix16)(const struct sdr_target *t, const uint16_t *index, const float *x, uint32_t n,
                     const float *u, uint32_t outputs);
    void (*matrix32)(const struct sdr_target *t, const uint32_t *index, const float *x, uint32_t n,
                     const float *u, uint32_t outputs);
    void (*matrix)(const struct sdr_target *t, const float *x, uint32_t n, const float *u,
                   uint32_t outputs);
    /* One step with gradient g[j·outputs + k] on the first n rows. */
    void (*matrix_rows)(const struct sdr_target *t, const float *g, uint32_t n, uint32_t outputs);
    /* For each row: charge penalties, score, ∂loss/∂score, step. Bit-identical to pull, gradient
       and commit; each row's weights are gathered once. */
    void (*fused)(struct sdr_fused_steps *fused);
    /* The same on weights that other workers change concurrently, without locks (Hogwild!). */
    void (*fused_shared)(struct sdr_fused_steps *fused);
    /* Charges the penalty due on the values of n rows: from `first`, or listed. */
    void (*catch_up16)(const struct sdr_target *t, const uint16_t *index, uint32_t n,
                       uint32_t outputs);
    void (*catch_up32)(const struct sdr_target *t, const uint32_t *index, uint32_t n,
                       uint32_t outputs);
    void (*catch_up)(const struct sdr_target *t, uint32_t n, uint32_t outputs);
    /* The published weights if they differ from the point of the gradients (Nesterov), n rows
       into out; NULL: they are the same. */
    void (*publish)(const struct sdr_target *t, uint32_t n, uint32_t outputs, float *out);
    /* Decoupled decay (AdamW): replaces l2 and is not part of the objective; NULL: none. The
       decay is in the constants of targets with l2, so the intercept has its own constants. */
    double (*decay)(const void *options);
    /* The penalty due after update number `update` with step size `rate`, in units of Σ rate;
       NULL: `rate`. */
    double (*penalty_due)(const void *options, uint64_t update, double rate);
};

#endif
