/* LIBSVM text: what is accepted, what is refused and where, and that quick and careful readers give
   the same bits. */
#include "base/hash.h"
#include "base/rng.h"
#include "data/libsvm.h"
#include "data/reading.h"

static void check_row(const struct sdr_piece *piece, uint64_t row, float label, uint64_t count,
                      const uint32_t *index, const float *value)
{
    uint64_t start = row ? piece->end[row - 1] : 0;
    assert_true(row < piece->rows);
    assert_true(piece->label[row] == label);
    assert_int_equal(piece->end[row] - start, count);
    assert_memory_equal(piece->index + start, index, count * sizeof *index);
    assert_memory_equal(piece->value + start, value, count * sizeof *value);
}

static void accepts_what_is_written_in_the_wild(void **unused)
{
    (void)unused;
    static const char text[] = "# a comment\r\n"
                               "+1 1:0.5 7:-2  12:1e2\t20:+3 \r\n"
                               "\n"
                               "   \t \n"
                               "-1.0 qid:7 3:.25 4:5. 5:1E-3 # why\n"
                               "3e2\n"
                               "0 2:1#tight\n"
                               "1 0000000000001:00000000000000000000.5 2147483646:-0";
    struct reading_test test = reading_of(&sdr_format_libsvm);
    assert_int_equal(reading_parse(&test, text, sizeof text - 1), SDR_OK);
    assert_int_equal(test.piece.rows, 5);
    assert_int_equal(test.piece.lines, 8);
    assert_int_equal(test.piece.features, 2147483647);
    assert_false(test.piece.index_zero);
    assert_false(test.piece.lacks_labels);
    check_row(&test.piece, 0, 1, 4, (uint32_t[]){1, 7, 12, 20}, (float[]){0.5f, -2, 100, 3});
    check_row(&test.piece, 1, -1, 3, (uint32_t[]){3, 4, 5}, (float[]){0.25f, 5, 1e-3f});
    check_row(&test.piece, 2, 300, 0, NULL, NULL);
    check_row(&test.piece, 3, 0, 1, (uint32_t[]){2}, (float[]){1});
    check_row(&test.piece, 4, 1, 2, (uint32_t[]){1, 2147483646}, (float[]){0.5f, -0.0f});
    check_piece(&test.piece);
    assert_int_equal(test.schema.base, -1);
    reading_close(&test);

    test = reading_of(&sdr_format_libsvm);
    assert_int_equal(reading_parse(&test,
                                   "\xEF\xBB\xBF"
                                   "1 0:2\n",
                                   9),
                     SDR_OK);
    check_row(&test.piece, 0, 1, 1, (uint32_t[]){0}, (float[]){2});
    assert_true(test.piece.index_zero);
    reading_close(&test);
}

static void refuses_with_the_place(void **unused)
{
    (void)unused;
    static const struct reading_error errors[] = {
        {"1 1:0.5\n-1 1:nan\n", 2, 6, "value 'nan' is not a finite number"},
        {"1 1:-INF", 1, 5, "value '-INF' is not a finite number"},
        {"1 1:infinity", 1, 5, "is not a finite number"},
        {"1 1:1e39", 1, 5, "value '1e39' is too large for a 32-bit float"},
        {"1 1:340282356779733661637539395458142568448", 1, 5, "too large"},
        {"nan 1:1", 1, 1, "label 'nan' is not a finite number"},
        {"1 1:0.5\n-1 2\n", 2, 4, "entry '2' is not index:value"},
        {"1 1:0.5\n-1 -4:2\n", 2, 4, "entry '-4:2' has a negative index"},
        {"1 99999999999999999999:1\n", 1, 3, "index '99999999999999999999' is too large"},
        {"1 2147483647:1\n", 1, 3, "index '2147483647' is too large"},
        {"1 1:0.5\nfoo 1:x\n", 2, 1, "label 'foo' is not a number"},
        {"1 1:x\n", 1, 5, "value 'x' is not a number"},
        {"1 1:1x\n", 1, 5, "value '1x' is not a number"},
        {"1 1:1.2.3\n", 1, 5, "value '1.2.3' is not a number"},
        {"1 1:--1\n", 1, 5, "value '--1' is not a number"},
        {"1 1:0x10\n", 1, 5, "value '0x10' is not a number"},
        {"1 1:\n", 1, 3, "entry '1:' has no value"},
        {"1 :1\n", 1, 3, "entry ':1' does not begin with an index"},
        {"1 a:1\n", 1, 3, "entry 'a:1' does not begin with an index"},
        {"1 1.5:1\n", 1, 3, "entry '1.5:1' is not index:value"},
        {"1 1:2:3\n", 1, 5, "value '2:3' is not a number"},
        {"1:2 2:3\n1 1:1\n", 1, 1, "the label is missing"},
        {"1 5:1 5:2\n", 1, 7, "index 5 does not rise above 5: indices must be in increasing order"},
        {"1 5:1 4:2\n", 1, 7, "index 4 does not rise above 5"},
        {"# c\n\n1,3 1:1\n", 3, 1, "label '1,3' is not one number"},
        {"1 qid:x 1:1\n", 1, 3, "query 'qid:x'"},
        {"1 1:1\r2:2\n", 1, 6, "byte 0x0d does not belong in a text file"},
        {"  \x01", 1, 3, "byte 0x01 does not belong in a text file"},
        {"1 1:2\v\n", 1, 6, "byte 0x0b does not belong in a text file"},
        {"1 1:\xff\xfe\n", 1, 5, "value '\?\?' is not a number"},
        {"1 1:00000000000000000000000000000000000000000000000001x", 1, 5, "…' is not a number"},
    };
    check_errors(&sdr_format_libsvm, errors, sizeof errors / sizeof *errors);

    static const char binary[] = {0, 1, 2, (char)0xff};
    struct reading_test test = reading_of(&sdr_format_libsvm);
    assert_int_equal(reading_parse(&test, binary, sizeof binary), SDR_BAD_DATA);
    assert_string_equal(test.piece.error, "byte 0x00 does not belong in a text file");
    assert_int_equal(test.piece.error_line, 1);
    assert_int_equal(test.piece.error_column, 1);
    reading_close(&test);
}

