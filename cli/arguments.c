/* Parses the command line after the command's name: --name value, --name=value, flags, --no-flag,
   "--" and positional arguments. The program has a few options of its own; the library gets all
   others, checks their values and suggests the nearest name for an unknown one. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

const struct cli_own_option cli_own_options[] = {
    {"out", "FILE", CLI_OUT, NULL}, /* help: the command's out_help */
    {"proba", NULL, CLI_PROBA, "write the probability of every class behind the label"},
    {"scores", NULL, CLI_SCORES, "write the raw scores behind the label"},
    {"sparsity", NULL, CLI_SPARSITY, "data: how much rows conflict (omega, delta, rho)"},
    {"ledger", NULL, CLI_LEDGER, "a run: a line for every gradient, with commas"},
    {"top", "N", CLI_TOP, "ratings: write the N best new items of every user in DATA"},
    {"sync", "LIST", CLI_SYNC, "the strategies, separated by commas: see 'sounder list sync'"},
    {"variant", "OPTIONS", CLI_VARIANT,
     "compare these options, such as \"--optimizer adam --lr 0.01\"; repeatable"},
    {"seeds", "N", CLI_SEEDS, "train every contender with N seeds, from --seed on [10]"},
    {"target", "LOSS", CLI_TARGET,
     "tell when the validation loss, or else the objective, gets there"},
    {"report", "FILE", CLI_REPORT, "write a page with charts here, HTML in one file"},
    {"chart", "FILE", CLI_CHART, "write the chart of loss against time here, SVG"},
    {"chart-x", "AXIS", CLI_CHART_X, "x axis of --chart: seconds, updates or rows [seconds]"},
    {"chart-y", "AXIS", CLI_CHART_Y,
     "y axis of --chart: loss, or error, 1 - validation accuracy [loss]"},
    {"json", NULL, CLI_JSON, "print the results as one JSON object on one line"},
    {"verbose", NULL, CLI_VERBOSE, "add the options of every plug-in"},
    {"config", "FILE", CLI_CONFIG, "read 'name = value' lines; options given here win over it"},
    {"print-config", NULL, CLI_PRINT_CONFIG, "print the options in force for --config and stop"},
    {"quiet", NULL, CLI_QUIET, "no progress and no notes on standard error"},
    {"help", NULL, CLI_HELP, "print this help"},
    {NULL, NULL, 0, NULL},
};

static const struct cli_own_option *own_find(const char *name)
{
    for (const struct cli_own_option *own = cli_own_options; own->name; own++) {
        if (strcmp(own->name, name) == 0)
            return own;
    }
    return NULL;
}

/* The nearest of the program's own options; the library suggests only among its own. */
static const char *own_nearest(const char *name, unsigned takes)
{
    const char *nearest = NULL;
    size_t least = 0, length = strlen(name);
    for (const struct cli_own_option *own = cli_own_options; own->name; own++) {
        size_t errors = cli_typing_errors(name, own->name), own_length = strlen(own->name);
        size_t common = length < own_length ? length : own_length;
        bool begins_alike = common >= 3 && strncmp(name, own->name, common) == 0;
        if (!(own->bit & takes) || !(begins_alike || cli_is_near(errors, own_length)))
            continue;
        if (!nearest || errors < least) {
            nearest = own->name;
            least = errors;
        }
    }
    return nearest;
}

static bool library_knows(const char *name)
{
    for (size_t i = 0; cli_commands[i]; i++) {
        if (sdr_options_for_command(cli_commands[i]->name, name))
            return true;
    }
    return false;
}

static enum sdr_status not_taken(const struct cli_arguments *arguments, const char *name)
{
    const char *command = arguments->command->name;
    return cli_fail(SDR_USAGE, "sounder %s does not take --%s; see 'sounder %s --help'", command,
                    name, command);
}

/* Position in argv; `value` is the text after '=' of the current option, or NULL. */
struct walk {
    char **texts;
    int at, count;
    const char *value;
};

/* A value may start with one dash ("-" is standard input, -1 a number). With two dashes it is more
   likely the next option, and the value was forgotten; but the value of --variant is options. */
