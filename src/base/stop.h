/* A stop request for work outside of a run: reading and predicting. It is global, because signals
   belong to the process. */
#ifndef SDR_BASE_STOP_H
#define SDR_BASE_STOP_H

#include "base/fail.h"

/* Returns SDR_PREEMPTED after sdr_stop_reading was called. `doing` is for the message:
   "reading". */
enum sdr_status sdr_check_stop(const char *doing);

#endif
