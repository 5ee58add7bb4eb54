/* Option tables: a plug-in's keys with defaults, help, parsing and printing. */
#ifndef SDR_BASE_OPTION_H
#define SDR_BASE_OPTION_H

#include "base/fail.h"
#include "base/text.h"
#include <stddef.h>
#include <stdint.h>

enum sdr_option_type {
    SDR_FLAG,    /* bool                                    */
    SDR_INTEGER, /* uint64_t                                */
    SDR_NUMBER,  /* double                                  */
    SDR_SIZE,    /* uint64_t bytes, "512M"                  */
    SDR_CHOICE,  /* int: the index into `choices`, "a|b|c" */
    SDR_TEXT     /* char *, owned by the target             */
};

/* One option. The value is stored at `offset` of a target struct. A table ends with key NULL. */
struct sdr_option {
    const char *key;
    enum sdr_option_type type;
    const char *preset;  /* the default as text; NULL for an optional TEXT */
    const char *choices; /* CHOICE: "a|b|c"; else the value's placeholder in the help, such as
                            SECONDS; NULL: by type */
    double least, most;  /* INTEGER, NUMBER: the allowed range; both 0: unlimited */
    const char *help;    /* one sentence, no full stop */
    size_t offset;
    unsigned commands; /* run options only: the commands that take it */
};

/* The value's placeholder in the help: `choices`, else by type: yes|no, N (integer), X (number),
   SIZE, TEXT. */
const char *sdr_option_shown(const struct sdr_option *option);
/* Sets the target to the defaults. TEXT members must be NULL or owned. */
enum sdr_status sdr_option_defaults(const struct sdr_option *table, void *target);
/* Copies all values and duplicates texts. An absent or empty text leaves the target's unchanged. */
enum sdr_status sdr_option_copy(const struct sdr_option *table, const void *from, void *to);
/* Number of options in the table. */
size_t sdr_option_count(const struct sdr_option *table);
/* Sets one option from text. `owner` names it in error messages: "--lr", "adam:beta1". */
enum sdr_status sdr_option_set(const struct sdr_option *option, const char *owner,
                               const char *value, void *target);
/* The option with that key, or NULL. */
const struct sdr_option *sdr_option_find(const struct sdr_option *table, const char *key);
/* The key nearest to a misspelt one, or NULL if none is near. */
const char *sdr_option_nearest(const struct sdr_option *table, const char *key);
/* Appends the target's value as text that sdr_option_set can read. */
void sdr_option_print(const struct sdr_option *option, const void *target, struct sdr_text *text);
void sdr_option_free(const struct sdr_option *table, void *target); /* frees the TEXT members */

/* Splits a plug-in spec of the user at the first ':': "adam", "adam:beta1=0.8,beta2=0.99", "ssp:3"
   (its first option). *name is given away, *rest borrowed from spec ("" if none). */
enum sdr_status sdr_spec_split(const char *spec, char **name, const char **rest);
/* Parses the text behind the ':' into target, which already holds the defaults. */
enum sdr_status sdr_spec_options(const struct sdr_option *table, const char *name, const char *rest,
                                 void *target);

#endif
