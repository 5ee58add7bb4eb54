/* The contenders of a comparison: strategies of --sync, texts of --variant, or their product. Each
   has a copy of the common options, so that what one sets does not reach the next. */
#include "compare.h"

#include <stdlib.h>
#include <string.h>

/* Length of the first strategy in a list such as "bsp,k-async:k=4,shuffle=1,async": a comma ends it
   unless KEY=VALUE follows. */
static size_t strategy_length(const char *text)
{
    size_t length = strcspn(text, ",");
    while (text[length] == ',') {
        const char *next = text + length + 1;
        if (next[strcspn(next, ",:=")] != '=')
            break;
        length += 1 + strcspn(next, ",");
    }
    return length;
}

enum sdr_status cli_contender_failed(const struct cli_contender *contender, enum sdr_status status)
{
    if (status == SDR_OK || !contender->variant)
        return status;
    return cli_fail(status, "--variant '%s': %s", contender->variant, cli_sentence(status));
}

/* ---- variants ---- */
static const struct cli_command variant_command = {.name = "compare", .takes = CLI_SYNC};

/* The data is read once for all contenders, the seed is that of the trial, and the options of the
   program, --json for example, are of the comparison. */
static bool is_common(const char *name)
{
    for (const struct cli_own_option *own = cli_own_options; own->name; own++)
        if (strcmp(own->name, name) == 0)
            return own->bit != CLI_SYNC;
    return sdr_options_for_command("convert", name) || strncmp(name, "valid", 5) == 0 ||
           strcmp(name, "seed") == 0;
}

static enum sdr_status check_word(const char *word)
{
    char name[64];
    if (strncmp(word, "--", 2) != 0)
        return cli_fail(SDR_USAGE, "'%s' is not an option", word);
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word + 2);
    if (is_common(name))
        return cli_fail(SDR_USAGE, "--%s is common to all contenders", name);
    return SDR_OK;
}

/* "--optimizer adam" becomes "optimizer=adam", a strategy its name. */
static void add_to_label(FILE *label, const char *word, const char *value)
{
    bool sync = strncmp(word, "--sync", 6) == 0 && (!word[6] || word[6] == '=');
    if (ftell(label) > 0)
        putc(' ', label);
    if (sync)
        fputs(value ? value : word + 7, label);
    else
        fprintf(label, "%s%s%s", word + 2, value ? "=" : "", value ? value : "");
}

static bool is_over_mpi(const struct cli_contender *contender)
{
    return strncmp(sdr_options_get(contender->options, "transport"), "mpi", 3) == 0;
}

/* `word` is the variant's text, cut at blanks. Processes join MPI once, for all contenders. */
static enum sdr_status apply_words(struct cli_contender *contender, int count, char **word,
                                   FILE *label)
{
    struct cli_arguments part = {.command = &variant_command, .options = contender->options};
    bool over_mpi = is_over_mpi(contender);
    for (int at = 0; at < count; at++) {
        int first = at;
        CLI_TRY(check_word(word[first]));
        CLI_TRY(cli_arguments_option(&part, count, word, &at));
        add_to_label(label, word[first], at > first ? word[at] : NULL);
    }
    if (is_over_mpi(contender) != over_mpi)
        return cli_fail(SDR_USAGE, "--transport mpi is common to all contenders, or not given");
    if (!part.sync)
        return SDR_OK;
    if (contender->sync)
        return cli_fail(SDR_USAGE, "--sync is given beside it, too");
    contender->sync = strdup(part.sync);
    return contender->sync ? sdr_options_set(contender->options, "sync", contender->sync)
                           : cli_fail(SDR_RUNTIME, "out of memory");
}

static enum sdr_status apply_variant(struct cli_contender *contender, FILE *label)
{
    static const char *const blanks = " \t\n";
    size_t room = strlen(contender->variant) / 2 + 1; /* words */
    char *text = strdup(contender->variant), **word = calloc(room, sizeof *word), *rest = NULL;
    int count = 0;
    enum sdr_status status;
    CLI_CHECK(text && word ? SDR_OK : cli_fail(SDR_RUNTIME, "out of memory"));
    for (char *at = strtok_r(text, blanks, &rest); at; at = strtok_r(NULL, blanks, &rest))
        word[count++] = at;
    CLI_CHECK(count ? SDR_OK : cli_fail(SDR_USAGE, "it has no options"));
    CLI_CHECK(apply_words(contender, count, word, label));
cleanup:
    free(word);
    free(text);
    return cli_contender_failed(contender, status);
}

