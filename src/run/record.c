/* Records: see record.h. Numbers are variable-length, seven bits per byte; places are stored
   relative to the end of the worker's last rows. The last 24 bytes are the length of the events,
   the number of weights and the loss. */
#include "run/record.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { WORKERS_MOST = 1024, BUFFER = 1 << 16, LONGEST = 40 /* bytes of an event */ };
static const char head[] = "sounder record 1\n";

struct sdr_record {
    pthread_mutex_t lock;
    struct sdr_writer *writer;
    enum sdr_status status; /* of the first write that failed */
    uint64_t events;        /* bytes of them */
    uint64_t last[WORKERS_MOST];
    size_t used;
    unsigned char buffer[BUFFER];
};

struct tail {
    uint64_t events, count;
    double loss;
};

static void put(struct sdr_record *r, const void *bytes, size_t count)
{
    if (r->status == SDR_OK)
        r->status = sdr_writer_add(r->writer, bytes, count);
}

static void flush(struct sdr_record *r)
{
    put(r, r->buffer, r->used);
    r->events += r->used;
    r->used = 0;
}

static void put_number(struct sdr_record *r, uint64_t number)
{
    for (; number > 127; number >>= 7)
        r->buffer[r->used++] = (unsigned char)(number | 128);
    r->buffer[r->used++] = (unsigned char)number;
}

enum sdr_status sdr_record_create(const char *path, const char *run_path, uint32_t workers,
                                  struct sdr_record **record)
{
    struct sdr_record *r;
    char line[32];
    *record = NULL;
    SDR_TRY(sdr_allocate(&r, 1, sizeof *r, "a record"));
    enum sdr_status status = sdr_writer_open(path, &r->writer);
    if (status != SDR_OK) {
        sdr_release(r);
        return status;
    }
    pthread_mutex_init(&r->lock, NULL);
    put(r, head, strlen(head));
    put(r, run_path, strlen(run_path));
    put(r, line, (size_t)snprintf(line, sizeof line, "\n%" PRIu32 "\n", workers));
    *record = r;
    return SDR_OK;
}

void sdr_record_lock(struct sdr_record *record)
{
    pthread_mutex_lock(&record->lock);
}

void sdr_record_unlock(struct sdr_record *record)
{
    pthread_mutex_unlock(&record->lock);
}

void sdr_record_add(struct sdr_record *r, const struct sdr_event *e)
{
    if (r->used + LONGEST > BUFFER)
        flush(r);
    put_number(r, (uint64_t)e->worker << 2 | (uint64_t)e->kind);
    if (e->kind == SDR_EVENT_PUSH)
        return;
    if (e->kind == SDR_EVENT_BARRIER) { /* positions of all workers restart there */
        put_number(r, e->place);
        memset(r->last, 0, sizeof r->last);
        return;
    }
    int64_t apart = (int64_t)(e->place - r->last[e->worker]);
    put_number(r, (uint64_t)apart << 1 ^ (uint64_t)(apart >> 63));
    put_number(r, e->count);
    r->last[e->worker] = e->place + e->count;
}

static void release(struct sdr_record *r)
{
    pthread_mutex_destroy(&r->lock);
    sdr_release(r);
}

enum sdr_status sdr_record_close(struct sdr_record *r, const float *w, uint64_t count, double loss)
{
    flush(r);
    struct tail tail = {r->events, count, loss};
    put(r, w, count * sizeof *w);
    put(r, &tail, sizeof tail);
    enum sdr_status status = r->status;
    if (status == SDR_OK)
        status = sdr_writer_commit(r->writer);
    else
        sdr_writer_abandon(r->writer);
    release(r);
    return status;
}

void sdr_record_abandon(struct sdr_record *r)
{
    if (!r)
        return;
    sdr_writer_abandon(r->writer);
    release(r);
}

/* ---- reading ---- */
static enum sdr_status bad(const struct sdr_replay *r, const char *what)
{
    return sdr_fail(SDR_BAD_FILE, "%s: not a readable record: %s (write it anew with --record)",
                    r->name, what);
}

