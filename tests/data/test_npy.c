/* NPY: every type, both orders and byte orders give the same rows; damage is told, not read. */
#include "base/fault.h"
#include "whole.h"
#include <math.h>

/* Element (row, column) of the arrays in these tests: small and whole, so that every type holds it.
 */
static int element(int row, int column)
{
    return row * 3 + column + 1;
}

static void put_element(struct bytes *bytes, const char *type, int value)
{
    bool big = type[0] == '>';
    size_t size = (size_t)(type[2] - '0');
    uint64_t bits = (uint64_t)value;
    if (type[1] == 'f' && size == 4) {
        float x = (float)value;
        uint32_t word;
        memcpy(&word, &x, 4);
        bits = word;
    } else if (type[1] == 'f') {
        double x = value;
        memcpy(&bits, &x, 8);
    }
    put_integer(bytes, bits, size, big);
}

static void make_array(struct bytes *bytes, int version, const char *type, bool fortran)
{
    char head[120];
    bytes->count = 0;
    snprintf(head, sizeof head, "{'descr': '%s', 'fortran_order': %s, 'shape': (4, 3), }\n", type,
             fortran ? "True" : "False");
    put_npy(bytes, version, head);
    for (int i = 0; i < 12; i++)
        put_element(bytes, type, fortran ? element(i % 4, i / 4) : element(i / 3, i % 3));
}

static void every_type_and_order_gives_the_same_rows(void **unused)
{
    static const char *const types[] = {"|u1", "|i1", "<u2", ">u2", "<i2", "<i4", ">i4", "<u4",
                                        "<i8", ">i8", "<u8", "<f4", ">f4", "<f8", ">f8"};
    static struct bytes bytes;
    (void)unused;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (int kind = 0; kind < 6; kind++) {
            make_array(&bytes, kind % 3 + 1, types[t], kind >= 3);
            const char *path = write_file("a.npy", &bytes);
            struct sdr_data *data = read_good(path, NULL);
            assert_int_equal(data->rows.count, 4);
            assert_int_equal(data->rows.features, 3);
            assert_false(data->has_labels);
            for (int r = 0; r < 4; r++)
                for (int c = 0; c < 3; c++)
                    assert_true(cell(data, (uint64_t)r, (uint32_t)c) == (float)element(r, c));
            sdr_data_destroy(data);
            unlink(path);
        }
}

static void negative_integers_keep_their_sign_and_bools_are_ones(void **unused)
{
    static struct bytes bytes;
    static const unsigned char raw[] = {0xFE, 0xFF, 0xFF, 0xFF, 0, 1, 0, 0};
    (void)unused;
    bytes.count = 0;
    put_npy(&bytes, 1, "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }");
    put(&bytes, raw, 8);
    const char *path = write_file("neg.npy", &bytes);
    struct sdr_data *data = read_good(path, NULL);
    assert_int_equal(data->rows.features, 1);
    assert_true(cell(data, 0, 0) == -2 && cell(data, 1, 0) == 256);
    sdr_data_destroy(data);
    bytes.count = 0;
    put_npy(&bytes, 1, "{'descr': '|b1', 'fortran_order': False, 'shape': (2, 4), }");
    put(&bytes, raw, 8);
    write_file("neg.npy", &bytes);
    data = read_good(path, NULL);
    assert_true(cell(data, 0, 0) == 1 && cell(data, 1, 0) == 0 && cell(data, 1, 1) == 1);
    sdr_data_destroy(data);
    unlink(path);
}

