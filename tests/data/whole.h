/* For tests of whole-file formats: bytes go to a file, and the whole of reading reads it. */
#ifndef SDR_TESTS_DATA_WHOLE_H
#define SDR_TESTS_DATA_WHOLE_H

#include "base/file.h"
#include "data/data.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h> /* needs the headers above */

/* A growing buffer for files made in tests. */
struct bytes {
    unsigned char at[1 << 16];
    size_t count;
};
static inline void put(struct bytes *bytes, const void *from, size_t count)
{
    assert_true(count <= sizeof bytes->at - bytes->count);
    memcpy(bytes->at + bytes->count, from, count);
    bytes->count += count;
}
static inline void put_integer(struct bytes *bytes, uint64_t value, size_t size, bool big)
{
    for (size_t i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)(value >> 8 * (big ? size - 1 - i : i));
        put(bytes, &byte, 1);
    }
}

/* An NPY header of version 1, 2 or 3. */
static inline void put_npy(struct bytes *bytes, int version, const char *dictionary)
{
    unsigned char head[8] = {0x93, 'N', 'U', 'M', 'P', 'Y', (unsigned char)version, 0};
    put(bytes, head, 8);
    put_integer(bytes, strlen(dictionary), version == 1 ? 2 : 4, false);
    put(bytes, dictionary, strlen(dictionary));
}

/* A file of its own for each test program; the name ends in the extension. */
static inline const char *test_path(const char *ending)
{
    static char path[8][120];
    static int next;
    char *p = path[next++ % 8];
    snprintf(p, sizeof path[0], "/tmp/sounder-test-%ld-%s", (long)getpid(), ending);
    return p;
}
static inline const char *write_file(const char *ending, const struct bytes *bytes)
{
    const char *path = test_path(ending);
    FILE *file = fopen(path, "wb"); /* thousands of them: none needs to survive a power cut */
    assert_non_null(file);
    assert_int_equal(fwrite(bytes->at, 1, bytes->count, file), bytes->count);
    fclose(file);
    return path;
}

static inline enum sdr_status read_with(const struct sdr_data_options *options, const char *path,
                                        const struct sdr_schema *known, struct sdr_data **data)
{
    struct sdr_data_options usual = {.format_rest = "", .base = -1, .threads = 2};
    return sdr_data_read(options ? options : &usual, &path, 1, known, data);
}
/* Reads a file and its labels (or NULL), which must succeed. */
static inline struct sdr_data *read_good(const char *path, const char *labels)
{
    struct sdr_data_options options = {
        .format_rest = "", .base = -1, .threads = 2, .labels = labels};
    struct sdr_data *data;
    enum sdr_status status = read_with(&options, path, NULL, &data);
    if (status != SDR_OK)
        fail_msg("%s", sdr_error());
    return data;
}
/* Reading must fail as bad data, and say `words`. */
static inline void read_bad(const char *path, const char *labels, const char *words)
{
    struct sdr_data_options options = {
        .format_rest = "", .base = -1, .threads = 2, .labels = labels};
    struct sdr_data *data;
    enum sdr_status status = read_with(&options, path, NULL, &data);
    if (status != SDR_BAD_DATA || !strstr(sdr_error(), words))
        fail_msg("wanted bad data with '%s', got %d: %s", words, status,
                 status == SDR_OK ? "" : sdr_error());
}

/* The value of one cell, in whatever layout the rows are. */
static inline float cell(const struct sdr_data *data, uint64_t row, uint32_t feature)
{
    const struct sdr_rows *rows = &data->rows;
    if (rows->dense)
        return rows->dense[row * rows->stride + feature];
    for (uint64_t i = rows->start[row]; i < rows->start[row + 1]; i++)
        if ((rows->index16 ? rows->index16[i] : rows->index32[i]) == feature)
            return rows->value[i];
    return 0;
}

#endif
