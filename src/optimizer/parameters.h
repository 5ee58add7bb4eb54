/* The parameters of a model where they live: values, optimizer state, lazy penalties, averages.
   A worker alone, or later a server, owns one. */
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
    uint64_t version;                 /* updates applied */
    double charge;                    /* Σ rate since all penalties were settled */
    float *value, *slot[2], *charged; /* owned; charged is NULL without a penalty */
    double *sum;                      /* owned; sum of published weights, NULL: no averaging */
    uint64_t summed;
    float constant[SDR_CONSTANTS];
    struct sdr_target target[SDR_BLOCKS_MOST]; /* each block as a step sees it */
    /* Scratch of batches: gradient rows of the touched features. Owned, NULL for single rows. */
    float *gradient;
    uint32_t *touched, *place; /* place[j] is valid where mark[j] == marks */
    uint32_t *mark, marks;
    float *published; /* owned: the weights as others see them */
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

/* Settles the penalties of the values a batch will read. O(non-zeros of the batch). */
void sdr_parameters_settle(struct sdr_parameters *p, const struct sdr_batch *batch);
/* Settles everything; O(values). */
void sdr_parameters_settle_all(struct sdr_parameters *p);
/* One step of size `rate`. FACTORS, ROWS or DENSE gradients. */
void sdr_parameters_apply(struct sdr_parameters *p, const struct sdr_update *update, double rate);
/* One step for each row of a walk; what lies with the parameters is filled in. */
void sdr_parameters_walk(struct sdr_parameters *p, struct sdr_walk *walk);
/* The weights as they stand, settled: borrowed until the next call. */
const float *sdr_parameters_weights(struct sdr_parameters *p);
/* Adds the weights to the average (Polyak and Ruppert). */
void sdr_parameters_average(struct sdr_parameters *p);
/* The average, or the weights if nothing was averaged: borrowed until the next call. */
const float *sdr_parameters_result(struct sdr_parameters *p);
/* Penalty of weights w, or of exact where it is not NULL, as the objective counts it. */
double sdr_parameters_penalty(const struct sdr_parameters *p, const float *w, const double *exact);

#endif
