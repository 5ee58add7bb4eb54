/* Passes the rows of an array file to the builder, block by block: C order directly from the
   source, Fortran order (first index fastest) from the whole file in memory. */
#include "data/array.h"
#include "data/label_file.h"

#include <math.h>
#include <string.h>

enum { BLOCK_NUMBERS = 1 << 18, WIDTH_MOST = 0x7FFFFFFE };

struct feeding {
    const struct sdr_array *array;
    struct sdr_reading *reading;
    const struct sdr_label_file *labels;
    const char *name;
    uint64_t block; /* rows of a block */
    struct sdr_region
        memory;             /* of x: untouched pages cost nothing, whatever size a header claims */
    float *x;               /* (block, width) */
    struct sdr_piece piece; /* for text labels */
};

static enum sdr_status check_numbers(struct feeding *feeding, uint64_t first, uint64_t rows)
{
    enum sdr_missing missing = feeding->reading->options->missing;
    uint64_t width = feeding->array->width;
    if (sdr_array_is_whole(feeding->array->type))
        return SDR_OK;
    for (uint64_t i = 0; i < rows * width; i++) {
        float x = feeding->x[i];
        if (isfinite(x))
            continue;
        if (isnan(x) && missing != SDR_MISSING_ERROR) {
            if (missing == SDR_MISSING_ZERO)
                feeding->x[i] = 0;
            continue; /* the builder replaces NaN by the mean */
        }
        return sdr_fail(SDR_BAD_DATA, "%s: row %llu, column %llu (counted from 1) is %s",
                        feeding->name, (unsigned long long)(first + i / width + 1),
                        (unsigned long long)(i % width + 1),
                        isnan(x) ? "NaN (use --missing mean or zero)" : "infinite");
    }
    return SDR_OK;
}

/* Rows with text labels go through a piece; all others are passed directly. */
static enum sdr_status add_text_rows(struct feeding *feeding, uint64_t first, uint64_t rows)
{
    struct sdr_piece *piece = &feeding->piece;
    uint64_t width = feeding->array->width;
    sdr_piece_clear(piece);
    SDR_TRY(sdr_piece_reserve(piece, rows * width, rows));
    piece->features = (uint32_t)width;
    for (uint64_t r = 0; r < rows; r++) {
        for (uint32_t j = 0; j < width; j++) {
            float x = feeding->x[r * width + j];
            piece->index[piece->entries] = j;
            piece->value[piece->entries] = x;
            piece->entries += x != 0;
            piece->has_missing |= isnan(x);
        }
        piece->end[r] = piece->entries;
        piece->weight[r] = 1;
        SDR_TRY(sdr_label_file_put(feeding->labels, first + r, piece, r));
    }
    piece->rows = rows;
    return sdr_builder_add(feeding->reading->builder, piece);
}

static enum sdr_status add_rows(struct feeding *feeding, uint64_t first, uint64_t rows)
{
    SDR_TRY(check_numbers(feeding, first, rows));
    if (feeding->labels->is_text)
        return add_text_rows(feeding, first, rows);
    return sdr_builder_add_dense(
        feeding->reading->builder, feeding->x, rows, (uint32_t)feeding->array->width,
        feeding->labels->value ? feeding->labels->value + first : NULL, NULL);
}

static enum sdr_status truncated(const struct feeding *feeding, uint64_t rows)
{
    return sdr_fail(SDR_BAD_DATA, "%s: truncated: it has %llu of the %llu rows its header promises",
                    feeding->name, (unsigned long long)rows,
                    (unsigned long long)feeding->array->rows);
}

static enum sdr_status feed_rows(struct feeding *feeding, struct sdr_source *source)
{
    const struct sdr_array *array = feeding->array;
    size_t row_bytes = (size_t)array->width * sdr_array_size(array->type), got;
    struct sdr_region raw = {0};
    enum sdr_status status;
    SDR_TRY(sdr_region_reserve(&raw, (size_t)feeding->block * row_bytes));
    for (uint64_t first = 0; first < array->rows; first += feeding->block) {
        uint64_t rows = array->rows - first < feeding->block ? array->rows - first : feeding->block;
        SDR_CHECK(sdr_source_read(source, raw.bytes, (size_t)rows * row_bytes, &got));
        if (got < rows * row_bytes) {
            status = truncated(feeding, first + got / row_bytes);
            goto cleanup;
        }
        sdr_array_floats(array, raw.bytes, (size_t)(rows * array->width), feeding->x);
        SDR_CHECK(add_rows(feeding, first, rows));
    }
    SDR_CHECK(sdr_source_read(source, raw.bytes, 1, &got));
    if (got)
        status = sdr_fail(SDR_BAD_DATA, "%s: more bytes follow the %llu rows of its header",
                          feeding->name, (unsigned long long)array->rows);
cleanup:
    sdr_region_free(&raw);
    return status;
}

/* The offset of each column in a Fortran array, in rows: column j has the indices of j in C order,
   and later indices have larger strides. */
