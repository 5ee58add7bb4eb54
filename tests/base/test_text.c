/* Laws of text: numbers read as strtod reads them, printed so that they come back, growing
   strings. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fault.h"
#include "base/memory.h"
#include "base/rng.h"
#include "base/text.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Scans text that ends where a page that cannot be read begins: one byte too far is a crash. */
static const char *scan(const char *text, size_t length, double *value)
{
    static char *fence;
    enum { ROOM = 1 << 16 };
    if (!fence) {
        fence = mmap(NULL, ROOM + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(fence != MAP_FAILED && mprotect(fence + ROOM, 4096, PROT_NONE) == 0);
    }
    assert_true(length <= ROOM);
    char *at = fence + ROOM - length;
    memcpy(at, text, length);
    const char *end = sdr_scan_double(at, at + length, value);
    return end ? text + (end - at) : NULL;
}

static void expect_like_strtod(const char *text)
{
    double value, truth = strtod(text, NULL);
    const char *end = scan(text, strlen(text), &value);
    if (end != text + strlen(text) || memcmp(&value, &truth, sizeof value) != 0)
        fail_msg("'%.60s…' reads as %.17g, not %.17g", text, end ? value : NAN, truth);
}

static void numbers_are_rounded_as_strtod_does(void **state)
{
    static const char *const texts[] = {"0",
                                        "-0",
                                        "+0",
                                        "1",
                                        "-1",
                                        "+1",
                                        ".5",
                                        "5.",
                                        "-.5e1",
                                        "1e0",
                                        "1E+2",
                                        "1e-2",
                                        "00012",
                                        "0.1",
                                        "0.2",
                                        "0.3",
                                        "123456789012345678",
                                        "9007199254740993",
                                        "9007199254740992.5",
                                        "18446744073709551615",
                                        "18446744073709551616",
                                        "99999999999999999999999999",
                                        "1.7976931348623157e308",
                                        "1.7976931348623159e308",
                                        "1e308",
                                        "1e309",
                                        "-1e400",
                                        "1e99999",
                                        "2.2250738585072011e-308",
                                        "2.2250738585072014e-308",
                                        "4.9e-324",
                                        "2.4e-324",
                                        "1e-999999",
                                        "5e-324",
                                        "1e23",
                                        "8.41e21",
                                        "9e22",
                                        "1e22",
                                        "1e-22",
                                        "1e-23",
                                        "0e999999",
                                        "0.0e-999999",
                                        "6.631236846766476e-316",
                                        "1.00000000000000011102230246251565404",
                                        "1.00000000000000011102230246251565405",
                                        "0.000000000000000000000000000000000012345678901"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        expect_like_strtod(texts[i]);
}

static void random_numbers_are_rounded_as_strtod_does(void **state)
{
    struct sdr_stream stream = sdr_stream_open(1, SDR_FOR_TEST, 0);
    char text[128];
    (void)state;
    for (int i = 0; i < 200000; i++) {
        uint64_t bits = (uint64_t)sdr_stream_u32(&stream) << 32 | sdr_stream_u32(&stream);
        double any;
        memcpy(&any, &bits, sizeof any);
        if (!isfinite(any))
            continue;
        snprintf(text, sizeof text, "%.*g", 1 + (int)sdr_stream_below(&stream, 25), any);
        expect_like_strtod(text);
        snprintf(text, sizeof text, "%.*f", (int)sdr_stream_below(&stream, 12),
                 sdr_stream_normal(&stream) * 1000);
        expect_like_strtod(text);
    }
}

static void numbers_of_a_thousand_digits_are_read_within_their_bytes(void **state)
{
    char text[6000];
    double value;
    (void)state;
    /* As far as they are read at all: with a fraction too long for anyone. */
    for (int digits = 700; digits < 5000; digits += 93) {
        int length = snprintf(text, sizeof text, "3.%0*d", digits, 14159);
        assert_non_null(scan(text, (size_t)length, &value));
        assert_true(value == 3);
        memset(text, '7', (size_t)digits);
        memcpy(text, "0.", 2);
        assert_non_null(scan(text, (size_t)digits, &value));
        assert_true(value == 0.77777777777777777778);
        memcpy(text + digits, "e-3", 4);
        assert_non_null(scan(text, (size_t)digits + 3, &value));
        assert_true(value == 0.00077777777777777777778);
        /* Digits before the point without end: a number, or none that a caller would take. */
        memset(text, '7', (size_t)digits);
        assert_non_null(scan(text, (size_t)digits, &value));
        assert_false(isfinite(value));
    }
}

static void leading_zeros_do_not_push_the_digits_out(void **state)
{
    char text[4000];
    (void)state;
    for (int zeros = 10; zeros < 3000; zeros += 97) {
        snprintf(text, sizeof text, "0.%0*d1234567e%d", zeros, 0, zeros + 3);
        expect_like_strtod(text);
        snprintf(text, sizeof text, "%0*d17.5", zeros, 0);
        expect_like_strtod(text);
    }
}

static void what_is_no_number_is_refused(void **state)
{
    static const char *const bad[] = {"",    "-",   "+",   ".",   "-.",   "e5",
                                      ".e5", "nan", "NaN", "inf", "-inf", "infinity",
                                      "abc", " 1",  "--1", "+-1", "0x"};
    double value;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_true(scan(bad[i], strlen(bad[i]), &value) != bad[i] + strlen(bad[i]));
        assert_false(sdr_parse_double(bad[i], &value));
    }
    /* A number ends where it ends: hexadecimal, half an exponent, a second point. */
    static const struct {
        const char *text;
        size_t length;
    } partial[] = {{"0x10", 1}, {"1e", 1}, {"1e+", 1}, {"1.2.3", 3}, {"5:6", 1}, {"7 8", 1}};
    for (size_t i = 0; i < sizeof partial / sizeof *partial; i++)
        assert_ptr_equal(scan(partial[i].text, strlen(partial[i].text), &value),
                         partial[i].text + partial[i].length);
    assert_false(sdr_parse_double("1e999", &value));
    assert_false(sdr_parse_double("1 ", &value));
}

static void whole_numbers_do_not_overflow(void **state)
{
    uint64_t value;
    (void)state;
    assert_true(sdr_parse_u64("18446744073709551615", &value) && value == UINT64_MAX);
    assert_true(sdr_parse_u64("0", &value) && value == 0);
    static const char *const bad[] = {
        "",   "-1", "+1", "18446744073709551616", "99999999999999999999", "1.0", "1e3",
        " 1", "1 ", "0x1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(sdr_parse_u64(bad[i], &value));
}

static void sizes_take_powers_of_1024(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {{"0", 0},           {"512", 512},    {"1k", 1024},         {"1K", 1024},
                {"2M", 2 << 20},    {"3m", 3 << 20}, {"1.5G", 3ull << 29}, {"1T", 1ull << 40},
                {"2GB", 2ull << 30}};
    static const char *const bad[] = {"",    "k",     "-1",       "1X",  "1kk", "1MM",
                                      "nan", "1e300", "8388608T", "1 M", "MB"};
    uint64_t bytes;
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(sdr_parse_size(good[i].text, &bytes) && bytes == good[i].bytes);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(sdr_parse_size(bad[i], &bytes));
}

static void printed_numbers_come_back_and_are_short(void **state)
{
    static const struct {
        double value;
        const char *text;
    } known[] = {{0, "0"},       {1, "1"},          {0.1, "0.1"},
                 {-2.5, "-2.5"}, {1e300, "1e+300"}, {0.30000000000000004, "0.30000000000000004"}};
    struct sdr_stream stream = sdr_stream_open(2, SDR_FOR_TEST, 0);
    char text[SDR_NUMBER_TEXT];
    double back;
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        assert_int_equal(sdr_print_double(text, known[i].value), strlen(known[i].text));
        assert_string_equal(text, known[i].text);
    }
    assert_int_equal(sdr_print_float(text, 0.1f), 3);
    assert_string_equal(text, "0.1");
    for (int i = 0; i < 200000; i++) {
        uint64_t bits = (uint64_t)sdr_stream_u32(&stream) << 32 | sdr_stream_u32(&stream);
        double wide;
        float narrow;
        memcpy(&wide, &bits, sizeof wide);
        memcpy(&narrow, &bits, sizeof narrow);
        if (isfinite(wide)) {
            size_t length = sdr_print_double(text, wide);
            assert_true(length < SDR_NUMBER_TEXT && strlen(text) == length);
            assert_true(sdr_parse_double(text, &back) && memcmp(&back, &wide, sizeof back) == 0);
        }
        if (isfinite(narrow)) {
            size_t length = sdr_print_float(text, narrow);
            assert_true(length < SDR_NUMBER_TEXT && strlen(text) == length);
            assert_true(sdr_parse_double(text, &back) && (float)back == narrow);
        }
    }
}

static void the_locale_changes_nothing(void **state)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
    char text[SDR_NUMBER_TEXT];
    double value;
    size_t i = 0;
    (void)state;
    while (i < sizeof names / sizeof *names && !setlocale(LC_NUMERIC, names[i]))
        i++;
    sdr_print_double(text, 1234567.25);
    assert_string_equal(text, "1234567.25");
    assert_true(sdr_parse_double("0.12345678901234567890123", &value));
    assert_true(value == 0.12345678901234567890123);
    assert_false(sdr_parse_double("0,5", &value));
    setlocale(LC_NUMERIC, "C");
}

