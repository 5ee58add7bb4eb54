/* Parallel reading of line formats. Every thread repeats:

     read a chunk (one thread at a time) → parse it → pass the next pieces to the builder, unless another
     thread does

   Pieces are passed in file order, so the data set and the reported error do not depend on the
   number of threads. Chunks and their pieces lie in a ring of slots, two per thread: a piece that
   is parsed early waits there while its thread continues. */
#define _GNU_SOURCE /* memrchr */
#include "base/clock.h"
#include "base/thread.h"
#include "data/read.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { PADDING = 64, RECORD_MOST = 1 << 30, THREADS_MOST = 256, SENTENCE = 1024 };

/* A chunk and its piece. */
struct slot {
    char *bytes; /* room + PADDING */
    size_t room, count;
    size_t file;
    bool first;   /* the first chunk of its file */
    bool endless; /* its first record exceeds the limit */
    struct sdr_piece piece;
    bool ready;             /* parsed, or failed; guarded by `order` */
    enum sdr_status status; /* SDR_OK, or why there is no piece */
    char sentence[SENTENCE];
};

struct pipeline {
    const struct sdr_read_job *job;
    pthread_t caller;

    pthread_mutex_t reading; /* guards the members up to `order` */
    struct sdr_source *source;
    size_t file;
    bool first, end;
    char *carry; /* the start of a record that continues in the next chunk */
    size_t carried, carry_room;
    uint64_t next, taken_before;
    _Atomic uint64_t taken;

    pthread_mutex_t order; /* guards the members below */
    pthread_cond_t changed;
    uint64_t turn;     /* number of the next chunk to pass on */
    bool builder_busy; /* a thread is passing pieces on */
    atomic_bool stopped;
    enum sdr_status status;
    char sentence[SENTENCE];
    /* Used by that thread: */
    uint64_t lines; /* of this file, in earlier chunks */
    size_t lines_file;
    int64_t told;

    struct slot *slot; /* chunk n lies in slot n % slots */
    size_t slots;
};

static const char *name_of(const struct pipeline *p, size_t file)
{
    const char *path = p->job->paths->path[file];
    return strcmp(path, "-") == 0 ? "<stdin>" : path;
}

/* ---- reading ---- */

static enum sdr_status grow(char **bytes, size_t *room, size_t used, size_t wanted)
{
    char *larger;
    SDR_TRY(sdr_allocate(&larger, wanted + PADDING, 1, "a chunk of the file"));
    if (used)
        memcpy(larger, *bytes, used);
    sdr_release(*bytes);
    *bytes = larger;
    *room = wanted;
    return SDR_OK;
}

static size_t cut(const struct sdr_read_job *job, const char *bytes, size_t count)
{
    if (job->format->cut)
        return job->format->cut(job->state, bytes, count);
    const char *newline = memrchr(bytes, '\n', count);
    return newline ? (size_t)(newline - bytes) + 1 : 0;
}

static enum sdr_status carry_over(struct pipeline *p, const char *bytes, size_t count)
{
    if (count > p->carry_room)
        SDR_TRY(grow(&p->carry, &p->carry_room, 0, 2 * count));
    if (count)
        memcpy(p->carry, bytes, count);
    p->carried = count;
    return SDR_OK;
}

/* The longest record allowed: while its buffer grows, two copies are in memory. */
static size_t record_most(const struct pipeline *p)
{
    enum { LEAST = 1 << 20 }; /* less than the program itself takes */
    uint64_t memory = p->job->reading->options->memory;
    if (!memory || memory / 2 >= RECORD_MOST)
        return RECORD_MOST;
    return memory / 2 > LEAST ? (size_t)(memory / 2) : LEAST;
}

static enum sdr_status endless(const struct pipeline *p, const struct slot *slot)
{
    uint64_t memory = p->job->reading->options->memory;
    char limit[64] = "";
    if (record_most(p) < RECORD_MOST)
        snprintf(limit, sizeof limit, ", half of --memory %.1f MB", (double)memory / 1e6);
    return sdr_fail(SDR_BAD_DATA, "%s:%llu: the line is longer than %.1f MB%s",
                    name_of(p, slot->file), (unsigned long long)p->lines + 1,
                    (double)record_most(p) / 1e6, limit);
}

