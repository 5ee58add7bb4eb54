#include "update/gradient.h"
#include "base/memory.h"

enum sdr_status sdr_gradient_space_create(struct sdr_gradient_space *space,
                                          const struct sdr_model_kind *kind,
                                          const struct sdr_problem *problem,
                                          const struct sdr_layout *layout)
{
    unsigned char *memory;
    *space = (struct sdr_gradient_space){.kind = kind};
    SDR_TRY(sdr_allocate(&memory, kind->workspace(problem, SDR_LEAF_ROWS), 1, "scores"));
    space->memory = memory;
    SDR_TRY(sdr_allocate(&space->part, (size_t)layout->blocks, sizeof *space->part, "gradients"));
    return sdr_sum_create(&space->sum, layout);
}

void sdr_gradient_space_free(struct sdr_gradient_space *space)
{
    sdr_release(space->memory);
    sdr_release(space->part);
    if (space->sum.layout)
        sdr_sum_free(&space->sum);
    *space = (struct sdr_gradient_space){0};
}

int sdr_gradient_stages(const struct sdr_gradient_space *space, const struct sdr_problem *problem)
{
    return space->kind->stages ? space->kind->stages(problem) : 1;
}

void sdr_leaf_begin(struct sdr_gradient_space *space, const struct sdr_view *view,
                    const struct sdr_batch *leaf, struct sdr_update *update)
{
    update->sense = space->kind->sense;
    update->version = view->version;
    update->loss = update->weight = 0;
    update->batch = *leaf;
    update->part = space->part;
    update->parts = 0;
}

enum sdr_status sdr_leaf_stage(struct sdr_gradient_space *space, const struct sdr_view *view,
                               int stage, struct sdr_update *update)
{
    return space->kind->gradient(space->kind, view, &update->batch, stage, space->memory, update);
}

static inline __attribute__((always_inline)) enum sdr_status leaf_gradient(
    struct sdr_gradient_space *space, const struct sdr_view *view, const struct sdr_batch *leaf,
    uint32_t number, struct sdr_update *update)
{
    int stages = sdr_gradient_stages(space, view->problem);
    sdr_leaf_begin(space, view, leaf, update);
    for (int stage = 0; stage < stages; stage++)
        SDR_TRY(sdr_leaf_stage(space, view, stage, update));
    for (int p = 0; p < update->parts; p++)
        if (update->part[p].form == SDR_DENSE) {
            update->part[p].leaf = number;
            update->part[p].leaves = 1;
        }
    return SDR_OK;
}

enum sdr_status sdr_leaf_gradient(struct sdr_gradient_space *space, const struct sdr_view *view,
                                  const struct sdr_batch *leaf, uint32_t number,
                                  struct sdr_update *update)
{
    return leaf_gradient(space, view, leaf, number, update);
}

enum sdr_status sdr_batch_gradient(struct sdr_gradient_space *space, const struct sdr_view *view,
                                   const struct sdr_batch *batch, uint32_t first,
                                   struct sdr_loss_sum *losses, const atomic_uint *stop,
                                   struct sdr_update *update)
{
    uint32_t leaves = sdr_leaves(batch->count);
    bool summed = leaves != 1; /* one leaf is the whole batch */
    if (summed)
        sdr_sum_begin(&space->sum, space->kind->sense);
    for (uint32_t l = 0; l < leaves && !(stop && atomic_load(stop)); l++) {
        struct sdr_batch leaf = sdr_leaf(batch, l);
        if (l > 0) /* the caller has prefetched the first leaf */
            sdr_fetch_leaf(view->problem, &leaf);
        SDR_TRY(leaf_gradient(space, view, &leaf, first + l, update));
        if (losses)
            losses[l] = (struct sdr_loss_sum){update->loss, update->weight};
        if (summed)
            SDR_TRY(sdr_sum_add(&space->sum, update, 1));
    }
    if (summed)
        *update = *sdr_sum_end(&space->sum, !batch->of || batch->of == batch->count);
    update->version = view->version;
    update->batch = *batch;
    return SDR_OK;
}
