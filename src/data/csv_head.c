/* The head of a CSV file (its first 64 KB, or more if they hold fewer than 16 lines): guesses the
   separator, whether the first line is a header, and which columns are numbers. Options override
   every guess. */
#include "data/csv.h"
#include "data/token.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

bool sdr_csv_is_missing(const char *text, size_t length)
{
    switch (length) {
    case 0: return true;
    case 1: return *text == '?';
    case 2: return memcmp(text, "NA", 2) == 0;
    case 3:
        return memcmp(text, "N/A", 3) == 0 || memcmp(text, "NaN", 3) == 0 ||
               memcmp(text, "nan", 3) == 0;
    case 4: return memcmp(text, "null", 4) == 0 || memcmp(text, "NULL", 4) == 0;
    default: return false;
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

/* Counts the cells of the record at *at and moves *at behind it. */
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

/* The head without its last line, if that is incomplete. */
static const char *whole_lines(const char *bytes, size_t count, bool head_cut)
{
    const char *end = bytes + count;
    if (!head_cut)
        return end;
    const char *cut = end;
    while (cut > bytes && cut[-1] != '\n')
        cut--;
    return cut > bytes ? cut : end;
}

char sdr_csv_guess_separator(const char *bytes, size_t count, bool head_cut, uint32_t *columns,
                             bool *even)
{
    /* In order of preference: commas also occur in numbers and texts. */
    static const char candidates[] = "\t;,|";
    enum { LINES = 50 };
    const char *end = whole_lines(bytes, count, head_cut);
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

bool sdr_csv_is_grouped(const char *text, size_t length)
{
    const char *p = text, *end = text + length;
    p += p < end && (*p == '-' || *p == '+');
    const char *first = p;
    while (p < end && sdr_is_digit(*p))
        p++;
    if (p == first || p - first > 3 || *first == '0' || p == end || *p != ',')
        return false;
    for (; p < end && *p == ','; p += 4)
        if (end - p < 4 || !sdr_is_digit(p[1]) || !sdr_is_digit(p[2]) || !sdr_is_digit(p[3]))
            return false;
    if (p < end && *p == '.')
        for (p++; p < end && sdr_is_digit(*p);)
            p++;
    return p == end;
}

static bool is_number_in_any_form(const char *text, size_t length)
{
    return is_number(text, length) || is_decimal_comma(text, length) ||
           sdr_csv_is_grouped(text, length);
}

/* Length of a currency sign, currency code or '%' at the start of the text; 0: none. */
static size_t sign_length(const char *text, const char *end)
{
    static const char *const signs[] = {"$",   "%",   "€",   "£",   "¥",   "₹",
                                        "₽", "₩",   "USD", "EUR", "GBP", "CHF",
                                        "JPY", "CNY", "INR", "CAD", "AUD"};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        size_t length = strlen(signs[i]);
        if ((size_t)(end - text) >= length && memcmp(text, signs[i], length) == 0)
            return length;
    }
    return 0;
}

/* Up to three letters behind a blank: "12 km". */
static bool is_unit(const char *text, const char *end)
{
    const char *p = text + 1;
    while (p < end && ((*p | 32) >= 'a' && (*p | 32) <= 'z'))
        p++;
    return *text == ' ' && p == end && end - text >= 2 && end - text <= 4;
}

bool sdr_csv_is_decorated(const char *text, size_t length)
{
    const char *end = text + length, *from = text, *to;
    from += from < end && *from == '-' && sign_length(from + 1, end);
    from += sign_length(from, end);
    from = sdr_skip_blanks(from, end);
    for (to = from;
         to < end && (sdr_is_digit(*to) || *to == '+' || *to == '-' || *to == '.' || *to == ',');)
        to++;
    const char *behind = sdr_skip_blanks(to, end);
    size_t sign = sign_length(behind, end);
    if (behind + sign != end && !(to < end && is_unit(to, end)))
        return false;
    return (from > text || to < end) && is_number_in_any_form(from, (size_t)(to - from));
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

/* Facts about a column from the lines below the first. */
struct column_facts {
    uint64_t numbers, commas, grouped, decorated, texts; /* cells of each kind */
    const char *example; /* the first cell with a comma, borrowed from the head */
    size_t example_length;
    bool recurs; /* the first line's text occurs again */
};

static void count_cell(struct column_facts *facts, const struct sdr_csv_cell *first,
                       const struct sdr_csv_cell *cell)
{
    if (first && same_text(first, cell))
        facts->recurs = true;
    if (sdr_csv_is_missing(cell->text, cell->length))
        return;
    bool grouped = sdr_csv_is_grouped(cell->text, cell->length);
    if (is_number(cell->text, cell->length) || sdr_csv_is_infinite(cell->text, cell->length)) {
        facts->numbers++;
    } else if (grouped || is_decimal_comma(cell->text, cell->length)) {
        facts->grouped += grouped;
        facts->commas += !grouped;
        if (!facts->example) {
            facts->example = cell->text;
            facts->example_length = cell->length;
        }
    } else if (sdr_csv_is_decorated(cell->text, cell->length)) {
        facts->decorated++;
    } else {
        facts->texts++;
    }
}

static bool holds_numbers(const struct column_facts *facts)
{
    return facts->numbers + facts->commas + facts->grouped + facts->decorated && !facts->texts;
}

static enum sdr_status names_of(const struct sdr_schema *known, struct sdr_dictionary *names)
{
    uint32_t number;
    for (uint32_t k = 0; known && k < known->columns; k++)
        if (known->column[k].kind != SDR_COLUMN_IGNORED)
            SDR_TRY(sdr_dictionary_find(names, known->column[k].name, strlen(known->column[k].name),
                                        true, &number));
    return SDR_OK;
}

static enum sdr_status are_distinct(const struct sdr_csv_cell *first, uint32_t columns,
                                    struct sdr_dictionary *texts, bool *distinct)
{
    uint32_t number;
    sdr_dictionary_clear(texts);
    *distinct = true;
    for (uint32_t i = 0; i < columns && *distinct; i++) {
        SDR_TRY(sdr_dictionary_find(texts, first[i].text, first[i].length, true, &number));
        *distinct = number == i;
    }
    return SDR_OK;
}

/* A header contains no number. It stands above a column of numbers, or consists of distinct words
   that do not occur below, or of distinct texts with no rows below. A name of the known schema
   always makes it a header. */
static enum sdr_status looks_like_header(const struct sdr_csv_cell *first,
                                         const struct column_facts *facts, uint32_t columns,
                                         uint64_t rows, const struct sdr_schema *known,
                                         struct sdr_dictionary *texts, bool *header)
{
    bool above_numbers = false, words = true, empty = false;
    SDR_TRY(names_of(known, texts));
    *header = true;
    for (uint32_t i = 0; i < columns; i++) {
        const struct sdr_csv_cell *cell = &first[i];
        if (sdr_dictionary_number(texts, cell->text, cell->length) != UINT32_MAX)
            return SDR_OK;
        if (is_number(cell->text, cell->length) ||
            (cell->length && sdr_csv_is_missing(cell->text, cell->length))) {
            *header = false;
            return SDR_OK;
        }
        above_numbers |= holds_numbers(&facts[i]);
        words &= is_word(cell) && !facts[i].recurs;
        empty |= cell->length == 0;
    }
    bool alone = rows == 0 && !known && !empty;
    if (above_numbers || (!words && !alone)) {
        *header = above_numbers;
        return SDR_OK;
    }
    return are_distinct(first, columns, texts, header);
}

/* Cells that are not numbers make a category column, unless they are so few that they must be
   errors; those are reported where they occur. */
static enum sdr_csv_type type_of(const struct column_facts *facts)
{
    if ((facts->texts + facts->decorated) * 10 > facts->numbers + facts->commas + facts->grouped)
        return SDR_CSV_TEXTS;
    return facts->commas    ? SDR_CSV_DECIMAL_COMMAS
           : facts->grouped ? SDR_CSV_THOUSANDS
                            : SDR_CSV_NUMBERS;
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

uint32_t sdr_csv_records(const void *format_options, const char *bytes, size_t count)
{
    const struct sdr_csv_options *options = format_options;
    const char *end = bytes + count;
    uint32_t records = 0, columns;
    uint64_t skipped = 0;
    bool even;
    char separator = 0;
    if (memchr(bytes, 0, count))
        return UINT32_MAX; /* not text: open() refuses it */
    if (!options->separator)
        separator = sdr_csv_guess_separator(bytes, count, true, &columns, &even);
    else if (separator_option(options->separator, &separator) != SDR_OK)
        return UINT32_MAX;
    const char *at = sdr_csv_skip_mark(bytes, end);
    while ((at = sdr_csv_skip_empty(at, end, &skipped)) < end) {
        struct sdr_csv_cell cell = {.next = at};
        do
            sdr_csv_cell_read(cell.next, end, separator ? separator : ',', &cell);
        while (cell.more);
        at = cell.next;
        records += !cell.open && at[-1] == '\n';
    }
    return records;
}

/* Names an unnamed column by its position, c7, or c7_, c7__ … if that name is taken. */
static enum sdr_status name_by_place(struct sdr_csv_head *head, uint32_t i,
                                     const struct sdr_dictionary *given)
{
    struct sdr_text name = {0};
    sdr_text_add(&name, "c%u", i + 1);
    while (!name.failed && sdr_dictionary_number(given, name.bytes, name.length) != UINT32_MAX)
        sdr_text_add(&name, "_");
    return sdr_text_take(&name, &head->name[i]);
}

/* `given`: an empty dictionary to work with. */
static enum sdr_status name_columns(struct sdr_csv_head *head, const struct sdr_csv_cell *first,
                                    struct sdr_dictionary *given)
{
    uint32_t number;
    for (uint32_t i = 0; i < head->columns; i++) {
        if (!head->header || !first[i].length)
            continue;
        SDR_TRY(sdr_copy_bytes(&head->name[i], first[i].text, first[i].length));
        size_t length = sdr_csv_unquote(&first[i], head->name[i]);
        head->name[i][length] = 0;
        SDR_TRY(sdr_dictionary_find(given, head->name[i], length, true, &number));
    }
    for (uint32_t i = 0; i < head->columns; i++) {
        if (!head->name[i])
            SDR_TRY(name_by_place(head, i, given));
        SDR_TRY(
            sdr_dictionary_find(&head->names, head->name[i], strlen(head->name[i]), true, &number));
        if (number != i && !head->twice)
            head->twice = head->name[i];
    }
    return SDR_OK;
}

/* Returns the number of lines. */
static uint64_t scan_lines(const struct sdr_csv_head *head, const char *at, const char *end,
                           const struct sdr_csv_cell *first, struct column_facts *facts)
{
    uint64_t skipped = 0, lines = 0;
    while ((at = sdr_csv_skip_empty(at, end, &skipped)) < end) {
        struct sdr_csv_cell cell = {.next = at};
        uint32_t i = 0;
        do {
            sdr_csv_cell_read(cell.next, end, head->separator, &cell);
            if (i < head->columns && !cell.open)
                count_cell(&facts[i], &first[i], &cell);
            i++;
        } while (cell.more);
        at = cell.next;
        lines++;
    }
    return lines;
}

enum sdr_status sdr_csv_head_read(const struct sdr_reading *reading, const char *bytes,
                                  size_t count, struct sdr_csv_head *head)
{
    const struct sdr_csv_options *options = reading->format_options;
    struct sdr_dictionary texts = {0};
    struct sdr_csv_cell *first = NULL;
    struct column_facts *facts = NULL;
    enum sdr_status status;
    uint32_t columns;
    uint64_t skipped = 0;
    bool even;
    *head = (struct sdr_csv_head){0};
    const char *end = whole_lines(bytes, count, reading->head_cut);
    const char *at = sdr_csv_skip_empty(sdr_csv_skip_mark(bytes, end), end, &skipped);
    if (at == end)
        return sdr_fail(SDR_BAD_DATA, "%s: the file is empty", reading->path);
    if (options->separator)
        SDR_TRY(separator_option(options->separator, &head->separator));
    else if (!(head->separator =
                   sdr_csv_guess_separator(bytes, count, reading->head_cut, &columns, &even)))
        head->separator = ','; /* a single column */
    head->header_line = at;
    head->columns = count_cells(&at, end, head->separator);
    head->header_length = (size_t)(at - head->header_line);
    SDR_CHECK(sdr_allocate(&first, head->columns, sizeof *first, "the columns"));
    SDR_CHECK(sdr_allocate(&facts, head->columns, sizeof *facts, "the columns"));
    SDR_CHECK(sdr_allocate(&head->name, head->columns, sizeof *head->name, "the columns"));
    SDR_CHECK(sdr_allocate(&head->type, head->columns, sizeof *head->type, "the columns"));
    SDR_CHECK(sdr_allocate(&head->example, head->columns, sizeof *head->example, "the columns"));
    const char *cell = head->header_line;
    for (uint32_t i = 0; i < head->columns; i++) {
        sdr_csv_cell_read(cell, end, head->separator, &first[i]);
        cell = first[i].next;
    }
    uint64_t rows = scan_lines(head, at, end, first, facts);
    head->header = options->header == SDR_CSV_HEADER_YES;
    if (options->header == SDR_CSV_HEADER_AUTO)
        SDR_CHECK(looks_like_header(first, facts, head->columns, rows, reading->known, &texts,
                                    &head->header));
    for (uint32_t i = 0; i < head->columns; i++) {
        if (!head->header)
            count_cell(&facts[i], NULL, &first[i]);
        head->type[i] = type_of(&facts[i]);
        head->example[i] = (struct sdr_csv_text){facts[i].example, facts[i].example_length};
    }
    sdr_dictionary_clear(&texts);
    status = name_columns(head, first, &texts);
cleanup:
    sdr_dictionary_free(&texts);
    sdr_release(first);
    sdr_release(facts);
    return status;
}

void sdr_csv_head_free(struct sdr_csv_head *head)
{
    for (uint32_t i = 0; head->name && i < head->columns; i++)
        sdr_release(head->name[i]);
    sdr_release(head->name);
    sdr_release(head->type);
    sdr_release(head->example);
    sdr_dictionary_free(&head->names);
    *head = (struct sdr_csv_head){0};
}
