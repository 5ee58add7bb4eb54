/* NPZ: a CSR matrix from a zip archive, stored or deflated; damage anywhere is refused. */
#include "whole.h"
#include <zlib.h>

/* An archive being written: members, then the directory. */
struct archive {
    struct bytes bytes, directory;
    unsigned entries;
    bool deflate;
};

static void put_member(struct archive *archive, const char *name, const struct bytes *content)
{
    static unsigned char packed[1 << 16];
    const unsigned char *body = content->at;
    size_t size = content->count, offset = archive->bytes.count;
    uint32_t crc = (uint32_t)crc32(0, content->at, (uInt)content->count);
    if (archive->deflate) {
        z_stream stream = {.next_in = (unsigned char *)(uintptr_t)content->at,
                           .avail_in = (uInt)content->count,
                           .next_out = packed,
                           .avail_out = sizeof packed};
        assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, -15, 8, 0), Z_OK);
        assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
        size = stream.total_out;
        deflateEnd(&stream);
        body = packed;
    }
    for (int local = 1; local >= 0; local--) {
        struct bytes *to = local ? &archive->bytes : &archive->directory;
        put(to, local ? "PK\3\4\x14\0" : "PK\1\2\x14\0\x14\0", local ? 6 : 8);
        put_integer(to, 0, 2, false);
        put_integer(to, archive->deflate ? 8 : 0, 2, false);
        put_integer(to, 0, 4, false);
        put_integer(to, crc, 4, false);
        put_integer(to, size, 4, false);
        put_integer(to, content->count, 4, false);
        put_integer(to, strlen(name), 2, false);
        put_integer(to, 0, 2, false);
        if (!local) {
            put_integer(to, 0, 8, false); /* no comment, disk 0, attributes */
            put_integer(to, 0, 2, false);
            put_integer(to, offset, 4, false);
        }
        put(to, name, strlen(name));
    }
    put(&archive->bytes, body, size);
    archive->entries++;
}

static void put_end(struct archive *archive)
{
    size_t offset = archive->bytes.count;
    put(&archive->bytes, archive->directory.at, archive->directory.count);
    put(&archive->bytes, "PK\5\6\0\0\0\0", 8);
    put_integer(&archive->bytes, archive->entries, 2, false);
    put_integer(&archive->bytes, archive->entries, 2, false);
    put_integer(&archive->bytes, archive->directory.count, 4, false);
    put_integer(&archive->bytes, offset, 4, false);
    put_integer(&archive->bytes, 0, 2, false);
}

static void put_integers(struct archive *archive, const char *name, const int *value, int count)
{
    static struct bytes member;
    char head[100];
    member.count = 0;
    snprintf(head, sizeof head, "{'descr': '<i4', 'fortran_order': False, 'shape': (%d,), }",
             count);
    put_npy(&member, 1, head);
    for (int i = 0; i < count; i++)
        put_integer(&member, (uint64_t)value[i], 4, false);
    put_member(archive, name, &member);
}

/* The matrix 1 0 2 0 / 0 0 0 0 / 3 4 0 5, with the columns of the last row out of order. */
struct matrix {
    int indices[5], start[4], shape[2];
    const char *format;
};
static const struct matrix good = {{0, 2, 3, 0, 1}, {0, 2, 2, 5}, {3, 4}, "csr"};
static const int values[5] = {1, 2, 5, 3, 4};

static void make(struct archive *archive, const struct matrix *matrix, bool deflated, bool labels)
{
    static struct bytes member;
    memset(archive, 0, sizeof *archive);
    archive->deflate = deflated;
    put_integers(archive, "indices.npy", matrix->indices, 5);
    put_integers(archive, "indptr.npy", matrix->start, 4);
    member.count = 0;
    put_npy(&member, 1, "{'descr': '|S3', 'fortran_order': False, 'shape': (), }");
    put(&member, matrix->format, 3);
    put_member(archive, "format.npy", &member);
    put_integers(archive, "shape.npy", matrix->shape, 2);
    put_integers(archive, "data.npy", values, 5);
    if (labels)
        put_integers(archive, "y.npy", (int[]){1, -1, 1}, 3);
    put_end(archive);
}

static struct archive archive;

static void check_matrix(const struct sdr_data *data)
{
    static const float expected[3][4] = {{1, 0, 2, 0}, {0, 0, 0, 0}, {3, 4, 0, 5}};
    assert_int_equal(data->rows.count, 3);
    assert_int_equal(data->rows.features, 4);
    assert_int_equal(data->nonzeros, 5);
    for (uint64_t r = 0; r < 3; r++)
        for (uint32_t c = 0; c < 4; c++)
            assert_true(cell(data, r, c) == expected[r][c]);
}

