/* The path of a run: the options and data that determine its model, as text and as a hash. */
#ifndef SDR_RUN_FINGERPRINT_H
#define SDR_RUN_FINGERPRINT_H

#include "base/fail.h"

#include <stdbool.h>

struct sdr_run;

/* Sets run->log.path and its hash, run->log.fingerprint. */
enum sdr_status sdr_fingerprint(struct sdr_run *run);
/* Refuses a checkpoint of another path, and names the first difference; `saved` may be NULL. */
enum sdr_status sdr_other_path(const struct sdr_run *run, const char *path, const char *saved);
/* The text that must be the same in all processes of a job; *text is given away. */
enum sdr_status sdr_job_text(const struct sdr_run *run, char **text);
/* The value of an option in a path; false: it is not there. */
bool sdr_path_option(const char *path, const char *name, char value[64]);
/* The name of the first option that differs between two paths; "": none does. */
void sdr_path_difference(const char *a, const char *b, char name[32]);

#endif
