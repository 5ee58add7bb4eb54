/* Replicas: pull, push, merge and mean. See parameters.h. */
#include "base/affinity.h"
#include "base/memory.h"
#include "kernel/exchange.h"
#include "update/parameters.h"

#include <string.h>

enum { BLOCK_ALIGN = SDR_ALIGN / sizeof(float) };

/* Whether an array is the value, or determines it, as FTRL's state does. */
static bool of_value(const struct sdr_parameters *p, int i)
{
    return i == 0 || p->rule.optimizer->own_penalty;
}

static enum sdr_merge merge_of(const struct sdr_parameters *p, int i)
{
    if (i > 0)
        return p->rule.optimizer->sums ? SDR_MERGE_SUM : SDR_MERGE_MEAN;
    return p->rule.penalty.l1 > 0 ? SDR_MERGE_SHRUNK : SDR_MERGE_SUM;
}

void sdr_replica_place(struct sdr_parameters *replica, struct sdr_affinity *affinity, int worker)
{
    for (int i = 0; i <= replica->rule.optimizer->slots; i++) {
        sdr_affinity_move(affinity, worker, sdr_parameters_array(replica, i),
                          replica->layout->count * sizeof(float));
        if (replica->base[i])
            sdr_affinity_move(affinity, worker, replica->base[i],
                              replica->layout->count * sizeof(float));
    }
}

void sdr_replica_pull(struct sdr_parameters *replica, const struct sdr_parameters *shared)
{
    if (sdr_cells_merged(replica)) {
        sdr_cells_pull(replica, shared);
        return;
    }
    replica->in_cells = false; /* what they hold is replaced */
    for (int i = 0; i <= replica->rule.optimizer->slots; i++)
        if (replica->base[0])
            sdr_exchange_take(sdr_parameters_array(shared, i), sdr_parameters_array(replica, i),
                              replica->base[i], replica->layout->count);
        else
            memcpy(sdr_parameters_array(replica, i), sdr_parameters_array(shared, i),
                   replica->layout->count * sizeof(float));
}

void sdr_replica_push(struct sdr_parameters *replica, struct sdr_parameters *shared,
                      const float *damping, int replicas)
{
    sdr_parameters_catch_up_all(replica);
    if (damping) /* changes not pushed are lost: the next pull overwrites them */
        for (int i = 0; i <= replica->rule.optimizer->slots; i++)
            for (uint64_t at = 0; at < replica->layout->count && of_value(replica, i); at++) {
                float share =
                    damping[at] > 2.0f / (float)replicas ? damping[at] : 2.0f / (float)replicas;
                float *mine = &sdr_parameters_array(replica, i)[at], base = replica->base[i][at];
                if (share < 1)
                    *mine = base + share * (*mine - base);
            }
    for (int i = 0; i <= replica->rule.optimizer->slots; i++)
        sdr_exchange_give(sdr_parameters_array(shared, i), sdr_parameters_array(replica, i),
                          replica->base[i], replica->layout->count, merge_of(replica, i));
}

/* Parts are whole cache lines. */
static uint64_t part_start(const struct sdr_parameters *p, uint64_t part, uint64_t parts)
{
    return p->layout->count / BLOCK_ALIGN * part / parts * BLOCK_ALIGN;
}

static float mean_of(struct sdr_parameters *replica, int replicas, int array, uint64_t at)
{
    double sum =
        sdr_parameters_array(&replica[0], array)[at]; /* not 0 + …: that loses the sign of −0 */
    for (int c = 1; c < replicas; c++)
        sum += sdr_parameters_array(&replica[c], array)[at];
    return (float)(sum / replicas);
}

void sdr_replicas_mean(struct sdr_parameters *p, struct sdr_parameters *replica, int replicas)
{
    for (int c = 0; c < replicas; c++)
        sdr_parameters_catch_up_all(&replica[c]);
    for (int i = 0; i <= p->rule.optimizer->slots; i++)
        for (uint64_t at = 0; at < p->layout->count; at++)
            sdr_parameters_array(p, i)[at] = mean_of(replica, replicas, i, at);
}

void sdr_replicas_blend(struct sdr_parameters *replica, int replicas, uint64_t part, uint64_t parts)
{
    uint64_t end = part_start(replica, part + 1, parts);
    for (int i = 0; i <= replica->rule.optimizer->slots; i++)
        for (uint64_t at = part_start(replica, part, parts); at < end && of_value(replica, i);
             at++) {
            float mean = mean_of(replica, replicas, i, at);
            for (int c = 0; c < replicas; c++)
                sdr_parameters_array(&replica[c], i)[at] = mean;
        }
}

void sdr_replicas_merge(struct sdr_parameters *shared, struct sdr_parameters *replica, int replicas,
                        const float *damping, uint64_t part, uint64_t parts)
{
    enum { REPLICAS_MOST = 1024 };
    const float *array[REPLICAS_MOST];
    uint64_t first = part_start(shared, part, parts), end = part_start(shared, part + 1, parts);
    if (sdr_cells_merged(&replica[0])) {
        uint64_t others =
            (shared->layout->block[0].rows + (uint64_t)BLOCK_ALIGN - 1) / BLOCK_ALIGN * BLOCK_ALIGN;
        sdr_cells_merge(shared, replica, replicas, damping, part, parts);
        first = first > others ? first : others;
    }
    for (int i = 0; i <= shared->rule.optimizer->slots && first < end; i++) {
        for (int c = 0; c < replicas; c++)
            array[c] = sdr_parameters_array(&replica[c], i) + first;
        shared->rule.kernels->merge(sdr_parameters_array(shared, i) + first, array, replicas,
                                    end - first, merge_of(shared, i),
                                    damping && of_value(shared, i) ? damping + first : NULL);
    }
}