static void a_text_grows_and_is_given_away(void **state)
{
    struct sdr_text text = {0};
    char *string;
    (void)state;
    for (int i = 0; i < 1000; i++) {
        sdr_text_add(&text, "%d,", i);
        sdr_text_bytes(&text, "ab", 2);
    }
    assert_int_equal(strlen(text.bytes), text.length);
    assert_int_equal(sdr_text_take(&text, &string), SDR_OK);
    assert_memory_equal(string, "0,ab1,ab2,ab", 12);
    assert_null(text.bytes);
    sdr_string_free(string);
    assert_int_equal(sdr_text_take(&text, &string), SDR_OK);
    assert_string_equal(string, "");
    sdr_string_free(string);
    sdr_text_free(&text);
}

static void a_text_remembers_that_memory_ran_out(void **state)
{
    (void)state;
    for (uint64_t nth = 1;; nth++) {
        struct sdr_text text = {0};
        char *string;
        sdr_fault_arm(SDR_FAULT_ALLOCATE, nth);
        for (int i = 0; i < 100; i++)
            sdr_text_add(&text, "number %d ", i);
        enum sdr_status status = sdr_text_take(&text, &string);
        bool struck = sdr_fault_count(SDR_FAULT_ALLOCATE) >= nth;
        sdr_fault_arm(SDR_FAULT_ALLOCATE, 0);
        assert_int_equal(status, struck ? SDR_RUNTIME : SDR_OK);
        assert_int_equal(string == NULL, struck);
        sdr_string_free(string);
        if (!struck)
            break;
    }
}

