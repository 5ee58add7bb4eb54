/* The public functions on options: set, get, load, print, help. Their table is options_table.c. */
#include "run/settings.h"
#include "base/bits.h"
#include "base/cpu.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/thread.h"
#include "run/registry.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int row_of(const char *name)
{
    const struct sdr_option *option = sdr_option_find(sdr_settings_table, name);
    return option ? (int)(option - sdr_settings_table) : -1;
}

/* Words of a set of rows of the table. */
static size_t row_words(void)
{
    return sdr_bit_words(sdr_option_count(sdr_settings_table));
}

static enum sdr_status defaults(struct sdr_options *options)
{
    SDR_TRY(sdr_allocate(&options->was_set, row_words(), sizeof *options->was_set, "options"));
    return sdr_option_defaults(sdr_settings_table, &options->settings);
}

enum sdr_status sdr_options_copy(const struct sdr_options *from, struct sdr_options *to)
{
    SDR_TRY(defaults(to));
    SDR_TRY(sdr_option_copy(sdr_settings_table, &from->settings, &to->settings));
    memcpy(to->was_set, from->was_set, row_words() * sizeof *to->was_set);
    to->report = from->report;
    to->report_context = from->report_context;
    return SDR_OK;
}

void sdr_options_release(struct sdr_options *options)
{
    sdr_option_free(sdr_settings_table, &options->settings);
    sdr_release(options->was_set);
    options->was_set = NULL;
}

enum sdr_status sdr_options_create(struct sdr_options **options)
{
    struct sdr_options *o;
    *options = NULL;
    SDR_TRY(sdr_allocate(&o, 1, sizeof *o, "options"));
    enum sdr_status status = defaults(o);
    if (status != SDR_OK) {
        sdr_options_destroy(o);
        return status;
    }
    *options = o;
    return SDR_OK;
}

enum sdr_status sdr_options_clone(const struct sdr_options *options, struct sdr_options **clone)
{
    struct sdr_options *o;
    *clone = NULL;
    SDR_TRY(sdr_allocate(&o, 1, sizeof *o, "options"));
    enum sdr_status status = sdr_options_copy(options, o);
    if (status != SDR_OK) {
        sdr_options_destroy(o);
        return status;
    }
    *clone = o;
    return SDR_OK;
}

void sdr_options_destroy(struct sdr_options *options)
{
    if (!options)
        return;
    sdr_options_release(options);
    sdr_release(options);
}

static enum sdr_status unknown_option(const char *name)
{
    const char *near = sdr_option_nearest(sdr_settings_table, name);
    if (near)
        return sdr_fail(SDR_USAGE, "there is no option --%s; did you mean --%s?", name, near);
    return sdr_fail(SDR_USAGE, "there is no option --%s (sounder COMMAND --help lists them)", name);
}

/* Options that name a plug-in are checked when set, not minutes later. */
static enum sdr_status check_plugin(const char *name, const char *value)
{
    struct {
        const char *option, *kind;
        const void *table;
    } kinds[] = {{"model", "model", sdr_model_kind_table},
                 {"optimizer", "optimizer", sdr_optimizers()},
                 {"schedule", "schedule", sdr_schedule_table},
                 {"sync", "strategy", sdr_strategy_table},
                 {"transport", "transport", sdr_transport_table},
                 {"format", "format", sdr_format_table}};
    const struct sdr_plugin *plugin = NULL;
    void *parsed = NULL;
    if (strcmp(value, "auto") == 0)
        return SDR_OK;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(name, kinds[i].option) != 0)
            continue;
        if (strncmp(value, "auto:", 5) == 0)
            return sdr_fail(SDR_USAGE, "--%s auto takes no options: name the %s that they are for",
                            name, kinds[i].kind);
        SDR_TRY(sdr_plugin_choose(kinds[i].kind, kinds[i].table, value, &plugin, &parsed));
    }
    sdr_plugin_free(plugin, parsed);
    return SDR_OK;
}

enum sdr_status sdr_options_set(struct sdr_options *options, const char *name, const char *value)
{
    int row = row_of(name);
    char owner[80];
    if (row < 0)
        return unknown_option(name);
    snprintf(owner, sizeof owner, "--%s", name);
    SDR_TRY(check_plugin(name, value));
    SDR_TRY(sdr_option_set(&sdr_settings_table[row], owner, value, &options->settings));
    sdr_bit_turn_on(options->was_set, (size_t)row);
    return SDR_OK;
}