static void the_shape_of_a_row_is_kept_in_both_orders(void **unused)
{
    static struct bytes bytes;
    (void)unused;
    for (int fortran = 0; fortran < 2; fortran++) {
        char head[120];
        bytes.count = 0;
        snprintf(head, sizeof head, "{'descr': '|u1', 'fortran_order': %s, 'shape': (2, 3, 5), }",
                 fortran ? "True" : "False");
        put_npy(&bytes, 1, head);
        for (int i = 0; i < 30; i++) {
            int n = fortran ? i % 2 : i / 15, a = fortran ? i / 2 % 3 : i / 5 % 3,
                b = fortran ? i / 6 : i % 5;
            put_integer(&bytes, (uint64_t)(1 + 100 * n + 10 * a + b), 1, false);
        }
        const char *path = write_file("dims.npy", &bytes);
        struct sdr_data *data = read_good(path, NULL);
        assert_int_equal(data->rows.features, 15);
        assert_int_equal(data->schema.dims[0], 3);
        assert_int_equal(data->schema.dims[1], 5);
        assert_int_equal(data->schema.dims[2], 0);
        for (int n = 0; n < 2; n++)
            for (int f = 0; f < 15; f++)
                assert_true(cell(data, (uint64_t)n, (uint32_t)f) ==
                            (float)(1 + 100 * n + 10 * (f / 5) + f % 5));
        sdr_data_destroy(data);
        unlink(path);
    }
}

static void labels_come_from_a_file_of_any_kind(void **unused)
{
    static struct bytes bytes;
    static const char *const kinds[] = {"npy", "idx", "txt", "mtx"};
    (void)unused;
    make_array(&bytes, 1, "<f4", false);
    const char *path = write_file("x.npy", &bytes);
    for (int k = 0; k < 4; k++) {
        bytes.count = 0;
        if (k == 0) {
            put_npy(&bytes, 1, "{'descr': '<i8', 'fortran_order': False, 'shape': (4,), }");
            for (uint64_t i = 0; i < 4; i++)
                put_integer(&bytes, 7 + i % 2, 8, false);
        } else if (k == 1) {
            put(&bytes, "\0\0\x08\x01\0\0\0\x04\7\10\7\10", 12);
        } else if (k == 2) {
            put(&bytes, "7\n8\r\n\n7\n8", 9);
        } else {
            const char *text = "%%MatrixMarket matrix coordinate real general\n% c\n4 1 4\n"
                               "1 1 7\n2 1 8\n4 1 8\n3 1 7\n";
            put(&bytes, text, strlen(text));
        }
        const char *labels = write_file(kinds[k], &bytes);
        struct sdr_data *data = read_good(path, labels);
        assert_true(data->has_labels);
        for (int i = 0; i < 4; i++)
            assert_true(data->rows.label[i] == (float)(7 + i % 2));
        assert_int_equal(data->schema.labels.count, 2);
        sdr_data_destroy(data);
        unlink(labels);
    }
    bytes.count = 0;
    put(&bytes, "cat\ndog\ncat\nbird\n", 17);
    const char *labels = write_file("words", &bytes);
    struct sdr_data *data = read_good(path, labels);
    assert_true(data->schema.text_labels);
    assert_string_equal(data->schema.labels.text[2], "bird");
    assert_true(data->rows.label[2] == 0 && data->rows.label[3] == 2);
    assert_true(cell(data, 3, 2) == (float)element(3, 2));
    sdr_data_destroy(data);
    bytes.count = 0;
    put(&bytes, "1\n2\n3\n", 6);
    write_file("words", &bytes);
    read_bad(path, labels, "it has 3 labels, but");
    bytes.count = 0;
    put(&bytes, "1\n2\n3\nx\n", 8);
    write_file("words", &bytes);
    read_bad(path, labels, ":4:1: label 'x' is not a number");
    unlink(labels);
    unlink(path);
}

static void numbers_that_are_not_finite_are_refused_with_their_place(void **unused)
{
    static struct bytes bytes;
    static const char *const words[] = {"row 3, column 2 (counted from 1) is NaN",
                                        "row 3, column 2 (counted from 1) is infinite",
                                        "row 3, column 2 (counted from 1) is infinite"};
    static const double values[] = {NAN, -INFINITY, 1e300};
    (void)unused;
    for (int k = 0; k < 3; k++) {
        make_array(&bytes, 1, "<f8", false);
        memcpy(bytes.at + bytes.count - 12 * 8 + 7 * 8, &values[k], 8);
        const char *path = write_file("nan.npy", &bytes);
        read_bad(path, NULL, words[k]);
        unlink(path);
    }
}

