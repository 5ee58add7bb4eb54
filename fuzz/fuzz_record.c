/* Records of racing runs: any bytes. What opens has events of its workers, and an end. */
#include "tensors.h"

#include "run/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    char path[64];
    int file = fuzz_file(bytes, count, path);
    struct sdr_replay *replay;
    enum sdr_status status = sdr_replay_open(path, &replay);
    FUZZ_CHECK(status == SDR_OK || (status == SDR_BAD_FILE && !replay && *sdr_error()));
    bool more = status == SDR_OK;
    for (size_t events = 0; more; events++) {
        struct sdr_event event;
        status = sdr_replay_next(replay, &event, &more);
        FUZZ_CHECK(status == SDR_OK || status == SDR_BAD_FILE);
        if (status != SDR_OK || !more)
            break;
        FUZZ_CHECK(events <= count && event.worker < replay->workers);
        FUZZ_CHECK(event.kind == SDR_EVENT_PULL || event.kind == SDR_EVENT_PUSH ||
                   event.kind == SDR_EVENT_STEP || event.kind == SDR_EVENT_BARRIER);
    }
    sdr_replay_close(replay);
    close(file);
    return 0;
}
