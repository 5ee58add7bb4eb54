/* Laws of the table of rules: it is in the order of asking, and its sentences name what there
   is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "run/rules.h"

#include <ctype.h>
#include <string.h>

/* A run that has its options and no more. */
static struct sdr_run options_alone(void)
{
    struct sdr_options *options;
    struct sdr_run run = {0};
    assert_int_equal(sdr_options_create(&options), SDR_OK);
    assert_int_equal(sdr_options_copy(options, &run.options), SDR_OK);
    sdr_options_destroy(options);
    return run;
}

static void rules_stand_in_the_order_they_are_asked_in(void **state)
{
    (void)state;
    size_t count = 0;
    for (const struct sdr_rule *rule = sdr_rules; rule->applies; rule++, count++)
        assert_true(rule == sdr_rules || rule[-1].phase <= rule->phase);
    assert_true(count > 50);
}

static void a_rule_has_a_sentence_or_a_function(void **state)
{
    (void)state;
    for (const struct sdr_rule *rule = sdr_rules; rule->applies; rule++)
        assert_true(!rule->sentence == !!rule->refuse);
}

static void options_that_do_nothing_are_options(void **state)
{
    (void)state;
    for (const struct sdr_rule *rule = sdr_rules; rule->applies; rule++)
        for (const char *const *option = rule->options; option && *option; option++)
            if (!sdr_option_find(sdr_settings_table, *option))
                fail_msg("there is no --%s", *option);
}

/* "--no-intercept" turns the flag "intercept" off. */
static void check_option(const char *name, const char *sentence)
{
    const struct sdr_option *flag =
        strncmp(name, "no-", 3) == 0 ? sdr_option_find(sdr_settings_table, name + 3) : NULL;
    if (!sdr_option_find(sdr_settings_table, name) && !(flag && flag->type == SDR_FLAG))
        fail_msg("there is no --%s: %s", name, sentence);
}

static void options_in_sentences_are_options(void **state)
{
    int named = 0;
    (void)state;
    for (const struct sdr_rule *rule = sdr_rules; rule->applies; rule++) {
        const char *at = rule->sentence;
        while (at && (at = strstr(at, "--"))) {
            char name[64];
            size_t length = 0;
            for (at += 2; islower((unsigned char)at[length]) ||
                          isdigit((unsigned char)at[length]) || at[length] == '-';
                 length++)
                ;
            assert_true(length < sizeof name);
            memcpy(name, at, length);
            name[length] = 0;
            if (*at != '{') { /* --{option} is whichever was given */
                check_option(name, rule->sentence);
                named++;
            }
        }
    }
    assert_true(named > 50);
}

static void names_in_braces_have_a_meaning(void **state)
{
    struct sdr_run run = options_alone();
    (void)state;
    for (const struct sdr_rule *rule = sdr_rules; rule->applies; rule++) {
        char bytes[1024] = "";
        struct sdr_text text = {.bytes = bytes, .room = sizeof bytes, .fixed = true};
        if (rule->sentence && !sdr_rule_sentence(&run, rule->sentence, "x", &text))
            fail_msg("a name has no meaning: %s", rule->sentence);
        assert_null(strpbrk(bytes, "{}"));
        assert_true(strlen(bytes) < sizeof bytes - 200); /* room for names */
    }
    sdr_options_release(&run.options);
}

static void a_sentence_says_what_names_stand_for(void **state)
{
    static const struct sdr_strategy strategy = {.name = "ssp"};
    struct sdr_run run = options_alone();
    char bytes[200] = "";
    struct sdr_text text = {.bytes = bytes, .room = sizeof bytes, .fixed = true};
    (void)state;
    run.use.strategy = &strategy;
    run.options.settings.batch = 7;
    assert_true(sdr_rule_sentence(&run, "{sync}: --{option} {--batch}, {recording}", "l1", &text));
    assert_string_equal(bytes, "ssp: --l1 7, replay");
    assert_false(sdr_rule_sentence(&run, "{nonsense}", NULL, &text));
    assert_false(sdr_rule_sentence(&run, "{--nonsense}", NULL, &text));
    sdr_options_release(&run.options);
}

/* The first of several rules that apply is the one that refuses. */
static void the_first_rule_that_applies_refuses(void **state)
{
    struct sdr_options *options;
    (void)state;
    assert_int_equal(sdr_options_create(&options), SDR_OK);
    assert_int_equal(sdr_options_check(options), SDR_OK);
    assert_int_equal(sdr_options_set(options, "resume", "yes"), SDR_OK);
    assert_int_equal(sdr_options_set(options, "target", "low"), SDR_OK);
    assert_int_equal(sdr_options_check(options), SDR_USAGE);
    assert_string_equal(sdr_error(), "--target takes a loss, not 'low'");
    assert_int_equal(sdr_options_set(options, "target", "0.1"), SDR_OK);
    assert_int_equal(sdr_options_check(options), SDR_USAGE);
    assert_non_null(strstr(sdr_error(), "--resume needs --run DIR"));
    sdr_options_destroy(options);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_stand_in_the_order_they_are_asked_in),
        cmocka_unit_test(a_rule_has_a_sentence_or_a_function),
        cmocka_unit_test(options_that_do_nothing_are_options),
        cmocka_unit_test(options_in_sentences_are_options),
        cmocka_unit_test(names_in_braces_have_a_meaning),
        cmocka_unit_test(a_sentence_says_what_names_stand_for),
        cmocka_unit_test(the_first_rule_that_applies_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
