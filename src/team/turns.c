#include "team/turns.h"
#include "base/memory.h"
#include "run/run.h"
#include "update/wire.h"

#include <string.h>

enum sdr_status sdr_turns_create(struct sdr_run *run)
{
    struct sdr_turns *turns;
    SDR_TRY(sdr_allocate(&turns, 1, sizeof *turns, "turns"));
    run->shared.turns = turns;
    SDR_TRY(sdr_allocate(&turns->of, (size_t)run->workers, sizeof *turns->of, "turns"));
    for (int w = 0; w < run->workers; w++)
        SDR_TRY(sdr_allocate(&turns->of[w].row, run->pace.update_rows, sizeof(uint32_t), "turns"));
    return SDR_OK;
}

void sdr_turns_destroy(struct sdr_run *run)
{
    struct sdr_turns *turns = run->shared.turns;
    for (int w = 0; turns && turns->of && w < run->workers; w++) {
        sdr_release(turns->of[w].row);
        sdr_release(turns->of[w].bytes);
        sdr_wire_reader_free(&turns->of[w].reader);
    }
    if (turns)
        sdr_release(turns->of);
    sdr_release(turns);
    run->shared.turns = NULL;
}

/* ---- a turn ---- */
void sdr_next_turn_batch(struct sdr_node *node, struct sdr_batch *batch)
{
    struct sdr_run *run = node->run;
    struct sdr_turns *turns = run->shared.turns;
    struct sdr_turn *own = &turns->of[node->worker];
    uint64_t rows = run->set.train_rows.count;
    if (turns->at == rows) {
        turns->at = 0;
        sdr_epoch_order(run, ++turns->epoch, run->rows.order);
    }
    sdr_stream(run, turns->at);
    uint64_t left = rows - turns->at,
             count = left < run->pace.update_rows ? left : run->pace.update_rows;
    memcpy(own->row, run->rows.order + turns->at, count * sizeof *own->row);
    *batch = (struct sdr_batch){
        .rows = &run->data->rows, .row = own->row, .count = (uint32_t)count, .at = turns->at};
    own->epoch = turns->epoch;
    turns->at += count;
}

enum sdr_status sdr_keep_pending(struct sdr_node *node, const struct sdr_update *gradient)
{
    struct sdr_turn *own = &node->run->shared.turns->of[node->worker];
    own->gradient = *gradient;
    own->pending = true;
    return SDR_OK;
}

enum sdr_status sdr_commit_pending(struct sdr_node *node, bool *more)
{
    struct sdr_run *run = node->run;
    struct sdr_turn *own = &run->shared.turns->of[node->worker];
    if (own->pending && !run->end.over) {
        own->pending = false;
        run->shared.turns->first = (uint64_t)node->worker; /* a resumed run starts with it */
        sdr_commit(node, &own->gradient);
        SDR_TRY(sdr_account(run, own->gradient.batch.count));
    }
    *more = !run->end.over;
    return SDR_OK;
}

/* ---- checkpoints ---- */
/* Array "turns" of a checkpoint: the next batch and whose turn it is; then each worker's gradient
   in flight: its batch, its size in bytes, and its wire format, two bytes per number. */
enum { HEAD = 3, NUMBERS = 7, UNIT = 2 };

static struct sdr_wire wire_of(const struct sdr_run *run)
{
    return (struct sdr_wire){.layout = &run->layout};
}

static uint64_t gradient_bytes(const struct sdr_run *run, int worker)
{
    const struct sdr_turn *own = &run->shared.turns->of[worker];
    struct sdr_wire wire = wire_of(run);
    return own->pending ? sdr_wire_bound(&wire, &own->gradient, sdr_all(&run->layout), 0) : 0;
}

/* Serializes a worker's gradient in flight. */
static enum sdr_status save_gradient(const struct sdr_run *run, int worker, double *to)
{
    const struct sdr_turn *own = &run->shared.turns->of[worker];
    const struct sdr_update *gradient = &own->gradient;
    struct sdr_wire wire = wire_of(run);
    struct sdr_wire_writer writer = {0};
    struct sdr_wire_facts facts = {.rows = gradient->batch.count};
    uint64_t room = gradient_bytes(run, worker), bytes = 0;
    unsigned char *memory;
    SDR_TRY(sdr_allocate(&memory, room, 1, "a gradient in flight"));
    enum sdr_status status = sdr_wire_write(&wire, gradient, sdr_all(&run->layout), &facts, NULL, 0,
                                            &writer, memory, &bytes);
    const double numbers[NUMBERS] = {
        (double)bytes,         (double)own->epoch,        (double)gradient->batch.at,
        gradient->batch.count, (double)gradient->version, gradient->loss,
        gradient->weight};
    memcpy(to, numbers, sizeof numbers);
    for (uint64_t i = 0; i < bytes; i += UNIT) {
        uint16_t unit;
        memcpy(&unit, memory + i, sizeof unit);
        to[NUMBERS + i / UNIT] = unit;
    }
    sdr_wire_writer_free(&writer);
    sdr_release(memory);
    return status;
}