/* The same errors far from the edges, where the quick reader meets them first. */
static void finds_errors_inside_long_rows(void **unused)
{
    (void)unused;
    static const struct reading_error inside[] = {
        {"50:nan", 1, 3, "not a finite"}, {"50:1e39", 1, 3, "too large"},
        {"50", 1, 0, "index:value"},      {"-50:1", 1, 0, "negative"},
        {"8:1", 1, 0, "does not rise"},   {"9:1", 1, 0, "does not rise above 9"},
        {"50:", 1, 0, "no value"},        {"50:1.2.3", 1, 3, "not a number"},
        {"50:1-2", 1, 3, "not a number"}, {"50:-", 1, 3, "not a number"},
        {"50:.", 1, 3, "not a number"},   {"50:--1", 1, 3, "not a number"},
        {"5-0:1", 1, 0, "index:value"},   {"5.0:1", 1, 0, "index:value"},
        {"50:1:2", 1, 3, "not a number"}, {"999999999999:1", 1, 0, "too large"},
        {"50:1,5", 1, 3, "not a number"}, {"50;1", 1, 0, "index:value"},
    };
    for (enum sdr_cpu level = 0; level <= sdr_cpu_best(); level++) {
        for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
            struct sdr_text text = {0};
            sdr_text_add(&text, "-1 1:0.5 2:0.25 3:0.125\n+1 2:0.5 4:17.25 9:1 ");
            uint64_t column = text.length - 24 + 1 + inside[i].column;
            sdr_text_add(&text, "%s", inside[i].text);
            for (int k = 0; k < 40; k++)
                sdr_text_add(&text, " %d:0.25", 100 + k);
            struct reading_test test = reading_of(&sdr_format_libsvm);
            reading_open(&test, text.bytes, text.length);
            ((struct sdr_libsvm *)test.state)->entries = sdr_libsvm_quick(level);
            assert_int_equal(reading_parse(&test, text.bytes, text.length), SDR_BAD_DATA);
            if (test.piece.error_line != 2 || test.piece.error_column != column ||
                !strstr(test.piece.error, inside[i].words))
                fail_msg("'%s': %d:%d: %s", inside[i].text, (int)test.piece.error_line,
                         (int)test.piece.error_column, test.piece.error);
            reading_close(&test);
            sdr_text_free(&text);
        }
    }
}

static void labels_may_be_absent_only_if_allowed(void **unused)
{
    (void)unused;
    struct reading_test test = reading_of(&sdr_format_libsvm);
    test.options.labels_optional = true;
    assert_int_equal(reading_parse(&test, "1:2 3:4\nqid:4 1:5\n", 18), SDR_OK);
    assert_true(test.piece.lacks_labels);
    check_row(&test.piece, 0, SDR_MISSING_ROW_LABEL, 2, (uint32_t[]){1, 3}, (float[]){2, 4});
    check_row(&test.piece, 1, SDR_MISSING_ROW_LABEL, 1, (uint32_t[]){1}, (float[]){5});
    reading_close(&test);
}

