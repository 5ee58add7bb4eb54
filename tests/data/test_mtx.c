/* Matrix Market: read whole through a source and a builder, as the pipeline does. */
#include "base/rng.h"
#include "data/reading.h"
#include <math.h>
#include <unistd.h>

struct file {
    char path[64];
};

static struct file write_file(const char *text)
{
    struct file file = {"/tmp/sounder-test-mtx-XXXXXX"};
    int descriptor = mkstemp(file.path);
    assert_true(descriptor >= 0);
    assert_int_equal(write(descriptor, text, strlen(text)), (ssize_t)strlen(text));
    close(descriptor);
    return file;
}

/* Reads the matrix at path; data is valid if the result is SDR_OK. */
static enum sdr_status read_path(const char *path, const char *labels, bool optional,
                                 struct sdr_data *data)
{
    const struct sdr_format *format = &sdr_format_mtx;
    struct sdr_data_options options = {
        .format_rest = "", .base = -1, .threads = 1, .labels = labels, .labels_optional = optional};
    struct sdr_schema schema = {0};
    struct sdr_reading reading = {.options = &options, .schema = &schema, .path = path};
    struct sdr_source *source = NULL;
    void *state = NULL;
    enum sdr_status status;
    *data = (struct sdr_data){0};
    SDR_CHECK(sdr_allocate(&state, 1, format->state_size, "test"));
    SDR_CHECK(sdr_source_open(path, &source));
    SDR_CHECK(format->open(state, &reading, "", 0));
    SDR_CHECK(sdr_builder_create(&options, NULL, &schema, SDR_LAYOUT_SPARSE, &reading.builder));
    SDR_CHECK(format->whole(state, &reading, source));
    struct sdr_builder *builder = reading.builder;
    reading.builder = NULL;
    SDR_CHECK(sdr_builder_finish(builder, data));
cleanup:
    sdr_builder_destroy(reading.builder);
    sdr_source_close(source);
    if (state)
        format->close(state);
    sdr_release(state);
    sdr_schema_free(&schema);
    return status;
}

static void data_free(struct sdr_data *data)
{
    sdr_region_free(&data->start);
    sdr_region_free(&data->index);
    sdr_region_free(&data->value);
    sdr_region_free(&data->dense);
    sdr_region_free(&data->label);
    sdr_region_free(&data->weight);
}

static enum sdr_status read_text(const char *text, const char *labels, struct sdr_data *data)
{
    struct file file = write_file(text), label_file = {""};
    if (labels)
        label_file = write_file(labels);
    enum sdr_status status = read_path(file.path, labels ? label_file.path : NULL, !labels, data);
    unlink(file.path);
    if (labels)
        unlink(label_file.path);
    return status;
}

static float cell(const struct sdr_rows *rows, uint64_t row, uint32_t column)
{
    for (uint64_t i = rows->start[row]; i < rows->start[row + 1]; i++)
        if ((rows->index16 ? rows->index16[i] : rows->index32[i]) == column)
            return rows->value[i];
    return 0;
}

static void check_cells(const char *text, uint64_t count, uint32_t features, const float *cells)
{
    struct sdr_data data;
    if (read_text(text, NULL, &data) != SDR_OK)
        fail_msg("%s: %s", text, sdr_error());
    assert_int_equal(data.rows.count, count);
    assert_int_equal(data.rows.features, features);
    for (uint64_t r = 0; r < count; r++)
        for (uint32_t j = 0; j < features; j++)
            assert_true(cell(&data.rows, r, j) == cells[r * features + j]);
    data_free(&data);
}