/* ---- contenders ---- */
static enum sdr_status apply(struct cli_contender *contender)
{
    size_t length;
    FILE *label = open_memstream(&contender->label, &length);
    enum sdr_status status = SDR_OK;
    if (!label)
        return cli_fail(SDR_RUNTIME, "out of memory");
    if (contender->sync) {
        fputs(contender->sync, label);
        status = sdr_options_set(contender->options, "sync", contender->sync);
    }
    if (status == SDR_OK && contender->variant)
        status = apply_variant(contender, label);
    bool failed = ferror(label);
    /* NULL, without an error, if memory is short then */
    failed |= fclose(label) != 0 || !contender->label;
    return status == SDR_OK && failed ? cli_fail(SDR_RUNTIME, "out of memory") : status;
}

/* sync: `length` bytes of --sync, or NULL. */
static enum sdr_status add(struct cli_comparison *c, const char *sync, size_t length,
                           const char *variant)
{
    struct cli_contender *more = realloc(c->contender, (c->count + 1) * sizeof *more);
    if (!more)
        return cli_fail(SDR_RUNTIME, "out of memory");
    c->contender = more;
    struct cli_contender *last = &more[c->count++];
    *last = (struct cli_contender){.sync = sync ? strndup(sync, length) : NULL,
                                   .variant = variant,
                                   .trial = calloc(c->seeds, sizeof *last->trial)};
    if ((sync && !last->sync) || !last->trial)
        return cli_fail(SDR_RUNTIME, "out of memory");
    CLI_TRY(sdr_options_clone(c->arguments->options, &last->options));
    CLI_TRY(apply(last));
    for (size_t i = 0; i + 1 < c->count; i++)
        if (strcmp(more[i].label, last->label) == 0)
            return cli_fail(SDR_USAGE, "--%s has '%s' twice", variant ? "variant" : "sync",
                            last->label);
    return SDR_OK;
}

static enum sdr_status add_variants(struct cli_comparison *c, const char *sync, size_t length)
{
    if (c->arguments->variant_count == 0)
        return add(c, sync, length, NULL);
    for (size_t i = 0; i < c->arguments->variant_count; i++)
        CLI_TRY(add(c, sync, length, c->arguments->variants[i]));
    return SDR_OK;
}

static enum sdr_status add_all(struct cli_comparison *c)
{
    const char *text = c->arguments->sync;
    if (!text && c->arguments->variant_count == 0)
        return cli_fail(SDR_USAGE, "what is to be compared? --sync bsp,async names strategies, "
                                   "--variant \"--lr 0.1\" other options");
    if (!text)
        return add_variants(c, NULL, 0);
    for (;;) {
        size_t length = strategy_length(text);
        if (length == 0)
            return cli_fail(SDR_USAGE, "--sync %s: a strategy is missing between two commas",
                            c->arguments->sync);
        CLI_TRY(add_variants(c, text, length));
        if (!text[length])
            return SDR_OK;
        text += length + 1;
    }
}

static bool is_simulated(const struct cli_contender *contender)
{
    const char *transport = sdr_options_get(contender->options, "transport");
    return strncmp(transport, "sim", 3) == 0 && (!transport[3] || transport[3] == ':');
}

enum sdr_status cli_contenders_make(struct cli_comparison *c)
{
    CLI_TRY(add_all(c));
    c->simulated = is_simulated(&c->contender[0]);
    for (size_t i = 0; i < c->count; i++) {
        struct cli_contender *contender = &c->contender[i];
        CLI_TRY(cli_contender_failed(contender, sdr_options_check(contender->options)));
        if (is_simulated(contender) != c->simulated)
            return cli_fail(SDR_USAGE,
                            "--variant '%s': virtual time cannot be compared with real time",
                            contender->variant);
    }
    return SDR_OK;
}

void cli_contenders_release(struct cli_comparison *c)
{
    for (size_t i = 0; i < c->count; i++) {
        struct cli_contender *contender = &c->contender[i];
        for (size_t s = 0; s < c->seeds && contender->trial; s++) {
            free(contender->trial[s].point);
            json_decref(contender->trial[s].summary);
        }
        free(contender->trial);
        free(contender->sync);
        free(contender->label);
        sdr_options_destroy(contender->options);
    }
    free(c->contender);
}