static void stored_and_deflated_members_give_the_matrix(void **unused)
{
    (void)unused;
    for (int deflated = 0; deflated < 2; deflated++) {
        make(&archive, &good, deflated, false);
        const char *path = write_file("m.npz", &archive.bytes);
        struct sdr_data *data = read_good(path, NULL);
        check_matrix(data);
        assert_false(data->has_labels);
        sdr_data_destroy(data);
        unlink(path);
    }
}

static void labels_are_a_member_or_a_file(void **unused)
{
    (void)unused;
    make(&archive, &good, true, true);
    const char *path = write_file("l.npz", &archive.bytes);
    struct sdr_data *data = read_good(path, NULL);
    check_matrix(data);
    assert_true(data->rows.label[0] == 1 && data->rows.label[1] == -1);
    sdr_data_destroy(data);
    static struct bytes text;
    text.count = 0;
    put(&text, "5\n6\n7\n", 6);
    const char *labels = write_file("l.txt", &text);
    data = read_good(path, labels);
    assert_true(data->rows.label[2] == 7);
    sdr_data_destroy(data);
    unlink(path);
    unlink(labels);
}

static void matrices_that_cannot_be_are_refused(void **unused)
{
    static const struct {
        struct matrix matrix;
        const char *words;
    } cases[] = {
        {{{0, 2, 3, 0, 3}, {0, 2, 2, 5}, {3, 4}, "csr"},
         "row 3, column 4 (counted from 1) appears"},
        {{{0, 4, 3, 0, 1}, {0, 2, 2, 5}, {3, 4}, "csr"},
         "row 1, column 5 (counted from 1) is not in"},
        {{{0, -1, 3, 0, 1}, {0, 2, 2, 5}, {3, 4}, "csr"}, "is not in the matrix"},
        {{{0, 2, 3, 0, 1}, {0, 2, 1, 5}, {3, 4}, "csr"}, "indptr"},
        {{{0, 2, 3, 0, 1}, {0, 2, 2, 4}, {3, 4}, "csr"}, "indptr"},
        {{{0, 2, 3, 0, 1}, {1, 2, 2, 5}, {3, 4}, "csr"}, "indptr"},
        {{{0, 2, 3, 0, 1}, {0, -7, 2, 5}, {3, 4}, "csr"}, "indptr"},
        {{{0, 2, 3, 0, 1}, {0, 2, 2, 5}, {4, 4}, "csr"}, "do not fit together"},
        {{{0, 2, 3, 0, 1}, {0, 2, 2, 5}, {3, -4}, "csr"}, "shape"},
        {{{0, 2, 3, 0, 1}, {0, 2, 2, 5}, {3, 4}, "csc"}, "the matrix is 'csc'"},
    };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        make(&archive, &cases[i].matrix, false, false);
        const char *path = write_file("bad.npz", &archive.bytes);
        read_bad(path, NULL, cases[i].words);
        unlink(path);
    }
}

static void other_archives_are_refused(void **unused)
{
    static struct bytes member;
    (void)unused;
    memset(&archive, 0, sizeof archive);
    member.count = 0;
    put(&member, "hello", 5);
    put_member(&archive, "hello.txt", &member);
    put_end(&archive);
    const char *path = write_file("other.npz", &archive.bytes);
    read_bad(path, NULL, "a zip archive without 'shape'");
    unlink(path);
}

/* Every shorter file and every changed byte is either refused or read as the same matrix. */
static void damage_never_changes_the_matrix(void **unused)
{
    static struct bytes changed;
    struct sdr_data_options options = {
        .format = "npz", .format_rest = "", .base = -1, .threads = 1};
    (void)unused;
    make(&archive, &good, true, false);
    for (size_t count = 1; count < archive.bytes.count; count++) {
        struct sdr_data *data;
        memcpy(changed.at, archive.bytes.at, changed.count = count);
        const char *path = write_file("cut.npz", &changed);
        assert_int_equal(read_with(&options, path, NULL, &data), SDR_BAD_DATA);
        unlink(path);
    }
    for (size_t i = 0; i < archive.bytes.count; i++) {
        struct sdr_data *data;
        memcpy(changed.at, archive.bytes.at, changed.count = archive.bytes.count);
        changed.at[i] ^= 0x41;
        const char *path = write_file("cut.npz", &changed);
        enum sdr_status status = read_with(&options, path, NULL, &data);
        if (status == SDR_OK) {
            check_matrix(data);
            sdr_data_destroy(data);
        } else {
            assert_int_equal(status, SDR_BAD_DATA);
        }
        unlink(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stored_and_deflated_members_give_the_matrix),
        cmocka_unit_test(labels_are_a_member_or_a_file),
        cmocka_unit_test(matrices_that_cannot_be_are_refused),
        cmocka_unit_test(other_archives_are_refused),
        cmocka_unit_test(damage_never_changes_the_matrix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
