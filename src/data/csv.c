/* CSV and TSV: records of cells, RFC 4180 quoting. A column of numbers is one feature, in file
   order; a column of texts gives one feature per "column=value". Zeros are not stored. csv_head.c
   and csv_columns.c find out the meaning of columns; this file turns chunks of records into
   rows. */
#define _GNU_SOURCE /* memrchr */
#include "data/csv.h"
#include "data/token.h"

#include <math.h>
#include <string.h>

static const struct sdr_option options[] = {
    {"sep", SDR_TEXT, NULL, "comma|semicolon|tab|bar|C", 0, 0,
     "what stands between the cells; guessed from the first lines",
     offsetof(struct sdr_csv_options, separator), 0},
    {"header", SDR_CHOICE, "auto", "auto|yes|no", 0, 0, "whether the first line names the columns",
     offsetof(struct sdr_csv_options, header), 0},
    {0}};

static int recognise(const char *head, size_t count)
{
    uint32_t columns;
    bool even;
    if (count == 0 || memchr(head, 0, count))
        return 0;
    const char *end = memchr(head, '\n', count);
    for (const char *p = head + 1; p < (end ? end : head + count); p++)
        if (*p == ':' && p[-1] >= '0' && p[-1] <= '9') {
            const char *digit = p - 1;
            while (digit > head && *digit >= '0' && *digit <= '9')
                digit--;
            if (*digit == ' ' && p + 1 < head + count && p[1] != ' ')
                return 0; /* " 12:0.5" is LIBSVM */
        }
    char separator = sdr_csv_guess_separator(head, count, count >= SDR_HEAD_BYTES, &columns, &even);
    if (!separator || !even)
        return separator ? 5 : 0;
    return separator == '|' ? 20 : 60;
}

static enum sdr_status open_csv(void *state, struct sdr_reading *reading, const char *bytes,
                                size_t count)
{
    struct sdr_csv *csv = state;
    struct sdr_csv_head head;
    if (count && memchr(bytes, 0, count))
        return sdr_fail(SDR_BAD_DATA, "%s: not a text file", reading->path);
    csv->labels_optional = reading->options->labels_optional;
    enum sdr_status status = sdr_csv_head_read(reading, bytes, count, &head);
    if (status == SDR_OK) {
        csv->separator = head.separator;
        csv->header = reading->header = head.header;
        status = sdr_csv_columns_find(csv, reading, &head);
    }
    if (status == SDR_OK && head.header) {
        csv->header_length = head.header_length;
        while (csv->header_length && (head.header_line[csv->header_length - 1] == '\n' ||
                                      head.header_line[csv->header_length - 1] == '\r'))
            csv->header_length--;
        status = sdr_copy_bytes(&csv->header_line, head.header_line, csv->header_length);
    }
    sdr_csv_head_free(&head);
    return status;
}

static void close_csv(void *state)
{
    struct sdr_csv *csv = state;
    for (uint32_t i = 0; csv->column && i < csv->columns; i++) {
        sdr_release(csv->column[i].name);
        sdr_release(csv->column[i].prefix);
    }
    sdr_release(csv->column);
    sdr_release(csv->header_line);
}

/* The end of the last newline outside of quotes. 0 if only empty lines precede it, so that a chunk
   of empty lines never separates a file from its header. */
static size_t cut(const void *state, const char *bytes, size_t count)
{
    const struct sdr_csv *csv = state;
    const char *end = bytes + count, *whole = NULL;
    uint64_t empty = 0;
    const char *at = sdr_csv_skip_empty(sdr_csv_skip_mark(bytes, end), end, &empty);
    if (at == end)
        return 0;
    if (!memchr(at, '"', (size_t)(end - at))) {
        const char *newline = memrchr(at, '\n', (size_t)(end - at));
        return newline ? (size_t)(newline - bytes) + 1 : 0;
    }
    while (at < end) {
        struct sdr_csv_cell cell;
        sdr_csv_cell_read(at, end, csv->separator, &cell);
        at = cell.next;
        if (!cell.open && !cell.more && at[-1] == '\n')
            whole = at;
    }
    return whole ? (size_t)(whole - bytes) : 0;
}

/* A chunk being parsed. */
struct parsing {
    const struct sdr_csv *csv;
    struct sdr_piece *piece;
    const char *line_start; /* start of line `line`, for columns in errors */
    uint64_t line;
    uint64_t first;               /* the row's first entry */
    uint32_t numbers, categories; /* entries so far, from the row's front and back */
    float label, weight;
    bool labelled;
    struct sdr_text scratch; /* unquoted texts, category texts */
    struct sdr_fold fold;    /* if the columns are not in the order of features */
};

