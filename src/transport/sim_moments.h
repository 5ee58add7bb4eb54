/* Times in virtual time, given by options of the simulator. */
#ifndef SDR_TRANSPORT_SIM_MOMENTS_H
#define SDR_TRANSPORT_SIM_MOMENTS_H

#include "base/fail.h"
#include <stdint.h>

struct sdr_run;
/* "2@30+5@41.5": calls plan() for each pair of worker and time, in nanoseconds. `option` is
   named in errors. */
enum sdr_status sdr_sim_parse_moments(const char *text, const char *option, struct sdr_run *run,
                                      enum sdr_status (*plan)(struct sdr_run *run, int worker,
                                                              int64_t time));

#endif
