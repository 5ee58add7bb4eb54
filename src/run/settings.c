/* The table of run options, and the public functions on options. */
#include "run/settings.h"
#include "base/cpu.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/thread.h"
#include "run/registry.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    TRAINS = SDR_TRAIN | SDR_COMPARE,
    READS = TRAINS | SDR_PREDICT | SDR_EVAL | SDR_INSPECT | SDR_CONVERT,
    DEFINES = TRAINS | SDR_INSPECT | SDR_CONVERT, /* what columns mean; later the model says it */
    SEEDED = TRAINS | SDR_GENERATE
};
#define AT(member) offsetof(struct sdr_settings, member)

const struct sdr_option sdr_settings_table[] = {
    /* data */
    {"format", SDR_TEXT, "auto", "NAME", 0, 0,
     "format of the data; auto: by extension, then content", AT(format), READS},
    {"label", SDR_TEXT, NULL, "COLUMN", 0, 0,
     "CSV: the label column, by name or place (3 or c3); none: no label", AT(label), READS},
    {"labels", SDR_TEXT, NULL, "FILE", 0, 0,
     "IDX, NPY, NPZ, Matrix Market: the file with the labels", AT(labels), READS},
    {"weight", SDR_TEXT, NULL, "COLUMN", 0, 0, "CSV: the column with sample weights", AT(weight),
     READS},
    {"ignore", SDR_TEXT, NULL, "COLUMNS", 0, 0,
     "CSV: columns to leave out: a,b,\"name, with comma\"", AT(ignore), DEFINES},
    {"categories", SDR_TEXT, NULL, "COLUMNS", 0, 0,
     "CSV: columns that are categories though they look like numbers; a list as in --ignore",
     AT(categories), DEFINES},
    {"bits", SDR_INTEGER, "0", "N", 0, 30, "hash features into 2^N; 0: no hashing (VW text: 18)",
     AT(bits), DEFINES},
    {"base", SDR_CHOICE, "auto", "auto|0|1", 0, 0, "first feature index of sparse text", AT(base),
     DEFINES},
    {"missing", SDR_CHOICE, "error", "error|zero|mean", 0, 0, "what a missing cell means",
     AT(missing), READS},
    {"cache", SDR_TEXT, NULL, "DIR", 0, 0, "keep parsed data in this folder for the next run",
     AT(cache), READS},
    {"memory", SDR_SIZE, "0", "SIZE", 0, 0,
     "memory the data may take, e.g. 2G; more streams from disk; 0: no limit", AT(memory), READS},
    {"scratch", SDR_TEXT, "/tmp", "DIR", 0, 0, "folder for data that streams without a cache",
     AT(scratch), READS},
    {"threads", SDR_INTEGER, "0", "N", 0, 1024,
     "threads that read files and evaluate; 0: all cores", AT(threads), READS},
    {"cpu", SDR_CHOICE, "auto", "auto|portable|avx2|avx512", 0, 0,
     "kernel level; auto: highest supported; results are identical", AT(cpu), READS},
    /* model */
    {"model", SDR_TEXT, "auto", "NAME", 0, 0,
     "what is trained: see 'sounder list model'; auto: logistic for two labels, softmax for texts "
     "and up to 30 whole numbers, squared for other numbers, mf for ratings",
     AT(model), TRAINS},
    {"intercept", SDR_FLAG, "yes", NULL, 0, 0, "the model has an intercept (--no-intercept)",
     AT(intercept), TRAINS},
    {"class-weight", SDR_TEXT, "none", "W", 0, 0,
     "none, balanced, or LABEL=W,LABEL=W: weight of the losses by class", AT(class_weight), TRAINS},
    {"l1", SDR_NUMBER, "0", "X", 0, 1e30,
     "penalty X·Σ|w|; for weights of exactly 0 use --optimizer ftrl or --sync batch", AT(l1),
     TRAINS},
    {"l2", SDR_NUMBER, "0", "X", 0, 1e30,
     "penalty X/2·Σw² (applied after each step; README, Steps)", AT(l2), TRAINS},
    {"group-lasso", SDR_NUMBER, "0", "X", 0, 1e30, "softmax: penalty X·Σ‖w of a feature‖",
     AT(group_lasso), TRAINS},
    {"penalty-on", SDR_CHOICE, "mean", "mean|sum", 0, 0,
     "penalties are added to the mean loss, Σ wᵢ·lossᵢ / Σ wᵢ with weights, or to the sum Σ "
     "wᵢ·lossᵢ",
     AT(penalty_on), TRAINS},
    {"standardize", SDR_FLAG, "no", NULL, 0, 0,
     "penalise weights in units of the features' standard deviations", AT(standardize), TRAINS},
    {"scale", SDR_CHOICE, "auto", "auto|none|feature", 0, 0,
     "feature: scale steps by feature size, --lr included; auto: feature, except ftrl with "
     "penalties "
     "and mf, graph-cut",
     AT(scale), TRAINS},
    /* training */
    {"optimizer", SDR_TEXT, "auto", "NAME", 0, 0,
     "see 'sounder list optimizer'; auto: adagrad in scaled units, or what suits the model",
     AT(optimizer), TRAINS},
    {"lr", SDR_NUMBER, "0", "X", 0, 1e30,
     "step size, in units of the scaled features (--scale); 0: chosen from the data", AT(lr),
     TRAINS},
    {"schedule", SDR_TEXT, "auto", "NAME", 0, 0,
     "how the step changes: see 'sounder list schedule'; auto: by the optimizer", AT(schedule),
     TRAINS},
    {"average", SDR_TEXT, "auto", "N", 0, 0,
     "average the weights from the end of epoch N; sampled every k updates (README, Steps); no: "
     "off",
     AT(average), TRAINS},
    {"batch", SDR_INTEGER, "1", "N", 1, 16777216, "rows per update", AT(batch), TRAINS},
    {"epochs", SDR_INTEGER, "0", "N", 0, 1e9, "passes over the data; 0: chosen from its size",
     AT(epochs), TRAINS},
    {"updates", SDR_INTEGER, "0", "N", 0, 1e18, "stop after N updates; 0: no such limit",
     AT(updates), TRAINS},
    {"shuffle", SDR_CHOICE, "auto", "auto|rows|chunks|blocks|none", 0, 0,
     "order of the rows in an epoch; auto: rows, chunks of 16 or 32 where data is large, blocks "
     "where it "
     "streams",
     AT(shuffle), TRAINS},
    {"sync", SDR_TEXT, "serial", "NAME", 0, 0, "strategy: see 'sounder list sync'", AT(sync),
     SDR_TRAIN},
    {"transport", SDR_TEXT, "threads", "NAME", 0, 0,
     "how the nodes of strategies with a server talk: see 'sounder list transport'", AT(transport),
     TRAINS},
    {"servers", SDR_INTEGER, "1", "N", 1, 64, "servers, each with a part of the features",
     AT(servers), TRAINS},
    {"compute", SDR_TEXT, NULL, "TIMES", 0, 0,
     "--transport sim: seconds that a gradient takes, such as const:1+exp:rate=0.5; default "
     "const:1",
     AT(compute), TRAINS},
    {"delay", SDR_TEXT, NULL, "TIMES", 0, 0,
     "time that every gradient is held up, such as exp:mean=0.01", AT(delay), TRAINS},
    {"slow", SDR_TEXT, NULL, "W:Fx", 0, 0,
     "worker W takes F times as long, such as 2:3x; several with commas", AT(slow), TRAINS},
    {"workers", SDR_INTEGER, "0", "N", 0, 100000,
     "workers that train; 0: all cores, or one where the strategy has one", AT(workers), TRAINS},
    {"pin", SDR_CHOICE, "auto", "auto|yes|no", 0, 0,
     "keep every worker on a core of its own; auto: where memory has several nodes", AT(pin),
     TRAINS},
    {"deterministic", SDR_FLAG, "no", NULL, 0, 0,
     "the same bits for any number of workers; refused by strategies that cannot",
     AT(deterministic), TRAINS},
    {"seed", SDR_INTEGER, "1", "N", 0, 0, "seed of all randomness", AT(seed), SEEDED},
    /* watching */
    {"valid", SDR_TEXT, NULL, "FILE", 0, 0, "validation data", AT(valid), TRAINS},
    {"valid-labels", SDR_TEXT, NULL, "FILE", 0, 0, "its labels, where --labels is used",
     AT(valid_labels), TRAINS},
    {"valid-fraction", SDR_NUMBER, "0", "F", 0, 0.99,
     "set this share of the rows aside for validation, by a hash of their numbers",
     AT(valid_fraction), TRAINS},
    {"early-stop", SDR_INTEGER, "0", "N", 0, 1e9,
     "stop after N epochs without a better validation loss, keep the best model; 0: off",
     AT(early_stop), TRAINS},
    {"restarts", SDR_INTEGER, "0", "N", 0, 1000,
     "where the loss explodes go back to the last good weights with half the step, up to N times",
     AT(restarts), TRAINS},
    {"target", SDR_TEXT, NULL, "LOSS", 0, 0,
     "stop once the validation loss (without: the objective) is at most LOSS", AT(target),
     SDR_TRAIN},
    {"evaluate-every", SDR_TEXT, "no", "N", 0, 0,
     "tell the objective, of 20 000 rows at most, every N updates; 0: at the ends of epochs; "
     "auto: a hundred times a run, more often at first",
     AT(evaluate_every), TRAINS},
    {"run", SDR_TEXT, NULL, "DIR", 0, 0, "folder for metrics, status and checkpoints", AT(run),
     SDR_TRAIN},
    {"checkpoint-every", SDR_TEXT, "60s", "T", 0, 0,
     "checkpoint every T: seconds (60s) or updates (100000u); needs --run", AT(checkpoint_every),
     SDR_TRAIN},
    {"resume", SDR_FLAG, "no", NULL, 0, 0, "go on from the newest checkpoint in --run", AT(resume),
     SDR_TRAIN},
    {"record", SDR_TEXT, NULL, "FILE", 0, 0,
     "write down in which order racing workers (--sync hogwild) changed the model", AT(record),
     SDR_TRAIN},
    {"replay", SDR_TEXT, NULL, "FILE", 0, 0,
     "go through a recorded run again with one worker, and tell what the races cost", AT(replay),
     SDR_TRAIN},
    /* generate */
    {"rows", SDR_INTEGER, "10000", "N", 1, 4e9, "rows to make", AT(rows), SDR_GENERATE},
    {"features", SDR_INTEGER, "0", "N", 0, 2e9, "features; 0: what suits the kind", AT(features),
     SDR_GENERATE},
    {"nnz", SDR_INTEGER, "0", "N", 0, 1e6, "mean non-zeros of a row; 0: what suits the kind",
     AT(nnz), SDR_GENERATE},
    {"classes", SDR_INTEGER, "2", "N", 2, 1e6, "classes, clusters or topics", AT(classes),
     SDR_GENERATE},
    {"noise", SDR_NUMBER, "0.1", "X", 0, 1e9,
     "share of labels flipped, or standard deviation of the noise", AT(noise), SDR_GENERATE},
    {0}};

