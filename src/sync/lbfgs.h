/* L-BFGS and OWL-QN for --sync batch: see lbfgs.c. */
#ifndef SDR_SYNC_LBFGS_H
#define SDR_SYNC_LBFGS_H

#include "team/role.h"

enum { SDR_LBFGS_WINDOW = 5 };

/* Why a method ends that takes all rows at a time. */
#define SDR_CONVERGED "the objective no longer falls"

/* What the loop keeps from pass to pass beside its arrays; zero at first. Checkpoints save it. */
struct sdr_lbfgs {
    uint64_t begun;  /* 1 once the first pass is done */
    uint64_t pairs;  /* pairs (s, y) made since the last reset; the youngest are kept */
    uint64_t trials; /* points that this line search has rejected */
    uint64_t steps;  /* accepted points */
    double step;     /* α of the point on trial */
    double safe;     /* α along −⋄ that lowers F for certain */
    double loss, objective, first;       /* loss and F at the point; F at the start */
    double objectives[SDR_LBFGS_WINDOW]; /* F at the last accepted points */
};

/* Trains until the run is over; ends it when the objective no longer falls. */
enum sdr_status sdr_lbfgs_steps(struct sdr_node *node, struct sdr_lbfgs *state);

#endif
