/* Schedules of the step size. */
#ifndef SDR_KIND_RATE_SCHEDULE_H
#define SDR_KIND_RATE_SCHEDULE_H

#include "kind/about.h"

struct sdr_schedule_time {
    double epoch, at; /* finished epochs, and rows of the present one */
    double per_row;   /* 1 / rows of an epoch */
    double epochs;    /* planned */
};
struct sdr_schedule {
    SDR_ABOUT;
    bool needs_end; /* depends on the length of the run */
    /* Factors on the step size at `count` positions: factor[i] after `when->epoch` epochs and
       when->at + i rows. */
    void (*factors)(const void *options, const struct sdr_schedule_time *when, uint32_t count,
                    double *factor);
};

#endif
