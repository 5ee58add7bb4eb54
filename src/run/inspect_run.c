/* Inspecting a run directory: progress of the run, and the ledger's figures of the workers. */
#define _GNU_SOURCE /* flock */
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "server/ledger.h"
#include "sounder/sounder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { STATUS_MOST = 1 << 20 };

static enum sdr_status read_status(const char *folder, json_t **object)
{
    char *path, *text = NULL;
    size_t length = 0;
    *object = NULL;
    SDR_TRY(sdr_path_join(folder, "status.json", &path));
    enum sdr_status status = SDR_OK;
    if (access(path, R_OK) != 0)
        status = sdr_fail(SDR_BAD_FILE, "'%s' is not the folder of a run: it has no status.json",
                          folder);
    if (status == SDR_OK)
        status = sdr_file_load(path, STATUS_MOST, &text, &length);
    if (status == SDR_OK)
        status = sdr_json_parse(text, length, object);
    if (status == SDR_BAD_FILE && text)
        status = sdr_fail_in(status, "'%s' is damaged: ", path);
    if (status == SDR_OK && !json_is_object(*object)) {
        status = sdr_fail(SDR_BAD_FILE, "'%s' is damaged: it is no object", path);
        json_decref(*object);
    }
    sdr_json_begin(*object);
    sdr_release(text);
    sdr_release(path);
    return status;
}

/* Whether no process trains in the folder. False also where that is unknown: on a file system
   without locks. */
static enum sdr_status lock_is_free(const char *folder, bool *is_free)
{
    char *path;
    SDR_TRY(sdr_path_join(folder, "lock", &path));
    int lock = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    *is_free = lock >= 0 ? flock(lock, LOCK_SH | LOCK_NB) == 0 : errno == ENOENT;
    if (lock >= 0)
        close(lock);
    sdr_release(path);
    return SDR_OK;
}

static bool is_training(const json_t *object)
{
    const char *state = json_string_value(json_object_get(object, "state"));
    return state && strcmp(state, "training") == 0;
}

/* The status of a run. A run that trains no more, but did not write how it ended, was interrupted:
   killed, or without room in its folder. */
static enum sdr_status read_state(const char *folder, json_t **object)
{
    bool is_free;
    SDR_TRY(read_status(folder, object));
    if (!is_training(*object))
        return SDR_OK;
    enum sdr_status status = lock_is_free(folder, &is_free);
    if (status == SDR_OK && !is_free)
        return SDR_OK;
    json_decref(*object);
    SDR_TRY(status);
    SDR_TRY(read_status(folder, object)); /* it may have ended meanwhile */
    if (is_training(*object))
        sdr_json_set(*object, "state", json_string("interrupted"));
    return SDR_OK;
}

static enum sdr_status find_ledger(const char *folder, bool *there)
{
    char *path;
    SDR_TRY(sdr_path_join(folder, "ledger", &path));
    *there = access(path, R_OK) == 0;
    sdr_release(path);
    return SDR_OK;
}

/* Sums over all workers, before the table of workers. */
static void add_sums(const struct sdr_ledger *ledger, json_t *object)
{
    struct sdr_ledger_sum all = {0};
    for (int w = 0; w < ledger->workers; w++) {
        all.applied += ledger->sum[w].applied;
        all.missed += ledger->sum[w].missed;
        all.dropped += ledger->sum[w].dropped;
        all.computing += ledger->sum[w].computing;
        all.travelling += ledger->sum[w].travelling;
        all.waiting += ledger->sum[w].waiting;
    }
    double time = all.computing + all.travelling + all.waiting;
    sdr_json_set(object, "gradients", json_integer((json_int_t)all.applied));
    sdr_json_set(object, "gradients_dropped", json_integer((json_int_t)all.dropped));
    if (all.applied)
        sdr_json_set(object, "staleness_mean", json_real((double)all.missed / (double)all.applied));
    if (time > 0) {
        sdr_json_set(object, "computing_share", json_real(all.computing / time));
        sdr_json_set(object, "travelling_share", json_real(all.travelling / time));
        sdr_json_set(object, "waiting_share", json_real(all.waiting / time));
    }
}

enum sdr_status sdr_run_inspect(const char *folder, char **json)
{
    json_t *object;
    struct sdr_ledger ledger = {0};
    SDR_TRY(read_state(folder, &object));
    bool there = false;
    enum sdr_status status = find_ledger(folder, &there);
    if (there) {
        status = sdr_ledger_read(folder, &ledger, NULL, NULL);
        if (status == SDR_OK) {
            add_sums(&ledger, object);
            sdr_ledger_json(&ledger, object);
        }
    }
    sdr_ledger_free(&ledger);
    if (status == SDR_OK)
        return sdr_json_text(object, json);
    json_decref(object);
    return status;
}

struct printing {
    sdr_text_function *print;
    void *context;
};

static void print_record(void *context, const struct sdr_ledger_record *r)
{
    const struct printing *to = context;
    char line[256], applied[24] = "";
    if (r->applied != SDR_LEDGER_DROPPED)
        snprintf(applied, sizeof applied, "%llu", (unsigned long long)r->applied);
    snprintf(line, sizeof line, "%u,%d,%llu,%s,%u,%.9g,%.9g,%.9g,%llu", r->worker, r->waited_for,
             (unsigned long long)r->read, applied, r->bytes, r->computing, r->travelling,
             r->waiting, (unsigned long long)r->batch);
    to->print(to->context, line);
}

enum sdr_status sdr_run_ledger(const char *folder, sdr_text_function *print, void *context)
{
    struct sdr_ledger ledger = {0};
    struct printing to = {print, context};
    bool there = false;
    SDR_TRY(find_ledger(folder, &there));
    if (!there)
        return sdr_fail(SDR_BAD_FILE, "there is no ledger in '%s': runs with servers have one",
                        folder);
    print(context, "worker,waited_for,read,applied,bytes,computing,travelling,waiting,batch");
    enum sdr_status status = sdr_ledger_read(folder, &ledger, print_record, &to);
    sdr_ledger_free(&ledger);
    return status;
}