static enum sdr_status refuse(struct parsing *at, const struct sdr_csv_cell *cell,
                              const struct sdr_csv_column *column, const char *what)
{
    return sdr_piece_fail(at->piece, at->line, (uint64_t)(cell->start - at->line_start) + 1,
                          "column '%.80s' %s", column->name, what);
}

static enum sdr_status refuse_text(struct parsing *at, const struct sdr_csv_cell *cell,
                                   const struct sdr_csv_column *column)
{
    char quote[SDR_QUOTE_BYTES];
    const char *shown = sdr_quote(quote, cell->text, cell->text + cell->length);
    uint64_t place = (uint64_t)(cell->start - at->line_start) + 1;
    if (sdr_csv_is_infinite(cell->text, cell->length))
        return refuse(at, cell, column, "is infinite");
    if (sdr_csv_is_grouped(cell->text, cell->length))
        return sdr_piece_fail(at->piece, at->line, place,
                              "column '%.60s' has thousands separators, '%s', which are not read; "
                              "write the number without commas",
                              column->name, shown);
    if (column->kind == SDR_COLUMN_WEIGHT)
        return sdr_piece_fail(at->piece, at->line, place, "the weight is '%s', not a number",
                              shown);
    if (column->kind == SDR_COLUMN_LABEL || at->csv->known)
        return sdr_piece_fail(at->piece, at->line, place,
                              "column '%.60s' should be a number, not '%s'", column->name, shown);
    return sdr_piece_fail(at->piece, at->line, place,
                          "column '%.60s' should be a number, not '%s' (--categories %.60s takes "
                          "the column as words)",
                          column->name, shown, column->name);
}

static enum sdr_status cell_number(struct parsing *at, const struct sdr_csv_cell *cell,
                                   const struct sdr_csv_column *column, float *value)
{
    const char *end = cell->text + cell->length;
    double number;
    if (sdr_scan_double(cell->text, end, &number) != end)
        return refuse_text(at, cell, column);
    *value = (float)number;
    if (!isfinite(*value))
        return refuse(at, cell, column, "is too large a number");
    return SDR_OK;
}

/* Writes prefix and unquoted cell to scratch. */
static enum sdr_status cell_text(struct parsing *at, const struct sdr_csv_cell *cell,
                                 const char *prefix, size_t length)
{
    struct sdr_text *scratch = &at->scratch;
    scratch->length = 0;
    sdr_text_bytes(scratch, prefix, length);
    sdr_text_bytes(scratch, cell->text, cell->length);
    if (scratch->failed)
        return sdr_fail(SDR_RUNTIME, "out of memory: a cell of %zu bytes", cell->length);
    if (cell->doubled)
        scratch->length = length + sdr_csv_unquote(cell, scratch->bytes + length);
    return SDR_OK;
}

static void put_number(struct parsing *at, uint32_t feature, float value)
{
    uint64_t entry = at->first + at->numbers++;
    at->piece->index[entry] = feature;
    at->piece->value[entry] = value;
}

static enum sdr_status put_category(struct parsing *at, const struct sdr_csv_cell *cell,
                                    const struct sdr_csv_column *column)
{
    uint64_t entry = at->first + at->csv->columns - ++at->categories;
    SDR_TRY(cell_text(at, cell, column->prefix, column->prefix_length));
    at->piece->value[entry] = 1;
    return sdr_piece_category(at->piece, at->scratch.bytes, at->scratch.length,
                              &at->piece->index[entry]);
}

static enum sdr_status parse_missing(struct parsing *at, const struct sdr_csv_cell *cell,
                                     const struct sdr_csv_column *column)
{
    if (column->kind == SDR_COLUMN_LABEL) {
        if (at->csv->labels_optional)
            return SDR_OK;
        return refuse(at, cell, column, "is missing, and it is the label");
    }
    if (column->kind == SDR_COLUMN_WEIGHT)
        return refuse(at, cell, column, "is missing, and it is the weight");
    if (at->csv->missing == SDR_MISSING_ERROR)
        return refuse(at, cell, column, "is missing (use --missing mean or zero)");
    if (at->csv->missing == SDR_MISSING_MEAN && column->kind == SDR_COLUMN_NUMBER) {
        put_number(at, column->feature, NAN);
        at->piece->has_missing = true;
    } /* a missing category sets none of its features */
    return SDR_OK;
}

/* Prediction needs no labels: a label the model cannot have counts as missing. */
static bool usable_label(const struct sdr_csv_cell *cell)
{
    const char *end = cell->text + cell->length;
    double number;
    return sdr_scan_double(cell->text, end, &number) == end && isfinite((float)number);
}

