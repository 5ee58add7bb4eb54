/* The clocks of stale synchronous parallel workers (Ho et al., 2013), and what follows from them. A worker's
   clock is the number of updates it has made; the update that it makes at clock k is that of clock k.

   A worker at clock c sees
     every update of clocks up to c − s − 1,
     all of its own,
     none of others' of clock c + s or later.
   So a worker may read while it is at most s ahead of the slowest one; and an update is shown to others once
   the slowest clock is so far that nobody may not see it. With s = 0 that is: all of the clocks before, none
   of this one, which is what bsp shows. */
#ifndef SDR_SYNC_CLOCKS_H
#define SDR_SYNC_CLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#define SDR_CLOCKS_FREE UINT64_MAX /* a staleness that bounds nothing */

struct sdr_clocks {
    uint64_t staleness;
    int workers;
    uint64_t *clock; /* borrowed, per worker; UINT64_MAX: it has left */
    uint64_t least;  /* of those that are there */
    int slowest;     /* workers whose clock that is */
};

void sdr_clocks_start(struct sdr_clocks *clocks, uint64_t staleness, uint64_t *clock, int workers);
/* The worker has made its update; true: the slowest clock has moved. */
bool sdr_clocks_tick(struct sdr_clocks *clocks, int worker);
/* The worker is gone: nobody waits for it; true as above. */
bool sdr_clocks_leave(struct sdr_clocks *clocks, int worker);
/* Whether the worker may read now. */
bool sdr_clocks_may_read(const struct sdr_clocks *clocks, int worker);
/* Whether it may with one update more. */
bool sdr_clocks_may_read_next(const struct sdr_clocks *clocks, int worker);
/* Whether values with all updates of the clocks before `has` are new enough for what it does next. */
bool sdr_clocks_reaches(const struct sdr_clocks *clocks, int worker, uint64_t has);
/* Whether an update of this clock is to be shown to others. */
bool sdr_clocks_shows(const struct sdr_clocks *clocks, uint64_t clock);

#endif
