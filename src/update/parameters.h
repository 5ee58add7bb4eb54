/* The parameters of a model: values, optimizer state, lazy penalties, averages. The run owns
   one. Workers that share it have an alias, another handle on the same arrays, or a replica, a
   copy that remembers what it was copied from. */
#ifndef SDR_UPDATE_PARAMETERS_H
#define SDR_UPDATE_PARAMETERS_H

#include "update/numbering.h"
#include "update/update.h"

struct sdr_penalty {
    double l1, l2, group; /* weights on the mean loss */
    bool standardize;     /* on weights in units of the features' standard deviations */
};

/* The rule of steps, the same for all replicas. All pointers are borrowed. */
struct sdr_step_rule {
    const struct sdr_optimizer *optimizer;
    const struct sdr_optimizer *cell_optimizer; /* its loops over cells; NULL: those of optimizer */
    const void *optimizer_options;
    struct sdr_penalty penalty;
    const float *scale, *center; /* per feature; may be NULL */
    const struct sdr_linear_kernels *kernels;
    void (*project)(float *row, uint32_t cols); /* of the model, on stepped rows; or NULL */
    enum sdr_reads reads;                       /* of a gradient */
};

/* Polyak–Ruppert average of the published weights. */
struct sdr_average {
    double *sum; /* owned; NULL: no averaging */
    uint64_t summed;
};

struct sdr_parameters {
    const struct sdr_layout *layout; /* borrowed */
    struct sdr_step_rule rule;
    /* The values in this process: all, or the share of its servers. Arrays are as long as all
       values, so that a value has the same index everywhere. Values not held are never touched,
       and untouched pages take no memory. */
    struct sdr_span held;
    uint64_t version;                      /* updates applied */
    double penalty_due;                    /* Σ rate since all penalties were last charged */
    float *value, *slot[2], *penalty_paid; /* owned; penalty_paid is NULL without a penalty */
    float *cell;   /* owned: the first block in cells, for fused steps on sparse rows; NULL: none */
    bool in_cells; /* what is current are the cells, not the arrays */
    /* borrowed: the feature of each cell; NULL: cell j is feature j */
    const struct sdr_numbering *numbering;
    double rate;                      /* of the step begun last */
    uint64_t begun;                   /* number of that step, from 1 */
    float constant[SDR_CONSTANTS];    /* of that step */
    float unpenalised[SDR_CONSTANTS]; /* for blocks without a penalty, if they differ */
    struct sdr_target *target;        /* owned: each block as the target of a step */
    struct sdr_scratch scratch;       /* for batches; empty if all are single rows */
    struct sdr_average average;
    float *published; /* owned: the published weights */
    float *ready;     /* the weights made ready last: published, or the values themselves */
    float *base[3];   /* owned: values and state of a replica at its last pull; NULL: none */
    bool borrowed;    /* an alias: values and state belong to another handle */
};

/* batches: allocate scratch for gradients of many rows. */
enum sdr_status sdr_parameters_create(struct sdr_parameters *p, const struct sdr_layout *layout,
                                      const struct sdr_step_rule *rule, bool batches, bool average);
/* Gives values and state their pages, before several threads write to all of them. */
void sdr_parameters_populate(struct sdr_parameters *p);
void sdr_parameters_destroy(struct sdr_parameters *p);
/* An alias with its own scratch; with `copy`, a replica. `base`: the replica remembers what it
   pulled, so that it can push while others do. */
enum sdr_status sdr_parameters_replicate(struct sdr_parameters *p, const struct sdr_parameters *of,
                                         bool copy, bool base);
/* Copies version, penalty due and step constants to an alias of the same arrays. */
void sdr_parameters_follow(struct sdr_parameters *p, const struct sdr_parameters *of);
/* An alias that steps on borrowed values, with borrowed state, and charges no penalties. */
enum sdr_status sdr_parameters_stepper(struct sdr_parameters *p, const struct sdr_parameters *of,
                                       float *value);
void sdr_parameters_lend(struct sdr_parameters *p, float *const slot[2]);

/* ---- lazy penalties (regularize.c) ---- */
/* Charges the penalty due on the values within a span that a batch will read. O(non-zeros of the
   batch). */
void sdr_parameters_catch_up(struct sdr_parameters *p, const struct sdr_batch *batch,
                             struct sdr_span span);
/* Charges all values of a span. */
void sdr_parameters_catch_up_span(struct sdr_parameters *p, struct sdr_span span);
/* Charges all values held, and restarts the sums; O(values). */
void sdr_parameters_catch_up_all(struct sdr_parameters *p);
/* The increase of the penalty due by update number `update` of size `rate`. */
double sdr_step_penalty(const struct sdr_parameters *p, uint64_t update, double rate);
/* The penalty of weights w, or of `exact` if not NULL, as in the objective. */
double sdr_parameters_penalty(const struct sdr_parameters *p, const float *w, const double *exact);
/* The same piece by piece: sums over consecutive spans; `w` begins at each span. */
struct sdr_penalty_sum {
    double absolute, square, group;
};
void sdr_penalty_add(const struct sdr_parameters *p, const float *w, struct sdr_span span,
                     struct sdr_penalty_sum *sum);
double sdr_penalty_total(const struct sdr_parameters *p, const struct sdr_penalty_sum *sum);

/* ---- steps (step.c) ---- */
/* One step of size `rate`. */
void sdr_parameters_apply(struct sdr_parameters *p, const struct sdr_update *update, double rate);
/* The same by spans, for several threads or servers: begin; then every span once, in any order
   or concurrently; then finish. */
void sdr_parameters_begin(struct sdr_parameters *p, double rate);
/* The same with state that has seen a different number of updates: this is number `update`, from
   1. */
