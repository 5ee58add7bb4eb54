/* Evaluates the rules of rules_table.h; sentences that need more than names. */
#include "run/rules.h"
#include "peer/role.h"
#include "run/run_plugins.h"
#include "team/plan.h"

#include <string.h>
#include <unistd.h>

/* ---- conditions ---- */
static bool given(const struct sdr_run *run, const char *option)
{
    return sdr_options_given(&run->options, option);
}

static bool is_number(const char *text)
{
    double number;
    return sdr_parse_double(text, &number);
}

static bool is_count(const char *text)
{
    uint64_t count;
    return sdr_parse_u64(text, &count);
}

static double count_of(const char *text)
{
    uint64_t count = 0;
    sdr_parse_u64(text, &count);
    return (double)count;
}

static bool is_every(const char *text)
{
    double seconds;
    uint64_t updates;
    return sdr_parse_every(text, &seconds, &updates);
}

static bool averages(const struct sdr_run *run)
{
    const char *from = run->options.settings.average;
    return strcmp(from, "no") != 0 && strcmp(from, "auto") != 0;
}

/* Whether all updates change one set of weights: on servers, or one after the other. */
static bool one_place(const struct sdr_run *run)
{
    return (sdr_by_messages(run) && !sdr_sends_steps(run) && !run->use.strategy->peer) ||
           (run->use.strategy->ordered && !sdr_own_steps(run));
}

/* Whether the model has an exact round over all rows instead of steps. */
static bool has_rounds(const struct sdr_model_kind *kind)
{
    return kind->full && kind->full->round;
}

/* Whether the schedule keeps the step size constant, apart from a warm-up. */
static bool is_constant(const struct sdr_run *run)
{
    double first; /* factor */
    run->use.schedule->factors(run->use.schedule_options, &(struct sdr_schedule_time){.epochs = 1},
                               1, &first);
    return strcmp(run->use.schedule->name, "constant") == 0 && first == 1;
}

/* ---- sentences with numbers and file names ---- */
static enum sdr_status cannot_open_valid(const struct sdr_run *run)
{
    return sdr_fail_errno("cannot open '%s'", run->options.settings.valid);
}

static enum sdr_status tell_recorded_workers(const struct sdr_run *run)
{
    return sdr_fail(SDR_USAGE, "%s: the recorded run had %u workers", run->options.settings.replay,
                    run->race.replay->workers);
}

static enum sdr_status tell_threads_most(const struct sdr_run *run)
{
    (void)run;
    return sdr_fail(SDR_USAGE, "--workers takes up to %d that share memory", SDR_WORKERS_MOST);
}

static enum sdr_status tell_nodes_most(const struct sdr_run *run)
{
    return sdr_fail(SDR_USAGE, "--transport %s takes up to %llu workers", run->use.transport->name,
                    (unsigned long long)run->use.transport->workers_most);
}

static enum sdr_status tell_update_rows(const struct sdr_run *run)
{
    return sdr_fail(SDR_USAGE, "an update of %llu rows is too large: give a smaller --batch",
                    (unsigned long long)run->pace.update_rows);
}

static enum sdr_status tell_label_size(const struct sdr_run *run)
{
    return sdr_fail(SDR_BAD_DATA,
                    "%s: the labels are of size %.1g: rescale them, or use --sync batch",
                    run->data->name, run->set.target_size);
}

static enum sdr_status tell_average(const struct sdr_run *run)
{
    return sdr_fail(SDR_USAGE, "--average %s never starts: the run has %g epochs",
                    run->options.settings.average, run->pace.length);
}

/* ---- the table ---- */
#define RULE(phase, name, condition, sentence) IDLE(phase, name, condition, NULL, sentence)
#define TELL(phase, name, condition, function) IDLE(phase, name, condition, NULL, NULL)
#define IDLE(phase, name, condition, idle, sentence)                                               \
    static bool name(const struct sdr_run *run)                                                    \
    {                                                                                              \
        const struct sdr_settings *s = &run->options.settings;                                     \
        const struct sdr_model_kind *kind = run->use.kind;                                         \
        const struct sdr_optimizer *optimizer = run->use.optimizer;                                \
        const struct sdr_strategy *strategy = run->use.strategy;                                   \
        const struct sdr_transport *transport = run->use.transport;                                \
        (void)s, (void)kind, (void)optimizer, (void)strategy, (void)transport;                     \
        return condition;                                                                          \
    }
