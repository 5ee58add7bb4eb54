/* CSV: what a column is, how a record falls into cells, and where an error is. */
#include "base/fault.h"
#include "data/csv.h"
#include "reading.h"
#include <math.h>

extern const struct sdr_format sdr_format_csv;

static char notes[1000];

static void keep_note(void *context, const struct sdr_report *report)
{
    (void)context;
    strncat(notes, report->note, sizeof notes - strlen(notes) - 2);
    strcat(notes, "\n");
}

static struct reading_test csv(void)
{
    struct reading_test test = reading_of(&sdr_format_csv);
    test.options.report = keep_note;
    notes[0] = 0;
    return test;
}

static void parse(struct reading_test *test, const char *text)
{
    enum sdr_status status = reading_parse(test, text, strlen(text));
    if (status != SDR_OK)
        fail_msg("'%s': %llu:%llu: %s", text, (unsigned long long)test->piece.error_line,
                 (unsigned long long)test->piece.error_column, test->piece.error);
    check_piece(&test->piece);
}

/* Opens only, and tells what was refused. */
static enum sdr_status open_status(struct reading_test *test, const char *text)
{
    const struct sdr_format *format = test->format;
    assert_int_equal(sdr_allocate(&test->state, 1, format->state_size, "test"), SDR_OK);
    assert_int_equal(sdr_allocate(&test->format_options, 1, format->options_size, "test"), SDR_OK);
    assert_int_equal(sdr_option_defaults(format->options, test->format_options), SDR_OK);
    struct sdr_reading reading = {.options = &test->options,
                                  .known = test->known,
                                  .schema = &test->schema,
                                  .path = "test",
                                  .format_options = test->format_options};
    return format->open(test->state, &reading, text, strlen(text));
}

static void check_row(const struct sdr_piece *piece, uint64_t row, size_t count, const float *value)
{
    uint64_t first = row ? piece->end[row - 1] : 0;
    assert_int_equal(piece->end[row] - first, count);
    for (size_t i = 0; i < count; i++)
        assert_true(piece->value[first + i] == value[i]);
}

static void check_category(const struct sdr_piece *piece, uint64_t entry, const char *text)
{
    assert_true(piece->index[entry] & SDR_CATEGORY_BIT);
    uint32_t number = piece->index[entry] & ~SDR_CATEGORY_BIT;
    assert_string_equal(piece->category.text[number], text);
}

static void numbers_are_features_in_file_order_and_zeros_are_left_out(void **unused)
{
    struct reading_test test = csv();
    (void)unused;
    parse(&test, "a,b,label,c\n1,0,5,-2.5\n0,1e2,6,0.0\n");
    assert_int_equal(test.piece.rows, 2);
    check_row(&test.piece, 0, 2, (float[]){1, -2.5f});
    assert_int_equal(test.piece.index[0], 0);
    assert_int_equal(test.piece.index[1], 2);
    check_row(&test.piece, 1, 1, (float[]){100});
    assert_int_equal(test.piece.index[2], 1);
    assert_true(test.piece.label[0] == 5 && test.piece.label[1] == 6);
    assert_int_equal(test.piece.features, 3);
    assert_int_equal(test.piece.lines, 3);
    assert_int_equal(test.schema.columns, 4);
    assert_string_equal(test.schema.column[3].name, "c");
    assert_int_equal(test.schema.column[3].feature, 2);
    assert_int_equal(test.schema.column[2].kind, SDR_COLUMN_LABEL);
    assert_int_equal(test.schema.numbers, 3);
    assert_int_equal(test.schema.base, 0);
    reading_close(&test);
}

static void without_a_header_the_last_column_is_the_label(void **unused)
{
    struct reading_test test = csv();
    (void)unused;
    parse(&test, "1,2,3\n4,5,6\n");
    assert_int_equal(test.piece.rows, 2);
    assert_true(test.piece.label[1] == 6);
    assert_string_equal(test.schema.column[0].name, "c1");
    assert_string_equal(notes, "label: column 'c3' (the last)\n");
    reading_close(&test);
}

