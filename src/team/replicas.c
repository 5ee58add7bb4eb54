/* Replicas of the parameters: pull, push and merge, and the recording and replay of these
   events. */
#include "run/order.h"
#include "run/record.h"
#include "team/team.h"

void sdr_use_replica(struct sdr_node *node, uint64_t replica)
{
    node->parameters = &node->run->shared.replica[replica];
    node->loss_sum = &node->run->shared.losses[replica];
}

/* begin_event and end_event enclose one event; a record serializes all events. */
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

/* A single worker has no replica: nothing to pull or push. */
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

bool sdr_replays(const struct sdr_node *node)
{
    return node->run->race.replay != NULL;
}

static enum sdr_status bad_record(const struct sdr_run *run)
{
    return sdr_fail(SDR_BAD_FILE, "%s: the record does not fit the run", run->race.replay->name);
}

/* The rows of a recorded event; false if the data does not have them. */
static bool recorded_rows(const struct sdr_run *run, const struct sdr_event *event,
                          struct sdr_batch *share)
{
    uint64_t rows = run->set.train_rows.count;
    bool push = event->kind == SDR_EVENT_PUSH;
    if (event->worker >= (uint32_t)run->shared.replicas ||
        (event->kind == SDR_EVENT_STEP) != run->shared.plan.in_place)
        return false;
    if (!push && (event->place < run->progress.at || event->place >= rows || event->count == 0 ||
                  event->count > rows - event->place))
        return false;
    *share = sdr_batch_at(run, push ? run->progress.at : event->place, push ? 0 : event->count);
    return true;
}

enum sdr_status sdr_next_recorded(struct sdr_node *node, struct sdr_batch *share, bool *more)
{
    struct sdr_run *run = node->run;
    struct sdr_event event;
    SDR_TRY(sdr_poll(node));
    if (atomic_load(&run->requests) & SDR_REQUEST_STOP)
        return sdr_fail(SDR_RUNTIME, "stopped on request; a replay starts over the next time");
    for (;;) {
        SDR_TRY(sdr_replay_next(run->race.replay, &event, more));
        if (!*more || event.kind != SDR_EVENT_BARRIER)
            break;
        if (run->end.over || event.place < run->progress.at ||
            event.place > run->set.train_rows.count)
            return bad_record(run);
        run->shared.team->stop = event.place; /* barriers are where the record has them */
        atomic_store(&run->shared.team->next, event.place);
        SDR_TRY(sdr_barrier_due(node, more));
    }
    if (!*more) /* a record ends with the run's last barrier */
        return run->end.over ? SDR_OK : bad_record(run);
    if (run->end.over || !recorded_rows(run, &event, share))
        return bad_record(run);
    sdr_use_replica(node, event.worker);
    return SDR_OK;
}

void sdr_catch_up(struct sdr_node *node)
{
    if (!sdr_cells_merged(node->parameters))
        sdr_parameters_catch_up_all(node->parameters);
}

void sdr_merge(struct sdr_node *node, int copies, uint64_t part, uint64_t parts)
{
    sdr_replicas_merge(&node->run->parameters, node->run->shared.replica, copies,
                       node->run->shared.damping, part, parts);
}

bool sdr_share_is_whole(const struct sdr_node *node)
{
    return sdr_shard_whole(node->run, node->run->progress.epoch, node->taken);
}

void sdr_average(struct sdr_node *node, uint64_t part, uint64_t parts)
{
    sdr_replicas_blend(node->run->shared.replica, node->run->shared.replicas, part, parts);
}
