/* Triples: one rating per line, `user item rating [time]`, as in data of recommenders (MovieLens
   and others). Fields are separated by blanks, tabs, commas or "::". The first line may be a
   header; if it names users and items, columns may be in any order. Users and items are arbitrary
   texts. A rating is a row with the two categories "user:ID" and "item:ID", each of value 1, and
   the rating as its label. The fourth field is ignored. */
#include "data/data.h"
#include "data/token.h"
#include <string.h>

enum separator { BLANKS, TAB, COMMA, COLONS };
enum { FIELDS_MOST = 4, ID_MOST = 250 };

/* Field numbers from 0; FIELDS_MOST: absent. */
struct columns {
    unsigned user, item, rating;
};

struct state {
    enum separator separator;
    struct columns columns;
    bool labels_optional;
};

struct field {
    const char *at, *end;
};

static const char *field_end(enum separator separator, const char *at, const char *end)
{
    const char *found = NULL;
    switch (separator) {
    case TAB: found = memchr(at, '\t', (size_t)(end - at)); break;
    case COMMA: found = memchr(at, ',', (size_t)(end - at)); break;
    case COLONS:
        for (found = at; end - found >= 2 && memcmp(found, "::", 2) != 0; found++)
            ;
        found = end - found >= 2 ? found : NULL;
        break;
    case BLANKS:
        for (found = at; found < end && !sdr_is_blank(*found); found++)
            ;
        break;
    }
    return found ? found : end;
}

/* Splits the line [at, end) into fields without surrounding blanks; returns their number,
   FIELDS_MOST + 1 if there are more. */
static unsigned split(enum separator separator, const char *at, const char *end,
                      struct field field[FIELDS_MOST + 1])
{
    unsigned count = 0;
    while (end > at && sdr_is_blank(end[-1]) && separator != TAB)
        end--;
    for (;;) {
        if (separator != TAB)
            at = sdr_skip_blanks(at, end);
        const char *stop = field_end(separator, at, end), *last = stop;
        while (last > at && sdr_is_blank(last[-1]))
            last--;
        field[count++] = (struct field){at, last};
        if (stop == end || count > FIELDS_MOST)
            return count;
        at = stop + (separator == COLONS ? 2 : 1);
        if (separator == BLANKS)
            at = sdr_skip_blanks(at, end);
    }
}

/* The end of the text of the line that starts at `at`, without the newline. */
static const char *line_text_end(const char *at, const char *next)
{
    const char *end = next - (next > at && next[-1] == '\n');
    return end - (end > at && end[-1] == '\r');
}

/* Adds the category "user:ID" or "item:ID". */
static enum sdr_status add_id(struct sdr_piece *piece, const char *kind, const char *line,
                              struct field field)
{
    char text[8 + ID_MOST];
    size_t kind_length = strlen(kind), length = (size_t)(field.end - field.at);
    uint64_t column = (uint64_t)(field.at - line) + 1;
    if (length == 0)
        return sdr_piece_fail(piece, piece->lines, column, "the %s is missing", kind);
    if (length > ID_MOST)
        return sdr_piece_fail(piece, piece->lines, column, "the %s has more than %d bytes", kind,
                              ID_MOST);
    for (const char *p = field.at; p < field.end; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7F)
            return sdr_piece_fail(piece, piece->lines, (uint64_t)(p - line) + 1,
                                  "byte 0x%02x does not belong in a text file", (unsigned char)*p);
    memcpy(text, kind, kind_length);
    text[kind_length] = ':';
    memcpy(text + kind_length + 1, field.at, length);
    piece->value[piece->entries] = 1;
    return sdr_piece_category(piece, text, kind_length + 1 + length,
                              &piece->index[piece->entries++]);
}

