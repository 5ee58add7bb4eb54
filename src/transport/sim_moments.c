#include "transport/sim_moments.h"
#include "base/text.h"
#include "run/run.h"
#include "server/network.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum sdr_status sdr_sim_parse_moments(const char *text, const char *option, struct sdr_run *run,
                                      enum sdr_status (*plan)(struct sdr_run *run, int worker,
                                                              int64_t time))
{
    int workers = run->network->workers;
    for (const char *at = text; *at;) {
        char item[64];
        size_t length = strcspn(at, "+");
        snprintf(item, sizeof item, "%.*s", (int)(length < 63 ? length : 63), at);
        char *sign = strchr(item, '@');
        uint64_t worker;
        double time;
        if (sign)
            *sign = 0;
        if (!sign || !sdr_parse_u64(item, &worker) || !sdr_parse_double(sign + 1, &time) ||
            !(time >= 0 && time <= 1e9) || worker >= (uint64_t)workers)
            return sdr_fail(SDR_USAGE,
                            "sim:%s takes WORKER@SECONDS, such as 2@30, of workers 0 … %d", option,
                            workers - 1);
        SDR_TRY(plan(run, (int)worker, (int64_t)llrint(time * 1e9)));
        at += length + (at[length] == '+');
    }
    return SDR_OK;
}
