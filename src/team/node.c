/* Building blocks of worker loops: batches for a single worker, gradients, steps, bookkeeping.
   Batches for several workers: next_batch.c. */
#include "team/node.h"
#include "base/clock.h"
#include "run/order.h"
#include "run/point.h"
#include "run/run_log.h"
#include "run/weights.h"
#include "team/accounting.h"
#include "train.h"

#include <math.h>

enum {
    POLL_EVERY = 1024, /* rows between polls of clock and requests */
    CHUNK = SDR_FUSED_ROWS,
};

enum sdr_status sdr_diverge(struct sdr_run *run)
{
    struct sdr_parameters *p = &run->parameters;
    if (run->progress.restarts == run->options.settings.restarts) {
        run->end.over = run->end.diverged = true;
        run->end.why_over = "diverged";
        return SDR_OK;
    }
    run->progress.restarts++;
    if (run->network)
        run->network->lead.discard_before =
            p->version + 1; /* gradients of earlier values must not reach the restored ones */
    run->pace.rate *= 0.5;
    run->progress.loss_sum = (struct sdr_loss_sum){0};
    run->progress.last_epoch_loss = NAN;
    run->progress.went_back = true;
    SDR_TRY(sdr_weights_reset(run));
    sdr_note(&run->options,
             "the loss explodes: back to the weights of epoch %llu, with a step of %.4g",
             (unsigned long long)run->progress.good_epoch, run->pace.rate);
    return SDR_OK;
}

/* Detects divergence: the mean training loss exceeds a bound. While restarts remain, the bound is 5
   times the loss of zero scores (log(classes), or the mean squared target); otherwise 1e9 (times
   the mean squared target). */
static enum sdr_status check_health(struct sdr_run *run)
{
    double typical = run->progress.loss_sum.weight > 0
                         ? run->progress.loss_sum.loss / run->progress.loss_sum.weight
                         : 0;
    /* Too few rows are no evidence. */
    bool may_go_back =
        run->progress.restarts < run->options.settings.restarts &&
        (run->progress.loss_sum.weight >= 1000 || run->progress.at * 4 > run->set.train_rows.count);
    double bound = may_go_back ? 5 * log(fmax(2, run->set.classes.count)) : 1e9;
    if (run->use.kind->truth == SDR_REGRESSION)
        bound = (may_go_back ? 5 : 1e9) * (run->set.target_size * run->set.target_size +
                                           run->set.target_mean * run->set.target_mean);
    if (run->use.kind->truth == SDR_UNSUPERVISED) /* distances have no natural scale */
        bound = INFINITY;
    return !isfinite(typical) || typical > bound ? sdr_diverge(run) : SDR_OK;
}

enum sdr_status sdr_poll_requests(struct sdr_run *run)
{
    if (run->log.hold)
        return sdr_log_progress(run);
    unsigned requests = atomic_load_explicit(&run->requests, memory_order_relaxed);
    if (requests)
        requests = atomic_exchange(&run->requests, 0);
    if (requests & SDR_REQUEST_STOP) {
        run->end.over = run->end.preempted = true;
        run->end.why_over = "stopped on request";
        sdr_log_last_checkpoint(run);
        return SDR_OK;
    }
    if (requests & SDR_REQUEST_CHECKPOINT)
        sdr_log_checkpoint(run);
    return sdr_log_tick(run);
}

/* True once per POLL_EVERY rows. */
static bool due(const struct sdr_run *run, uint64_t dealt)
{
    return run->progress.at / POLL_EVERY != (run->progress.at - dealt) / POLL_EVERY;
}

/* Streamed data is read block by block. Entering a block releases the previous one and requests the
   next, so that reading overlaps training. */
static void enter_block(struct sdr_run *run, uint64_t at)
{
    const uint32_t *order = run->rows.order;
    uint64_t size = run->rows.block_rows, block = order[at] / size, end = at;
    if (run->rows.streaming == block * size && at < run->rows.block_end)
        return;
    while (end < run->set.train_rows.count && order[end] / size == block)
        end++;
    if (run->rows.streaming != UINT64_MAX && run->rows.streaming != block * size)
        sdr_data_done_with(run->data, run->rows.streaming, run->rows.streaming + size);
    sdr_data_will_need(run->data, block * size, (block + 1) * size);
    if (end < run->set.train_rows.count)
        sdr_data_will_need(run->data, order[end] / size * size, (order[end] / size + 1) * size);
    run->rows.streaming = block * size;
    run->rows.block_end = end;
}

void sdr_stream(struct sdr_run *run, uint64_t at)
{
    if (run->data->streams && at < run->set.train_rows.count)
        enter_block(run, at);
}

