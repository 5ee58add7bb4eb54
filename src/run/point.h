/* Points of the training curve: --evaluate-every. */
#ifndef SDR_RUN_POINT_H
#define SDR_RUN_POINT_H

#include "base/fail.h"

#include <stdbool.h>

struct sdr_run;

/* Reads the option, or refuses it. */
enum sdr_status sdr_points_plan(struct sdr_run *run);
/* Sets the update of the next point. */
void sdr_points_begin(struct sdr_run *run);
bool sdr_point_due(const struct sdr_run *run, bool epoch_ended);
/* Evaluates and reports a point. Not while workers train. */
enum sdr_status sdr_point(struct sdr_run *run);

#endif