static void a_usual_name_is_the_label_in_any_case(void **unused)
{
    static const char *const names[] = {"Label", "TARGET", "class", "y"};
    (void)unused;
    for (size_t i = 0; i < 4; i++) {
        struct reading_test test = csv();
        char text[60];
        snprintf(text, sizeof text, "%s,a,b\n1,2,3\n", names[i]);
        parse(&test, text);
        assert_true(test.piece.label[0] == 1);
        assert_non_null(strstr(notes, names[i]));
        reading_close(&test);
    }
}

static void the_separator_is_guessed(void **unused)
{
    static const char *const texts[] = {"a;b;y\n1;2;3\n",
                                        "a\tb\ty\n1\t2\t3\n",
                                        "a|b|y\n1|2|3\n",
                                        "a , b , y\r\n 1 ,2, 3 \r\n",
                                        "\xEF\xBB\xBF"
                                        "a,b,y\n1,2,3",
                                        "\n\r\na,b,y\n\n1,2,3\n\n",
                                        "\"a\",\"b\",y\n\"1\", \"2\" ,3\n"};
    (void)unused;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct reading_test test = csv();
        parse(&test, texts[i]);
        assert_int_equal(test.piece.rows, 1);
        check_row(&test.piece, 0, 2, (float[]){1, 2});
        assert_true(test.piece.label[0] == 3);
        assert_string_equal(test.schema.column[0].name, "a");
        reading_close(&test);
    }
}

static void a_header_is_recognised(void **unused)
{
    static const struct {
        const char *text;
        uint64_t rows;
    } cases[] = {
        {"a,b\n1,2\n", 1},
        {"1,2\n3,4\n", 2},
        {"a,1\nb,2\n", 2},
        {"red,round\nblue,square\n", 1}, /* distinct words */
        {"x,x\ny,x\n", 2},
        {"red,round\nblue,round\n", 2}, /* a word that comes again is data */
        {",b\n1,2\n", 1},
        {"?,b\n1,2\n", 2},
        {"id,name\n,x\n7,y\n", 2},
        {"aa,bb\n", 0},
    };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct reading_test test = csv();
        test.options.missing = SDR_MISSING_ZERO;
        test.options.labels_optional = true;
        parse(&test, cases[i].text);
        if (test.piece.rows != cases[i].rows)
            fail_msg("'%s' has %llu rows", cases[i].text, (unsigned long long)test.piece.rows);
        reading_close(&test);
    }
}

static void categories_come_after_the_numbers(void **unused)
{
    struct reading_test test = csv();
    (void)unused;
    parse(&test,
          "colour,size,shape,y\nred,1,round,0\nblue,2,\"a \"\"b\"\", c\",1\nred,0,round,1\n");
    assert_int_equal(test.piece.rows, 3);
    check_row(&test.piece, 0, 3, (float[]){1, 1, 1});
    assert_int_equal(test.piece.index[0], 0);
    check_row(&test.piece, 1, 3, (float[]){2, 1, 1});
    check_row(&test.piece, 2, 2, (float[]){1, 1});
    assert_int_equal(test.piece.category.count, 4);
    bool red_first = test.piece.index[6] < test.piece.index[7];
    check_category(&test.piece, 6, red_first ? "colour=red" : "shape=round");
    check_category(&test.piece, 7, red_first ? "shape=round" : "colour=red");
    bool found = false;
    for (uint32_t i = 0; i < test.piece.category.count; i++)
        found |= strcmp(test.piece.category.text[i], "shape=a \"b\", c") == 0;
    assert_true(found);
    reading_close(&test);
}

static void texts_are_labels(void **unused)
{
    struct reading_test test = csv();
    (void)unused;
    parse(&test, "1,2,normal.\n3,4,smurf.\n5,6,normal.\n");
    assert_true(test.piece.text_labels);
    assert_true(test.schema.text_labels);
    assert_int_equal(test.piece.labels.count, 2);
    assert_true(test.piece.label[0] == 0 && test.piece.label[1] == 1 && test.piece.label[2] == 0);
    assert_string_equal(test.piece.labels.text[1], "smurf.");
    reading_close(&test);
}

