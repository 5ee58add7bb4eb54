#define _GNU_SOURCE /* strtod_l */
#include "base/text.h"
#include "base/memory.h"

#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool text_room(struct sdr_text *text, size_t more)
{
    if (text->failed)
        return false;
    if (text->room - text->length > more)
        return true;
    if (text->fixed) {
        text->failed = true;
        return false;
    }
    size_t room = (text->length + more + 1) * 2;
    char *bytes;
    if (sdr_allocate(&bytes, room, 1, "text") != SDR_OK) {
        text->failed = true;
        return false;
    }
    if (text->length)
        memcpy(bytes, text->bytes, text->length);
    sdr_release(text->bytes);
    text->bytes = bytes;
    text->room = room;
    return true;
}

void sdr_text_bytes(struct sdr_text *text, const char *bytes, size_t count)
{
    if (!text_room(text, count) && text->fixed)
        count = text->room - text->length - 1;
    else if (text->failed)
        return;
    memcpy(text->bytes + text->length, bytes, count);
    text->length += count;
    text->bytes[text->length] = 0;
}

void sdr_text_add(struct sdr_text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0)
        return;
    if (!text_room(text, (size_t)length) && text->fixed)
        length = (int)(text->room - text->length - 1);
    else if (text->failed)
        return;
    va_start(arguments, format);
    vsnprintf(text->bytes + text->length, (size_t)length + 1, format, arguments);
    va_end(arguments);
    text->length += (size_t)length;
}

enum sdr_status sdr_text_take(struct sdr_text *text, char **string)
{
    sdr_text_bytes(text, "", 0);
    if (text->failed) {
        sdr_text_free(text);
        *string = NULL;
        return sdr_fail(SDR_RUNTIME, "out of memory: text");
    }
    *string = text->bytes;
    *text = (struct sdr_text){0};
    return SDR_OK;
}

void sdr_text_free(struct sdr_text *text)
{
    sdr_release(text->bytes);
    *text = (struct sdr_text){0};
}

static locale_t c_locale;
static void make_c_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

static inline bool is_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}

/* The general case: [from, to) holds digits and at most one point; the result is their value times
   10^exponent. strtod gets the significant digits without the point; digits too far down to affect
   the rounding of a double only count in the exponent. */
static double slow_double(const char *from, const char *to, int exponent)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    enum { LONGEST = 800 };
    char copy[LONGEST + 16];
    int count = 0;
    for (; from < to; from++) {
        if (!is_digit(*from) || (count == 0 && *from == '0'))
            continue;
        if (count < LONGEST)
            copy[count++] = *from;
        else
            exponent++;
    }
    if (count == 0)
        return 0;
    snprintf(copy + count, sizeof copy - (size_t)count, "e%d", exponent);
    pthread_once(&once, make_c_locale);
    return c_locale ? strtod_l(copy, NULL, c_locale) : strtod(copy, NULL);
}

const char *sdr_scan_double(const char *at, const char *end, double *value)
{
    static const double power[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                   1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const char *p = at;
    bool negative = false;
    if (p < end && (*p == '-' || *p == '+'))
        negative = *p++ == '-';
    const char *first = p;
    uint64_t mantissa = 0;
    int scale = 0, digits = 0;
    for (; p < end && is_digit(*p); p++, digits++)
        mantissa = mantissa * 10 + (uint64_t)(*p - '0');
    if (p < end && *p == '.') {
        p++;
        for (; p < end && is_digit(*p); p++, digits++, scale--)
            mantissa = mantissa * 10 + (uint64_t)(*p - '0');
    }
    const char *last = p; /* end of the digits */
    if (digits == 0)
        return NULL;
    if (p < end && (*p == 'e' || *p == 'E')) {
        const char *q = p + 1;
        bool down = false;
        int exponent = 0;
        if (q < end && (*q == '-' || *q == '+'))
            down = *q++ == '-';
        if (q < end && is_digit(*q)) {
            for (; q < end && is_digit(*q); q++)
                if (exponent < 100000)
                    exponent = exponent * 10 + (*q - '0');
            scale += down ? -exponent : exponent;
            p = q;
        }
    }
    /* Exact when the digits fit 53 bits and the power of ten is itself exact (Clinger's fast path).
     */
    double result;
    if (digits <= 19 && mantissa < (uint64_t)1 << 53 && scale >= -22 && scale <= 22)
        result = scale < 0 ? (double)mantissa / power[-scale] : (double)mantissa * power[scale];
    else
        result = slow_double(first, last, scale);
    *value = negative ? -result : result;
    return p;
}

bool sdr_parse_double(const char *text, double *value)
{
    const char *end = text + strlen(text);
    return sdr_scan_double(text, end, value) == end && isfinite(*value);
}

bool sdr_parse_u64(const char *text, uint64_t *value)
{
    uint64_t number = 0;
    if (!*text)
        return false;
    for (; *text; text++)
        if (!is_digit(*text) || __builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(*text - '0'), &number))
            return false;
    *value = number;
    return true;
}

bool sdr_parse_size(const char *text, uint64_t *bytes)
{
    static const char suffix[] = "kMGT";
    const char *end = text + strlen(text);
    double number;
    const char *p = sdr_scan_double(text, end, &number);
    if (!p || !isfinite(number) || number < 0)
        return false;
    int shift = 0;
    if (p < end) {
        const char *found = strchr(suffix, *p == 'K'   ? 'k'
                                           : *p == 'm' ? 'M'
                                           : *p == 'g' ? 'G'
                                                       : *p);
        if (!found || !*found)
            return false;
        shift = 10 * (int)(found - suffix + 1);
        p++;
        if (p < end && *p == 'B')
            p++;
    }
    number = ldexp(number, shift);
    if (p != end || number >= 0x1p63)
        return false;
    *bytes = (uint64_t)number;
    return true;
}

/* Undoes the locale's decimal comma in %g. */
static size_t fix_point(char *text, int length)
{
    char *comma = strchr(text, ',');
    if (comma)
        *comma = '.';
    return (size_t)length;
}

size_t sdr_print_double(char text[SDR_NUMBER_TEXT], double value)
{
    for (int precision = 15; precision <= 17; precision++) {
        int length = snprintf(text, SDR_NUMBER_TEXT, "%.*g", precision, value);
        size_t fixed = fix_point(text, length);
        double back;
        if (!isfinite(value) || precision == 17 ||
            (sdr_scan_double(text, text + fixed, &back) && back == value))
            return fixed;
    }
    return 0;
}

size_t sdr_print_float(char text[SDR_NUMBER_TEXT], float value)
{
    for (int precision = 6; precision <= 9; precision++) {
        int length = snprintf(text, SDR_NUMBER_TEXT, "%.*g", precision, (double)value);
        size_t fixed = fix_point(text, length);
        double back;
        if (!isfinite(value) || precision == 9 ||
            (sdr_scan_double(text, text + fixed, &back) && (float)back == value))
            return fixed;
    }
    return 0;
}

size_t sdr_edit_distance(const char *a, const char *b)
{
    enum { LONGEST = 63 };
    size_t row[LONGEST + 1], length = strnlen(b, LONGEST);
    for (size_t j = 0; j <= length; j++)
        row[j] = j;
    for (size_t i = 0; a[i]; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 1; j <= length; j++) {
            size_t replace = diagonal + (a[i] != b[j - 1]);
            size_t shorter = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = replace < shorter ? replace : shorter;
        }
    }
    return row[length];
}
