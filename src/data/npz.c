/* NPZ as scipy.sparse.save_npz writes it: a zip archive with the arrays of a CSR matrix,
     data      the values            indices   their columns, in any order within a row
     indptr    starts of rows        shape     (rows, columns)        format   "csr"
   and optionally the labels as a member called y or labels. */
#include "data/array.h"
#include "data/label_file.h"
#include "data/zip.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_ENTRIES = 1 << 18, BLOCK_ROWS = 1 << 14, COLUMNS_MOST = 0x7FFFFFFE };

struct npz {
    struct sdr_label_file labels;
};

/* An array of the archive. */
struct member {
    struct sdr_region bytes;
    struct sdr_array array;
};

struct matrix {
    const char *name;
    struct member data, indices;
    int64_t *start; /* owned: rows + 1 */
    uint64_t rows, columns;
    struct sdr_piece piece;
    int64_t *column;  /* owned: of one row, as in the file */
    uint64_t *key;    /* owned: column << 32 | position, for sorting */
    uint64_t longest; /* row */
};

static int recognise(const char *head, size_t count)
{
    return count >= 4 && memcmp(head, "PK\3\4", 4) == 0 ? 90 : 0;
}

static const unsigned char *numbers(const struct member *member)
{
    return member->bytes.bytes + member->array.header;
}

/* Reads the array called key; *found: whether it exists. */
static enum sdr_status read_member(const struct sdr_zip *zip, const char *key,
                                   struct member *member, bool *found)
{
    char file[32], name[300];
    snprintf(file, sizeof file, "%s.npy", key);
    snprintf(name, sizeof name, "%.260s: %s", zip->name, file);
    SDR_TRY(sdr_zip_member(zip, file, &member->bytes, found));
    if (!*found)
        return SDR_OK;
    SDR_TRY(sdr_npy_header(name, (const char *)member->bytes.bytes, member->bytes.used,
                           &member->array));
    if ((member->bytes.used - member->array.header) / sdr_array_size(member->array.type) <
        member->array.rows * member->array.width)
        return sdr_fail(SDR_BAD_DATA, "%s: truncated", name);
    return SDR_OK;
}

static enum sdr_status need_member(const struct sdr_zip *zip, const char *key,
                                   struct member *member)
{
    bool found;
    SDR_TRY(read_member(zip, key, member, &found));
    if (!found)
        return sdr_fail(SDR_BAD_DATA,
                        "%s: a zip archive without '%s': only CSR matrices of "
                        "scipy.sparse.save_npz can be read from .npz; unpack other archives",
                        zip->name, key);
    return SDR_OK;
}

/* The member "format" is text, not numbers: its letters follow the header. */
static enum sdr_status check_format(const struct sdr_zip *zip)
{
    struct sdr_region bytes = {0};
    char format[8] = "";
    size_t length = 0;
    bool found;
    enum sdr_status status = sdr_zip_member(zip, "format.npy", &bytes, &found);
    if (status == SDR_OK && found && bytes.used >= 10) {
        size_t header = 10 + (bytes.bytes[8] | (size_t)bytes.bytes[9] << 8);
        for (size_t i = header; i < bytes.used && length < sizeof format - 1; i++)
            if (bytes.bytes[i] >= ' ' && bytes.bytes[i] < 127)
                format[length++] = (char)bytes.bytes[i];
    }
    sdr_region_free(&bytes);
    if (status == SDR_OK && found && strcmp(format, "csr") != 0)
        status = sdr_fail(SDR_BAD_DATA, "%s: the matrix is '%s'; save it as CSR (x.tocsr())",
                          zip->name, format);
    return status;
}

static enum sdr_status read_shape(const struct sdr_zip *zip, struct matrix *matrix)
{
    struct member shape = {0};
    int64_t size[2] = {0, 0};
    enum sdr_status status = need_member(zip, "shape", &shape);
    if (status == SDR_OK && shape.array.rows * shape.array.width == 2)
        sdr_array_integers(&shape.array, numbers(&shape), 2, size);
    if (status == SDR_OK && (size[0] < 1 || size[1] < 1 || size[1] > COLUMNS_MOST))
        status = sdr_fail(SDR_BAD_DATA, "%s: the shape of the matrix is empty or wrong", zip->name);
    matrix->rows = (uint64_t)size[0];
    matrix->columns = (uint64_t)size[1];
    sdr_region_free(&shape.bytes);
    return status;
}