static void options_choose_columns(void **unused)
{
    struct reading_test test = csv();
    (void)unused;
    test.options.label = "b";
    test.options.weight = "w";
    test.options.ignore = "id,c5";
    test.options.categories = "zip";
    parse(&test, "id,b,w,zip,note,x\n7,1,0.5,8001,hello,3\n8,0,2,8002,,4\n");
    assert_true(test.piece.has_weights);
    assert_true(test.piece.weight[0] == 0.5f && test.piece.weight[1] == 2);
    assert_true(test.piece.label[0] == 1);
    check_row(&test.piece, 0, 2, (float[]){3, 1});
    check_category(&test.piece, 1, "zip=8001");
    assert_int_equal(test.schema.column[4].kind, SDR_COLUMN_IGNORED);
    reading_close(&test);

    test = csv();
    test.options.label = "colour";
    assert_int_equal(open_status(&test, "color,x\n1,2\n"), SDR_USAGE);
    assert_non_null(strstr(sdr_error(), "did you mean 'color'"));
    reading_close(&test);
}

static void missing_cells_follow_the_option(void **unused)
{
    static const char text[] = "a,b,y\n1,,1\nNA,2,1\nN/A,nan,1\n?,null,1\nNaN,3,1\n";
    (void)unused;
    struct reading_test test = csv();
    assert_int_equal(reading_parse(&test, text, strlen(text)), SDR_BAD_DATA);
    assert_int_equal(test.piece.error_line, 2);
    assert_int_equal(test.piece.error_column, 3);
    assert_string_equal(test.piece.error, "column 'b' is missing (use --missing mean or zero)");
    reading_close(&test);

    test = csv();
    test.options.missing = SDR_MISSING_ZERO;
    parse(&test, text);
    assert_false(test.piece.has_missing);
    assert_int_equal(test.piece.entries, 3);
    reading_close(&test);

    test = csv();
    test.options.missing = SDR_MISSING_MEAN;
    assert_int_equal(reading_parse(&test, text, strlen(text)), SDR_OK);
    assert_true(test.piece.has_missing);
    assert_int_equal(test.piece.entries, 10);
    assert_true(isnan(test.piece.value[1]) && test.piece.index[1] == 1);
    assert_int_equal(test.schema.missing, SDR_MISSING_MEAN);
    reading_close(&test);
}

static void errors_say_where(void **unused)
{
    static const struct reading_error errors[] = {
        {"a,b,y\n1,2,3\n1,2\n", 3, 4, "has 2 cells"},
        {"a,b,y\n1,2,3\n1,2,3,4\n", 3, 7, "at least 4 cells"},
        {"a,b,y\n1,2,3\n4,5,6\n\n7,inf,9\n", 5, 3, "column 'b' is infinite"},
        {"a,b,y\n1,2,3\n4, 1e39,6\n", 3, 3, "too large"},
        {"a,b,y\n1,2,\n", 2, 5, "it is the label"},
        {"a,b,y\n1,2,3\n1,\"2,3\n4,5,6\n", 3, 3, "never closed"},
        {"a,b,y\nx,2,3\n\"x\ny\"z,2,3\n", 3, 1, "closing quote"},
        {"a,b,y\n\"p\nq\",2,3\nr,2\n", 4, 4, "has 2 cells"},
    };
    (void)unused;
    check_errors(&sdr_format_csv, errors, sizeof errors / sizeof *errors);
}

/* The head of 64 KB decides; what comes later must fit. */
static void a_text_among_numbers_names_the_remedy(void **unused)
{
    struct reading_test test = csv();
    (void)unused;
    reading_open(&test, "zip,y\n1,2\n", 10);
    assert_int_equal(reading_parse(&test, "zip,y\n1,2\nabc,3\n", 16), SDR_BAD_DATA);
    assert_int_equal(test.piece.error_line, 3);
    assert_int_equal(test.piece.error_column, 1);
    assert_string_equal(
        test.piece.error,
        "column 'zip' should be a number, not 'abc' (--categories zip takes the column as words)");
    reading_close(&test);
}

