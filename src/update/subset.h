/* A subset: copies of some rows, with the features that they touch renumbered from 0, in
   ascending order. Computations on it need the values of these features only: a worker holds
   what its batch touches, whatever the size of the model. */
#ifndef SDR_UPDATE_SUBSET_H
#define SDR_UPDATE_SUBSET_H

#include "update/values.h"

struct sdr_subset {
    struct sdr_problem problem; /* of the copied rows: targets, weights and sides are theirs */
    struct sdr_rows rows;
    struct sdr_layout layout; /* per-feature blocks have one row per touched feature */
    struct sdr_batch batch;   /* all rows of the subset */
    float *w;                 /* owned: values in that layout */
    uint32_t *feature;        /* owned: the feature of each of those rows; increasing */
    struct sdr_marks marks;
    /* Owned, reused by the next subset. */
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
/* The subset's values that lie in a span of all values. */
struct sdr_span sdr_subset_span(const struct sdr_subset *subset, const struct sdr_layout *layout,
                                struct sdr_span span);
/* Stores `count` values that a server gathered for the rows of the subset, as far as they lie in
   its span (sdr_move_values); returns the number expected there. */
uint64_t sdr_subset_scatter(struct sdr_subset *subset, const struct sdr_layout *layout,
                            struct sdr_span span, float *packed, uint64_t count);
/* Converts an update computed from the subset to one of the original rows, `batch`. */
enum sdr_status sdr_subset_translate(struct sdr_subset *subset, const struct sdr_batch *batch,
                                     struct sdr_update *update);

#endif
