/* What the tests of the data layer share: a folder of their own, files in it, equal data. */
#ifndef TEST_DATA_FILES_H
#define TEST_DATA_FILES_H

#include "base/fault.h"
#include "base/file.h"
#include "data/data.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/sounder-test-XXXXXX";

static inline int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : 1;
}

/* How many files are in a folder; none may stay behind a failure. */
static inline int files_in(const char *path)
{
    DIR *list = opendir(path);
    int count = 0;
    assert_non_null(list);
    while (readdir(list))
        count++;
    closedir(list);
    return count - 2;
}

static inline int remove_folder(void **state)
{
    char command[200];
    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

/* The path of a file in the folder; a few are valid at once. */
static inline const char *path_of(const char *name)
{
    static char paths[8][300];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static inline const char *write_file(const char *name, const void *bytes, size_t count)
{
    const char *path = path_of(name);
    /* Tests write thousands: no fsync as in sdr_file_write, and none by ext4 when a file is
     * replaced. */
    unlink(path);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    if (count)
        assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
    return path;
}

static inline const char *write_text(const char *name, const char *text)
{
    return write_file(name, text, strlen(text));
}

static inline void assert_same_texts(const struct sdr_dictionary *a, const struct sdr_dictionary *b)
{
    assert_int_equal(a->count, b->count);
    for (uint32_t i = 0; i < a->count; i++) {
        assert_int_equal(a->length[i], b->length[i]);
        assert_memory_equal(a->text[i], b->text[i], a->length[i]);
    }
}

static inline void assert_same_array(const void *a, const void *b, uint64_t bytes)
{
    assert_int_equal(a == NULL, b == NULL);
    if (a && bytes)
        assert_memory_equal(a, b, (size_t)bytes);
}

/* The same bits in the same layout, and the same meaning. */
static inline void assert_same_data(const struct sdr_data *a, const struct sdr_data *b)
{
    const struct sdr_rows *x = &a->rows, *y = &b->rows;
    assert_int_equal(x->count, y->count);
    assert_int_equal(x->features, y->features);
    assert_int_equal(a->nonzeros, b->nonzeros);
    assert_int_equal(a->unseen, b->unseen);
    assert_int_equal(a->has_labels, b->has_labels);
    assert_int_equal(x->stride, y->stride);
    assert_same_array(x->start, y->start, (x->count + 1) * 8);
    assert_same_array(x->index16, y->index16, a->nonzeros * 2);
    assert_same_array(x->index32, y->index32, a->nonzeros * 4);
    assert_same_array(x->value, y->value, a->nonzeros * 4);
    assert_same_array(x->dense, y->dense, x->count * x->stride * 4);
    assert_same_array(x->label, y->label, x->count * 4);
    assert_same_array(x->weight, y->weight, x->count * 4);
    assert_string_equal(a->source_key ? a->source_key : "", b->source_key ? b->source_key : "");
    assert_int_equal(a->schema.features, b->schema.features);
    assert_int_equal(a->schema.numbers, b->schema.numbers);
    assert_int_equal(a->schema.base, b->schema.base);
    assert_int_equal(a->schema.text_labels, b->schema.text_labels);
    assert_int_equal(a->schema.many_labels, b->schema.many_labels);
    assert_same_texts(&a->schema.labels, &b->schema.labels);
    assert_same_texts(&a->schema.category, &b->schema.category);
    assert_same_array(a->schema.mean, b->schema.mean, a->schema.features * 4ull);
    assert_same_array(a->schema.label_value, b->schema.label_value, a->schema.labels.count * 4ull);
}

#endif
