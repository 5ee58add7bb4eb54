/* Statistics of features and rows, for scaling, for the automatic step and for load balance. */
#ifndef SDR_RUN_FEATURES_H
#define SDR_RUN_FEATURES_H

#include "run/evaluate.h"

struct sdr_run;
struct sdr_schema;
struct sdr_text;

/* Scales and means of features, and the squared length of a typical row. */
enum sdr_status sdr_features_measure(struct sdr_run *run);
double sdr_longest_row(const struct sdr_run *run);
/* Counts, in a random sample of `looked_at` rows, those that touch each feature; *touched is given
   away. */
enum sdr_status sdr_features_touched(const struct sdr_run *run, uint32_t **touched,
                                     uint32_t *looked_at);
/* A random sample of `most` rows of a list, in its order; all if it has no more. The sample depends
   on the list and the seed alone. The caller frees sample->row. */
enum sdr_status sdr_sample_rows(const struct sdr_row_list *list, uint32_t most, uint64_t seed,
                                struct sdr_row_list *sample);

/* extremes.c: refuses a listed feature whose values are too large to compute with; notes a value
   that dwarfs all others of its feature. */
enum sdr_status sdr_extremes_check(const struct sdr_run *run, const uint32_t *feature,
                                   uint32_t count);
/* summary.c: a feature's name in messages: its column, its category, or its index in the file. */
void sdr_feature_name(const struct sdr_schema *schema, uint32_t feature, struct sdr_text *text);

#endif
