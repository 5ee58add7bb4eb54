/* The ledger: origin, staleness and cost of every gradient. A record takes 48 bytes. Records go
   to `ledger` in the run directory; their sums are kept for the summary. */
#ifndef SDR_LEDGER_H
#define SDR_LEDGER_H

#include "base/fail.h"
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct sdr_ledger_record {
    uint32_t worker;
    /* The worker whose gradient ended the wait before this task; −1: there was none. */
    int32_t waited_for;
    /* Versions: of the values it was computed from (with the worker's own steps, if workers take
       steps), and of those it was applied to; SDR_LEDGER_DROPPED: not applied. */
    uint64_t read, applied;
    uint64_t batch; /* its number: batch % (batches of an epoch) is its place in the epoch */
    uint32_t bytes; /* of its messages, both ways */
    float computing, travelling, waiting; /* seconds; waiting: for the task */
};
_Static_assert(sizeof(struct sdr_ledger_record) == 48, "records are read from files");
#define SDR_LEDGER_DROPPED UINT64_MAX
#define SDR_LEDGER_MAGIC   "sounder-ledger-2" /* the 16 bytes before the first record */

enum { SDR_LEDGER_STALENESS = 65 };    /* 0 … 63 updates, and more */
enum { SDR_LEDGER_WORKERS = 1 << 15 }; /* more than any transport has */
struct sdr_ledger {
    char *path;                       /* owned; NULL: sums alone */
    struct sdr_ledger_record *record; /* owned: not written yet */
    uint32_t records;
    bool begun; /* the file has its header */
    int workers;
    uint64_t staleness[SDR_LEDGER_STALENESS]; /* gradients applied, by the updates they missed */
    struct {
        uint64_t staleness[SDR_LEDGER_STALENESS];
        double computing, travelling, waiting;
    } since; /* since the end of the last interval */
    struct sdr_ledger_sum {
        uint64_t applied, dropped, missed; /* missed: staleness of the applied ones */
        uint64_t bytes;
        double computing, travelling, waiting;
        double awaited; /* time that others have waited for it */
    } * sum;            /* owned, per worker */
};

/* `folder` may be NULL, and need not exist yet. */
enum sdr_status sdr_ledger_open(struct sdr_ledger *ledger, const char *folder, int workers);
/* Allocates sums for more workers. */
enum sdr_status sdr_ledger_make_places(struct sdr_ledger *ledger, int workers);
/* Fails if records cannot be written; the sums are right in any case. */
enum sdr_status sdr_ledger_note(struct sdr_ledger *ledger, const struct sdr_ledger_record *record);
/* Writes the records noted so far. The first call with version 0 starts a new file; with another
   version it appends to the records of updates before that version. */
enum sdr_status sdr_ledger_flush(struct sdr_ledger *ledger, uint64_t version);
void sdr_ledger_free(struct sdr_ledger *ledger);
/* Adds the figures since the last call: gradients, staleness_counts, and fractions of the
   workers' time. */
void sdr_ledger_interval(struct sdr_ledger *ledger, json_t *object);
/* Adds staleness_counts, workers_detail and, if there is one, straggler to an object. */
void sdr_ledger_json(const struct sdr_ledger *ledger, json_t *object);
/* Sums of a ledger in a run directory; `each`, if it is not NULL, is called for every record. */
typedef void sdr_ledger_each(void *context, const struct sdr_ledger_record *record);
enum sdr_status sdr_ledger_read(const char *folder, struct sdr_ledger *ledger,
                                sdr_ledger_each *each, void *context);

#endif
