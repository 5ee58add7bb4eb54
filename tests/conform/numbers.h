/* Numbers for tests: random ones that are the same everywhere, comparisons that say what
   differed. */
#ifndef TESTS_CONFORM_NUMBERS_H
#define TESTS_CONFORM_NUMBERS_H

#include "base/cpu.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define RANDOM_START 88172645463325252u
static uint64_t random_state = RANDOM_START;

static inline uint32_t random_bits(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 32);
}
static inline uint32_t random_below(uint32_t n)
{
    return (uint32_t)((uint64_t)random_bits() * n >> 32);
}
/* In [−size, size), a multiple of size/2²⁰. */
static inline float random_float(float size)
{
    return size * ((float)random_below(1u << 21) / 1048576.0f - 1.0f);
}
/* A multiple of 1/256 in [−size, size]: sums and halves of a few are exact. */
static inline float random_dyadic(int size)
{
    return (float)((int)random_below((uint32_t)(512 * size + 1)) - 256 * size) / 256.0f;
}

/* n: the size of what was computed. */
static inline void same_bits(const float *right, const float *seen, size_t count, const char *what,
                             uint32_t n)
{
    for (size_t i = 0; i < count; i++)
        if (memcmp(&right[i], &seen[i], sizeof *seen) != 0)
            fail_msg("%s with n = %u: value %zu is %a, and should be %a", what, n, i,
                     (double)seen[i], (double)right[i]);
}

/* Makes each level of this CPU the one in use, with the same random numbers for all. */
static inline bool use_cpu_level(int level)
{
    if (level > (int)sdr_cpu_best())
        return false;
    print_message("level %s\n", sdr_cpu_name((enum sdr_cpu)level));
    assert_int_equal(sdr_cpu_use((enum sdr_cpu)level), SDR_OK);
    random_state = RANDOM_START;
    return true;
}
#define FOR_EVERY_CPU_LEVEL for (int level_ = 0; use_cpu_level(level_); level_++)

#define assert_near(a, b, bound, ...)                                                              \
    do {                                                                                           \
        double a_ = (a), b_ = (b), bound_ = (bound);                                               \
        if (!(fabs(a_ - b_) <= bound_)) {                                                          \
            print_error("%.17g against %.17g, apart by %.3g, allowed %.3g: ", a_, b_,              \
                        fabs(a_ - b_), bound_);                                                    \
            print_error(__VA_ARGS__);                                                              \
            fail_msg(" ");                                                                         \
        }                                                                                          \
    } while (0)

#endif
