/* What the parts of the CSV reader share: how a record falls into cells, and what each cell means.

       csv_head.c     the head of a file → separator, header line, names and types of its columns
       csv_columns.c  options or a known schema → what each column of this file is for
       csv.c          chunks → rows                                                             */
#ifndef SDR_DATA_CSV_H
#define SDR_DATA_CSV_H

#include "data/data.h"

/* The options behind "csv:". */
struct sdr_csv_options {
    char *separator; /* NULL: guessed */
    int header;      /* enum sdr_csv_header */
};
enum sdr_csv_header { SDR_CSV_HEADER_AUTO, SDR_CSV_HEADER_YES, SDR_CSV_HEADER_NO };

struct sdr_csv_column {
    enum sdr_column_kind kind;
    uint32_t feature;    /* NUMBER */
    char *name, *prefix; /* owned; prefix is "name=", what category texts begin with */
    size_t prefix_length;
};

/* The state of an open reader: const while chunks are parsed. */
struct sdr_csv {
    char separator;
    bool header, text_labels, has_labels, has_weights, labels_optional;
    bool known;   /* the columns are those of a model */
    bool ordered; /* features increase in the order of the cells */
    enum sdr_missing missing;
    struct sdr_csv_column *column; /* owned; one per cell of a line */
    uint32_t columns, numbers;
    char *header_line; /* owned; later files must begin with the same one */
    size_t header_length;
};

/* What the head of a file tells. */
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
    const char *twice;            /* a name that two columns have, or NULL */
    enum sdr_csv_type *type;      /* owned */
    struct sdr_csv_text *example; /* owned: the first number with a comma in each column */
    const char *header_line;      /* borrowed from the head */
    size_t header_length;
};
/* Free the head in every case. */
enum sdr_status sdr_csv_head_read(const struct sdr_reading *reading, const char *bytes,
                                  size_t count, struct sdr_csv_head *head);
void sdr_csv_head_free(struct sdr_csv_head *head);
/* For recognise(): the likely separator and its columns, 0 if there is none, and whether all lines
   agree on it. */
char sdr_csv_guess_separator(const char *bytes, size_t count, bool head_cut, uint32_t *columns,
                             bool *even);
/* Whole records in a head whose last line may be cut: `records` of the format. */
uint32_t sdr_csv_records(const void *options, const char *bytes, size_t count);
/* Fills the columns of csv, and those of the schema if none is known. */
enum sdr_status sdr_csv_columns_find(struct sdr_csv *csv, struct sdr_reading *reading,
                                     const struct sdr_csv_head *head);

/* One cell. The text is without surrounding blanks and quotes; doubled quotes are still doubled. */
struct sdr_csv_cell {
    const char *text;
    size_t length;
    const char *start, *next; /* its first byte in the record; behind its separator or line end */
    const char *last_line;    /* the line its end is on, if newlines > 0 */
    uint32_t newlines;        /* inside the quotes */
    bool more;                /* a separator follows, so another cell does */
    bool quoted, doubled;
    bool open, dirty; /* no closing quote; text behind the closing quote */
};

static inline bool sdr_csv_blank(char c, char separator)
{
    return c == ' ' || (c == '\t' && separator != '\t');
}

/* The cell that starts at `at` ≤ end. */
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

/* Copies the text with doubled quotes made single; `to` has room for cell->length bytes. */
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
/* inf, -inf, Infinity … in any case: meant as a number, but none to learn from. */
bool sdr_csv_is_infinite(const char *text, size_t length);
/* "12,095": a number with commas between its thousands. */
bool sdr_csv_is_grouped(const char *text, size_t length);
/* "$1200", "12 %", "5 km": a number with a sign or unit that keeps it from being read as one. */
bool sdr_csv_is_decorated(const char *text, size_t length);
/* Behind a byte order mark, if there is one. */
const char *sdr_csv_skip_mark(const char *bytes, const char *end);
/* Behind the empty lines; counts them. */
const char *sdr_csv_skip_empty(const char *at, const char *end, uint64_t *lines);

#endif