static enum sdr_status take_value(struct walk *walk, const char *name, const char **value)
{
    *value = walk->value;
    if (*value)
        return SDR_OK;
    if (walk->at + 1 >= walk->count ||
        (strncmp(walk->texts[walk->at + 1], "--", 2) == 0 && strcmp(name, "variant") != 0))
        return cli_fail(SDR_USAGE, "--%s needs a value: --%s VALUE", name, name);
    *value = walk->texts[++walk->at];
    return SDR_OK;
}

static enum sdr_status add_variant(struct cli_arguments *arguments, const char *text)
{
    size_t count = arguments->variant_count;
    const char **more = realloc(arguments->variants, (count + 1) * sizeof *more);
    if (!more)
        return cli_fail(SDR_RUNTIME, "out of memory");
    arguments->variants = more;
    arguments->variants[arguments->variant_count++] = text;
    return SDR_OK;
}

static enum sdr_status own_option(struct cli_arguments *arguments, struct walk *walk,
                                  const struct cli_own_option *own, bool on)
{
    if (!(arguments->command->takes & own->bit))
        return not_taken(arguments, own->name);
    const char *value = NULL;
    if (own->value) {
        CLI_TRY(take_value(walk, own->name, &value));
        if (!value[0])
            return cli_fail(SDR_USAGE, "--%s needs a value", own->name);
    } else if (walk->value) {
        if (strcmp(walk->value, "yes") != 0 && strcmp(walk->value, "no") != 0)
            return cli_fail(SDR_USAGE, "--%s is yes or no, not '%s'", own->name, walk->value);
        on = strcmp(walk->value, "yes") == 0;
    }
    arguments->given = on ? arguments->given | own->bit : arguments->given & ~own->bit;
    if (own->bit == CLI_VARIANT)
        return add_variant(arguments, value);
    const struct {
        unsigned bit;
        const char **place;
    } values[] = {{CLI_OUT, &arguments->out},         {CLI_CONFIG, &arguments->config},
                  {CLI_TOP, &arguments->top},         {CLI_SYNC, &arguments->sync},
                  {CLI_SEEDS, &arguments->seeds},     {CLI_TARGET, &arguments->target},
                  {CLI_REPORT, &arguments->report},   {CLI_CHART, &arguments->chart},
                  {CLI_CHART_X, &arguments->chart_x}, {CLI_CHART_Y, &arguments->chart_y}};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (own->bit == values[i].bit)
            *values[i].place = value;
    return SDR_OK;
}

static enum sdr_status library_option(struct cli_arguments *arguments, struct walk *walk,
                                      const char *name)
{
    bool negated =
        strncmp(name, "no-", 3) == 0 && !library_knows(name) && sdr_options_is_flag(name + 3);
    const char *value = negated ? "no" : "yes";
    if (negated)
        name += 3;
    if (!library_knows(name)) {
        const char *nearest = own_nearest(name, arguments->command->takes);
        if (nearest)
            return cli_fail(SDR_USAGE, "there is no option --%s; did you mean --%s?", name,
                            nearest);
        return sdr_options_set(arguments->options, name, walk->value ? walk->value : "");
    }
    if (!sdr_options_for_command(arguments->command->name, name))
        return not_taken(arguments, name);
    if (negated && walk->value)
        return cli_fail(SDR_USAGE, "--no-%s takes no value", name);
    if (!sdr_options_is_flag(name))
        CLI_TRY(take_value(walk, name, &value));
    else if (walk->value)
        value = walk->value;
    return sdr_options_set(arguments->options, name, value);
}