/* Fills the slot from the open source; at its end with the rest, possibly nothing. */
static enum sdr_status fill_from_source(struct pipeline *p, struct slot *slot)
{
    size_t got, whole = 0;
    if (slot->room < p->carried + p->job->chunk)
        SDR_TRY(grow(&slot->bytes, &slot->room, 0, p->carried + p->job->chunk));
    if (p->carried)
        memcpy(slot->bytes, p->carry, p->carried);
    slot->count = p->carried;
    p->carried = 0;
    slot->file = p->file;
    slot->first = p->first;
    size_t most = record_most(p);
    for (size_t wanted = p->job->chunk;; wanted = slot->count) {
        if (slot->count + wanted > most)
            wanted = most - slot->count;
        if (slot->room - slot->count < wanted)
            SDR_TRY(grow(&slot->bytes, &slot->room, slot->count, slot->count + wanted));
        SDR_TRY(sdr_source_read(p->source, slot->bytes + slot->count, wanted, &got));
        slot->count += got;
        p->taken = p->taken_before + sdr_source_taken(p->source);
        if (got < wanted) {
            p->taken_before = p->taken;
            sdr_source_close(p->source);
            p->source = NULL;
            p->file++;
            return SDR_OK;
        }
        whole = cut(p->job, slot->bytes, slot->count);
        if (whole)
            break;
        if (slot->count >= most) {
            slot->endless = true;
            return SDR_BAD_DATA;
        }
    }
    SDR_TRY(carry_over(p, slot->bytes + whole, slot->count - whole));
    slot->count = whole;
    p->first = false;
    return SDR_OK;
}

/* Waits until the previous piece in the slot of chunk `next` was passed on. */
static void wait_for_room(struct pipeline *p)
{
    pthread_mutex_lock(&p->order);
    while (p->next - p->turn >= p->slots && !atomic_load(&p->stopped))
        pthread_cond_wait(&p->changed, &p->order);
    pthread_mutex_unlock(&p->order);
}

/* The next chunk; NULL at the end. A chunk that cannot be read has a slot too: errors of earlier
   chunks are reported first. */
static struct slot *next_chunk(struct pipeline *p)
{
    enum sdr_status status = SDR_OK;
    bool any = false;
    pthread_mutex_lock(&p->reading);
    wait_for_room(p);
    struct slot *slot = &p->slot[p->next % p->slots];
    while (status == SDR_OK && !any && !p->end && !atomic_load(&p->stopped)) {
        if (!p->source && p->file == p->job->paths->count) {
            p->end = true;
            break;
        }
        if (!p->source) {
            status = sdr_source_open(p->job->paths->path[p->file], &p->source);
            p->first = true;
        }
        if (status == SDR_OK)
            status = fill_from_source(p, slot);
        any = status != SDR_OK || slot->count > 0;
    }
    if (any) /* otherwise another thread may use the slot */
        slot->status = status;
    if (status != SDR_OK)
        p->end = true;
    p->next += any;
    pthread_mutex_unlock(&p->reading);
    return any ? slot : NULL;
}

/* ---- parsing ---- */

static enum sdr_status parse(struct pipeline *p, struct slot *slot)
{
    struct sdr_piece *piece = &slot->piece;
    uint64_t room = slot->count / 2 + 64;
    sdr_piece_clear(piece);
    SDR_TRY(sdr_piece_reserve(piece, room, room / 8));
    memset(slot->bytes + slot->count, 0, PADDING);
    return p->job->format->parse(p->job->state, slot->bytes, slot->count, slot->first, piece);
}

/* ---- passing on, in file order ---- */

/* "file:line:column: message", with the lines of earlier chunks added. */
static enum sdr_status fail_at_line(const struct pipeline *p, const struct slot *slot)
{
    const struct sdr_piece *piece = &slot->piece;
    struct sdr_text place = {0};
    sdr_text_add(&place, "%s", name_of(p, slot->file));
    if (piece->error_line)
        sdr_text_add(&place, ":%llu", (unsigned long long)(p->lines + piece->error_line));
    if (piece->error_line && piece->error_column)
        sdr_text_add(&place, ":%llu", (unsigned long long)piece->error_column);
    enum sdr_status status =
        sdr_fail(piece->status, "%s: %s", place.bytes ? place.bytes : "", piece->error);
    sdr_text_free(&place);
    return status;
}

