/* Conflict-free groups of rows (Cyclades, Pan et al., 2016): two rows of a window conflict if they
   touch one feature; rows that are joined by conflicts make a component, and components can be
   trained on at the same time. */
#ifndef SDR_SCHEDULE_COMPONENTS_H
#define SDR_SCHEDULE_COMPONENTS_H

#include "base/fail.h"
#include "kind/rows.h"

struct sdr_components {
    uint32_t *owner; /* owned, per feature: stamp + the first row of a window that touches it */
    uint32_t stamp;  /* of the present window: what is below is of an earlier one */
    uint32_t features, most; /* most: rows of a window */
    uint32_t *parent, *load; /* owned, per row of a window */
};
enum sdr_status sdr_components_create(struct sdr_components *c, uint32_t features, uint32_t most);
void sdr_components_destroy(struct sdr_components *c);
/* Shares the components of a window of rows out to `bins` bins of about the same work: bin[row] of
   each. Returns the share of the work that is in the largest component. */
double sdr_components_find(struct sdr_components *c, const struct sdr_rows *rows,
                           const uint32_t *row, uint32_t count, int bins, uint8_t *bin);

#endif
