/* What train.c, setup.c and verdict.c offer the rest of a run. */
#ifndef SDR_TRAIN_H
#define SDR_TRAIN_H

#include "update/parameters.h"

struct sdr_run;

/* train.c, for the code that runs the strategy's loops. begin: before the first update. conclude:
   after the last one, while the weights are still in place: last checkpoint, evaluation, model. */
enum sdr_status sdr_run_begin(struct sdr_run *run);
enum sdr_status sdr_run_conclude(struct sdr_run *run);
/* All rows of an epoch were trained on: evaluates, and decides whether training goes on. */
enum sdr_status sdr_epoch_end(struct sdr_run *run);
/* Ends the run if the validation loss, or the objective, has reached --target. */
void sdr_consider_target(struct sdr_run *run, double reached);
/* Threads for everything but training: --threads, or all cores. */
int sdr_run_threads(const struct sdr_run *run);

/* setup.c: writes the initial values of a span to the parameters and the good weights. */
enum sdr_status sdr_start_values(struct sdr_run *run, struct sdr_span span);

/* verdict.c: notes about a model that learnt nothing. */
void sdr_verdict(const struct sdr_run *run);

#endif
