/* The clocks of stale synchronous parallel (SSP; Ho et al., 2013) and the rules that follow from
   them.

   A worker's clock is the number of its updates; the update made at clock k belongs to clock k.
   With staleness s, a worker at clock c sees every update of clocks up to c − s − 1, all of its
   own, and none of others from clock c + s on. Hence a worker may read while it is at most s ahead
   of the slowest, and an update becomes visible once the minimum clock entitles every worker to see
   it. With s = 0 a worker sees all updates of earlier clocks and none of the current one, as in
   bsp. */
#ifndef SDR_SYNC_CLOCKS_H
#define SDR_SYNC_CLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#define SDR_CLOCKS_FREE UINT64_MAX /* unbounded staleness */

struct sdr_clocks {
    uint64_t staleness;
    int workers;
    uint64_t *clock; /* borrowed, per worker; UINT64_MAX: the worker has left */
    uint64_t least;  /* minimum clock of the present workers */
    int slowest;     /* number of workers at the minimum */
};

void sdr_clocks_start(struct sdr_clocks *clocks, uint64_t staleness, uint64_t *clock, int workers);
/* Counts an update of the worker; true if the minimum clock moved. */
bool sdr_clocks_tick(struct sdr_clocks *clocks, int worker);
/* A worker joins, or is back: its clock is the minimum. */
void sdr_clocks_join(struct sdr_clocks *clocks, int worker);
/* Removes a lost worker; true if the minimum clock moved. */
bool sdr_clocks_leave(struct sdr_clocks *clocks, int worker);
/* Whether the worker may read now. */
bool sdr_clocks_may_read(const struct sdr_clocks *clocks, int worker);
/* Whether the worker may read after one more update. */
bool sdr_clocks_may_read_next(const struct sdr_clocks *clocks, int worker);
/* Whether values that contain all updates of clocks below `has` are fresh enough for its next
   batch. */
bool sdr_clocks_reaches(const struct sdr_clocks *clocks, int worker, uint64_t has);
/* Whether an update of this clock is visible to other workers. */
bool sdr_clocks_shows(const struct sdr_clocks *clocks, uint64_t clock);

#endif