/* Handles one text that starts with "--" and continues. */
static enum sdr_status one_option(struct cli_arguments *arguments, struct walk *walk)
{
    const char *text = walk->texts[walk->at] + 2;
    char name[128];
    size_t length = strcspn(text, "=");
    walk->value = text[length] == '=' ? text + length + 1 : NULL;
    if (length == 0 || length >= sizeof name)
        return cli_fail(SDR_USAGE, "'--%s' is not an option", text);
    memcpy(name, text, length);
    name[length] = '\0';
    const struct cli_own_option *own = own_find(name);
    /* Some names mean one thing to a command of the program and another to the library. */
    if (own && ((arguments->command->takes & own->bit) || !library_knows(name)))
        return own_option(arguments, walk, own, true);
    own = strncmp(name, "no-", 3) == 0 ? own_find(name + 3) : NULL;
    if (own && !own->value && !walk->value)
        return own_option(arguments, walk, own, false);
    return library_option(arguments, walk, name);
}

enum sdr_status cli_arguments_option(struct cli_arguments *arguments, int count, char **texts,
                                     int *at)
{
    struct walk walk = {texts, *at, count, NULL};
    CLI_TRY(one_option(arguments, &walk));
    *at = walk.at;
    return SDR_OK;
}

enum sdr_status cli_arguments_parse(struct cli_arguments *arguments,
                                    const struct cli_command *command, int count, char **texts)
{
    *arguments = (struct cli_arguments){.command = command};
    CLI_TRY(sdr_options_create(&arguments->options));
    arguments->paths = calloc((size_t)count + 1, sizeof *arguments->paths);
    if (!arguments->paths)
        return cli_fail(SDR_RUNTIME, "out of memory");
    /* --help is searched first: those who need it often have an error in the line. */
    for (int i = 0; i < count && strcmp(texts[i], "--") != 0; i++) {
        bool all = strcmp(texts[i], "--help=all") == 0;
        if (all || strcmp(texts[i], "--help") == 0 || strcmp(texts[i], "-h") == 0) {
            all = all || (i + 1 < count && strcmp(texts[i + 1], "all") == 0);
            arguments->given |= all ? CLI_HELP | CLI_HELP_ALL : CLI_HELP;
            return SDR_OK;
        }
    }
    bool options_ended = false;
    for (int at = 0; at < count; at++) {
        const char *text = texts[at];
        if (options_ended || text[0] != '-' || text[1] == '\0')
            arguments->paths[arguments->path_count++] = text;
        else if (strcmp(text, "--") == 0)
            options_ended = true;
        else if (text[1] == '-')
            CLI_TRY(cli_arguments_option(arguments, count, texts, &at));
        else
            return cli_fail(
                SDR_USAGE,
                "there is no option %s; options are written --name, a file of that name ./%s", text,
                text);
    }
    /* Last, because sdr_options_load keeps options already set: the command line wins over the
       file. */
    return arguments->config ? sdr_options_load(arguments->options, arguments->config) : SDR_OK;
}

enum sdr_status cli_arguments_check(const struct cli_arguments *arguments)
{
    const struct cli_command *command = arguments->command;
    size_t count = arguments->path_count;
    for (size_t i = 0; i < count; i++) {
        if (!arguments->paths[i][0])
            return cli_fail(SDR_USAGE, "an argument of sounder %s is empty", command->name);
    }
    if (count < command->least)
        return cli_fail(SDR_USAGE, "an argument is missing: sounder %s %s; see 'sounder %s --help'",
                        command->name, command->positional, command->name);
    if (count > command->most)
        return cli_fail(SDR_USAGE, "'%s' is one argument too many: sounder %s %s",
                        arguments->paths[command->most], command->name, command->positional);
    return SDR_OK;
}

enum sdr_status cli_arguments_check_input(const struct cli_arguments *arguments)
{
    static const char *const readers[] = {"labels", "valid", "valid-labels"};
    size_t standard = 0;
    for (size_t i = 0; i < arguments->path_count; i++)
        standard += strcmp(arguments->paths[i], "-") == 0;
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
        const char *path = sdr_options_get(arguments->options, readers[i]);
        standard += path && strcmp(path, "-") == 0;
    }
    if (standard > 1)
        return cli_fail(SDR_USAGE, "standard input ('-') is given twice");
    return SDR_OK;
}

void cli_arguments_destroy(struct cli_arguments *arguments)
{
    sdr_options_destroy(arguments->options);
    free(arguments->paths);
    free(arguments->variants);
    *arguments = (struct cli_arguments){0};
}
