/* sounder inspect: the contents of a model file, of data, or of a run's folder. */
#include "cli.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* By name too: a damaged model should be reported as a damaged model. */
static bool is_model(const char *path)
{
    static const char extension[] = ".safetensors";
    size_t length = strlen(path), tail = sizeof extension - 1;
    if (strcmp(path, "-") == 0)
        return false;
    return (length > tail && strcmp(path + length - tail, extension) == 0) ||
           cli_starts_like_model(path);
}

static enum sdr_status inspect_model(const struct cli_arguments *arguments, char **json)
{
    struct sdr_model *model;
    if (arguments->path_count > 1)
        return cli_fail(SDR_USAGE, "'%s' is a model; inspect takes one model at a time",
                        arguments->paths[0]);
    CLI_TRY(sdr_model_load(arguments->paths[0], &model));
    enum sdr_status status = sdr_model_inspect(model, json);
    sdr_model_destroy(model);
    return status;
}

static bool is_folder(const char *path)
{
    struct stat found;
    return stat(path, &found) == 0 && S_ISDIR(found.st_mode);
}

static void print_line(void *context, const char *text)
{
    (void)context;
    puts(text);
}

static enum sdr_status inspect_run(const struct cli_arguments *arguments, char **json)
{
    if (arguments->path_count > 1)
        return cli_fail(SDR_USAGE, "'%s' is a folder; inspect takes one run at a time",
                        arguments->paths[0]);
    return sdr_run_inspect(arguments->paths[0], json);
}

static enum sdr_status inspect_data(const struct cli_arguments *arguments, char **json)
{
    struct sdr_data *data;
    CLI_TRY(
        sdr_data_open(arguments->options, arguments->paths, arguments->path_count, NULL, &data));
    enum sdr_status status = arguments->given & CLI_SPARSITY ? sdr_data_sparsity(data, json)
                                                             : sdr_data_inspect(data, json);
    sdr_data_destroy(data);
    return status;
}

static enum sdr_status run(struct cli_arguments *arguments)
{
    char *json = NULL;
    cli_progress_start(arguments);
    cli_signals_start();
    if (arguments->given & CLI_LEDGER)
        return is_folder(arguments->paths[0])
                   ? sdr_run_ledger(arguments->paths[0], print_line, NULL)
                   : cli_fail(SDR_USAGE, "--ledger is of a run; '%s' is not the folder of one",
                              arguments->paths[0]);
    if ((arguments->given & CLI_SPARSITY) && is_model(arguments->paths[0]))
        return cli_fail(SDR_USAGE, "--sparsity is of data; '%s' is a model", arguments->paths[0]);
    CLI_TRY(is_folder(arguments->paths[0])  ? inspect_run(arguments, &json)
            : is_model(arguments->paths[0]) ? inspect_model(arguments, &json)
                                            : inspect_data(arguments, &json));
    cli_progress_clear();
    enum sdr_status status = SDR_OK;
    if (arguments->given & CLI_JSON)
        cli_print_json(json);
    else
        status = cli_print_table(json);
    sdr_string_free(json);
    return status;
}

const struct cli_command cli_inspect = {
    .name = "inspect",
    .positional = "PATH...",
    .summary = "tell what is in a model file, in data or in the folder of a run",
    .description =
        "PATH is a model, data as 'sounder train' takes it, or the folder of a run. Of a model it\n"
        "prints the schema, the blocks, the options of its training and the largest weights; of "
        "data\n"
        "the format, the size and the labels. With --sparsity of data: how much its rows "
        "conflict,\n"
        "which decides what several workers gain. Of a run: where it stands, how stale gradients "
        "were,\n"
        "and what every worker did: seconds computing, travelling (messages), waiting, and awaited "
        "by\n"
        "others; a straggler is named.\n",
    .example = "  sounder inspect a9a.model\n"
               "  sounder inspect a9a --json\n"
               "  sounder inspect runs/1\n",
    .least = 1,
    .most = SIZE_MAX,
    .takes =
        CLI_HELP | CLI_JSON | CLI_QUIET | CLI_CONFIG | CLI_PRINT_CONFIG | CLI_SPARSITY | CLI_LEDGER,
    .run = run,
};
