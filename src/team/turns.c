#include "team/turns.h"
#include "base/memory.h"
#include "run/run.h"

#include <string.h>

enum sdr_status sdr_turns_create(struct sdr_run *run)
{
    struct sdr_turns *turns;
    SDR_TRY(sdr_allocate(&turns, 1, sizeof *turns, "turns"));
    run->turns = turns;
    SDR_TRY(sdr_allocate(&turns->of, (size_t)run->workers, sizeof *turns->of, "turns"));
    for (int w = 0; w < run->workers; w++)
        SDR_TRY(sdr_allocate(&turns->of[w].row, run->update_rows, sizeof(uint32_t), "turns"));
    return SDR_OK;
}

void sdr_turns_destroy(struct sdr_run *run)
{
    struct sdr_turns *turns = run->turns;
    for (int w = 0; turns && turns->of && w < run->workers; w++)
        sdr_release(turns->of[w].row);
    if (turns)
        sdr_release(turns->of);
    sdr_release(turns);
    run->turns = NULL;
}

/* ---- a turn ---- */
void sdr_next_turn_batch(struct sdr_node *node, struct sdr_batch *batch)
{
    struct sdr_run *run = node->run;
    struct sdr_turns *turns = run->turns;
    struct sdr_turn *own = &turns->of[node->worker];
    uint64_t rows = run->train_rows.count;
    if (turns->at == rows) {
        turns->at = 0;
        sdr_epoch_order(run, ++turns->epoch, run->order);
    }
    sdr_stream(run, turns->at);
    uint64_t left = rows - turns->at, count = left < run->update_rows ? left : run->update_rows;
    memcpy(own->row, run->order + turns->at, count * sizeof *own->row);
    *batch = (struct sdr_batch){
        .rows = &run->data->rows, .row = own->row, .count = (uint32_t)count, .at = turns->at};
    own->epoch = turns->epoch;
    turns->at += count;
}

void sdr_keep_pending(struct sdr_node *node, const struct sdr_update *gradient)
{
    struct sdr_turn *own = &node->run->turns->of[node->worker];
    own->gradient = *gradient;
    own->pending = true;
}

enum sdr_status sdr_commit_pending(struct sdr_node *node, bool *more)
{
    struct sdr_run *run = node->run;
    struct sdr_turn *own = &run->turns->of[node->worker];
    if (own->pending && !run->over) {
        own->pending = false;
        run->turns->first = (uint64_t)node->worker; /* it goes on from here after a checkpoint */
        sdr_commit(node, &own->gradient);
        SDR_TRY(sdr_account(run, own->gradient.examples.count));
    }
    *more = !run->over;
    return SDR_OK;
}

/* ---- checkpoints ---- */
/* "turns": the next batch and whose turn it is; then for every worker what it has in flight and the slopes of that. */
enum { HEAD = 3, NUMBERS = 7 };

static uint64_t numbers_each(const struct sdr_run *run)
{
    return NUMBERS + run->update_rows * run->example_floats;
}

enum sdr_status sdr_turns_save(struct sdr_run *run)
{
    struct sdr_turns *turns = run->turns;
    double *saved;
    SDR_TRY(sdr_team_rest(run));
    SDR_TRY(sdr_node_array(&run->node[0], "turns",
                           HEAD + (uint64_t)run->workers * numbers_each(run), &saved));
    bool ended = turns->at == run->train_rows.count; /* the next batch begins an epoch */
    saved[0] = (double)(turns->epoch + ended);
    saved[1] = ended ? 0 : (double)turns->at;
    saved[2] = (double)turns->first;
    for (int w = 0; w < run->workers; w++) {
        const struct sdr_turn *own = &turns->of[w];
        const struct sdr_update *gradient = &own->gradient;
        double *to = saved + HEAD + (uint64_t)w * numbers_each(run);
        memset(to, 0, numbers_each(run) * sizeof *to);
        if (!own->pending)
            continue;
        const double numbers[NUMBERS] = {1,
                                         (double)own->epoch,
                                         (double)gradient->examples.at,
                                         gradient->examples.count,
                                         (double)gradient->version,
                                         gradient->loss,
                                         gradient->weight};
        memcpy(to, numbers, sizeof numbers);
        for (uint64_t i = 0; i < gradient->examples.count * run->example_floats; i++)
            to[NUMBERS + i] = gradient->u[i];
    }
    return SDR_OK;
}

static bool is_whole(double number, uint64_t end)
{
    return number >= 0 && number < (double)end && number == (double)(uint64_t)number;
}

/* A worker's gradient that was in flight. */
static enum sdr_status restore(struct sdr_run *run, int worker, const double *saved)
{
    struct sdr_turn *own = &run->turns->of[worker];
    float *u = run->node[worker].scratch;
    uint64_t rows = run->train_rows.count, epochs = UINT64_C(1) << 52;
    if (saved[0] == 0)
        return SDR_OK;
    if (!is_whole(saved[1], epochs) || !is_whole(saved[2], rows) ||
        !is_whole(saved[3], run->update_rows + 1) || saved[2] + saved[3] > (double)rows ||
        !is_whole(saved[4], run->parameters.version + 1))
        return sdr_fail(SDR_BAD_FILE, "the checkpoint's gradients are not of this run");
    own->pending = true;
    own->epoch = (uint64_t)saved[1];
    struct sdr_batch batch = {.rows = &run->data->rows,
                              .row = own->row,
                              .count = (uint32_t)saved[3],
                              .at = (uint64_t)saved[2]};
    sdr_epoch_order(run, own->epoch, run->order);
    memcpy(own->row, run->order + batch.at, batch.count * sizeof *own->row);
    for (uint64_t i = 0; i < batch.count * run->example_floats; i++)
        u[i] = (float)saved[NUMBERS + i];
    own->gradient = sdr_update_of(run, u, &batch);
    own->gradient.version = (uint64_t)saved[4];
    own->gradient.loss = saved[5];
    own->gradient.weight = saved[6];
    return SDR_OK;
}

enum sdr_status sdr_turns_begin(struct sdr_run *run)
{
    struct sdr_turns *turns = run->turns;
    uint64_t each = numbers_each(run), count = HEAD + (uint64_t)run->workers * each;
    double *saved = NULL;
    turns->epoch = run->epoch;
    turns->at = run->at;
    if (run->resumed)
        SDR_TRY(sdr_node_array(&run->node[0], "turns", count, &saved));
    if (saved) {
        if (!is_whole(saved[0], UINT64_C(1) << 52) || saved[0] < (double)run->epoch ||
            !is_whole(saved[1], run->train_rows.count) ||
            !is_whole(saved[2], (uint64_t)run->workers))
            return sdr_fail(SDR_BAD_FILE, "the checkpoint's turns are not of this run");
        turns->epoch = (uint64_t)saved[0];
        turns->at = (uint64_t)saved[1];
        turns->first = (uint64_t)saved[2];
        for (int w = 0; w < run->workers; w++)
            SDR_TRY(restore(run, w, saved + HEAD + (uint64_t)w * each));
    }
    sdr_epoch_order(run, turns->epoch, run->order);
    return SDR_OK;
}
