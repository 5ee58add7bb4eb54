/* Laws of option tables: what is set is printed back, what is wrong is refused, nothing is
   ignored. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fault.h"
#include "base/memory.h"
#include "base/option.h"
#include "run/settings.h"

#include <stdio.h>
#include <string.h>

struct target {
    bool flag;
    uint64_t integer, size;
    double number;
    int choice;
    char *text, *absent;
};
static const struct sdr_option table[] = {
    {"staleness", SDR_INTEGER, "3", NULL, 0, 100, "help", offsetof(struct target, integer), 0},
    {"flag", SDR_FLAG, "no", NULL, 0, 0, "help", offsetof(struct target, flag), 0},
    {"number", SDR_NUMBER, "0.5", NULL, 0, 1, "help", offsetof(struct target, number), 0},
    {"size", SDR_SIZE, "1M", NULL, 0, 0, "help", offsetof(struct target, size), 0},
    {"choice", SDR_CHOICE, "b", "a|b|long", 0, 0, "help", offsetof(struct target, choice), 0},
    {"text", SDR_TEXT, "hello", NULL, 0, 0, "help", offsetof(struct target, text), 0},
    {"absent", SDR_TEXT, NULL, NULL, 0, 0, "help", offsetof(struct target, absent), 0},
    {0}};

static struct target defaults(void)
{
    struct target target = {0};
    assert_int_equal(sdr_option_defaults(table, &target), SDR_OK);
    return target;
}

static enum sdr_status set(struct target *target, const char *key, const char *value)
{
    return sdr_option_set(sdr_option_find(table, key), key, value, target);
}

static void defaults_are_those_of_the_table(void **state)
{
    struct target t = defaults();
    (void)state;
    assert_true(t.integer == 3 && !t.flag && t.number == 0.5 && t.size == 1 << 20 && t.choice == 1);
    assert_string_equal(t.text, "hello");
    assert_null(t.absent);
    sdr_option_free(table, &t);
    assert_null(t.text);
}

static void what_is_printed_sets_the_same(void **state)
{
    static const char *const values[][2] = {
        {"staleness", "17"}, {"flag", "yes"},       {"number", "0.1"}, {"number", "1e-300"},
        {"size", "123456"},  {"choice", "long"},    {"choice", "a"},   {"text", "a=b,c:d"},
        {"text", ""},        {"absent", "now here"}};
    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        struct target t = defaults();
        struct sdr_text text = {0};
        char *printed;
        assert_int_equal(set(&t, values[i][0], values[i][1]), SDR_OK);
        sdr_option_print(sdr_option_find(table, values[i][0]), &t, &text);
        assert_int_equal(sdr_text_take(&text, &printed), SDR_OK);
        assert_string_equal(printed, values[i][1]);
        sdr_release(printed);
        sdr_option_free(table, &t);
    }
}

static void wrong_values_are_refused_and_change_nothing(void **state)
{
    static const char *const values[][2] = {
        {"staleness", "101"}, {"staleness", "-1"}, {"staleness", "1.5"}, {"staleness", ""},
        {"flag", "maybe"},    {"flag", "YES"},     {"flag", ""},         {"number", "1.01"},
        {"number", "nan"},    {"number", "0.5x"},  {"size", "-3"},       {"size", "3Q"},
        {"choice", "c"},      {"choice", "a|b"},   {"choice", ""},       {"choice", "lon"}};
    struct target t = defaults();
    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        assert_int_equal(set(&t, values[i][0], values[i][1]), SDR_USAGE);
        assert_non_null(strstr(sdr_error(), values[i][0]));
        assert_true(t.integer == 3 && !t.flag && t.number == 0.5 && t.choice == 1);
    }
    sdr_option_free(table, &t);
}

static void a_copy_has_every_value_and_texts_of_its_own(void **state)
{
    static const char *const values[][2] = {{"staleness", "17"}, {"flag", "yes"},
                                            {"number", "0.1"},   {"size", "123456"},
                                            {"choice", "long"},  {"text", "a=b,c:d"}};
    struct target from = defaults(), to = {0};
    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        assert_int_equal(set(&from, values[i][0], values[i][1]), SDR_OK);
    assert_int_equal(sdr_option_copy(table, &from, &to), SDR_OK);
    assert_true(to.integer == 17 && to.flag && to.number == 0.1 && to.size == 123456);
    assert_int_equal(to.choice, 2);
    assert_null(to.absent);
    assert_ptr_not_equal(to.text, from.text);
    sdr_option_free(table, &from);
    assert_string_equal(to.text, "a=b,c:d");
    sdr_option_free(table, &to);
}

static void copying_an_empty_text_leaves_the_default(void **state)
{
    struct target from = defaults(), to = defaults();
    (void)state;
    assert_int_equal(set(&from, "text", ""), SDR_OK);
    assert_int_equal(sdr_option_copy(table, &from, &to), SDR_OK);
    assert_string_equal(to.text, "hello");
    sdr_option_free(table, &from);
    sdr_option_free(table, &to);
}

/* Tables may be longer than a machine word has bits. */
static void a_long_table_is_counted_and_copied(void **state)
{
    enum { ROWS = 200 };
    static struct sdr_option rows[ROWS + 1];
    static char key[ROWS][8];
    uint64_t from[ROWS], to[ROWS] = {0};
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        snprintf(key[i], sizeof key[i], "row%zu", i);
        rows[i] = (struct sdr_option){.key = key[i],
                                      .type = SDR_INTEGER,
                                      .preset = "7",
                                      .help = "help",
                                      .offset = i * sizeof *from};
    }
    assert_int_equal(sdr_option_count(rows), ROWS);
    assert_int_equal(sdr_option_count(NULL), 0);
    assert_int_equal(sdr_option_defaults(rows, from), SDR_OK);
    assert_int_equal(sdr_option_set(sdr_option_find(rows, "row150"), "row150", "9", from), SDR_OK);
    assert_int_equal(sdr_option_copy(rows, from, to), SDR_OK);
    for (size_t i = 0; i < ROWS; i++)
        assert_int_equal(to[i], i == 150 ? 9 : 7);
}

