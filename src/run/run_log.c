/* Reports to the caller; metrics.jsonl and status.json in the run directory. */
#define _GNU_SOURCE /* flock */
#include "run/run_log.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "run/checkpoint.h"
#include "run/evaluate.h"
#include "run/run.h"
#include "team/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

enum { TICK_NS = 200000000 }; /* five reports a second */
#define STATUS_NS INT64_C(1000000000)

double sdr_run_seconds(const struct sdr_run *run)
{
    if (run->network && run->use.transport->simulated)
        return run->progress.seconds_before + (double)run->network->lead.ended * 1e-9;
    return run->progress.seconds_before + sdr_clock_since(run->log.started + run->log.paused);
}

static void set_number(json_t *object, const char *key, double value)
{
    if (isfinite(value))
        sdr_json_set(object, key, json_real(value));
}

/* ---- progress, also while workers train ---- */
static uint64_t rows_of(const struct sdr_run *run)
{
    return run->progress.rows_done + sdr_team_dealt(run);
}

static uint64_t updates_of(const struct sdr_run *run)
{
    uint64_t dealt = sdr_team_dealt(run);
    return dealt ? run->shared.team_version + dealt / run->pace.update_rows
                 : run->parameters.version;
}

/* The mean loss of this epoch so far, or of the last one. Of losses not collected yet, only the
   first worker's count: it is the one that reports. */
static double loss_of(const struct sdr_run *run)
{
    struct sdr_loss_sum loss_sum = run->progress.loss_sum;
    if (!run->network && run->shared.node[0].loss_sum != &run->progress.loss_sum &&
        sdr_team_dealt(run)) {
        loss_sum.loss += run->shared.node[0].loss_sum->loss;
        loss_sum.weight += run->shared.node[0].loss_sum->weight;
    }
    return loss_sum.weight > 0 ? loss_sum.loss / loss_sum.weight : run->progress.last_epoch_loss;
}

/* One line of metrics, or the content of status.json. */
static enum sdr_status print_state(const struct sdr_run *run, const char *state, double objective,
                                   bool line, struct sdr_text *out)
{
    char *text;
    json_t *object = sdr_json_begin(
        json_pack("{s:s, s:I, s:I, s:I, s:I}", "state", state, "epoch",
                  (json_int_t)run->progress.epoch, "epochs", (json_int_t)run->pace.epochs, "rows",
                  (json_int_t)rows_of(run), "updates", (json_int_t)updates_of(run)));
    double loss = loss_of(run);
    set_number(object, "seconds", sdr_run_seconds(run));
    set_number(object, "running_loss", loss);
    if (run->result.model) /* trained: figures of the final weights, as in the results */
        sdr_evaluation_json(&run->result.train, run->use.kind, "train_", object);
    set_number(object, "objective", objective);
    if (run->network && run->network->lead.alive < run->workers)
        sdr_json_set(object, "workers_lost", json_integer(run->workers - run->network->lead.alive));
    if (run->result.valid_known)
        sdr_evaluation_json(&run->result.valid, run->use.kind, "valid_", object);
    if (line && run->network)
        sdr_ledger_interval(&run->network->lead.ledger, object);
    SDR_TRY(sdr_json_print(object, JSON_COMPACT | JSON_REAL_PRECISION(line ? 9 : 17), &text));
    size_t before = out->length;
    sdr_text_add(out, "%s\n", text);
    sdr_string_free(text);
    if (!out->failed)
        return SDR_OK;
    out->failed = false; /* earlier lines are kept */
    out->length = before;
    return sdr_fail(SDR_RUNTIME, "out of memory: the state of the run");
}

/* Notes why a file is missing in the run directory; the first reason of several. */
static void miss(struct sdr_run *run)
{
    if (!run->log.missing[0])
        snprintf(run->log.missing, sizeof run->log.missing, "%s", sdr_error());
}

/* Lines that could not be written are kept for the next attempt. */
static enum sdr_status put_lines(struct sdr_run *run)
{
    struct sdr_text *lines = &run->log.lines;
    char *path;
    if (!lines->length)
        return SDR_OK;
    SDR_TRY(sdr_path_join(run->options.settings.run, "metrics.jsonl", &path));
    enum sdr_status status = sdr_file_append(path, lines->bytes, lines->length);
    sdr_release(path);
    if (status == SDR_OK)
        sdr_text_free(lines);
    return status;
}

static enum sdr_status put_line(struct sdr_run *run, const char *state, double objective)
{
    if (!run->options.settings.run)
        return SDR_OK;
    enum sdr_status status = print_state(run, state, objective, true, &run->log.lines);
    if (status != SDR_OK) {
        miss(run);
        return status;
    }
    return put_lines(run);
}

