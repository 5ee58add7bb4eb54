/* SimuParallelSGD (Zinkevich, Weimer, Li and Smola, 2010): each worker trains its own model on its
   own shard of the data; the result is the mean of the models, taken once at the end. With every=H
   the models are averaged after every H updates and training continues from the mean: local SGD.
   The paper's step is constant (--schedule constant). */
#include "sync/average.h"
#include "team/role.h"

static const struct sdr_option table[] = {{"every", SDR_INTEGER, "0", "H", 0, 1e12,
                                           "updates of each worker between two averages (epochs do "
                                           "not matter); 0: average once, at the end",
                                           offsetof(struct sdr_average_options, every), 0},
                                          {0}};

static enum sdr_status plan(const void *options, struct sdr_plan *plan)
{
    enum { AT_A_TIME = 1024 }; /* rows per share; any size will do without barriers */
    uint64_t every = ((const struct sdr_average_options *)options)->every;
    uint64_t batch = plan->known.batch < plan->known.rows ? plan->known.batch : plan->known.rows;
    plan->share = (every && every < UINT64_MAX / batch ? every : AT_A_TIME) * batch;
    plan->copies = plan->workers;
    plan->shards = true;
    plan->barriers = every > 0;
    return SDR_OK;
}

static enum sdr_status worker(struct sdr_node *node)
{
    uint64_t part, parts = (uint64_t)node->workers;
    for (;;) {
        struct sdr_batch share;
        bool more;
        SDR_TRY(sdr_next_share(node, &share, &more));
        if (!more)
            return SDR_OK;
        SDR_TRY(sdr_train(node, &share));
        if (!node->plan->barriers || !sdr_share_is_whole(node))
            continue;
        sdr_catch_up(node);
        SDR_TRY(sdr_barrier(node));
        while (sdr_next_piece(node, parts, &part))
            sdr_average(node, part, parts);
        SDR_TRY(sdr_barrier(node));
    }
}

SDR_REGISTER(strategy, average) = {
    .name = "average",
    .summary = "every worker trains a model on its own share of the rows; the models are averaged",
    .options = table,
    .options_size = sizeof(struct sdr_average_options),
    .many = true,
    .team = &(const struct sdr_team_ops){.plan = plan, .worker = worker},
    .peer = &sdr_average_peers,
};
