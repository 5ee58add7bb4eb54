/* Gradients of batches, leaf by leaf. The sum does not depend on who computed which leaf. */
#ifndef SDR_UPDATE_GRADIENT_H
#define SDR_UPDATE_GRADIENT_H

#include "update/update.h"

/* Rows per leaf; computations poll for a stop request after every leaf. */
enum { SDR_LEAF_ROWS = 64 };

/* Losses of rows, each before its step. */
struct sdr_loss_sum {
    double loss, weight;
};

/* Workspace for gradients, one per computing thread. */
struct sdr_gradient_space {
    const struct sdr_model_kind *kind; /* borrowed */
    void *memory;                      /* owned: the model's workspace, for a leaf */
    struct sdr_part *part;             /* owned: of a leaf */
    struct sdr_sum sum;                /* of the leaves of a batch */
};
enum sdr_status sdr_gradient_space_create(struct sdr_gradient_space *space,
                                          const struct sdr_model_kind *kind,
                                          const struct sdr_problem *problem,
                                          const struct sdr_layout *layout);
void sdr_gradient_space_free(struct sdr_gradient_space *space);

static inline uint32_t sdr_leaves(uint32_t rows)
{
    return (rows + SDR_LEAF_ROWS - 1) / SDR_LEAF_ROWS;
}
static inline struct sdr_batch sdr_leaf(const struct sdr_batch *batch, uint32_t number)
{
    struct sdr_batch leaf = *batch;
    uint32_t from = number * SDR_LEAF_ROWS;
    leaf.row += from;
    leaf.at += from;
    leaf.count = batch->count - from < SDR_LEAF_ROWS ? batch->count - from : SDR_LEAF_ROWS;
    leaf.of = batch->of ? batch->of : batch->count;
    return leaf;
}
/* Prefetches the rows of the first leaf of a batch: shuffled rows lie anywhere. */
static inline __attribute__((always_inline)) void sdr_fetch_leaf(const struct sdr_problem *problem,
                                                                 const struct sdr_batch *batch)
{
    for (uint32_t i = 0; i < batch->count && i < SDR_LEAF_ROWS; i++)
        sdr_fetch_row(problem, batch->row[i]);
}
/* The gradient of one leaf: at most SDR_LEAF_ROWS rows, the leaf's number in its batch. Borrowed
   until the next call. */
enum sdr_status sdr_leaf_gradient(struct sdr_gradient_space *space, const struct sdr_view *view,
                                  const struct sdr_batch *leaf, uint32_t number,
                                  struct sdr_update *update);
/* The same in stages, each of which makes some parts final. Dense parts have no leaf number. */
int sdr_gradient_stages(const struct sdr_gradient_space *space, const struct sdr_problem *problem);
void sdr_leaf_begin(struct sdr_gradient_space *space, const struct sdr_view *view,
                    const struct sdr_batch *leaf, struct sdr_update *update);
enum sdr_status sdr_leaf_stage(struct sdr_gradient_space *space, const struct sdr_view *view,
                               int stage, struct sdr_update *update);
/* The gradient of a batch whose first row begins leaf number `first`; the caller has prefetched
   its first leaf. `losses`, one per leaf, may be NULL. stop may be NULL; once it is set the
   result is invalid. Borrowed until the next call. */
enum sdr_status sdr_batch_gradient(struct sdr_gradient_space *space, const struct sdr_view *view,
                                   const struct sdr_batch *batch, uint32_t first,
                                   struct sdr_loss_sum *losses, const atomic_uint *stop,
                                   struct sdr_update *update);

#endif
