/* The message of the last failure, one per thread. */
#include "base/fail.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { SENTENCE_BYTES = 1024 };
static _Thread_local char sentence[SENTENCE_BYTES];

/* Keeps a message on one line, whatever file names or data fields it quotes. */
static void flatten(void)
{
    for (char *p = sentence; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 127)
            *p = '?';
}

enum sdr_status sdr_fail(enum sdr_status status, const char *format, ...)
{
    char text[SENTENCE_BYTES]; /* a copy: the arguments may point into the old message */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    memcpy(sentence, text, sizeof text);
    flatten();
    return status;
}

enum sdr_status sdr_fail_errno(const char *format, ...)
{
    const char *cause = strerror(errno);
    char text[SENTENCE_BYTES / 2];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return sdr_fail(SDR_RUNTIME, "%s: %s", text, cause);
}

enum sdr_status sdr_fail_in(enum sdr_status status, const char *format, ...)
{
    char text[SENTENCE_BYTES / 2];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return sdr_fail(status, "%s%s", text, sentence);
}

const char *sdr_error(void)
{
    return sentence[0] ? sentence : "no error";
}

const char *sdr_status_text(enum sdr_status status)
{
    switch (status) {
#define SDR_STATUS_CASE(name, number, text)                                                        \
    case name: return text;
        SDR_STATUS_LIST(SDR_STATUS_CASE)
#undef SDR_STATUS_CASE
    }
    return "unknown status";
}
