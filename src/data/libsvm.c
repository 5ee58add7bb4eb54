/* LIBSVM / SVMlight text, one row per line:
     label [qid:N] index:value index:value …   # comment
   Indices rise strictly within a row; empty lines and comment lines hold no row. There are two
   readers: a quick one (libsvm_quick.c, libsvm_wide.c) for plain entries, which are nearly all; the
   careful one here for everything else, which also locates and explains errors. */
#include "data/libsvm.h"
#include "base/hash.h"
#include "data/data.h"
#include "data/token.h"
#include <math.h>
#include <string.h>

enum { INDEX_MOST = 2147483646 }; /* so that the feature count stays below SDR_CATEGORY_BIT */

/* ---- the careful reader ---- */

#define FAIL_AT(place, ...)                                                                        \
    sdr_piece_fail(piece, scan->line_number, (uint64_t)((place)-scan->line) + 1, __VA_ARGS__)

/* Tokens end at blanks, at the end of the line and at a comment. */
static const char *token_end(const char *at, const char *end)
{
    const char *stop = sdr_token_end(at, end);
    const char *comment = memchr(at, '#', (size_t)(stop - at));
    return comment ? comment : stop;
}

/* Control bytes get their own message: the file is probably not text. */
static enum sdr_status fail_token(const struct sdr_libsvm_scan *scan, struct sdr_piece *piece,
                                  const char *at, const char *end, const char *before,
                                  const char *after)
{
    char quote[SDR_QUOTE_BYTES];
    for (const char *p = at; p < end; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7F)
            return FAIL_AT(p, "byte 0x%02x does not belong in a text file", (unsigned char)*p);
    return FAIL_AT(at, "%s '%s' %s", before, sdr_quote(quote, at, end), after);
}

/* Parses "index:value" or skips "qid:N"; returns the byte after it, or NULL with the error
   recorded. */
static const char *careful_entry(struct sdr_libsvm_scan *scan, struct sdr_piece *piece,
                                 const char *at)
{
    const char *end = token_end(at, scan->end), *p = at, *why;
    uint64_t index = 0;
    if (end - at > 4 && memcmp(at, "qid:", 4) == 0) {
        for (p = at + 4; p < end && sdr_is_digit(*p); p++)
            ;
        if (p == end)
            return end;
        fail_token(scan, piece, at, end, "query", "is not qid: and a whole number");
        return NULL;
    }
    for (; p < end && sdr_is_digit(*p); p++)
        if (index <= INDEX_MOST)
            index = index * 10 + (uint64_t)(*p - '0');
    if (p == at) {
        bool negative = end - at > 1 && *at == '-' && sdr_is_digit(at[1]);
        fail_token(scan, piece, at, end, "entry",
                   negative ? "has a negative index" : "does not begin with an index");
    } else if (p == end || *p != ':') {
        fail_token(scan, piece, at, end, "entry", "is not index:value");
    } else if (index > INDEX_MOST) {
        fail_token(scan, piece, at, p, "index", "is too large: at most 2147483646 is possible");
    } else if (p + 1 == end) {
        fail_token(scan, piece, at, end, "entry", "has no value");
    } else if (!sdr_token_float(p + 1, end, &scan->value[scan->count], &why)) {
        fail_token(scan, piece, p + 1, end, "value", why);
    } else if ((int64_t)index <= scan->last && index == 0) {
        FAIL_AT(at, "index 0, but here the first index is 1");
    } else if ((int64_t)index <= scan->last) {
        FAIL_AT(at,
                "index %llu does not rise above %lld: indices must be in increasing order without "
                "repeats",
                (unsigned long long)index, (long long)scan->last);
    } else {
        scan->index[scan->count++] = (uint32_t)index;
        scan->last = (int64_t)index;
        return end;
    }
    return NULL;
}

/* Parses the label of the row; *next is the byte after it. */
static enum sdr_status parse_label(const struct sdr_libsvm *state, struct sdr_libsvm_scan *scan,
                                   struct sdr_piece *piece, const char *at, const char **next)
{
    const char *end = token_end(at, scan->end), *why;
    float *label = &piece->label[piece->rows];
    *next = end;
    if (memchr(at, ':', (size_t)(end - at))) {
        if (!state->labels_optional)
            return FAIL_AT(at, "the label is missing");
        piece->lacks_labels = true;
        *label = SDR_MISSING_ROW_LABEL;
        *next = at;
        return SDR_OK;
    }
    if (!sdr_token_float(at, end, label, &why)) {
        if (memchr(at, ',', (size_t)(end - at)))
            why = "is not one number: rows with several labels cannot be learnt";
        return fail_token(scan, piece, at, end, "label", why);
    }
    return sdr_piece_label_number(piece, *label, at, (size_t)(end - at));
}

static enum sdr_status hash_row(const struct sdr_libsvm *state, struct sdr_libsvm_scan *scan,
                                struct sdr_piece *piece, struct sdr_fold *fold, uint64_t start)
{
    uint64_t count = scan->count - start;
    for (uint64_t i = start; i < scan->count; i++) {
        uint64_t number = scan->index[i];
        uint64_t hash = sdr_hash64(&number, sizeof number, 0);
        scan->index[i] = (uint32_t)(hash & ((1ull << state->bits) - 1));
    }
    SDR_TRY(sdr_fold_row(fold, scan->index + start, scan->value + start, &count));
    scan->count = start + count;
    for (uint64_t i = start; i < scan->count; i++)
        if (!isfinite(scan->value[i]))
            return FAIL_AT(scan->line, "values that share a hashed feature overflow when summed");
    return SDR_OK;
}

