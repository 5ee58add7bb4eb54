/* Some rows by themselves: copied, with the features that they touch numbered from 0 on, in their order. What is
   computed from them needs the values of these features alone, so that a worker holds what its batch
   touches, whatever the size of the model. */
#ifndef SDR_UPDATE_SUBSET_H
#define SDR_UPDATE_SUBSET_H

#include "update/values.h"

struct sdr_subset {
    struct sdr_problem problem; /* of the copied rows: targets, weights and sides are theirs */
    struct sdr_rows rows;
    struct sdr_layout layout; /* blocks that are per feature have a row for every touched feature */
    struct sdr_batch batch;   /* all rows of the subset */
    float *w;                 /* owned: values by that layout */
    uint32_t *feature;        /* owned: which feature each of those rows belongs to; increasing */
    struct sdr_marks marks;
    /* Owned, and kept for the next subset. */
    uint64_t *start, *key[2], entry_room, w_room, row_room;
    uint32_t *index, *row, *listed;
    uint64_t listed_room;
    uint32_t marks_room;
    float *value, *target, *metric_weight, *row_weight;
    uint8_t *side;
};
/* Whether a model can be computed from a subset of these rows. */
bool sdr_subset_suits(const struct sdr_model_kind *kind, const struct sdr_problem *problem);
/* The rows of a batch of sparse rows. Fails without memory. */
enum sdr_status sdr_subset_make(struct sdr_subset *subset, const struct sdr_problem *problem,
                                const struct sdr_layout *layout, const struct sdr_batch *batch);
void sdr_subset_free(struct sdr_subset *subset);
/* The values of the subset that lie in a span of all values. */
struct sdr_span sdr_subset_span(const struct sdr_subset *subset, const struct sdr_layout *layout,
                                struct sdr_span span);
/* Places `count` values that a server has gathered for the rows of the subset, as far as they lie in its span
   (sdr_move_values); returns how many belong there. */
uint64_t sdr_subset_scatter(struct sdr_subset *subset, const struct sdr_layout *layout,
                            struct sdr_span span, float *packed, uint64_t count);
/* An update computed from the subset becomes one of the rows as they are: `batch`. */
enum sdr_status sdr_subset_translate(struct sdr_subset *subset, const struct sdr_batch *batch,
                                     struct sdr_update *update);

#endif
