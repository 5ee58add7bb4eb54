/* Several workers on one machine: threads that run a strategy's loop, what they are dealt, and where
   they meet.

   Rows are dealt in the order of the epoch: shares to whoever asks first, so that a slow core does
   less instead of holding up the others, or rounds to all. When the rows up to `stop` are dealt all
   meet, and the last one to come does what is due at that place (sdr_account) while the others wait.
   Nobody waits for anybody else otherwise, and a thread that fails is not waited for: the team
   breaks up, and every wait returns. */
#include "base/affinity.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "run/run.h"
#include "team/turns.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

enum { LOCKS_MOST = 64 };

struct sdr_team {
    int workers;
    struct sdr_affinity *affinity; /* owned: where workers are pinned to; NULL: anywhere */
    unsigned spins;                /* looks at a meeting before going to sleep */
    atomic_uint_fast64_t next;     /* the next row to be dealt, a place in the epoch */
    uint64_t stop;                 /* rows before this place are dealt */
    atomic_bool halt;              /* nothing more is dealt: something waits for all to meet */
    bool pause;                    /* the same as it stood at the last meeting */
    bool accounting;               /* at a meeting: the run's own numbers are right */
    struct sdr_batch round;        /* the rows all are at, dealt by rounds */
    atomic_uint_fast64_t piece;
    pthread_mutex_t guard[LOCKS_MOST]; /* of the parameters, for strategies that lock */

    atomic_int waiting;
    atomic_uint_fast64_t barriers; /* number of meetings so far */
    atomic_uint_fast64_t turn;     /* number of turns so far: worker turn % workers has it */
    uint64_t first_turn;           /* whose number the first one has */
    atomic_uint_fast64_t rested;   /* how often a worker has begun to wait for its turn */
    atomic_bool broken;
    pthread_mutex_t lock; /* guards sleeping, and what follows */
    pthread_cond_t changed;
    enum sdr_status status; /* of the first that failed */
    char sentence[1024];
};

/* ---- meeting ---- */
static void break_up(struct sdr_team *team, enum sdr_status status)
{
    pthread_mutex_lock(&team->lock);
    if (team->status == SDR_OK) {
        team->status = status;
        snprintf(team->sentence, sizeof team->sentence, "%s", sdr_error());
    }
    atomic_store(&team->broken, true);
    pthread_cond_broadcast(&team->changed);
    pthread_mutex_unlock(&team->lock);
}

static enum sdr_status broken(struct sdr_team *team)
{
    return atomic_load(&team->broken) ? sdr_fail(team->status, "%s", team->sentence) : SDR_OK;
}

/* Waits while the count stays what it was: first looking, then asleep. */
static void wait_while(struct sdr_team *team, atomic_uint_fast64_t *count, uint64_t was)
{
    for (unsigned i = 0; i < team->spins; i++) {
        if (atomic_load(count) != was || atomic_load(&team->broken))
            return;
        sdr_relax();
    }
    pthread_mutex_lock(&team->lock);
    while (atomic_load(count) == was && !atomic_load(&team->broken))
        pthread_cond_wait(&team->changed, &team->lock);
    pthread_mutex_unlock(&team->lock);
}

static void advance(struct sdr_team *team, atomic_uint_fast64_t *count)
{
    pthread_mutex_lock(&team->lock);
    atomic_fetch_add(count, 1);
    pthread_cond_broadcast(&team->changed);
    pthread_mutex_unlock(&team->lock);
}

/* All workers come here; the last one does `work`, if there is any, before they go on. */
static enum sdr_status barrier(struct sdr_run *run, enum sdr_status (*work)(struct sdr_run *run))
{
    struct sdr_team *team = run->shared.team;
    uint64_t barriers = atomic_load(&team->barriers);
    if (atomic_fetch_add(&team->waiting, 1) + 1 < team->workers) {
        wait_while(team, &team->barriers, barriers);
        return broken(team);
    }
    enum sdr_status status = work ? work(run) : SDR_OK;
    atomic_store(&team->waiting, 0);
    atomic_store(&team->piece, 0);
    team->pause = atomic_load(&team->halt);
    if (status != SDR_OK)
        break_up(team, status);
    advance(team, &team->barriers);
    return broken(team);
}