enum sdr_status sdr_account(struct sdr_run *run, uint64_t rows)
{
    const struct sdr_settings *s = &run->options.settings;
    run->progress.at += rows;
    run->progress.rows_done += rows;
    run->log.paused_then = run->log.paused;
    bool ended = run->progress.at >= run->set.train_rows.count;
    bool checkpoint =
        run->log.checkpoint_updates && run->parameters.version >= run->log.next_checkpoint_update;
    bool poll = ended || checkpoint || run->workers > 1 || run->network || due(run, rows);
    if (poll)
        SDR_TRY(check_health(run));
    if (ended && !run->end.over)
        SDR_TRY(sdr_epoch_end(run));
    if (sdr_point_due(run, ended))
        SDR_TRY(sdr_point(run));
    if (poll && !run->end.over)
        SDR_TRY(sdr_poll_requests(run));
    if (!run->end.over && s->updates && run->parameters.version >= s->updates) {
        run->end.over = true;
        run->end.why_over = "all updates done";
    }
    return SDR_OK;
}

static enum sdr_status next_batch(struct sdr_run *run, uint32_t most, struct sdr_batch *batch,
                                  bool *more)
{
    uint64_t left = run->set.train_rows.count - run->progress.at;
    *batch = (struct sdr_batch){.rows = &run->data->rows,
                                .row = run->rows.order + run->progress.at,
                                .count = left < most ? (uint32_t)left : most,
                                .number = run->parameters.version,
                                .at = run->progress.at};
    *more = !run->end.over;
    if (*more)
        sdr_stream(run, run->progress.at);
    return SDR_OK;
}

void sdr_fetch_ahead(const struct sdr_run *run, const struct sdr_batch *batch)
{
    uint32_t ahead[CHUNK], count = batch->count < CHUNK ? batch->count : CHUNK;
    if (sdr_order_ahead(run, batch->row, count, ahead))
        for (uint32_t i = 0; i < count; i++)
            sdr_fetch_row(&run->problem, ahead[i]);
}

enum sdr_status sdr_next_batch(struct sdr_node *node, struct sdr_batch *batch, bool *more)
{
    struct sdr_run *run = node->run;
    if (batch->count) /* account for the previous batch */
        SDR_TRY(sdr_account(run, batch->count));
    SDR_TRY(next_batch(run, (uint32_t)run->pace.update_rows, batch, more));
    if (*more)
        sdr_fetch_ahead(run, batch);
    return SDR_OK;
}

enum sdr_status sdr_next_full_batch(struct sdr_node *node, struct sdr_batch *batch, bool *more)
{
    struct sdr_run *run = node->run;
    if (batch->count)
        SDR_TRY(sdr_account(run, batch->count));
    return next_batch(run, UINT32_MAX, batch, more);
}

/* Limits a chunk to the next event: a poll, a checkpoint, the last update, a sample of the average,
   a point of the curve. */
static uint64_t until_due(const struct sdr_run *run, uint64_t most)
{
    uint64_t version = run->parameters.version, updates = run->options.settings.updates;
    uint64_t due = POLL_EVERY - run->progress.at % POLL_EVERY;
    uint64_t next = run->log.next_checkpoint_update;
    if (run->log.checkpoint_updates && next > version && next - version < due)
        due = next - version;
    if (run->curve.next > version && run->curve.next - version < due)
        due = run->curve.next - version;
    if (updates > version && updates - version < due)
        due = updates - version;
    if (run->progress.epoch >= run->pace.average_from &&
        run->pace.average_every - version % run->pace.average_every < due)
        due = run->pace.average_every - version % run->pace.average_every;
    return due < most ? due : most;
}

/* How many of the next `most` rows lie in the same block of streamed data. */
static uint32_t within_block(const struct sdr_run *run, uint32_t most)
{
    const uint32_t *row = run->rows.order + run->progress.at;
    uint32_t count = 1;
    if (!run->data->streams || run->end.over)
        return most;
    while (count < most && run->progress.at + count < run->set.train_rows.count &&
           row[count] / run->rows.block_rows == row[0] / run->rows.block_rows)
        count++;
    return count;
}

enum sdr_status sdr_next_chunk(struct sdr_node *node, struct sdr_batch *chunk, bool *more)
{
    struct sdr_run *run = node->run;
    if (chunk->count)
        SDR_TRY(sdr_account(run, chunk->count));
    return next_batch(run, within_block(run, (uint32_t)until_due(run, CHUNK)), chunk, more);
}