static enum sdr_status fortran_columns(const struct sdr_array *array, uint64_t **column)
{
    SDR_TRY(sdr_allocate(column, array->width, sizeof **column, "the columns"));
    for (uint64_t j = 0; j < array->width; j++) {
        uint64_t rest = j, stride = array->width, place = 0;
        for (uint32_t d = array->dims; d-- > 1;) {
            stride /= array->shape[d];
            place += rest % array->shape[d] * stride;
            rest /= array->shape[d];
        }
        (*column)[j] = place;
    }
    return SDR_OK;
}

static enum sdr_status feed_columns(struct feeding *feeding, struct sdr_source *source)
{
    const struct sdr_array *array = feeding->array;
    size_t size = sdr_array_size(array->type);
    struct sdr_region bytes = {0};
    uint64_t *column = NULL;
    float *run = NULL;
    enum sdr_status status;
    SDR_CHECK(sdr_source_rest(source, &bytes));
    if (bytes.used < array->rows * array->width * size) {
        status =
            sdr_fail(SDR_BAD_DATA, "%s: truncated: its header promises %llu numbers, it has %llu",
                     feeding->name, (unsigned long long)(array->rows * array->width),
                     (unsigned long long)(bytes.used / size));
        goto cleanup;
    }
    if (bytes.used > array->rows * array->width * size) {
        status = sdr_fail(SDR_BAD_DATA, "%s: more bytes follow the %llu rows of its header",
                          feeding->name, (unsigned long long)array->rows);
        goto cleanup;
    }
    SDR_CHECK(fortran_columns(array, &column));
    SDR_CHECK(sdr_allocate(&run, feeding->block, sizeof *run, "a block of rows"));
    for (uint64_t first = 0; first < array->rows; first += feeding->block) {
        uint64_t rows = array->rows - first < feeding->block ? array->rows - first : feeding->block;
        for (uint64_t j = 0; j < array->width; j++) {
            sdr_array_floats(array, bytes.bytes + (column[j] * array->rows + first) * size, rows,
                             run);
            for (uint64_t r = 0; r < rows; r++)
                feeding->x[r * array->width + j] = run[r];
        }
        SDR_CHECK(add_rows(feeding, first, rows));
    }
cleanup:
    sdr_region_free(&bytes);
    sdr_release(column);
    sdr_release(run);
    return status;
}

static enum sdr_status check_shape(const struct feeding *feeding)
{
    const struct sdr_array *array = feeding->array;
    const struct sdr_schema *known = feeding->reading->known;
    if (array->dims == 0 || array->rows == 0 || array->width == 0)
        return sdr_fail(SDR_BAD_DATA, "%s: the array is empty", feeding->name);
    if (array->width > WIDTH_MOST)
        return sdr_fail(SDR_BAD_DATA, "%s: a row of %llu numbers is too long", feeding->name,
                        (unsigned long long)array->width);
    if (known && known->features != array->width)
        return sdr_fail(SDR_BAD_DATA, "%s: a row has %llu numbers, the model was trained with %u",
                        feeding->name, (unsigned long long)array->width, known->features);
    return SDR_OK;
}

/* Keeps the shape of a row, for models of images. */
static void keep_dims(const struct sdr_array *array, struct sdr_schema *schema)
{
    schema->features = schema->numbers = (uint32_t)array->width;
    for (uint32_t d = 1; array->dims > 2 && array->dims <= 4 && d < array->dims; d++)
        schema->dims[d - 1] = (uint32_t)array->shape[d];
}

static enum sdr_status skip_header(struct sdr_source *source, size_t count)
{
    char bytes[256];
    while (count) {
        size_t got, step = count < sizeof bytes ? count : sizeof bytes;
        SDR_TRY(sdr_source_read(source, bytes, step, &got));
        if (got < step)
            return sdr_fail(SDR_BAD_DATA, "%s: truncated: the header ends early",
                            sdr_source_name(source));
        count -= step;
    }
    return SDR_OK;
}

enum sdr_status sdr_array_feed(const struct sdr_array *array, struct sdr_reading *reading,
                               struct sdr_source *source, struct sdr_label_file *labels)
{
    struct feeding feeding = {
        .array = array, .reading = reading, .labels = labels, .name = sdr_source_name(source)};
    enum sdr_status status;
    SDR_TRY(check_shape(&feeding));
    SDR_TRY(sdr_label_file_check(labels, feeding.name, array->rows));
    if (reading->known == NULL)
        keep_dims(array, reading->schema);
    SDR_TRY(skip_header(source, array->header));
    feeding.block = array->width < BLOCK_NUMBERS ? BLOCK_NUMBERS / array->width : 1;
    if (feeding.block > array->rows)
        feeding.block = array->rows;
    SDR_CHECK(sdr_region_reserve(&feeding.memory,
                                 (size_t)(feeding.block * array->width) * sizeof *feeding.x));
    feeding.x = (float *)(void *)feeding.memory.bytes;
    status = array->fortran && array->dims > 1 ? feed_columns(&feeding, source)
                                               : feed_rows(&feeding, source);
cleanup:
    sdr_region_free(&feeding.memory);
    sdr_piece_free(&feeding.piece);
    return status;
}
