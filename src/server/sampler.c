/* Batches by number: a number is a range of the rows of an epoch, the same for every node. */
#include "server/sampler.h"
#include "base/memory.h"
#include "run/order.h"
#include "run/run.h"
#include "server/network.h"

#include <string.h>

/* The epoch of a batch, and the position of its first row. */
static uint64_t epoch_of(const struct sdr_network *net, uint64_t number, uint64_t *place)
{
    uint64_t epoch = sdr_divide(&net->policy.epochs, number, place);
    *place *= net->policy.batch;
    return epoch;
}

static uint32_t rows_from(const struct sdr_run *run, uint64_t place)
{
    uint64_t left = run->set.train_rows.count - place;
    return (uint32_t)(left < run->network->policy.batch ? left : run->network->policy.batch);
}

/* The epoch of a joint batch of shares, and how many shares the epoch has had before it. */
static uint64_t share_of(const struct sdr_network *net, uint64_t number, uint64_t *shares)
{
    return sdr_divide(&net->policy.epochs, number, shares);
}

uint32_t sdr_network_rows(const struct sdr_run *run, uint64_t number)
{
    uint64_t place;
    if (run->network->policy.share) {
        uint64_t shares, epoch = share_of(run->network, number, &shares);
        return (uint32_t)(sdr_shards_rows(run, epoch, shares + 1) -
                          sdr_shards_rows(run, epoch, shares));
    }
    epoch_of(run->network, number, &place);
    return rows_from(run, place);
}

void sdr_share_of(const struct sdr_network *net, uint32_t rows, int place, int places,
                  uint32_t *from, uint32_t *end)
{
    uint64_t unit = net->policy.part_unit, units = (rows + unit - 1) / unit;
    uint64_t first = units * (uint64_t)place / (uint64_t)places * unit;
    uint64_t last = units * (uint64_t)(place + 1) / (uint64_t)places * unit;
    *from = (uint32_t)(first < rows ? first : rows);
    *end = (uint32_t)(last < rows ? last : rows);
}

void sdr_part_of(const struct sdr_network *net, uint32_t rows, int worker, uint32_t *from,
                 uint32_t *end)
{
    *from = 0;
    *end = rows;
    if (net->policy.joint)
        sdr_share_of(net, rows, worker, net->workers, from, end);
}

static enum sdr_status copy_rows(struct sdr_run *run, uint64_t epoch, uint64_t place,
                                 uint32_t count, uint32_t *row)
{
    struct sdr_network *net = run->network;
    struct sdr_sampler *sampler = &net->sampler;
    uint64_t at = epoch & (sampler->slots - 1);
    enum sdr_status status = SDR_OK;
    if (!net->single_threaded)
        pthread_mutex_lock(&sampler->lock);
    if (!sampler->slot[at].order)
        status = sdr_allocate(&sampler->slot[at].order, run->set.train_rows.count, sizeof *row,
                              "row order");
    if (status == SDR_OK && sampler->slot[at].epoch != epoch) {
        sdr_epoch_order(run, epoch, sampler->slot[at].order);
        if (net->policy.share)
            sdr_group_by_shard(run, sampler->slot[at].order, sampler->grouped);
        sampler->slot[at].epoch = epoch;
    }
    if (status == SDR_OK)
        memcpy(row, sampler->slot[at].order + place, count * sizeof *row);
    if (!net->single_threaded)
        pthread_mutex_unlock(&sampler->lock);
    return status;
}

/* Rows from … end − 1 of a batch. */
static enum sdr_status rows_of_batch(struct sdr_run *run, uint64_t number, uint32_t from,
                                     uint32_t end, uint32_t *row, struct sdr_batch *batch)
{
    uint64_t place, epoch = epoch_of(run->network, number, &place);
    SDR_TRY(copy_rows(run, epoch, place + from, end - from, row));
    if (run->data->checked)
        SDR_TRY(sdr_data_demand(run->data, row, end - from));
    *batch = (struct sdr_batch){.rows = &run->data->rows,
                                .row = row,
                                .count = end - from,
                                .number = number,
                                .at = place + from,
                                .of = sdr_network_rows(run, number)};
    return SDR_OK;
}

enum sdr_status sdr_network_batch(struct sdr_run *run, uint64_t number, int worker, uint32_t *row,
                                  struct sdr_batch *batch)
{
    uint32_t from = 0, end = sdr_network_rows(run, number);
    if (worker >= 0)
        sdr_part_of(run->network, end, worker, &from, &end);
    return rows_of_batch(run, number, from, end, row, batch);
}

enum sdr_status sdr_network_share(struct sdr_run *run, uint64_t number, int place, int places,
                                  uint32_t *row, struct sdr_batch *batch)
{
    uint32_t from, end;
    sdr_share_of(run->network, sdr_network_rows(run, number), place, places, &from, &end);
    return rows_of_batch(run, number, from, end, row, batch);
}

struct sdr_batch sdr_network_shard(const struct sdr_run *run, uint64_t number, int worker)
{
    uint64_t shares, epoch = share_of(run->network, number, &shares);
    uint64_t from = sdr_shard_rows(run, epoch, worker, shares);
    return (struct sdr_batch){.rows = &run->data->rows,
                              .count =
                                  (uint32_t)(sdr_shard_rows(run, epoch, worker, shares + 1) - from),
                              .number = number,
                              .at = from};
}

enum sdr_status sdr_network_shard_batch(struct sdr_run *run, uint64_t number, int worker,
                                        uint32_t *row, struct sdr_batch *batch)
{
    uint64_t shares, epoch = share_of(run->network, number, &shares);
    *batch = sdr_network_shard(run, number, worker);
    batch->row = row;
    SDR_TRY(copy_rows(run, epoch, sdr_shard_start(run, worker) + batch->at, batch->count, row));
    return run->data->checked ? sdr_data_demand(run->data, row, batch->count) : SDR_OK;
}

bool sdr_network_share_exists(const struct sdr_run *run, uint64_t number)
{
    uint64_t shares, epoch = share_of(run->network, number, &shares);
    return shares < sdr_shard_shares(run, epoch);
}

bool sdr_network_share_whole(const struct sdr_run *run, uint64_t number)
{
    uint64_t shares, epoch = share_of(run->network, number, &shares);
    return sdr_shard_whole(run, epoch, shares + 1);
}

bool sdr_network_ends_epoch(const struct sdr_run *run, uint64_t number)
{
    const struct sdr_policy *policy = &run->network->policy;
    uint64_t at, epoch = sdr_divide(&policy->epochs, number, &at);
    return at + 1 == (policy->share ? sdr_shard_shares(run, epoch) : policy->per_epoch);
}

enum sdr_status sdr_sampler_create(struct sdr_run *run)
{
    struct sdr_network *net = run->network;
    uint64_t outstanding = (uint64_t)net->workers * net->policy.batch / run->set.train_rows.count;
    uint64_t least = 4 * (outstanding + 1); /* reassigned batches may be old */
    for (net->sampler.slots = 1; net->sampler.slots < least;)
        net->sampler.slots *= 2;
    pthread_mutex_init(&net->sampler.lock, NULL);
    if (net->policy.share)
        SDR_TRY(sdr_allocate(&net->sampler.grouped,
                             run->set.train_rows.count + (size_t)net->workers, sizeof(uint32_t),
                             "row orders"));
    SDR_TRY(sdr_allocate(&net->sampler.slot, net->sampler.slots, sizeof *net->sampler.slot,
                         "row orders"));
    for (uint64_t i = 0; i < net->sampler.slots; i++)
        net->sampler.slot[i].epoch = UINT64_MAX;
    return SDR_OK;
}
