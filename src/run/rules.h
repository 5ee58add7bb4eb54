/* Refused combinations of options, plug-ins and data: those that make no sense together, or in
   which an option would have no effect. The rules are a table, rules_table.h. */
#ifndef SDR_RULES_H
#define SDR_RULES_H

#include "run/run.h"

/* When rules are evaluated: as soon as what they read is known (setup.c has the order of all
   steps). */
enum sdr_rules_phase {
    SDR_RULES_OPTIONS,  /* options alone, before data is read */
    SDR_RULES_FEATURES, /* and plug-ins, model and labels: before features are measured */
    SDR_RULES_STRATEGY, /* and features */
    SDR_RULES_WORKERS,  /* and requested workers, and the record to be replayed */
    SDR_RULES_UPDATE,   /* and rows of an update */
    SDR_RULES_METHOD,   /* and optimizer and schedule, with auto resolved */
    SDR_RULES_LENGTH,   /* and the length of the run */
    SDR_RULES_MESSAGES, /* and parameters, where nodes exchange messages */
    SDR_RULES_PLAN      /* or the strategy's plan, where workers share memory */
};

/* A rule without options refuses if it applies; a rule with options, if one of them was also
   given. */
struct sdr_rule {
    enum sdr_rules_phase phase;
    bool (*applies)(const struct sdr_run *run);
    const char *const *options; /* without effect then, up to NULL; the first given is named */
    const char *sentence;       /* a usage error, with names in braces: see sdr_rule_sentence */
    enum sdr_status (*refuse)(const struct sdr_run *run); /* or NULL: by `sentence` */
};
extern const struct sdr_rule sdr_rules[]; /* by phase; ends with applies NULL */

/* Evaluates the rules of one phase, in the order of the table; the first that refuses gives
   sentence and status. */
enum sdr_status sdr_rules_ask(const struct sdr_run *run, enum sdr_rules_phase phase);

/* Expands a sentence: {sync}, {model}, {optimizer} and {transport} are the names of the plug-ins
   in use, {--NAME} is the value of an option, {option} the given text, {recording} the one of
   --record and --replay that was given. Returns false if there is no such name. */
bool sdr_rule_sentence(const struct sdr_run *run, const char *sentence, const char *option,
                       struct sdr_text *text);

#endif
