/* What loops are made of: dealing batches to a worker that runs alone, gradients, steps. Dealing to
   several workers is in team.c. */
#include "team/node.h"
#include "base/clock.h"
#include "run/run.h"

#include <math.h>

enum {
    LOOK_EVERY = 1024, /* rows between two looks at the clock */
    CHUNK = 64,        /* rows at most that are walked over without looking up */
};

void sdr_diverge(struct sdr_run *run)
{
    struct sdr_parameters *p = &run->parameters;
    if (run->restarts == run->options.settings.restarts) {
        run->over = run->diverged = true;
        run->why_over = "diverged";
        return;
    }
    run->restarts++;
    if (run->network)
        run->network->discard_before =
            p->version + 1; /* gradients of earlier values would ruin the new ones */
    run->rate *= 0.5;
    run->loss_sum = (struct sdr_loss_sum){0};
    run->last_epoch_loss = NAN;
    run->went_back = true;
    sdr_parameters_reset(p, run->good);
    sdr_note(&run->options,
             "the loss explodes: back to the weights of epoch %llu, with a step of %.4g",
             (unsigned long long)run->good_epoch, run->rate);
}

/* A loss beyond all reason is the end of a run, long before it overflows; where the run may go back, one that is
   far above that of no model at all is bad enough. */
static void check_health(struct sdr_run *run)
{
    double typical = run->loss_sum.weight > 0 ? run->loss_sum.loss / run->loss_sum.weight : 0;
    /* A few rows say nothing yet. */
    bool may_go_back = run->restarts < run->options.settings.restarts &&
                       (run->loss_sum.weight >= 1000 || run->at * 4 > run->train_rows.count);
    double bound = may_go_back ? 5 * log(fmax(2, run->classes.count)) : 1e9;
    if (run->kind->truth == SDR_REGRESSION)
        bound = (may_go_back ? 5 : 1e9) *
                (run->target_size * run->target_size + run->target_mean * run->target_mean);
    if (run->kind->truth == SDR_UNSUPERVISED) /* distances are of any size */
        bound = INFINITY;
    if (!isfinite(typical) || typical > bound)
        sdr_diverge(run);
}

enum sdr_status sdr_poll_requests(struct sdr_run *run)
{
    unsigned requests = atomic_load_explicit(&run->requests, memory_order_relaxed);
    if (requests)
        requests = atomic_exchange(&run->requests, 0);
    if (requests & SDR_REQUEST_STOP) {
        run->over = run->preempted = true;
        run->why_over = "stopped on request";
        sdr_log_last_checkpoint(run);
        return SDR_OK;
    }
    if (requests & SDR_REQUEST_CHECKPOINT)
        sdr_log_checkpoint(run);
    return sdr_log_tick(run);
}

/* True once per LOOK_EVERY rows. */
static bool due(const struct sdr_run *run, uint64_t dealt)
{
    return run->at / LOOK_EVERY != (run->at - dealt) / LOOK_EVERY;
}

/* Data that streams comes block by block. On entering one the last is let go, and the one that comes next
   is asked for, so that it is read while this one is trained on. */
static void enter_block(struct sdr_run *run, uint64_t at)
{
    const uint32_t *order = run->order;
    uint64_t size = run->block_rows, block = order[at] / size, end = at;
    if (run->streaming == block * size && at < run->block_end)
        return;
    while (end < run->train_rows.count && order[end] / size == block)
        end++;
    if (run->streaming != UINT64_MAX && run->streaming != block * size)
        sdr_data_done_with(run->data, run->streaming, run->streaming + size);
    sdr_data_will_need(run->data, block * size, (block + 1) * size);
    if (end < run->train_rows.count)
        sdr_data_will_need(run->data, order[end] / size * size, (order[end] / size + 1) * size);
    run->streaming = block * size;
    run->block_end = end;
}

void sdr_stream(struct sdr_run *run, uint64_t at)
{
    if (run->data->streams && at < run->train_rows.count)
        enter_block(run, at);
}

enum sdr_status sdr_account(struct sdr_run *run, uint64_t rows)
{
    const struct sdr_settings *s = &run->options.settings;
    run->at += rows;
    run->rows_done += rows;
    run->paused_then = run->paused;
    bool ended = run->at >= run->train_rows.count;
    bool checkpoint =
        run->checkpoint_updates && run->parameters.version >= run->next_checkpoint_update;
    bool look = ended || checkpoint || run->workers > 1 || run->network || due(run, rows);
    if (look)
        check_health(run);
    if (ended && !run->over)
        SDR_TRY(sdr_epoch_end(run));
    if (sdr_point_due(run, ended))
        SDR_TRY(sdr_point(run));
    if (look && !run->over)
        SDR_TRY(sdr_poll_requests(run));
    if (!run->over && s->updates && run->parameters.version >= s->updates) {
        run->over = true;
        run->why_over = "all updates done";
    }
    return SDR_OK;
}

static enum sdr_status next_batch(struct sdr_run *run, uint32_t most, struct sdr_batch *batch,
                                  bool *more)
{
    uint64_t left = run->train_rows.count - run->at;
    *batch = (struct sdr_batch){.rows = &run->data->rows,
                                .row = run->order + run->at,
                                .count = left < most ? (uint32_t)left : most,
                                .number = run->parameters.version,
                                .at = run->at};
    *more = !run->over;
    if (*more)
        sdr_stream(run, run->at);
    return SDR_OK;
}

