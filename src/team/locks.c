/* Locks on equal parts of the parameters. */
#include "team/team.h"

/* Bit mask of the locks on the values a batch touches. */
static uint64_t locks_of(const struct sdr_node *node, const struct sdr_batch *batch)
{
    const struct sdr_layout *layout = node->run->parameters.layout;
    uint64_t locks = (uint64_t)node->plan->locks, mask = 0;
    if (locks == 1)
        return 1;
    if (batch->rows->dense || node->plan->known.all_conflict)
        return locks == 64 ? UINT64_MAX : ((uint64_t)1 << locks) - 1;
    for (int b = 0; b < layout->blocks; b++) {
        const struct sdr_block *block = &layout->block[b];
        uint64_t size = (uint64_t)block->rows * block->cols;
        uint64_t first = block->offset * locks / layout->count;
        uint64_t last = (block->offset + size - 1) * locks / layout->count;
        for (uint64_t lock = first; lock <= last && !block->per_feature; lock++)
            mask |= (uint64_t)1 << lock;
        for (uint32_t i = 0; i < batch->count && block->per_feature; i++) {
            struct sdr_sparse_row r = sdr_sparse_row(batch->rows, batch->row[i]);
            for (uint32_t n = 0; n < r.n; n++) {
                uint64_t at = block->offset + (uint64_t)sdr_row_index(&r, n) * block->cols;
                for (uint64_t lock = at * locks / layout->count;
                     lock <= (at + block->cols - 1) * locks / layout->count; lock++)
                    mask |= (uint64_t)1 << lock;
            }
        }
    }
    return mask;
}

/* Locks in ascending order, which prevents deadlock. */
void sdr_lock(struct sdr_node *node, const struct sdr_batch *batch)
{
    for (uint64_t mask = locks_of(node, batch); mask; mask &= mask - 1)
        pthread_mutex_lock(&node->run->shared.team->guard[__builtin_ctzll(mask)]);
}

void sdr_unlock(struct sdr_node *node, const struct sdr_batch *batch)
{
    for (uint64_t mask = locks_of(node, batch); mask; mask &= mask - 1)
        pthread_mutex_unlock(&node->run->shared.team->guard[__builtin_ctzll(mask)]);
}
