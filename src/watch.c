/* What others see of a run: reports to the caller, metrics.jsonl and status.json in the run
 * directory. */
#define _GNU_SOURCE /* flock */
#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "run.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { TICK_NS = 200000000 }; /* five reports a second */
#define STATUS_NS INT64_C(1000000000)

double sdr_run_seconds(const struct sdr_run *run)
{
    if (run->network && run->transport->simulated)
        return run->seconds_before + (double)run->network->ended * 1e-9;
    return run->seconds_before + sdr_clock_since(run->started + run->paused);
}

static void set_number(json_t *object, const char *key, double value)
{
    if (isfinite(value))
        json_object_set_new(object, key, json_real(value));
}

/* ---- where the run stands, also while several workers are under way ---- */
static uint64_t rows_of(const struct sdr_run *run)
{
    return run->rows_done + sdr_team_dealt(run);
}

static uint64_t updates_of(const struct sdr_run *run)
{
    uint64_t dealt = sdr_team_dealt(run);
    return dealt ? run->team_version + dealt / run->update_rows : run->parameters.version;
}

/* The mean loss of this epoch so far, or of the one before. Of losses that workers have not handed
   in yet only the first worker's own count: it is the one who asks. */
static double loss_of(const struct sdr_run *run)
{
    struct sdr_tally tally = run->tally;
    if (!run->network && run->node[0].tally != &run->tally && sdr_team_dealt(run)) {
        tally.loss += run->node[0].tally->loss;
        tally.weight += run->node[0].tally->weight;
    }
    return tally.weight > 0 ? tally.loss / tally.weight : run->last_epoch_loss;
}

/* One line of metrics, or the content of status.json. */
static char *print_state(const struct sdr_run *run, const char *state, double objective, bool line)
{
    json_t *object = json_pack("{s:s, s:I, s:I, s:I, s:I}", "state", state, "epoch",
                               (json_int_t)run->epoch, "epochs", (json_int_t)run->epochs, "rows",
                               (json_int_t)rows_of(run), "updates", (json_int_t)updates_of(run));
    double loss = loss_of(run);
    set_number(object, "seconds", sdr_run_seconds(run));
    set_number(object, "running_loss", loss);
    if (run->model) /* trained: the figures of the final weights, as in the results */
        sdr_evaluation_json(&run->train_result, run->kind->task, "train_", object);
    set_number(object, "objective", objective);
    if (run->network && run->network->left < run->workers)
        json_object_set_new(object, "workers_lost",
                            json_integer(run->workers - run->network->left));
    if (run->valid_known)
        sdr_evaluation_json(&run->valid_result, run->kind->task, "valid_", object);
    if (line && run->network)
        sdr_ledger_interval(&run->network->ledger, object);
    char *text = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(line ? 9 : 17));
    json_decref(object);
    return text;
}

static enum sdr_status put_state(struct sdr_run *run, const char *state, double objective,
                                 bool line)
{
    const char *folder = run->options.settings.run;
    char *path = NULL, *text;
    if (!folder)
        return SDR_OK;
    text = print_state(run, state, objective, line);
    struct sdr_text out = {0};
    sdr_text_add(&out, "%s\n", text ? text : "{}");
    free(text);
    enum sdr_status status = sdr_path_join(folder, line ? "metrics.jsonl" : "status.json", &path);
    if (status == SDR_OK && !out.failed)
        status = line ? sdr_file_append(path, out.bytes, out.length)
                      : sdr_file_put(path, out.bytes, out.length);
    sdr_release(path);
    sdr_text_free(&out);
    return status;
}

