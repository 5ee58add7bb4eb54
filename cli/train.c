/* sounder train: data in, model out, results on standard output. */
#include "cli.h"

#include <string.h>

/* ---- results ---- */

static double number_of(const json_t *summary, const char *key)
{
    return json_number_value(json_object_get(summary, key));
}

static long long count_of(const json_t *summary, const char *key)
{
    return (long long)number_of(summary, key);
}

/* Prints the numbers whose keys start with prefix: "loss 0.3251  accuracy 0.8489". */
static void print_metrics(json_t *summary, const char *label, const char *prefix)
{
    const char *key;
    json_t *value;
    size_t length = strlen(prefix), printed = 0;
    json_object_foreach(summary, key, value)
    {
        if (strncmp(key, prefix, length) != 0 || !json_is_number(value))
            continue;
        printf("%-9s", printed++ ? "" : label);
        printf("%s %.6g\n", key + length, json_number_value(value));
    }
}

static enum sdr_status print_results(const char *text, const char *written, const char *directory)
{
    json_t *summary;
    char rate[CLI_NUMBER_TEXT];
    CLI_TRY(cli_json_parse(text, &summary));
    double epochs = number_of(summary, "epochs"), seconds = number_of(summary, "seconds_train");
    long long rows = count_of(summary, "rows"), features = count_of(summary, "features");
    printf("%-9s%lld row%s, %lld feature%s, %lld nonzeros, read in %.2f s\n", "data", rows,
           rows == 1 ? "" : "s", features, features == 1 ? "" : "s", count_of(summary, "nonzeros"),
           number_of(summary, "seconds_read"));
    bool simulated = json_object_get(summary, "events") != NULL;
    printf("%-9s%.10g epoch%s, %lld updates in %.2f %ss", "trained", epochs, epochs == 1 ? "" : "s",
           count_of(summary, "updates"), seconds, simulated ? "virtual " : "");
    if (seconds > 0 && !simulated)
        printf(", %s rows/s", cli_count_text(rate, number_of(summary, "rows") * epochs / seconds));
    /* all rows in every update: by threads, not workers */
    bool full = json_object_get(summary, "threads") != NULL;
    long long count = count_of(summary, full ? "threads" : "workers");
    if (count > 0)
        printf(", %lld %s%s", count, full ? "thread" : "worker", count == 1 ? "" : "s");
    if (count_of(summary, "workers_lost") > 0)
        printf(", %lld of them lost", count_of(summary, "workers_lost"));
    putchar('\n');
    const char *stopped = json_string_value(json_object_get(summary, "stopped"));
    if (stopped && strcmp(stopped, "all epochs done") != 0)
        printf("%-9s%s\n", "stopped", stopped);
    if (json_object_get(summary, "best_epoch"))
        printf("%-9sof epoch %lld, the best\n", "kept", count_of(summary, "best_epoch"));
    print_metrics(summary, "train", "train_");
    if (json_object_get(summary, "penalty"))
        printf("%-9sobjective %.6g, penalty included; %lld weights are not zero\n", "",
               number_of(summary, "objective"), count_of(summary, "weights_nonzero"));
    print_metrics(summary, "valid", "valid_");
    if (json_object_get(summary, "replay_difference"))
        printf(
            "%-9sweights differ by %.2g (relative) from those of the race, whose loss was %.6g\n",
            "replayed", number_of(summary, "replay_difference"),
            number_of(summary, "recorded_loss"));
    const char *hash = json_string_value(json_object_get(summary, "model_hash"));
    printf("%-9s", "model");
    if (written)
        cli_print_clean(stdout, written);
    else if (directory && directory[0]) {
        cli_print_clean(stdout, directory);
        fputs("/model.safetensors", stdout);
    } else
        fputs("not written (--out FILE keeps it)", stdout);
    printf("%s%s\n", hash ? ", hash " : "", hash ? hash : "");
    json_decref(summary);
    return SDR_OK;
}

/* ---- the run ---- */

static enum sdr_status save_model(const struct sdr_run *run, const char *path)
{
    struct sdr_model *model = NULL;
    CLI_TRY(sdr_run_model(run, &model));
    enum sdr_status status = sdr_model_save(model, path);
    sdr_model_destroy(model);
    return status;
}

/* Training ended early: saves the model trained so far (`what`). Returns status, with the library's
   message and what happened to the model. */
static enum sdr_status keep_what_there_is(const struct sdr_run *run, const char *out,
                                          enum sdr_status status, const char *what)
{
    /* A copy: the library's next failure overwrites the message. */
    char reason[1024];
    snprintf(reason, sizeof reason, "%s", cli_sentence(status));
    if (!out)
        return status;
    if (save_model(run, out) == SDR_OK)
        return cli_fail(status, "%s; %s was written to '%s'", reason, what, out);
    return cli_fail(status, "%s; no model was written", reason);
}

