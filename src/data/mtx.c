/* Matrix Market: a matrix whose rows are the examples,

     %%MatrixMarket matrix coordinate|array real|integer|pattern general|symmetric|skew-symmetric
     % comments
     rows columns entries          (array: rows columns)
     row column value              (coordinate: entries in any order, counted from 1)
     value                         (array: column by column)

   Labels are in a separate file (--labels). Entries come in any order, so the file is read as a
   whole; a duplicate entry is an error. */
#include "data/data.h"
#include "data/label_file.h"
#include "data/token.h"
#include <string.h>
#include <strings.h>

enum { SIDE_MOST = 2147483646, PIECE_ENTRIES = 1 << 18, PIECE_ROWS = 1 << 16 };
/* More empty rows per byte than this mean a wrong header. */
enum { ROWS_PER_BYTE = 64 };

struct state {
    struct sdr_label_file labels;
};

struct entry {
    uint32_t row, column;
    float value;
    uint64_t line; /* its line, for messages */
};

struct matrix {
    const char *name;            /* of the file */
    const char *at, *end, *line; /* the text: next byte, end, start of the line */
    uint64_t line_number;
    bool array, pattern, symmetric, skew;
    uint64_t rows, columns, count; /* count: entries or numbers by the header */
    struct sdr_region entry;       /* coordinate: struct entry */
    struct sdr_region number;      /* array: floats, (columns, rows) */
};

#define FAIL_AT(place, format, ...)                                                                \
    sdr_fail(SDR_BAD_DATA, "%s:%llu:%llu: " format, matrix->name,                                  \
             (unsigned long long)matrix->line_number,                                              \
             (unsigned long long)((place)-matrix->line) + 1, __VA_ARGS__)

/* Moves to the next line that is neither empty nor a comment. False at the end. */
static bool next_line(struct matrix *matrix)
{
    for (;;) {
        if (matrix->at == matrix->end)
            return false;
        matrix->line = matrix->at;
        matrix->line_number++;
        matrix->at = sdr_skip_blanks(matrix->at, matrix->end);
        if (!sdr_at_line_end(matrix->at, matrix->end) && *matrix->at != '%')
            return true;
        matrix->at = sdr_next_line(matrix->at, matrix->end);
    }
}

/* The next token of the line is [*from, at); fails at the end of the line. */
static enum sdr_status token(struct matrix *matrix, const char *what, const char **from)
{
    *from = matrix->at = sdr_skip_blanks(matrix->at, matrix->end);
    if (sdr_at_line_end(matrix->at, matrix->end))
        return FAIL_AT(matrix->at, "the %s is missing", what);
    matrix->at = sdr_token_end(matrix->at, matrix->end);
    return SDR_OK;
}

static enum sdr_status whole_number(struct matrix *matrix, const char *what, uint64_t least,
                                    uint64_t most, uint64_t *number)
{
    char quote[SDR_QUOTE_BYTES];
    const char *from, *p;
    SDR_TRY(token(matrix, what, &from));
    *number = 0;
    for (p = from; p < matrix->at && sdr_is_digit(*p); p++)
        if (*number <= most)
            *number = *number * 10 + (uint64_t)(*p - '0');
    if (p < matrix->at)
        return FAIL_AT(from, "%s '%s' is not a whole number", what,
                       sdr_quote(quote, from, matrix->at));
    if (*number < least || *number > most)
        return FAIL_AT(from, "%s %s is not within %llu … %llu", what,
                       sdr_quote(quote, from, matrix->at), (unsigned long long)least,
                       (unsigned long long)most);
    return SDR_OK;
}

static enum sdr_status number(struct matrix *matrix, float *value)
{
    char quote[SDR_QUOTE_BYTES];
    const char *from, *why;
    SDR_TRY(token(matrix, "value", &from));
    if (!sdr_token_float(from, matrix->at, value, &why))
        return FAIL_AT(from, "value '%s' %s", sdr_quote(quote, from, matrix->at), why);
    return SDR_OK;
}

static enum sdr_status end_of_line(struct matrix *matrix)
{
    char quote[SDR_QUOTE_BYTES];
    const char *at = sdr_skip_blanks(matrix->at, matrix->end);
    if (!sdr_at_line_end(at, matrix->end))
        return FAIL_AT(at, "'%s' is more than belongs in the line",
                       sdr_quote(quote, at, sdr_token_end(at, matrix->end)));
    matrix->at = sdr_next_line(at, matrix->end);
    return SDR_OK;
}

