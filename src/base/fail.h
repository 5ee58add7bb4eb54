/* Error reporting: a status code returned up the call chain, and one message per thread. */
#ifndef SDR_BASE_FAIL_H
#define SDR_BASE_FAIL_H

#include "sounder/sounder.h"

/* Records the message (one line, no full stop needed) and returns status:
        return sdr_fail(SDR_USAGE, "--lr must be positive, not %s", text); */
enum sdr_status sdr_fail(enum sdr_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* SDR_RUNTIME with strerror(errno) appended: "cannot open 'x': No such file or directory". */
enum sdr_status sdr_fail_errno(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prepends text to the recorded message and returns status. */
enum sdr_status sdr_fail_in(enum sdr_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#define SDR_TRY(expression)                                                                        \
    do {                                                                                           \
        enum sdr_status try_status_ = (expression);                                                \
        if (try_status_ != SDR_OK)                                                                 \
            return try_status_;                                                                    \
    } while (0)

/* SDR_TRY for functions with a label `cleanup` and a variable `status`. */
#define SDR_CHECK(expression)                                                                      \
    do {                                                                                           \
        status = (expression);                                                                     \
        if (status != SDR_OK)                                                                      \
            goto cleanup;                                                                          \
    } while (0)

#endif
