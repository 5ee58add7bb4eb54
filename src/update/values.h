/* Values that travel: those a batch touches, or all of a span, packed one behind the other. Both ends
   go over the batch in the same order, so values need not say whose they are. */
#ifndef SDR_UPDATE_VALUES_H
#define SDR_UPDATE_VALUES_H

#include "update/update.h"

/* Which features a pass over a batch has met, and in which order. */
struct sdr_marks {
    uint32_t *mark;    /* owned, per feature: the last pass that met it */
    uint32_t stamp;    /* of this pass */
    uint32_t *touched; /* owned: the features that it met */
};
enum sdr_status sdr_marks_create(struct sdr_marks *marks, uint32_t features);
void sdr_marks_free(struct sdr_marks *marks);

enum sdr_move { SDR_GATHER, SDR_SCATTER, SDR_ADD };
/* Moves values within a span between `w`, an array of all values, and `packed`: into packed (GATHER),
   from it (SCATTER), or added from it. A batch of sparse rows moves the rows of its features in blocks
   that are per feature, and all of the others; a NULL batch, or dense rows, all values of the span.
   Returns how many. Of those beyond `most` none is moved: packed has no more. */
uint64_t sdr_move_values(const struct sdr_layout *layout, struct sdr_marks *marks,
                         const struct sdr_batch *batch, struct sdr_span span, float *w,
                         float *packed, uint64_t most, enum sdr_move how);

/* Steps that were taken elsewhere: what they changed of the values that a batch touches. */
/* Gathers these values as above, all of them, and describes what will lie in `packed` once the caller has made
   changes of them. `part` has room for one a block. Returns how many. */
uint64_t sdr_step_gather(const struct sdr_layout *layout, struct sdr_marks *marks,
                         const struct sdr_batch *batch, struct sdr_span span, const float *w,
                         float *packed, struct sdr_part *part, struct sdr_update *update);
/* Adds such an update to `w`. Fails if it has other rows than the batch touches within the span. */
enum sdr_status sdr_step_add(const struct sdr_layout *layout, struct sdr_marks *marks,
                             const struct sdr_update *update, struct sdr_span span, float *w);

#endif