static void the_base_is_kept(void **unused)
{
    (void)unused;
    struct reading_test test = reading_of(&sdr_format_libsvm);
    test.options.base = 1;
    assert_int_equal(reading_parse(&test, "1 1:1\n1 0:1\n", 12), SDR_BAD_DATA);
    assert_int_equal(test.piece.error_line, 2);
    assert_int_equal(test.piece.error_column, 3);
    assert_string_equal(test.piece.error, "index 0, but here the first index is 1");
    assert_int_equal(test.schema.base, 1);
    reading_close(&test);

    struct sdr_schema known = {.base = 0, .features = 5};
    test = reading_of(&sdr_format_libsvm);
    test.known = &known;
    assert_int_equal(reading_parse(&test, "1 0:1\n", 6), SDR_OK);
    assert_int_equal(test.schema.base, 0);
    reading_close(&test);
}

static void hashing_sorts_and_sums(void **unused)
{
    (void)unused;
    struct reading_test test = reading_of(&sdr_format_libsvm);
    struct sdr_text text = {0};
    test.options.bits = 5;
    sdr_text_add(&text, "1");
    float expected[32] = {0};
    for (uint64_t i = 1; i <= 200; i++) {
        sdr_text_add(&text, " %d:%d.5", (int)(i * i), (int)i);
        uint64_t number = i * i;
        expected[sdr_hash64(&number, sizeof number, 0) & 31] += (float)i + 0.5f;
    }
    assert_int_equal(reading_parse(&test, text.bytes, text.length), SDR_OK);
    check_piece(&test.piece);
    assert_int_equal(test.schema.bits, 5);
    assert_int_equal(test.schema.base, 0);
    assert_int_equal(test.schema.features, 32);
    for (uint64_t i = 0; i < test.piece.entries; i++) {
        assert_true(test.piece.value[i] == expected[test.piece.index[i]]);
        expected[test.piece.index[i]] = 0;
    }
    for (int i = 0; i < 32; i++)
        assert_true(expected[i] == 0);
    reading_close(&test);
    sdr_text_free(&text);

    test = reading_of(&sdr_format_libsvm);
    test.options.bits = 1;
    const char *large = "1 1:3e38 2:3e38 3:3e38\n";
    assert_int_equal(reading_parse(&test, large, strlen(large)), SDR_BAD_DATA);
    assert_non_null(strstr(test.piece.error, "overflow when summed"));
    reading_close(&test);
}

/* A number in one of the many ways people write numbers. */
static void random_number(struct sdr_stream *stream, struct sdr_text *text)
{
    static const char *const forms[] = {"%.0f", "%.1f", "%.2f", "%.5f",  "%.6f",  "%.8f",
                                        "%g",   "%.9g", "%e",   "%.17g", "%.12f", "%.15g"};
    double size = sdr_stream_below(stream, 3) ? 1 : 1e4;
    if (sdr_stream_below(stream, 20) == 0)
        size = 1e-12;
    double x = (sdr_stream_uniform(stream) - 0.5) * 2 * size;
    if (sdr_stream_below(stream, 20) == 0)
        x = (double)sdr_stream_below(stream, 20) - 10;
    if (sdr_stream_below(stream, 30) == 0)
        sdr_text_add(text, "+%.3f", x < 0 ? -x : x);
    else
        sdr_text_add(text, forms[sdr_stream_below(stream, sizeof forms / sizeof *forms)], x);
}

/* Law: reading back what was printed gives, bit for bit, what sdr_scan_double makes of each number;
   on every CPU level; a million numbers. */
