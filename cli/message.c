/* Error messages, clean text for terminals, and the nearest of several names. */
#include "cli.h"

#include <stdarg.h>
#include <string.h>

static char own_sentence[2048];

enum sdr_status cli_fail(enum sdr_status status, const char *format, ...)
{
    /* A copy first: an argument may be the current message. */
    char text[sizeof own_sentence];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    memcpy(own_sentence, text, sizeof text);
    return status;
}

const char *cli_sentence(enum sdr_status status)
{
    if (own_sentence[0])
        return own_sentence;
    const char *sentence = sdr_error();
    return sentence && sentence[0] ? sentence : sdr_status_text(status);
}

void cli_print_clean(FILE *stream, const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        /* 0x80 to 0x9f are control characters in UTF-8 only after the lead byte 0xc2. */
        bool wide_control = *at == 0xc2 && at[1] >= 0x80 && at[1] <= 0x9f;
        at += wide_control;
        putc(wide_control || *at < 0x20 || *at == 0x7f ? '?' : *at, stream);
    }
}

size_t cli_typing_errors(const char *a, const char *b)
{
    enum { LONGEST = 64 };
    size_t distance[LONGEST + 1][LONGEST + 1];
    size_t m = strlen(a), n = strlen(b);
    if (m > LONGEST || n > LONGEST)
        return m > n ? m : n;
    for (size_t i = 0; i <= m; i++) {
        for (size_t j = 0; j <= n; j++) {
            if (i == 0 || j == 0) {
                distance[i][j] = i + j;
                continue;
            }
            size_t least = distance[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            if (distance[i - 1][j] + 1 < least)
                least = distance[i - 1][j] + 1;
            if (distance[i][j - 1] + 1 < least)
                least = distance[i][j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                distance[i - 2][j - 2] + 1 < least)
                least = distance[i - 2][j - 2] + 1;
            distance[i][j] = least;
        }
    }
    return distance[m][n];
}

bool cli_is_near(size_t typing_errors, size_t length)
{
    return typing_errors <= (length < 6 ? 1 : 2) && typing_errors < length;
}
