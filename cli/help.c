/* The commands and their help. */
#include "cli.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

const struct cli_command *const cli_commands[] = {
    &cli_train,   &cli_compare,  &cli_predict, &cli_eval, &cli_inspect,
    &cli_convert, &cli_generate, &cli_list,    NULL,
};

const struct cli_command *cli_command_find(const char *name, const char **nearest)
{
    size_t least = 0;
    *nearest = NULL;
    for (size_t i = 0; cli_commands[i]; i++) {
        const char *candidate = cli_commands[i]->name;
        if (strcmp(candidate, name) == 0)
            return cli_commands[i];
        size_t errors = cli_typing_errors(name, candidate), length = strlen(name);
        /* "evaluate" and "gen" are not typing errors, but prefixes that name a command. */
        size_t common = length < strlen(candidate) ? length : strlen(candidate);
        bool begins_alike = common >= 3 && strncmp(name, candidate, common) == 0;
        if (!begins_alike && !cli_is_near(errors, strlen(candidate)))
            continue;
        if (!*nearest || errors < least) {
            *nearest = candidate;
            least = errors;
        }
    }
    return NULL;
}

void cli_help(void)
{
    printf(
        "Sounder %s trains models by stochastic gradient descent: least squares, logistic, SVM,\n"
        "softmax, ratings, clusters, graph cuts and neural networks, on sparse and dense data in "
        "all\n"
        "common file formats.\n"
        "\nusage: sounder COMMAND [ARGUMENTS] [OPTIONS]\n\ncommands:\n",
        sdr_version());
    for (size_t i = 0; cli_commands[i]; i++)
        printf("  %-9s %s\n", cli_commands[i]->name, cli_commands[i]->summary);
    printf(
        "\nexamples:\n"
        "  sounder train a9a --valid a9a.t --out a9a.model\n"
        "  sounder predict a9a.model a9a.t --out labels.txt\n"
        "  zcat logs.svm.gz | sounder train - --format libsvm --epochs 5 --json\n"
        "\n'sounder COMMAND --help' tells the options of a command, 'sounder list' the plug-ins\n"
        "they name, 'sounder --version' the version.\n"
        "exit codes: 0 ok, 1 runtime, 2 usage, 3 bad data, 4 diverged, 5 bad model or cache file,\n"
        "6 peer lost, 75 stopped by a signal: go on with --resume, or, if data was being read, "
        "run\n"
        "again; without --run there is nothing to go on from, and the code is 1.\n");
}

enum { WIDEST = 100, NARROWEST = 60, HELP_COLUMN = 29 };

static size_t page_width(void)
{
    struct winsize size;
    if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return WIDEST;
    return size.ws_col > WIDEST ? WIDEST : size.ws_col < NARROWEST ? NARROWEST : size.ws_col;
}

/* Bytes of the line that fit into `room` columns, up to a space after `from`, or all of it. UTF-8
   continuation bytes take no column. */
static size_t fitting(const char *line, size_t length, size_t room, size_t from)
{
    size_t columns = 0, space = 0;
    for (size_t i = 0; i < length; i++) {
        if (line[i] == ' ' && i > from)
            space = i;
        columns += ((unsigned char)line[i] & 0xc0) != 0x80;
        if (columns > room)
            return space ? space : length;
    }
    return length;
}

/* The library's help has one line per option; long lines continue below their own text. */
static void print_options(const char *text)
{
    size_t width = page_width();
    while (*text) {
        size_t length = strcspn(text, "\n");
        size_t done = fitting(text, length, width, HELP_COLUMN);
        printf("%.*s\n", (int)done, text);
        while (done < length) {
            done++; /* the space */
            size_t part = fitting(text + done, length - done, width - HELP_COLUMN, 0);
            printf("%*s%.*s\n", HELP_COLUMN, "", (int)part, text + done);
            done += part;
        }
        text += length + (text[length] == '\n');
    }
}

/* The library's help for a command with run options; NULL for the others. *more: some options are
   left out. */
static enum sdr_status library_options(const struct cli_command *command, bool all, char **text,
                                       bool *more)
{
    char *whole = NULL;
    *text = NULL;
    *more = false;
    if (!(command->takes & (CLI_CONFIG | CLI_SYNC)))
        return SDR_OK;
    CLI_TRY(sdr_options_help(command->name, all, text));
    if (all)
        return SDR_OK;
    enum sdr_status status = sdr_options_help(command->name, true, &whole);
    *more = status == SDR_OK && strcmp(*text, whole) != 0;
    sdr_string_free(whole);
    return status;
}

enum sdr_status cli_command_help(const struct cli_command *command, bool all)
{
    char *text;
    bool more;
    enum sdr_status status = library_options(command, all, &text, &more);
    if (status != SDR_OK) {
        sdr_string_free(text);
        return status;
    }
    printf("usage: sounder %s %s [OPTIONS]\n\n%s", command->name, command->positional,
           command->description);
    if (text && text[0]) {
        printf("\n");
        print_options(text);
    }
    sdr_string_free(text);
    if (more)
        printf("\n'sounder %s --help all' tells all options, by topic.\n", command->name);
    printf("\nother options:\n");
    for (const struct cli_own_option *own = cli_own_options; own->name; own++) {
        if (!(command->takes & own->bit))
            continue;
        char name[64];
        snprintf(name, sizeof name, "--%s%s%s", own->name, own->value ? " " : "",
                 own->value ? own->value : "");
        printf("  %-26s %s\n", name, own->bit == CLI_OUT ? command->out_help : own->help);
    }
    printf(
        "\nOptions are written --name value or --name=value; a flag is turned off by --no-name;\n"
        "'--' ends the options.\n\nexample:\n%s",
        command->example);
    return SDR_OK;
}