/* Every row can be set, and none of the others counts as set by that. */
static void what_was_set_is_known_row_by_row(void **state)
{
    (void)state;
    for (const struct sdr_option *row = sdr_settings_table; row->key; row++) {
        struct sdr_options *options, copy = {0};
        assert_int_equal(sdr_options_create(&options), SDR_OK);
        assert_int_equal(sdr_options_set(options, row->key, row->preset ? row->preset : "x"),
                         SDR_OK);
        assert_int_equal(sdr_options_copy(options, &copy), SDR_OK);
        for (const struct sdr_option *other = sdr_settings_table; other->key; other++) {
            assert_int_equal(sdr_options_given(options, other->key), other == row);
            assert_int_equal(sdr_options_given(&copy, other->key), other == row);
        }
        sdr_options_release(&copy);
        sdr_options_destroy(options);
    }
}

static void a_misspelt_key_finds_the_nearest(void **state)
{
    (void)state;
    assert_string_equal(sdr_option_nearest(table, "stalenes"), "staleness");
    assert_string_equal(sdr_option_nearest(table, "chioce"), "choice");
    assert_string_equal(sdr_option_nearest(table, "num"), "number");
    assert_null(sdr_option_nearest(table, "qwertyuiop"));
    assert_null(sdr_option_nearest(NULL, "x"));
    assert_null(sdr_option_find(table, "stale"));
    assert_null(sdr_option_find(NULL, "stale"));
}

static enum sdr_status parse(const char *spec, struct target *target)
{
    char *name;
    const char *rest;
    *target = defaults();
    assert_int_equal(sdr_spec_split(spec, &name, &rest), SDR_OK);
    enum sdr_status status = sdr_spec_options(table, name, rest, target);
    sdr_release(name);
    return status;
}

