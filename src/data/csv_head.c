/* The head of a CSV file (its first 64 KB): which separator, whether the first line is a header,
   and which columns hold numbers. Every guess can be overruled by an option. */
#include "data/csv.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { HEAD_MOST = 1 << 16 }; /* what a source lets one peek at */

bool sdr_csv_is_missing(const char *text, size_t length)
{
    switch (length) {
    case 0:
        return true;
    case 1:
        return *text == '?';
    case 2:
        return memcmp(text, "NA", 2) == 0;
    case 3:
        return memcmp(text, "N/A", 3) == 0 || memcmp(text, "NaN", 3) == 0 ||
               memcmp(text, "nan", 3) == 0;
    case 4:
        return memcmp(text, "null", 4) == 0 || memcmp(text, "NULL", 4) == 0;
    default:
        return false;
    }
}

bool sdr_csv_is_infinite(const char *text, size_t length)
{
    if (length && (*text == '-' || *text == '+')) {
        text++;
        length--;
    }
    return (length == 3 && strncasecmp(text, "inf", 3) == 0) ||
           (length == 8 && strncasecmp(text, "infinity", 8) == 0);
}

const char *sdr_csv_skip_mark(const char *bytes, const char *end)
{
    return end - bytes >= 3 && memcmp(bytes, "\xEF\xBB\xBF", 3) == 0 ? bytes + 3 : bytes;
}

const char *sdr_csv_skip_empty(const char *at, const char *end, uint64_t *lines)
{
    for (;;) {
        const char *p = at;
        if (p < end && *p == '\r')
            p++;
        if (p == end || *p != '\n')
            return p == end ? end : at;
        at = p + 1;
        ++*lines;
    }
}

/* Cells of the record at *at, which moves behind it. */
static uint32_t count_cells(const char **at, const char *end, char separator)
{
    struct sdr_csv_cell cell = {.next = *at};
    uint32_t cells = 0;
    do {
        sdr_csv_cell_read(cell.next, end, separator, &cell);
        cells++;
    } while (cell.more);
    *at = cell.next;
    return cells;
}

/* The head without a last line that may be cut in two. */
static const char *whole_lines(const char *bytes, size_t count)
{
    const char *end = bytes + count;
    if (count < HEAD_MOST)
        return end;
    const char *cut = end;
    while (cut > bytes && cut[-1] != '\n')
        cut--;
    return cut > bytes ? cut : end;
}

char sdr_csv_guess_separator(const char *bytes, size_t count, uint32_t *columns, bool *even)
{
    /* In the order of preference: commas are also decimal commas and part of texts. */
    static const char candidates[] = "\t;,|";
    enum { LINES = 50 };
    const char *end = whole_lines(bytes, count);
    const char *begin = sdr_csv_skip_mark(bytes, end);
    char best = 0;
    *columns = 0;
    *even = false;
    for (const char *separator = candidates; *separator; separator++) {
        const char *at = begin;
        uint64_t skipped = 0;
        uint32_t first = 0, line = 0;
        bool same = true;
        for (; line < LINES && (at = sdr_csv_skip_empty(at, end, &skipped)) < end; line++) {
            uint32_t cells = count_cells(&at, end, *separator);
            if (line == 0)
                first = cells;
            same &= cells == first;
        }
        if (first < 2)
            continue;
        if (!best || (same && !*even) || (!same && !*even && first > *columns)) {
            best = *separator;
            *columns = first;
            *even = same;
        }
    }
    return best;
}

static bool is_number(const char *text, size_t length)
{
    double value;
    return sdr_scan_double(text, text + length, &value) == text + length && length;
}

/* "1,5": digits on both sides of one comma. */
static bool is_decimal_comma(const char *text, size_t length)
{
    const char *comma = memchr(text, ',', length);
    return comma && is_number(text, (size_t)(comma - text)) &&
           is_number(comma + 1, length - (size_t)(comma - text) - 1);
}

static bool is_word(const struct sdr_csv_cell *cell)
{
    if (cell->length < 2)
        return false;
    for (size_t i = 0; i < cell->length; i++) {
        unsigned char c = (unsigned char)cell->text[i];
        bool letter = ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_' || c >= 128;
        bool other = (c >= '0' && c <= '9') || strchr(" .-()/%#:", c);
        if (!letter && (i == 0 || !other))
            return false;
    }
    return true;
}

static bool same_text(const struct sdr_csv_cell *a, const struct sdr_csv_cell *b)
{
    return a->length == b->length && memcmp(a->text, b->text, a->length) == 0;
}

/* What the lines behind the first say about one column. */
struct column_look {
    uint64_t numbers, commas, texts; /* cells of each kind */
    bool recurs;                     /* the first line's text appears again */
};

static void look_at_cell(struct column_look *look, const struct sdr_csv_cell *first,
                         const struct sdr_csv_cell *cell)
{
    if (first && same_text(first, cell))
        look->recurs = true;
    if (sdr_csv_is_missing(cell->text, cell->length))
        return;
    if (is_number(cell->text, cell->length) || sdr_csv_is_infinite(cell->text, cell->length))
        look->numbers++;
    else if (is_decimal_comma(cell->text, cell->length))
        look->commas++;
    else
        look->texts++;
}

/* A header has no number in it, and either stands above a column of numbers or consists of distinct
   words that do not appear again below. */
