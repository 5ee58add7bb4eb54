/* Bookkeeping of training, in any role (node.c). Not while workers train. */
#ifndef SDR_TEAM_ACCOUNTING_H
#define SDR_TEAM_ACCOUNTING_H

#include "base/fail.h"

#include <stdint.h>

struct sdr_run;
struct sdr_batch;

/* Counts `rows` more as trained on, and does what is due here: ends epochs, reports, writes
   checkpoints, ends the run. */
enum sdr_status sdr_account(struct sdr_run *run, uint64_t rows);
/* Polls the caller's requests and the clock. */
enum sdr_status sdr_poll_requests(struct sdr_run *run);
/* Streamed data: the rows from place `at` of the order on are needed. */
void sdr_stream(struct sdr_run *run, uint64_t at);
/* Prefetches the rows that follow a batch, as far ahead as the order allows. */
void sdr_fetch_ahead(const struct sdr_run *run, const struct sdr_batch *batch);
/* Divergence: restores the last good weights if restarts remain, or ends the run. */
enum sdr_status sdr_diverge(struct sdr_run *run);
/* The step size of an update that begins `at` rows into the present epoch. */
double sdr_rate_at(const struct sdr_run *run, uint64_t at);
/* The step sizes of `count` updates; the i-th begins i rows behind `at`. */
void sdr_rates(const struct sdr_run *run, uint64_t at, uint32_t count, double *rate);

#endif
