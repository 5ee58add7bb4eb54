/* The plug-ins of a run, and what follows from them. */
#ifndef SDR_RUN_PLUGINS_H
#define SDR_RUN_PLUGINS_H

#include "base/fail.h"

#include <stdbool.h>
#include <stdint.h>

struct sdr_run;

/* Finds the plug-ins that the options name. */
enum sdr_status sdr_choose_plugins(struct sdr_run *run);
/* Resolves `auto` by the model's defaults. */
enum sdr_status sdr_choose_by_model(struct sdr_run *run);
/* Resolves --sync auto, once the rows are known (automatic.c). */
enum sdr_status sdr_choose_strategy(struct sdr_run *run);
/* Whether nodes exchange messages. A strategy that needs no messages runs on threads that share
   memory. */
bool sdr_by_messages(const struct sdr_run *run);
/* Gradients of an update: K, or one of every worker if they compute one batch together. */
enum sdr_status sdr_choose_quorum(const struct sdr_run *run, uint64_t workers, uint64_t *quorum);
/* Whether the strategy takes its own steps, without --optimizer. */
bool sdr_own_steps(const struct sdr_run *run);
/* Whether workers take steps and send the change, not gradients. */
bool sdr_sends_steps(const struct sdr_run *run);
/* Batches that a worker takes steps on before it sends the change. */
uint64_t sdr_local_steps(const struct sdr_run *run);
/* Whether a worker may have to continue from its present values and its own steps since. */
bool sdr_keeps_values(const struct sdr_run *run);

#endif
