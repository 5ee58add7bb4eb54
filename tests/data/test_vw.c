/* Vowpal Wabbit text: heads, namespaces, hashing, and where errors are. */
#include "base/hash.h"
#include "base/rng.h"
#include "data/reading.h"
#include <math.h>

static uint32_t feature(const char *space, const char *name, unsigned bits)
{
    uint64_t seed = sdr_hash64(space, strlen(space), 0);
    return (uint32_t)(sdr_hash64(name, strlen(name), seed) & ((1ull << bits) - 1));
}

/* The value of a feature in a row of the piece, NaN if it is not there. */
static float value_of(const struct sdr_piece *piece, uint64_t row, const char *space,
                      const char *name, unsigned bits)
{
    uint32_t index = feature(space, name, bits);
    for (uint64_t i = row ? piece->end[row - 1] : 0; i < piece->end[row]; i++)
        if (piece->index[i] == index)
            return piece->value[i];
    return NAN;
}

static void reads_heads_and_namespaces(void **unused)
{
    (void)unused;
    static const char text[] = "1 |f a b:2 c:-0.5\r\n"
                               "\n"
                               "-1 2.5 |f:2 a:3 b |g a 17:4\n"
                               "+0.5 1 0.25 'tag|f a\n"
                               "3 'tag |f x|g y\t z  \n"
                               "2 0 tag| a a:2 \n"
                               "5 |f\n"
                               "6 |";
    struct reading_test test = reading_of(&sdr_format_vw);
    assert_int_equal(reading_parse(&test, text, sizeof text - 1), SDR_OK);
    const struct sdr_piece *piece = &test.piece;
    check_piece(piece);
    assert_int_equal(piece->rows, 7);
    assert_int_equal(piece->lines, 8);
    assert_true(piece->has_weights);
    const float label[] = {1, -1, 0.5f, 3, 2, 5, 6}, weight[] = {1, 2.5f, 1, 1, 0, 1, 1};
    assert_memory_equal(piece->label, label, sizeof label);
    assert_memory_equal(piece->weight, weight, sizeof weight);
    assert_true(value_of(piece, 0, "f", "a", 18) == 1);
    assert_true(value_of(piece, 0, "f", "b", 18) == 2);
    assert_true(value_of(piece, 0, "f", "c", 18) == -0.5f);
    assert_true(value_of(piece, 1, "f", "a", 18) == 6);
    assert_true(value_of(piece, 1, "f", "b", 18) == 2);
    assert_true(value_of(piece, 1, "g", "a", 18) == 1);
    assert_true(value_of(piece, 1, "g", "17", 18) == 4);
    assert_true(value_of(piece, 2, "f", "a", 18) == 1);
    assert_true(value_of(piece, 3, "f", "x", 18) == 1);
    assert_true(value_of(piece, 3, "g", "y", 18) == 1);
    assert_true(value_of(piece, 3, "g", "z", 18) == 1);
    assert_true(value_of(piece, 4, "", "a", 18) == 3);
    assert_int_equal(piece->end[6], piece->end[4]);
    assert_int_equal(test.schema.bits, 18);
    assert_int_equal(test.schema.features, 1 << 18);
    assert_int_equal(test.schema.base, 0);
    reading_close(&test);
}

static void refuses_with_the_place(void **unused)
{
    (void)unused;
    static const struct reading_error errors[] = {
        {"1 |f a\nx |f a", 2, 1, "label 'x' is not a number"},
        {"nan |f a", 1, 1, "label 'nan' is not a finite number"},
        {"1 -2 |f a", 1, 3, "the importance is negative"},
        {"1 inf |f a", 1, 3, "importance 'inf' is not a finite number"},
        {"1 1 x |f a", 1, 5, "base 'x' is not a number"},
        {"1 1 1 1 |f a", 1, 7, "more than label, importance and base"},
        {"1 'a 2 |f a", 1, 6, "only '|' may follow the tag"},
        {"|f a", 1, 1, "the label is missing"},
        {"'t |f a", 1, 1, "the label is missing"},
        {"1|f a", 1, 1, "the label is missing: a word that touches the '|' is a tag"},
        {"1 2 3", 1, 1, "there is no '|' in the line"},
        {"1 |f a:", 1, 8, "the value is missing"},
        {"1 |f a:b", 1, 8, "value 'b' is not a number"},
        {"1 |f a:1:2", 1, 8, "value '1:2' is not a number"},
        {"1 |f a:1e39", 1, 8, "value '1e39' is too large"},
        {"1 |f a b:nan", 1, 10, "value 'nan' is not a finite number"},
        {"1 |f :1", 1, 6, "a feature has no name"},
        {"1 |f: a", 1, 6, "the scale is missing"},
        {"1 |f:x a", 1, 6, "scale 'x' is not a number"},
        {"1 |f:1e30 a:1e30", 1, 11, "the value times the scale is too large"},
        {"1 |f a:3e38 a:3e38", 1, 3, "overflow when summed"},
        {"1 |f a\n1 |f b\001", 2, 7, "byte 0x01 does not belong in a text file"},
    };
    check_errors(&sdr_format_vw, errors, sizeof errors / sizeof *errors);
}

