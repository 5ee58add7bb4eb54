/* Bulk-synchronous SGD with shared memory: all workers compute the gradient of one batch, then take
   the step together. Every worker adds --batch rows: P workers take the steps of one worker with a
   P times larger batch. With --deterministic --batch is the total, and the bits equal those of a
   single worker for any P. */
#include "sync/bsp.h"
#include "team/role.h"

enum sdr_status sdr_bsp_plan(const void *options, struct sdr_plan *plan)
{
    (void)options;
    plan->share =
        plan->known.deterministic ? plan->known.batch : plan->known.batch * (uint64_t)plan->workers;
    if (plan->share > plan->known.rows)
        plan->share = plan->known.rows;
    plan->loss_sums = (int)((plan->share + SDR_LEAF_ROWS - 1) / SDR_LEAF_ROWS);
    plan->joint = true;
    return SDR_OK;
}

enum sdr_status sdr_bsp_worker(struct sdr_node *node)
{
    uint64_t part, leaf, parts = (uint64_t)node->workers;
    for (;;) {
        struct sdr_batch batch;
        bool more;
        SDR_TRY(sdr_next_round(node, &batch, &more));
        if (!more)
            return SDR_OK;
        if (node->plan->known.penalty) {
            while (sdr_next_piece(node, parts, &part))
                sdr_joint_catch_up(node, &batch, part);
            SDR_TRY(sdr_barrier(node));
        }
        while (sdr_next_piece(node, sdr_leaves(batch.count), &leaf))
            SDR_TRY(sdr_joint_gradient(node, &batch, leaf));
        SDR_TRY(sdr_joint_sum(node));
        while (sdr_next_piece(node, parts, &part))
            sdr_joint_step(node, &batch, part);
    }
}
