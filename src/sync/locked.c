/* The baseline of the Hogwild! paper: workers lock the values they read and write. Gradients are
   computed outside of the lock, from a snapshot taken under it. With several stripes a worker locks
   only the parts of the model that its rows touch. */
#include "team/role.h"

struct options {
    uint64_t stripes;
};
static const struct sdr_option table[] = {
    {"stripes", SDR_INTEGER, "1", "N", 1, 64,
     "locks, each for a part of the model; 1: one for all of it", offsetof(struct options, stripes),
     0},
    {0}};

static enum sdr_status plan(const void *options, struct sdr_plan *plan)
{
    plan->locks = (int)((const struct options *)options)->stripes;
    plan->share = plan->known.batch;
    plan->snapshots = true;
    plan->in_place = plan->locks > 1;
    if (plan->locks > 1 && plan->known.penalty)
        return sdr_fail(SDR_USAGE, "locked:stripes cannot charge penalties, which depend on all "
                                   "steps before: use locked with one lock");
    return SDR_OK;
}

static enum sdr_status worker(struct sdr_node *node)
{
    for (;;) {
        struct sdr_batch batch;
        struct sdr_view view;
        struct sdr_update gradient;
        bool more;
        SDR_TRY(sdr_next_share(node, &batch, &more));
        if (!more)
            return SDR_OK;
        sdr_lock(node, &batch);
        sdr_pull(node, &batch, &view);
        sdr_unlock(node, &batch);
        SDR_TRY(sdr_gradient(node, &view, &batch, &gradient));
        sdr_lock(node, &batch);
        sdr_commit(node, &gradient);
        sdr_unlock(node, &batch);
    }
}

SDR_REGISTER(strategy, locked) = {
    .name = "locked",
    .summary = "all cores on one model, guarded by one lock or several",
    .options = table,
    .options_size = sizeof(struct options),
    .many = true,
    .ordered = true,
    .team = &(const struct sdr_team_ops){.plan = plan, .worker = worker},
};
