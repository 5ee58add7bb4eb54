#include "base/stop.h"

#include <stdatomic.h>

static atomic_bool asked;

void sdr_stop_reading(bool stop)
{
    atomic_store(&asked, stop);
}

enum sdr_status sdr_check_stop(const char *doing)
{
    if (!atomic_load(&asked))
        return SDR_OK;
    return sdr_fail(SDR_PREEMPTED, "stopped by a signal while %s; nothing was written", doing);
}