void sdr_parameters_begin_as(struct sdr_parameters *p, uint64_t update, double rate);
void sdr_parameters_apply_span(struct sdr_parameters *p, const struct sdr_update *update,
                               struct sdr_span span);
void sdr_parameters_finish(struct sdr_parameters *p, double rate);
/* A step on the per-feature blocks, or on the others, not counted; the caller has called begin. */
void sdr_parameters_apply_blocks(struct sdr_parameters *p, const struct sdr_update *update,
                                 bool per_feature);
/* One step per row; fills in the members that the parameters determine. */
void sdr_parameters_fused_steps(struct sdr_parameters *p, struct sdr_fused_steps *fused);

/* ---- cells (cells.c) ---- */
/* Fused steps on sparse rows work on cells: value, state, scale and penalty paid of a feature side
   by side (optimizer/cell_loops.h). The arrays are copied there before the first step, and back
   when somebody asks for them: all functions here do; whoever reads the arrays directly calls
   sdr_cells_unpack first. */
uint32_t sdr_cell_bytes(const struct sdr_parameters *p);
/* Fused steps use cells from now on: of all features (NULL), or of those numbered (borrowed), on
   the rows numbered. */
enum sdr_status sdr_cells_allocate(struct sdr_parameters *p, const struct sdr_numbering *numbering);
void sdr_cells_pack(struct sdr_parameters *p);
void sdr_cells_unpack(struct sdr_parameters *p);
/* Replicas whose cells are merged directly, part number `part` of `parts`, and get the result: they
   need not pull it. Others are merged array by array. */
bool sdr_cells_merged(const struct sdr_parameters *replica);
void sdr_cells_pull(struct sdr_parameters *replica, const struct sdr_parameters *shared);
void sdr_cells_merge(struct sdr_parameters *shared, struct sdr_parameters *replica, int replicas,
                     const float *damping, uint64_t part, uint64_t parts);

/* ---- replicas (replicas.c) ---- */
/* Moves the arrays of a replica to the NUMA node of a worker. */
struct sdr_affinity;
void sdr_replica_place(struct sdr_parameters *replica, struct sdr_affinity *affinity, int worker);
/* A replica pulls the values and state of the shared parameters, and pushes its changes to them;
   both while others do the same. damping, for this many replicas: see the kernel merge; NULL:
   none. */
void sdr_replica_pull(struct sdr_parameters *replica, const struct sdr_parameters *shared);
void sdr_replica_push(struct sdr_parameters *replica, struct sdr_parameters *shared,
                      const float *damping, int replicas);
/* Merges replicas, all pulled from the present `shared`, into it, in their order: part number
   `part` of `parts`. Parts may be merged in parallel. damping: see the kernel. */
void sdr_replicas_merge(struct sdr_parameters *shared, struct sdr_parameters *replica, int replicas,
                        const float *damping, uint64_t part, uint64_t parts);
/* Values and state become the means over the replicas, for evaluation. */
void sdr_replicas_mean(struct sdr_parameters *p, struct sdr_parameters *replica, int replicas);
/* The values of all replicas become their mean; state that is not the value itself stays with
   each replica. By parts, as above. */
void sdr_replicas_blend(struct sdr_parameters *replica, int replicas, uint64_t part,
                        uint64_t parts);

/* ---- values ---- */
/* Copies the values that a batch will read to their positions in an array as long as the
   parameters. */
void sdr_parameters_copy_touched(const struct sdr_parameters *p, const struct sdr_batch *batch,
                                 float *to);
/* Recomputes values that are a function of the state (FTRL), as a step of size `rate` would, and
   projects values with constraints. */
void sdr_parameters_recompute(struct sdr_parameters *p, double rate);
/* Restarts from these values, as far as they are held: no state, no penalty due, no average. */
void sdr_parameters_reset(struct sdr_parameters *p, const float *value);
/* The weights held, penalties charged: borrowed until the next call. */
const float *sdr_parameters_weights(struct sdr_parameters *p);
/* ready: makes the result below ready. finite: whether all its values are finite. copy: copies
   them to their positions in an array. */
void sdr_parameters_ready(struct sdr_parameters *p);
bool sdr_parameters_finite(const struct sdr_parameters *p);
void sdr_parameters_keep(const struct sdr_parameters *p, float *to);
/* Making weights ready charges penalties: the arrays this changes are saved before, and restored
   exactly. */
struct sdr_saved {
    float *array[4]; /* owned; NULL: nothing was due */
    double penalty_due;
    bool any; /* something was saved, and not restored yet */
};
enum sdr_status sdr_parameters_save(struct sdr_parameters *p, struct sdr_saved *saved);
void sdr_parameters_restore(struct sdr_parameters *p, struct sdr_saved *saved);
void sdr_saved_free(struct sdr_saved *saved);
/* Adds the weights to the average. */
void sdr_parameters_average(struct sdr_parameters *p);
/* The average, or the weights if nothing was averaged: borrowed until the next call. */
const float *sdr_parameters_result(struct sdr_parameters *p);

/* Shared by parameters.c, regularize.c, step.c and replicas.c: values, then state. */
static inline float *sdr_parameters_array(const struct sdr_parameters *p, int i)
{
    return i == 0 ? p->value : p->slot[i - 1];
}
/* The constants of a step include its penalty: blocks without one have their own constants. */
static inline bool sdr_constants_differ(const struct sdr_optimizer *optimizer)
{
    return optimizer->own_penalty || optimizer->decay;
}
/* A target whose arrays begin at a row of its block. */
struct sdr_target sdr_target_from(struct sdr_target t, uint32_t row, uint32_t cols);

#endif
