/* A request to stop that reaches work without a run: reading, predicting. Signals are the process's, and so
   is the request. */
#ifndef SDR_BASE_STOP_H
#define SDR_BASE_STOP_H

#include "base/fail.h"

/* SDR_PREEMPTED once sdr_stop_reading asked for it. doing: "reading", for the sentence. */
enum sdr_status sdr_check_stop(const char *doing);

#endif