/* The next word of the banner: its index in `choices`, or an error that lists them. */
static enum sdr_status banner_word(struct matrix *matrix, const char *what,
                                   const char *const *choices, unsigned *chosen)
{
    char quote[SDR_QUOTE_BYTES];
    const char *from;
    SDR_TRY(token(matrix, what, &from));
    for (*chosen = 0; choices[*chosen]; (*chosen)++)
        if (strlen(choices[*chosen]) == (size_t)(matrix->at - from) &&
            strncasecmp(choices[*chosen], from, (size_t)(matrix->at - from)) == 0)
            return SDR_OK;
    return FAIL_AT(from, "%s '%s' is not known or cannot be learnt from", what,
                   sdr_quote(quote, from, matrix->at));
}

static bool has_banner(const char *bytes, size_t count)
{
    static const char banner[] = "%%MatrixMarket";
    return count > sizeof banner && strncasecmp(bytes, banner, sizeof banner - 1) == 0 &&
           sdr_is_blank(bytes[sizeof banner - 1]);
}

static enum sdr_status read_header(struct matrix *matrix)
{
    static const char *const objects[] = {"matrix", NULL};
    static const char *const layouts[] = {"coordinate", "array", NULL};
    static const char *const fields[] = {"real", "double", "integer", "pattern", NULL};
    static const char *const symmetries[] = {"general", "symmetric", "skew-symmetric", NULL};
    unsigned object, layout, field, symmetry;
    size_t bytes = (size_t)(matrix->end - matrix->at);
    matrix->line = matrix->at;
    matrix->line_number = 1;
    if (!has_banner(matrix->at, bytes))
        return FAIL_AT(matrix->at, "the file does not begin with %s", "%%MatrixMarket");
    matrix->at = sdr_token_end(matrix->at, matrix->end);
    SDR_TRY(banner_word(matrix, "object", objects, &object));
    SDR_TRY(banner_word(matrix, "layout", layouts, &layout));
    SDR_TRY(banner_word(matrix, "kind of number", fields, &field));
    SDR_TRY(banner_word(matrix, "symmetry", symmetries, &symmetry));
    matrix->array = layout == 1;
    matrix->pattern = field == 3;
    matrix->symmetric = symmetry > 0;
    matrix->skew = symmetry == 2;
    if (matrix->array && matrix->pattern)
        return FAIL_AT(matrix->line, "an array cannot be a %s", "pattern");
    SDR_TRY(end_of_line(matrix));

    if (!next_line(matrix))
        return sdr_fail(SDR_BAD_DATA, "%s: truncated: the line with the size is missing",
                        matrix->name);
    SDR_TRY(whole_number(matrix, "number of rows", 1, SIDE_MOST, &matrix->rows));
    SDR_TRY(whole_number(matrix, "number of columns", 1, SIDE_MOST, &matrix->columns));
    if (matrix->symmetric && matrix->rows != matrix->columns)
        return FAIL_AT(matrix->line, "a symmetric matrix of %llu rows cannot have %llu columns",
                       (unsigned long long)matrix->rows, (unsigned long long)matrix->columns);
    uint64_t n = matrix->rows;
    matrix->count = !matrix->symmetric ? n * matrix->columns
                    : matrix->skew     ? n * (n - 1) / 2
                                       : n * (n + 1) / 2;
    if (!matrix->array)
        SDR_TRY(whole_number(matrix, "number of entries", 0, UINT64_MAX / 16, &matrix->count));
    if (matrix->rows / ROWS_PER_BYTE > bytes)
        return FAIL_AT(matrix->line, "%llu rows are too many for a file of %llu bytes",
                       (unsigned long long)matrix->rows, (unsigned long long)bytes);
    return end_of_line(matrix);
}

static enum sdr_status truncated(const struct matrix *matrix, uint64_t got)
{
    return sdr_fail(SDR_BAD_DATA,
                    "%s: truncated: it has %llu of the %llu entries its header promises",
                    matrix->name, (unsigned long long)got, (unsigned long long)matrix->count);
}