/* All leaves of a joint update are there: they become one, in their order. The constants of its step
   come now, when the penalties of the one before were paid with its own. */
static enum sdr_status sum_leaves(struct sdr_run *run)
{
    const struct sdr_batch *batch = &run->shared.team->round;
    sdr_parameters_begin(&run->parameters, sdr_rate_at(run, run->progress.at));
    sdr_sum_begin(&run->shared.joint, run->kind->sense);
    for (uint32_t leaf = 0; leaf < sdr_leaves(batch->count); leaf++)
        SDR_TRY(sdr_sum_add(&run->shared.joint, &run->shared.leaf[leaf].sum.update, 1));
    sdr_sum_end(&run->shared.joint, true);
    return SDR_OK;
}

enum sdr_status sdr_barrier(struct sdr_node *node)
{
    return barrier(node->run, NULL);
}

enum sdr_status sdr_joint_sum(struct sdr_node *node)
{
    return barrier(node->run, sum_leaves);
}

bool sdr_next_piece(struct sdr_node *node, uint64_t pieces, uint64_t *piece)
{
    *piece = atomic_fetch_add(&node->run->shared.team->piece, 1);
    return *piece < pieces;
}

enum sdr_status sdr_wait_turn(struct sdr_node *node)
{
    struct sdr_team *team = node->run->shared.team;
    uint64_t turn;
    advance(team, &team->rested);
    while ((turn = atomic_load(&team->turn)) % (uint64_t)team->workers != (uint64_t)node->worker &&
           !atomic_load(&team->broken))
        wait_while(team, &team->turn, turn);
    return broken(team);
}

enum sdr_status sdr_team_rest(struct sdr_run *run)
{
    struct sdr_team *team = run->shared.team;
    if (!team) /* nobody trains */
        return SDR_OK;
    /* Every turn so far was waited for; everybody else waits for the next one. */
    uint64_t all = atomic_load(&team->turn) - team->first_turn + (uint64_t)team->workers, rested;
    while ((rested = atomic_load(&team->rested)) < all && !atomic_load(&team->broken))
        wait_while(team, &team->rested, rested);
    return broken(team);
}

void sdr_pass_turn(struct sdr_node *node)
{
    advance(node->run->shared.team, &node->run->shared.team->turn);
}

/* ---- what is due where workers meet ---- */
/* Up to where rows can be dealt before something is due: the end of the epoch, --updates, a checkpoint
   by updates. Rounds stay whole: their places decide about bits. */
static void plan_stop(struct sdr_run *run)
{
    struct sdr_team *team = run->shared.team;
    const struct sdr_settings *s = &run->options.settings;
    uint64_t version = run->parameters.version, count = run->set.train_rows.count;
    uint64_t due = UINT64_MAX;
    bool whole = run->shared.plan.deterministic || run->strategy->repeatable;
    if (s->updates > version)
        due = s->updates - version;
    if (run->log.checkpoint_updates && run->log.next_checkpoint_update > version &&
        run->log.next_checkpoint_update - version < due && !whole)
        due = run->log.next_checkpoint_update - version;
    uint64_t rows = run->pace.update_rows;
    team->stop = due <= (count - run->progress.at) / rows ? run->progress.at + due * rows : count;
    sdr_stream(run, run->progress.at);
    if (run->data->streams && run->rows.block_end < team->stop) /* all leave a block together */
        team->stop = run->rows.block_end;
    atomic_store(&team->next, run->progress.at);
    atomic_store(&team->halt, false);
}