static void the_edit_distance_is_levenshteins(void **state)
{
    char longer[200];
    (void)state;
    assert_int_equal(sdr_edit_distance("", ""), 0);
    assert_int_equal(sdr_edit_distance("kitten", "sitting"), 3);
    assert_int_equal(sdr_edit_distance("", "abc"), 3);
    assert_int_equal(sdr_edit_distance("abc", ""), 3);
    assert_int_equal(sdr_edit_distance("train", "train"), 0);
    assert_int_equal(sdr_edit_distance("trian", "train"), 2);
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    assert_true(sdr_edit_distance(longer, "x") > 100);
    assert_true(sdr_edit_distance("x", longer) > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_rounded_as_strtod_does),
        cmocka_unit_test(random_numbers_are_rounded_as_strtod_does),
        cmocka_unit_test(numbers_of_a_thousand_digits_are_read_within_their_bytes),
        cmocka_unit_test(leading_zeros_do_not_push_the_digits_out),
        cmocka_unit_test(what_is_no_number_is_refused),
        cmocka_unit_test(whole_numbers_do_not_overflow),
        cmocka_unit_test(sizes_take_powers_of_1024),
        cmocka_unit_test(printed_numbers_come_back_and_are_short),
        cmocka_unit_test(the_locale_changes_nothing),
        cmocka_unit_test(a_text_grows_and_is_given_away),
        cmocka_unit_test(a_text_remembers_that_memory_ran_out),
        cmocka_unit_test(the_edit_distance_is_levenshteins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
