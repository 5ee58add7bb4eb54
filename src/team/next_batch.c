/* Distribution of rows to workers with shared memory, and the bookkeeping at their barriers.

   Rows are assigned in the order of the epoch: in shares, first come first served, so that a slow
   core does less instead of delaying the others; or in rounds, to all workers. When all rows before
   `stop` are assigned, workers reach a barrier, and the last to arrive does the bookkeeping
   (sdr_account). Workers wait nowhere else. */
#include "run/order.h"
#include "run/record.h"
#include "run/run_log.h"
#include "team/accounting.h"
#include "team/plan.h"
#include "team/team.h"
#include "team/turns.h"

#include <string.h>

/* Sets the place where workers must stop for a barrier: the end of the epoch, --updates, or a
   checkpoint by updates. Deterministic strategies take no checkpoint within a round: its boundaries
   determine the bits. */
void sdr_plan_stop(struct sdr_run *run)
{
    struct sdr_team *team = run->shared.team;
    const struct sdr_settings *s = &run->options.settings;
    uint64_t version = run->parameters.version, count = run->set.train_rows.count;
    uint64_t due = UINT64_MAX;
    bool whole = run->shared.plan.known.deterministic || run->use.strategy->repeatable;
    if (s->updates > version)
        due = s->updates - version;
    if (run->log.checkpoint_updates && run->log.next_checkpoint_update > version &&
        run->log.next_checkpoint_update - version < due && !whole)
        due = run->log.next_checkpoint_update - version;
    uint64_t rows = run->pace.update_rows;
    team->stop = due <= (count - run->progress.at) / rows ? run->progress.at + due * rows : count;
    sdr_stream(run, run->progress.at);
    if (run->data->streams && run->rows.block_end < team->stop) /* workers change blocks together */
        team->stop = run->rows.block_end;
    atomic_store(&team->next, run->progress.at);
    atomic_store(&team->halt, false);
}

/* Bookkeeping after the rows before `end` of the epoch. */
static enum sdr_status account(struct sdr_run *run, uint64_t end)
{
    uint64_t batch = run->pace.update_rows, rows = end - run->progress.at;
    for (int i = 0; i < run->shared.loss_count; i++) {
        run->progress.loss_sum.loss += run->shared.losses[i].loss;
        run->progress.loss_sum.weight += run->shared.losses[i].weight;
        run->shared.losses[i] = (struct sdr_loss_sum){0};
    }
    run->shared.team->accounting = true;
    run->parameters.version = run->shared.team_version + (rows + batch - 1) / batch;
    if (run->shared.plan.shards) { /* shards may end with short batches */
        run->parameters.version = 0;
        for (int w = 0; w < run->workers; w++)
            run->parameters.version += run->shared.node[w].steps;
    }
    if (run->shared.replicas &&
        !run->shared.plan.windows) /* others stepped: publishing needs constants */
        sdr_parameters_begin(&run->parameters, run->pace.rate);
    if (run->shared.plan.copies && !run->shared.plan.shards)
        sdr_parameters_recompute(&run->parameters, run->pace.rate);
    /* Replicas are averaged only where every run averages them: a checkpoint must not change their
       bits. */
    bool ended = end >= run->set.train_rows.count;
    if (run->shared.plan.shards && ended)
        sdr_replicas_mean(&run->parameters, run->shared.replica, run->shared.replicas);
    SDR_TRY(sdr_account(run, rows));
    if (run->shared.plan.shards && run->end.over && !ended)
        sdr_replicas_mean(&run->parameters, run->shared.replica, run->shared.replicas);
    run->shared.team_version = run->parameters.version;
    if (!run->end.over)
        sdr_plan_stop(run);
    run->shared.team->accounting = false;
    return SDR_OK;
}

/* Counts lost updates by the intercept's step counter, which races like the weights: every missing
   count is a lost step. No other weight is touched as often, or loses as many. */
