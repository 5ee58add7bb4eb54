#include "sync/clocks.h"

/* Recomputes the minimum clock; after a worker left it may rise by more than one. */
static bool find_least(struct sdr_clocks *clocks)
{
    uint64_t before = clocks->least;
    clocks->least = UINT64_MAX;
    clocks->slowest = 0;
    for (int w = 0; w < clocks->workers; w++) {
        if (clocks->clock[w] < clocks->least) {
            clocks->least = clocks->clock[w];
            clocks->slowest = 0;
        }
        clocks->slowest += clocks->clock[w] == clocks->least;
    }
    return clocks->least != before;
}

void sdr_clocks_start(struct sdr_clocks *clocks, uint64_t staleness, uint64_t *clock, int workers)
{
    for (int w = 0; w < workers; w++)
        clock[w] = 0;
    *clocks = (struct sdr_clocks){staleness, workers, clock, 0, workers};
}

bool sdr_clocks_tick(struct sdr_clocks *clocks, int worker)
{
    clocks->slowest -= clocks->clock[worker]++ == clocks->least;
    return clocks->slowest == 0 && find_least(clocks);
}

void sdr_clocks_join(struct sdr_clocks *clocks, int worker)
{
    if (clocks->least == UINT64_MAX) /* nobody else is there */
        clocks->least = 0;
    clocks->clock[worker] = clocks->least;
    find_least(clocks);
}

bool sdr_clocks_leave(struct sdr_clocks *clocks, int worker)
{
    clocks->clock[worker] = UINT64_MAX;
    return find_least(clocks);
}

bool sdr_clocks_may_read(const struct sdr_clocks *clocks, int worker)
{
    return clocks->clock[worker] - clocks->least <= clocks->staleness;
}

bool sdr_clocks_may_read_next(const struct sdr_clocks *clocks, int worker)
{
    return clocks->clock[worker] - clocks->least < clocks->staleness;
}

bool sdr_clocks_reaches(const struct sdr_clocks *clocks, int worker, uint64_t has)
{
    return clocks->clock[worker] <= has || clocks->clock[worker] - has <= clocks->staleness;
}

bool sdr_clocks_shows(const struct sdr_clocks *clocks, uint64_t clock)
{
    /* clock < least + staleness without overflow */
    return clock < clocks->least || clock - clocks->least < clocks->staleness;
}
