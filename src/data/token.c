/* Tokens of line formats, and folding of hashed rows: see token.h. */
#include "data/token.h"
#include "base/memory.h"
#include "base/text.h"
#include <float.h>
#include <math.h>
#include <string.h>

const char *sdr_token_end(const char *at, const char *end)
{
    while (at < end && !sdr_is_blank(*at) && !sdr_at_line_end(at, end))
        at++;
    return at;
}

const char *sdr_next_line(const char *at, const char *end)
{
    const char *newline = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
    return newline ? newline + 1 : end;
}

/* nan, inf and infinity in any case, with or without a sign. */
static bool names_no_finite_number(const char *at, const char *end)
{
    static const char *const names[] = {"nan", "inf", "infinity"};
    if (at < end && (*at == '-' || *at == '+'))
        at++;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t length = strlen(names[i]);
        if ((size_t)(end - at) != length)
            continue;
        size_t same = 0;
        while (same < length && (at[same] | 0x20) == names[i][same])
            same++;
        if (same == length)
            return true;
    }
    return false;
}

/* Parses numbers of up to 19 digits, as printed by %.17g, several times faster than strtod. Digits
   and power of ten are exact in the 64-bit mantissa of x87; their quotient, rounded to 64 bits,
   rounds to the correct double unless it lies exactly between two. Returns false in that case and
   for all other tokens. */
static bool quick_double(const char *at, const char *end, double *number)
{
#if LDBL_MANT_DIG == 64
    static const long double power[] = {1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,
                                        1e7L,  1e8L,  1e9L,  1e10L, 1e11L, 1e12L, 1e13L,
                                        1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L, 1e20L,
                                        1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L};
    enum { POWER_MOST = 27, DIGITS_MOST = 19, BELOW_DOUBLE = 0x7FF, HALFWAY = 0x400 };
    bool negative = at < end && *at == '-';
    const char *p = at + negative, *point = NULL, *first = p;
    uint64_t mantissa = 0;
    for (; p < end; p++) {
        if (sdr_is_digit(*p))
            mantissa = mantissa * 10 + (uint64_t)(*p - '0');
        else if (*p == '.' && !point)
            point = p;
        else
            break;
    }
    long digits = p - first - (point != NULL), scale = point ? p - point - 1 : 0;
    if (digits < 1 || digits > DIGITS_MOST)
        return false;
    if (end - p >= 2 && end - p <= 4 && (*p | 0x20) == 'e') {
        bool down = p[1] == '-', sign = down || p[1] == '+';
        long exponent = 0;
        p += 1 + sign;
        if (p == end)
            return false;
        for (; p < end && sdr_is_digit(*p); p++)
            exponent = exponent * 10 + (*p - '0');
        scale += down ? exponent : -exponent;
    }
    if (p != end || scale > POWER_MOST || scale < -POWER_MOST)
        return false;
    long double exact = (long double)mantissa;
    exact = scale >= 0 ? exact / power[scale] : exact * power[-scale];
    uint64_t bits;
    memcpy(&bits, &exact, sizeof bits);
    if ((bits & BELOW_DOUBLE) == HALFWAY)
        return false;
    *number = negative ? -(double)exact : (double)exact;
    return true;
#else
    (void)at, (void)end, (void)number;
    return false;
#endif
}

bool sdr_token_float(const char *at, const char *end, float *value, const char **why)
{
    double number;
    if (!quick_double(at, end, &number) && sdr_scan_double(at, end, &number) != end) {
        *why = names_no_finite_number(at, end) ? "is not a finite number" : "is not a number";
        return false;
    }
    *value = (float)number;
    if (!isfinite(*value)) {
        *why = "is too large for a 32-bit float";
        return false;
    }
    return true;
}

const char *sdr_quote(char quote[SDR_QUOTE_BYTES], const char *at, const char *end)
{
    enum { MOST = 40 };
    size_t length = (size_t)(end - at), shown = length < MOST ? length : MOST;
    for (size_t i = 0; i < shown; i++)
        quote[i] = at[i] >= ' ' && at[i] <= '~' ? at[i] : '?';
    strcpy(quote + shown, length > MOST ? "…" : "");
    return quote;
}

uint64_t *sdr_sort_keys(uint64_t *a, uint64_t *b, uint64_t count)
{
    enum { RUN = 8 };
    for (uint64_t from = 0; from < count; from += RUN) {
        uint64_t end = from + RUN < count ? from + RUN : count;
        for (uint64_t i = from + 1; i < end; i++) {
            uint64_t key = a[i], j = i;
            for (; j > from && a[j - 1] > key; j--)
                a[j] = a[j - 1];
            a[j] = key;
        }
    }
    for (uint64_t width = RUN; width < count; width *= 2) {
        for (uint64_t from = 0; from < count; from += 2 * width) {
            uint64_t middle = from + width < count ? from + width : count;
            uint64_t end = from + 2 * width < count ? from + 2 * width : count;
            uint64_t i = from, j = middle, k = from;
            while (i < middle && j < end) {
                bool left = a[i] < a[j];
                b[k++] = left ? a[i] : a[j];
                i += left;
                j += !left;
            }
            memcpy(b + k, a + i, (middle - i) * sizeof *b);
            memcpy(b + k + (middle - i), a + j, (end - j) * sizeof *b);
        }
        uint64_t *other = a;
        a = b;
        b = other;
    }
    return a;
}

enum sdr_status sdr_fold_row(struct sdr_fold *scratch, uint32_t *index, float *value,
                             uint64_t *count)
{
    uint64_t n = *count, kept = 0;
    if (n == 0)
        return SDR_OK;
    if (n > scratch->room) {
        sdr_fold_free(scratch);
        SDR_TRY(sdr_allocate(&scratch->key, 4 * n, sizeof *scratch->key, "a hashed row"));
        SDR_TRY(sdr_allocate(&scratch->value, 2 * n, sizeof *scratch->value, "a hashed row"));
        scratch->room = 2 * n;
    }
    for (uint64_t i = 0; i < n; i++) {
        scratch->key[i] = (uint64_t)index[i] << 32 | i;
        scratch->value[i] = value[i];
    }
    /* The position in the low half of a key keeps duplicates in order. */
    const uint64_t *key = sdr_sort_keys(scratch->key, scratch->key + scratch->room, n);
    for (uint64_t i = 0; i < n; i++) {
        uint32_t feature = (uint32_t)(key[i] >> 32);
        float x = scratch->value[(uint32_t)key[i]];
        if (kept && index[kept - 1] == feature) {
            value[kept - 1] += x;
        } else {
            index[kept] = feature;
            value[kept++] = x;
        }
    }
    *count = kept;
    return SDR_OK;
}

void sdr_fold_free(struct sdr_fold *scratch)
{
    sdr_release(scratch->key);
    sdr_release(scratch->value);
    *scratch = (struct sdr_fold){0};
}
