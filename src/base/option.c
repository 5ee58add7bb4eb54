#include "base/option.h"
#include "base/memory.h"

#include <string.h>

const struct sdr_option *sdr_option_find(const struct sdr_option *table, const char *key)
{
    for (; table && table->key; table++)
        if (strcmp(table->key, key) == 0)
            return table;
    return NULL;
}

const char *sdr_option_nearest(const struct sdr_option *table, const char *key)
{
    const char *best = NULL;
    size_t least = strlen(key) / 2 + 1;
    for (; table && table->key; table++) {
        size_t distance = sdr_edit_distance(key, table->key);
        if (strncmp(key, table->key, strlen(key)) == 0)
            distance = 1;
        if (distance < least) {
            least = distance;
            best = table->key;
        }
    }
    return best;
}

const char *sdr_option_shown(const struct sdr_option *option)
{
    static const char *const by_type[] = {
        [SDR_FLAG] = "yes|no", [SDR_INTEGER] = "N", [SDR_NUMBER] = "X",
        [SDR_SIZE] = "SIZE",   [SDR_CHOICE] = "",   [SDR_TEXT] = "TEXT"};
    return option->choices ? option->choices : by_type[option->type];
}

/* The position of value in "a|b|c", or −1. */
static int choice_number(const char *choices, const char *value)
{
    size_t length = strlen(value);
    for (int number = 0;; number++) {
        const char *bar = strchr(choices, '|');
        size_t width = bar ? (size_t)(bar - choices) : strlen(choices);
        if (width == length && memcmp(choices, value, length) == 0)
            return number;
        if (!bar)
            return -1;
        choices = bar + 1;
    }
}

static bool within(const struct sdr_option *option, double value)
{
    return (option->least == 0 && option->most == 0) ||
           (value >= option->least && value <= option->most);
}

static enum sdr_status refuse(const struct sdr_option *option, const char *owner, const char *value)
{
    static const char *const what[] = {
        "yes or no", "a whole number", "a number", "a size such as 512M", "", "text"};
    if (option->type == SDR_CHOICE)
        return sdr_fail(SDR_USAGE, "%s takes one of %s, not '%s'", owner, option->choices, value);
    if (option->least != 0 || option->most != 0)
        return sdr_fail(SDR_USAGE, "%s takes %s from %.15g to %.15g, not '%s'", owner,
                        what[option->type], option->least, option->most, value);
    return sdr_fail(SDR_USAGE, "%s takes %s, not '%s'", owner, what[option->type], value);
}

enum sdr_status sdr_option_set(const struct sdr_option *option, const char *owner,
                               const char *value, void *target)
{
    void *place = (char *)target + option->offset;
    bool good = false;
    switch (option->type) {
    case SDR_FLAG: {
        int number = choice_number("no|yes", value);
        if ((good = number >= 0))
            *(bool *)place = number;
        break;
    }
    case SDR_INTEGER: {
        uint64_t number;
        if ((good = sdr_parse_u64(value, &number) && within(option, (double)number)))
            *(uint64_t *)place = number;
        break;
    }
    case SDR_NUMBER: {
        double number;
        if ((good = sdr_parse_double(value, &number) && within(option, number)))
            *(double *)place = number;
        break;
    }
    case SDR_SIZE: {
        uint64_t bytes;
        if ((good = sdr_parse_size(value, &bytes)))
            *(uint64_t *)place = bytes;
        break;
    }
    case SDR_CHOICE: {
        int number = choice_number(option->choices, value);
        if ((good = number >= 0))
            *(int *)place = number;
        break;
    }
    case SDR_TEXT: {
        char *copy;
        SDR_TRY(sdr_copy_string(&copy, value));
        sdr_release(*(char **)place);
        *(char **)place = copy;
        good = true;
        break;
    }
    }
    return good ? SDR_OK : refuse(option, owner, value);
}

enum sdr_status sdr_option_defaults(const struct sdr_option *table, void *target)
{
    for (; table && table->key; table++)
        if (table->preset)
            SDR_TRY(sdr_option_set(table, table->key, table->preset, target));
    return SDR_OK;
}

size_t sdr_option_count(const struct sdr_option *table)
{
    size_t count = 0;
    while (table && table[count].key)
        count++;
    return count;
}