static void heads_that_cannot_be_read_are_refused(void **unused)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"", "empty"},
        {"a,b,a\n1,2,3\n", "two columns are called 'a'"},
        {"x;y\n1,5;2\n2,5;3\n", "decimal commas"},
    };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct reading_test test = csv();
        assert_int_equal(open_status(&test, cases[i].text), SDR_BAD_DATA);
        assert_non_null(strstr(sdr_error(), cases[i].words));
        reading_close(&test);
    }
}

/* cut() ends where a record ends, for every length of the buffer. */
static void cutting_respects_quotes(void **unused)
{
    static const char text[] = "a,b\n1,\"x\ny\"\n2,\"p\"\"\n\"\"q\"\n3,5\" pipe\n4,z\n";
    static const size_t ends[] = {4, 12, 24, 34, 38};
    struct reading_test test = csv();
    (void)unused;
    reading_open(&test, text, strlen(text));
    for (size_t count = 0; count <= strlen(text); count++) {
        size_t expected = 0;
        for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
            if (ends[i] <= count)
                expected = ends[i];
        char *copy = malloc(count + 1);
        memcpy(copy, text, count);
        size_t cut = test.format->cut(test.state, copy, count);
        free(copy);
        if (cut != expected)
            fail_msg("%zu bytes are cut at %zu, not %zu", count, cut, expected);
    }
    reading_close(&test);
}

static void chunks_give_the_rows_of_the_whole(void **unused)
{
    static const char text[] = "n,t,y\n1,\"x\ny\",0\n2.5,\"p\"\"\n\"\"q\",1\n,z,0\n-4,\"x\ny\",1\n";
    struct reading_test whole = csv();
    size_t length = strlen(text);
    (void)unused;
    whole.options.missing = SDR_MISSING_ZERO;
    parse(&whole, text);
    assert_int_equal(whole.piece.rows, 4);
    for (size_t size = 8; size < length; size++) {
        struct reading_test part = csv();
        struct sdr_piece *piece = &part.piece;
        part.options.missing = SDR_MISSING_ZERO;
        reading_open(&part, text, length);
        uint64_t rows = 0, entries = 0, lines = 0;
        for (size_t at = 0; at < length;) {
            size_t room = size, count = 0;
            for (; count == 0; room++) /* the pipeline reads on until a record is whole */
                count = at + room >= length ? length - at
                                            : part.format->cut(part.state, text + at, room);
            sdr_piece_clear(piece);
            assert_int_equal(sdr_piece_reserve(piece, count / 2 + 64, 1), SDR_OK);
            assert_int_equal(part.format->parse(part.state, text + at, count, at == 0, piece),
                             SDR_OK);
            for (uint64_t r = 0; r < piece->rows; r++)
                assert_true(piece->label[r] == whole.piece.label[rows + r]);
            for (uint64_t i = 0; i < piece->entries; i++)
                assert_true(piece->value[i] == whole.piece.value[entries + i]);
            rows += piece->rows;
            entries += piece->entries;
            lines += piece->lines;
            at += count;
        }
        assert_int_equal(rows, whole.piece.rows);
        assert_int_equal(entries, whole.piece.entries);
        assert_int_equal(lines, whole.piece.lines);
        reading_close(&part);
    }
    reading_close(&whole);
}

