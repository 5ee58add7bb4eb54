/* Defaults: values for the options left open. setup.c says what each needs. */
#ifndef SDR_RUN_DEFAULTS_H
#define SDR_RUN_DEFAULTS_H

#include "base/fail.h"

#include <stdbool.h>

struct sdr_run;

/* Workers, and rows of an update. */
enum sdr_status sdr_choose_workers(struct sdr_run *run);
/* Epochs of single rows or of batches, without --epochs. */
double sdr_usual_epochs(const struct sdr_run *run, bool batches);
/* Epochs, and the length of the schedule. */
void sdr_choose_length(struct sdr_run *run);
enum sdr_status sdr_choose_averaging(struct sdr_run *run);
/* The step size. */
void sdr_choose_rate(struct sdr_run *run);
/* The step size without --lr. */
double sdr_automatic_rate(const struct sdr_run *run);
/* Updates of an epoch; the mean, if updates do not end with epochs. */
double sdr_updates_an_epoch(const struct sdr_run *run);

#endif