static enum sdr_status read_starts(const struct sdr_zip *zip, struct matrix *matrix)
{
    struct member starts = {0};
    enum sdr_status status;
    SDR_CHECK(need_member(zip, "indptr", &starts));
    uint64_t entries = matrix->data.array.rows;
    if (starts.array.rows * starts.array.width != matrix->rows + 1 ||
        matrix->data.array.width != 1 || matrix->indices.array.width != 1 ||
        matrix->indices.array.rows != entries) {
        status = sdr_fail(SDR_BAD_DATA, "%s: indptr, indices, data and shape do not fit together",
                          zip->name);
        goto cleanup;
    }
    SDR_CHECK(sdr_allocate(&matrix->start, matrix->rows + 1, sizeof *matrix->start, "the rows"));
    sdr_array_integers(&starts.array, numbers(&starts), matrix->rows + 1, matrix->start);
    bool good = matrix->start[0] == 0 && (uint64_t)matrix->start[matrix->rows] == entries;
    for (uint64_t r = 0; good && r < matrix->rows; r++) {
        good =
            matrix->start[r + 1] >= matrix->start[r] && (uint64_t)matrix->start[r + 1] <= entries;
        uint64_t length = (uint64_t)matrix->start[r + 1] - (uint64_t)matrix->start[r];
        if (good && length > matrix->longest)
            matrix->longest = length;
    }
    if (!good)
        status =
            sdr_fail(SDR_BAD_DATA, "%s: indptr does not divide the entries into rows", zip->name);
cleanup:
    sdr_region_free(&starts.bytes);
    return status;
}

