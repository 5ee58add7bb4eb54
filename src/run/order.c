/* The order of the rows in an epoch, a function of (seed, epoch) and the data alone.

   rows    a random permutation.
   chunks  for data larger than the caches: 4 chunks of 32 neighbouring rows, drawn at random
           without replacement, make a window, and its 128 rows come in random order. Memory is
           read 32 rows at a stretch, one window ahead: two windows share a core's cache with the
           model. Measured with windows of 512 rows: the same losses, and epochs of 800 000 sparse
           rows take 1.05 times as long, with two workers 1.15 times. Where neighbours are alike, as
           in a file sorted by label, 32 chunks of 16 make a window of 512 rows, so that it is a
           mixture. Measured with 8 chunks, ten sorted classes: +0.5 % training loss.
   blocks  for data that streams: whole blocks in random order, rows in random order within each.
   none    as they stand in the file. */
#include "run/order.h"
#include "base/memory.h"
#include "base/rng.h"
#include "base/thread.h"
#include "run/evaluate.h"
#include "run/run.h"
#include "team/plan.h"

#include <string.h>

enum { SCANS_MOST = 4 }; /* shards that are each looked for by themselves */
enum { CHUNK_LEAST = 16, CHUNK_MOST = 32, BLOCKS_MOST = 1024 };
enum { WINDOW = 128, MIXED_WINDOW = 512, PIECE = 16 * MIXED_WINDOW };

static enum sdr_shuffle_choice choose(const struct sdr_run *run)
{
    enum { CACHED_BYTES = 8 << 20 };
    const struct sdr_rows *rows = &run->data->rows;
    enum sdr_shuffle_choice asked = (enum sdr_shuffle_choice)run->options.settings.shuffle;
    if (run->use.strategy->full_batch)
        return SDR_SHUFFLE_NONE;
    if (asked != SDR_SHUFFLE_AUTO)
        return asked;
    if (run->data->streams)
        return SDR_SHUFFLE_BLOCKS;
    uint64_t bytes =
        rows->dense ? rows->count * rows->stride * sizeof(float) : run->data->nonzeros * 6;
    return bytes > CACHED_BYTES ? SDR_SHUFFLE_CHUNKS : SDR_SHUFFLE_ROWS;
}

/* Whether neighbouring rows are alike: the correlation of targets of adjacent rows. */
static bool grouped(const struct sdr_run *run)
{
    uint64_t count = run->data->rows.count;
    const float *target = run->problem.target;
    double sum = 0, square = 0, product = 0;
    for (uint64_t i = 0; i < count; i++)
        sum += target[i];
    double mean = sum / (double)count;
    for (uint64_t i = 0; i + 1 < count; i++) {
        square += (target[i] - mean) * (target[i] - mean);
        product += (target[i] - mean) * (target[i + 1] - mean);
    }
    return product > 0.25 * square;
}

enum sdr_status sdr_order_allocate(struct sdr_run *run)
{
    uint32_t count = run->set.train_rows.count;
    run->rows.shuffle = choose(run);
    run->rows.streaming = UINT64_MAX;
    run->rows.block_rows = run->data->stream_rows ? run->data->stream_rows : 65536;
    if (run->data->rows.count / BLOCKS_MOST >= run->rows.block_rows)
        run->rows.block_rows = run->data->rows.count / BLOCKS_MOST + 1;
    bool mixes = run->rows.shuffle == SDR_SHUFFLE_CHUNKS && grouped(run);
    run->rows.chunk_rows = mixes ? CHUNK_LEAST : CHUNK_MOST;
    run->rows.window_rows = mixes ? MIXED_WINDOW : WINDOW;
    if (run->rows.shuffle == SDR_SHUFFLE_CHUNKS)
        SDR_TRY(sdr_allocate(&run->rows.chunk, count / run->rows.chunk_rows + 1, sizeof(uint32_t),
                             "row order"));
    if (run->shared.plan.shards && run->workers > 1)
        SDR_TRY(sdr_allocate(&run->rows.grouped, count + (size_t)run->workers, sizeof(uint32_t),
                             "row order"));
    return sdr_allocate(&run->rows.order, count, sizeof(uint32_t), "row order");
}

/* An order under construction, of an epoch. */
struct laying {
    const struct sdr_run *run;
    uint64_t epoch;
    uint32_t *order;
};