enum sdr_status sdr_turns_save(struct sdr_run *run)
{
    struct sdr_turns *turns = run->shared.turns;
    double *saved;
    uint64_t count = HEAD;
    SDR_TRY(sdr_team_rest(run));
    for (int w = 0; w < run->workers; w++)
        count += NUMBERS + gradient_bytes(run, w) / UNIT;
    SDR_TRY(sdr_node_array_renew(&run->shared.node[0], "turns", count, &saved));
    memset(saved, 0, count * sizeof *saved);
    bool ended = turns->at == run->set.train_rows.count; /* the next batch begins an epoch */
    saved[0] = (double)(turns->epoch + ended);
    saved[1] = ended ? 0 : (double)turns->at;
    saved[2] = (double)turns->first;
    saved += HEAD;
    for (int w = 0; w < run->workers; w++) {
        if (turns->of[w].pending)
            SDR_TRY(save_gradient(run, w, saved));
        saved += NUMBERS + (uint64_t)saved[0] / UNIT;
    }
    return SDR_OK;
}

static bool is_whole(double number, uint64_t end)
{
    return number >= 0 && number < (double)end && number == (double)(uint64_t)number;
}

static enum sdr_status not_of_this_run(void)
{
    return sdr_fail(SDR_BAD_FILE, "the checkpoint's gradients are not of this run");
}

/* Restores a worker's gradient in flight; advances *saved. */
static enum sdr_status restore(struct sdr_run *run, int worker, const double **saved,
                               const double *end)
{
    struct sdr_turn *own = &run->shared.turns->of[worker];
    const double *from = *saved;
    uint64_t rows = run->set.train_rows.count, epochs = UINT64_C(1) << 52;
    if (end - from < NUMBERS || !is_whole(from[0], (uint64_t)(end - from - NUMBERS) * UNIT + 1))
        return not_of_this_run();
    uint64_t bytes = (uint64_t)from[0];
    *saved += NUMBERS + bytes / UNIT;
    if (bytes == 0)
        return SDR_OK;
    if (!is_whole(from[1], epochs) || !is_whole(from[2], rows) ||
        !is_whole(from[3], run->pace.update_rows + 1) || from[2] + from[3] > (double)rows ||
        !is_whole(from[4], run->parameters.version + 1))
        return not_of_this_run();
    own->epoch = (uint64_t)from[1];
    struct sdr_batch batch = {.rows = &run->data->rows,
                              .row = own->row,
                              .count = (uint32_t)from[3],
                              .at = (uint64_t)from[2]};
    sdr_epoch_order(run, own->epoch, run->rows.order);
    memcpy(own->row, run->rows.order + batch.at, batch.count * sizeof *own->row);
    SDR_TRY(sdr_allocate(&own->bytes, bytes, 1, "a gradient in flight"));
    for (uint64_t i = 0; i < bytes; i += UNIT) {
        if (!is_whole(from[NUMBERS + i / UNIT], UINT16_MAX + 1))
            return not_of_this_run();
        uint16_t unit = (uint16_t)from[NUMBERS + i / UNIT];
        memcpy(own->bytes + i, &unit, sizeof unit);
    }
    struct sdr_wire wire = wire_of(run);
    struct sdr_wire_facts facts;
    SDR_TRY(sdr_wire_read(&wire, own->bytes, bytes, batch.count, sdr_all(&run->layout),
                          &own->reader, &facts, &own->gradient));
    if (own->gradient.sense != run->use.kind->sense)
        return not_of_this_run();
    own->pending = true;
    own->gradient.batch = batch;
    own->gradient.version = (uint64_t)from[4];
    own->gradient.loss = from[5];
    own->gradient.weight = from[6];
    return SDR_OK;
}

static const struct sdr_node_array *saved_turns(const struct sdr_run *run)
{
    for (int i = 0; i < run->shared.node[0].arrays; i++)
        if (strcmp(run->shared.node[0].array[i].name, "turns") == 0)
            return &run->shared.node[0].array[i];
    return NULL;
}

enum sdr_status sdr_turns_begin(struct sdr_run *run)
{
    struct sdr_turns *turns = run->shared.turns;
    const struct sdr_node_array *array = run->end.resumed ? saved_turns(run) : NULL;
    turns->epoch = run->progress.epoch;
    turns->at = run->progress.at;
    if (array) {
        const double *saved = array->value, *end = saved + array->count;
        if (array->count < HEAD || !is_whole(saved[0], UINT64_C(1) << 52) ||
            saved[0] < (double)run->progress.epoch ||
            !is_whole(saved[1], run->set.train_rows.count) ||
            !is_whole(saved[2], (uint64_t)run->workers))
            return sdr_fail(SDR_BAD_FILE, "the checkpoint's turns are not of this run");
        turns->epoch = (uint64_t)saved[0];
        turns->at = (uint64_t)saved[1];
        turns->first = (uint64_t)saved[2];
        saved += HEAD;
        for (int w = 0; w < run->workers; w++)
            SDR_TRY(restore(run, w, &saved, end));
    }
    sdr_epoch_order(run, turns->epoch, run->rows.order);
    return SDR_OK;
}