/* Fetches rows that come after a batch while it is worked on. */
static void fetch_ahead(const struct sdr_run *run, const struct sdr_batch *batch)
{
    uint32_t ahead[CHUNK], count = batch->count < CHUNK ? batch->count : CHUNK;
    if (sdr_order_ahead(run, batch->row, count, ahead))
        for (uint32_t i = 0; i < count; i++)
            sdr_fetch_row(&run->problem, ahead[i]);
}

enum sdr_status sdr_next_batch(struct sdr_node *node, struct sdr_batch *batch, bool *more)
{
    struct sdr_run *run = node->run;
    if (batch->count) /* not the first: account for the last one */
        SDR_TRY(sdr_account(run, batch->count));
    SDR_TRY(next_batch(run, (uint32_t)run->update_rows, batch, more));
    if (*more)
        fetch_ahead(run, batch);
    return SDR_OK;
}

enum sdr_status sdr_next_full_batch(struct sdr_node *node, struct sdr_batch *batch, bool *more)
{
    struct sdr_run *run = node->run;
    if (batch->count)
        SDR_TRY(sdr_account(run, batch->count));
    return next_batch(run, UINT32_MAX, batch, more);
}

/* Fewer, if something is due within the next `most` updates: a look around, a checkpoint, the end,
   a sample of the average, a point of the curve. */
static uint64_t until_due(const struct sdr_run *run, uint64_t most)
{
    uint64_t version = run->parameters.version, updates = run->options.settings.updates;
    uint64_t due = LOOK_EVERY - run->at % LOOK_EVERY;
    uint64_t next = run->next_checkpoint_update;
    if (run->checkpoint_updates && next > version && next - version < due)
        due = next - version;
    if (run->next_point > version && run->next_point - version < due)
        due = run->next_point - version;
    if (updates > version && updates - version < due)
        due = updates - version;
    if (run->epoch >= run->average_from && run->average_every - version % run->average_every < due)
        due = run->average_every - version % run->average_every;
    return due < most ? due : most;
}

/* How many of the next `most` rows lie in one block of data that streams. */
static uint32_t within_block(const struct sdr_run *run, uint32_t most)
{
    const uint32_t *row = run->order + run->at;
    uint32_t count = 1;
    if (!run->data->streams || run->over)
        return most;
    while (count < most && run->at + count < run->train_rows.count &&
           row[count] / run->block_rows == row[0] / run->block_rows)
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
    return sdr_batch_gradient(&node->space, view, batch, 0, NULL, NULL, update);
}

void sdr_rates(const struct sdr_run *run, uint64_t at, uint32_t count, double *rate)
{
    struct sdr_schedule_time when = {(double)run->epoch, (double)at, run->per_row, run->length};
    run->schedule->factors(run->schedule_options, &when, count, rate);
    for (uint32_t i = 0; i < count; i++)
        rate[i] *= run->rate;
}

double sdr_rate_at(const struct sdr_run *run, uint64_t at)
{
    double rate;
    sdr_rates(run, at, 1, &rate);
    return rate;
}

static void average_if_due(struct sdr_run *run)
{
    if (run->epoch >= run->average_from && run->parameters.version % run->average_every == 0)
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
    return run->plan.fused;
}

void sdr_fused_steps(struct sdr_node *node, const struct sdr_batch *chunk)
{
    struct sdr_run *run = node->run;
    uint32_t ahead[CHUNK];
    double rate[CHUNK];
    bool fetches = sdr_order_ahead(run, chunk->row, chunk->count, ahead);
    sdr_rates(run, chunk->at, chunk->count, rate);
    struct sdr_fused_steps fused = {.problem = &run->problem,
                                    .kind = run->kind,
                                    .row = chunk->row,
                                    .ahead = fetches ? ahead : NULL,
                                    .rate = rate,
                                    .count = chunk->count,
                                    .factors = run->factors,
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
    part.number += from / node->run->update_rows;
    part.count = (uint32_t)(batch->count - from < count ? batch->count - from : count);
    return part;
}

enum sdr_status sdr_train(struct sdr_node *node, const struct sdr_batch *share)
{
    bool recorded = node->run->record && node->run->plan.in_place;
    uint64_t size = recorded ? 1 : sdr_can_fuse(node) ? CHUNK : node->run->update_rows;
    struct sdr_view view;
    struct sdr_update gradient;
    node->parameters->version = share->number;
    for (uint64_t from = 0; from < share->count; from += size) {
        struct sdr_batch batch = sdr_part(node, share, from, size);
        if (sdr_can_fuse(node)) {
            sdr_fused_steps(node, &batch);
            if (recorded)
                sdr_stepped(node, &batch);
            continue;
        }
        fetch_ahead(node->run, &batch);
        sdr_pull(node, &batch, &view);
        SDR_TRY(sdr_gradient(node, &view, &batch, &gradient));
        sdr_commit(node, &gradient);
    }
    return SDR_OK;
}