static enum sdr_status parse_rating(struct sdr_piece *piece, const char *line, struct field field)
{
    char quote[SDR_QUOTE_BYTES];
    const char *why;
    uint64_t column = (uint64_t)(field.at - line) + 1;
    if (field.at == field.end)
        return sdr_piece_fail(piece, piece->lines, column, "the rating is missing");
    if (!sdr_token_float(field.at, field.end, &piece->label[piece->rows], &why))
        return sdr_piece_fail(piece, piece->lines, column, "rating '%s' %s",
                              sdr_quote(quote, field.at, field.end), why);
    return sdr_piece_label_number(piece, piece->label[piece->rows], field.at,
                                  (size_t)(field.end - field.at));
}

static enum sdr_status parse_row(const struct state *state, struct sdr_piece *piece,
                                 const char *line, const char *end, const struct field *field,
                                 unsigned count)
{
    if (piece->rows == piece->row_room || piece->entry_room - piece->entries < 2)
        SDR_TRY(sdr_piece_reserve(piece, 2 * piece->entries + 1024, 2 * piece->rows + 1024));
    if (count > FIELDS_MOST)
        return sdr_piece_fail(piece, piece->lines, (uint64_t)(field[FIELDS_MOST].at - line) + 1,
                              "a line has a user, an item, a rating and at most a time");
    if (count < 2 || (count == 2 && !state->labels_optional))
        return sdr_piece_fail(piece, piece->lines, (uint64_t)(end - line) + 1, "the %s is missing",
                              count < 2 ? "item" : "rating");
    SDR_TRY(add_id(piece, "user", line, field[0]));
    SDR_TRY(add_id(piece, "item", line, field[1]));
    if (count >= 3) {
        SDR_TRY(parse_rating(piece, line, field[2]));
    } else {
        piece->label[piece->rows] = SDR_MISSING_ROW_LABEL;
        piece->lacks_labels = true;
    }
    piece->end[piece->rows++] = piece->entries;
    return SDR_OK;
}

static bool begins_with(struct field field, const char *word)
{
    size_t length = strlen(word), same = 0;
    while (same < length && field.at + same < field.end && (field.at[same] | 0x20) == word[same])
        same++;
    return same == length;
}

/* Whether a column's name is one of `words`, in any case and optionally followed by "id": user,
   userId, USER_ID, but not "user_age". The list ends with NULL. */
static bool is_called(struct field field, const char *const *words)
{
    char name[16];
    size_t length = 0;
    for (; field.at < field.end; field.at++) {
        if (*field.at == '_' || *field.at == '-' || *field.at == ' ')
            continue;
        if (length + 1 == sizeof name)
            return false;
        bool capital = *field.at >= 'A' && *field.at <= 'Z';
        name[length++] = (char)(*field.at | (capital ? 0x20 : 0));
    }
    name[length] = 0;
    for (; *words; words++) {
        size_t word = strlen(*words);
        if (strncmp(name, *words, word) == 0 && (!name[word] || strcmp(name + word, "id") == 0))
            return true;
    }
    return false;
}

static bool names_user(struct field field)
{
    static const char *const words[] = {"user", "customer", "reviewer", "member", NULL};
    return is_called(field, words);
}

static bool names_item(struct field field)
{
    static const char *const words[] = {"item",   "movie", "product", "book",     "song", "track",
                                        "artist", "anime", "game",    "business", NULL};
    return is_called(field, words);
}

static bool names_rating(struct field field)
{
    static const char *const words[] = {"rating", "stars", "score", NULL};
    return is_called(field, words);
}

static bool names_time(struct field field)
{
    static const char *const words[] = {"time", "timestamp", "date", "datetime", "t", "ts", NULL};
    return is_called(field, words);
}

/* Finds user, item and rating by the names of a header, in any order; false if it names no users
   and items: then they come first. */
