/* Values in messages: those that a batch touches, or all of a span, packed. Both ends go over
   the batch in the same order, so no indices are sent. */
#ifndef SDR_UPDATE_VALUES_H
#define SDR_UPDATE_VALUES_H

#include "update/update.h"

/* The features that a pass over a batch has touched, in order. */
struct sdr_marks {
    uint32_t *mark;    /* owned, per feature: the last pass that touched it */
    uint32_t stamp;    /* of this pass */
    uint32_t *touched; /* owned: the features touched */
};
enum sdr_status sdr_marks_create(struct sdr_marks *marks, uint32_t features);
void sdr_marks_free(struct sdr_marks *marks);

enum sdr_move { SDR_GATHER, SDR_SCATTER, SDR_ADD };
/* Moves values within a span between `w`, an array of all values, and `packed`: into packed
   (GATHER), from it (SCATTER), or added from it. A batch of sparse rows moves the rows of its
   features in per-feature blocks, and all values of other blocks; a NULL batch, or dense rows,
   all values of the span. Returns their number. Values beyond `most`, the length of packed, are
   not moved. */
uint64_t sdr_move_values(const struct sdr_layout *layout, struct sdr_marks *marks,
                         const struct sdr_batch *batch, struct sdr_span span, float *w,
                         float *packed, uint64_t most, enum sdr_move how);

/* Steps taken by workers: the changes of the values that a batch touches. */
/* Gathers these values, all of them, and describes the contents of `packed` once the caller has
   turned them into changes. `part` has room for one per block. Returns the number of values. */
uint64_t sdr_step_gather(const struct sdr_layout *layout, struct sdr_marks *marks,
                         const struct sdr_batch *batch, struct sdr_span span, const float *w,
                         float *packed, struct sdr_part *part, struct sdr_update *update);
/* Adds such an update to `w`. Fails if its rows are not those that the batch touches within the
   span. */
enum sdr_status sdr_step_add(const struct sdr_layout *layout, struct sdr_marks *marks,
                             const struct sdr_update *update, struct sdr_span span, float *w);

#endif
