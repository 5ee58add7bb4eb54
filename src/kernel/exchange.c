/* Lock-free exchange: see exchange.h. Two or four floats at a time: fewer atomic operations. Values
   need no order among each other, only to be whole. */
#include "kernel/exchange.h"
#include "base/cpu.h"

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

static void merge_all(float *now, const float *mine, const float *base, int count,
                      enum sdr_merge how)
{
    for (int k = 0; k < count; k++)
        now[k] = merged(now[k], mine[k], base[k], how);
}

static void give_pairs(float *shared, const float *mine, const float *base, uint64_t count,
                       enum sdr_merge how)
{
    for (uint64_t i = 0; i < count; i += 2) {
        if (bits_of(mine + i) == bits_of(base + i))
            continue;
        pair_bits *at = (pair_bits *)(shared + i);
        uint64_t found = __atomic_load_n(at, __ATOMIC_RELAXED), wanted;
        do {
            float now[2];
            memcpy(now, &found, sizeof now);
            merge_all(now, mine + i, base + i, 2, how);
            wanted = bits_of(now);
        } while (!__atomic_compare_exchange_n(at, &found, wanted, false, __ATOMIC_RELAXED,
                                              __ATOMIC_RELAXED));
    }
}

#if defined(__x86_64__)
typedef unsigned __int128 quad_bits __attribute__((may_alias, aligned(16)));

/* Four at a time, which is what takes the time: an atomic operation costs the same for any width. The
   first guess is read in halves; where they do not belong together the exchange fails and tells. (The
   build compiles this file with -mcx16.) */
static void give_quads(float *shared, const float *mine, const float *base, uint64_t count,
                       enum sdr_merge how)
{
    for (uint64_t i = 0; i < count; i += 4) {
        if (memcmp(mine + i, base + i, sizeof(quad_bits)) == 0)
            continue;
        uint64_t half[2];
        for (int k = 0; k < 2; k++)
            half[k] = __atomic_load_n((pair_bits *)(shared + i + 2 * k), __ATOMIC_RELAXED);
        quad_bits before, found;
        memcpy(&found, half, sizeof found);
        do {
            float now[4];
            quad_bits wanted;
            before = found;
            memcpy(now, &before, sizeof now);
            merge_all(now, mine + i, base + i, 4, how);
            memcpy(&wanted, now, sizeof wanted);
            found = __sync_val_compare_and_swap((quad_bits *)(shared + i), before, wanted);
        } while (found != before);
    }
}
#endif

void sdr_exchange_give(float *shared, const float *mine, const float *base, uint64_t count,
                       enum sdr_merge how)
{
#if defined(__x86_64__)
    uint64_t quads = (uintptr_t)shared % 16 == 0 && sdr_cpu_best() > SDR_CPU_PORTABLE
                         ? count / 4 * 4
                         : 0; /* every CPU with AVX2 has them */
    give_quads(shared, mine, base, quads, how);
#else
    uint64_t quads = 0;
#endif
    give_pairs(shared + quads, mine + quads, base + quads, count - quads, how);
}
