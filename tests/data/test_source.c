/* Sources: the same bytes whatever the packing, and a clean refusal of broken archives. */
#include "files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>

enum { TEXT = 300000 }; /* more than a raw buffer and a head */

static unsigned char *make_text(void)
{
    unsigned char *text = malloc(TEXT);
    assert_non_null(text);
    for (size_t i = 0; i < TEXT; i++)
        text[i] = (unsigned char)(i % 61 == 60 ? '\n' : '0' + (i * 7919 >> 5) % 60);
    return text;
}

static size_t pack_gzip(const void *from, size_t count, unsigned char *to, size_t room)
{
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (Bytef *)(uintptr_t)from;
    z.avail_in = (uInt)count;
    z.next_out = to;
    z.avail_out = (uInt)room;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return room - z.avail_out;
}

static size_t pack_zstd(const void *from, size_t count, unsigned char *to, size_t room)
{
    size_t made = ZSTD_compress(to, room, from, count, 3);
    assert_false(ZSTD_isError(made));
    return made;
}

/* Reads in steps of `step` bytes; peeks first if told to. */
static enum sdr_status read_all(const char *path, size_t step, bool peek, struct sdr_region *all)
{
    struct sdr_source *source;
    size_t got;
    const char *head;
    enum sdr_status status = sdr_source_open(path, &source);
    if (status != SDR_OK)
        return status;
    if (peek)
        status = sdr_source_peek(source, &head, &got);
    if (status == SDR_OK && peek && step == 0)
        status = sdr_source_rest(source, all);
    while (status == SDR_OK && step) {
        status = sdr_region_reserve(all, step);
        if (status == SDR_OK)
            status = sdr_source_read(source, all->bytes + all->used, step, &got);
        if (status != SDR_OK)
            break;
        all->used += got;
        if (got < step)
            break;
    }
    sdr_source_close(source);
    return status;
}

static void assert_reads(const char *path, const void *text, size_t count)
{
    static const size_t steps[] = {1 << 20, 65536, 65537, 1000, 0};
    for (size_t i = 0; i < 5; i++)
        for (int peek = steps[i] == 0; peek < 2; peek++) {
            struct sdr_region all = {0};
            assert_int_equal(read_all(path, steps[i], peek, &all), SDR_OK);
            assert_int_equal(all.used, count);
            if (count)
                assert_memory_equal(all.bytes, text, count);
            sdr_region_free(&all);
        }
}

static void the_bytes_do_not_depend_on_the_packing(void **state)
{
    (void)state;
    unsigned char *text = make_text(), *packed = malloc(2 * TEXT);
    assert_reads(write_file("plain", text, TEXT), text, TEXT);
    assert_reads(write_file("empty", text, 0), text, 0);
    size_t count = pack_gzip(text, TEXT, packed, 2 * TEXT);
    assert_reads(write_file("a.gz", packed, count), text, TEXT);
    count = pack_zstd(text, TEXT, packed, 2 * TEXT);
    assert_reads(write_file("a.zst", packed, count), text, TEXT);
    count = pack_gzip(text, 0, packed, 2 * TEXT);
    assert_reads(write_file("empty.gz", packed, count), text, 0);
    free(packed);
    free(text);
}

static void members_and_frames_in_a_row_are_one_stream(void **state)
{
    (void)state;
    unsigned char *text = make_text(), *packed = malloc(4 * TEXT);
    size_t half = TEXT / 2 + 1;
    size_t count = pack_gzip(text, half, packed, 2 * TEXT);
    count += pack_gzip(text, 0, packed + count, TEXT); /* an empty member */
    count += pack_gzip(text + half, TEXT - half, packed + count, TEXT);
    assert_reads(write_file("two.gz", packed, count), text, TEXT);
    memset(packed + count, 0, 1000); /* tape padding */
    assert_reads(write_file("padded.gz", packed, count + 1000), text, TEXT);
    count = pack_zstd(text, half, packed, 2 * TEXT);
    count += pack_zstd(text + half, TEXT - half, packed + count, TEXT);
    assert_reads(write_file("two.zst", packed, count), text, TEXT);
    free(packed);
    free(text);
}

