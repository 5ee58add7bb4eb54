/* Shared by the parts of the CSV reader: splitting records into cells, and the meaning of columns.

   csv_head.c     the head of a file → separator, header line, names and types of columns
   csv_columns.c  options or a known schema → the role of each column
   csv.c          chunks → rows */
#ifndef SDR_DATA_CSV_H
#define SDR_DATA_CSV_H

#include "data/data.h"

/* Options of --format csv:KEY=VALUE. */
struct sdr_csv_options {
    char *separator; /* NULL: guess */
    int header;      /* enum sdr_csv_header */
};
enum sdr_csv_header { SDR_CSV_HEADER_AUTO, SDR_CSV_HEADER_YES, SDR_CSV_HEADER_NO };

struct sdr_csv_column {
    enum sdr_column_kind kind;
    uint32_t feature;    /* NUMBER */
    char *name, *prefix; /* owned; prefix is "name=", the start of its category texts */
    size_t prefix_length;
};

/* State of an open reader; constant while chunks are parsed. */
struct sdr_csv {
    char separator;
    bool header, text_labels, has_labels, has_weights, labels_optional;
    bool known;   /* the columns are those of a model */
    bool ordered; /* features increase in the order of cells */
    enum sdr_missing missing;
    struct sdr_csv_column *column; /* owned; one per cell of a record */
    uint32_t columns, numbers;
    char *header_line; /* owned; later files must start with the same one */
    size_t header_length;
};

/* Types that the head of a file shows. */
enum sdr_csv_type { SDR_CSV_NUMBERS, SDR_CSV_DECIMAL_COMMAS, SDR_CSV_THOUSANDS, SDR_CSV_TEXTS };
struct sdr_csv_text {
    const char *text; /* borrowed from the head; NULL: none */
    size_t length;
};
struct sdr_csv_head {
    char separator;
    bool header;
    uint32_t columns;
    char **name;                  /* owned; "c1", "c2" … without a header */
    struct sdr_dictionary names;  /* name → column */
    const char *twice;            /* a duplicate column name, or NULL */
    enum sdr_csv_type *type;      /* owned */
    struct sdr_csv_text *example; /* owned: the first number with a comma of each column */
    const char *header_line;      /* borrowed from the head */
    size_t header_length;
};
/* The caller frees the head, also after a failure. */
enum sdr_status sdr_csv_head_read(const struct sdr_reading *reading, const char *bytes,
                                  size_t count, struct sdr_csv_head *head);
void sdr_csv_head_free(struct sdr_csv_head *head);
/* For recognise(): the likely separator, its number of columns (0: none), and whether all lines
   agree. */
char sdr_csv_guess_separator(const char *bytes, size_t count, bool head_cut, uint32_t *columns,
                             bool *even);
/* Complete records in a head whose last line may be cut: `records` of the format. */
uint32_t sdr_csv_records(const void *options, const char *bytes, size_t count);
/* Sets the columns of csv, and those of the schema unless it is known. */
enum sdr_status sdr_csv_columns_find(struct sdr_csv *csv, struct sdr_reading *reading,
                                     const struct sdr_csv_head *head);

/* One cell. The text excludes surrounding blanks and quotes; doubled quotes are still doubled. */
struct sdr_csv_cell {
    const char *text;
    size_t length;
    const char *start, *next; /* its first byte; the byte after its separator or newline */
    const char *last_line;    /* start of its last line, if newlines > 0 */
    uint32_t newlines;        /* inside the quotes */
    bool more;                /* a separator and another cell follow */
    bool quoted, doubled;
    bool open, dirty; /* closing quote missing; text after the closing quote */
};

static inline bool sdr_csv_blank(char c, char separator)
{
    return c == ' ' || (c == '\t' && separator != '\t');
}

/* Reads the cell that starts at `at` ≤ end. */
static inline void sdr_csv_cell_read(const char *at, const char *end, char separator,
                                     struct sdr_csv_cell *cell)
{
    const char *p = at;
    *cell = (struct sdr_csv_cell){.start = at};
    while (p < end && sdr_csv_blank(*p, separator))
        p++;
    const char *text = p, *stop;
    if (p < end && *p == '"') {
        cell->quoted = true;
        text = ++p;
        for (;; p++) {
            if (p == end) {
                cell->open = true;
                break;
            }
            if (*p == '\n') {
                cell->newlines++;
                cell->last_line = p + 1;
            } else if (*p == '"') {
                if (p + 1 == end || p[1] != '"')
                    break;
                cell->doubled = true;
                p++;
            }
        }
        stop = p;
        if (p < end)
            p++;
        for (; p < end && *p != separator && *p != '\n'; p++)
            cell->dirty |= !sdr_csv_blank(*p, separator) && *p != '\r';
    } else {
        while (p < end && *p != separator && *p != '\n')
            p++;
        stop = p;
        if (stop > text && (p == end || *p == '\n') && stop[-1] == '\r')
            stop--;
        while (stop > text && sdr_csv_blank(stop[-1], separator))
            stop--;
    }
    cell->text = text;
    cell->length = (size_t)(stop - text);
    cell->more = p < end && *p == separator;
    cell->next = p < end ? p + 1 : end;
}

/* Copies the text with doubled quotes made single; `to` holds cell->length bytes. */
static inline size_t sdr_csv_unquote(const struct sdr_csv_cell *cell, char *to)
{
    size_t length = 0;
    for (size_t i = 0; i < cell->length; i++) {
        to[length++] = cell->text[i];
        if (cell->quoted && cell->text[i] == '"')
            i++;
    }
    return length;
}

/* Empty, NA, N/A, NaN, nan, null, NULL, ? */
bool sdr_csv_is_missing(const char *text, size_t length);
/* inf, -inf, Infinity … in any case: a number, but not finite. */
bool sdr_csv_is_infinite(const char *text, size_t length);
/* "12,095": a number with commas between its thousands. */
bool sdr_csv_is_grouped(const char *text, size_t length);
/* "$1200", "12 %", "5 km": a number with a currency sign or unit. */
bool sdr_csv_is_decorated(const char *text, size_t length);
/* Skips a byte order mark. */
const char *sdr_csv_skip_mark(const char *bytes, const char *end);
/* Skips and counts empty lines. */
const char *sdr_csv_skip_empty(const char *at, const char *end, uint64_t *lines);

#endif
