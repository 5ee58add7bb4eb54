/* Triples of users, items and ratings: separators, headers, and where errors are. */
#include "base/rng.h"
#include "data/reading.h"

static const char *category(const struct sdr_piece *piece, uint64_t entry)
{
    assert_true(piece->index[entry] & SDR_CATEGORY_BIT);
    return piece->category.text[piece->index[entry] & ~SDR_CATEGORY_BIT];
}

static void check_triple(const struct sdr_piece *piece, uint64_t row, const char *user,
                         const char *item, float rating)
{
    assert_true(row < piece->rows);
    assert_int_equal(piece->end[row], 2 * row + 2);
    assert_string_equal(category(piece, 2 * row), user);
    assert_string_equal(category(piece, 2 * row + 1), item);
    assert_true(piece->value[2 * row] == 1 && piece->value[2 * row + 1] == 1);
    assert_true(piece->label[row] == rating);
}

static void reads_every_separator(void **unused)
{
    (void)unused;
    static const char *const texts[] = {
        "196 242 3\n\n  ann   242  -3.5 881250949\r\n196 a:b 1e1",
        "196\t242\t3\nann\t242\t-3.5\t881250949\r\n196\ta:b\t1e1",
        "196,242,3\n ann , 242 , -3.5 , 881250949\r\n196,a:b,1e1",
        "196::242::3\nann::242::-3.5::881250949\r\n196::a:b::1e1",
        "userId,movieId,rating,timestamp\n196,242,3\nann,242,-3.5,881250949\n196,a:b,1e1\n",
        "user item rating\n196 242 3\nann 242 -3.5\n196 a:b 1e1\n",
        "\xEF\xBB\xBF"
        "u,i,stars\n196,242,3\nann,242,-3.5\n196,a:b,1e1\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct reading_test test = reading_of(&sdr_format_triples);
        assert_int_equal(reading_parse(&test, texts[i], strlen(texts[i])), SDR_OK);
        check_piece(&test.piece);
        assert_int_equal(test.piece.rows, 3);
        assert_int_equal(test.piece.category.count, 4);
        check_triple(&test.piece, 0, "user:196", "item:242", 3);
        check_triple(&test.piece, 1, "user:ann", "item:242", -3.5f);
        check_triple(&test.piece, 2, "user:196", "item:a:b", 10);
        reading_close(&test);
    }
    struct reading_test test = reading_of(&sdr_format_triples);
    const char *names = "ann lee\tthe item\t2\n";
    assert_int_equal(reading_parse(&test, names, strlen(names)), SDR_OK);
    check_triple(&test.piece, 0, "user:ann lee", "item:the item", 2);
    reading_close(&test);
}

static void refuses_with_the_place(void **unused)
{
    (void)unused;
    static char long_name[300];
    memset(long_name, 'x', 260);
    strcpy(long_name + 260, " 2 3\n");
    const struct reading_error errors[] = {
        {"1 2 3\n1 2\n", 2, 4, "the rating is missing"},
        {"1 2 3\n1\n", 2, 2, "the item is missing"},
        {"1 2 3\n1 2 x\n", 2, 5, "rating 'x' is not a number"},
        {"1 2 nan\n", 1, 5, "rating 'nan' is not a finite number"},
        {"1 2 inf\n", 1, 5, "rating 'inf' is not a finite number"},
        {"1 2 1e39\n", 1, 5, "rating '1e39' is too large"},
        {"1 2 3 4 5\n", 1, 9, "a user, an item, a rating and at most a time"},
        {",2,3\n", 1, 1, "the user is missing"},
        {"1,,3\n", 1, 3, "the item is missing"},
        {"1,2,\n", 1, 5, "the rating is missing"},
        {"1::2::3\n4::5::\n", 2, 7, "the rating is missing"},
        {"1 2 3\nuser item rating\n", 2, 11, "rating 'rating' is not a number"},
        {"1 a\001b 3\n", 1, 4, "byte 0x01 does not belong in a text file"},
        {long_name, 1, 1, "the user has more than 250 bytes"},
    };
    check_errors(&sdr_format_triples, errors, sizeof errors / sizeof *errors);

    struct reading_test test = reading_of(&sdr_format_triples);
    assert_int_equal(reading_parse(&test, "a\0b 1 2\n", 8), SDR_BAD_DATA);
    assert_int_equal(test.piece.error_column, 2);
    reading_close(&test);
}

static void ratings_may_be_absent_only_if_allowed(void **unused)
{
    (void)unused;
    struct reading_test test = reading_of(&sdr_format_triples);
    test.options.labels_optional = true;
    assert_int_equal(reading_parse(&test, "user item\n1 2\n3 4\n", 18), SDR_OK);
    assert_int_equal(test.piece.rows, 2);
    assert_true(test.piece.lacks_labels);
    check_triple(&test.piece, 1, "user:3", "item:4", SDR_MISSING_ROW_LABEL);
    reading_close(&test);
}

