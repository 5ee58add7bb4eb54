/* Vowpal Wabbit text, one row per line:
     label [importance [base]] ['tag]|namespace[:scale] feature[:value] feature … |namespace …
   Features are numbered by hashing: the low `bits` (default 18) of hash64(feature, seed =
   hash64(namespace, seed = 0)), also for all-digit names. Colliding features of a row are summed. A
   value is 1 by default, times the scale of its namespace. The importance is the row's weight; the
   base (an initial prediction) is checked and ignored. As in Vowpal Wabbit a word that touches the
   first '|' is a tag; tags are ignored. */
#include "base/hash.h"
#include "data/data.h"
#include "data/token.h"
#include <math.h>
#include <string.h>

enum { BITS_PRESET = 18 };

struct state {
    unsigned bits;
    bool labels_optional;
};

/* The current line. */
struct scan {
    const struct state *state;
    struct sdr_piece *piece;
    struct sdr_fold fold;
    const char *line, *end; /* end: without the newline */
    uint64_t line_number;
};

#define FAIL_AT(place, ...)                                                                        \
    sdr_piece_fail(scan->piece, scan->line_number, (uint64_t)((place)-scan->line) + 1, __VA_ARGS__)

static enum sdr_status number(const struct scan *scan, const char *what, const char *at,
                              const char *end, float *value)
{
    char quote[SDR_QUOTE_BYTES];
    const char *why;
    if (at == end)
        return FAIL_AT(at, "the %s is missing behind the ':'", what);
    if (!sdr_token_float(at, end, value, &why))
        return FAIL_AT(at, "%s '%s' %s", what, sdr_quote(quote, at, end), why);
    return SDR_OK;
}

/* The first blank, tab, '|' or (if `colon`) ':' in [at, end), or end. */
static const char *word_end(const char *at, const char *end, bool colon)
{
    while (at < end && !sdr_is_blank(*at) && *at != '|' && !(colon && *at == ':'))
        at++;
    return at;
}

/* Parses the text before the first bar: up to three numbers and a tag. */
static enum sdr_status parse_head(struct scan *scan, const char *at, const char *bar)
{
    static const char *const what[] = {"label", "importance", "base"};
    struct sdr_piece *piece = scan->piece;
    uint64_t row = piece->rows;
    float found[3] = {SDR_MISSING_ROW_LABEL, 1, 0};
    unsigned count = 0;
    const char *tag = NULL, *label = at;
    size_t label_length = 0;
    for (at = sdr_skip_blanks(at, bar); at < bar; at = sdr_skip_blanks(at, bar)) {
        const char *end = word_end(at, bar, false);
        if (tag)
            return FAIL_AT(at, "only '|' may follow the tag");
        if (*at == '\'' || end == bar) {
            tag = at;
        } else if (count == 3) {
            return FAIL_AT(at, "more than label, importance and base before the '|'");
        } else {
            SDR_TRY(number(scan, what[count], at, end, &found[count]));
            if (count == 1 && found[1] < 0)
                return FAIL_AT(at, "the importance is negative");
            if (count == 0) {
                label = at;
                label_length = (size_t)(end - at);
            }
            count++;
        }
        at = end;
    }
    piece->label[row] = found[0];
    piece->weight[row] = found[1];
    piece->has_weights |= count >= 2;
    if (count)
        return sdr_piece_label_number(piece, found[0], label, label_length);
    if (!scan->state->labels_optional)
        return FAIL_AT(tag ? tag : bar, "the label is missing%s",
                       tag && *tag != '\'' ? ": a word that touches the '|' is a tag" : "");
    piece->lacks_labels = true;
    return SDR_OK;
}

/* Parses one namespace; `at` is behind its bar. *next is the next bar or the end of the line. */
static enum sdr_status parse_namespace(struct scan *scan, const char *at, const char **next)
{
    struct sdr_piece *piece = scan->piece;
    const uint64_t mask = (1ull << scan->state->bits) - 1;
    const char *name_end = word_end(at, scan->end, true), *end = name_end;
    uint64_t seed = sdr_hash64(at, (size_t)(name_end - at), 0);
    float scale = 1;
    if (name_end < scan->end && *name_end == ':') {
        end = word_end(name_end, scan->end, false);
        SDR_TRY(number(scan, "scale", name_end + 1, end, &scale));
    }
    for (;;) {
        at = sdr_skip_blanks(end, scan->end);
        if (at == scan->end || *at == '|')
            break;
        const char *colon = word_end(at, scan->end, true);
        float value = 1;
        end = colon;
        if (colon == at)
            return FAIL_AT(at, "a feature has no name");
        if (colon < scan->end && *colon == ':') {
            end = word_end(colon, scan->end, false);
            SDR_TRY(number(scan, "value", colon + 1, end, &value));
        }
        value *= scale;
        if (!isfinite(value))
            return FAIL_AT(at, "the value times the scale is too large for a 32-bit float");
        uint64_t hash = sdr_hash64(at, (size_t)(colon - at), seed);
        piece->index[piece->entries] = (uint32_t)(hash & mask);
        piece->value[piece->entries++] = value;
    }
    *next = at;
    return SDR_OK;
}