static void count_lost(struct sdr_run *run, uint64_t rows)
{
    struct sdr_parameters *p = &run->parameters;
    if (!run->shared.plan.races || !run->shared.plan.in_place || p->layout->blocks < 2 ||
        run->shared.factors)
        return;
    uint32_t counted; /* stored as integer bits: floats count only to 2^24 */
    float *place = p->value + p->layout->block[1].offset + 1;
    memcpy(&counted, place, sizeof counted);
    run->shared.raced += (double)rows;
    run->shared.lost += (double)rows - counted;
    *place = 0;
}

static enum sdr_status after_shares(struct sdr_run *run)
{
    uint64_t dealt = atomic_load(&run->shared.team->next);
    uint64_t end = dealt < run->shared.team->stop ? dealt : run->shared.team->stop;
    count_lost(run, end - run->progress.at);
    if (run->race.record) {
        struct sdr_event event = {SDR_EVENT_BARRIER, 0, end, 0};
        sdr_record_add(run->race.record, &event); /* all others wait */
    }
    return account(run, end);
}

static enum sdr_status after_shards(struct sdr_run *run)
{
    uint64_t dealt = 0;
    for (int w = 0; w < run->workers; w++)
        dealt += run->shared.node[w].dealt;
    SDR_TRY(account(run, dealt));
    for (int w = 0; w < run->workers && run->progress.at == 0; w++)
        run->shared.node[w].dealt = run->shared.node[w].taken = 0;
    return SDR_OK;
}

/* Replicas drift apart fastest at the start, when steps are largest. So rounds start short and grow
   to 1/16 of the rows seen so far. */
static uint64_t ramped(const struct sdr_run *run)
{
    enum { SHARE_OF_SEEN = 16 };
    const struct sdr_plan *plan = &run->shared.plan;
    if (!plan->first_share)
        return plan->share;
    uint64_t unit = (uint64_t)plan->copies * run->pace.update_rows;
    uint64_t rows = run->progress.rows_done / SHARE_OF_SEEN / unit * unit;
    rows = rows > plan->first_share ? rows : plan->first_share;
    return rows < plan->share ? rows : plan->share;
}

static enum sdr_status after_round(struct sdr_run *run)
{
    struct sdr_team *team = run->shared.team;
    if (run->shared.plan.joint && team->round.count)
        sdr_parameters_finish(&run->parameters, sdr_rate_at(run, team->round.at));
    if (run->shared.plan.windows && team->round.count)
        sdr_window_close(run, &team->round);
    SDR_TRY(account(run, run->progress.at + team->round.count));
    uint64_t left = team->stop - run->progress.at;
    uint64_t most = run->shared.plan.rotates && left ? sdr_rotation_left(run) : ramped(run);
    if (run->shared.plan.windows) /* a resumed run may start within a window */
        most -= run->progress.at % most;
    team->round = (struct sdr_batch){.rows = &run->data->rows,
                                     .row = run->rows.order + run->progress.at,
                                     .count = (uint32_t)(left < most ? left : most),
                                     .number = run->parameters.version,
                                     .at = run->progress.at};
    if (run->shared.plan.windows && !run->end.over)
        sdr_window_open(run, &team->round);
    return SDR_OK;
}

/* Worker 0 polls the clock and requests; the others stop at the next barrier if one needs it. */
enum sdr_status sdr_poll(struct sdr_node *node)
{
    struct sdr_run *run = node->run;
    if (node->worker != 0)
        return sdr_team_status(run->shared.team);
    if (atomic_load(&run->requests) || sdr_log_checkpoint_due(run))
        atomic_store(&run->shared.team->halt, true);
    return sdr_log_progress(run);
}

struct sdr_batch sdr_batch_at(const struct sdr_run *run, uint64_t place, uint64_t count)
{
    uint64_t before = (place - run->progress.at) / run->pace.update_rows;
    return (struct sdr_batch){.rows = &run->data->rows,
                              .row = run->rows.order + place,
                              .count = (uint32_t)count,
                              .number = run->shared.team_version + before,
                              .at = place};
}

/* The next share of the worker's own shard. All shards are cut into the same number of shares, some
   possibly empty. */