static enum sdr_status put_state(struct sdr_run *run, const char *state, double objective)
{
    const char *folder = run->options.settings.run;
    char *path = NULL;
    if (!folder)
        return SDR_OK;
    struct sdr_text out = {0};
    enum sdr_status status = print_state(run, state, objective, false, &out);
    if (status == SDR_OK)
        status = sdr_path_join(folder, "status.json", &path);
    if (status == SDR_OK)
        status = sdr_file_put(path, out.bytes, out.length);
    sdr_release(path);
    sdr_text_free(&out);
    return status;
}

/* A failure to log must not end the run: a full disk is reported once and retried. */
static void tolerate(struct sdr_run *run, enum sdr_status status)
{
    if (status != SDR_OK && !run->log.trouble)
        sdr_note(&run->options, "%s; training goes on", sdr_error());
    run->log.trouble = status != SDR_OK;
}

/* 'sounder inspect' holds the lock for a moment; a run holds it until it ends. */
static bool take_lock(int lock)
{
    enum { TRIES = 10 };
    const struct timespec moment = {.tv_nsec = 10000000};
    for (int i = 0; i < TRIES; i++) {
        if (flock(lock, LOCK_EX | LOCK_NB) == 0)
            return true;
        if (errno != EWOULDBLOCK)
            return false;
        nanosleep(&moment, NULL);
    }
    errno = EWOULDBLOCK;
    return false;
}

/* One run per folder: two would remove each other's checkpoints. */
static enum sdr_status lock_folder(struct sdr_run *run)
{
    const char *folder = run->options.settings.run;
    char *path;
    SDR_TRY(sdr_folder_make(folder));
    SDR_TRY(sdr_path_join(folder, "lock", &path));
    run->log.lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    enum sdr_status status = SDR_OK;
    if (run->log.lock < 0)
        status = sdr_fail_errno("cannot write '%s'", path);
    else if (!take_lock(run->log.lock))
        status = errno == EWOULDBLOCK
                     ? sdr_fail(SDR_RUNTIME, "another run is using the folder '%s'", folder)
                     : sdr_fail_errno("cannot lock '%s'", path);
    sdr_release(path);
    return status;
}

static enum sdr_status write_config(struct sdr_run *run)
{
    char *text = NULL, *path = NULL;
    enum sdr_status status = sdr_options_print(&run->options, &text);
    if (status == SDR_OK)
        status = sdr_path_join(run->options.settings.run, "config", &path);
    if (status == SDR_OK)
        status = sdr_file_write(path, text, strlen(text));
    sdr_release(path);
    sdr_release(text);
    return status;
}

/* Checkpoints by updates are due at multiples of their number. */
static void plan_checkpoint(struct sdr_run *run)
{
    uint64_t every = run->log.checkpoint_updates;
    if (every)
        run->log.next_checkpoint_update = (run->parameters.version / every + 1) * every;
}

enum sdr_status sdr_log_open(struct sdr_run *run)
{
    const struct sdr_settings *s = &run->options.settings;
    run->log.tick = sdr_clock_now() + TICK_NS;
    if (!s->run)
        return SDR_OK;
    sdr_parse_every(s->checkpoint_every, &run->log.checkpoint_seconds,
                    &run->log.checkpoint_updates);
    run->log.next_checkpoint_time = sdr_clock_now() + (int64_t)(run->log.checkpoint_seconds * 1e9);
    if (s->resume && !sdr_checkpoint_any(s->run))
        return sdr_fail(SDR_RUNTIME,
                        "there is no checkpoint in '%s' to go on from: begin without --resume",
                        s->run);
    SDR_TRY(lock_folder(run));
    sdr_checkpoint_tidy(s->run);
    if (s->resume)
        SDR_TRY(sdr_checkpoint_resume(run));
    else if (sdr_checkpoint_any(s->run))
        return sdr_fail(SDR_USAGE,
                        "the folder '%s' holds a run: go on with --resume, or give another folder",
                        s->run);
    plan_checkpoint(run);
    SDR_TRY(write_config(run));
    tolerate(run, put_state(run, "training", NAN));
    return SDR_OK;
}

void sdr_log_release(struct sdr_run *run)
{
    if (run->log.lock > 0)
        close(run->log.lock);
    sdr_text_free(&run->log.lines);
}