static void a_truncated_archive_is_refused_wherever_it_is_cut(void **state)
{
    (void)state;
    static const char *const word[2] = {"truncated gzip archive", "truncated zstd archive"};
    unsigned char text[500], packed[1000];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (unsigned char)(i * 37 >> 2);
    for (int zstd = 0; zstd < 2; zstd++) {
        size_t count = zstd ? pack_zstd(text, sizeof text, packed, sizeof packed)
                            : pack_gzip(text, sizeof text, packed, sizeof packed);
        for (size_t n = zstd ? 4 : 2; n < count; n++) {
            struct sdr_region all = {0};
            assert_int_equal(read_all(write_file("cut", packed, n), 4096, false, &all),
                             SDR_BAD_DATA);
            assert_non_null(strstr(sdr_error(), word[zstd]));
            assert_non_null(strstr(sdr_error(), "/cut: "));
            sdr_region_free(&all);
        }
    }
}

static void a_damaged_archive_never_does_more_than_fail(void **state)
{
    (void)state;
    unsigned char text[300], packed[1000];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (unsigned char)(i * 37 >> 2);
    for (int zstd = 0; zstd < 2; zstd++) {
        size_t count = zstd ? pack_zstd(text, sizeof text, packed, sizeof packed)
                            : pack_gzip(text, sizeof text, packed, sizeof packed);
        for (size_t n = 0; n < 8 * count; n++) {
            struct sdr_region all = {0};
            packed[n / 8] ^= (unsigned char)(1 << n % 8);
            enum sdr_status status = read_all(write_file("bent", packed, count), 4096, n % 2, &all);
            assert_true(status == SDR_OK || status == SDR_BAD_DATA);
            packed[n / 8] ^= (unsigned char)(1 << n % 8);
            sdr_region_free(&all);
        }
    }
    size_t count = pack_gzip(text, sizeof text, packed, sizeof packed);
    struct sdr_region all = {0};
    memcpy(packed + count, "garbage", 7);
    assert_int_equal(read_all(write_file("tail.gz", packed, count + 7), 4096, true, &all),
                     SDR_BAD_DATA);
    assert_non_null(strstr(sdr_error(), "corrupt gzip archive"));
    sdr_region_free(&all);
}

static void peek_shows_the_head_and_takes_nothing(void **state)
{
    (void)state;
    unsigned char *text = make_text();
    struct sdr_source *source;
    const char *head;
    char bytes[10];
    size_t count, got;
    assert_int_equal(sdr_source_open(write_file("plain", text, TEXT), &source), SDR_OK);
    assert_int_equal(sdr_source_peek(source, &head, &count), SDR_OK);
    assert_int_equal(count, 65536);
    assert_memory_equal(head, text, count);
    assert_int_equal(sdr_source_read(source, bytes, 10, &got), SDR_OK);
    assert_memory_equal(bytes, text, 10);
    assert_int_equal(sdr_source_peek(source, &head, &count), SDR_OK);
    assert_memory_equal(head, text + 10, count);
    assert_true(sdr_source_taken(source) >= 65536);
    sdr_source_close(source);
    free(text);
}

static void peeking_for_more_shows_more_and_takes_nothing(void **state)
{
    (void)state;
    enum { MORE = 100000 };
    unsigned char *text = make_text();
    char *bytes = malloc(TEXT);
    unsigned char *packed = malloc(2 * TEXT);
    size_t packed_count = pack_gzip(text, TEXT, packed, 2 * TEXT);
    for (int gzip = 0; gzip < 2; gzip++) {
        struct sdr_source *source;
        const char *head;
        size_t count, got;
        const char *path =
            gzip ? write_file("packed", packed, packed_count) : write_file("plain", text, TEXT);
        assert_int_equal(sdr_source_open(path, &source), SDR_OK);
        assert_int_equal(sdr_source_peek(source, &head, &count), SDR_OK);
        assert_int_equal(sdr_source_peek_more(source, MORE, &head, &count), SDR_OK);
        assert_int_equal(count, MORE);
        assert_memory_equal(head, text, MORE);
        assert_int_equal(sdr_source_peek_more(source, 2 * (size_t)TEXT, &head, &count), SDR_OK);
        assert_int_equal(count, TEXT); /* all there is */
        assert_memory_equal(head, text, TEXT);
        assert_int_equal(sdr_source_read(source, bytes, TEXT, &got), SDR_OK);
        assert_int_equal(got, TEXT);
        assert_memory_equal(bytes, text, TEXT);
        sdr_source_close(source);
    }
    free(packed);
    free(bytes);
    free(text);
}