static int by_key(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static enum sdr_status wrong_entry(const struct matrix *matrix, uint64_t row, int64_t column,
                                   const char *what)
{
    return sdr_fail(SDR_BAD_DATA, "%s: row %llu, column %lld (counted from 1) %s", matrix->name,
                    (unsigned long long)row + 1, (long long)column + 1, what);
}

static enum sdr_status put_row(struct matrix *matrix, const struct sdr_reading *reading,
                               uint64_t row)
{
    struct sdr_piece *piece = &matrix->piece;
    uint64_t first = (uint64_t)matrix->start[row], count = (uint64_t)matrix->start[row + 1] - first;
    const struct sdr_array *data = &matrix->data.array, *indices = &matrix->indices.array;
    sdr_array_integers(indices, numbers(&matrix->indices) + first * sdr_array_size(indices->type),
                       count, matrix->column);
    bool sorted = true;
    for (uint64_t k = 0; k < count; k++) {
        int64_t column = matrix->column[k];
        if (column < 0 || (uint64_t)column >= matrix->columns)
            return wrong_entry(matrix, row, column, "is not in the matrix");
        sorted &= k == 0 || column > matrix->column[k - 1];
        matrix->key[k] = (uint64_t)column << 32 | k;
    }
    if (!sorted)
        qsort(matrix->key, count, sizeof *matrix->key, by_key);
    for (uint64_t k = 0; k < count; k++) {
        uint32_t column = (uint32_t)(matrix->key[k] >> 32), place = (uint32_t)matrix->key[k];
        float value;
        if (k && column == matrix->key[k - 1] >> 32)
            return wrong_entry(matrix, row, column, "appears twice (x.sum_duplicates())");
        sdr_array_floats(
            data, numbers(&matrix->data) + (first + place) * sdr_array_size(data->type), 1, &value);
        if (isnan(value) && reading->options->missing == SDR_MISSING_ERROR)
            return wrong_entry(matrix, row, column, "is NaN (use --missing mean or zero)");
        if (isinf(value))
            return wrong_entry(matrix, row, column, "is infinite");
        if (value == 0 || (isnan(value) && reading->options->missing == SDR_MISSING_ZERO))
            continue;
        piece->has_missing |= isnan(value);
        piece->index[piece->entries] = column;
        piece->value[piece->entries++] = value;
    }
    piece->end[piece->rows] = piece->entries;
    piece->weight[piece->rows] = 1;
    return SDR_OK;
}

static enum sdr_status feed(struct matrix *matrix, struct sdr_reading *reading,
                            const struct sdr_label_file *labels)
{
    struct sdr_piece *piece = &matrix->piece;
    if (matrix->longest >> 32)
        return sdr_fail(SDR_BAD_DATA, "%s: a row is too long", matrix->name);
    SDR_TRY(sdr_allocate(&matrix->column, matrix->longest, sizeof *matrix->column, "a row"));
    SDR_TRY(sdr_allocate(&matrix->key, matrix->longest, sizeof *matrix->key, "a row"));
    for (uint64_t row = 0; row < matrix->rows;) {
        sdr_piece_clear(piece);
        piece->features = (uint32_t)matrix->columns;
        for (; row < matrix->rows && piece->rows < BLOCK_ROWS && piece->entries < BLOCK_ENTRIES;
             row++) {
            SDR_TRY(sdr_piece_reserve(piece, piece->entries + matrix->longest, piece->rows + 1));
            SDR_TRY(put_row(matrix, reading, row));
            SDR_TRY(sdr_label_file_put(labels, row, piece, piece->rows));
            piece->rows++;
        }
        SDR_TRY(sdr_builder_add(reading->builder, piece));
    }
    return SDR_OK;
}

/* The archive's own labels, unless --labels names others. */
static enum sdr_status own_labels(const struct sdr_zip *zip, const struct sdr_schema *known,
                                  struct sdr_label_file *labels)
{
    static const char *const names[] = {"y.npy", "labels.npy", "label.npy", "target.npy"};
    bool found = false;
    for (size_t i = 0; i < sizeof names / sizeof *names && !found && !labels->path; i++) {
        struct sdr_region bytes = {0};
        enum sdr_status status = sdr_zip_member(zip, names[i], &bytes, &found);
        if (status == SDR_OK && found)
            status = sdr_label_file_parse(zip->name, known, &bytes, labels);
        sdr_region_free(&bytes);
        SDR_TRY(status);
    }
    return SDR_OK;
}

static enum sdr_status read_matrix(const struct sdr_zip *zip, struct npz *npz,
                                   struct sdr_reading *reading, struct matrix *matrix)
{
    const struct sdr_schema *known = reading->known;
    SDR_TRY(check_format(zip));
    SDR_TRY(read_shape(zip, matrix));
    SDR_TRY(need_member(zip, "data", &matrix->data));
    SDR_TRY(need_member(zip, "indices", &matrix->indices));
    SDR_TRY(read_starts(zip, matrix));
    SDR_TRY(own_labels(zip, known, &npz->labels));
    if (known && known->features != matrix->columns)
        return sdr_fail(SDR_BAD_DATA,
                        "%s: the matrix has %llu columns, the model was trained with %u", zip->name,
                        (unsigned long long)matrix->columns, known->features);
    if (!known)
        reading->schema->features = reading->schema->numbers = (uint32_t)matrix->columns;
    return sdr_label_file_check(&npz->labels, zip->name, matrix->rows);
}

static enum sdr_status open_npz(void *state, struct sdr_reading *reading, const char *head,
                                size_t count)
{
    struct npz *npz = state;
    if (!recognise(head, count))
        return sdr_fail(SDR_BAD_DATA, "%s: not an NPZ file (a zip archive)", reading->path);
    reading->schema->base = 0;
    return sdr_label_file_read(reading->options, reading->known, &npz->labels);
}

static enum sdr_status whole(void *state, struct sdr_reading *reading, struct sdr_source *source)
{
    struct matrix matrix = {.name = sdr_source_name(source)};
    struct sdr_region bytes = {0};
    struct sdr_zip zip;
    enum sdr_status status;
    SDR_CHECK(sdr_source_rest(source, &bytes));
    SDR_CHECK(sdr_zip_open(matrix.name, bytes.bytes, bytes.used, &zip));
    SDR_CHECK(read_matrix(&zip, state, reading, &matrix));
    sdr_region_free(&bytes); /* the archive is unpacked */
    status = feed(&matrix, reading, &((struct npz *)state)->labels);
cleanup:
    sdr_region_free(&bytes);
    sdr_region_free(&matrix.data.bytes);
    sdr_region_free(&matrix.indices.bytes);
    sdr_release(matrix.start);
    sdr_release(matrix.column);
    sdr_release(matrix.key);
    sdr_piece_free(&matrix.piece);
    return status;
}

static void close_npz(void *state)
{
    struct npz *npz = state;
    sdr_label_file_free(&npz->labels);
}

SDR_REGISTER(format, npz) = {
    .name = "npz",
    .summary =
        "CSR matrices of scipy.sparse.save_npz; labels as a member y or in a file of their own",
    .extensions = "npz",
    .takes = "labels missing",
    .state_size = sizeof(struct npz),
    .recognise = recognise,
    .open = open_npz,
    .whole = whole,
    .close = close_npz,
};
