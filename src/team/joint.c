/* Joint updates: all workers compute one update. Leaves of the batch and spans of values are pieces
   of work: a worker does its own, then helps others. */
#include "team/accounting.h"
#include "team/team.h"

/* Adds up the leaves in their order. The constants of the step are set only now: catching up needed
   those of the previous step. */
static enum sdr_status sum_leaves(struct sdr_run *run)
{
    const struct sdr_batch *batch = &run->shared.team->round;
    sdr_parameters_begin(&run->parameters, sdr_rate_at(run, run->progress.at));
    sdr_sum_begin(&run->shared.joint, run->use.kind->sense);
    for (uint32_t leaf = 0; leaf < sdr_leaves(batch->count); leaf++)
        SDR_TRY(sdr_sum_add(&run->shared.joint, &run->shared.leaf[leaf].sum.update, 1));
    sdr_sum_end(&run->shared.joint, true);
    return SDR_OK;
}

enum sdr_status sdr_joint_sum(struct sdr_node *node)
{
    return sdr_team_barrier(node->run, sum_leaves);
}

void sdr_joint_catch_up(struct sdr_node *node, const struct sdr_batch *batch, uint64_t part)
{
    sdr_parameters_catch_up(&node->run->parameters, batch, node->run->shared.span[part]);
}

/* Prefetches the next leaf that the worker is likely to compute: its next one of this batch, or its
   first one of the next batch. */
static void fetch_next(const struct sdr_node *node, const struct sdr_batch *batch, uint64_t leaf)
{
    const struct sdr_run *run = node->run;
    struct sdr_own own = sdr_own_pieces(node->worker, node->workers, sdr_leaves(batch->count));
    uint64_t next = leaf + 1 < own.end ? leaf + 1 : own.first;
    uint64_t at = batch->at + next * SDR_LEAF_ROWS + (next > leaf ? 0 : batch->count);
    for (uint64_t i = 0; i < SDR_LEAF_ROWS && at + i < run->set.train_rows.count; i++)
        sdr_fetch_row(&run->problem, run->rows.order[at + i]);
}

enum sdr_status sdr_joint_gradient(struct sdr_node *node, const struct sdr_batch *batch,
                                   uint64_t leaf)
{
    struct sdr_run *run = node->run;
    const struct sdr_parameters *p = &run->parameters;
    struct sdr_batch part = sdr_part(node, batch, leaf * SDR_LEAF_ROWS, SDR_LEAF_ROWS);
    struct sdr_view view = {&run->problem, p->layout->block, p->value, p->version};
    struct sdr_update *update = &run->shared.leaf[leaf].sum.update;
    part.of = batch->count;
    fetch_next(node, batch, leaf);
    SDR_TRY(sdr_leaf_gradient(&run->shared.leaf[leaf], &view, &part, (uint32_t)leaf, update));
    run->shared.losses[leaf] = (struct sdr_loss_sum){update->loss, update->weight};
    return SDR_OK;
}

void sdr_joint_step(struct sdr_node *node, const struct sdr_batch *batch, uint64_t part)
{
    struct sdr_run *run = node->run;
    (void)batch;
    sdr_parameters_apply_span(&run->parameters, &run->shared.joint.update, run->shared.span[part]);
}