static void a_known_schema_finds_its_columns_by_name(void **unused)
{
    struct reading_test train = csv(), test = csv();
    (void)unused;
    parse(&train, "a,b,c,y\n1,2,red,0\n");
    notes[0] = 0;
    test.known = &train.schema;
    parse(&test, "y,extra,c,b,a\n1,9,blue,20,10\n0,9,red,0,30\n");
    check_row(&test.piece, 0, 3, (float[]){10, 20, 1});
    assert_int_equal(test.piece.index[0], 0);
    check_category(&test.piece, 2, "c=blue");
    assert_true(test.piece.label[0] == 1);
    assert_string_equal(notes, "ignored, not in the model: column 'extra'\n");
    reading_close(&test);

    test = csv();
    test.known = &train.schema;
    assert_int_equal(open_status(&test, "a,c,y\n1,red,0\n"), SDR_BAD_DATA);
    assert_string_equal(sdr_error(), "test:1: the column 'b' is missing");
    reading_close(&test);

    test = csv();
    test.known = &train.schema;
    assert_int_equal(open_status(&test, "a,b,c\n1,2,red\n"), SDR_BAD_DATA);
    reading_close(&test);
    test = csv();
    test.known = &train.schema;
    test.options.labels_optional = true;
    parse(&test, "c,b,a\nred,2,1\n");
    assert_true(test.piece.lacks_labels);
    check_row(&test.piece, 0, 3, (float[]){1, 2, 1});
    reading_close(&test);
    reading_close(&train);
}

static void without_names_the_number_of_columns_must_be_the_same(void **unused)
{
    struct reading_test train = csv(), test = csv();
    (void)unused;
    parse(&train, "1,2,0\n3,4,1\n");
    test.known = &train.schema;
    assert_int_equal(open_status(&test, "1,2\n3,4\n"), SDR_BAD_DATA);
    assert_non_null(strstr(sdr_error(), "has 2 cells, the model was trained with 3"));
    reading_close(&test);
    test = csv();
    test.known = &train.schema;
    test.options.labels_optional = true;
    parse(&test, "1,2\n3,4\n");
    assert_int_equal(test.piece.rows, 2);
    check_row(&test.piece, 1, 2, (float[]){3, 4});
    reading_close(&test);
    test = csv();
    test.known = &train.schema;
    parse(&test, "5,6,1\n");
    assert_true(test.piece.label[0] == 1 && !test.piece.lacks_labels);
    reading_close(&test);
    reading_close(&train);
}

static void a_second_file_must_have_the_same_header(void **unused)
{
    struct reading_test test = csv();
    (void)unused;
    parse(&test, "a,b,y\n1,2,3\n");
    parse(&test, "a,b,y\r\n4,5,6\r\n");
    assert_int_equal(test.piece.rows, 1);
    assert_int_equal(reading_parse(&test, "b,a,y\n1,2,3\n", 12), SDR_BAD_DATA);
    assert_int_equal(test.piece.error_line, 1);
    assert_non_null(strstr(test.piece.error, "header"));
    reading_close(&test);
}

static void plain_numbers_round_as_the_general_scanner_does(void **unused)
{
    static const char *const numbers[] = {
        "0.1",      "123456.789", "-0.000001", "999999999999999",        "0.30000001",
        "16777217", "1e-3",       "+5",        "12345678901234567890.5", ".5",
        "5.",       "-.25"};
    (void)unused;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct reading_test test = csv();
        char text[80];
        double expected;
        snprintf(text, sizeof text, "%s,1\n", numbers[i]);
        sdr_scan_double(numbers[i], numbers[i] + strlen(numbers[i]), &expected);
        parse(&test, text);
        assert_true(test.piece.value[0] == (float)expected);
        reading_close(&test);
    }
}

