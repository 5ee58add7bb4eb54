/* The order of the rows in an epoch. */
#ifndef SDR_RUN_ORDER_H
#define SDR_RUN_ORDER_H

#include "base/fail.h"

#include <stdbool.h>
#include <stdint.h>

struct sdr_run;

enum sdr_status sdr_order_allocate(struct sdr_run *run);
/* Sets run->rows.order for the epoch that begins; rotations with copies of their rows have an order
   of their own. At a barrier of a team it may leave the work to all workers: it sets
   run->rows.pieces, the number of pieces that they then lay out, in any order. */
void sdr_shuffle_epoch(struct sdr_run *run);
void sdr_order_lay_piece(struct sdr_run *run, uint64_t piece);
/* The order of any epoch, without windows, cells and shards. Not thread-safe. */
void sdr_epoch_order(const struct sdr_run *run, uint64_t epoch, uint32_t *order);
/* For each of `count` rows of the order starting at `from`: a row to prefetch meanwhile. False:
   there is none. */
bool sdr_order_ahead(const struct sdr_run *run, const uint32_t *from, uint32_t count,
                     uint32_t *ahead);
/* Groups an order by shard, keeping the order within each. scratch: as long as the order, and one
   more per worker. */
void sdr_group_by_shard(const struct sdr_run *run, uint32_t *order, uint32_t *scratch);
/* The place in the order where a worker's shard begins. */
uint64_t sdr_shard_start(const struct sdr_run *run, int worker);
enum { SDR_FUSED_ROWS = 64 }; /* per call of the fused loops, which count places one by one */
/* The place in the epoch after some rows of a worker's shard, if all workers were equally fast:
   step sizes follow it. */
uint64_t sdr_shard_place(const struct sdr_run *run, int worker, uint64_t rows);
/* Shares of every shard in an epoch, the most that any epoch has, and the rows of a worker's first
   `shares` of them: whole batches. A share ends after every plan.share rows of the run, and at the
   end of an epoch; whole: the end of an epoch does not cut it. */
uint64_t sdr_shard_shares(const struct sdr_run *run, uint64_t epoch);
uint64_t sdr_shard_shares_most(const struct sdr_run *run);
uint64_t sdr_shard_rows(const struct sdr_run *run, uint64_t epoch, int worker, uint64_t shares);
/* of all workers */
uint64_t sdr_shards_rows(const struct sdr_run *run, uint64_t epoch, uint64_t shares);
bool sdr_shard_whole(const struct sdr_run *run, uint64_t epoch, uint64_t shares);

#endif
