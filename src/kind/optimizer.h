/* Optimizers: gradient → step. */
#ifndef SDR_KIND_OPTIMIZER_H
#define SDR_KIND_OPTIMIZER_H

#include "kind/model.h"

/* Where a step lands: slices of the parameter array that move together, and this step's constants.
   All arrays run over values, except scale, which runs over features. */
struct sdr_target {
    float *value;
    float *slot[2];      /* optimizer state; NULL where the optimizer has less */
    float *penalty_paid; /* penalty already charged, in units of Σ rate; NULL: no penalty */
    const float *scale; /* 1 / size of each feature: steps are taken in scaled units; NULL: all 1 */
    const float *center;   /* dense rows: subtracted from x; NULL: nothing */
    const float *constant; /* what begin() computed */
    float penalty_due;     /* Σ rate so far */
    float l1, l2, group;   /* penalty weights */
    bool standardize;      /* the penalty is on the scaled weights */
    bool plain_decay;      /* l2 ignores scales: standardized, or decoupled decay */
    bool pay_fully;        /* charge what is due however little it is */
};
enum { SDR_CONSTANTS = 8 };

/* A row of two features, copied. */
struct sdr_pair {
    uint32_t one, two;
    float target, weight;
};

struct sdr_optimizer;
/* Rows with one output that one worker steps on one after the other, each a batch of its own; rows of
   a linear model, or pairs. */
struct sdr_fused_steps {
    const struct sdr_problem *problem;
    const struct sdr_model_kind *kind;
    const struct sdr_optimizer *optimizer;
    const uint32_t *row;         /* count of them */
    const struct sdr_pair *pair; /* the same rows where they were copied; NULL: they were not */
    const uint32_t *ahead;       /* for each, a row to fetch from memory meanwhile; NULL: none */
    const double *rate;          /* the step of each */
    /* Rows that are part of a window others train on too: the place of each in it. Then rate is per
       place, and so are charge_at (Σ rate before each; NULL without penalties) and slope, which takes
       the slopes: the intercept rests. NULL: rows follow each other. */
    const uint32_t *place;
    const double *penalty_due_at;
    float *dloss;
    uint32_t count;
    uint32_t factors; /* pairs: of a row of the block; else 0 */
    uint32_t columns; /* of the block */
    const void *optimizer_options;
    struct sdr_target *weight, *intercept; /* intercept may be NULL */
    float *constant;                       /* of both targets */
    uint64_t version;                      /* updates so far; moves on */
    double penalty_due;                    /* Σ rate so far; moves on where there is a penalty */
    double loss_sum, weight_sum;           /* of the rows, each before its step; added to */
};

/* Compiled once per CPU level from optimizer/step.h; see there for the loops. A value's state
   advances when a row touches it; penalties of the steps in between are charged when it is next
   read. */
struct sdr_optimizer {
    SDR_ABOUT;
    int slots;        /* state arrays, each as long as the values, zero at the start */
    double rate;      /* default --lr in units of typical_row^−rate_power */
    int rate_power;   /* 2: plain gradient steps; 1: steps normalised per value; 0: absolute */
    bool uniform;     /* one metric for all values of a row: group lasso is exact */
    bool own_penalty; /* charges l1 and l2 itself (FTRL) */
    bool sums;        /* its state sums gradients up: what several workers added is added up too;
                         otherwise a state is an average, and theirs are averaged */
    /* Constants of update number `update` (from 1) with step `rate`. */
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
    /* Settle, score, slope, step for one row after the other: what pull, gradient and commit do, to
       the bit, with each row's weights gathered once. */
    void (*fused)(struct sdr_fused_steps *fused);
    /* The same on weights that other workers change meanwhile, without locks (Hogwild!). */
    void (*fused_shared)(struct sdr_fused_steps *fused);
    /* Charges the penalty up to now on the values of the given rows; n rows from first, or listed.
     */
    void (*catch_up16)(const struct sdr_target *t, const uint16_t *index, uint32_t n,
                       uint32_t outputs);
    void (*catch_up32)(const struct sdr_target *t, const uint32_t *index, uint32_t n,
                       uint32_t outputs);
    void (*catch_up)(const struct sdr_target *t, uint32_t n, uint32_t outputs);
    /* The weights where they differ from the point gradients are taken at (Nesterov); NULL: the
       same. n rows into out. */
    void (*publish)(const struct sdr_target *t, uint32_t n, uint32_t outputs, float *out);
    /* Decoupled decay (AdamW): replaces l2 and is no part of the objective; NULL: none. The decay is
       in the constants of targets with l2, so the intercept has constants of its own. */
    double (*decay)(const void *options);
    /* The penalty that update number `update` with step `rate` makes due, in units of Σ rate; NULL:
       `rate`. */
    double (*penalty_due)(const void *options, uint64_t update, double rate);
};

#endif
