/* Ledgers of runs: any bytes, with the right beginning where the first byte is 1. What is read has
   numbers that can be printed; a run that goes on from it cuts it where its records end. */
#include "fuzz.h"

#include "server/ledger.h"

#include <math.h>
#include <sys/stat.h>

static uint64_t seen;
static void each(void *context, const struct sdr_ledger_record *record)
{
    (void)context;
    FUZZ_CHECK(record->worker < 1u << 20 && record->applied >= record->read);
    FUZZ_CHECK(fuzz_finite(record->computing) && fuzz_finite(record->travelling) &&
               fuzz_finite(record->waiting));
    seen++;
}

static void check_sums(const struct sdr_ledger *ledger)
{
    uint64_t records = 0, applied = 0, counted = 0;
    for (int w = 0; w < ledger->workers; w++) {
        records += ledger->sum[w].applied + ledger->sum[w].dropped;
        applied += ledger->sum[w].applied;
        FUZZ_CHECK(isfinite(ledger->sum[w].computing) && isfinite(ledger->sum[w].awaited));
    }
    for (int i = 0; i < SDR_LEDGER_STALENESS; i++)
        counted += ledger->staleness[i];
    FUZZ_CHECK(records == seen && applied == counted);
    json_t *object = json_object();
    sdr_ledger_json(ledger, object);
    char *text = json_dumps(object, 0);
    FUZZ_CHECK(text != NULL && json_object_size(object) >= 2);
    free(text);
    json_decref(object);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    char folder[64], path[96];
    struct sdr_ledger ledger, more = {0};
    struct stat before, after;
    snprintf(folder, sizeof folder, "/dev/shm/sounder-fuzz-ledger-%ld", (long)getpid());
    snprintf(path, sizeof path, "%s/ledger", folder);
    mkdir(folder, 0777);
    FILE *file = fopen(path, "w");
    FUZZ_CHECK(file != NULL);
    if (count && bytes[0] == 1) {
        fputs(SDR_LEDGER_MAGIC, file);
        bytes++;
        count--;
    }
    FUZZ_CHECK(fwrite(bytes, 1, count, file) == count && fclose(file) == 0);
    seen = 0;
    enum sdr_status status = sdr_ledger_read(folder, &ledger, each, NULL);
    FUZZ_CHECK(status == SDR_OK || (status == SDR_BAD_FILE && *sdr_error()));
    if (status == SDR_OK)
        check_sums(&ledger);
    sdr_ledger_free(&ledger);
    FUZZ_CHECK(stat(path, &before) == 0);
    FUZZ_CHECK(sdr_ledger_open(&more, folder, 3) == SDR_OK);
    FUZZ_CHECK(sdr_ledger_flush(&more, 5) == SDR_OK);
    FUZZ_CHECK(stat(path, &after) == 0);
    FUZZ_CHECK(after.st_size >= 16 && (after.st_size - 16) % 48 == 0 &&
               (after.st_size <= before.st_size || after.st_size == 16));
    sdr_ledger_free(&more);
    return 0;
}