static bool looks_like_header(const struct sdr_csv_cell *first, const struct column_look *look,
                              uint32_t columns, const struct sdr_schema *known)
{
    bool above_numbers = false, words = true;
    for (uint32_t i = 0; i < columns; i++) {
        for (uint32_t k = 0; known && k < known->columns; k++)
            if (known->column[k].kind != SDR_COLUMN_IGNORED &&
                strlen(known->column[k].name) == first[i].length &&
                memcmp(known->column[k].name, first[i].text, first[i].length) == 0)
                return true;
        if (is_number(first[i].text, first[i].length) ||
            (first[i].length && sdr_csv_is_missing(first[i].text, first[i].length)))
            return false;
        above_numbers |= look[i].numbers && !look[i].texts;
        words &= is_word(&first[i]) && !look[i].recurs;
    }
    if (above_numbers || !words)
        return above_numbers;
    for (uint32_t i = 0; i < columns && i < 1000; i++)
        for (uint32_t j = 0; j < i; j++)
            if (same_text(&first[i], &first[j]))
                return false;
    return true;
}

/* Cells that are no numbers make a column of categories, unless they are so few that they are slips:
   those are refused where they stand. */
static enum sdr_csv_type type_of(const struct column_look *look)
{
    if (look->texts * 10 > look->numbers + look->commas)
        return SDR_CSV_TEXTS;
    return look->commas ? SDR_CSV_DECIMAL_COMMAS : SDR_CSV_NUMBERS;
}

static enum sdr_status separator_option(const char *text, char *separator)
{
    static const struct {
        const char *name;
        char separator;
    } names[] = {{"comma", ','}, {"semicolon", ';'}, {"tab", '\t'}, {"bar", '|'}, {"pipe", '|'}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(text, names[i].name) == 0) {
            *separator = names[i].separator;
            return SDR_OK;
        }
    if (strlen(text) != 1 || strchr("\"\r\n .+-eE0123456789", *text))
        return sdr_fail(
            SDR_USAGE, "csv:sep takes comma, semicolon, tab, bar or one character, not '%s'", text);
    *separator = *text;
    return SDR_OK;
}

static enum sdr_status name_columns(struct sdr_csv_head *head, const struct sdr_csv_cell *first)
{
    for (uint32_t i = 0; i < head->columns; i++) {
        if (head->header && first[i].length) {
            SDR_TRY(sdr_copy_bytes(&head->name[i], first[i].text, first[i].length));
            head->name[i][sdr_csv_unquote(&first[i], head->name[i])] = 0;
        } else {
            char name[16];
            snprintf(name, sizeof name, "c%u", i + 1);
            SDR_TRY(sdr_copy_string(&head->name[i], name));
        }
    }
    return SDR_OK;
}

static void look_at_lines(const struct sdr_csv_head *head, const char *at, const char *end,
                          const struct sdr_csv_cell *first, struct column_look *look)
{
    uint64_t skipped = 0;
    while ((at = sdr_csv_skip_empty(at, end, &skipped)) < end) {
        struct sdr_csv_cell cell = {.next = at};
        uint32_t i = 0;
        do {
            sdr_csv_cell_read(cell.next, end, head->separator, &cell);
            if (i < head->columns && !cell.open)
                look_at_cell(&look[i], &first[i], &cell);
            i++;
        } while (cell.more);
        at = cell.next;
    }
}

enum sdr_status sdr_csv_head_read(const struct sdr_csv_options *options,
                                  const struct sdr_schema *known, const char *path,
                                  const char *bytes, size_t count, struct sdr_csv_head *head)
{
    struct sdr_csv_cell *first = NULL;
    struct column_look *look = NULL;
    enum sdr_status status;
    uint32_t columns;
    uint64_t skipped = 0;
    bool even;
    *head = (struct sdr_csv_head){0};
    const char *end = whole_lines(bytes, count);
    const char *at = sdr_csv_skip_empty(sdr_csv_skip_mark(bytes, end), end, &skipped);
    if (at == end)
        return sdr_fail(SDR_BAD_DATA, "%s: the file is empty", path);
    if (options->separator)
        SDR_TRY(separator_option(options->separator, &head->separator));
    else if (!(head->separator = sdr_csv_guess_separator(bytes, count, &columns, &even)))
        head->separator = ','; /* a single column */
    head->header_line = at;
    head->columns = count_cells(&at, end, head->separator);
    head->header_length = (size_t)(at - head->header_line);
    SDR_CHECK(sdr_allocate(&first, head->columns, sizeof *first, "the columns"));
    SDR_CHECK(sdr_allocate(&look, head->columns, sizeof *look, "the columns"));
    SDR_CHECK(sdr_allocate(&head->name, head->columns, sizeof *head->name, "the columns"));
    SDR_CHECK(sdr_allocate(&head->type, head->columns, sizeof *head->type, "the columns"));
    const char *cell = head->header_line;
    for (uint32_t i = 0; i < head->columns; i++) {
        sdr_csv_cell_read(cell, end, head->separator, &first[i]);
        cell = first[i].next;
    }
    look_at_lines(head, at, end, first, look);
    head->header = options->header == SDR_CSV_HEADER_YES ||
                   (options->header == SDR_CSV_HEADER_AUTO &&
                    looks_like_header(first, look, head->columns, known));
    for (uint32_t i = 0; i < head->columns; i++) {
        if (!head->header)
            look_at_cell(&look[i], NULL, &first[i]);
        head->type[i] = type_of(&look[i]);
    }
    status = name_columns(head, first);
cleanup:
    sdr_release(first);
    sdr_release(look);
    return status;
}

void sdr_csv_head_free(struct sdr_csv_head *head)
{
    for (uint32_t i = 0; head->name && i < head->columns; i++)
        sdr_release(head->name[i]);
    sdr_release(head->name);
    sdr_release(head->type);
    *head = (struct sdr_csv_head){0};
}