static enum sdr_status read_coordinates(struct matrix *matrix)
{
    for (uint64_t i = 0; i < matrix->count; i++) {
        uint64_t row, column;
        if (!next_line(matrix))
            return truncated(matrix, i);
        struct entry entry = {.value = 1, .line = matrix->line_number};
        SDR_TRY(whole_number(matrix, "row", 1, matrix->rows, &row));
        SDR_TRY(whole_number(matrix, "column", 1, matrix->columns, &column));
        if (!matrix->pattern)
            SDR_TRY(number(matrix, &entry.value));
        entry.row = (uint32_t)row - 1;
        entry.column = (uint32_t)column - 1;
        if (matrix->skew && row == column)
            return FAIL_AT(matrix->line, "a skew-symmetric matrix has no entry (%llu, %llu)",
                           (unsigned long long)row, (unsigned long long)column);
        SDR_TRY(end_of_line(matrix));
        SDR_TRY(sdr_region_append(&matrix->entry, &entry, sizeof entry));
        if (matrix->symmetric && row != column) {
            struct entry mirror = entry;
            mirror.row = entry.column;
            mirror.column = entry.row;
            mirror.value = matrix->skew ? -entry.value : entry.value;
            SDR_TRY(sdr_region_append(&matrix->entry, &mirror, sizeof mirror));
        }
    }
    return SDR_OK;
}

/* The numbers of an array as a full matrix, column by column. */
static enum sdr_status read_array(struct matrix *matrix)
{
    /* A number and its newline take two bytes: limits what a header can make us reserve. */
    if (matrix->count > (uint64_t)(matrix->end - matrix->at) / 2 + 1)
        return truncated(matrix, 0);
    SDR_TRY(sdr_region_reserve(&matrix->number, matrix->rows * matrix->columns * sizeof(float)));
    float *x = (float *)(void *)matrix->number.bytes;
    uint64_t seen = 0;
    for (uint64_t j = 0; j < matrix->columns; j++) {
        uint64_t first = !matrix->symmetric ? 0 : matrix->skew ? j + 1 : j;
        for (uint64_t i = first; i < matrix->rows; i++, seen++) {
            float *value = &x[j * matrix->rows + i];
            if (!next_line(matrix))
                return truncated(matrix, seen);
            SDR_TRY(number(matrix, value));
            SDR_TRY(end_of_line(matrix));
            if (matrix->symmetric)
                x[i * matrix->rows + j] = matrix->skew ? -*value : *value;
        }
        if (matrix->skew)
            x[j * matrix->rows + j] = 0;
    }
    return SDR_OK;
}

/* ---- rows ---- */

/* Rows are collected in pieces of moderate size, each passed to the builder when full. */
struct output {
    struct sdr_piece piece;
    const struct sdr_label_file *labels;
    struct sdr_builder *builder;
    uint64_t row; /* of the file */
};

static enum sdr_status flush(struct output *output)
{
    SDR_TRY(sdr_builder_add(output->builder, &output->piece));
    sdr_piece_clear(&output->piece);
    return SDR_OK;
}

static enum sdr_status finish_row(struct output *output)
{
    struct sdr_piece *piece = &output->piece;
    SDR_TRY(sdr_label_file_put(output->labels, output->row++, piece, piece->rows));
    piece->weight[piece->rows] = 1;
    piece->end[piece->rows++] = piece->entries;
    if (piece->entries && piece->index[piece->entries - 1] >= piece->features)
        piece->features = piece->index[piece->entries - 1] + 1;
    return piece->entries >= PIECE_ENTRIES || piece->rows == PIECE_ROWS ? flush(output) : SDR_OK;
}

/* Passes the entries row by row: counting sort into rows, then each row sorted by column. */
static enum sdr_status add_entries(const struct matrix *matrix, struct output *output)
{
    const struct entry *entry = (const struct entry *)(const void *)matrix->entry.bytes;
    uint64_t count = matrix->entry.used / sizeof *entry, *start = NULL, *order = NULL, *key = NULL;
    uint64_t longest = 0;
    enum sdr_status status;
    SDR_CHECK(sdr_allocate(&start, matrix->rows + 2, sizeof *start, "the rows"));
    SDR_CHECK(sdr_allocate(&order, count, sizeof *order, "the rows"));
    for (uint64_t i = 0; i < count; i++)
        start[entry[i].row + 2]++;
    for (uint64_t r = 0; r < matrix->rows; r++) {
        longest = start[r + 2] > longest ? start[r + 2] : longest;
        start[r + 2] += start[r + 1];
    }
    for (uint64_t i = 0; i < count; i++)
        order[start[entry[i].row + 1]++] = i; /* start[r + 1] advances to the end of row r */
    SDR_CHECK(sdr_allocate(&key, 2 * longest, sizeof *key, "the rows"));
    for (uint64_t r = 0; r < matrix->rows; r++) {
        struct sdr_piece *piece = &output->piece;
        uint64_t length = start[r + 1] - start[r];
        for (uint64_t i = 0; i < length; i++)
            key[i] = (uint64_t)entry[order[start[r] + i]].column << 32 | i;
        const uint64_t *sorted = sdr_sort_keys(key, key + longest, length);
        SDR_CHECK(sdr_piece_reserve(piece, piece->entries + length, PIECE_ROWS));
        for (uint64_t i = 0; i < length; i++) {
            const struct entry *e = &entry[order[start[r] + (uint32_t)sorted[i]]];
            if (i > 0 && piece->index[piece->entries - 1] == e->column) {
                status = sdr_fail(SDR_BAD_DATA, "%s:%llu:1: the entry (%llu, %llu) is given twice",
                                  matrix->name, (unsigned long long)e->line,
                                  (unsigned long long)r + 1, (unsigned long long)e->column + 1);
                goto cleanup;
            }
            piece->index[piece->entries] = e->column;
            piece->value[piece->entries++] = e->value;
        }
        SDR_CHECK(finish_row(output));
    }
cleanup:
    sdr_release(start);
    sdr_release(order);
    sdr_release(key);
    return status;
}

