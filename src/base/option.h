/* Option tables: one table gives a plug-in its keys, their defaults, help, parsing and printing. */
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
    SDR_CHOICE,  /* int: the position in `choices`, "a|b|c" */
    SDR_TEXT     /* char *, owned by the target             */
};

/* One option. The value is stored at `offset` of a target struct. A table ends with key NULL. */
struct sdr_option {
    const char *key;
    enum sdr_option_type type;
    const char *preset;  /* the default, as text; NULL for a TEXT that may be absent */
    const char *choices; /* CHOICE: "a|b|c"; else what the help shows for the value: its unit, such
                            as SECONDS; NULL: what shows its type (sdr_option_shown) */
    double least, most;  /* INTEGER, NUMBER; both 0: any */
    const char *help;    /* one sentence, no full stop */
    size_t offset;
    unsigned commands; /* run options only: which commands take it */
};

/* What a help shows for the value: `choices`, else yes|no for a flag, N for a whole number, X for a
   number, SIZE, TEXT. */
const char *sdr_option_shown(const struct sdr_option *option);
/* Fills the target with the defaults. TEXT members must be NULL or owned. */
enum sdr_status sdr_option_defaults(const struct sdr_option *table, void *target);
/* Copies all values; texts are duplicated. A text that is absent or empty leaves the target's as it is. */
enum sdr_status sdr_option_copy(const struct sdr_option *table, const void *from, void *to);
/* Rows of the table. */
size_t sdr_option_count(const struct sdr_option *table);
/* Sets one option from text. `owner` is for the sentence: "--lr", "adam:beta1". */
enum sdr_status sdr_option_set(const struct sdr_option *option, const char *owner,
                               const char *value, void *target);
/* The option of that key, or NULL. */
const struct sdr_option *sdr_option_find(const struct sdr_option *table, const char *key);
/* The key of the table nearest to a misspelt one, or NULL if none is near. */
const char *sdr_option_nearest(const struct sdr_option *table, const char *key);
/* Appends the value in the target as text that sdr_option_set reads. */
void sdr_option_print(const struct sdr_option *option, const void *target, struct sdr_text *text);
void sdr_option_free(const struct sdr_option *table, void *target); /* the TEXT members */

/* A plug-in as the user names it: "adam", "adam:beta1=0.8,beta2=0.99", "ssp:3" (its first option).
   Splits spec at the first ':'; *name is given away, *rest borrowed from spec ("" if none). */
enum sdr_status sdr_spec_split(const char *spec, char **name, const char **rest);
/* Parses the part behind the ':' into target, which already holds the defaults. */
enum sdr_status sdr_spec_options(const struct sdr_option *table, const char *name, const char *rest,
                                 void *target);

#endif
