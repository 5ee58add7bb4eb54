/* Round-robin (Zinkevich, Langford and Smola, 2009: "slow learners are fast"): gradients are computed
   in parallel and applied in a fixed circle of workers. Once all are at work every gradient is P − 1
   updates old when it is applied: it was computed from the model that its worker saw right after its
   own last update. */
#include "node.h"

static enum sdr_status plan(const void *options, struct sdr_plan *plan)
{
    (void)options;
    plan->share = plan->batch;
    plan->snapshots = true;
    return SDR_OK;
}

static enum sdr_status worker(struct sdr_node *node)
{
    struct sdr_batch batch;
    struct sdr_view view;
    struct sdr_update gradient;
    bool more, computed = false;
    for (;;) {
        SDR_TRY(sdr_wait_turn(node));
        if (computed)
            sdr_commit(node, &gradient);
        SDR_TRY(sdr_look(node));
        computed = sdr_try_deal(node, &batch);
        if (computed)
            sdr_pull(node, &batch, &view);
        sdr_pass_turn(node);
        if (computed) {
            sdr_gradient(node, &view, &batch, &gradient);
            continue;
        }
        SDR_TRY(sdr_meet_due(node, &more)); /* all have applied what they had */
        if (!more)
            return SDR_OK;
    }
}

SDR_REGISTER(strategy, round_robin) = {
    .name = "round-robin",
    .summary = "gradients in parallel, applied in a fixed circle of workers",
    .team = true,
    .ordered = true,
    .plan = plan,
    .worker = worker,
};