static enum sdr_status add_array(const struct matrix *matrix, struct output *output)
{
    const float *x = (const float *)(const void *)matrix->number.bytes;
    struct sdr_piece *piece = &output->piece;
    for (uint64_t r = 0; r < matrix->rows; r++) {
        SDR_TRY(sdr_piece_reserve(piece, piece->entries + matrix->columns, PIECE_ROWS));
        for (uint64_t j = 0; j < matrix->columns; j++) {
            float value = x[j * matrix->rows + r];
            piece->index[piece->entries] = (uint32_t)j;
            piece->value[piece->entries] = value;
            piece->entries += value != 0;
        }
        SDR_TRY(finish_row(output));
    }
    return SDR_OK;
}

/* ---- the plug-in ---- */

static enum sdr_status whole(void *opaque, struct sdr_reading *reading, struct sdr_source *source)
{
    struct state *state = opaque;
    struct sdr_region bytes = {0};
    struct matrix matrix = {.name = sdr_source_name(source)};
    struct output output = {.labels = &state->labels, .builder = reading->builder};
    enum sdr_status status;
    SDR_CHECK(sdr_source_rest(source, &bytes));
    matrix.at = (const char *)bytes.bytes;
    matrix.end = matrix.at + bytes.used;
    SDR_CHECK(read_header(&matrix));
    SDR_CHECK(sdr_label_file_check(&state->labels, matrix.name, matrix.rows));
    SDR_CHECK(matrix.array ? read_array(&matrix) : read_coordinates(&matrix));
    if (next_line(&matrix)) {
        status = sdr_fail(
            SDR_BAD_DATA, "%s:%llu:1: more lines than the %llu entries the header promises",
            matrix.name, (unsigned long long)matrix.line_number, (unsigned long long)matrix.count);
        goto cleanup;
    }
    if (!reading->known && matrix.columns > reading->schema->features)
        reading->schema->features = reading->schema->numbers = (uint32_t)matrix.columns;
    SDR_CHECK(matrix.array ? add_array(&matrix, &output) : add_entries(&matrix, &output));
    status = flush(&output);
cleanup:
    sdr_region_free(&bytes);
    sdr_region_free(&matrix.entry);
    sdr_region_free(&matrix.number);
    sdr_piece_free(&output.piece);
    return status;
}

static enum sdr_status open_format(void *opaque, struct sdr_reading *reading, const char *head,
                                   size_t count)
{
    struct state *state = opaque;
    (void)head;
    (void)count;
    if (!reading->options->labels && !reading->options->labels_optional)
        return sdr_fail(SDR_USAGE, "%s: no labels: give --labels FILE", reading->path);
    sdr_release(reading->schema->format);
    reading->schema->format = NULL;
    reading->schema->base = 0;
    SDR_TRY(sdr_copy_string(&reading->schema->format, "mtx"));
    return sdr_label_file_read(reading->options, reading->known, &state->labels);
}

static void close_format(void *opaque)
{
    struct state *state = opaque;
    sdr_label_file_free(&state->labels);
}

static int recognise(const char *head, size_t count)
{
    return has_banner(head, count) ? 100 : 0;
}

SDR_REGISTER(format, mtx) = {
    .name = "mtx",
    .summary = "Matrix Market, coordinate or array; labels in a file of their own",
    .extensions = "mtx mm mmt",
    .takes = "labels",
    .state_size = sizeof(struct state),
    .recognise = recognise,
    .open = open_format,
    .whole = whole,
    .close = close_format,
    .by_density = true,
};