static void reads_every_kind(void **unused)
{
    (void)unused;
    check_cells("%%MatrixMarket matrix coordinate real general\n% c\n\n2 3 3\n2 3 -1.5\n1 2 1e1\n"
                "%c\n1 1 4",
                2, 3, (float[]){4, 10, 0, 0, 0, -1.5f});
    check_cells("%%matrixmarket MATRIX Coordinate Integer General\r\n2 2 2\r\n1 1 3\r\n2 2 4\r\n",
                2, 2, (float[]){3, 0, 0, 4});
    check_cells("%%MatrixMarket matrix coordinate pattern general\n3 2 2\n3 1\n 1\t2 \n", 3, 2,
                (float[]){0, 1, 0, 0, 1, 0});
    check_cells("%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 1\n2 1 5\n", 2, 2,
                (float[]){1, 5, 5, 0});
    check_cells("%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 1 5\n", 2, 2,
                (float[]){0, -5, 5, 0});
    check_cells("%%MatrixMarket matrix array real general\n2 3\n1\n2\n3\n4\n5\n6\n", 2, 3,
                (float[]){1, 3, 5, 2, 4, 6});
    check_cells("%%MatrixMarket matrix array real symmetric\n2 2\n1\n2\n3\n", 2, 2,
                (float[]){1, 2, 2, 3});
    check_cells("%%MatrixMarket matrix array real skew-symmetric\n2 2\n7\n", 2, 2,
                (float[]){0, -7, 7, 0});
    check_cells("%%MatrixMarket matrix coordinate real general\n3 2 0\n", 3, 2, (float[6]){0});
}

#define REAL  "%%MatrixMarket matrix coordinate real general\n"
#define ARRAY "%%MatrixMarket matrix array real general\n"
static void refuses_with_the_place(void **unused)
{
    (void)unused;
    static const struct {
        const char *text, *words;
    } errors[] = {
        {"", ":1:1: the file does not begin with %%MatrixMarket"},
        {"1 2 3\n", ":1:1: the file does not begin with"},
        {"%%MatrixMarket vector coordinate real general\n", ":1:16: object 'vector'"},
        {"%%MatrixMarket matrix coordinate complex general\n", ":1:34: kind of number 'complex'"},
        {"%%MatrixMarket matrix coordinate real hermitian\n", ":1:39: symmetry 'hermitian'"},
        {"%%MatrixMarket matrix coordinate real\n", ":1:38: the symmetry is missing"},
        {"%%MatrixMarket matrix array pattern general\n", ":1:1: an array cannot be a pattern"},
        {REAL, "truncated: the line with the size is missing"},
        {REAL "2 2\n", ":2:4: the number of entries is missing"},
        {REAL "x 2 1\n", ":2:1: number of rows 'x' is not a whole number"},
        {REAL "0 2 1\n", ":2:1: number of rows 0 is not within 1"},
        {REAL "2 2147483647 1\n", ":2:3: number of columns 2147483647 is not within"},
        {REAL "99999999999999999999999 2 1\n", ":2:1: number of rows"},
        {REAL "2000000000 2 1\n1 1 1\n", ":2:1: 2000000000 rows are too many"},
        {REAL "2 2 1 7\n1 1 1\n", ":2:7: '7' is more than belongs in the line"},
        {"%%MatrixMarket matrix array real symmetric\n2 3\n", ":2:1: a symmetric matrix of 2 rows"},
        {REAL "2 2 2\n1 1 1\n", "truncated: it has 1 of the 2 entries"},
        {REAL "2 2 1\n1 1 1\n1 2 1\n", ":4:1: more lines than the 1 entries"},
        {REAL "2 2 1\n3 1 1\n", ":3:1: row 3 is not within 1"},
        {REAL "2 2 1\n1 0 1\n", ":3:3: column 0 is not within 1"},
        {REAL "2 2 1\n1 -1 1\n", ":3:3: column '-1' is not a whole number"},
        {REAL "2 2 1\n1 1\n", ":3:4: the value is missing"},
        {REAL "2 2 1\n1 1 nan\n", ":3:5: value 'nan' is not a finite number"},
        {REAL "2 2 1\n1 1 1e39\n", ":3:5: value '1e39' is too large"},
        {REAL "2 2 1\n1 1 x\n", ":3:5: value 'x' is not a number"},
        {REAL "2 2 1\n1 1 1 1\n", ":3:7: '1' is more than belongs"},
        {REAL "2 2 3\n1 1 1\n2 2 1\n% c\n1 1 2\n", ":6:1: the entry (1, 1) is given twice"},
        {"%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 2 1\n2 1 1\n",
         ":4:1: the entry (1, 2) is given twice"},
        {"%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n1 1 1\n",
         ":3:1: a skew-symmetric matrix has no entry (1, 1)"},
        {ARRAY "2 2\n1\n2\n3\n", "truncated"},
        {ARRAY "2 1\n1\n2\n3\n", ":5:1: more lines than"},
        {ARRAY "1 1\ninf\n", ":3:1: value 'inf' is not a finite number"},
        {ARRAY "1000 100000\n1\n", "truncated"},
    };
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        struct sdr_data data;
        enum sdr_status status = read_text(errors[i].text, NULL, &data);
        if (status != SDR_BAD_DATA || !strstr(sdr_error(), errors[i].words))
            fail_msg("'%s': status %d, %s", errors[i].text, status, sdr_error());
    }
}