static struct sdr_report report_of(const struct sdr_run *run, enum sdr_report_kind kind)
{
    uint64_t rows = run->set.train_rows.count, total;
    if (__builtin_mul_overflow(rows, run->pace.epochs, &total))
        total = UINT64_MAX;
    uint64_t updates = run->options.settings.updates;
    double seconds = sdr_run_seconds(run);
    if (updates) { /* whichever limit comes first */
        double rows_each = run->use.strategy->full_batch ? rows : run->pace.update_rows;
        double limit = (double)updates * rows_each;
        total = limit < (double)total ? (uint64_t)limit : total;
    }
    uint64_t done = rows_of(run);
    bool simulated = run->network && run->use.transport->simulated;
    double real = simulated ? sdr_clock_since(run->log.started + run->log.paused) : seconds;
    double rate = real > 0 ? (double)done / real : 0;
    return (struct sdr_report){
        .kind = kind,
        .done = done,
        .total = total,
        .rows = done,
        .updates = updates_of(run),
        .epoch = run->progress.epoch,
        .epochs = run->pace.epochs,
        .seconds = seconds,
        .virtual_time = simulated,
        .rate = rate,
        .eta = rate > 0 && total > done ? (double)(total - done) / rate : 0,
        .running_loss = loss_of(run),
        .objective = NAN,
        .valid_loss = run->result.valid_known ? sdr_evaluation_loss(&run->result.valid) : NAN,
        .metric = !run->result.valid_known || run->use.kind->truth == SDR_UNSUPERVISED ? NULL
                  : run->use.kind->truth == SDR_REGRESSION                             ? "r2"
                                                                                       : "accuracy",
        .valid_metric = run->result.valid_known
                            ? sdr_evaluation_metric(&run->result.valid, run->use.kind->truth)
                            : NAN};
}

void sdr_log_checkpoint(struct sdr_run *run)
{
    if (run->options.settings.run)
        tolerate(run, sdr_checkpoint_write(run));
}

bool sdr_log_checkpoint_due(const struct sdr_run *run)
{
    return (run->log.checkpoint_seconds > 0 &&
            sdr_clock_about() >= run->log.next_checkpoint_time) ||
           (run->log.checkpoint_updates && updates_of(run) >= run->log.next_checkpoint_update);
}

static enum sdr_status checkpoint_if_due(struct sdr_run *run)
{
    if (!sdr_log_checkpoint_due(run))
        return SDR_OK;
    sdr_log_checkpoint(run);
    run->log.next_checkpoint_time = sdr_clock_now() + (int64_t)(run->log.checkpoint_seconds * 1e9);
    plan_checkpoint(run);
    return SDR_OK;
}

enum sdr_status sdr_log_tick(struct sdr_run *run)
{
    SDR_TRY(checkpoint_if_due(run));
    return sdr_log_progress(run);
}

enum sdr_status sdr_log_progress(struct sdr_run *run)
{
    int64_t now = sdr_clock_about();
    if (now < run->log.tick)
        return SDR_OK;
    run->log.tick = now + TICK_NS;
    if (run->options.report) {
        struct sdr_report report = report_of(run, SDR_REPORT_PROGRESS);
        run->options.report(run->options.report_context, &report);
    }
    if (now >= run->log.next_status) {
        run->log.next_status = now + STATUS_NS;
        tolerate(run, put_state(run, "training", NAN));
    }
    return SDR_OK;
}

enum sdr_status sdr_log_epoch(struct sdr_run *run, double objective)
{
    if (run->options.report) {
        struct sdr_report report = report_of(run, SDR_REPORT_EPOCH);
        report.objective = objective;
        run->options.report(run->options.report_context, &report);
    }
    tolerate(run, put_line(run, "training", objective));
    return checkpoint_if_due(run);
}

void sdr_log_point(struct sdr_run *run, double objective)
{
    if (run->options.report) {
        struct sdr_report report = report_of(run, SDR_REPORT_POINT);
        report.objective = objective;
        run->options.report(run->options.report_context, &report);
    }
    tolerate(run, put_line(run, "point", objective));
}

void sdr_log_last_checkpoint(struct sdr_run *run)
{
    if (run->options.settings.run && sdr_checkpoint_write(run) != SDR_OK)
        miss(run);
}

void sdr_log_model(struct sdr_run *run)
{
    char *path;
    if (!run->options.settings.run)
        return;
    enum sdr_status status = sdr_path_join(run->options.settings.run, "model.safetensors", &path);
    if (status == SDR_OK)
        status = sdr_model_save(run->result.model, path);
    sdr_release(path);
    if (status != SDR_OK)
        miss(run);
}

void sdr_log_close(struct sdr_run *run, const char *state)
{
    char sentence[1024]; /* of the failure that ended the run, if any */
    snprintf(sentence, sizeof sentence, "%s", sdr_error());
    if (put_lines(run) != SDR_OK)
        miss(run);
    if (put_state(run, state, run->result.objective) != SDR_OK)
        miss(run);
    (void)sdr_fail(SDR_OK, "%s", sentence);
}
