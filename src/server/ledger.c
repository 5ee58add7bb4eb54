#include "server/ledger.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TOGETHER = 4096 }; /* records per write */

static void add(struct sdr_ledger *ledger, const struct sdr_ledger_record *record)
{
    struct sdr_ledger_sum *sum = &ledger->sum[record->worker];
    if (record->applied == SDR_LEDGER_DROPPED) {
        sum->dropped++;
    } else {
        uint64_t missed = record->applied - record->read;
        uint64_t count = missed < SDR_LEDGER_STALENESS - 1 ? missed : SDR_LEDGER_STALENESS - 1;
        ledger->staleness[count]++;
        ledger->since.staleness[count]++;
        sum->applied++;
        sum->missed += missed;
    }
    sum->bytes += record->bytes;
    sum->computing += record->computing;
    sum->travelling += record->travelling;
    sum->waiting += record->waiting;
    ledger->since.computing += record->computing;
    ledger->since.travelling += record->travelling;
    ledger->since.waiting += record->waiting;
    if (record->waited_for >= 0)
        ledger->sum[record->waited_for].awaited += record->waiting;
}

enum sdr_status sdr_ledger_open(struct sdr_ledger *ledger, const char *folder, int workers)
{
    ledger->workers = workers;
    SDR_TRY(sdr_allocate(&ledger->sum, (size_t)workers, sizeof *ledger->sum, "the ledger"));
    if (!folder)
        return SDR_OK;
    SDR_TRY(sdr_path_join(folder, "ledger", &ledger->path));
    return sdr_allocate(&ledger->record, TOGETHER, sizeof *ledger->record, "the ledger");
}

enum sdr_status sdr_ledger_make_places(struct sdr_ledger *ledger, int workers)
{
    struct sdr_ledger_sum *larger;
    if (workers <= ledger->workers)
        return SDR_OK;
    SDR_TRY(sdr_allocate(&larger, (size_t)workers, sizeof *larger, "the ledger"));
    if (ledger->workers)
        memcpy(larger, ledger->sum, (size_t)ledger->workers * sizeof *larger);
    sdr_release(ledger->sum);
    ledger->sum = larger;
    ledger->workers = workers;
    return SDR_OK;
}

/* Length of the records of updates before a version, whole records, in bytes; 0: not a ledger. */
static off_t known_until(int file, uint64_t version)
{
    char magic[sizeof SDR_LEDGER_MAGIC - 1];
    struct sdr_ledger_record record[64];
    off_t good = sizeof magic;
    ssize_t bytes = read(file, magic, sizeof magic);
    if (bytes != sizeof magic || memcmp(magic, SDR_LEDGER_MAGIC, sizeof magic) != 0)
        return 0;
    while ((bytes = read(file, record, sizeof record)) > 0)
        for (size_t i = 0; i < (size_t)bytes / sizeof *record; i++) {
            if (record[i].applied != SDR_LEDGER_DROPPED && record[i].applied >= version)
                return good;
            good += sizeof *record;
        }
    return good;
}

/* A resumed run appends to the records before its checkpoint. */
static enum sdr_status begin(struct sdr_ledger *ledger, uint64_t version)
{
    ledger->begun = true;
    if (version) {
        int file = open(ledger->path, O_RDWR | O_CLOEXEC);
        off_t good = file < 0 ? 0 : known_until(file, version);
        bool cut = good > 0 && ftruncate(file, good) == 0;
        if (file >= 0)
            close(file);
        if (cut)
            return SDR_OK;
    }
    return sdr_file_put(ledger->path, SDR_LEDGER_MAGIC, strlen(SDR_LEDGER_MAGIC));
}

enum sdr_status sdr_ledger_flush(struct sdr_ledger *ledger, uint64_t version)
{
    uint32_t records = ledger->records;
    ledger->records = 0;
    if (!ledger->path)
        return SDR_OK;
    if (!ledger->begun)
        SDR_TRY(begin(ledger, version));
    if (!records)
        return SDR_OK;
    return sdr_file_append(ledger->path, (const char *)ledger->record,
                           records * sizeof *ledger->record);
}

enum sdr_status sdr_ledger_note(struct sdr_ledger *ledger, const struct sdr_ledger_record *record)
{
    add(ledger, record);
    if (!ledger->path)
        return SDR_OK;
    ledger->record[ledger->records++] = *record;
    return ledger->records == TOGETHER ? sdr_ledger_flush(ledger, 0) : SDR_OK;
}

void sdr_ledger_free(struct sdr_ledger *ledger)
{
    sdr_release(ledger->path);
    sdr_release(ledger->record);
    sdr_release(ledger->sum);
    *ledger = (struct sdr_ledger){0};
}

/* ---- summary ---- */
static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double pace(const struct sdr_ledger_sum *sum)
{
    uint64_t gradients = sum->applied + sum->dropped;
    return gradients ? (sum->computing + sum->travelling) / (double)gradients : 0;
}

/* The worker with the longest compute time, if that is 1.5 times the median or more; −1: none. */
static enum sdr_status straggler(const struct sdr_ledger *ledger, int *worker)
{
    double *paces, median = 0;
    int slowest = 0, counted = 0;
    *worker = -1;
    SDR_TRY(sdr_allocate(&paces, (size_t)ledger->workers, sizeof *paces, "the ledger"));
    for (int w = 0; w < ledger->workers; w++) {
        if (pace(&ledger->sum[w]) > 0)
            paces[counted++] = pace(&ledger->sum[w]);
        if (pace(&ledger->sum[w]) > pace(&ledger->sum[slowest]))
            slowest = w;
    }
    if (counted) {
        qsort(paces, (size_t)counted, sizeof *paces, ascending);
        median = paces[(counted - 1) / 2];
    }
    sdr_release(paces);
    if (counted > 1 && pace(&ledger->sum[slowest]) > 1.5 * median)
        *worker = slowest;
    return SDR_OK;
}

