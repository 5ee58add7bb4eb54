/* Laws of JSON: sdr_json_parse agrees with jansson's own parser, on what it accepts and on the
   value, for texts of every kind and for texts with random damage; an object without one of its
   parts is not printed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/rng.h"

#include <string.h>

static const char *const texts[] = {
    "{}",
    "[]",
    " [ ] ",
    "{\"a\":1}",
    "{\"a\":{\"b\":[1,2,[],{}]},\"c\":null,\"d\":true,\"e\":false}",
    "{\"a\":1,\"a\":2}",
    "{\"\":0}",
    "[1,-1,0,-0,10,1.5,-1.5e3,1E-2,0.1e+7,9223372036854775807,-9223372036854775808]",
    "[9223372036854775808]",
    "[-9223372036854775809]",
    "[01]",
    "[1.]",
    "[.5]",
    "[+1]",
    "[1e]",
    "[1e400]",
    "[1e-400]",
    "[NaN]",
    "[-]",
    "[1,]",
    "[,1]",
    "{\"a\"}",
    "{\"a\":}",
    "{\"a\":1,}",
    "{a:1}",
    "[1 2]",
    "[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"]",
    "[\"\\u0041\\u00e9\\u20ac\\uD834\\uDD1E\"]",
    "[\"\\uD834\"]",
    "[\"\\uDD1E\"]",
    "[\"\\uD834\\u0041\"]",
    "[\"\\u0000\"]",
    "[\"\\x\"]",
    "[\"a\tb\"]",
    "[\"ü€𝄞\"]",
    "[\"\xC0\x80\"]",
    "[\"\xED\xA0\x80\"]",
    "[\"\xF4\x90\x80\x80\"]",
    "[\"\xFF\"]",
    "[\"\xC3\"]",
    "[tru]",
    "[truex]",
    "nul",
    "",
    "[",
    "{\"a\":[1}",
    "[1]]",
    "{} x",
    "{\"name\":\"value with "
    "spaces\",\"list\":[0.25,\"x\",-7],\"n\":{\"dtype\":\"F32\",\"shape\":[3,4]}}",
};

static void agree(const char *text, size_t length)
{
    json_t *ours,
        *theirs = json_loadb(text, length, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
    enum sdr_status status = sdr_json_parse(text, length, &ours);
    if ((status == SDR_OK) != (theirs != NULL))
        fail_msg("%.*s: status %d, jansson %s", (int)length, text, status,
                 theirs ? "accepts it" : "does not");
    if (status == SDR_OK && !json_equal(ours, theirs))
        fail_msg("%.*s: another value", (int)length, text);
    if (status != SDR_OK)
        assert_int_equal(status, SDR_BAD_FILE);
    json_decref(ours);
    json_decref(theirs);
}

static void texts_are_parsed_as_jansson_does(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        agree(texts[i], strlen(texts[i]));
}

static void damaged_texts_are_parsed_as_jansson_does(void **state)
{
    (void)state;
    static const char bytes[] = "{}[]\",:\\u0123456789eE+-.tfn \t\n\xC3\xBC\xED\xA0";
    enum { ROUNDS = 60000 };
    struct sdr_stream dice = sdr_stream_open(7, SDR_FOR_TEST, 0);
    for (int round = 0; round < ROUNDS; round++) {
        char text[256];
        const char *from = texts[sdr_stream_below(&dice, sizeof texts / sizeof *texts)];
        size_t length = strlen(from);
        memcpy(text, from, length);
        for (uint64_t k = 0; k < 1 + sdr_stream_below(&dice, 3) && length; k++)
            text[sdr_stream_below(&dice, length)] =
                bytes[sdr_stream_below(&dice, sizeof bytes - 1)];
        if (sdr_stream_below(&dice, 4) == 0)
            length = sdr_stream_below(&dice, length + 1);
        agree(text, length);
    }
}

static void deep_text_is_refused(void **state)
{
    (void)state;
    char text[400];
    json_t *value;
    memset(text, '[', 200);
    memset(text + 200, ']', 200);
    assert_int_equal(sdr_json_parse(text, 400, &value), SDR_BAD_FILE);
    assert_null(value);
}

static void an_object_without_a_part_is_not_printed(void **state)
{
    (void)state;
    char *text;
    json_t *object = sdr_json_begin(json_object());
    sdr_json_set(object, "a", json_integer(1));
    sdr_json_set(object, "b", NULL); /* what a failed allocation gives */
    assert_int_equal(sdr_json_text(object, &text), SDR_RUNTIME);
    assert_null(text);
    object = sdr_json_begin(json_object());
    sdr_json_set(object, "a", json_integer(1));
    assert_int_equal(sdr_json_text(object, &text), SDR_OK);
    assert_string_equal(text, "{\"a\":1}");
    sdr_string_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_parsed_as_jansson_does),
        cmocka_unit_test(damaged_texts_are_parsed_as_jansson_does),
        cmocka_unit_test(deep_text_is_refused),
        cmocka_unit_test(an_object_without_a_part_is_not_printed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
