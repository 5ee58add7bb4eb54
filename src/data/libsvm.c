/* LIBSVM / SVMlight text: one row a line,

       label [qid:N] index:value index:value …   # comment

   Indices rise strictly within a row; empty lines and lines of comment alone hold no row.

   Two readers share the work. The quick one takes runs of plain entries ("4711:0.01234 ", at most
   eight digits in the index and on either side of the point) and has no branch that depends on how
   long a number is: a mask of the 32 bytes ahead tells where the tokens end, eight bytes that end
   there hold the digits right-aligned, and three multiplications make a number of them. Whatever it
   does not know (signs and exponents, long numbers, errors, the edges of the chunk) it leaves to the
   careful reader, which gives the same bits and finds the place and the words of an error. */
#include "base/cpu.h"
#include "base/hash.h"
#include "data/data.h"
#include "data/token.h"
#include <math.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { INDEX_MOST = 2147483646 }; /* one more is still a count of features below SDR_CATEGORY_BIT */

/* One chunk being read. The arrays are the piece's; `count` is how many entries they hold. */
struct scan {
    const char *begin, *end;
    const char *line;     /* where the current line begins */
    uint64_t line_number; /* from 1 */
    uint32_t *index;
    float *value;
    uint64_t count;
    int64_t last; /* the index before in this row; −1 or, if indices start at 1, 0 */
};
typedef const char *entries_function(struct scan *scan, const char *at);

struct state {
    int base; /* first index: 0, 1, or −1 for not known yet */
    unsigned bits;
    bool labels_optional;
    entries_function *entries; /* the quick reader for this CPU */
};

/* ---- the quick reader ---- */