static int row_of(const char *name)
{
    const struct sdr_option *option = sdr_option_find(sdr_settings_table, name);
    return option ? (int)(option - sdr_settings_table) : -1;
}

enum sdr_status sdr_options_create(struct sdr_options **options)
{
    _Static_assert(sizeof sdr_settings_table / sizeof *sdr_settings_table <= 64, "one bit a row");
    struct sdr_options *o;
    *options = NULL;
    SDR_TRY(sdr_allocate(&o, 1, sizeof *o, "options"));
    enum sdr_status status = sdr_option_defaults(sdr_settings_table, &o->settings);
    if (status != SDR_OK) {
        sdr_options_destroy(o);
        return status;
    }
    *options = o;
    return SDR_OK;
}

void sdr_options_destroy(struct sdr_options *options)
{
    if (!options)
        return;
    sdr_option_free(sdr_settings_table, &options->settings);
    sdr_release(options);
}

static enum sdr_status unknown_option(const char *name)
{
    const char *near = sdr_option_nearest(sdr_settings_table, name);
    if (near)
        return sdr_fail(SDR_USAGE, "there is no option --%s; did you mean --%s?", name, near);
    return sdr_fail(SDR_USAGE, "there is no option --%s (sounder COMMAND --help lists them)", name);
}

/* Options that name a plug-in are checked when they are set, not minutes later. */
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
    if (strcmp(value, "auto") == 0 && strcmp(name, "sync") != 0)
        return SDR_OK;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(name, kinds[i].option) == 0)
            SDR_TRY(sdr_plugin_choose(kinds[i].kind, kinds[i].table, value, &plugin, &parsed));
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
    options->was_set |= (uint64_t)1 << row;
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
    return row >= 0 && (options->was_set >> row & 1);
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
    if (text.length == sizeof value - 1) /* it was cut off: not inside a character */
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
    enum sdr_status status = SDR_OK;
    uint64_t before = options->was_set;
    SDR_TRY(sdr_file_load(path, 1 << 20, &bytes, &count));
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
        if (row >= 0 && (before >> row & 1))
            continue; /* what was said before wins */
        if (row >= 0 && sdr_settings_table[row].preset &&
            strcmp(value, sdr_settings_table[row].preset) == 0)
            continue; /* a printed default was not asked for by anybody */
        status = row < 0 && !sdr_option_nearest(sdr_settings_table, name)
                     ? sdr_fail(SDR_USAGE, "'%s' is not an option that a config file can set", name)
                     : sdr_options_set(options, name, value);
        if (status != SDR_OK)
            sdr_fail_in(status, "%s:%d: ", path, line);
    }
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

