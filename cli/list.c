/* sounder list: the plug-ins, by kind. */
#include "cli.h"

#include <string.h>

static enum sdr_status run(struct cli_arguments *arguments)
{
    char *text = NULL;
    CLI_TRY(sdr_list(arguments->path_count ? arguments->paths[0] : NULL,
                     arguments->given & CLI_VERBOSE, &text));
    printf("%s%s", text, text[0] && text[strlen(text) - 1] != '\n' ? "\n" : "");
    sdr_string_free(text);
    return SDR_OK;
}

const struct cli_command cli_list = {
    .name = "list",
    .positional = "[KIND]",
    .summary = "list the plug-ins: models, optimizers, strategies, formats ...",
    .description = "Prints one plug-in a line with what it is; without KIND, the kinds there are. "
                   "'auto', the\n"
                   "default of --model, --optimizer and --sync, chooses among them.\n",
    .example = "  sounder list model\n"
               "  sounder list optimizer --verbose\n",
    .least = 0,
    .most = 1,
    .takes = CLI_HELP | CLI_VERBOSE,
    .run = run,
};