static enum sdr_status pass_piece(struct pipeline *p, struct slot *slot)
{
    struct sdr_piece *piece = &slot->piece;
    if (p->lines_file != slot->file || slot->first) {
        p->lines_file = slot->file;
        p->lines = 0;
    }
    if (slot->endless)
        return endless(p, slot);
    if (slot->status != SDR_OK)
        return sdr_fail(slot->status, "%s", slot->sentence);
    if (piece->status != SDR_OK)
        return fail_at_line(p, slot);
    enum sdr_status status = sdr_builder_add(p->job->reading->builder, piece);
    p->lines += piece->lines;
    return status == SDR_BAD_DATA ? sdr_fail_in(status, "%s: ", name_of(p, slot->file)) : status;
}

/* Marks the slot's piece as ready and passes on all pieces that are next, unless another thread
   does. */
static void pass_in_order(struct pipeline *p, struct slot *slot)
{
    pthread_mutex_lock(&p->order);
    slot->ready = true;
    bool mine = !p->builder_busy;
    for (;;) {
        struct slot *next = &p->slot[p->turn % p->slots];
        if (!mine || !next->ready || atomic_load(&p->stopped))
            break;
        p->builder_busy = true;
        pthread_mutex_unlock(&p->order);
        enum sdr_status status = pass_piece(p, next);
        pthread_mutex_lock(&p->order);
        p->builder_busy = next->ready = false;
        p->turn++;
        if (status != SDR_OK) {
            p->status = status;
            snprintf(p->sentence, sizeof p->sentence, "%s", sdr_error());
            atomic_store(&p->stopped, true);
        }
        pthread_cond_broadcast(&p->changed);
    }
    pthread_mutex_unlock(&p->order);
}

static void report_progress(struct pipeline *p)
{
    enum { INTERVAL = 250000000 };
    if (!p->job->reading->options->report || !pthread_equal(p->caller, pthread_self()))
        return;
    int64_t now = sdr_clock_now();
    if (now - p->told < INTERVAL)
        return;
    p->told = now;
    sdr_read_progress(p->job, p->taken);
}

static enum sdr_status work(void *context, size_t index)
{
    struct pipeline *p = context;
    struct slot *slot;
    (void)index;
    while (!atomic_load(&p->stopped) && (slot = next_chunk(p))) {
        if (slot->status == SDR_OK) {
            enum sdr_status status = parse(p, slot);
            if (slot->piece.status == SDR_OK) /* else the error is reported with its line */
                slot->status = status;
        }
        if (slot->status != SDR_OK)
            snprintf(slot->sentence, sizeof slot->sentence, "%s", sdr_error());
        pass_in_order(p, slot);
        report_progress(p);
    }
    return SDR_OK;
}

/* At most one thread per chunk. */
static int threads_for(const struct sdr_read_job *job)
{
    enum { COMPRESSION = 8 };
    uint64_t wanted =
        job->reading->options->threads > 0 ? (uint64_t)job->reading->options->threads : 1;
    if (job->total && job->total / job->chunk * COMPRESSION + 1 < wanted)
        wanted = job->total / job->chunk * COMPRESSION + 1;
    return wanted < THREADS_MOST ? (int)wanted : THREADS_MOST;
}

enum sdr_status sdr_pipeline_run(struct sdr_read_job *job)
{
    struct pipeline *p;
    int threads = threads_for(job);
    enum sdr_status status = sdr_allocate(&p, 1, sizeof *p, "reading");
    if (status != SDR_OK)
        return status;
    p->job = job;
    p->caller = pthread_self();
    p->source = job->source;
    job->source = NULL;
    p->first = true;
    p->told = job->started;
    pthread_mutex_init(&p->reading, NULL);
    pthread_mutex_init(&p->order, NULL);
    pthread_cond_init(&p->changed, NULL);
    p->slots = threads > 1 ? 2 * (size_t)threads : 1;
    SDR_CHECK(sdr_allocate(&p->slot, p->slots, sizeof *p->slot, "reading"));
    SDR_CHECK(sdr_parallel(threads, (size_t)threads, work, p));
    if (p->status != SDR_OK)
        status = sdr_fail(p->status, "%s", p->sentence);
cleanup:
    for (size_t i = 0; p->slot && i < p->slots; i++) {
        sdr_release(p->slot[i].bytes);
        sdr_piece_free(&p->slot[i].piece);
    }
    sdr_release(p->slot);
    sdr_release(p->carry);
    sdr_source_close(p->source);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->order);
    pthread_mutex_destroy(&p->reading);
    sdr_release(p);
    return status;
}