enum sdr_status sdr_options_help(const char *command, char **text)
{
    struct sdr_text out = {0};
    unsigned bit = command_bit(command);
    for (const struct sdr_option *row = sdr_settings_table; row->key; row++) {
        char left[64];
        if (!(row->commands & bit))
            continue;
        snprintf(left, sizeof left, "--%s%s%s", row->key, row->choices ? " " : "",
                 row->choices ? row->choices : "");
        if (strlen(left) > 26) /* the help starts on a line of its own */
            sdr_text_add(&out, "  %s\n  %-26s %s", left, "", row->help);
        else
            sdr_text_add(&out, "  %-26s %s", left, row->help);
        if (row->preset && *row->preset && row->type != SDR_FLAG)
            sdr_text_add(&out, " [%s]", row->preset);
        sdr_text_add(&out, "\n");
    }
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

enum sdr_status sdr_options_check(const struct sdr_options *options)
{
    const struct sdr_settings *s = &options->settings;
    double number;
    uint64_t updates;
    if (s->valid && s->valid_fraction > 0)
        return sdr_fail(SDR_USAGE, "--valid and --valid-fraction exclude each other");
    if (s->early_stop && !s->valid && s->valid_fraction == 0)
        return sdr_fail(SDR_USAGE, "--early-stop needs --valid or --valid-fraction");
    if (s->valid && strcmp(s->valid, "-") != 0 && !strpbrk(s->valid, "*?[") &&
        access(s->valid, R_OK) != 0)
        return sdr_fail_errno("cannot open '%s'", s->valid);
    if (s->valid_labels && !s->valid)
        return sdr_fail(SDR_USAGE, "--valid-labels needs --valid");
    if (s->target && !sdr_parse_double(s->target, &number))
        return sdr_fail(SDR_USAGE, "--target takes a loss, not '%s'", s->target);
    if (strcmp(s->evaluate_every, "no") != 0 && strcmp(s->evaluate_every, "auto") != 0 &&
        !sdr_parse_u64(s->evaluate_every, &updates))
        return sdr_fail(SDR_USAGE, "--evaluate-every takes updates, auto or no, not '%s'",
                        s->evaluate_every);
    if (s->replay && s->resume)
        return sdr_fail(SDR_USAGE, "--replay begins at the beginning: not with --resume");
    if (s->record && s->replay)
        return sdr_fail(SDR_USAGE, "--record and --replay exclude each other");
    if (s->resume && !s->run)
        return sdr_fail(SDR_USAGE, "--resume needs --run DIR, the folder of the run to go on with");
    if (sdr_options_given(options, "checkpoint-every") && !s->run)
        return sdr_fail(SDR_USAGE,
                        "--checkpoint-every needs --run DIR, the folder to keep them in");
    if (!sdr_parse_every(s->checkpoint_every, &number, &updates))
        return sdr_fail(
            SDR_USAGE,
            "--checkpoint-every takes seconds or updates such as 60s or 10000u, not '%s'",
            s->checkpoint_every);
    return SDR_OK;
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