static void random_triples_come_back(void **unused)
{
    (void)unused;
    static const char *const separators[] = {" ", "\t", ",", "::"};
    enum { ROWS = 2000 };
    for (int s = 0; s < 4; s++) {
        struct sdr_text text = {0};
        for (uint64_t r = 0; r < ROWS; r++) {
            struct sdr_stream stream = sdr_stream_open(5, SDR_FOR_TEST, r);
            int user = (int)sdr_stream_below(&stream, 50),
                item = (int)sdr_stream_below(&stream, 70);
            sdr_text_add(&text, "u%d%si%d%s", user, separators[s], item, separators[s]);
            sdr_text_add(&text, "%.1f\n", (double)sdr_stream_below(&stream, 10) / 2);
        }
        struct reading_test test = reading_of(&sdr_format_triples);
        assert_int_equal(reading_parse(&test, text.bytes, text.length), SDR_OK);
        assert_int_equal(test.piece.rows, ROWS);
        for (uint64_t r = 0; r < ROWS; r++) {
            struct sdr_stream stream = sdr_stream_open(5, SDR_FOR_TEST, r);
            char user[32], item[32];
            snprintf(user, sizeof user, "user:u%d", (int)sdr_stream_below(&stream, 50));
            snprintf(item, sizeof item, "item:i%d", (int)sdr_stream_below(&stream, 70));
            check_triple(&test.piece, r, user, item, (float)sdr_stream_below(&stream, 10) / 2);
        }
        reading_close(&test);
        sdr_text_free(&text);
    }
}

static void every_prefix_is_right_or_refused(void **unused)
{
    (void)unused;
    static const char text[] =
        "userId::movieId::rating\n1::1193::5::978300760\r\n\n2::66 1::-3.5\n";
    for (size_t cut = 0; cut < sizeof text; cut++) {
        struct reading_test test = reading_of(&sdr_format_triples);
        reading_open(&test, text, sizeof text - 1);
        enum sdr_status status = reading_parse(&test, text, cut);
        if (status == SDR_OK) {
            check_piece(&test.piece);
            assert_true(test.piece.rows <= 2);
        } else {
            assert_int_equal(status, SDR_BAD_DATA);
            assert_int_equal(test.piece.error_line, test.piece.lines);
        }
        reading_close(&test);
    }
}

static void recognises_its_own(void **unused)
{
    (void)unused;
#define SCORE(text) sdr_format_triples.recognise(text, strlen(text))
    assert_int_equal(SCORE("1::2::3::4\n1::2::3::4\n"), 85);
    assert_int_equal(SCORE("userId,movieId,rating,timestamp\n1,2,3,4\n"), SDR_CONTENT_CERTAIN);
    assert_int_equal(SCORE("user\titem\trating\na\tb\t3\n"), SDR_CONTENT_CERTAIN);
    static const char *const headers[] = {"USER_ID,ITEM_ID,RATING", "customer,product id,stars",
                                          "user,book,score,Date"};
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        char text[80];
        snprintf(text, sizeof text, "%s\n1,2,3\n", headers[i]);
        assert_int_equal(SCORE(text), SDR_CONTENT_CERTAIN);
    }
    /* Names that only begin alike, a column that would be dropped, ids that are measurements:
       ordinary tables. */
    assert_true(SCORE("user_age,item_price,rating\n1,2,3\n") < 30);
    assert_true(SCORE("user,item,rating_count\n1,2,3\n") <= 85);
    assert_int_equal(SCORE("user_age,item_price,rating,label\n1,2,3,1\n"), 0);
    assert_int_equal(SCORE("user,item,rating,label\n1,2,3,1\n"), 0);
    assert_int_equal(SCORE("user item rating label\n1 2 3 1\n"), 0);
    assert_int_equal(SCORE("user,item,rating,time,label\n1,2,3,1\n"), 0);
    assert_int_equal(SCORE("user,item,rating\n1,2,3\n1,0.5,3\n"), 0);
    assert_int_equal(SCORE("0.123 0.456 1\n0.5 0.25 0\n"), 0);
    assert_int_equal(SCORE("a.b v1.5 1\n"), 55);
    assert_int_equal(SCORE("userId,age,rating\n1,2,3\n"), 85);
    assert_int_equal(SCORE("user,item,rating\n\"1\",2,3\n"), 85);
    assert_int_equal(SCORE("user,item,rating\n1,2,x\n"), 0);
    assert_int_equal(SCORE("userId,movieId\na,b\n"), 20);
    assert_int_equal(SCORE("user7,item3\nuser8,item3\n"), 0); /* no header: any table */
    assert_int_equal(SCORE("user,item\na,b,c\n"), 0);
    assert_int_equal(SCORE("1 2 3\n4 5 6.5\n7 8"), 55);
    assert_true(SCORE("1,2,3\n") < 30);
    assert_int_equal(SCORE("1 2\n"), 0);
    assert_int_equal(SCORE("1 2 x\n1 2 y\n"), 0);
    assert_int_equal(SCORE("1 1:2 2:3\n"), 0);
    assert_int_equal(SCORE(""), 0);
#undef SCORE
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_every_separator),
        cmocka_unit_test(refuses_with_the_place),
        cmocka_unit_test(ratings_may_be_absent_only_if_allowed),
        cmocka_unit_test(random_triples_come_back),
        cmocka_unit_test(every_prefix_is_right_or_refused),
        cmocka_unit_test(recognises_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