static enum sdr_status parse_label(struct parsing *at, const struct sdr_csv_cell *cell,
                                   const struct sdr_csv_column *column)
{
    at->labelled = true;
    if (at->csv->text_labels) {
        const char *text = cell->text;
        size_t length = cell->length;
        if (cell->doubled) {
            SDR_TRY(cell_text(at, cell, "", 0));
            text = at->scratch.bytes;
            length = at->scratch.length;
        }
        return sdr_piece_label_text(at->piece, text, length, &at->label);
    }
    if (at->csv->labels_optional && !usable_label(cell)) {
        at->labelled = false;
        return SDR_OK;
    }
    SDR_TRY(cell_number(at, cell, column, &at->label));
    return sdr_piece_label_number(at->piece, at->label, cell->text, cell->length);
}

/* Handles every cell except plain numbers in columns of numbers. */
static enum sdr_status parse_cell(struct parsing *at, const struct sdr_csv_cell *cell,
                                  const struct sdr_csv_column *column)
{
    float value;
    if (cell->open)
        return refuse(at, cell, column, "begins with a quote that is never closed");
    if (cell->dirty)
        return refuse(at, cell, column, "has text behind its closing quote");
    if (column->kind == SDR_COLUMN_IGNORED)
        return SDR_OK;
    if (sdr_csv_is_missing(cell->text, cell->length))
        return parse_missing(at, cell, column);
    switch (column->kind) {
    case SDR_COLUMN_LABEL: return parse_label(at, cell, column);
    case SDR_COLUMN_WEIGHT:
        SDR_TRY(cell_number(at, cell, column, &at->weight));
        return at->weight >= 0 ? SDR_OK : refuse(at, cell, column, "is a weight and negative");
    case SDR_COLUMN_CATEGORY: return put_category(at, cell, column);
    default:
        SDR_TRY(cell_number(at, cell, column, &value));
        if (value != 0)
            put_number(at, column->feature, value);
        return SDR_OK;
    }
}

/* Fast path for a short plain number "-12.5" that ends at the separator or the newline; NULL
   otherwise. Requires a newline ahead, so that it needs no end check. Rounds as sdr_scan_double
   does. */