/* One run a folder: two would remove each other's checkpoints. */
static enum sdr_status lock_folder(struct sdr_run *run)
{
    const char *folder = run->options.settings.run;
    char *path;
    SDR_TRY(sdr_folder_make(folder));
    SDR_TRY(sdr_path_join(folder, "lock", &path));
    run->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    enum sdr_status status = SDR_OK;
    if (run->lock < 0)
        status = sdr_fail_errno("cannot write '%s'", path);
    else if (flock(run->lock, LOCK_EX | LOCK_NB) != 0)
        status = sdr_fail(SDR_RUNTIME, "another run is using the folder '%s'", folder);
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

/* The next checkpoint that is due by updates comes at a multiple of their number. */
static void plan_checkpoint(struct sdr_run *run)
{
    uint64_t every = run->checkpoint_updates;
    if (every)
        run->next_checkpoint_update = (run->parameters.version / every + 1) * every;
}

enum sdr_status sdr_watch_open(struct sdr_run *run)
{
    const struct sdr_settings *s = &run->options.settings;
    run->tick = sdr_clock_now() + TICK_NS;
    if (!s->run)
        return SDR_OK;
    sdr_parse_every(s->checkpoint_every, &run->checkpoint_seconds, &run->checkpoint_updates);
    run->next_checkpoint_time = sdr_clock_now() + (int64_t)(run->checkpoint_seconds * 1e9);
    if (s->resume && !sdr_checkpoint_any(s->run))
        return sdr_fail(SDR_RUNTIME, "there is no checkpoint in '%s' to go on from", s->run);
    SDR_TRY(lock_folder(run));
    if (s->resume)
        SDR_TRY(sdr_checkpoint_resume(run));
    else if (sdr_checkpoint_any(s->run))
        return sdr_fail(SDR_USAGE,
                        "the folder '%s' holds a run: go on with --resume, or give another folder",
                        s->run);
    plan_checkpoint(run);
    return write_config(run);
}

void sdr_watch_release(struct sdr_run *run)
{
    if (run->lock > 0)
        close(run->lock);
}

static struct sdr_report report_of(const struct sdr_run *run, enum sdr_report_kind kind)
{
    uint64_t rows = run->train_rows.count, total;
    if (__builtin_mul_overflow(rows, run->epochs, &total))
        total = UINT64_MAX;
    uint64_t updates = run->options.settings.updates;
    double seconds = sdr_run_seconds(run);
    if (updates) { /* whichever limit comes first */
        double rows_each = run->strategy->full_batch ? rows : run->update_rows;
        double limit = (double)updates * rows_each;
        total = limit < (double)total ? (uint64_t)limit : total;
    }
    uint64_t done = rows_of(run);
    bool simulated = run->network && run->transport->simulated;
    double real = simulated ? sdr_clock_since(run->started + run->paused) : seconds;
    double rate = real > 0 ? (double)done / real : 0;
    return (struct sdr_report){
        .kind = kind,
        .done = done,
        .total = total,
        .rows = done,
        .updates = updates_of(run),
        .epoch = run->epoch,
        .epochs = run->epochs,
        .seconds = seconds,
        .virtual_time = simulated,
        .rate = rate,
        .eta = rate > 0 && total > done ? (double)(total - done) / rate : 0,
        .running_loss = loss_of(run),
        .objective = NAN,
        .valid_loss = run->valid_known ? sdr_evaluation_loss(&run->valid_result) : NAN,
        .metric = !run->valid_known || !sdr_has_truth(run->kind->task) ? NULL
                  : run->kind->task == SDR_REGRESSION                  ? "r2"
                                                                       : "accuracy",
        .valid_metric =
            run->valid_known ? sdr_evaluation_metric(&run->valid_result, run->kind->task) : NAN};
}

/* Watching must not end what is watched: a full disk is told once and tried again. */
static void tolerate(struct sdr_run *run, enum sdr_status status)
{
    if (status != SDR_OK && !run->trouble)
        sdr_note(&run->options, "%s; training goes on", sdr_error());
    run->trouble = status != SDR_OK;
}

bool sdr_watch_checkpoint_due(const struct sdr_run *run)
{
    return (run->checkpoint_seconds > 0 && sdr_clock_about() >= run->next_checkpoint_time) ||
           (run->checkpoint_updates && updates_of(run) >= run->next_checkpoint_update);
}

static enum sdr_status checkpoint_if_due(struct sdr_run *run)
{
    if (!sdr_watch_checkpoint_due(run))
        return SDR_OK;
    tolerate(run, sdr_checkpoint_write(run));
    run->next_checkpoint_time = sdr_clock_now() + (int64_t)(run->checkpoint_seconds * 1e9);
    plan_checkpoint(run);
    return SDR_OK;
}

enum sdr_status sdr_watch_tick(struct sdr_run *run)
{
    SDR_TRY(checkpoint_if_due(run));
    return sdr_watch_progress(run);
}

enum sdr_status sdr_watch_progress(struct sdr_run *run)
{
    int64_t now = sdr_clock_about();
    if (now < run->tick)
        return SDR_OK;
    run->tick = now + TICK_NS;
    if (run->options.report) {
        struct sdr_report report = report_of(run, SDR_REPORT_PROGRESS);
        run->options.report(run->options.report_context, &report);
    }
    if (now >= run->next_status) {
        run->next_status = now + STATUS_NS;
        tolerate(run, put_state(run, "training", NAN, false));
    }
    return SDR_OK;
}

enum sdr_status sdr_watch_epoch(struct sdr_run *run, double objective)
{
    if (run->options.report) {
        struct sdr_report report = report_of(run, SDR_REPORT_EPOCH);
        report.objective = objective;
        run->options.report(run->options.report_context, &report);
    }
    tolerate(run, put_state(run, "training", objective, true));
    return checkpoint_if_due(run);
}

void sdr_watch_point(struct sdr_run *run, double objective)
{
    if (run->options.report) {
        struct sdr_report report = report_of(run, SDR_REPORT_POINT);
        report.objective = objective;
        run->options.report(run->options.report_context, &report);
    }
    tolerate(run, put_state(run, "point", objective, true));
}

enum sdr_status sdr_watch_close(struct sdr_run *run, const char *state)
{
    tolerate(run, put_state(run, state, run->objective, false));
    return SDR_OK;
}
