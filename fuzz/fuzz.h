/* For fuzz targets of formats: runs a format over bytes as the pipeline does, and traps if what
   comes out breaks a promise. Sanitizers watch the rest. A target is then a few lines: which
   format, and with which options. */
#ifndef SDR_FUZZ_FUZZ_H
#define SDR_FUZZ_FUZZ_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create; targets include this header first */
#endif
#include "data/data.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

#define FUZZ_CHECK(truth)                                                                          \
    do {                                                                                           \
        if (!(truth)) {                                                                            \
            fprintf(stderr, "%s:%d: broken promise: %s\n", __FILE__, __LINE__, #truth);            \
            __builtin_trap();                                                                      \
        }                                                                                          \
    } while (0)

/* A format opened on the head of some bytes. */
struct fuzz_reading {
    const struct sdr_format *format;
    const struct sdr_data_options *options;
    struct sdr_schema schema;
    struct sdr_reading reading;
    void *state, *format_options;
};

static inline struct sdr_data_options fuzz_options(void)
{
    return (struct sdr_data_options){.format_rest = "", .base = -1, .threads = 1};
}

static inline enum sdr_status fuzz_open(struct fuzz_reading *fuzz, const struct sdr_format *format,
                                        const struct sdr_data_options *options, const char *bytes,
                                        size_t count)
{
    *fuzz = (struct fuzz_reading){.format = format, .options = options};
    fuzz->reading =
        (struct sdr_reading){.options = options, .schema = &fuzz->schema, .path = "fuzz"};
    FUZZ_CHECK(sdr_allocate(&fuzz->state, 1, format->state_size, "fuzz") == SDR_OK);
    FUZZ_CHECK(sdr_allocate(&fuzz->format_options, 1, format->options_size, "fuzz") == SDR_OK);
    if (format->options)
        FUZZ_CHECK(sdr_option_defaults(format->options, fuzz->format_options) == SDR_OK);
    fuzz->reading.format_options = fuzz->format_options;
    int score = format->recognise(bytes, count);
    FUZZ_CHECK(score >= 0 && score <= 100);
    if (format->records)
        (void)format->records(fuzz->format_options, bytes, count);
    fuzz->reading.head_cut = count > SDR_HEAD_BYTES;
    return format->open(fuzz->state, &fuzz->reading, bytes,
                        count < SDR_HEAD_BYTES ? count : SDR_HEAD_BYTES);
}

static inline void fuzz_close(struct fuzz_reading *fuzz)
{
    if (fuzz->format->close)
        fuzz->format->close(fuzz->state);
    if (fuzz->format->options)
        sdr_option_free(fuzz->format->options, fuzz->format_options);
    sdr_release(fuzz->state);
    sdr_release(fuzz->format_options);
    sdr_schema_free(&fuzz->schema);
}

static inline bool fuzz_finite(float x)
{
    return x - x == 0;
}

/* Rows that were finished before an error must be as good as all others. */
static inline void fuzz_check_piece(const struct sdr_piece *piece, enum sdr_status status)
{
    uint64_t start = 0;
    FUZZ_CHECK(piece->rows <= piece->row_room && piece->entries <= piece->entry_room);
    for (uint64_t r = 0; r < piece->rows; r++) {
        FUZZ_CHECK(piece->end[r] >= start && piece->end[r] <= piece->entries);
        FUZZ_CHECK(fuzz_finite(piece->label[r]));
        FUZZ_CHECK(!piece->has_weights || (fuzz_finite(piece->weight[r]) && piece->weight[r] >= 0));
        for (uint64_t i = start; i < piece->end[r]; i++) {
            uint32_t index = piece->index[i];
            FUZZ_CHECK(fuzz_finite(piece->value[i]) ||
                       (piece->has_missing && piece->value[i] != piece->value[i]));
            if (index & SDR_CATEGORY_BIT)
                FUZZ_CHECK((index & ~SDR_CATEGORY_BIT) < piece->category.count);
            else
                FUZZ_CHECK(index < piece->features &&
                           (i == start || (piece->index[i - 1] & SDR_CATEGORY_BIT) ||
                            index > piece->index[i - 1]));
        }
        start = piece->end[r];
    }
    if (status == SDR_OK)
        FUZZ_CHECK(piece->status == SDR_OK && start == piece->entries);
    if (status == SDR_BAD_DATA)
        FUZZ_CHECK(piece->status == SDR_BAD_DATA && piece->error[0] != 0 &&
                   piece->error_line <= piece->lines + 1);
}

/* Parses a chunk, copied to a block of exactly its size, into an empty piece. */
static inline enum sdr_status fuzz_parse(const struct fuzz_reading *fuzz, const char *bytes,
                                         size_t count, bool first, struct sdr_piece *piece)
{
    char *copy = malloc(count ? count : 1);
    FUZZ_CHECK(copy != NULL);
    memcpy(copy, bytes, count);
    sdr_piece_clear(piece);
    FUZZ_CHECK(sdr_piece_reserve(piece, count / 2 + 64, 1) == SDR_OK);
    enum sdr_status status = fuzz->format->parse(fuzz->state, copy, count, first, piece);
    free(copy);
    fuzz_check_piece(piece, status);
    return status;
}

/* Line formats: the bytes as one chunk, then as two; both must give the same rows. */
static inline void fuzz_lines(const struct sdr_format *format,
                              const struct sdr_data_options *options, const uint8_t *input,
                              size_t count)
{
    const char *bytes = (const char *)input;
    struct fuzz_reading fuzz;
    struct sdr_piece whole = {0}, part = {0};
    if (fuzz_open(&fuzz, format, options, bytes, count) == SDR_OK) {
        enum sdr_status status = fuzz_parse(&fuzz, bytes, count, true, &whole), first;
        size_t half = count / 2, cut = 0;
        if (format->cut) {
            cut = format->cut(fuzz.state, bytes, half);
        } else {
            for (size_t i = 0; i < half; i++)
                cut = bytes[i] == '\n' ? i + 1 : cut;
        }
        FUZZ_CHECK(cut <= half);
        first = cut ? fuzz_parse(&fuzz, bytes, cut, true, &part) : SDR_OK;
        uint64_t rows = cut ? part.rows : 0, lines = cut ? part.lines : 0;
        if (first == SDR_OK && cut < count)
            first = fuzz_parse(&fuzz, bytes + cut, count - cut, cut == 0, &part);
        else
            rows = lines = 0;
        FUZZ_CHECK(first == status && rows + part.rows == whole.rows);
        FUZZ_CHECK(status == SDR_OK || whole.error_line == lines + part.error_line);
    }
    sdr_piece_free(&whole);
    sdr_piece_free(&part);
    fuzz_close(&fuzz);
}

static inline void fuzz_check_rows(const struct sdr_rows *rows)
{
    for (uint64_t r = 0; r < rows->count; r++) {
        FUZZ_CHECK(!rows->label || fuzz_finite(rows->label[r]));
        for (uint64_t i = rows->start ? rows->start[r] : 1; rows->start && i < rows->start[r + 1];
             i++) {
            uint32_t index = rows->index16 ? rows->index16[i] : rows->index32[i];
            FUZZ_CHECK(index < rows->features && fuzz_finite(rows->value[i]));
            FUZZ_CHECK(i == rows->start[r] ||
                       index > (rows->index16 ? rows->index16[i - 1] : rows->index32[i - 1]));
        }
        for (uint32_t j = 0; rows->dense && j < rows->features; j++)
            FUZZ_CHECK(fuzz_finite(rows->dense[r * rows->stride + j]));
    }
}

/* Whole-file formats: the bytes as a file in memory, through a source and a builder. */
static inline void fuzz_whole(const struct sdr_format *format,
                              const struct sdr_data_options *options, const uint8_t *input,
                              size_t count)
{
    struct fuzz_reading fuzz;
    struct sdr_source *source = NULL;
    struct sdr_data data = {0};
    char path[64];
    int file = memfd_create("fuzz", 0);
    FUZZ_CHECK(file >= 0 && write(file, input, count) == (ssize_t)count);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    if (fuzz_open(&fuzz, format, options, (const char *)input, count) == SDR_OK &&
        sdr_source_open(path, &source) == SDR_OK) {
        struct sdr_builder *builder;
        enum sdr_layout_wish wish = format->by_density ? SDR_LAYOUT_BY_DENSITY : SDR_LAYOUT_SPARSE;
        FUZZ_CHECK(sdr_builder_create(options, NULL, &fuzz.schema, wish, &builder) == SDR_OK);
        fuzz.reading.builder = builder;
        if (format->whole(fuzz.state, &fuzz.reading, source) != SDR_OK) {
            FUZZ_CHECK(sdr_error()[0] != 0);
            sdr_builder_destroy(builder);
        } else if (sdr_builder_finish(builder, &data) == SDR_OK) {
            fuzz_check_rows(&data.rows);
        }
        struct sdr_region *const regions[] = {&data.start, &data.index, &data.value,
                                              &data.dense, &data.label, &data.weight};
        for (size_t i = 0; i < sizeof regions / sizeof *regions; i++)
            sdr_region_free(regions[i]);
    }
    sdr_source_close(source);
    close(file);
    fuzz_close(&fuzz);
}

#endif
