/* Laws of sets of bits: numbers are independent of each other, within a word and across words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bits.h"
#include "base/memory.h"

enum { MOST = 200 };

static void the_words_hold_every_number_below_the_count(void **state)
{
    (void)state;
    assert_int_equal(sdr_bit_words(0), 0);
    for (size_t count = 1; count <= MOST; count++) {
        assert_true(sdr_bit_words(count) * 64 >= count);
        assert_true((sdr_bit_words(count) - 1) * 64 < count);
    }
}

/* Sets grow one number at a time; in a memory of exactly that size, so that a sanitizer sees a step
   beyond it. */
static void a_number_that_is_turned_on_changes_no_other(void **state)
{
    (void)state;
    for (size_t number = 0; number < MOST; number++) {
        uint64_t *words;
        assert_int_equal(sdr_allocate(&words, sdr_bit_words(number + 1), sizeof *words, "a test"),
                         SDR_OK);
        sdr_bit_turn_on(words, number);
        for (size_t other = 0; other <= number; other++)
            assert_int_equal(sdr_bit_is_on(words, other), other == number);
        sdr_release(words);
    }
}

static void turning_on_keeps_what_was_on(void **state)
{
    uint64_t words[(MOST + 63) / 64] = {0};
    (void)state;
    for (size_t number = 0; number < MOST; number += 3)
        sdr_bit_turn_on(words, number);
    for (size_t number = 0; number < MOST; number++)
        assert_int_equal(sdr_bit_is_on(words, number), number % 3 == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_words_hold_every_number_below_the_count),
        cmocka_unit_test(a_number_that_is_turned_on_changes_no_other),
        cmocka_unit_test(turning_on_keeps_what_was_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