static bool find_columns(const struct field *field, unsigned count, struct columns *columns)
{
    unsigned user = count, item = count, rating = count;
    for (unsigned i = count < FIELDS_MOST ? count : FIELDS_MOST; i-- > 0;) {
        user = names_user(field[i]) ? i : user;
        item = names_item(field[i]) ? i : item;
        rating = names_rating(field[i]) ? i : rating;
    }
    *columns = (struct columns){0, 1, 2};
    if (user == count || item == count)
        return false;
    for (unsigned i = 0; i < count && rating == count; i++) /* it may have any name */
        rating = i != user && i != item && !names_time(field[i]) ? i : count;
    *columns = (struct columns){user, item, rating < count ? rating : FIELDS_MOST};
    return true;
}

/* Reorders the fields of a line to user, item, rating; returns how many of these it has. */
static unsigned arrange(const struct columns *columns, struct field *field, unsigned count)
{
    struct field user = field[columns->user % count], item = field[columns->item % count],
                 rating = field[columns->rating % count];
    if (columns->user == 0 && columns->item == 1 &&
        (columns->rating == 2 || columns->rating == FIELDS_MOST))
        return count;
    if (columns->user >= count || columns->item >= count)
        return 1;
    field[0] = user;
    field[1] = item;
    field[2] = rating;
    return columns->rating < count ? 3 : 2;
}

/* A first line is a header if it names users and items, or if its rating begins like a word; "user7
   item3" is a pair. */
static bool is_header(const struct field *field, unsigned count)
{
    struct columns columns;
    if (find_columns(field, count, &columns))
        return true;
    if (count < 3)
        return false;
    if (begins_with(field[0], "user"))
        return field[2].at == field[2].end || !sdr_is_digit(*field[2].at);
    if (field[2].at == field[2].end)
        return false;
    unsigned char letter = (unsigned char)(*field[2].at | 0x20);
    return letter >= 'a' && letter <= 'z' && !begins_with(field[2], "nan") &&
           !begins_with(field[2], "inf");
}

/* Files read together must have the same order of columns. */
static enum sdr_status check_header(const struct state *state, struct sdr_piece *piece,
                                    const struct field *field, unsigned count)
{
    struct columns columns;
    find_columns(field, count, &columns);
    if (columns.user == state->columns.user && columns.item == state->columns.item)
        return SDR_OK;
    return sdr_piece_fail(piece, piece->lines, 1,
                          "the columns are in another order than in the first file");
}

static enum sdr_status parse(const void *state, const char *bytes, size_t count, bool first,
                             struct sdr_piece *piece)
{
    const struct state *triples = state;
    const char *at = bytes, *end = bytes + count, *next;
    struct field field[FIELDS_MOST + 1];
    if (first && count >= 3 && memcmp(bytes, "\xEF\xBB\xBF", 3) == 0)
        at += 3; /* byte order mark */
    for (; at < end; at = next) {
        next = sdr_next_line(at, end);
        const char *text_end = line_text_end(at, next);
        piece->lines++;
        if (sdr_skip_blanks(at, text_end) == text_end)
            continue;
        unsigned fields = split(triples->separator, at, text_end, field);
        if (first && piece->lines == 1 && is_header(field, fields)) {
            SDR_TRY(check_header(triples, piece, field, fields));
            continue;
        }
        if (fields <= FIELDS_MOST)
            fields = arrange(&triples->columns, field, fields);
        SDR_TRY(parse_row(triples, piece, at, text_end, field, fields));
    }
    return SDR_OK;
}

/* ---- the plug-in ---- */

static enum separator guess_separator(const char *at, const char *end)
{
    if (field_end(COLONS, at, end) < end)
        return COLONS;
    if (memchr(at, ',', (size_t)(end - at)))
        return COMMA;
    return memchr(at, '\t', (size_t)(end - at)) ? TAB : BLANKS;
}

/* The first non-blank line; false if there is none. */
static bool first_line(const char *head, size_t count, const char **at, const char **text_end)
{
    const char *end = head + count, *next;
    for (*at = head; *at < end; *at = next) {
        next = sdr_next_line(*at, end);
        *text_end = line_text_end(*at, next);
        if (sdr_skip_blanks(*at, *text_end) < *text_end)
            return true;
    }
    return false;
}