static inline const char *plain_number(const char *p, char separator, float *value)
{
    static const double power[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    bool negative = *p == '-';
    p += negative;
    const char *first = p;
    uint64_t mantissa = 0;
    for (; sdr_is_digit(*p); p++)
        mantissa = mantissa * 10 + (uint64_t)(*p - '0');
    ptrdiff_t digits = p - first, scale = 0;
    if (*p == '.') {
        const char *point = ++p;
        for (; sdr_is_digit(*p); p++)
            mantissa = mantissa * 10 + (uint64_t)(*p - '0');
        scale = p - point;
        digits += scale;
    }
    if ((*p != separator && *p != '\n') || digits == 0 || digits > 15)
        return NULL;
    double number = (double)mantissa;
    if (scale)
        number /= power[scale];
    *value = (float)(negative ? -number : number);
    return p;
}

/* Puts numbers first, in the order of features, then categories. */
static enum sdr_status order_entries(struct parsing *at)
{
    uint32_t *index = at->piece->index + at->first;
    float *value = at->piece->value + at->first;
    if (!at->csv->ordered) {
        uint64_t count = at->numbers;
        SDR_TRY(sdr_fold_row(&at->fold, index, value, &count));
        at->numbers = (uint32_t)count; /* fewer only if a damaged schema repeats a feature */
    }
    if (at->categories && at->numbers + at->categories < at->csv->columns) {
        uint32_t from = at->csv->columns - at->categories;
        memmove(index + at->numbers, index + from, at->categories * sizeof *index);
        memmove(value + at->numbers, value + from, at->categories * sizeof *value);
    }
    return SDR_OK;
}

static enum sdr_status finish_row(struct parsing *at)
{
    struct sdr_piece *piece = at->piece;
    SDR_TRY(order_entries(at));
    piece->entries = at->first + at->numbers + at->categories;
    piece->label[piece->rows] = at->labelled ? at->label : (float)SDR_MISSING_ROW_LABEL;
    piece->lacks_labels |= !at->labelled;
    piece->weight[piece->rows] = at->weight;
    piece->end[piece->rows++] = piece->entries;
    return SDR_OK;
}

static enum sdr_status wrong_count(struct parsing *at, const char *place, uint64_t cells)
{
    return sdr_piece_fail(at->piece, at->line, (uint64_t)(place - at->line_start) + 1,
                          "the line has %s%llu cells, the first line has %u",
                          cells > at->csv->columns ? "at least " : "", (unsigned long long)cells,
                          at->csv->columns);
}

/* Parses the record at p; *next is behind it. `safe`: a newline follows. */
static enum sdr_status parse_record(struct parsing *at, const char *p, const char *end,
                                    const char *safe, const char **next)
{
    const struct sdr_csv *csv = at->csv;
    const struct sdr_csv_column *column = csv->column, *behind = csv->column + csv->columns;
    char separator = csv->separator;
    at->line_start = p;
    at->numbers = at->categories = 0;
    at->weight = 1;
    at->labelled = false;
    for (;;) {
        float value;
        const char *q;
        bool more;
        if (column->kind == SDR_COLUMN_NUMBER && p < safe &&
            (q = plain_number(p, separator, &value))) {
            if (value != 0)
                put_number(at, column->feature, value);
            more = *q == separator;
            p = q + 1;
        } else {
            struct sdr_csv_cell cell;
            sdr_csv_cell_read(p, end, separator, &cell);
            SDR_TRY(parse_cell(at, &cell, column));
            if (cell.newlines) {
                at->line += cell.newlines;
                at->line_start = cell.last_line;
            }
            more = cell.more;
            p = cell.next;
        }
        column++;
        if (!more) {
            if (column != behind)
                return wrong_count(at, p > at->line_start ? p - (p[-1] == '\n') : p,
                                   (uint64_t)(column - csv->column));
            *next = p;
            return finish_row(at);
        }
        if (column == behind)
            return wrong_count(at, p, (uint64_t)csv->columns + 1);
    }
}

/* Every file must have the header of the first: other columns would be other features. */
static enum sdr_status skip_header(struct parsing *at, const char *end, const char **p)
{
    const struct sdr_csv *csv = at->csv;
    const char *header = *p;
    const char *stop = header + csv->header_length;
    if (header == end)
        return SDR_OK;
    bool same = (size_t)(end - header) >= csv->header_length &&
                memcmp(header, csv->header_line, csv->header_length) == 0;
    if (same && stop < end && *stop == '\r')
        stop++;
    if (!same || (stop < end && *stop != '\n'))
        return sdr_piece_fail(at->piece, at->line, 1, "the header is not that of the first file");
    for (const char *c = header; c < stop; c++)
        at->line += *c == '\n';
    at->line += stop < end;
    *p = stop < end ? stop + 1 : end;
    return SDR_OK;
}

static enum sdr_status parse(const void *state, const char *bytes, size_t count, bool first,
                             struct sdr_piece *piece)
{
    const struct sdr_csv *csv = state;
    const char *p = bytes, *end = bytes + count;
    const char *newline = count ? memrchr(bytes, '\n', count) : NULL;
    const char *safe = newline ? newline + 1 : bytes;
    struct parsing at = {.csv = csv, .piece = piece, .line = 1, .line_start = bytes};
    enum sdr_status status = SDR_OK;
    if (first) {
        p = sdr_csv_skip_empty(sdr_csv_skip_mark(bytes, end), end, &at.line);
        if (csv->header)
            status = skip_header(&at, end, &p);
    }
    piece->text_labels = csv->text_labels;
    piece->has_weights = csv->has_weights;
    piece->features = csv->numbers;
    while (status == SDR_OK && (p = sdr_csv_skip_empty(p, end, &at.line)) < end) {
        if (piece->rows >= piece->row_room || piece->entry_room - piece->entries < csv->columns)
            status = sdr_piece_reserve(piece, piece->entries + csv->columns + piece->entries / 2,
                                       piece->rows + 1024 + piece->rows / 2);
        at.first = piece->entries;
        if (status == SDR_OK)
            status = parse_record(&at, p, end, safe, &p);
        at.line += status == SDR_OK && p[-1] == '\n';
    }
    piece->lines = at.line - 1 + (p == end && count && end[-1] != '\n');
    sdr_text_free(&at.scratch);
    sdr_fold_free(&at.fold);
    return status;
}

SDR_REGISTER(format, csv) = {
    .name = "csv",
    .summary = "CSV and TSV: numbers and categories by column, with or without a header",
    .extensions = "csv tsv",
    .takes = "label weight ignore categories missing",
    .options = options,
    .options_size = sizeof(struct sdr_csv_options),
    .state_size = sizeof(struct sdr_csv),
    .recognise = recognise,
    .records = sdr_csv_records,
    .open = open_csv,
    .cut = cut,
    .parse = parse,
    .close = close_csv,
    .by_density = true,
};
