/* Conflict-free groups of rows (Cyclades, Pan et al., 2016). Two rows of a window conflict if they
   touch a common feature. The connected components of the conflict graph can be trained in
   parallel. */
#ifndef SDR_SCHEDULE_COMPONENTS_H
#define SDR_SCHEDULE_COMPONENTS_H

#include "base/fail.h"
#include "kind/rows.h"

struct sdr_components {
    uint32_t *owner; /* owned, per feature: stamp + the first row of the window that touches it */
    uint32_t stamp;  /* of the current window; lower entries are from earlier windows */
    uint32_t features, most; /* most: rows of the largest window */
    uint32_t *parent, *load; /* owned, per row of a window */
};
enum sdr_status sdr_components_create(struct sdr_components *c, uint32_t features, uint32_t most);
void sdr_components_destroy(struct sdr_components *c);
/* Distributes the components of a window over `bins` bins of about equal work: bin[row[i]].
   Returns the largest component's share of the work. */
double sdr_components_find(struct sdr_components *c, const struct sdr_rows *rows,
                           const uint32_t *row, uint32_t count, int bins, uint8_t *bin);

#endif