static inline uint64_t load8(const char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

/* The 32 bytes ahead: bit i tells that byte i is no digit, a point, a minus. */
struct ahead {
    uint64_t other, point, minus;
};

/* A plain entry, as offsets from its first byte: index [0, colon), value [first, end). `tail` is what
   the point and the digits behind it take, 0 if there is no point. */
struct plain {
    unsigned colon, first, end, tail, negative;
};

/* False if the entry at p is not a plain one. What the next entry waits for is only `end`: all the
   rest runs beside it. */
static inline __attribute__((always_inline)) bool locate(const char *p, struct ahead ahead,
                                                         struct plain *plain)
{
    uint64_t other = ahead.other | 3ull << 32; /* so that every search ends */
    uint64_t behind = other & (other - 1);     /* without the colon */
    uint64_t stop = behind & ~(ahead.point | ahead.minus);
    plain->end = (unsigned)__builtin_ctzll(stop);
    plain->colon = (unsigned)__builtin_ctzll(other);
    uint64_t inner = behind & ((stop & -stop) - 1);
    uint64_t signs = inner & ahead.minus, points = inner & ahead.point;
    unsigned point = (unsigned)__builtin_ctzll(points | stop);
    plain->negative = signs != 0;
    plain->first = plain->colon + 1 + plain->negative;
    plain->tail = plain->end - point;
    /* At most 15 bytes of value: fewer than 2^53 in any case. A point needs a digit before it. */
    return !((p[plain->colon] != ':') | (plain->colon - 1 > 7) |
             (plain->end - plain->first - 1 > 14) | (point <= plain->first) |
             (((signs & ~(2ull << plain->colon)) | (points & (points - 1))) != 0));
}

/* Where an entry may end without more ado; an exponent, a comment or nonsense is for the careful. */
static inline bool ends_entry(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* Stores the entry and returns the byte behind it, or NULL if its index does not rise. */
static inline __attribute__((always_inline)) const char *
store(struct scan *scan, const char *p, const struct plain *plain, uint64_t index,
      uint64_t mantissa)
{
    /* By tail, then the same with a minus. Digits and powers are exact, so the quotient is rounded
       once. */
    static const double divisor[32] = {
        1e0,  1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,
        1e10, 1e11, 1e12, 1e13, 1e14, -1e0, -1e0, -1e1, -1e2, -1e3, -1e4,
        -1e5, -1e6, -1e7, -1e8, -1e9, -1e10, -1e11, -1e12, -1e13, -1e14};
    if ((int64_t)index <= scan->last)
        return NULL;
    scan->last = (int64_t)index;
    scan->index[scan->count] = (uint32_t)index;
    scan->value[scan->count++] =
        (float)((double)(int64_t)mantissa / divisor[plain->tail + 16 * plain->negative]);
    return p + plain->end;
}

/* The number in the last `length` (0 … 8) of the eight bytes before `end`. */
static inline uint64_t digits_before(const char *end, unsigned length)
{
    uint64_t word = load8(end - 8) & 0x0F0F0F0F0F0F0F0F;
    word = length ? word >> (64 - 8 * length) << (64 - 8 * length) : 0;
    word = word * (10 * 256 + 1) >> 8;                            /* pairs */
    word = (word & 0x00FF00FF00FF00FF) * (100 * 65536 + 1) >> 16; /* fours */
    return (word & 0x0000FFFF0000FFFF) * (10000 * 4294967296ull + 1) >> 32;
}

/* Both levels look 32 bytes ahead (locate two more) and at most 16 back. */
enum { AHEAD = 48, BEHIND = 16 };

static const char *entries_portable(struct scan *scan, const char *at)
{
    static const uint64_t ten[9] = {1,      10,      100,      1000,     10000,
                                    100000, 1000000, 10000000, 100000000};
    const uint64_t ones = 0x0101010101010101, low = 0x7F * ones, gather = 0x0102040810204080;
    if (at - scan->begin < BEHIND)
        return at;
    while (scan->end - at >= AHEAD) {
        struct ahead ahead = {0, 0, 0};
        struct plain plain;
        for (unsigned i = 0; i < 4; i++) {
            uint64_t word = load8(at + 8 * i), digit = word ^ '0' * ones;
            uint64_t point = word ^ '.' * ones, minus = word ^ '-' * ones;
            digit = (((digit & low) + (0x80 - 10) * ones) | digit) & ~low; /* high bit: above 9 */
            point = ~(((point & low) + low) | point) & ~low;               /* high bit: zero */
            minus = ~(((minus & low) + low) | minus) & ~low;
            ahead.other |= (digit >> 7) * gather >> 56 << 8 * i;
            ahead.point |= (point >> 7) * gather >> 56 << 8 * i;
            ahead.minus |= (minus >> 7) * gather >> 56 << 8 * i;
        }
        if (!locate(at, ahead, &plain) || !ends_entry(at[plain.end]))
            break;
        unsigned whole = plain.end - plain.tail - plain.first;
        unsigned fraction = plain.tail - (plain.tail > 0);
        if (whole > 8 || fraction > 8)
            break;
        uint64_t mantissa = digits_before(at + plain.first + whole, whole) * ten[fraction] +
                            digits_before(at + plain.end, fraction);
        const char *behind =
            store(scan, at, &plain, digits_before(at + plain.colon, plain.colon), mantissa);
        if (!behind)
            break;
        at = behind;
        if (*at != ' ')
            break;
        at++;
    }
    return at;
}

#if defined(__x86_64__)
/* The index in the lower lane and the value in the upper one become numbers together. */
__attribute__((target("avx2,bmi,bmi2"))) static const char *entries_avx2(struct scan *scan,
                                                                         const char *at)
{
    /* Row `tail` moves the digits before the point one byte up, over it. */
#define BYTE(b, tail) ((b) - ((b) < 17 - (tail)))
#define ROW(tail)                                                                                  \
    {                                                                                              \
        BYTE(0, tail), BYTE(1, tail), BYTE(2, tail), BYTE(3, tail), BYTE(4, tail), BYTE(5, tail),  \
            BYTE(6, tail), BYTE(7, tail), BYTE(8, tail), BYTE(9, tail), BYTE(10, tail),            \
            BYTE(11, tail), BYTE(12, tail), BYTE(13, tail), BYTE(14, tail), BYTE(15, tail)         \
    }
    static const int8_t close_up[16][16] = {
        ROW(17), ROW(1), ROW(2),  ROW(3),  ROW(4),  ROW(5),  ROW(6),  ROW(7),
        ROW(8),  ROW(9), ROW(10), ROW(11), ROW(12), ROW(13), ROW(14), ROW(15)};
#undef ROW
#undef BYTE
    /* The 16 bytes from `length` on keep the digits in the last `length` bytes. */
    static const uint8_t keep[32] = {0,    0,    0,    0,    0,    0,    0,    0,
                                     0,    0,    0,    0,    0,    0,    0,    0,
                                     0x0F, 0x0F, 0x0F, 0x0F, 0x0F, 0x0F, 0x0F, 0x0F,
                                     0x0F, 0x0F, 0x0F, 0x0F, 0x0F, 0x0F, 0x0F, 0x0F};
#define LOAD16(from) _mm_loadu_si128((const __m128i *)(const void *)(from))
#define LANES(lower, upper) _mm256_inserti128_si256(_mm256_castsi128_si256(lower), upper, 1)
    const __m256i shift = _mm256_set1_epi8((char)('0' + 128)), nine = _mm256_set1_epi8(9 - 128);
    const __m256i point = _mm256_set1_epi8('.'), minus = _mm256_set1_epi8('-');
    const __m256i pairs = _mm256_set1_epi16(1 << 8 | 10), fours = _mm256_set1_epi32(1 << 16 | 100);
    const __m256i eights = _mm256_set1_epi32(1 << 16 | 10000);
    struct scan local = *scan;
    if (at - local.begin < BEHIND)
        return at;
    while (local.end - at >= AHEAD) {
        __m256i bytes = _mm256_loadu_si256((const __m256i *)(const void *)at);
        __m256i above = _mm256_cmpgt_epi8(_mm256_sub_epi8(bytes, shift), nine);
        struct ahead ahead = {
            (uint32_t)_mm256_movemask_epi8(above),
            (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(bytes, point)),
            (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(bytes, minus)),
        };
        struct plain plain;
        if (!locate(at, ahead, &plain))
            break;
        const char *end = at + plain.end;
        if (__builtin_expect(*end != ' ', 0) && !ends_entry(*end))
            break;
        __m256i digits = LANES(LOAD16(at + plain.colon - 16), LOAD16(end - 16));
        __m256i mask = LANES(LOAD16(keep + plain.colon), LOAD16(keep + (plain.end - plain.first)));
        __m256i order = LANES(LOAD16(close_up[0]), LOAD16(close_up[plain.tail]));
        digits = _mm256_shuffle_epi8(_mm256_and_si256(digits, mask), order);
        digits = _mm256_madd_epi16(_mm256_maddubs_epi16(digits, pairs), fours);
        digits = _mm256_madd_epi16(_mm256_packus_epi32(digits, digits), eights);
        uint64_t index = (uint64_t)_mm256_extract_epi64(digits, 0) >> 32;
        uint64_t value = (uint64_t)_mm256_extract_epi64(digits, 2);
        if (!store(&local, at, &plain, index, (uint32_t)value * 100000000ull + (value >> 32)))
            break;
        at = end;
        if (*at != ' ')
            break;
        at++;
    }
    *scan = local;
    return at;
#undef LANES
#undef LOAD16
}
#endif

static entries_function *entries_for(enum sdr_cpu level)
{
#if defined(__x86_64__)
    if (level >= SDR_CPU_AVX2)
        return entries_avx2;
#endif
    (void)level;
    return entries_portable;
}

/* ---- the careful reader ---- */

#define FAIL_AT(place, ...)                                                                        \
    sdr_piece_fail(piece, scan->line_number, (uint64_t)((place)-scan->line) + 1, __VA_ARGS__)

/* Tokens end at blanks, at the line's end, and where a comment begins. */
static const char *token_end(const char *at, const char *end)
{
    const char *stop = sdr_token_end(at, end);
    const char *comment = memchr(at, '#', (size_t)(stop - at));
    return comment ? comment : stop;
}

/* Bytes that no text has are told as such: the file is probably not text at all. */
static enum sdr_status fail_token(const struct scan *scan, struct sdr_piece *piece, const char *at,
                                  const char *end, const char *before, const char *after)
{
    char quote[SDR_QUOTE_BYTES];
    for (const char *p = at; p < end; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7F)
            return FAIL_AT(p, "byte 0x%02x does not belong in a text file", (unsigned char)*p);
    return FAIL_AT(at, "%s '%s' %s", before, sdr_quote(quote, at, end), after);
}

/* Takes "index:value" or skips "qid:N"; returns the byte behind it, or NULL with the error told. */
static const char *careful_entry(struct scan *scan, struct sdr_piece *piece, const char *at)
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

/* Takes the label of the row; *next is the byte behind it. */
static enum sdr_status take_label(const struct state *state, struct scan *scan,
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

static enum sdr_status hash_row(const struct state *state, struct scan *scan,
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

/* One line with a row: at is its first byte that is not blank. */
static enum sdr_status take_row(const struct state *state, struct scan *scan,
                                struct sdr_piece *piece, struct sdr_fold *fold, const char *at,
                                const char **next)
{
    if (piece->rows == piece->row_room)
        SDR_TRY(sdr_piece_reserve(piece, piece->entry_room, 2 * piece->rows + 1024));
    uint64_t start = scan->count;
    int64_t before = state->base == 1 ? 0 : -1;
    scan->last = before;
    SDR_TRY(take_label(state, scan, piece, at, &at));
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
    struct scan scan = {.begin = bytes, .end = end, .index = piece->index, .value = piece->value,
                        .count = piece->entries};
    while (at < end) {
        scan.line = at;
        scan.line_number = ++piece->lines;
        at = sdr_skip_blanks(at, end);
        if (!sdr_at_line_end(at, end) && *at != '#')
            SDR_CHECK(take_row(state, &scan, piece, &fold, at, &at));
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
    struct state *state = opaque;
    struct sdr_schema *schema = reading->schema;
    (void)head;
    (void)count;
    state->bits = reading->known ? reading->known->bits : reading->options->bits;
    state->base = state->bits ? -1 : reading->known ? reading->known->base : reading->options->base;
    state->labels_optional = reading->options->labels_optional;
    state->entries = entries_for(sdr_cpu_best());
    sdr_release(schema->format);
    schema->format = NULL;
    schema->bits = state->bits;
    schema->base = state->bits ? 0 : state->base; /* hashed features are counted from 0 */
    if (state->bits)
        schema->features = 1u << state->bits;
    return sdr_copy_string(&schema->format, "libsvm");
}

/* True if the line is a row; *labelled and *entries say what of it there was. The last token of a
   line that is not whole may be cut and says nothing. */
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
        if (stop == end && !whole)
            return tokens > 0;
        if (!colon && tokens == 0 && sdr_token_float(at, stop, &number, &why)) {
            *labelled = true;
        } else {
            while (p < stop && sdr_is_digit(*p))
                p++;
            bool query = stop - at > 4 && memcmp(at, "qid:", 4) == 0;
            if (!colon || (p != colon && !query) || colon == at ||
                !sdr_token_float(colon + 1, stop, &number, &why))
                return false;
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
            break; /* cut off by the end of the head */
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
    .state_size = sizeof(struct state),
    .recognise = recognise,
    .open = open_format,
    .parse = parse,
};
