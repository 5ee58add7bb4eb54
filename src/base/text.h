/* Text: growing strings, locale-independent parsing and printing of numbers, edit distance. */
#ifndef SDR_BASE_TEXT_H
#define SDR_BASE_TEXT_H

#include "base/fail.h"
#include <stdarg.h>

/* A growing string. Zero-initialise. sdr_text_take reports a failed allocation, so callers that
   append need no checks. */
struct sdr_text {
    char *bytes; /* owned; NUL-terminated once anything was added */
    size_t length, room;
    bool failed;
    bool fixed; /* bytes is the caller's buffer of `room`: never grows, longer text is truncated */
};
void sdr_text_add(struct sdr_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void sdr_text_bytes(struct sdr_text *text, const char *bytes, size_t count);
/* Gives the string away ("" if nothing was added) and empties the text. */
enum sdr_status sdr_text_take(struct sdr_text *text, char **string);
void sdr_text_free(struct sdr_text *text);

/* Parse a whole string; false if it is not exactly one number. "nan" and "inf" are refused. */
bool sdr_parse_double(const char *text, double *value);
bool sdr_parse_u64(const char *text, uint64_t *value);
/* Bytes with an optional suffix k, M, G, T (powers of 1024): "512M". */
bool sdr_parse_size(const char *text, uint64_t *bytes);

/* Parses the number at the start of [at, end): decimal, with optional sign, fraction and exponent;
   correctly rounded, independent of the locale. Returns the first byte after it, or NULL if there
   is none. "nan" and "inf" are refused; an overflow gives infinity, which the caller must
   refuse. */
const char *sdr_scan_double(const char *at, const char *end, double *value);

/* The shortest text that reads back as the same float / double; returns its length. */
enum { SDR_NUMBER_TEXT = 32 };
size_t sdr_print_float(char text[SDR_NUMBER_TEXT], float value);
size_t sdr_print_double(char text[SDR_NUMBER_TEXT], double value);

/* Edit distance; used for "did you mean". */
size_t sdr_edit_distance(const char *a, const char *b);

#endif
