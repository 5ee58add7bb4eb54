/* The order of the rows in an epoch. */
#ifndef SDR_RUN_ORDER_H
#define SDR_RUN_ORDER_H

#include "base/fail.h"

#include <stdbool.h>
#include <stdint.h>

struct sdr_run;

enum sdr_status sdr_order_allocate(struct sdr_run *run);
/* Sets run->rows.order for the epoch that begins. */
void sdr_shuffle_epoch(struct sdr_run *run);
/* The order of any epoch, without windows, cells and shards. Not thread-safe. */
void sdr_epoch_order(const struct sdr_run *run, uint64_t epoch, uint32_t *order);
/* For each of `count` rows of the order starting at `from`: a row to prefetch meanwhile. False: there is none. */
bool sdr_order_ahead(const struct sdr_run *run, const uint32_t *from, uint32_t count,
                     uint32_t *ahead);
/* The place in the order where a worker's shard begins. */
uint64_t sdr_shard_start(const struct sdr_run *run, int worker);
/* Shares of every shard in this epoch, and the rows of the first `shares` of them: whole batches. A share ends
   after every plan.share rows of the run, and at the end of an epoch; whole: the end of an epoch does not cut it. */
uint64_t sdr_shard_shares(const struct sdr_run *run);
uint64_t sdr_shard_rows(const struct sdr_run *run, uint64_t length, uint64_t shares);
bool sdr_shard_whole(const struct sdr_run *run, uint64_t shares);

#endif
