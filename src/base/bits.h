/* Bit sets: one bit per number, in 64-bit words. */
#ifndef SDR_BASE_BITS_H
#define SDR_BASE_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Words of a set over 0 … count−1. Zeroed words are the empty set. */
static inline size_t sdr_bit_words(size_t count)
{
    return (count + 63) / 64;
}

static inline bool sdr_bit_is_on(const uint64_t *words, size_t number)
{
    return words[number / 64] >> number % 64 & 1;
}

static inline void sdr_bit_turn_on(uint64_t *words, size_t number)
{
    words[number / 64] |= (uint64_t)1 << number % 64;
}

#endif
