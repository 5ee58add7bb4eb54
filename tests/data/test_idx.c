/* IDX: big-endian arrays of every type; the shape is kept; MNIST stays sparse. */
#include "whole.h"

static void put_header(struct bytes *bytes, int type, int dims, const uint32_t *shape)
{
    unsigned char head[4] = {0, 0, (unsigned char)type, (unsigned char)dims};
    bytes->count = 0;
    put(bytes, head, 4);
    for (int d = 0; d < dims; d++)
        put_integer(bytes, shape[d], 4, true);
}

static void every_type_is_read(void **unused)
{
    static const struct {
        int type;
        size_t size;
    } types[] = {{8, 1}, {9, 1}, {0xB, 2}, {0xC, 4}, {0xD, 4}, {0xE, 8}};
    static struct bytes bytes;
    (void)unused;
    for (size_t t = 0; t < 6; t++) {
        put_header(&bytes, types[t].type, 2, (uint32_t[]){2, 3});
        for (int i = 1; i <= 6; i++) {
            uint64_t bits = (uint64_t)i;
            float f = (float)i;
            double d = i;
            uint32_t word;
            if (types[t].type == 0xD) {
                memcpy(&word, &f, 4);
                bits = word;
            } else if (types[t].type == 0xE) {
                memcpy(&bits, &d, 8);
            }
            put_integer(&bytes, bits, types[t].size, true);
        }
        const char *path = write_file("t.idx", &bytes);
        struct sdr_data *data = read_good(path, NULL);
        for (int i = 0; i < 6; i++)
            assert_true(cell(data, (uint64_t)i / 3, (uint32_t)i % 3) == (float)i + 1);
        assert_int_equal(data->schema.dims[0], 0);
        sdr_data_destroy(data);
        unlink(path);
    }
}

static void pictures_keep_their_shape_and_get_their_labels(void **unused)
{
    static struct bytes bytes;
    (void)unused;
    put_header(&bytes, 8, 3, (uint32_t[]){3, 2, 2});
    put(&bytes, "\1\2\3\4\5\6\7\10\0\0\0\11", 12);
    const char *path = write_file("pictures", &bytes); /* recognised by content */
    put_header(&bytes, 8, 1, (uint32_t[]){3});
    put(&bytes, "\2\0\2", 3);
    const char *labels = write_file("labels", &bytes);
    struct sdr_data *data = read_good(path, labels);
    assert_string_equal(data->schema.format, "idx");
    assert_int_equal(data->schema.dims[0], 2);
    assert_int_equal(data->schema.dims[1], 2);
    assert_int_equal(data->rows.features, 4);
    assert_true(data->rows.label[0] == 2 && data->rows.label[1] == 0);
    assert_true(cell(data, 2, 3) == 9 && cell(data, 1, 0) == 5);
    sdr_data_destroy(data);
    put_header(&bytes, 8, 1, (uint32_t[]){4});
    put(&bytes, "\2\0\2\1", 4);
    write_file("labels", &bytes);
    read_bad(path, labels, "it has 4 labels, but");
    unlink(path);
    unlink(labels);
}

static void damage_is_refused(void **unused)
{
    static struct bytes bytes;
    (void)unused;
    put_header(&bytes, 8, 2, (uint32_t[]){3, 4});
    put(&bytes, "0123456789ab", 11);
    const char *path = write_file("cut.idx", &bytes);
    read_bad(path, NULL, "truncated: it has 2 of the 3 rows");
    put(&bytes, "ab", 2);
    write_file("cut.idx", &bytes);
    read_bad(path, NULL, "more bytes follow");
    put_header(&bytes, 8, 2, (uint32_t[]){0, 4});
    write_file("cut.idx", &bytes);
    read_bad(path, NULL, "empty");
    put_header(&bytes, 0xD, 8, (uint32_t[]){-1u, -1u, -1u, -1u, -1u, -1u, -1u, -1u});
    write_file("cut.idx", &bytes);
    read_bad(path, NULL, "impossibly large");
    unlink(path);
}

static void two_data_files_cannot_share_labels(void **unused)
{
    static struct bytes bytes;
    struct sdr_data *data;
    (void)unused;
    put_header(&bytes, 8, 2, (uint32_t[]){1, 2});
    put(&bytes, "\1\2", 2);
    const char *path = write_file("two.idx", &bytes);
    put_header(&bytes, 8, 1, (uint32_t[]){1});
    put(&bytes, "\1", 1);
    const char *labels = write_file("two.labels", &bytes);
    const char *paths[] = {path, path};
    struct sdr_data_options options = {
        .format_rest = "", .base = -1, .threads = 1, .labels = labels};
    assert_int_equal(sdr_data_read(&options, paths, 2, NULL, &data), SDR_USAGE);
    options.labels = NULL;
    assert_int_equal(sdr_data_read(&options, paths, 2, NULL, &data), SDR_OK);
    assert_int_equal(data->rows.count, 2);
    sdr_data_destroy(data);
    unlink(path);
    unlink(labels);
}

static void mnist_is_sparse(void **unused)
{
    const char *folder = getenv("SOUNDER_DATA");
    char images[300], labels[300];
    (void)unused;
    snprintf(images, sizeof images, "%s/mnist/t10k-images-idx3-ubyte.gz", folder ? folder : "");
    snprintf(labels, sizeof labels, "%s/mnist/t10k-labels-idx1-ubyte.gz", folder ? folder : "");
    if (!folder || !sdr_file_exists(images))
        skip();
    struct sdr_data *data = read_good(images, labels);
    assert_int_equal(data->rows.count, 10000);
    assert_int_equal(data->rows.features, 784);
    assert_null(data->rows.dense);
    assert_true(data->rows.label[0] == 7);
    assert_int_equal(data->schema.labels.count, 10);
    assert_int_equal(data->schema.dims[1], 28);
    sdr_data_destroy(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_is_read),
        cmocka_unit_test(pictures_keep_their_shape_and_get_their_labels),
        cmocka_unit_test(damage_is_refused),
        cmocka_unit_test(two_data_files_cannot_share_labels),
        cmocka_unit_test(mnist_is_sparse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