/* Shuffles the rows at positions from … from + count − 1 of the chunks. */
static void shuffle_window(const struct laying *l, uint32_t from, uint32_t count)
{
    const struct sdr_run *run = l->run;
    uint32_t permutation[MIXED_WINDOW], *order = l->order + from;
    struct sdr_stream stream = sdr_stream_open(run->options.settings.seed, SDR_FOR_SHUFFLE,
                                               l->epoch << 32 | from / run->rows.window_rows);
    sdr_shuffle(permutation, count, &stream);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = from + permutation[i];
        order[i] = sdr_listed(&run->set.train_rows,
                              run->rows.chunk[at / run->rows.chunk_rows] * run->rows.chunk_rows +
                                  at % run->rows.chunk_rows);
    }
}

static enum sdr_status shuffle_piece(void *context, size_t piece)
{
    const struct laying *l = context;
    uint64_t count = l->run->set.train_rows.count, end = (piece + 1) * (uint64_t)PIECE;
    uint32_t window = l->run->rows.window_rows;
    for (uint64_t from = piece * (uint64_t)PIECE; from < count && from < end; from += window)
        shuffle_window(l, (uint32_t)from,
                       (uint32_t)(count - from < window ? count - from : window));
    return SDR_OK;
}

/* Workers of this process: all of them need the order. In virtual time they are one thread. */
static int threads_of(const struct sdr_run *run)
{
    int workers = run->network ? run->workers / run->processes : run->workers;
    return workers < 1 || (run->network && run->use.transport->simulated) ? 1 : workers;
}

static uint64_t pieces_of(const struct sdr_run *run)
{
    return (run->set.train_rows.count + (uint64_t)PIECE - 1) / PIECE;
}

static void draw_chunks(const struct sdr_run *run, uint64_t epoch)
{
    uint32_t whole = run->set.train_rows.count / run->rows.chunk_rows;
    struct sdr_stream stream =
        sdr_stream_open(run->options.settings.seed, SDR_FOR_BLOCK_SHUFFLE, epoch);
    sdr_shuffle(run->rows.chunk, whole, &stream);
    run->rows.chunk[whole] = whole; /* the last, incomplete chunk comes last */
}

static void shuffle_chunks(struct laying *l)
{
    draw_chunks(l->run, l->epoch);
    /* Cannot fail: it allocates nothing. */
    (void)sdr_parallel(threads_of(l->run), pieces_of(l->run), shuffle_piece, l);
}