/* The rows up to `end` of the epoch were trained on. */
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
    if (run->shared.plan.shards) { /* shards end in batches of their own */
        run->parameters.version = 0;
        for (int w = 0; w < run->workers; w++)
            run->parameters.version += run->shared.node[w].steps;
    }
    if (run->shared.replicas &&
        !run->shared.plan
             .windows) /* others have stepped: the constants of a step are needed to publish */
        sdr_parameters_begin(&run->parameters, run->pace.rate);
    if (run->shared.plan.copies && !run->shared.plan.shards)
        sdr_parameters_recompute(&run->parameters, run->pace.rate);
    /* Copies are settled where every run settles them: a checkpoint must not change their bits. */
    bool ended = end >= run->set.train_rows.count;
    if (run->shared.plan.shards && ended)
        sdr_replicas_mean(&run->parameters, run->shared.replica, run->shared.replicas);
    SDR_TRY(sdr_account(run, rows));
    if (run->shared.plan.shards && run->end.over && !ended)
        sdr_replicas_mean(&run->parameters, run->shared.replica, run->shared.replicas);
    run->shared.team_version = run->parameters.version;
    if (!run->end.over)
        plan_stop(run);
    run->shared.team->accounting = false;
    return SDR_OK;
}

/* Racing workers count the steps on the intercept as carelessly as they take them: what is missing was
   lost. No other weight is touched as often, or loses as much. */
