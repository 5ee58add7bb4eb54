/* sounder generate: synthetic data with known truth; the same options give the same bytes. */
#include "cli.h"

#include <string.h>

static enum sdr_status print_written(const struct cli_arguments *arguments)
{
    const char *kind = arguments->paths[0], *path = arguments->paths[1];
    const char *rows = sdr_options_get(arguments->options, "rows");
    unsigned long long bytes = cli_file_bytes(path);
    char size[CLI_NUMBER_TEXT];
    if (arguments->given & CLI_JSON)
        return cli_print_object(json_pack("{s:s, s:o, s:I}", "kind", kind, "path",
                                          cli_json_text(path), "bytes", (json_int_t)bytes));
    printf("wrote ");
    cli_print_clean(stdout, path);
    printf(": %s, %s%s%s\n", kind, rows ? rows : "", rows ? " rows, " : "",
           cli_bytes_text(size, (double)bytes));
    return SDR_OK;
}

static enum sdr_status run(struct cli_arguments *arguments)
{
    const char *path = arguments->paths[1];
    CLI_TRY(cli_output_check("OUT", path, NULL, 0, true));
    cli_progress_start(arguments);
    CLI_TRY(sdr_generate(arguments->options, arguments->paths[0], path));
    cli_progress_clear();
    return print_written(arguments);
}

const struct cli_command cli_generate = {
    .name = "generate",
    .positional = "KIND OUT",
    .summary = "write synthetic data with known truth",
    .description =
        "Writes data of a KIND ('sounder list generate' names them) to OUT, in the format of its\n"
        "extension. The same options and seed give the same bytes on every machine.\n",
    .example = "  sounder generate sparse-classification s.svm --rows 100000 --features 47236 \\\n"
               "      --nnz 84 --seed 3\n",
    .least = 2,
    .most = 2,
    .takes = CLI_HELP | CLI_JSON | CLI_QUIET | CLI_CONFIG | CLI_PRINT_CONFIG,
    .run = run,
};