static void a_spec_sets_its_first_option_or_pairs(void **state)
{
    struct target t;
    (void)state;
    assert_int_equal(parse("ssp", &t), SDR_OK);
    assert_true(t.integer == 3);
    sdr_option_free(table, &t);
    assert_int_equal(parse("ssp:7", &t), SDR_OK);
    assert_true(t.integer == 7);
    sdr_option_free(table, &t);
    assert_int_equal(parse("ssp:flag=yes,staleness=9,text=a:b", &t), SDR_OK);
    assert_true(t.integer == 9 && t.flag);
    assert_string_equal(t.text, "a:b");
    sdr_option_free(table, &t);
}

static void nothing_in_a_spec_is_ignored(void **state)
{
    static const char *const bad[] = {
        "ssp:x",    "ssp:stalenes=3",      "ssp:3,flag=yes", "ssp:flag=yes,3", "ssp:=3",
        "ssp:flag", "ssp:flag=yes,,x=1",   "ssp:,flag=yes",  "ssp:,nonsense",  "ssp:,",
        "ssp:,,",   "ssp:flag=yes,,size=x"};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct target t;
        enum sdr_status status = parse(bad[i], &t);
        sdr_option_free(table, &t);
        if (status != SDR_USAGE)
            fail_msg("'%s' gives status %d", bad[i], status);
    }
}

static void running_out_of_memory_leaks_nothing_and_is_told(void **state)
{
    (void)state;
    for (uint64_t nth = 1;; nth++) {
        struct target t = {0};
        char *name = NULL;
        const char *rest;
        sdr_fault_arm(SDR_FAULT_ALLOCATE, nth);
        enum sdr_status status = sdr_option_defaults(table, &t);
        if (status == SDR_OK)
            status = sdr_spec_split("ssp:text=other,number=0.25", &name, &rest);
        if (status == SDR_OK)
            status = sdr_spec_options(table, name, rest, &t);
        bool struck = sdr_fault_count(SDR_FAULT_ALLOCATE) >= nth;
        sdr_fault_arm(SDR_FAULT_ALLOCATE, 0);
        if (status == SDR_OK) { /* then nothing of it may be missing */
            assert_string_equal(t.text, "other");
            assert_true(t.number == 0.25);
        } else {
            assert_int_equal(status, SDR_RUNTIME);
        }
        sdr_release(name);
        sdr_option_free(table, &t);
        if (!struck)
            break;
    }
}

static void a_long_value_is_cut_between_characters(void **state)
{
    struct sdr_options *options;
    char value[6001] = "";
    (void)state;
    assert_int_equal(sdr_options_create(&options), SDR_OK);
    for (size_t shift = 0; shift < 2;
         shift++) { /* the cut falls into a character, and behind one */
        memset(value, 'x', shift);
        for (size_t i = shift; i + 2 < sizeof value; i += 2)
            memcpy(value + i, "\xc3\xa9", 2);
        assert_int_equal(sdr_options_set(options, "ignore", value), SDR_OK);
        const char *got = sdr_options_get(options, "ignore");
        assert_int_equal(strlen(got), 4094 + shift);
        assert_memory_equal(got, value, strlen(got));
    }
    sdr_options_destroy(options);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_those_of_the_table),
        cmocka_unit_test(what_is_printed_sets_the_same),
        cmocka_unit_test(wrong_values_are_refused_and_change_nothing),
        cmocka_unit_test(a_copy_has_every_value_and_texts_of_its_own),
        cmocka_unit_test(copying_an_empty_text_leaves_the_default),
        cmocka_unit_test(a_long_table_is_counted_and_copied),
        cmocka_unit_test(what_was_set_is_known_row_by_row),
        cmocka_unit_test(a_misspelt_key_finds_the_nearest),
        cmocka_unit_test(a_spec_sets_its_first_option_or_pairs),
        cmocka_unit_test(nothing_in_a_spec_is_ignored),
        cmocka_unit_test(a_long_value_is_cut_between_characters),
        cmocka_unit_test(running_out_of_memory_leaks_nothing_and_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
