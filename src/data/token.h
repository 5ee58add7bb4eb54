/* Tokens of line formats: their ends, strict parsing of numbers, quoting for messages. Shared by
   the text formats; independent of the locale. */
#ifndef SDR_DATA_TOKEN_H
#define SDR_DATA_TOKEN_H

#include "base/fail.h"
#include <stdint.h>

static inline bool sdr_is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static inline bool sdr_is_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}

static inline const char *sdr_skip_blanks(const char *at, const char *end)
{
    while (at < end && sdr_is_blank(*at))
        at++;
    return at;
}

/* True at the end of the chunk, at a newline, and at a carriage return before either. */
static inline bool sdr_at_line_end(const char *at, const char *end)
{
    return at == end || *at == '\n' || (*at == '\r' && (at + 1 == end || at[1] == '\n'));
}

/* The first byte after the token: a blank, a line end, or `end`. */
const char *sdr_token_end(const char *at, const char *end);
/* The byte after the newline of this line, or `end`. */
const char *sdr_next_line(const char *at, const char *end);

/* Parses a float that fills [at, end) exactly. On failure *why completes "value 'x' …": "is not a
   number", "is not a finite number" or "is too large for a 32-bit float". */
bool sdr_token_float(const char *at, const char *end, float *value, const char **why);

/* A token as shown in messages: at most 40 bytes, unprintable ones as '?'. */
enum { SDR_QUOTE_BYTES = 48 };
const char *sdr_quote(char quote[SDR_QUOTE_BYTES], const char *at, const char *end);

/* Merge sort; returns a or b, whichever holds the result. Both have room for `count`. */
uint64_t *sdr_sort_keys(uint64_t *a, uint64_t *b, uint64_t count);

/* Sorts the entries of a row by index and sums duplicates in order. `scratch` is reused across
   rows: zero-initialise, free with sdr_fold_free. */
struct sdr_fold {
    uint64_t *key; /* owned: two arrays of `room` */
    float *value;  /* owned */
    uint64_t room;
};
enum sdr_status sdr_fold_row(struct sdr_fold *scratch, uint32_t *index, float *value,
                             uint64_t *count);
void sdr_fold_free(struct sdr_fold *scratch);

#endif