enum sdr_status sdr_option_copy(const struct sdr_option *table, const void *from, void *to)
{
    static const size_t bytes[] = {[SDR_FLAG] = sizeof(bool),
                                   [SDR_INTEGER] = sizeof(uint64_t),
                                   [SDR_NUMBER] = sizeof(double),
                                   [SDR_SIZE] = sizeof(uint64_t),
                                   [SDR_CHOICE] = sizeof(int)};
    for (; table && table->key; table++) {
        const void *place = (const char *)from + table->offset;
        if (table->type != SDR_TEXT) {
            memcpy((char *)to + table->offset, place, bytes[table->type]);
            continue;
        }
        const char *text = *(char *const *)place;
        if (text && *text)
            SDR_TRY(sdr_option_set(table, table->key, text, to));
    }
    return SDR_OK;
}

void sdr_option_print(const struct sdr_option *option, const void *target, struct sdr_text *text)
{
    const void *place = (const char *)target + option->offset;
    char number[SDR_NUMBER_TEXT];
    switch (option->type) {
    case SDR_FLAG: sdr_text_add(text, "%s", *(const bool *)place ? "yes" : "no"); break;
    case SDR_INTEGER:
    case SDR_SIZE: sdr_text_add(text, "%llu", (unsigned long long)*(const uint64_t *)place); break;
    case SDR_NUMBER:
        sdr_print_double(number, *(const double *)place);
        sdr_text_add(text, "%s", number);
        break;
    case SDR_CHOICE: {
        const char *choice = option->choices;
        for (int i = *(const int *)place; i > 0; i--)
            choice = strchr(choice, '|') + 1;
        sdr_text_bytes(text, choice, strcspn(choice, "|"));
        break;
    }
    case SDR_TEXT:
        if (*(char *const *)place)
            sdr_text_add(text, "%s", *(char *const *)place);
        break;
    }
}

void sdr_option_free(const struct sdr_option *table, void *target)
{
    for (; table && table->key; table++)
        if (table->type == SDR_TEXT) {
            char **place = (char **)((char *)target + table->offset);
            sdr_release(*place);
            *place = NULL;
        }
}

enum sdr_status sdr_spec_split(const char *spec, char **name, const char **rest)
{
    size_t length = strcspn(spec, ":");
    *rest = spec[length] ? spec + length + 1 : "";
    return sdr_copy_bytes(name, spec, length);
}

static enum sdr_status set_pair(const struct sdr_option *table, const char *name, char *pair,
                                bool only, void *target)
{
    char *equals = strchr(pair, '=');
    const struct sdr_option *option;
    struct sdr_text owner = {0};
    if (equals) {
        *equals = 0;
        option = sdr_option_find(table, pair);
    } else {
        option = only && table && table->key ? table : NULL; /* "ssp:3" sets the first option */
    }
    if (!option) {
        const char *near = sdr_option_nearest(table, pair);
        if (near)
            return sdr_fail(SDR_USAGE, "%s has no option '%s'; did you mean '%s'?", name, pair,
                            near);
        for (const struct sdr_option *o = table; o && o->key; o++)
            sdr_text_add(&owner, "%s%s", o == table ? "; it has " : ", ", o->key);
        enum sdr_status refused = sdr_fail(SDR_USAGE, "%s has no option '%s'%s", name, pair,
                                           owner.bytes ? owner.bytes : "; it takes none");
        sdr_text_free(&owner);
        return refused;
    }
    sdr_text_add(&owner, "%s:%s", name, option->key);
    enum sdr_status status = sdr_option_set(option, owner.bytes ? owner.bytes : name,
                                            equals ? equals + 1 : pair, target);
    sdr_text_free(&owner);
    return status;
}

enum sdr_status sdr_spec_options(const struct sdr_option *table, const char *name, const char *rest,
                                 void *target)
{
    char *copy;
    SDR_TRY(sdr_copy_string(&copy, rest));
    enum sdr_status status = SDR_OK;
    bool only = !strchr(copy, ',');
    for (char *pair = copy; status == SDR_OK && pair && *pair;) {
        char *comma = strchr(pair, ',');
        if (comma)
            *comma = 0;
        status = set_pair(table, name, pair, only, target);
        pair = comma ? comma + 1 : NULL;
    }
    sdr_release(copy);
    return status;
}