static enum sdr_status parse_row(struct scan *scan, const char *at)
{
    struct sdr_piece *piece = scan->piece;
    if (piece->rows == piece->row_room)
        SDR_TRY(sdr_piece_reserve(piece, piece->entry_room, 2 * piece->rows + 1024));
    uint64_t start = piece->entries;
    const char *bar = memchr(at, '|', (size_t)(scan->end - at));
    if (!bar)
        return FAIL_AT(at, "there is no '|' in the line");
    SDR_TRY(parse_head(scan, at, bar));
    for (at = bar; at < scan->end;)
        SDR_TRY(parse_namespace(scan, at + 1, &at));

    uint64_t count = piece->entries - start;
    SDR_TRY(sdr_fold_row(&scan->fold, piece->index + start, piece->value + start, &count));
    piece->entries = start + count;
    for (uint64_t i = start; i < piece->entries; i++)
        if (!isfinite(piece->value[i]))
            return FAIL_AT(bar, "values that share a hashed feature overflow when summed");
    if (count && piece->index[piece->entries - 1] >= piece->features)
        piece->features = piece->index[piece->entries - 1] + 1;
    piece->end[piece->rows++] = piece->entries;
    return SDR_OK;
}

/* Refuses control characters: the file is not text. */
static enum sdr_status check_text(const struct scan *scan)
{
    for (const char *p = scan->line; p < scan->end; p++)
        if (((unsigned char)*p < ' ' && *p != '\t') || *p == 0x7F)
            return FAIL_AT(p, "byte 0x%02x does not belong in a text file", (unsigned char)*p);
    return SDR_OK;
}

static enum sdr_status parse(const void *state, const char *bytes, size_t count, bool first,
                             struct sdr_piece *piece)
{
    struct scan scan = {.state = state, .piece = piece};
    enum sdr_status status = SDR_OK;
    const char *at = bytes, *end = bytes + count;
    if (first && count >= 3 && memcmp(bytes, "\xEF\xBB\xBF", 3) == 0)
        at += 3; /* byte order mark */
    if (piece->entry_room - piece->entries < count / 2 + 64)
        SDR_TRY(sdr_piece_reserve(piece, piece->entries + count / 2 + 64, piece->row_room));
    while (at < end) {
        const char *next = sdr_next_line(at, end);
        scan.line = at;
        scan.line_number = ++piece->lines;
        scan.end = next - (next > at && next[-1] == '\n');
        scan.end -= scan.end > at && scan.end[-1] == '\r';
        at = sdr_skip_blanks(at, scan.end);
        if (at < scan.end) {
            SDR_CHECK(check_text(&scan));
            SDR_CHECK(parse_row(&scan, at));
        }
        at = next;
    }
cleanup:
    sdr_fold_free(&scan.fold);
    return status;
}

static enum sdr_status open_format(void *opaque, struct sdr_reading *reading, const char *head,
                                   size_t count)
{
    struct state *state = opaque;
    struct sdr_schema *schema = reading->schema;
    (void)head;
    (void)count;
    state->bits = reading->known ? reading->known->bits : reading->options->bits;
    if (state->bits == 0)
        state->bits = BITS_PRESET;
    state->labels_optional = reading->options->labels_optional;
    sdr_release(schema->format);
    schema->format = NULL;
    schema->bits = state->bits;
    schema->base = 0;
    schema->features = schema->numbers = 1u << state->bits;
    return sdr_copy_string(&schema->format, "vw");
}

/* Every line has a bar, and before the first only numbers and a tag. */
static int recognise(const char *head, size_t count)
{
    const char *at = head, *end = head + count;
    int score = 0;
    for (unsigned lines = 0; at < end && lines < 20; lines++) {
        const char *next = sdr_next_line(at, end);
        bool whole = next[-1] == '\n';
        at = sdr_skip_blanks(at, next);
        if (sdr_at_line_end(at, next)) {
            at = next;
            continue;
        }
        const char *bar = memchr(at, '|', (size_t)(next - at));
        if (!bar)
            return whole || !score ? 0 : score;
        bool apart = bar == at || sdr_is_blank(bar[-1]);
        while (at < bar) {
            const char *stop = word_end(at, bar, false), *why;
            float value;
            bool tag = *at == '\'';
            if (!tag && stop < bar && !sdr_token_float(at, stop, &value, &why))
                return 0;
            apart |= tag;
            at = sdr_skip_blanks(stop, bar);
        }
        int line_score = apart ? 85 : 20; /* "a|b|c" may also be a table */
        score = score && score < line_score ? score : line_score;
        at = next;
    }
    return score;
}

SDR_REGISTER(format, vw) = {
    .name = "vw",
    .summary = "Vowpal Wabbit text: label [importance] |namespace feature:value …, features hashed",
    .extensions = "vw",
    .takes = "bits",
    .state_size = sizeof(struct state),
    .recognise = recognise,
    .open = open_format,
    .parse = parse,
};
