/* sounder eval: loss and metrics of a model on labelled data. */
#include "cli.h"

static enum sdr_status run(struct cli_arguments *arguments)
{
    struct sdr_model *model = NULL;
    struct sdr_data *data = NULL;
    char *json = NULL;
    enum sdr_status status;
    cli_progress_start(arguments);
    cli_signals_start();
    CLI_CHECK(cli_model_load(arguments, &model));
    CLI_CHECK(sdr_data_open(arguments->options, arguments->paths + 1, arguments->path_count - 1,
                            model, &data));
    CLI_CHECK(sdr_model_evaluate(model, data, &json));
    cli_progress_clear();
    if (arguments->given & CLI_JSON)
        cli_print_json(json);
    else
        CLI_CHECK(cli_print_table(json));
cleanup:
    sdr_string_free(json);
    sdr_data_destroy(data);
    sdr_model_destroy(model);
    return status;
}

const struct cli_command cli_eval = {
    .name = "eval",
    .positional = "MODEL DATA...",
    .summary = "measure loss and accuracy of a model on labelled data",
    .description =
        "Reads DATA the way MODEL was trained and prints the loss and the metrics that fit the\n"
        "model: for classes the accuracy, and as its baseline that of always answering the most\n"
        "frequent one; errors and R2 for numbers.\n",
    .example = "  sounder eval a9a.model a9a.t\n"
               "  sounder eval a9a.model a9a.t --json\n",
    .least = 2,
    .most = SIZE_MAX,
    .takes = CLI_HELP | CLI_JSON | CLI_QUIET | CLI_CONFIG | CLI_PRINT_CONFIG,
    .run = run,
};
