/* Laws of hashing: XXH3's numbers, and pieces that hash like the whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fault.h"
#include "base/hash.h"
#include "base/rng.h"

#include <string.h>

/* XXH3 of the empty input and of "a" with seed 0, as xxhsum -H3 and -H2 print them. */
static void hashes_are_those_of_xxh3(void **state)
{
    char text[33];
    (void)state;
    assert_true(sdr_hash64("", 0, 0) == 0x2d06800538d394c2u);
    assert_true(sdr_hash64("a", 1, 0) == 0xe6c632b61e964e1fu);
    sdr_hash_text("", 0, text);
    assert_string_equal(text, "99aa06d3014798d86001c324468d497f");
    sdr_hash_text("a", 1, text);
    assert_string_equal(text, "a96faf705af16834e6c632b61e964e1f");
}

static void the_seed_changes_the_hash(void **state)
{
    (void)state;
    assert_true(sdr_hash64("sounder", 7, 1) != sdr_hash64("sounder", 7, 2));
    assert_true(sdr_hash64("sounder", 7, 1) == sdr_hash64("sounder", 7, 1));
}

static void pieces_hash_like_the_whole(void **state)
{
    enum { BYTES = 5000 };
    unsigned char bytes[BYTES];
    struct sdr_stream stream = sdr_stream_open(1, SDR_FOR_TEST, 0);
    char whole[33], text[33];
    (void)state;
    for (int i = 0; i < BYTES; i++)
        bytes[i] = (unsigned char)sdr_stream_u32(&stream);
    sdr_hash_text(bytes, BYTES, whole);
    for (int trial = 0; trial < 200; trial++) {
        struct sdr_hasher *hasher = sdr_hasher_create();
        assert_non_null(hasher);
        for (size_t at = 0; at < BYTES;) {
            size_t piece = (size_t)sdr_stream_below(&stream, 700);
            if (piece > BYTES - at)
                piece = BYTES - at;
            sdr_hasher_add(hasher, piece ? bytes + at : NULL, piece);
            at += piece;
        }
        sdr_hasher_text(hasher, text);
        assert_string_equal(text, whole);
        sdr_hasher_text(hasher, text); /* looking does not change it */
        assert_string_equal(text, whole);
        sdr_hasher_destroy(hasher);
    }
}

static void every_bit_counts(void **state)
{
    unsigned char bytes[300] = {0};
    char before[33], after[33];
    (void)state;
    sdr_hash_text(bytes, sizeof bytes, before);
    for (size_t bit = 0; bit < sizeof bytes * 8; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        sdr_hash_text(bytes, sizeof bytes, after);
        assert_string_not_equal(before, after);
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
}

static void a_hasher_that_cannot_be_had_is_null(void **state)
{
    (void)state;
    sdr_fault_arm(SDR_FAULT_ALLOCATE, 1);
    assert_null(sdr_hasher_create());
    sdr_fault_arm(SDR_FAULT_ALLOCATE, 0);
    sdr_hasher_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hashes_are_those_of_xxh3),
        cmocka_unit_test(the_seed_changes_the_hash),
        cmocka_unit_test(pieces_hash_like_the_whole),
        cmocka_unit_test(every_bit_counts),
        cmocka_unit_test(a_hasher_that_cannot_be_had_is_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
