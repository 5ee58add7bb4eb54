/* Records of racing runs: the order in which workers pulled the shared model, pushed their changes,
   or stepped on it, so that one worker can replay the run.

   A file is a line "sounder record 1", the path of the run (the options that determine it, and a
   hash of the data), the number of workers, the events, two to six bytes each, and at the end
   the final weights and loss. */
#ifndef SDR_RECORD_H
#define SDR_RECORD_H

#include "base/fail.h"
#include <stdint.h>

enum sdr_event_kind { SDR_EVENT_PULL, SDR_EVENT_PUSH, SDR_EVENT_STEP, SDR_EVENT_BARRIER };
struct sdr_event {
    enum sdr_event_kind kind;
    uint32_t worker;
    uint64_t place, count; /* rows of the epoch; at a barrier: rows assigned before it */
};

/* ---- writing ---- */
struct sdr_record;
enum sdr_status sdr_record_create(const char *path, const char *run_path, uint32_t workers,
                                  struct sdr_record **record);
/* Operations between lock and unlock are one event for all workers; call add in between. close
   reports write errors. */
void sdr_record_lock(struct sdr_record *record);
void sdr_record_add(struct sdr_record *record, const struct sdr_event *event);
void sdr_record_unlock(struct sdr_record *record);
/* Ends the file; frees the record in every case. */
enum sdr_status sdr_record_close(struct sdr_record *record, const float *w, uint64_t count,
                                 double loss);
void sdr_record_abandon(struct sdr_record *record); /* NULL is fine */

/* ---- reading ---- */
struct sdr_replay {
    uint32_t workers;
    char *run_path; /* owned */
    float *w;       /* owned: the weights at the end, count of them */
    uint64_t count;
    double loss;                   /* at the end */
    char *name, *bytes;            /* owned: path of the file, and its contents */
    const unsigned char *at, *end; /* remaining events */
    uint64_t *last;                /* owned, per worker: end of its last rows */
};
enum sdr_status sdr_replay_open(const char *path, struct sdr_replay **replay);
/* The next event; *more is false at the end. */
enum sdr_status sdr_replay_next(struct sdr_replay *replay, struct sdr_event *event, bool *more);
void sdr_replay_close(struct sdr_replay *replay); /* NULL is fine */

/* run_record.c: opens the record that --record names, or compares the run with the one that
   --replay names. */
struct sdr_run;
enum sdr_status sdr_run_record_open(struct sdr_run *run);

#endif