static json_t *counts_of(const uint64_t count[SDR_LEDGER_STALENESS])
{
    json_t *counts = json_array();
    int last = SDR_LEDGER_STALENESS - 1;
    while (last > 0 && !count[last])
        last--;
    for (int i = 0; i <= last; i++)
        sdr_json_append(counts, json_integer((json_int_t)count[i]));
    return counts;
}

void sdr_ledger_interval(struct sdr_ledger *ledger, json_t *object)
{
    double time = ledger->since.computing + ledger->since.travelling + ledger->since.waiting;
    sdr_json_set(object, "staleness_counts", counts_of(ledger->since.staleness));
    if (time > 0) {
        sdr_json_set(object, "computing_share", json_real(ledger->since.computing / time));
        sdr_json_set(object, "travelling_share", json_real(ledger->since.travelling / time));
        sdr_json_set(object, "waiting_share", json_real(ledger->since.waiting / time));
    }
    memset(&ledger->since, 0, sizeof ledger->since);
}

void sdr_ledger_json(const struct sdr_ledger *ledger, json_t *object)
{
    json_t *workers = json_array();
    int slow;
    bool known = straggler(ledger, &slow) == SDR_OK;
    for (int w = 0; w < ledger->workers; w++) {
        const struct sdr_ledger_sum *sum = &ledger->sum[w];
        sdr_json_append(workers,
                        json_pack("{s:i, s:I, s:I, s:I, s:f, s:f, s:f, s:f}", "worker", w,
                                  "gradients", (json_int_t)sum->applied, "dropped",
                                  (json_int_t)sum->dropped, "bytes", (json_int_t)sum->bytes,
                                  "computing", sum->computing, "travelling", sum->travelling,
                                  "waiting", sum->waiting, "awaited", sum->awaited));
    }
    sdr_json_set(object, "staleness_counts", counts_of(ledger->staleness));
    sdr_json_set(object, "workers_detail", workers);
    if (slow >= 0 || !known)
        sdr_json_set(object, "straggler", known ? json_integer(slow) : NULL);
}

/* ---- reading one ---- */
static enum sdr_status damaged(const char *path, uint64_t place)
{
    return sdr_fail(SDR_BAD_FILE, "'%s' is damaged at byte %llu", path, (unsigned long long)place);
}

static bool times_sound(const struct sdr_ledger_record *record)
{
    return isfinite(record->computing) && isfinite(record->travelling) && isfinite(record->waiting);
}

/* Reads the records of a file, chunk by chunk. */
static enum sdr_status read_records(const char *path, int file, struct sdr_ledger *ledger,
                                    sdr_ledger_each *each, void *context)
{
    char magic[sizeof SDR_LEDGER_MAGIC - 1];
    uint64_t place = sizeof magic;
    ssize_t bytes = read(file, magic, sizeof magic);
    if (bytes != sizeof magic || memcmp(magic, SDR_LEDGER_MAGIC, sizeof magic) != 0)
        return sdr_fail(SDR_BAD_FILE, "'%s' is not a ledger", path);
    SDR_TRY(sdr_allocate(&ledger->record, TOGETHER, sizeof *ledger->record, "the ledger"));
    while ((bytes = read(file, ledger->record, TOGETHER * sizeof *ledger->record)) > 0) {
        size_t whole =
            (size_t)bytes / sizeof *ledger->record; /* a running run may be writing the rest */
        for (size_t i = 0; i < whole; i++) {
            const struct sdr_ledger_record *record = &ledger->record[i];
            if (record->worker >= SDR_LEDGER_WORKERS || record->waited_for >= SDR_LEDGER_WORKERS ||
                record->applied < record->read || !times_sound(record))
                return damaged(path, place + i * sizeof *record);
            int most =
                record->waited_for > (int)record->worker ? record->waited_for : (int)record->worker;
            if (most >= ledger->workers)
                SDR_TRY(sdr_ledger_make_places(
                    ledger, most < 2 * ledger->workers ? 2 * ledger->workers : most + 1));
            add(ledger, record);
            if (each)
                each(context, record);
        }
        place += whole * sizeof *ledger->record;
    }
    return bytes < 0 ? sdr_fail_errno("cannot read '%s'", path) : SDR_OK;
}

enum sdr_status sdr_ledger_read(const char *folder, struct sdr_ledger *ledger,
                                sdr_ledger_each *each, void *context)
{
    char *path;
    *ledger = (struct sdr_ledger){0};
    SDR_TRY(sdr_path_join(folder, "ledger", &path));
    int file = open(path, O_RDONLY | O_CLOEXEC);
    enum sdr_status status = file < 0 ? sdr_fail_errno("cannot read '%s'", path) : SDR_OK;
    if (status == SDR_OK)
        status = read_records(path, file, ledger, each, context);
    if (file >= 0)
        close(file);
    while (ledger->workers > 0) { /* capacity was doubled */
        const struct sdr_ledger_sum *sum = &ledger->sum[ledger->workers - 1];
        if (sum->applied + sum->dropped > 0 || sum->awaited > 0)
            break;
        ledger->workers--;
    }
    sdr_release(path);
    return status;
}