bool sdr_options_is_flag(const char *name)
{
    int row = row_of(name);
    return row >= 0 && sdr_settings_table[row].type == SDR_FLAG;
}

bool sdr_options_given(const struct sdr_options *options, const char *name)
{
    int row = row_of(name);
    return row >= 0 && sdr_bit_is_on(options->was_set, (size_t)row);
}

const char *sdr_options_get(const struct sdr_options *options, const char *name)
{
    static _Thread_local char value[4096];
    struct sdr_text text = {.bytes = value, .room = sizeof value, .fixed = true};
    int row = row_of(name);
    if (row < 0)
        return NULL;
    value[0] = 0;
    sdr_option_print(&sdr_settings_table[row], &options->settings, &text);
    if (text.length == sizeof value - 1) /* cut off: not inside a character */
        for (size_t i = 1; i < 4 && !sdr_is_utf8(value, text.length); i++)
            if (sdr_is_utf8(value, text.length - i))
                value[text.length -= i] = 0;
    return value;
}

json_t *sdr_option_json(const struct sdr_options *options, const char *name)
{
    struct sdr_text text = {0};
    char *value;
    sdr_option_print(&sdr_settings_table[row_of(name)], &options->settings, &text);
    if (sdr_text_take(&text, &value) != SDR_OK)
        return NULL;
    json_t *json = sdr_text_to_json(value, strlen(value));
    sdr_release(value);
    return json;
}

static char *trimmed(char *text)
{
    while (*text == ' ' || *text == '\t')
        text++;
    size_t length = strlen(text);
    while (length && strchr(" \t\r", text[length - 1]))
        text[--length] = 0;
    return text;
}

enum sdr_status sdr_options_load(struct sdr_options *options, const char *path)
{
    char *bytes;
    size_t count;
    uint64_t *before; /* what was set already */
    SDR_TRY(sdr_file_load(path, 1 << 20, &bytes, &count));
    enum sdr_status status = sdr_allocate(&before, row_words(), sizeof *before, "options");
    if (status == SDR_OK)
        memcpy(before, options->was_set, row_words() * sizeof *before);
    int line = 0;
    for (char *at = bytes; status == SDR_OK && at && *at;) {
        char *end = strchr(at, '\n');
        line++;
        if (end)
            *end = 0;
        char *name = trimmed(at), *equals = strchr(name, '=');
        at = end ? end + 1 : NULL;
        if (*name == 0 || *name == '#')
            continue;
        if (!equals) {
            status = sdr_fail(SDR_USAGE, "%s:%d: expected 'name = value'", path, line);
            break;
        }
        *equals = 0;
        name = trimmed(name);
        int row = row_of(name);
        char *value = trimmed(equals + 1);
        if (row >= 0 && sdr_bit_is_on(before, (size_t)row))
            continue; /* earlier settings win */
        if (row >= 0 && sdr_settings_table[row].preset &&
            strcmp(value, sdr_settings_table[row].preset) == 0)
            continue; /* a printed default was not set by the user */
        status = row < 0 && !sdr_option_nearest(sdr_settings_table, name)
                     ? sdr_fail(SDR_USAGE, "'%s' is not an option that a config file can set", name)
                     : sdr_options_set(options, name, value);
        if (status != SDR_OK)
            sdr_fail_in(status, "%s:%d: ", path, line);
    }
    sdr_release(before);
    sdr_release(bytes);
    return status;
}

enum sdr_status sdr_options_print(const struct sdr_options *options, char **text)
{
    struct sdr_text out = {0};
    for (const struct sdr_option *row = sdr_settings_table; row->key; row++) {
        struct sdr_text value = {0};
        if (!(row->commands & SDR_TRAIN) && !sdr_options_given(options, row->key))
            continue;
        sdr_option_print(row, &options->settings, &value);
        if (value.bytes && *value.bytes)
            sdr_text_add(&out, "%s = %s\n", row->key, value.bytes);
        out.failed |= value.failed;
        sdr_text_free(&value);
    }
    return sdr_text_take(&out, text);
}