static enum sdr_status parse(struct sdr_replay *r, size_t bytes)
{
    struct tail tail;
    uint64_t workers;
    if (bytes < strlen(head) + sizeof tail || memcmp(r->bytes, head, strlen(head)) != 0)
        return bad(r, "it does not begin like one");
    memcpy(&tail, r->bytes + bytes - sizeof tail, sizeof tail);
    size_t rest = bytes - sizeof tail;
    const char *path = r->bytes + strlen(head);
    char *line = memchr(path, '\n', rest - strlen(head));
    char *number = line ? line + 1 : NULL;
    char *end = number ? memchr(number, '\n', rest - (size_t)(number - r->bytes)) : NULL;
    if (!end)
        return bad(r, "it is cut off");
    *line = *end = 0;
    if (!sdr_parse_u64(number, &workers) || workers < 1 || workers > WORKERS_MOST)
        return bad(r, "its number of workers is none");
    size_t before = (size_t)(end + 1 - r->bytes);
    if (tail.count > rest / sizeof(float) || tail.events > rest ||
        before + tail.events + tail.count * sizeof(float) != rest)
        return bad(r, "its parts do not add up to its size");
    r->workers = (uint32_t)workers;
    r->count = tail.count;
    r->loss = tail.loss;
    r->at = (const unsigned char *)r->bytes + before;
    r->end = r->at + tail.events;
    SDR_TRY(sdr_copy_string(&r->run_path, path));
    SDR_TRY(sdr_allocate(&r->w, r->count, sizeof *r->w, "a record"));
    memcpy(r->w, r->end, r->count * sizeof *r->w);
    return sdr_allocate(&r->last, workers, sizeof *r->last, "a record");
}

enum sdr_status sdr_replay_open(const char *path, struct sdr_replay **replay)
{
    struct sdr_replay *r;
    size_t bytes;
    *replay = NULL;
    SDR_TRY(sdr_allocate(&r, 1, sizeof *r, "a record"));
    enum sdr_status status = sdr_copy_string(&r->name, path);
    if (status == SDR_OK)
        status = sdr_file_load(path, (uint64_t)1 << 40, &r->bytes, &bytes);
    if (status == SDR_OK)
        status = parse(r, bytes);
    if (status != SDR_OK) {
        sdr_replay_close(r);
        return status;
    }
    *replay = r;
    return SDR_OK;
}

static bool take_number(struct sdr_replay *r, uint64_t *number)
{
    *number = 0;
    for (unsigned shift = 0; r->at < r->end && shift < 64; shift += 7) {
        unsigned char byte = *r->at++;
        *number |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return true;
    }
    return false;
}

enum sdr_status sdr_replay_next(struct sdr_replay *r, struct sdr_event *e, bool *more)
{
    uint64_t first, apart = 0, count = 0;
    *more = r->at < r->end;
    if (!*more)
        return SDR_OK;
    if (!take_number(r, &first) || first >> 2 >= r->workers)
        return bad(r, "an event has no worker");
    *e = (struct sdr_event){.kind = (enum sdr_event_kind)(first & 3),
                            .worker = (uint32_t)(first >> 2)};
    if (e->kind == SDR_EVENT_PUSH)
        return SDR_OK;
    if (e->kind == SDR_EVENT_BARRIER) {
        memset(r->last, 0, r->workers * sizeof *r->last);
        return take_number(r, &e->place) ? SDR_OK : bad(r, "an event is cut off");
    }
    if (!take_number(r, &apart) || !take_number(r, &count))
        return bad(r, "an event is cut off");
    e->place = r->last[e->worker] + (apart >> 1 ^ (0 - (apart & 1)));
    e->count = count;
    r->last[e->worker] = e->place + count;
    return SDR_OK;
}

void sdr_replay_close(struct sdr_replay *r)
{
    if (!r)
        return;
    sdr_release(r->name);
    sdr_release(r->bytes);
    sdr_release(r->run_path);
    sdr_release(r->w);
    sdr_release(r->last);
    sdr_release(r);
}
