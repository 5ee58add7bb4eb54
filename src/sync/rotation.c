/* Block rotation (Gemulla, Nijkamp, Haas and Sismanis, 2011; the schedule of LIBMF and of Strads)
   for rows of two features, such as ratings. Features are cut into blocks; the rows of two blocks
   form a cell. In each round, workers train cells without a common block, so no value is shared;
   the next round pairs the blocks differently. The result is the same for any number of workers. */
#include "team/role.h"

static enum sdr_status plan(const void *options, struct sdr_plan *plan)
{
    (void)options;
    if (!plan->known.pairs)
        return sdr_fail(SDR_USAGE,
                        "--sync rotation is for rows of two features, --model mf or graph-cut; use "
                        "another --sync, such as hogwild, with --model %s",
                        plan->known.model);
    if (plan->known.batch != 1)
        return sdr_fail(SDR_USAGE, "--sync rotation takes single rows: --batch 1");
    if (plan->known.penalty)
        return sdr_fail(SDR_USAGE, "--sync rotation takes no --l1, --l2 or decay (mf:l2 penalises "
                                   "by ratings; or use --sync hogwild)");
    plan->rotates = true;
    plan->in_place = plan->workers > 1;
    plan->loss_sums = SDR_ROTATING;
    plan->share = (plan->known.rows + 2 * SDR_ROTATING - 2) / (2 * SDR_ROTATING - 1);
    return SDR_OK;
}

static enum sdr_status worker(struct sdr_node *node)
{
    for (;;) {
        struct sdr_batch round;
        uint64_t cell;
        bool more;
        SDR_TRY(sdr_next_round(node, &round, &more));
        if (!more)
            return SDR_OK;
        while (sdr_next_piece(node, SDR_ROTATING, &cell))
            SDR_TRY(sdr_train_cell(node, &round, cell));
    }
}

SDR_REGISTER(strategy, rotation) = {
    .name = "rotation",
    .summary =
        "mf, graph-cut: all cores on blocks without common features; same result for any --workers",
    .many = true,
    .repeatable = true,
    .team = &(const struct sdr_team_ops){.plan = plan, .worker = worker},
};