static unsigned command_bit(const char *command)
{
    static const char *const names[] = {"train",   "predict",  "eval",   "inspect",
                                        "convert", "generate", "compare"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(command, names[i]) == 0)
            return 1u << i;
    return 0;
}

bool sdr_options_for_command(const char *command, const char *name)
{
    int row = row_of(name);
    return row >= 0 && (sdr_settings_table[row].commands & command_bit(command));
}

/* Adds the options that have all of the bits, below a title. */
static void add_help(struct sdr_text *out, const char *title, unsigned bits)
{
    bool any = false;
    for (const struct sdr_option *row = sdr_settings_table; row->key; row++) {
        char left[64];
        if ((row->commands & bits) != bits)
            continue;
        if (!any)
            sdr_text_add(out, "%s%s:\n", out->length ? "\n" : "", title);
        any = true;
        snprintf(left, sizeof left, "--%s%s%s", row->key, row->choices ? " " : "",
                 row->choices ? row->choices : "");
        if (strlen(left) > 26) /* the help starts on its own line */
            sdr_text_add(out, "  %s\n  %-26s %s", left, "", row->help);
        else
            sdr_text_add(out, "  %-26s %s", left, row->help);
        if (row->preset && *row->preset && row->type != SDR_FLAG)
            sdr_text_add(out, " [%s]", row->preset);
        sdr_text_add(out, "\n");
    }
}

enum sdr_status sdr_options_help(const char *command, bool all, char **text)
{
    enum { FEW = 20 }; /* that need no groups */
    struct sdr_text out = {0};
    unsigned bit = command_bit(command), count = 0;
    for (const struct sdr_option *row = sdr_settings_table; row->key; row++)
        count += (row->commands & bit) != 0;
    if (count <= FEW)
        add_help(&out, "options", bit);
    else if (!all)
        add_help(&out, "common options", bit | SDR_COMMON);
    for (const struct sdr_option_group *g = sdr_settings_groups; g->bit && all && count > FEW; g++)
        add_help(&out, g->title, bit | g->bit);
    return sdr_text_take(&out, text);
}

bool sdr_parse_every(const char *text, double *seconds, uint64_t *updates)
{
    double value;
    const char *unit = sdr_scan_double(text, text + strlen(text), &value);
    *seconds = 0;
    *updates = 0;
    if (!unit || !(value > 0 && value <= 1e9) || (strcmp(unit, "s") != 0 && strcmp(unit, "u") != 0))
        return false;
    if (*unit == 's')
        *seconds = value;
    else
        *updates = value < 1 ? 1 : (uint64_t)value;
    return true;
}

void sdr_options_report(struct sdr_options *options, sdr_report_function *function, void *context)
{
    options->report = function;
    options->report_context = context;
}

enum sdr_status sdr_settings_cpu(const struct sdr_options *options)
{
    int choice = options->settings.cpu; /* auto, then the levels in their order */
    enum sdr_status status = sdr_cpu_use(choice ? (enum sdr_cpu)(choice - 1) : SDR_CPU_LEVELS);
    return status == SDR_OK ? SDR_OK : sdr_fail_in(status, "--cpu: ");
}

enum sdr_status sdr_settings_data(const struct sdr_options *options, struct sdr_data_options *data,
                                  char **format_name)
{
    const struct sdr_settings *s = &options->settings;
    const char *rest;
    SDR_TRY(sdr_settings_cpu(options));
    SDR_TRY(sdr_spec_split(s->format, format_name, &rest));
    *data = (struct sdr_data_options){.format = *format_name,
                                      .format_rest = rest,
                                      .label = s->label,
                                      .labels = s->labels,
                                      .weight = s->weight,
                                      .ignore = s->ignore,
                                      .categories = s->categories,
                                      .bits = (unsigned)s->bits,
                                      .base = s->base - 1,
                                      .missing = (enum sdr_missing)s->missing,
                                      .cache = s->cache,
                                      .memory = s->memory,
                                      .scratch = s->scratch,
                                      .threads = s->threads ? (int)s->threads : sdr_thread_limit(),
                                      .report = options->report,
                                      .report_context = options->report_context};
    return SDR_OK;
}