static enum sdr_status open_format(void *opaque, struct sdr_reading *reading, const char *head,
                                   size_t count)
{
    struct state *state = opaque;
    struct field field[FIELDS_MOST + 1];
    const char *at, *end;
    state->labels_optional = reading->options->labels_optional;
    state->columns = (struct columns){0, 1, 2};
    if (first_line(head, count, &at, &end)) {
        state->separator = guess_separator(at, end);
        find_columns(field, split(state->separator, at, end, field), &state->columns);
    }
    sdr_release(reading->schema->format);
    reading->schema->format = NULL;
    reading->schema->base = 0;
    return sdr_copy_string(&reading->schema->format, "triples");
}

/* Ids are texts or integers: 0.5 is a measurement. */
static bool is_id(struct field field)
{
    float number;
    const char *why;
    return field.at < field.end && !(memchr(field.at, '.', (size_t)(field.end - field.at)) &&
                                     sdr_token_float(field.at, field.end, &number, &why));
}

/* Whether a line has the fields of a rating; `pairs`: of a user and an item alone. */
static bool is_rating(const struct field *field, unsigned count, bool pairs)
{
    float rating;
    const char *why;
    if (count < 2 || !is_id(field[0]) || !is_id(field[1]))
        return false;
    return pairs ? count == 2
                 : count > 2 && count <= FIELDS_MOST &&
                       sdr_token_float(field[2].at, field[2].end, &rating, &why);
}

static bool has_time(const struct field *field)
{
    bool found = false;
    for (int i = 0; i < FIELDS_MOST; i++)
        found |= names_time(field[i]);
    return found;
}

/* Three or four fields, the third a number; or two below a header. Only "::" and a header that
   names users and items are certain: any table of numbers looks like this. A named fourth column
   other than a time makes it a table too, because reading it as ratings would drop that column. */
static int recognise(const char *head, size_t count)
{
    const char *at, *text_end, *end = head + count, *next;
    struct field field[FIELDS_MOST + 1];
    unsigned rows = 0;
    bool header = false, named = false, pairs = false;
    struct columns columns = {0, 1, 2};
    if (!first_line(head, count, &at, &text_end))
        return 0;
    enum separator separator = guess_separator(at, text_end);
    for (unsigned lines = 0; at < end && lines < 20; at = next, lines++) {
        next = sdr_next_line(at, end);
        if (next[-1] != '\n' && rows)
            break; /* incomplete at the end of the head */
        text_end = line_text_end(at, next);
        if (sdr_skip_blanks(at, text_end) == text_end)
            continue;
        unsigned fields = split(separator, at, text_end, field);
        if (lines == 0 && is_header(field, fields)) {
            header = find_columns(field, fields, &columns) || names_user(field[0]);
            if (fields > FIELDS_MOST || (fields == FIELDS_MOST && !has_time(field)))
                return 0;
            named = names_item(field[columns.item]) && columns.rating < fields &&
                    names_rating(field[columns.rating]) && !memchr(head, '"', count);
            pairs = fields == 2;
        } else if (!is_rating(field,
                              fields > FIELDS_MOST ? fields : arrange(&columns, field, fields),
                              pairs)) {
            return 0;
        } else {
            rows++;
        }
    }
    if (rows == 0)
        return 0;
    return named                           ? SDR_CONTENT_CERTAIN
           : pairs                         ? 20
           : separator == COLONS || header ? 85
           : separator == COMMA            ? 15
           : separator == TAB              ? 35
                                           : 55;
}

SDR_REGISTER(format, triples) = {
    .name = "triples",
    .summary = "ratings: user item rating, with blanks, tabs, commas or :: between",
    .extensions = "triples ratings",
    .takes = "",
    .state_size = sizeof(struct state),
    .recognise = recognise,
    .open = open_format,
    .parse = parse,
};
