/* The problem of a run: model, classes, targets, weights of rows. Labels: labels.c. */
#ifndef SDR_RUN_PROBLEM_H
#define SDR_RUN_PROBLEM_H

#include "data/data.h"
#include "kind/model.h"

struct sdr_run;

/* The classes of a problem in order: numbers ascending, texts by byte order. */
struct sdr_classes {
    uint32_t count;
    char **text;  /* owned: the labels as written in the data */
    float *value; /* owned; NULL for text labels */
};

enum sdr_status sdr_problem_prepare(struct sdr_run *run);
void sdr_problem_release(struct sdr_run *run);
/* Scores per example. */
uint32_t sdr_outputs(const struct sdr_model_kind *kind, const void *options, uint32_t classes);

/* Lists the labels of arrays passed in by the caller; files bring their own list. */
enum sdr_status sdr_labels_list(struct sdr_data *data);
enum sdr_status sdr_classes_find(const struct sdr_data *data, struct sdr_classes *classes);
int64_t sdr_class_of_text(const struct sdr_classes *classes, const char *text); /* −1: none */
/* The class of every row's label; −1: not among the given classes. *target is given away. */
enum sdr_status sdr_targets(const struct sdr_data *data, const struct sdr_classes *classes,
                            const struct sdr_model_kind *kind, float **target);
enum sdr_status sdr_classes_copy(struct sdr_classes *to, const struct sdr_classes *from);
void sdr_classes_free(struct sdr_classes *classes);

#endif