static void numbers_in_disguise_are_known(void **unused)
{
    static const struct {
        const char *text;
        bool grouped, decorated;
    } cases[] = {
        {"12,095", true, false},    {"1,234,567.5", true, false}, {"-1,000", true, false},
        {"1,5", false, false},      {"0,123", false, false},      {"1234,567", false, false},
        {"1,23,456", false, false}, {"1,000,", false, false},     {"", false, false},
        {"$1200", false, true},     {"-$3.50", false, true},      {"1200 €", false, true},
        {"€1,200", false, true},    {"12 %", false, true},        {"12%", false, true},
        {"5 km", false, true},      {"USD 7", false, true},       {"7,5 EUR", false, true},
        {"$", false, false},        {"$x", false, false},         {"cust00001", false, false},
        {"12a", false, false},      {"3 miles", false, false},    {"12", false, false},
        {"1-2 km", false, false},   {"$ $5", false, false},       {"a $5", false, false},
    };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t length = strlen(cases[i].text);
        char *copy = malloc(length ? length : 1); /* a byte too far is seen */
        memcpy(copy, cases[i].text, length);
        if (sdr_csv_is_grouped(copy, length) != cases[i].grouped ||
            sdr_csv_is_decorated(copy, length) != cases[i].decorated)
            fail_msg("'%s' is taken for something else", cases[i].text);
        free(copy);
    }
}

static void whole_records_are_counted(void **unused)
{
    static const struct {
        const char *text;
        uint32_t records;
    } cases[] = {{"a,b", 0},
                 {"a,b\n", 1},
                 {"\n\na,b\r\n1,2", 1},
                 {"\"a\nb\",c\n1,2\n", 2},
                 {"\"a\nb", 0},
                 {"a,b\n1,\"2\n3,4\n", 1},
                 {"", 0}};
    const struct sdr_csv_options options = {0};
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(sdr_csv_records(&options, cases[i].text, strlen(cases[i].text)),
                         cases[i].records);
}

static void every_failed_allocation_is_told(void **unused)
{
    static const char text[] = "colour,size,y\n\"re\"\"d\",1,a\nblue,2,b\n";
    (void)unused;
    for (uint64_t n = 1;; n++) {
        struct reading_test test = csv();
        const struct sdr_format *format = test.format;
        sdr_allocate(&test.state, 1, format->state_size, "test");
        sdr_allocate(&test.format_options, 1, format->options_size, "test");
        sdr_option_defaults(format->options, test.format_options);
        struct sdr_reading reading = {.options = &test.options,
                                      .schema = &test.schema,
                                      .path = "test",
                                      .format_options = test.format_options};
        sdr_fault_arm(SDR_FAULT_ALLOCATE, n);
        enum sdr_status status = format->open(test.state, &reading, text, strlen(text));
        if (status == SDR_OK)
            status = format->parse(test.state, text, strlen(text), true, &test.piece);
        bool reached = sdr_fault_count(SDR_FAULT_ALLOCATE) >= n;
        sdr_fault_arm(SDR_FAULT_ALLOCATE, 0);
        assert_int_equal(status, reached ? SDR_RUNTIME : SDR_OK);
        reading_close(&test);
        if (!reached)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_features_in_file_order_and_zeros_are_left_out),
        cmocka_unit_test(without_a_header_the_last_column_is_the_label),
        cmocka_unit_test(a_usual_name_is_the_label_in_any_case),
        cmocka_unit_test(the_separator_is_guessed),
        cmocka_unit_test(a_header_is_recognised),
        cmocka_unit_test(categories_come_after_the_numbers),
        cmocka_unit_test(texts_are_labels),
        cmocka_unit_test(options_choose_columns),
        cmocka_unit_test(missing_cells_follow_the_option),
        cmocka_unit_test(errors_say_where),
        cmocka_unit_test(a_text_among_numbers_names_the_remedy),
        cmocka_unit_test(heads_that_cannot_be_read_are_refused),
        cmocka_unit_test(cutting_respects_quotes),
        cmocka_unit_test(chunks_give_the_rows_of_the_whole),
        cmocka_unit_test(a_known_schema_finds_its_columns_by_name),
        cmocka_unit_test(without_names_the_number_of_columns_must_be_the_same),
        cmocka_unit_test(a_second_file_must_have_the_same_header),
        cmocka_unit_test(plain_numbers_round_as_the_general_scanner_does),
        cmocka_unit_test(numbers_in_disguise_are_known),
        cmocka_unit_test(whole_records_are_counted),
        cmocka_unit_test(every_failed_allocation_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
