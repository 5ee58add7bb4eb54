/* For tests of formats: opens a format on a text and parses the text as one chunk, as the pipeline
   does. The text is copied to a block of exactly its size: sanitizers see a byte too far. */
#ifndef SDR_TESTS_DATA_READING_H
#define SDR_TESTS_DATA_READING_H

#include "data/data.h"
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h> /* cmocka wants these before it */

#include <cmocka.h>

extern const struct sdr_format sdr_format_libsvm, sdr_format_vw, sdr_format_triples, sdr_format_mtx;

struct reading_test {
    const struct sdr_format *format;
    struct sdr_data_options options; /* change before reading_open */
    const struct sdr_schema *known;
    struct sdr_schema schema;
    void *state, *format_options;
    struct sdr_piece piece;
};

static inline struct reading_test reading_of(const struct sdr_format *format)
{
    return (struct reading_test){
        .format = format,
        .options = {.format_rest = "", .base = -1, .threads = 1},
    };
}

static inline void reading_open(struct reading_test *test, const char *head, size_t count)
{
    const struct sdr_format *format = test->format;
    assert_int_equal(sdr_allocate(&test->state, 1, format->state_size, "test"), SDR_OK);
    assert_int_equal(sdr_allocate(&test->format_options, 1, format->options_size, "test"), SDR_OK);
    if (format->options)
        assert_int_equal(sdr_option_defaults(format->options, test->format_options), SDR_OK);
    struct sdr_reading reading = {.options = &test->options,
                                  .known = test->known,
                                  .schema = &test->schema,
                                  .path = "test",
                                  .format_options = test->format_options};
    assert_int_equal(format->open(test->state, &reading, head, count), SDR_OK);
}

/* Parses text as a chunk of its own into test->piece, which is emptied before. */
static inline enum sdr_status reading_parse(struct reading_test *test, const char *text,
                                            size_t count)
{
    if (!test->state)
        reading_open(test, text, count);
    char *copy = malloc(count ? count : 1);
    assert_non_null(copy);
    memcpy(copy, text, count);
    sdr_piece_clear(&test->piece);
    assert_int_equal(sdr_piece_reserve(&test->piece, count / 2 + 64, 4), SDR_OK);
    enum sdr_status status = test->format->parse(test->state, copy, count, true, &test->piece);
    free(copy);
    return status;
}

static inline void reading_close(struct reading_test *test)
{
    if (test->state && test->format->close)
        test->format->close(test->state);
    if (test->format->options)
        sdr_option_free(test->format->options, test->format_options);
    sdr_release(test->state);
    sdr_release(test->format_options);
    sdr_piece_free(&test->piece);
    sdr_schema_free(&test->schema);
}

/* A text, where its first error is, and a part of the words that tell it. */
struct reading_error {
    const char *text;
    uint64_t line, column;
    const char *words;
};
static inline void check_errors(const struct sdr_format *format, const struct reading_error *errors,
                                size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct reading_test test = reading_of(format);
        enum sdr_status status = reading_parse(&test, errors[i].text, strlen(errors[i].text));
        if (status != SDR_BAD_DATA || test.piece.error_line != errors[i].line ||
            test.piece.error_column != errors[i].column ||
            !strstr(test.piece.error, errors[i].words))
            fail_msg("'%s': status %d, %llu:%llu: %s", errors[i].text, status,
                     (unsigned long long)test.piece.error_line,
                     (unsigned long long)test.piece.error_column, test.piece.error);
        reading_close(&test);
    }
}

/* What every piece must be, whatever the bytes were. */
static inline void check_piece(const struct sdr_piece *piece)
{
    uint64_t start = 0;
    for (uint64_t r = 0; r < piece->rows; r++) {
        assert_true(piece->end[r] >= start && piece->end[r] <= piece->entries);
        for (uint64_t i = start; i < piece->end[r]; i++) {
            assert_true(piece->value[i] - piece->value[i] == 0);
            assert_true(i == start || piece->index[i] > piece->index[i - 1] ||
                        piece->index[i] >= SDR_CATEGORY_BIT);
            assert_true(piece->index[i] >= SDR_CATEGORY_BIT || piece->index[i] < piece->features);
        }
        start = piece->end[r];
    }
    assert_int_equal(start, piece->entries);
}

#endif