static void numbers_equal_sdr_scan_double(void **unused)
{
    (void)unused;
    enum { ROWS = 20000, ENTRIES = 50, WIDEST = 40 };
    struct sdr_text text = {0};
    uint32_t *index = malloc(sizeof *index * ROWS * ENTRIES);
    float *value = malloc(sizeof *value * ROWS * ENTRIES);
    assert_true(index && value);
    for (int r = 0; r < ROWS; r++) {
        struct sdr_stream stream = sdr_stream_open(7, SDR_FOR_TEST, (uint64_t)r);
        uint32_t feature = 0;
        sdr_text_add(&text, r % 3 ? "-1" : "+1");
        for (int e = 0; e < ENTRIES; e++) {
            uint32_t step = 1u << sdr_stream_below(&stream, e % 10 ? 8 : 20);
            feature += 1 + (uint32_t)sdr_stream_below(&stream, step);
            sdr_text_add(&text, " %u:", (unsigned)feature);
            size_t before = text.length;
            random_number(&stream, &text);
            double number;
            assert_ptr_equal(
                sdr_scan_double(text.bytes + before, text.bytes + text.length, &number),
                text.bytes + text.length);
            index[r * ENTRIES + e] = feature;
            value[r * ENTRIES + e] = (float)number;
        }
        sdr_text_add(&text, "\n");
    }
    for (enum sdr_cpu level = 0; level <= sdr_cpu_best(); level++) {
        struct reading_test test = reading_of(&sdr_format_libsvm);
        reading_open(&test, text.bytes, text.length);
        ((struct sdr_libsvm *)test.state)->entries = sdr_libsvm_quick(level);
        assert_int_equal(reading_parse(&test, text.bytes, text.length), SDR_OK);
        assert_int_equal(test.piece.rows, ROWS);
        assert_int_equal(test.piece.entries, ROWS * ENTRIES);
        for (uint64_t i = 0; i < ROWS * ENTRIES; i++)
            if (test.piece.index[i] != index[i] || memcmp(&test.piece.value[i], &value[i], 4) != 0)
                fail_msg("entry %d: %u:%.9g, not %u:%.9g", (int)i, (unsigned)test.piece.index[i],
                         (double)test.piece.value[i], (unsigned)index[i], (double)value[i]);
        reading_close(&test);
    }
    free(index);
    free(value);
    sdr_text_free(&text);
}

/* Law: rows of plain entries are read within their bytes, wherever blocks of any size end in
   them. */
static void plain_rows_of_every_length_are_read(void **unused)
{
    static const char *const ending[3] = {"", " ", "\n"};
    (void)unused;
    for (uint32_t n = 0; n < 70; n++)
        for (int end = 0; end < 3; end++)
            for (enum sdr_cpu level = 0; level <= sdr_cpu_best(); level++) {
                struct reading_test test = reading_of(&sdr_format_libsvm);
                struct sdr_text text = {0};
                sdr_text_add(&text, "1 1:1 2:2 3:3 4:4 5:5 6:6\n-1");
                for (uint32_t i = 0; i < n; i++)
                    sdr_text_add(&text, " %u:%s%u", i + 1, i % 3 ? "" : "-", i % 7);
                sdr_text_add(&text, "%s", ending[end]);
                reading_open(&test, text.bytes, text.length);
                ((struct sdr_libsvm *)test.state)->entries = sdr_libsvm_quick(level);
                assert_int_equal(reading_parse(&test, text.bytes, text.length), SDR_OK);
                assert_int_equal(test.piece.rows, 2);
                assert_int_equal(test.piece.entries, 6 + n);
                for (uint32_t i = 0; i < n; i++) {
                    float value = (float)(i % 7) * (i % 3 ? 1.0f : -1.0f);
                    assert_int_equal(test.piece.index[6 + i], i + 1);
                    assert_memory_equal(&test.piece.value[6 + i], &value, sizeof value);
                }
                reading_close(&test);
                sdr_text_free(&text);
            }
}

/* Law: a text cut at any byte gives the rows before the cut and either an error in the line that
   was cut or a row that begins like the whole one. Every level agrees with every other. */
static void every_prefix_is_right_or_refused(void **unused)
{
    (void)unused;
    static const char text[] =
        "+1 1:0.5 22:-17.25 333:1e-3 4444:0.03125 55555:123456.789 666666:7\r\n"
        "-1 7:0.0625 # remark\n\n2.5 qid:3 1:1 2:2 3:-3 4:4 5:5 6:6 7:7 8:8 9:9 10:10 11:11\n";
    struct reading_test whole = reading_of(&sdr_format_libsvm);
    assert_int_equal(reading_parse(&whole, text, sizeof text - 1), SDR_OK);
    assert_int_equal(whole.piece.rows, 3);
    for (size_t cut = 0; cut < sizeof text; cut++) {
        struct reading_test first = reading_of(&sdr_format_libsvm);
        enum sdr_status expected = SDR_OK;
        for (enum sdr_cpu level = 0; level <= sdr_cpu_best(); level++) {
            struct reading_test test = reading_of(&sdr_format_libsvm);
            reading_open(&test, text, cut);
            ((struct sdr_libsvm *)test.state)->entries = sdr_libsvm_quick(level);
            enum sdr_status status = reading_parse(&test, text, cut);
            if (level == 0) {
                expected = status;
                assert_int_equal(reading_parse(&first, text, cut), status);
            }
            assert_int_equal(status, expected);
            assert_int_equal(test.piece.rows, first.piece.rows);
            assert_int_equal(test.piece.entries, first.piece.entries);
            assert_int_equal(test.piece.error_column, first.piece.error_column);
            if (status == SDR_OK) {
                check_piece(&test.piece);
            } else {
                assert_int_equal(test.piece.error_line, test.piece.lines);
                assert_int_equal(test.piece.rows, test.piece.lines > 2 ? 2 : test.piece.lines - 1);
            }
            for (uint64_t r = 0; r + 1 < test.piece.rows; r++) {
                assert_int_equal(test.piece.end[r], whole.piece.end[r]);
                assert_memory_equal(test.piece.index, whole.piece.index, 4 * whole.piece.end[r]);
                assert_memory_equal(test.piece.value, whole.piece.value, 4 * whole.piece.end[r]);
            }
            reading_close(&test);
        }
        reading_close(&first);
    }
    reading_close(&whole);
}

