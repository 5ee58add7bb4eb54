/* Cyclades (Pan, Lam, Tu, Papailiopoulos, Zhang, Jordan, Ramchandran, Ré and Recht, 2016): rows of
   a window without a common feature can be trained in parallel. A window is cut into the connected
   components of its conflict graph; workers take components and keep the order of rows in each. The
   result is bit-identical to one worker. The components of the next window are computed while this
   one is trained. */
#include "team/role.h"

static enum sdr_status plan(const void *options, struct sdr_plan *plan)
{
    enum { ALONE = 256 }; /* rows between two steps of the intercept with a single worker */
    (void)options;
    if (plan->known.batch != 1)
        return sdr_fail(SDR_USAGE, "--sync cyclades takes single rows: --batch 1");
    plan->share = plan->known.window ? plan->known.window : plan->known.all_conflict ? 1 : ALONE;
    if (!plan->known.window && plan->workers > 1) {
        plan->workers = 1;
        plan->remark = plan->known.all_conflict
                           ? "all rows touch the same values: one worker trains"
                           : "busy features join nearly all rows to one component: one worker "
                             "trains";
    }
    plan->windows = true;
    plan->in_place = plan->workers > 1;
    plan->loss_sums = SDR_BINS;
    return SDR_OK;
}

static enum sdr_status worker(struct sdr_node *node)
{
    for (;;) {
        struct sdr_batch window;
        uint64_t piece;
        bool more;
        SDR_TRY(sdr_next_round(node, &window, &more));
        if (!more)
            return SDR_OK;
        while (sdr_next_piece(node, 1 + SDR_BINS, &piece))
            if (piece == 0)
                sdr_plan_ahead(node, &window);
            else
                SDR_TRY(sdr_train_apart(node, &window, piece - 1));
    }
}

SDR_REGISTER(strategy, cyclades) = {
    .name = "cyclades",
    .summary =
        "all cores on rows without common features; same result for any --workers, bit for bit",
    .many = true,
    .repeatable = true,
    .team = &(const struct sdr_team_ops){.windows = true, .plan = plan, .worker = worker},
};