static void what_is_no_file_is_told_so(void **state)
{
    struct sdr_source *source;
    (void)state;
    assert_int_equal(sdr_source_open(path_of("not-there"), &source), SDR_RUNTIME);
    assert_non_null(strstr(sdr_error(), "not-there"));
    assert_null(source);
    assert_int_equal(sdr_source_open(folder, &source), SDR_RUNTIME);
    assert_non_null(strstr(sdr_error(), "folder"));
}

static void every_failing_read_and_allocation_is_survived(void **state)
{
    (void)state;
    unsigned char *text = make_text(), *packed = malloc(2 * TEXT);
    char path[3][300];
    snprintf(path[0], 300, "%s", write_file("f", text, TEXT));
    snprintf(path[1], 300, "%s",
             write_file("f.gz", packed, pack_gzip(text, TEXT, packed, 2 * TEXT)));
    snprintf(path[2], 300, "%s",
             write_file("f.zst", packed, pack_zstd(text, TEXT, packed, 2 * TEXT)));
    for (int file = 0; file < 3; file++)
        for (enum sdr_fault kind = SDR_FAULT_ALLOCATE; kind <= SDR_FAULT_READ; kind++)
            for (uint64_t n = 1;; n++) {
                struct sdr_region all = {0};
                sdr_fault_arm(kind, n);
                enum sdr_status status = read_all(path[file], 10000, true, &all);
                bool struck = sdr_fault_count(kind) >= n;
                sdr_fault_arm(kind, 0);
                assert_int_equal(status, struck ? SDR_RUNTIME : SDR_OK);
                sdr_region_free(&all);
                if (!struck)
                    break;
            }
    free(packed);
    free(text);
}

enum change { CUT, GROWN, EMPTIED, REWRITTEN };

static void change_file(const char *path, enum change change)
{
    struct stat facts;
    struct timespec times[2] = {{0}};
    assert_int_equal(stat(path, &facts), 0);
    if (change == CUT || change == GROWN)
        assert_int_equal(truncate(path, facts.st_size + (change == CUT ? -1000 : 1000)), 0);
    else if (change == EMPTIED)
        assert_int_equal(truncate(path, 0), 0);
    times[0] = times[1] =
        facts.st_mtim; /* the clock of a file system ticks slowly: what counts is told apart */
    times[1].tv_sec += change == REWRITTEN;
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void a_file_that_changes_while_it_is_read_is_refused(void **state)
{
    (void)state;
    unsigned char *text = make_text(), *noise = malloc(2 * TEXT), *packed = malloc(3 * TEXT);
    assert_true(noise && packed);
    for (size_t i = 0; i < 2 * TEXT; i++) /* larger than a raw buffer when it is packed, too */
        noise[i] = (unsigned char)((i * 2654435761u) >> 13 ^ i >> 3);
    for (int packing = 0; packing < 3; packing++)
        for (enum change change = CUT; change <= REWRITTEN; change++) {
            size_t count = packing == 1   ? pack_gzip(noise, 2 * TEXT, packed, 3 * TEXT)
                           : packing == 2 ? pack_zstd(noise, 2 * TEXT, packed, 3 * TEXT)
                                          : 0;
            const char *path = write_file("changing", count ? packed : text, count ? count : TEXT);
            struct sdr_source *source;
            struct sdr_region rest = {0};
            assert_int_equal(sdr_source_open(path, &source), SDR_OK);
            change_file(path, change);
            assert_int_equal(sdr_source_rest(source, &rest), SDR_BAD_DATA);
            assert_non_null(strstr(sdr_error(), "changed while it was read"));
            sdr_source_close(source);
            sdr_region_free(&rest);
        }
    free(packed);
    free(noise);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bytes_do_not_depend_on_the_packing),
        cmocka_unit_test(members_and_frames_in_a_row_are_one_stream),
        cmocka_unit_test(a_truncated_archive_is_refused_wherever_it_is_cut),
        cmocka_unit_test(a_damaged_archive_never_does_more_than_fail),
        cmocka_unit_test(peek_shows_the_head_and_takes_nothing),
        cmocka_unit_test(peeking_for_more_shows_more_and_takes_nothing),
        cmocka_unit_test(what_is_no_file_is_told_so),
        cmocka_unit_test(every_failing_read_and_allocation_is_survived),
        cmocka_unit_test(a_file_that_changes_while_it_is_read_is_refused),
    };
    return cmocka_run_group_tests_name("source", tests, make_folder, remove_folder);
}