/* The first position in the list of rows at or behind a row. */
static uint32_t place_of(const struct sdr_row_list *list, uint64_t row)
{
    uint32_t low = 0, high = list->count;
    if (!list->row)
        return row < list->count ? (uint32_t)row : list->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (list->row[middle] < row)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Blocks are cut by position in the data, also if only some rows are listed. */
static void shuffle_blocks(const struct laying *l)
{
    const struct sdr_run *run = l->run;
    uint32_t block[BLOCKS_MOST], at = 0;
    uint64_t rows = run->data->rows.count, seed = run->options.settings.seed;
    uint64_t size = run->rows.block_rows;
    uint32_t blocks = (uint32_t)((rows + size - 1) / size);
    struct sdr_stream stream = sdr_stream_open(seed, SDR_FOR_BLOCK_SHUFFLE, l->epoch);
    sdr_shuffle(block, blocks, &stream);
    for (uint32_t b = 0; b < blocks; b++) {
        uint32_t first = place_of(&run->set.train_rows, block[b] * size);
        uint32_t count = place_of(&run->set.train_rows, (block[b] + (uint64_t)1) * size) - first;
        stream = sdr_stream_open(seed, SDR_FOR_SHUFFLE, l->epoch << 32 | block[b]);
        sdr_shuffle(l->order + at, count, &stream);
        for (uint32_t i = 0; i < count; i++)
            l->order[at + i] += first;
        at += count;
    }
}

uint64_t sdr_shard_start(const struct sdr_run *run, int worker)
{
    return (uint64_t)run->set.train_rows.count * (uint64_t)worker / (uint64_t)run->workers;
}

uint64_t sdr_shard_place(const struct sdr_run *run, int worker, uint64_t rows)
{
    uint64_t length = sdr_shard_start(run, worker + 1) - sdr_shard_start(run, worker);
    return length ? rows * run->set.train_rows.count / length : 0;
}

static uint64_t batches_of(const struct sdr_run *run, uint64_t rows)
{
    return (rows + run->pace.update_rows - 1) / run->pace.update_rows;
}

/* Updates that the worker with the longest shard makes in an epoch. */
static uint64_t longest_shard(const struct sdr_run *run)
{
    uint64_t workers = (uint64_t)run->workers;
    return batches_of(run, (run->set.train_rows.count + workers - 1) / workers);
}

/* Updates per share. */
static uint64_t share_updates(const struct sdr_run *run)
{
    return run->shared.plan.share / run->pace.update_rows;
}

/* Updates of an epoch's first share that were made in earlier epochs. */
static uint64_t begun_before(const struct sdr_run *run, uint64_t epoch)
{
    uint64_t share = share_updates(run);
    return epoch % share * (longest_shard(run) % share) % share;
}

/* Updates of an epoch in its first `shares` shares. */
static uint64_t updates_in(const struct sdr_run *run, uint64_t epoch, uint64_t shares)
{
    uint64_t longest = longest_shard(run);
    uint64_t end = shares ? shares * share_updates(run) - begun_before(run, epoch) : 0;
    return end < longest ? end : longest;
}

uint64_t sdr_shard_shares(const struct sdr_run *run, uint64_t epoch)
{
    uint64_t share = share_updates(run);
    return (longest_shard(run) + begun_before(run, epoch) + share - 1) / share;
}

uint64_t sdr_shard_shares_most(const struct sdr_run *run)
{
    uint64_t share = share_updates(run), longest = longest_shard(run);
    return longest % share ? (longest + 2 * share - 2) / share : longest / share;
}

uint64_t sdr_shard_rows(const struct sdr_run *run, uint64_t epoch, int worker, uint64_t shares)
{
    uint64_t rows = updates_in(run, epoch, shares) * run->pace.update_rows;
    uint64_t length = sdr_shard_start(run, worker + 1) - sdr_shard_start(run, worker);
    return rows < length ? rows : length;
}

uint64_t sdr_shards_rows(const struct sdr_run *run, uint64_t epoch, uint64_t shares)
{
    uint64_t count = run->set.train_rows.count, workers = (uint64_t)run->workers,
             longer = count % workers;
    uint64_t length = count / workers,
             rows = updates_in(run, epoch, shares) * run->pace.update_rows;
    return (workers - longer) * (rows < length ? rows : length) +
           longer * (rows < length + 1 ? rows : length + 1);
}

bool sdr_shard_whole(const struct sdr_run *run, uint64_t epoch, uint64_t shares)
{
    return (begun_before(run, epoch) + updates_in(run, epoch, shares)) % share_updates(run) == 0;
}

/* Shards are cut from the rows in file order, and differ by at most one row. */
static uint64_t shard_of(const struct sdr_run *run, uint32_t row)
{
    uint64_t place = place_of(&run->set.train_rows, row);
    return ((place + 1) * (uint64_t)run->workers - 1) / run->set.train_rows.count;
}

struct grouping {
    const struct sdr_run *run;
    const uint32_t *order;
    uint32_t *grouped;
};

/* The rows of a shard are all between its first and its last one. */
static enum sdr_status group_shard(void *context, size_t worker)
{
    const struct grouping *g = context;
    const struct sdr_row_list *list = &g->run->set.train_rows;
    uint64_t first = sdr_shard_start(g->run, (int)worker),
             end = sdr_shard_start(g->run, (int)worker + 1);
    if (first == end)
        return SDR_OK;
    uint32_t from = list->row ? list->row[first] : (uint32_t)first,
             to = list->row ? list->row[end - 1] : (uint32_t)end - 1;
    uint32_t *next = g->grouped + first;
    /* others are overwritten */
    for (const uint32_t *row = g->order; next < g->grouped + end; row++) {
        *next = *row;
        next += *row - from <= to - from;
    }
    return SDR_OK;
}

void sdr_group_by_shard(const struct sdr_run *run, uint32_t *order, uint32_t *scratch)
{
    uint32_t count = run->set.train_rows.count, *next = scratch + count;
    for (int w = 0; w < run->workers; w++)
        next[w] = (uint32_t)sdr_shard_start(run, w);
    /* every shard by itself: cannot fail, it allocates nothing */
    if (threads_of(run) > 1 && run->workers <= SCANS_MOST) {
        struct grouping grouping = {run, order, scratch};
        (void)sdr_parallel(threads_of(run), (size_t)run->workers, group_shard, &grouping);
    } else {
        for (uint32_t i = 0; i < count; i++)
            scratch[next[shard_of(run, order[i])]++] = order[i];
    }
    memcpy(order, scratch, count * sizeof *order);
}

void sdr_epoch_order(const struct sdr_run *run, uint64_t epoch, uint32_t *order)
{
    uint32_t count = run->set.train_rows.count;
    struct laying l = {run, epoch, order};
    struct sdr_stream stream = sdr_stream_open(run->options.settings.seed, SDR_FOR_SHUFFLE, epoch);
    switch (run->rows.shuffle) {
    case SDR_SHUFFLE_AUTO:
    case SDR_SHUFFLE_NONE:
        for (uint32_t i = 0; i < count; i++)
            order[i] = i;
        break;
    case SDR_SHUFFLE_ROWS: sdr_shuffle(order, count, &stream); break;
    case SDR_SHUFFLE_CHUNKS: shuffle_chunks(&l); break;
    case SDR_SHUFFLE_BLOCKS: shuffle_blocks(&l); break;
    }
    for (uint32_t i = 0; i < count && run->rows.shuffle != SDR_SHUFFLE_CHUNKS; i++)
        order[i] = sdr_listed(&run->set.train_rows, order[i]);
}

/* Whether the workers of a team, who wait at a barrier, can lay the order out together: the
   bookkeeping at the barrier must not need it. */
static bool left_to_workers(const struct sdr_run *run)
{
    return run->shared.team && run->workers > 1 && run->rows.shuffle == SDR_SHUFFLE_CHUNKS &&
           !run->shared.plan.windows && !run->shared.plan.shards && !run->data->streams;
}

void sdr_order_lay_piece(struct sdr_run *run, uint64_t piece)
{
    struct laying l = {run, run->progress.epoch, run->rows.order};
    (void)shuffle_piece(&l, piece); /* cannot fail */
}

void sdr_shuffle_epoch(struct sdr_run *run)
{
    if (run->shared.plan.rotates) {
        sdr_rotation_order(run);
    } else if (left_to_workers(run)) {
        draw_chunks(run, run->progress.epoch);
        run->rows.pieces = pieces_of(run);
    } else if (!run->shared.plan.windows || !run->shared.plan.known.window) {
        sdr_epoch_order(run, run->progress.epoch, run->rows.order);
    } else {
        if (sdr_window_needs_base(run))
            sdr_epoch_order(run, 0, run->rows.order);
        sdr_window_order(run);
    }
    if (run->shared.plan.shards && run->workers > 1)
        sdr_group_by_shard(run, run->rows.order, run->rows.grouped);
}

/* ---- prefetching ---- */
enum { STARTS_A_LINE = 64 / sizeof(uint64_t) };

/* A shuffled row may lie anywhere: waiting for it would take longer than the step itself. Chunks
   are prefetched a window ahead, in memory order; other orders a few rows ahead, once the
   position is known. Where a row starts is prefetched earlier still: a chunk or some rows. */
bool sdr_order_ahead(const struct sdr_run *run, const uint32_t *from, uint32_t count,
                     uint32_t *ahead)
{
    enum { FAR = 24, NEAR = 8 };
    const uint64_t *start = run->data->rows.start;
    const struct sdr_row_list *list = &run->set.train_rows;
    bool chunks = run->rows.shuffle == SDR_SHUFFLE_CHUNKS && !run->shared.plan.shards &&
                  !run->shared.plan.rotates &&
                  !(run->shared.plan.windows && run->shared.plan.known.window);
    uint32_t size = run->rows.chunk_rows, further = chunks ? size : FAR;
    uint64_t at = (uint64_t)(from - run->rows.order) + (chunks ? run->rows.window_rows : NEAR);
    if (run->rows.shuffle == SDR_SHUFFLE_NONE || at + count > list->count)
        return false;
    uint64_t chunk = at / size, within = at % size;
    for (uint32_t i = 0; i < count; i++, at++) {
        /* this chunk and the next */
        const uint32_t *first = chunks ? &run->rows.chunk[chunk] : NULL;
        uint32_t place = chunks ? first[0] * size + (uint32_t)within : run->rows.order[at];
        ahead[i] = chunks && list->row ? list->row[place] : place;
        if (start && at + further < list->count &&
            (!chunks || list->row || within % STARTS_A_LINE == 0)) {
            uint32_t next = chunks ? first[1] * size + (uint32_t)within : run->rows.order[at + FAR];
            __builtin_prefetch(&start[chunks && list->row ? list->row[next] : next]);
        }
        if (++within == size) {
            within = 0;
            chunk++;
        }
    }
    return true;
}
