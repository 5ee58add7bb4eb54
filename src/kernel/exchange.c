/* Lock-free exchange, see exchange.h: two or four floats per atomic operation. Each float must be
   written in one piece; the order among values does not matter. */
#include "kernel/exchange.h"
#include "base/cpu.h"

#include <stdbool.h>
#include <string.h>

typedef uint64_t pair_bits __attribute__((may_alias));

void sdr_exchange_take(const float *shared, float *mine, float *base, uint64_t count)
{
    for (uint64_t i = 0; i < count; i += 2) {
        uint64_t bits = __atomic_load_n((const pair_bits *)(shared + i), __ATOMIC_RELAXED);
        memcpy(mine + i, &bits, sizeof bits);
        memcpy(base + i, &bits, sizeof bits);
    }
}

/* Four values held in one register; going through memory in parts takes twice as long. */
typedef float four __attribute__((vector_size(16)));
typedef int32_t mask __attribute__((vector_size(16)));
typedef uint64_t halves __attribute__((vector_size(16)));

static four load(const float *from, size_t size)
{
    four values = {0};
    memcpy(&values, from, size);
    return values;
}

static four choose(mask where, four yes, four no)
{
    return (four)((where & (mask)yes) | (~where & (mask)no));
}

/* The new shared value. `now` may differ from `base` if other workers changed it. */
static four merged(four now, four mine, four base, enum sdr_merge how)
{
    four next = now + (mine - base);
    if (how == SDR_MERGE_SHRUNK)
        next = choose((mine * base >= 0) & (next * now < 0), (four){0}, next);
    if (how == SDR_MERGE_MEAN)
        next = now + (mine - now) * 0.5f;
    return choose(mine == base, now, choose(now == base, mine, next));
}

static bool same(four a, four b)
{
    halves differ = (halves)a ^ (halves)b;
    return (differ[0] | differ[1]) == 0;
}

static void push_pairs(float *shared, const float *mine, const float *base, uint64_t count,
                       enum sdr_merge how)
{
    for (uint64_t i = 0; i < count; i += 2) {
        four gives = load(mine + i, sizeof(uint64_t)), had = load(base + i, sizeof(uint64_t));
        if (same(gives, had))
            continue;
        pair_bits *at = (pair_bits *)(shared + i);
        uint64_t found = __atomic_load_n(at, __ATOMIC_RELAXED), wanted;
        do {
            wanted = ((halves)merged((four)(halves){found, 0}, gives, had, how))[0];
        } while (!__atomic_compare_exchange_n(at, &found, wanted, false, __ATOMIC_RELAXED,
                                              __ATOMIC_RELAXED));
    }
}

#if defined(__x86_64__)
typedef unsigned __int128 quad_bits __attribute__((may_alias, aligned(16)));

static quad_bits quad_of(halves values)
{
    return (quad_bits)values[1] << 64 | values[0];
}

/* Four floats per compare-and-swap: its cost does not depend on the width. The first guess is read
   in two halves; if another worker wrote between them, the swap fails and returns the current
   value. (The build compiles this file with -mcx16.) */
static void push_quads(float *shared, const float *mine, const float *base, uint64_t count,
                       enum sdr_merge how)
{
    /* values: lines that another worker wrote take long to come, and a swap waits for nothing
       else */
    enum { AHEAD = 128 };
    for (uint64_t i = 0; i < count; i += 4) {
        if (i % 16 == 0 && i + AHEAD < count)
            __builtin_prefetch(shared + i + AHEAD, 1);
        four gives = load(mine + i, sizeof(four)), had = load(base + i, sizeof(four));
        if (same(gives, had))
            continue;
        const pair_bits *at = (const pair_bits *)(shared + i);
        halves guess = {__atomic_load_n(at, __ATOMIC_RELAXED),
                        __atomic_load_n(at + 1, __ATOMIC_RELAXED)};
        for (;;) {
            quad_bits expected = quad_of(guess);
            quad_bits wanted = quad_of((halves)merged((four)guess, gives, had, how));
            quad_bits found =
                __sync_val_compare_and_swap((quad_bits *)(shared + i), expected, wanted);
            if (found == expected)
                break;
            guess = (halves){(uint64_t)found, (uint64_t)(found >> 64)};
        }
    }
}
#endif

void sdr_exchange_give(float *shared, const float *mine, const float *base, uint64_t count,
                       enum sdr_merge how)
{
#if defined(__x86_64__)
    uint64_t quads = (uintptr_t)shared % 16 == 0 && sdr_cpu_level() > SDR_CPU_PORTABLE
                         ? count / 4 * 4
                         : 0; /* every CPU with AVX2 has cmpxchg16b */
    push_quads(shared, mine, base, quads, how);
#else
    uint64_t quads = 0;
#endif
    push_pairs(shared + quads, mine + quads, base + quads, count - quads, how);
}