static enum sdr_status print_summary(const struct cli_arguments *arguments,
                                     const struct sdr_run *run)
{
    char *summary = NULL;
    CLI_TRY(sdr_run_summary(run, &summary));
    enum sdr_status status = SDR_OK;
    if (arguments->given & CLI_JSON)
        cli_print_json(summary);
    else
        status = print_results(summary, arguments->out, sdr_options_get(arguments->options, "run"));
    sdr_string_free(summary);
    return status;
}

/* Saves to --out; if that fails the message says where else the model is. */
static enum sdr_status save_elsewhere(const struct cli_arguments *arguments,
                                      const struct sdr_run *run)
{
    char reason[1024];
    enum sdr_status status = save_model(run, arguments->out);
    const char *directory = sdr_options_get(arguments->options, "run");
    if (status == SDR_OK || !directory || !directory[0])
        return status;
    snprintf(reason, sizeof reason, "%s", cli_sentence(status));
    return cli_fail(status, "%s; the model is in '%s/model.safetensors'", reason, directory);
}

static enum sdr_status train_on(const struct cli_arguments *arguments, struct sdr_run *run,
                                int process)
{
    cli_signals_run(run);
    enum sdr_status status = sdr_run_train(run);
    cli_signals_run(NULL);
    cli_progress_clear();
    if (status == SDR_DIVERGED)
        return keep_what_there_is(run, arguments->out, status, "the last good model");
    if (status == SDR_RUNTIME && cli_signals_stopped())
        return keep_what_there_is(run, arguments->out, status, "the model so far");
    if (status != SDR_OK && status != SDR_PREEMPTED && sdr_run_has_model(run))
        return keep_what_there_is(run, arguments->out, status, "the model");
    CLI_TRY(status);
    if (process > 0)
        return SDR_OK;
    /* The model first: standard output may be closed. */
    if (arguments->out)
        CLI_TRY(save_elsewhere(arguments, run));
    return print_summary(arguments, run);
}

/* Checks output files before hours of work. */
static enum sdr_status check_files(const struct cli_arguments *arguments)
{
    CLI_TRY(cli_arguments_check_input(arguments));
    const char *record = sdr_options_get(arguments->options, "record");
    if (record && *record) {
        CLI_TRY(cli_output_check_all("--record", record, arguments, arguments->path_count, true));
        if (arguments->out && strcmp(record, arguments->out) == 0)
            return cli_fail(SDR_USAGE, "--record and --out are the same file");
    }
    if (!arguments->out)
        return SDR_OK;
    return cli_output_check_all("--out", arguments->out, arguments, arguments->path_count, true);
}

static enum sdr_status run(struct cli_arguments *arguments)
{
    struct sdr_data *train = NULL, *valid = NULL;
    struct sdr_run *training = NULL;
    enum sdr_status status;
    CLI_TRY(check_files(arguments));
    CLI_TRY(cli_job_start(arguments));
    CLI_CHECK(
        sdr_data_open(arguments->options, arguments->paths, arguments->path_count, NULL, &train));
    CLI_CHECK(sdr_data_open_valid(arguments->options, train, &valid));
    CLI_CHECK(sdr_run_create(arguments->options, train, valid, &training));
    if (cli_signals_stopped())
        CLI_CHECK(
            cli_fail(SDR_PREEMPTED, "stopped by a signal while preparing; nothing was written"));
    status = train_on(arguments, training, cli_process);
cleanup:
    cli_signals_stop();
    sdr_run_destroy(training);
    sdr_data_destroy(valid);
    sdr_data_destroy(train);
    return status;
}

const struct cli_command cli_train = {
    .name = "train",
    .positional = "DATA...",
    .summary = "train a model on files, and tell how good it is",
    .description =
        "Trains a model on DATA: paths, glob patterns, or '-' for standard input. The format is\n"
        "found from the name or the content unless --format names it. Without other options the\n"
        "kind of model follows from the labels. Results are printed on standard output, progress "
        "on\n"
        "standard error. A plug-in is written NAME, NAME:VALUE or NAME:KEY=VALUE,KEY=VALUE, as in\n"
        "--optimizer adam:beta1=0.8; 'sounder list' shows all.\n"
        "SIGUSR1 writes a checkpoint into the --run directory; SIGTERM and SIGINT do so and stop\n"
        "(exit code 75; go on with --resume). Before training has begun they stop with exit code "
        "75\n"
        "and nothing written: run again. A second SIGINT ends the program at once.\n",
    .example = "  sounder train a9a --valid a9a.t --epochs 20 --out a9a.model\n"
               "  sounder train 'part-*.csv.gz' --label price --run runs/1 --json\n",
    .out_help = "write the model here, a safetensors file",
    .least = 1,
    .most = SIZE_MAX,
    .takes = CLI_HELP | CLI_JSON | CLI_QUIET | CLI_CONFIG | CLI_PRINT_CONFIG | CLI_OUT,
    .run = run,
};
