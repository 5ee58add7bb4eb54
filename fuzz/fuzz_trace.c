/* Files of measured times (--compute trace:FILE): any bytes. What is read has times that are
   finite, of workers that each have theirs. */
#include "tensors.h"

#include "base/trace.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    char path[64];
    int file = fuzz_file(bytes, count, path);
    struct sdr_trace trace;
    enum sdr_status status = sdr_trace_load(path, &trace);
    FUZZ_CHECK(status == SDR_OK || *sdr_error());
    if (status == SDR_OK) {
        FUZZ_CHECK(trace.count > 0 && trace.count <= count && trace.workers > 0);
        FUZZ_CHECK(trace.start[0] == 0 && trace.start[trace.workers] == trace.count);
        for (uint32_t w = 0; w < trace.workers; w++)
            FUZZ_CHECK(trace.start[w] <= trace.start[w + 1]);
        for (uint64_t i = 0; i < trace.count; i++)
            FUZZ_CHECK(trace.seconds[i] >= 0 && trace.seconds[i] <= 1e9f);
        for (uint32_t w = 0; w < 3; w++)
            for (double at = 0; at < 1; at += 0.249)
                FUZZ_CHECK(isfinite(sdr_trace_pick(&trace, w, at)));
        FUZZ_CHECK(isfinite(sdr_trace_mean(&trace)));
    }
    sdr_trace_free(&trace);
    close(file);
    return 0;
}
