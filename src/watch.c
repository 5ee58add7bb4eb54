/* What others see of a run: reports to the caller, metrics.jsonl and status.json in the run
 * directory. */
#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TICK_NS = 200000000 }; /* five reports a second */

double sdr_run_seconds(const struct sdr_run *run)
{
    return run->seconds_before + sdr_clock_since(run->started + run->paused);
}

static void set_number(json_t *object, const char *key, double value)
{
    if (isfinite(value))
        json_object_set_new(object, key, json_real(value));
}

/* One line of metrics, or the content of status.json. */
static char *print_state(const struct sdr_run *run, const char *state, double objective)
{
    json_t *object =
        json_pack("{s:s, s:I, s:I, s:I, s:I}", "state", state, "epoch", (json_int_t)run->epoch,
                  "epochs", (json_int_t)run->epochs, "rows", (json_int_t)run->rows_done, "updates",
                  (json_int_t)run->parameters.version);
    double loss = run->weight_sum > 0 ? run->loss_sum / run->weight_sum : run->last_epoch_loss;
    set_number(object, "seconds", sdr_run_seconds(run));
    set_number(object, "train_loss", loss);
    set_number(object, "objective", objective);
    if (run->valid && run->epoch)
        sdr_evaluation_json(&run->valid_result, run->kind->task, "valid_", object);
    char *text = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(9));
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
    text = print_state(run, state, objective);
    struct sdr_text out = {0};
    sdr_text_add(&out, "%s\n", text ? text : "{}");
    free(text);
    enum sdr_status status = sdr_path_join(folder, line ? "metrics.jsonl" : "status.json", &path);
    if (status == SDR_OK && !out.failed)
        status = line ? sdr_file_append(path, out.bytes, out.length)
                      : sdr_file_write(path, out.bytes, out.length);
    sdr_release(path);
    sdr_text_free(&out);
    return status;
}

enum sdr_status sdr_watch_open(struct sdr_run *run)
{
    const struct sdr_settings *s = &run->options.settings;
    char *text = NULL, *path = NULL;
    double value;
    const char *every = s->checkpoint_every, *end = every + strlen(every);
    const char *unit = sdr_scan_double(every, end, &value);
    if (!unit || value <= 0 || (strcmp(unit, "s") != 0 && strcmp(unit, "u") != 0))
        return sdr_fail(SDR_USAGE,
                        "--checkpoint-every takes seconds or updates such as 60s or 10000u, "
                        "not '%s'",
                        every);
    run->tick = sdr_clock_now() + TICK_NS;
    if (!s->run)
        return SDR_OK;
    if (*unit == 's')
        run->checkpoint_seconds = value;
    else
        run->checkpoint_updates = value < 1 ? 1 : (uint64_t)value;
    run->next_checkpoint_time = sdr_clock_now() + (int64_t)(value * 1e9);
    run->next_checkpoint_update = run->checkpoint_updates;
    SDR_TRY(sdr_folder_make(s->run));
    enum sdr_status status = sdr_options_print(&run->options, &text);
    if (status == SDR_OK)
        status = sdr_path_join(s->run, "config", &path);
    if (status == SDR_OK)
        status = sdr_file_write(path, text, strlen(text));
    sdr_release(path);
    sdr_release(text);
    return status;
}

static struct sdr_report report_of(const struct sdr_run *run, enum sdr_report_kind kind)
{
    uint64_t rows = run->train_rows.count, total = rows * run->epochs;
    uint64_t updates = run->options.settings.updates;
    double seconds = sdr_run_seconds(run);
    if (updates) { /* whichever limit comes first */
        double rows_each = run->strategy->full_batch ? rows : run->options.settings.batch;
        double limit = (double)updates * rows_each;
        total = limit < (double)total ? (uint64_t)limit : total;
    }
    double rate = seconds > 0 ? (double)run->rows_done / seconds : 0;
    return (struct sdr_report){
        .kind = kind,
        .done = run->rows_done,
        .total = total,
        .rows = run->rows_done,
        .updates = run->parameters.version,
        .epoch = run->epoch,
        .epochs = run->epochs,
        .seconds = seconds,
        .rate = rate,
        .eta = rate > 0 && total > run->rows_done ? (double)(total - run->rows_done) / rate : 0,
        .train_loss = run->weight_sum > 0 ? run->loss_sum / run->weight_sum : run->last_epoch_loss,
        .objective = NAN,
        .valid_loss = run->valid && run->epoch ? sdr_evaluation_loss(&run->valid_result) : NAN,
        .metric = !run->valid || !run->epoch          ? NULL
                  : run->kind->task == SDR_REGRESSION ? "r2"
                                                      : "accuracy",
        .valid_metric = run->valid && run->epoch
                            ? sdr_evaluation_metric(&run->valid_result, run->kind->task)
                            : NAN};
}

static enum sdr_status checkpoint_if_due(struct sdr_run *run, int64_t now)
{
    bool due = (run->checkpoint_seconds > 0 && now >= run->next_checkpoint_time) ||
               (run->checkpoint_updates && run->parameters.version >= run->next_checkpoint_update);
    if (!due)
        return SDR_OK;
    SDR_TRY(sdr_checkpoint_write(run));
    run->next_checkpoint_time = sdr_clock_now() + (int64_t)(run->checkpoint_seconds * 1e9);
    while (run->checkpoint_updates && run->next_checkpoint_update <= run->parameters.version)
        run->next_checkpoint_update += run->checkpoint_updates;
    return SDR_OK;
}

enum sdr_status sdr_watch_tick(struct sdr_run *run)
{
    int64_t now = sdr_clock_now();
    SDR_TRY(checkpoint_if_due(run, now));
    if (now < run->tick)
        return SDR_OK;
    run->tick = now + TICK_NS;
    if (run->options.report) {
        struct sdr_report report = report_of(run, SDR_REPORT_PROGRESS);
        run->options.report(run->options.report_context, &report);
    }
    return put_state(run, "training", NAN, false);
}

enum sdr_status sdr_watch_epoch(struct sdr_run *run, double objective)
{
    if (run->options.report) {
        struct sdr_report report = report_of(run, SDR_REPORT_EPOCH);
        report.objective = objective;
        run->options.report(run->options.report_context, &report);
    }
    SDR_TRY(put_state(run, "training", objective, true));
    return checkpoint_if_due(run, sdr_clock_now());
}

enum sdr_status sdr_watch_close(struct sdr_run *run, const char *state)
{
    return put_state(run, state, run->objective, false);
}