static void count_lost(struct sdr_run *run, uint64_t rows)
{
    struct sdr_parameters *p = &run->parameters;
    if (!run->shared.plan.races || !run->shared.plan.in_place || p->layout->blocks < 2 ||
        p->layout->block[1].fixed)
        return;
    uint32_t counted; /* in the place of a float: those stop counting at 2^24 */
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
        sdr_record_add(run->race.record, &event); /* nobody else does anything now */
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

/* Copies start out alike, and take their largest steps at first: they go apart for a few rows only,
   and longer the more rows the model has seen. */
static uint64_t ramped(const struct sdr_run *run)
{
    enum { SHARE_OF_SEEN = 16, LEAST = 16 };
    uint64_t unit = (uint64_t)run->shared.plan.copies * run->pace.update_rows,
             most = run->shared.plan.share;
    if (!run->shared.plan.damped)
        return most;
    uint64_t units = run->progress.rows_done / SHARE_OF_SEEN / unit;
    uint64_t rows = (units > LEAST ? units : LEAST) * unit;
    return rows < most ? rows : most;
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
    if (run->shared.plan.windows) /* a run that ended within a window goes on with the rest of it */
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

/* The first worker keeps an eye on the clock and on requests; what needs the others waits for them. */
enum sdr_status sdr_look(struct sdr_node *node)
{
    struct sdr_run *run = node->run;
    if (node->worker != 0)
        return broken(run->shared.team);
    if (atomic_load(&run->requests) || sdr_log_checkpoint_due(run))
        atomic_store(&run->shared.team->halt, true);
    return sdr_log_progress(run);
}

/* ---- dealing ---- */
static struct sdr_batch batch_at(const struct sdr_run *run, uint64_t place, uint64_t count)
{
    uint64_t before = (place - run->progress.at) / run->pace.update_rows;
    return (struct sdr_batch){.rows = &run->data->rows,
                              .row = run->rows.order + place,
                              .count = (uint32_t)count,
                              .number = run->shared.team_version + before,
                              .at = place};
}

/* Rows of the worker's own shard. All shards are cut into the same number of shares, some of which may
   be empty; a share has the place in the schedule that it would have if all workers were equally
   fast. */
static bool next_of_shard(struct sdr_node *node, struct sdr_batch *share)
{
    struct sdr_run *run = node->run;
    uint64_t rows = run->set.train_rows.count, shares = sdr_shard_shares(run);
    uint64_t first = sdr_shard_start(run, node->worker);
    uint64_t length = sdr_shard_start(run, node->worker + 1) - first;
    if (node->taken == shares)
        return false;
    uint64_t from = sdr_shard_rows(run, length, node->taken);
    uint64_t end = sdr_shard_rows(run, length, ++node->taken);
    *share = batch_at(run, first + from, end - from);
    share->at = from * rows / length;
    share->number = node->steps;
    node->dealt = end;
    return true;
}

/* Shares get smaller towards the end, so that nobody waits long for the last one. */
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
    *share = batch_at(run, place, count);
    return true;
}

enum sdr_status sdr_next_share(struct sdr_node *node, struct sdr_batch *share, bool *more)
{
    *more = true;
    SDR_TRY(sdr_look(node));
    while (*more && !sdr_try_next_share(node, share))
        SDR_TRY(sdr_barrier_due(node, more));
    return SDR_OK;
}

enum sdr_status sdr_barrier_due(struct sdr_node *node, bool *more)
{
    struct sdr_run *run = node->run;
    SDR_TRY(barrier(run, run->shared.plan.shards ? after_shards : after_shares));
    *more = !run->end.over;
    return SDR_OK;
}

enum sdr_status sdr_next_round(struct sdr_node *node, struct sdr_batch *round, bool *more)
{
    struct sdr_run *run = node->run;
    SDR_TRY(barrier(run, after_round));
    *round = run->shared.team->round;
    *more = !run->end.over;
    return SDR_OK;
}

uint64_t sdr_team_dealt(const struct sdr_run *run)
{
    if (!run->shared.team || run->shared.team->accounting || run->shared.turns)
        return 0;
    if (run->shared.plan.shards) { /* the others are about as far as the first */
        uint64_t dealt = run->shared.node[0].dealt * (uint64_t)run->workers;
        return dealt > run->progress.at ? dealt - run->progress.at : 0;
    }
    uint64_t next = atomic_load(&run->shared.team->next);
    return (next < run->shared.team->stop ? next : run->shared.team->stop) - run->progress.at;
}

/* ---- copies ---- */
void sdr_use_replica(struct sdr_node *node, uint64_t copy)
{
    node->parameters = &node->run->shared.replica[copy];
    node->loss_sum = &node->run->shared.losses[copy];
}

/* What is done between the two has one place in the order of all events, where that is recorded. */
static void begin_event(const struct sdr_node *node)
{
    if (node->run->race.record)
        sdr_record_lock(node->run->race.record);
}

static void end_event(const struct sdr_node *node, enum sdr_event_kind kind,
                      const struct sdr_batch *share)
{
    struct sdr_event event = {kind, (uint32_t)node->worker, share ? share->at : 0,
                              share ? share->count : 0};
    if (!node->run->race.record)
        return;
    sdr_record_add(node->run->race.record, &event);
    sdr_record_unlock(node->run->race.record);
}

/* One worker alone has no copy: there is nothing to take or give. */
void sdr_pull_replica(struct sdr_node *node, const struct sdr_batch *share)
{
    if (!node->run->shared.plan.copies)
        return;
    begin_event(node);
    node->parameters->version = share->number;
    sdr_replica_pull(node->parameters, &node->run->parameters);
    sdr_parameters_recompute(node->parameters, node->run->pace.rate);
    end_event(node, SDR_EVENT_PULL, share);
}

void sdr_push_delta(struct sdr_node *node)
{
    if (!node->run->shared.plan.copies)
        return;
    begin_event(node);
    sdr_replica_push(node->parameters, &node->run->parameters, node->run->shared.damping,
                     node->workers);
    end_event(node, SDR_EVENT_PUSH, NULL);
}

void sdr_stepped(struct sdr_node *node, const struct sdr_batch *rows)
{
    begin_event(node);
    end_event(node, SDR_EVENT_STEP, rows);
}

/* ---- a recorded run once more ---- */
bool sdr_replays(const struct sdr_node *node)
{
    return node->run->race.replay != NULL;
}

static enum sdr_status bad_record(const struct sdr_run *run)
{
    return sdr_fail(SDR_BAD_FILE, "%s: the record does not fit the run", run->race.replay->name);
}

/* The rows of an event; false: they are not there. */
static bool recorded_rows(const struct sdr_run *run, const struct sdr_event *event,
                          struct sdr_batch *share)
{
    uint64_t rows = run->set.train_rows.count;
    bool gives = event->kind == SDR_EVENT_PUSH;
    if (event->worker >= (uint32_t)run->shared.replicas ||
        (event->kind == SDR_EVENT_STEP) != run->shared.plan.in_place)
        return false;
    if (!gives && (event->place < run->progress.at || event->place >= rows || event->count == 0 ||
                   event->count > rows - event->place))
        return false;
    *share = batch_at(run, gives ? run->progress.at : event->place, gives ? 0 : event->count);
    return true;
}

enum sdr_status sdr_next_recorded(struct sdr_node *node, struct sdr_batch *share, bool *more)
{
    struct sdr_run *run = node->run;
    struct sdr_event event;
    SDR_TRY(sdr_look(node));
    if (atomic_load(&run->requests) & SDR_REQUEST_STOP)
        return sdr_fail(SDR_RUNTIME, "stopped on request; a replay starts over the next time");
    for (;;) {
        SDR_TRY(sdr_replay_next(run->race.replay, &event, more));
        if (!*more || event.kind != SDR_EVENT_BARRIER)
            break;
        if (run->end.over || event.place < run->progress.at ||
            event.place > run->set.train_rows.count)
            return bad_record(run);
        run->shared.team->stop = event.place; /* the record knows where workers met */
        atomic_store(&run->shared.team->next, event.place);
        SDR_TRY(sdr_barrier_due(node, more));
    }
    if (!*more) /* a record ends with the meeting that ended its run */
        return run->end.over ? SDR_OK : bad_record(run);
    if (run->end.over || !recorded_rows(run, &event, share))
        return bad_record(run);
    sdr_use_replica(node, event.worker);
    return SDR_OK;
}

void sdr_catch_up(struct sdr_node *node)
{
    sdr_parameters_catch_up_all(node->parameters);
}

void sdr_merge(struct sdr_node *node, int copies, uint64_t part, uint64_t parts)
{
    sdr_replicas_merge(&node->run->parameters, node->run->shared.replica, copies,
                       node->run->shared.damping, part, parts);
}

bool sdr_share_is_whole(const struct sdr_node *node)
{
    return sdr_shard_whole(node->run, node->taken);
}

void sdr_average(struct sdr_node *node, uint64_t part, uint64_t parts)
{
    sdr_replicas_blend(node->run->shared.replica, node->run->shared.replicas, part, parts);
}

/* ---- an update that all compute ---- */
void sdr_joint_catch_up(struct sdr_node *node, const struct sdr_batch *batch, uint64_t part)
{
    sdr_parameters_catch_up(&node->run->parameters, batch, node->run->shared.span[part]);
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

/* ---- locks ---- */
/* The locks that guard what a batch touches, one bit each: equal parts of the values. */
static uint64_t locks_of(const struct sdr_node *node, const struct sdr_batch *batch)
{
    const struct sdr_layout *layout = node->run->parameters.layout;
    uint64_t locks = (uint64_t)node->plan->locks, mask = 0;
    if (locks == 1)
        return 1;
    if (batch->rows->dense || node->plan->all_conflict)
        return locks == 64 ? UINT64_MAX : ((uint64_t)1 << locks) - 1;
    for (int b = 0; b < layout->blocks; b++) {
        const struct sdr_block *block = &layout->block[b];
        uint64_t size = (uint64_t)block->rows * block->cols;
        uint64_t first = block->offset * locks / layout->count;
        uint64_t last = (block->offset + size - 1) * locks / layout->count;
        for (uint64_t lock = first; lock <= last && !block->per_feature; lock++)
            mask |= (uint64_t)1 << lock;
        for (uint32_t i = 0; i < batch->count && block->per_feature; i++) {
            struct sdr_sparse_row r = sdr_sparse_row(batch->rows, batch->row[i]);
            for (uint32_t n = 0; n < r.n; n++) {
                uint64_t at = block->offset + (uint64_t)sdr_row_index(&r, n) * block->cols;
                for (uint64_t lock = at * locks / layout->count;
                     lock <= (at + block->cols - 1) * locks / layout->count; lock++)
                    mask |= (uint64_t)1 << lock;
            }
        }
    }
    return mask;
}

/* In the order of their numbers: two workers never wait for each other. */
void sdr_lock(struct sdr_node *node, const struct sdr_batch *batch)
{
    for (uint64_t mask = locks_of(node, batch); mask; mask &= mask - 1)
        pthread_mutex_lock(&node->run->shared.team->guard[__builtin_ctzll(mask)]);
}

void sdr_unlock(struct sdr_node *node, const struct sdr_batch *batch)
{
    for (uint64_t mask = locks_of(node, batch); mask; mask &= mask - 1)
        pthread_mutex_unlock(&node->run->shared.team->guard[__builtin_ctzll(mask)]);
}

/* ---- threads ---- */
/* Workers stay where they are, and their copies of the model near them. Pinning is asked for, or memory
   has several nodes: elsewhere the system knows better what else is running. */
static enum sdr_status pin_workers(struct sdr_run *run)
{
    enum { AUTO, YES, NO };
    int pin = run->options.settings.pin;
    struct sdr_team *team = run->shared.team;
    if (pin == NO || team->workers < 2 || (pin == AUTO && sdr_affinity_nodes() < 2))
        return SDR_OK;
    SDR_TRY(sdr_affinity_open(NULL, team->workers, &team->affinity));
    if (!team->affinity)
        sdr_note(&run->options, "nobody is pinned: there are more workers than cores");
    for (int c = 0; c < run->shared.plan.copies && team->affinity; c++)
        sdr_replica_place(&run->shared.replica[c], team->affinity, c % team->workers);
    return SDR_OK;
}

static void *work(void *argument)
{
    struct sdr_node *node = argument;
    if (node->run->shared.team->affinity)
        sdr_affinity_pin(node->run->shared.team->affinity, node->worker);
    enum sdr_status status = node->run->strategy->worker(node);
    if (status != SDR_OK)
        break_up(node->run->shared.team, status);
    return NULL;
}

static enum sdr_status run_threads(struct sdr_run *run)
{
    pthread_t thread[SDR_WORKERS_MOST];
    int started = 1;
    while (started < run->shared.team->workers &&
           pthread_create(&thread[started], NULL, work, &run->shared.node[started]) == 0)
        started++;
    if (started < run->shared.team->workers) {
        sdr_fail(SDR_RUNTIME, "no more than %d of %d threads can be started: give fewer --workers",
                 started, run->workers);
        break_up(run->shared.team, SDR_RUNTIME);
    } else {
        work(&run->shared.node[0]);
    }
    for (int i = 1; i < started; i++)
        pthread_join(thread[i], NULL);
    return broken(run->shared.team);
}

enum sdr_status sdr_team_work(struct sdr_run *run)
{
    if (!run->strategy->team)
        return run->strategy->worker(&run->shared.node[0]);
    struct sdr_team *team;
    SDR_TRY(sdr_allocate(&team, 1, sizeof *team, "a team of threads"));
    enum { SPINS = 2000 }; /* some 50 µs: a meeting is often shorter than falling asleep */
    team->workers = run->race.replay ? 1 : run->workers;
    team->spins = run->workers <= sdr_thread_limit() ? SPINS : 0;
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->changed, NULL);
    for (int i = 0; i < LOCKS_MOST; i++)
        pthread_mutex_init(&team->guard[i], NULL);
    run->shared.team = team;
    run->shared.team_version = run->parameters.version;
    if (run->shared.turns)
        atomic_store(&team->turn, team->first_turn = run->shared.turns->first);
    plan_stop(run);
    enum sdr_status status = pin_workers(run);
    if (status == SDR_OK)
        status = run_threads(run);
    if (team->affinity)
        sdr_affinity_restore(team->affinity);
    sdr_affinity_close(team->affinity);
    run->shared.team = NULL;
    for (int i = 0; i < LOCKS_MOST; i++)
        pthread_mutex_destroy(&team->guard[i]);
    pthread_cond_destroy(&team->changed);
    pthread_mutex_destroy(&team->lock);
    sdr_release(team);
    return status;
}