static bool next_of_shard(struct sdr_node *node, struct sdr_batch *share)
{
    struct sdr_run *run = node->run;
    uint64_t epoch = run->progress.epoch;
    if (node->taken == sdr_shard_shares(run, epoch))
        return false;
    uint64_t from = sdr_shard_rows(run, epoch, node->worker, node->taken);
    uint64_t end = sdr_shard_rows(run, epoch, node->worker, ++node->taken);
    *share = sdr_batch_at(run, sdr_shard_start(run, node->worker) + from, end - from);
    share->at = sdr_shard_place(run, node->worker, from);
    share->number = node->steps;
    node->dealt = end;
    return true;
}

/* Shares shrink towards the end (left / 2P, but at least 1/8), so that no worker waits long. */
static uint64_t share_at(const struct sdr_run *run, uint64_t left)
{
    uint64_t most = run->shared.plan.share, batch = run->pace.update_rows;
    uint64_t fair = left / (2 * (uint64_t)run->workers), least = most / 8;
    uint64_t rows = fair < most ? (fair > least ? fair : least) : most;
    rows = (rows > batch ? rows + batch - 1 : batch) / batch * batch;
    return rows < left ? rows : left;
}

bool sdr_try_next_share(struct sdr_node *node, struct sdr_batch *share)
{
    struct sdr_run *run = node->run;
    struct sdr_team *team = run->shared.team;
    if (run->shared.plan.barriers ? team->pause : atomic_load(&team->halt))
        return false;
    if (run->shared.plan.shards)
        return next_of_shard(node, share);
    uint64_t place = atomic_load(&team->next), count;
    do {
        if (place >= team->stop)
            return false;
        count = share_at(run, team->stop - place);
    } while (!atomic_compare_exchange_weak(&team->next, &place, place + count));
    *share = sdr_batch_at(run, place, count);
    return true;
}

enum sdr_status sdr_next_share(struct sdr_node *node, struct sdr_batch *share, bool *more)
{
    *more = true;
    SDR_TRY(sdr_poll(node));
    while (*more && !sdr_try_next_share(node, share))
        SDR_TRY(sdr_barrier_due(node, more));
    return SDR_OK;
}

static enum sdr_status epoch_laid(struct sdr_run *run)
{
    run->rows.pieces = 0;
    return SDR_OK;
}

/* After a barrier: where an epoch begins, all workers lay its order out. */
static enum sdr_status lay_epoch(struct sdr_node *node)
{
    uint64_t piece, pieces = node->run->rows.pieces;
    if (pieces == 0)
        return SDR_OK;
    while (sdr_next_piece(node, pieces, &piece))
        sdr_order_lay_piece(node->run, piece);
    return sdr_team_barrier(node->run, epoch_laid);
}

enum sdr_status sdr_barrier_due(struct sdr_node *node, bool *more)
{
    struct sdr_run *run = node->run;
    SDR_TRY(sdr_team_barrier(run, run->shared.plan.shards ? after_shards : after_shares));
    SDR_TRY(lay_epoch(node));
    *more = !run->end.over;
    return SDR_OK;
}

enum sdr_status sdr_next_round(struct sdr_node *node, struct sdr_batch *round, bool *more)
{
    struct sdr_run *run = node->run;
    SDR_TRY(sdr_team_barrier(run, after_round));
    SDR_TRY(lay_epoch(node));
    *round = run->shared.team->round;
    *more = !run->end.over;
    return SDR_OK;
}

uint64_t sdr_team_dealt(const struct sdr_run *run)
{
    if (!run->shared.team || run->shared.team->accounting || run->shared.turns)
        return 0;
    if (run->shared.plan.shards) { /* assumes that all shards advance like the first */
        uint64_t dealt = run->shared.node[0].dealt * (uint64_t)run->workers;
        return dealt > run->progress.at ? dealt - run->progress.at : 0;
    }
    uint64_t next = atomic_load(&run->shared.team->next);
    return (next < run->shared.team->stop ? next : run->shared.team->stop) - run->progress.at;
}
