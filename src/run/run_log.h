/* The run directory: metrics, status, checkpoints, model; and the reports to the caller. */
#ifndef SDR_RUN_LOG_H
#define SDR_RUN_LOG_H

#include "base/fail.h"

#include <stdbool.h>

struct sdr_run;

enum sdr_status sdr_log_open(struct sdr_run *run); /* resumes, if the options say so */
void sdr_log_release(struct sdr_run *run);
enum sdr_status sdr_log_epoch(struct sdr_run *run, double objective);
void sdr_log_point(struct sdr_run *run, double objective);
enum sdr_status sdr_log_tick(struct sdr_run *run);
/* The halves of a tick: is a checkpoint due; report progress if a report is due. */
bool sdr_log_checkpoint_due(const struct sdr_run *run);
enum sdr_status sdr_log_progress(struct sdr_run *run);
/* Writes a checkpoint now. A failure is reported, and training goes on. */
void sdr_log_checkpoint(struct sdr_run *run);
/* The end of a run. A failure to write is noted in run->log.missing: the model is worth more than
   its folder. */
void sdr_log_last_checkpoint(struct sdr_run *run);
void sdr_log_model(struct sdr_run *run);
void sdr_log_close(struct sdr_run *run, const char *state);
double sdr_run_seconds(const struct sdr_run *run);

#endif
