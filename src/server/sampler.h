/* Which rows a batch has: every node computes them from the number of the batch. */
#ifndef SDR_SERVER_SAMPLER_H
#define SDR_SERVER_SAMPLER_H

#include "kind/update.h"

#include <pthread.h>

struct sdr_run;
struct sdr_network;

/* Division by a constant, by its inverse, for dividends below 2^63: every message needs the
   position of its batch. */
struct sdr_divisor {
    uint64_t by, inverse;
};
static inline struct sdr_divisor sdr_divisor(uint64_t by)
{
    return (struct sdr_divisor){by, UINT64_MAX / by};
}
static inline uint64_t sdr_divide(const struct sdr_divisor *d, uint64_t number, uint64_t *rest)
{
    __extension__ typedef unsigned __int128 wide;
    uint64_t quotient = (uint64_t)((wide)number * d->inverse >> 64); /* or one too small */
    bool more = number - quotient * d->by >= d->by;
    quotient += more;
    *rest = number - quotient * d->by;
    return quotient;
}

/* Row orders of the epochs that are in use. */
struct sdr_sampler {
    pthread_mutex_t lock;
    uint32_t *grouped; /* owned: scratch for grouping by shard; NULL: no shards */
    uint64_t slots;    /* a power of two */
    struct {
        uint64_t epoch;
        uint32_t *order; /* owned; NULL: not computed yet */
    } * slot;
};

enum sdr_status sdr_sampler_create(struct sdr_run *run);
/* Rows of a batch. */
uint32_t sdr_network_rows(const struct sdr_run *run, uint64_t number);
/* The rows of a worker's part of a batch, or with −1 of all of it, into `row`. */
enum sdr_status sdr_network_batch(struct sdr_run *run, uint64_t number, int worker, uint32_t *row,
                                  struct sdr_batch *batch);
/* The same for place `place` of `places`, whoever has it. */
enum sdr_status sdr_network_share(struct sdr_run *run, uint64_t number, int place, int places,
                                  uint32_t *row, struct sdr_batch *batch);
/* With shards (policy.share): the share of a worker's shard in a joint batch, without row numbers
   and with them; `at` counts from the beginning of the shard. Some epochs have a share fewer than
   there are numbers. whole: plan.share rows since the last whole one. */
struct sdr_batch sdr_network_shard(const struct sdr_run *run, uint64_t number, int worker);
enum sdr_status sdr_network_shard_batch(struct sdr_run *run, uint64_t number, int worker,
                                        uint32_t *row, struct sdr_batch *batch);
bool sdr_network_share_exists(const struct sdr_run *run, uint64_t number);
bool sdr_network_share_whole(const struct sdr_run *run, uint64_t number);
bool sdr_network_ends_epoch(const struct sdr_run *run, uint64_t number);
void sdr_share_of(const struct sdr_network *net, uint32_t rows, int place, int places,
                  uint32_t *from, uint32_t *end);
/* A worker's part of a batch of `rows` rows: from … end − 1. Parts differ by one unit at most. */
void sdr_part_of(const struct sdr_network *net, uint32_t rows, int worker, uint32_t *from,
                 uint32_t *end);

#endif