void sdr_pull(struct sdr_node *node, const struct sdr_batch *batch, struct sdr_view *view)
{
    struct sdr_parameters *p = node->parameters;
    if (p->borrowed)
        p->version = batch->number;
    sdr_parameters_catch_up(p, batch, sdr_all(p->layout));
    if (node->snapshot)
        sdr_parameters_copy_touched(p, batch, node->snapshot);
    *view = (struct sdr_view){.problem = &node->run->problem,
                              .block = p->layout->block,
                              .w = node->snapshot ? node->snapshot : p->value,
                              .version = p->version};
}

enum sdr_status sdr_gradient(struct sdr_node *node, const struct sdr_view *view,
                             const struct sdr_batch *batch, struct sdr_update *update)
{
    return sdr_batch_gradient(node->space, view, batch, 0, NULL, NULL, update);
}

void sdr_rates(const struct sdr_run *run, uint64_t at, uint32_t count, double *rate)
{
    struct sdr_schedule_time when = {(double)run->progress.epoch, (double)at, run->pace.per_row,
                                     run->pace.length};
    run->use.schedule->factors(run->use.schedule_options, &when, count, rate);
    for (uint32_t i = 0; i < count; i++)
        rate[i] *= run->pace.rate;
}

double sdr_rate_at(const struct sdr_run *run, uint64_t at)
{
    double rate;
    sdr_rates(run, at, 1, &rate);
    return rate;
}

static void average_if_due(struct sdr_run *run)
{
    if (run->progress.epoch >= run->pace.average_from &&
        run->parameters.version % run->pace.average_every == 0)
        sdr_parameters_average(&run->parameters);
}

void sdr_commit(struct sdr_node *node, const struct sdr_update *update)
{
    struct sdr_run *run = node->run;
    struct sdr_parameters *p = node->parameters;
    uint64_t missed = p->version - update->version;
    sdr_parameters_apply(p, update, sdr_rate_at(run, update->batch.at));
    node->loss_sum->loss += update->loss;
    node->loss_sum->weight += update->weight;
    node->steps++;
    node->staleness += missed;
    if (missed > node->stalest)
        node->stalest = missed;
    average_if_due(run);
}

bool sdr_can_fuse(const struct sdr_node *node)
{
    const struct sdr_run *run = node->run;
    return run->shared.plan.known.fused;
}

void sdr_fused_steps(struct sdr_node *node, const struct sdr_batch *chunk)
{
    struct sdr_run *run = node->run;
    uint32_t ahead[CHUNK];
    double rate[CHUNK];
    bool fetches = sdr_order_ahead(run, chunk->row, chunk->count, ahead);
    sdr_rates(run, chunk->at, chunk->count, rate);
    struct sdr_fused_steps fused = {.problem = &run->problem,
                                    .kind = run->use.kind,
                                    .row = chunk->row,
                                    .ahead = fetches ? ahead : NULL,
                                    .rate = rate,
                                    .count = chunk->count,
                                    .factors = run->shared.factors,
                                    .loss_sum = node->loss_sum->loss,
                                    .weight_sum = node->loss_sum->weight};
    sdr_parameters_fused_steps(node->parameters, &fused);
    node->loss_sum->loss = fused.loss_sum;
    node->loss_sum->weight = fused.weight_sum;
    node->steps += chunk->count;
    average_if_due(run);
}

struct sdr_batch sdr_part(const struct sdr_node *node, const struct sdr_batch *batch, uint64_t from,
                          uint64_t count)
{
    struct sdr_batch part = *batch;
    if (from > batch->count)
        from = batch->count;
    part.row += from;
    part.at += from;
    part.number += from / node->run->pace.update_rows;
    part.count = (uint32_t)(batch->count - from < count ? batch->count - from : count);
    return part;
}

enum sdr_status sdr_train(struct sdr_node *node, const struct sdr_batch *share)
{
    bool recorded = node->run->race.record && node->run->shared.plan.in_place;
    uint64_t size = recorded ? 1 : sdr_can_fuse(node) ? CHUNK : node->run->pace.update_rows;
    struct sdr_view view;
    struct sdr_update gradient;
    node->parameters->version = share->number;
    for (uint64_t from = 0; from < share->count; from += size) {
        struct sdr_batch batch = sdr_part(node, share, from, size);
        if (node->run->shared.plan.shards)
            batch.at = sdr_shard_place(node->run, node->worker, node->dealt - share->count + from);
        if (sdr_can_fuse(node)) {
            sdr_fused_steps(node, &batch);
            if (recorded)
                sdr_stepped(node, &batch);
            continue;
        }
        sdr_fetch_ahead(node->run, &batch);
        sdr_pull(node, &batch, &view);
        SDR_TRY(sdr_gradient(node, &view, &batch, &gradient));
        sdr_commit(node, &gradient);
    }
    if (node->run->shared.plan.shards)
        sdr_cells_unpack(node->parameters);
    return SDR_OK;
}