static void labels_may_be_absent_only_if_allowed(void **unused)
{
    (void)unused;
    struct reading_test test = reading_of(&sdr_format_vw);
    test.options.labels_optional = true;
    assert_int_equal(reading_parse(&test, "|f a\n'tag |f b\n", 15), SDR_OK);
    assert_int_equal(test.piece.rows, 2);
    assert_true(test.piece.lacks_labels);
    assert_true(test.piece.label[0] == SDR_MISSING_ROW_LABEL);
    reading_close(&test);
}

/* Law: a row is the sum, by hashed feature, of what was printed; with few bits most collide. */
static void random_rows_come_back(void **unused)
{
    (void)unused;
    for (unsigned bits = 3; bits <= 20; bits++) {
        struct sdr_stream stream = sdr_stream_open(bits, SDR_FOR_TEST, 0);
        uint64_t size = 1ull << bits;
        double *sum = calloc(size, sizeof *sum);
        bool *present = calloc(size, sizeof *present);
        assert_true(sum && present);
        struct sdr_text text = {0};
        sdr_text_add(&text, "1");
        for (int n = 0; n < 4; n++) {
            char space[16];
            snprintf(space, sizeof space, "n%d", n);
            double scale = (double)(1 + sdr_stream_below(&stream, 3));
            sdr_text_add(&text, " |%s:%g", space, scale);
            for (uint64_t e = sdr_stream_below(&stream, 100); e > 0; e--) {
                char name[24];
                snprintf(name, sizeof name, "%llu",
                         (unsigned long long)sdr_stream_below(&stream, 1000));
                double value = (double)sdr_stream_below(&stream, 64) / 8 - 4;
                sdr_text_add(&text, " %s:%g", name, value);
                sum[feature(space, name, bits)] += value * scale;
                present[feature(space, name, bits)] = true;
            }
        }
        struct reading_test test = reading_of(&sdr_format_vw);
        test.options.bits = bits;
        assert_int_equal(reading_parse(&test, text.bytes, text.length), SDR_OK);
        check_piece(&test.piece);
        uint64_t distinct = 0;
        for (uint64_t i = 0; i < size; i++)
            distinct += present[i];
        assert_int_equal(test.piece.entries, distinct);
        for (uint64_t i = 0; i < test.piece.entries; i++)
            assert_true((double)test.piece.value[i] == sum[test.piece.index[i]]);
        reading_close(&test);
        sdr_text_free(&text);
        free(sum);
        free(present);
    }
}

static void every_prefix_is_right_or_refused(void **unused)
{
    (void)unused;
    static const char text[] = "1 2 'tag |f:2 abc:0.5 d |g x\r\n-1 |f a:1e-3\n\n0.5 1 |h q:2.25\n";
    for (size_t cut = 0; cut < sizeof text; cut++) {
        struct reading_test test = reading_of(&sdr_format_vw);
        enum sdr_status status = reading_parse(&test, text, cut);
        if (status == SDR_OK) {
            check_piece(&test.piece);
        } else {
            assert_int_equal(status, SDR_BAD_DATA);
            assert_int_equal(test.piece.error_line, test.piece.lines);
            assert_true(test.piece.error_column >= 1 && test.piece.error_column <= cut + 1);
        }
        reading_close(&test);
    }
}

static void recognises_its_own(void **unused)
{
    (void)unused;
#define SCORE(text) sdr_format_vw.recognise(text, strlen(text))
    assert_int_equal(SCORE("1 |f a b:2\n-1 2 'x|f b\n"), 85);
    assert_int_equal(SCORE("|f a b:2\n"), 85);
    assert_int_equal(SCORE("a|b|c\n1|2|3\n"), 20);
    assert_int_equal(SCORE("x y |f a\n"), 0);
    assert_int_equal(SCORE("1 1:2 2:3\n"), 0);
    assert_int_equal(SCORE(""), 0);
#undef SCORE
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_heads_and_namespaces),
        cmocka_unit_test(refuses_with_the_place),
        cmocka_unit_test(labels_may_be_absent_only_if_allowed),
        cmocka_unit_test(random_rows_come_back),
        cmocka_unit_test(every_prefix_is_right_or_refused),
        cmocka_unit_test(recognises_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