/* Law: two chunks cut between lines give what one chunk gives. */
static void chunks_do_not_matter(void **unused)
{
    (void)unused;
    struct sdr_text text = {0};
    struct sdr_stream stream = sdr_stream_open(3, SDR_FOR_TEST, 0);
    for (int r = 0; r < 60; r++) {
        sdr_text_add(&text, "%d", r % 5);
        uint32_t feature = 0;
        for (uint64_t e = sdr_stream_below(&stream, 12); e > 0; e--) {
            sdr_text_add(&text, " %u:", (unsigned)(feature += 1 + (uint32_t)e * 37));
            random_number(&stream, &text);
        }
        sdr_text_add(&text, "\n");
    }
    struct reading_test whole = reading_of(&sdr_format_libsvm), part = whole;
    assert_int_equal(reading_parse(&whole, text.bytes, text.length), SDR_OK);
    for (size_t cut = 1; cut < text.length; cut++) {
        if (text.bytes[cut - 1] != '\n')
            continue;
        const size_t from[] = {0, cut}, count[] = {cut, text.length - cut};
        uint64_t rows = 0, entries = 0;
        for (int i = 0; i < 2; i++) {
            assert_int_equal(reading_parse(&part, text.bytes + from[i], count[i]), SDR_OK);
            assert_memory_equal(part.piece.index, whole.piece.index + entries,
                                part.piece.entries * 4);
            assert_memory_equal(part.piece.value, whole.piece.value + entries,
                                part.piece.entries * 4);
            assert_memory_equal(part.piece.label, whole.piece.label + rows, part.piece.rows * 4);
            rows += part.piece.rows;
            entries += part.piece.entries;
        }
        assert_int_equal(rows, whole.piece.rows);
        assert_int_equal(entries, whole.piece.entries);
    }
    reading_close(&whole);
    reading_close(&part);
    sdr_text_free(&text);
}

static void recognises_its_own(void **unused)
{
    (void)unused;
#define SCORE(text) sdr_format_libsvm.recognise(text, strlen(text))
    assert_int_equal(SCORE("+1 1:0.5 2:1\n-1\n"), 90);
    assert_int_equal(SCORE("# c\n\n+1 1:0.5 2:1\n-1 1:1 2:0."), 90);
    assert_int_equal(SCORE("1 qid:3 1:0.5"), 90);
    assert_int_equal(SCORE("1:0.5 2:3\n"), 50);
    assert_int_equal(SCORE(""), 0);
    assert_int_equal(SCORE("1\n2\n"), 0);
    assert_int_equal(SCORE("1 |f a:1 b:2\n"), 0);
    assert_int_equal(SCORE("1 a:1\n"), 0);
    assert_int_equal(SCORE("1,2,3\n"), 0);
    assert_int_equal(SCORE("%%MatrixMarket matrix array real general\n"), 0);
    assert_int_equal(SCORE("12:30 13:45,x\n"), 0);
#undef SCORE
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts_what_is_written_in_the_wild),
        cmocka_unit_test(refuses_with_the_place),
        cmocka_unit_test(finds_errors_inside_long_rows),
        cmocka_unit_test(labels_may_be_absent_only_if_allowed),
        cmocka_unit_test(the_base_is_kept),
        cmocka_unit_test(hashing_sorts_and_sums),
        cmocka_unit_test(numbers_equal_sdr_scan_double),
        cmocka_unit_test(plain_rows_of_every_length_are_read),
        cmocka_unit_test(every_prefix_is_right_or_refused),
        cmocka_unit_test(chunks_do_not_matter),
        cmocka_unit_test(recognises_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
