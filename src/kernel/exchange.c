/* Lock-free exchange: see exchange.h. Two floats at a time: half the atomic operations. All accesses to
   the shared array are relaxed: values need no order among each other, only to be whole. */
#include "kernel/exchange.h"

#include <stdbool.h>
#include <string.h>

typedef uint64_t pair_bits __attribute__((may_alias));

static uint64_t bits_of(const float pair[2])
{
    uint64_t bits;
    memcpy(&bits, pair, sizeof bits);
    return bits;
}

void sdr_exchange_take(const float *shared, float *mine, float *base, uint64_t count)
{
    for (uint64_t i = 0; i < count; i += 2) {
        uint64_t bits = __atomic_load_n((const pair_bits *)(shared + i), __ATOMIC_RELAXED);
        memcpy(mine + i, &bits, sizeof bits);
        memcpy(base + i, &bits, sizeof bits);
    }
}

/* The value that `now`, perhaps changed by others since it was `base`, becomes. */
static float merged(float now, float mine, float base, enum sdr_merge how)
{
    if (mine == base)
        return now;
    if (now == base)
        return mine;
    if (how == SDR_MERGE_MEAN)
        return now + (mine - now) * 0.5f;
    float next = now + (mine - base);
    bool crossed = mine * base >= 0 && next * now < 0;
    return how == SDR_MERGE_SHRUNK && crossed ? 0.0f : next;
}

void sdr_exchange_give(float *shared, const float *mine, const float *base, uint64_t count,
                       enum sdr_merge how)
{
    for (uint64_t i = 0; i < count; i += 2) {
        uint64_t wanted = bits_of(mine + i), found = bits_of(base + i);
        if (wanted == found)
            continue;
        while (!__atomic_compare_exchange_n((pair_bits *)(shared + i), &found, wanted, false,
                                            __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            float now[2];
            memcpy(now, &found, sizeof now);
            for (int k = 0; k < 2; k++)
                now[k] = merged(now[k], mine[i + k], base[i + k], how);
            wanted = bits_of(now);
        }
    }
}