static void labels_come_from_their_file(void **unused)
{
    (void)unused;
    static const char matrix[] = REAL "2 2 1\n1 1 1\n";
    static const char *const labels[] = {"7\n-8.5\n", ARRAY "2 1\n7\n-8.5\n",
                                         REAL "2 1 2\n2 1 -8.5\n1 1 7\n"};
    struct sdr_data data;
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        if (read_text(matrix, labels[i], &data) != SDR_OK)
            fail_msg("%s", sdr_error());
        assert_true(data.has_labels);
        assert_true(data.rows.label[0] == 7 && data.rows.label[1] == -8.5f);
        data_free(&data);
    }
    assert_int_equal(read_text(matrix, "1\n2\n3\n", &data), SDR_BAD_DATA);
    assert_non_null(strstr(sdr_error(), "3 labels"));
    struct file file = write_file(matrix);
    assert_int_equal(read_path(file.path, NULL, false, &data), SDR_USAGE);
    assert_non_null(strstr(sdr_error(), "no labels: give --labels FILE"));
    unlink(file.path);
}

/* Law: the order of the entries in the file does not matter. */
static void entries_come_in_any_order(void **unused)
{
    (void)unused;
    enum { ROWS = 40, COLUMNS = 70, CELLS = ROWS * COLUMNS };
    static float cells[CELLS];
    static uint32_t order[CELLS];
    for (uint64_t round = 0; round < 10; round++) {
        struct sdr_stream stream = sdr_stream_open(11, SDR_FOR_TEST, round);
        struct sdr_text text = {0};
        int count = 0;
        sdr_shuffle(order, CELLS, &stream);
        for (int i = 0; i < CELLS; i++) {
            cells[i] = sdr_stream_below(&stream, 4) ? 0 : (float)sdr_stream_below(&stream, 9) - 9;
            count += cells[i] != 0;
        }
        sdr_text_add(&text, "%s%d %d %d\n", REAL, ROWS, COLUMNS, count);
        for (int i = 0; i < CELLS; i++)
            if (cells[order[i]] != 0)
                sdr_text_add(&text, "%d %d %g\n", (int)order[i] / COLUMNS + 1,
                             (int)order[i] % COLUMNS + 1, (double)cells[order[i]]);
        check_cells(text.bytes, ROWS, COLUMNS, cells);
        sdr_text_free(&text);
    }
}

static void reads_the_lasso_of_strads(void **unused)
{
    (void)unused;
    const char *folder = getenv("SOUNDER_DATA");
    char path[512], labels[512];
    if (!folder)
        skip();
    snprintf(path, sizeof path, "%s/strads-lasso/lasso500by1K.X.mmt.gz", folder);
    snprintf(labels, sizeof labels, "%s/strads-lasso/lasso500by1K.Y.mmt.gz", folder);
    if (access(path, R_OK) != 0)
        skip();
    struct sdr_data data;
    if (read_path(path, labels, false, &data) != SDR_OK)
        fail_msg("%s", sdr_error());
    assert_int_equal(data.rows.count, 500);
    assert_int_equal(data.rows.features, 1000);
    assert_int_equal(data.nonzeros, 20000);
    assert_true(cell(&data.rows, 0, 77) == 0.17737620085317f);
    assert_true(data.rows.label[0] == 0.047674f && data.rows.label[1] == -0.054401f);
    data_free(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_every_kind),
        cmocka_unit_test(refuses_with_the_place),
        cmocka_unit_test(labels_come_from_their_file),
        cmocka_unit_test(entries_come_in_any_order),
        cmocka_unit_test(reads_the_lasso_of_strads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