static void missing_numbers_follow_the_option(void **unused)
{
    static struct bytes bytes;
    double nan_value = NAN;
    struct sdr_data *data;
    (void)unused;
    make_array(&bytes, 1, "<f8", false);
    memcpy(bytes.at + bytes.count - 12 * 8 + 7 * 8, &nan_value, 8);
    const char *path = write_file("mean.npy", &bytes);
    struct sdr_data_options options = {
        .format_rest = "", .base = -1, .threads = 1, .missing = SDR_MISSING_ZERO};
    assert_int_equal(read_with(&options, path, NULL, &data), SDR_OK);
    assert_true(cell(data, 2, 1) == 0);
    sdr_data_destroy(data);
    options.missing = SDR_MISSING_MEAN;
    assert_int_equal(read_with(&options, path, NULL, &data), SDR_OK);
    assert_true(fabsf(cell(data, 2, 1) - (2 + 5 + 11) / 3.0f) < 1e-5f);
    sdr_data_destroy(data);
    unlink(path);
}

static void a_truncated_file_is_refused_at_every_length(void **unused)
{
    static struct bytes bytes;
    (void)unused;
    for (int fortran = 0; fortran < 2; fortran++) {
        make_array(&bytes, 1, "<f4", fortran);
        size_t whole = bytes.count;
        for (size_t count = 1; count < whole; count++) {
            struct sdr_data *data;
            bytes.count = count;
            const char *path = write_file("cut.npy", &bytes);
            struct sdr_data_options options = {
                .format = "npy", .format_rest = "", .base = -1, .threads = 1};
            assert_int_equal(read_with(&options, path, NULL, &data), SDR_BAD_DATA);
            unlink(path);
        }
        bytes.count = whole;
        put(&bytes, "x", 1);
        const char *path = write_file("cut.npy", &bytes);
        read_bad(path, NULL, "more bytes follow");
        unlink(path);
    }
    make_array(&bytes, 1, "<f4", false);
    bytes.count -= 12;
    const char *path = write_file("cut.npy", &bytes);
    read_bad(path, NULL, "truncated: it has 3 of the 4 rows");
    unlink(path);
}

static void headers_that_cannot_be_read_are_refused(void **unused)
{
    static const struct {
        const char *head, *words;
    } cases[] = {
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (4, 3), }", "type '<c8'"},
        {"{'descr': '<f2', 'fortran_order': False, 'shape': (4, 3), }", "type '<f2'"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (4,), }", "records"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4, -3), }", "damaged"},
        {"{'descr': '<f4', 'fortran_order': False, }", "damaged"},
        {"{'descr': '<f4', 'fortran_order': Maybe, 'shape': (4, 3), }", "damaged"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4, 3)", "damaged"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 3)}", "empty"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': ()}", "empty"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 99999999999)}", "large"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 4294967296)}", "too long"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2147483646)}", "truncated"},
    };
    static struct bytes bytes;
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bytes.count = 0;
        put_npy(&bytes, 1, cases[i].head);
        put(&bytes, "0123456789012345678901234567890123456789012345678", 48);
        const char *path = write_file("head.npy", &bytes);
        read_bad(path, NULL, cases[i].words);
        unlink(path);
    }
}

static void a_model_of_another_width_is_refused(void **unused)
{
    static struct bytes bytes;
    struct sdr_data *data, *other;
    (void)unused;
    make_array(&bytes, 1, "<f4", false);
    const char *path = write_file("w.npy", &bytes);
    data = read_good(path, NULL);
    data->schema.features = data->schema.numbers = 5;
    assert_int_equal(read_with(NULL, path, &data->schema, &other), SDR_BAD_DATA);
    assert_non_null(strstr(sdr_error(), "a row has 3 numbers, the model was trained with 5"));
    sdr_data_destroy(data);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_and_order_gives_the_same_rows),
        cmocka_unit_test(negative_integers_keep_their_sign_and_bools_are_ones),
        cmocka_unit_test(the_shape_of_a_row_is_kept_in_both_orders),
        cmocka_unit_test(labels_come_from_a_file_of_any_kind),
        cmocka_unit_test(numbers_that_are_not_finite_are_refused_with_their_place),
        cmocka_unit_test(missing_numbers_follow_the_option),
        cmocka_unit_test(a_truncated_file_is_refused_at_every_length),
        cmocka_unit_test(headers_that_cannot_be_read_are_refused),
        cmocka_unit_test(a_model_of_another_width_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