/* Parses one line with a row; `at` is its first non-blank byte. */
static enum sdr_status parse_row(const struct sdr_libsvm *state, struct sdr_libsvm_scan *scan,
                                 struct sdr_piece *piece, struct sdr_fold *fold, const char *at,
                                 const char **next)
{
    if (piece->rows == piece->row_room)
        SDR_TRY(sdr_piece_reserve(piece, piece->entry_room, 2 * piece->rows + 1024));
    uint64_t start = scan->count;
    int64_t before = state->base == 1 ? 0 : -1;
    scan->last = before;
    SDR_TRY(parse_label(state, scan, piece, at, &at));
    for (;;) {
        at = sdr_skip_blanks(at, scan->end);
        at = state->entries(scan, at);
        at = sdr_skip_blanks(at, scan->end);
        if (sdr_at_line_end(at, scan->end) || *at == '#')
            break;
        at = careful_entry(scan, piece, at);
        if (!at)
            return SDR_BAD_DATA;
    }
    *next = at;
    if (scan->count > start && scan->index[start] == 0)
        piece->index_zero = true; /* before hashing: as written */
    if (state->bits)
        SDR_TRY(hash_row(state, scan, piece, fold, start));
    if (scan->count > start && scan->index[scan->count - 1] >= piece->features)
        piece->features = scan->index[scan->count - 1] + 1;
    piece->entries = scan->count;
    piece->end[piece->rows++] = scan->count;
    return SDR_OK;
}

static enum sdr_status parse(const void *state, const char *bytes, size_t count, bool first,
                             struct sdr_piece *piece)
{
    struct sdr_fold fold = {0};
    enum sdr_status status = SDR_OK;
    const char *at = bytes, *end = bytes + count;
    if (first && count >= 3 && memcmp(bytes, "\xEF\xBB\xBF", 3) == 0)
        at += 3; /* byte order mark */
    if (piece->entry_room - piece->entries < count / 2 + 64)
        SDR_TRY(sdr_piece_reserve(piece, piece->entries + count / 2 + 64, piece->row_room));
    struct sdr_libsvm_scan scan = {.begin = bytes,
                                   .end = end,
                                   .index = piece->index,
                                   .value = piece->value,
                                   .count = piece->entries};
    while (at < end) {
        scan.line = at;
        scan.line_number = ++piece->lines;
        at = sdr_skip_blanks(at, end);
        if (!sdr_at_line_end(at, end) && *at != '#')
            SDR_CHECK(parse_row(state, &scan, piece, &fold, at, &at));
        at = sdr_next_line(at, end);
    }
cleanup:
    sdr_fold_free(&fold);
    return status;
}

/* ---- the plug-in ---- */

static enum sdr_status open_format(void *opaque, struct sdr_reading *reading, const char *head,
                                   size_t count)
{
    struct sdr_libsvm *state = opaque;
    struct sdr_schema *schema = reading->schema;
    (void)head;
    (void)count;
    state->bits = reading->known ? reading->known->bits : reading->options->bits;
    state->base = state->bits ? -1 : reading->known ? reading->known->base : reading->options->base;
    state->labels_optional = reading->options->labels_optional;
    state->entries = sdr_libsvm_quick(sdr_cpu_level());
    sdr_release(schema->format);
    schema->format = NULL;
    schema->bits = state->bits;
    schema->base = state->bits ? 0 : state->base; /* hashed features count from 0 */
    if (state->bits)
        schema->features = schema->numbers = 1u << state->bits;
    return sdr_copy_string(&schema->format, "libsvm");
}

/* Whether the line is a row; *labelled and *entries say what it contained. The last token of an
   incomplete line is ignored. */
static bool looks_like_row(const char *at, const char *end, bool whole, bool *labelled,
                           unsigned *entries)
{
    *labelled = false;
    *entries = 0;
    for (unsigned tokens = 0;; tokens++) {
        at = sdr_skip_blanks(at, end);
        if (sdr_at_line_end(at, end) || *at == '#')
            return tokens > 0;
        const char *stop = token_end(at, end), *p = at, *why;
        const char *colon = memchr(at, ':', (size_t)(stop - at));
        float number;
        bool cut = stop == end && !whole;
        if (!colon && tokens == 0 && sdr_token_float(at, stop, &number, &why)) {
            *labelled = true;
        } else {
            while (p < stop && sdr_is_digit(*p))
                p++;
            bool query = stop - at > 4 && memcmp(at, "qid:", 4) == 0;
            if (!colon || (p != colon && !query) || colon == at ||
                !sdr_token_float(colon + 1, stop, &number, &why))
                return cut && tokens > 0;
            *entries += !query;
        }
        at = stop;
    }
}

static int recognise(const char *head, size_t count)
{
    const char *at = head, *end = head + count;
    unsigned lines = 0, rows = 0, labelled = 0, filled = 0;
    while (at < end && lines < 20) {
        const char *next = sdr_next_line(at, end);
        bool whole = next[-1] == '\n', label;
        unsigned entries;
        if (!whole && lines > 0)
            break; /* incomplete at the end of the head */
        lines++;
        const char *text = sdr_skip_blanks(at, next);
        if (!sdr_at_line_end(text, next) && *text != '#') {
            if (!looks_like_row(text, next, whole, &label, &entries))
                return 0;
            rows++;
            labelled += label;
            filled += entries > 0;
        }
        at = next;
    }
    if (rows == 0 || filled == 0)
        return 0;
    return labelled == rows ? 90 : 50;
}

SDR_REGISTER(format, libsvm) = {
    .name = "libsvm",
    .summary = "LIBSVM / SVMlight text: label index:value …",
    .extensions = "svm libsvm svmlight",
    .takes = "bits base",
    .state_size = sizeof(struct sdr_libsvm),
    .recognise = recognise,
    .open = open_format,
    .parse = parse,
};
