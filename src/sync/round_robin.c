/* Round-robin (Zinkevich, Langford and Smola, 2009: "slow learners are fast"): workers compute
   gradients in parallel and apply them in a fixed cyclic order. After the start, every gradient is
   P − 1 updates stale: it was computed from the model right after its worker's previous update. */
#include "team/role.h"

static enum sdr_status plan(const void *options, struct sdr_plan *plan)
{
    (void)options;
    plan->share = plan->known.batch;
    plan->snapshots = true;
    plan->turns = true;
    return SDR_OK;
}

static enum sdr_status worker(struct sdr_node *node)
{
    for (;;) {
        struct sdr_batch batch;
        struct sdr_view view;
        struct sdr_update gradient;
        bool more;
        SDR_TRY(sdr_wait_turn(node));
        SDR_TRY(sdr_commit_pending(node, &more));
        if (more) {
            sdr_next_turn_batch(node, &batch);
            sdr_pull(node, &batch, &view);
        }
        sdr_pass_turn(node);
        if (!more)
            return SDR_OK;
        SDR_TRY(sdr_gradient(node, &view, &batch, &gradient));
        SDR_TRY(sdr_keep_pending(node, &gradient));
    }
}

SDR_REGISTER(strategy, round_robin) = {
    .name = "round-robin",
    .summary = "workers compute gradients in parallel and apply them in a fixed cyclic order",
    .many = true,
    .ordered = true,
    .team = &(const struct sdr_team_ops){.plan = plan, .worker = worker},
};