#include "run/rules_table.h"
#undef RULE
#undef TELL
#undef IDLE

/* clang-format off */
#define OPTIONS(...) (const char *const[]){__VA_ARGS__, NULL}
/* clang-format on */
#define RULE(phase, name, condition, sentence) {SDR_RULES_##phase, name, NULL, sentence, NULL},
#define TELL(phase, name, condition, function) {SDR_RULES_##phase, name, NULL, NULL, function},
#define IDLE(phase, name, condition, idle, sentence)                                               \
    {SDR_RULES_##phase, name, idle, sentence, NULL},
const struct sdr_rule sdr_rules[] = {
#include "run/rules_table.h"
    {0}};

/* ---- evaluation ---- */
/* The value of a name of `length` bytes; NULL: there is no such name. */
static const char *meaning(const struct sdr_run *run, const char *name, size_t length,
                           const char *option)
{
    const struct {
        const char *name, *meaning;
    } known[] = {{"sync", run->use.strategy ? run->use.strategy->name : ""},
                 {"model", run->use.kind ? run->use.kind->name : ""},
                 {"optimizer", run->use.optimizer ? run->use.optimizer->name : ""},
                 {"transport", run->use.transport ? run->use.transport->name : ""},
                 {"recording", run->options.settings.record ? "record" : "replay"},
                 {"option", option ? option : ""}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i].name) == length && memcmp(known[i].name, name, length) == 0)
            return known[i].meaning;
    return NULL;
}

/* {--NAME}: the value of an option. */
static bool add_value(const struct sdr_run *run, const char *name, size_t length,
                      struct sdr_text *text)
{
    char key[64];
    if (length < 3 || length - 2 >= sizeof key || memcmp(name, "--", 2) != 0)
        return false;
    memcpy(key, name + 2, length - 2);
    key[length - 2] = 0;
    const struct sdr_option *row = sdr_option_find(sdr_settings_table, key);
    if (row)
        sdr_option_print(row, &run->options.settings, text);
    return row;
}

bool sdr_rule_sentence(const struct sdr_run *run, const char *sentence, const char *option,
                       struct sdr_text *text)
{
    while (*sentence) {
        size_t plain = strcspn(sentence, "{");
        sdr_text_bytes(text, sentence, plain);
        sentence += plain;
        if (!*sentence)
            break;
        size_t length = strcspn(++sentence, "}");
        const char *means = meaning(run, sentence, length, option);
        if (means)
            sdr_text_add(text, "%s", means);
        else if (!add_value(run, sentence, length, text))
            return false;
        sentence += length + (sentence[length] == '}');
    }
    return true;
}

static enum sdr_status refuse(const struct sdr_run *run, const struct sdr_rule *rule,
                              const char *option)
{
    char bytes[1024] = "";
    struct sdr_text text = {.bytes = bytes, .room = sizeof bytes, .fixed = true};
    if (rule->refuse)
        return rule->refuse(run);
    sdr_rule_sentence(run, rule->sentence, option, &text);
    return sdr_fail(SDR_USAGE, "%s", bytes);
}

enum sdr_status sdr_rules_ask(const struct sdr_run *run, enum sdr_rules_phase phase)
{
    for (const struct sdr_rule *rule = sdr_rules; rule->applies; rule++) {
        if (rule->phase != phase || !rule->applies(run))
            continue;
        if (!rule->options)
            return refuse(run, rule, NULL);
        for (const char *const *option = rule->options; *option; option++)
            if (given(run, *option))
                return refuse(run, rule, *option);
    }
    return SDR_OK;
}

enum sdr_status sdr_options_check(const struct sdr_options *options)
{
    const struct sdr_run only = {.options = *options}; /* borrowed: rules only read */
    return sdr_rules_ask(&only, SDR_RULES_OPTIONS);
}
