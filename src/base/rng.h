/* Counter-based randomness: Philox4x32-10 (Salmon et al., SC 2011). A draw is a pure function of
   (seed, purpose, a, b), independent of threads and of earlier draws. */
#ifndef SDR_BASE_RNG_H
#define SDR_BASE_RNG_H

#include <stdint.h>

/* The purpose of a draw; each has its own stream. Append only: the numbers determine the bits. */
enum sdr_purpose {
    SDR_FOR_SHUFFLE = 1,
    SDR_FOR_BLOCK_SHUFFLE = 2,
    SDR_FOR_START = 3,
    SDR_FOR_GENERATE = 4,
    SDR_FOR_NOISE = 5,
    SDR_FOR_DELAY = 6,
    SDR_FOR_SAMPLE = 7,
    SDR_FOR_DROPOUT = 8,
    SDR_FOR_STATES = 9,
    SDR_FOR_LOSSES = 10,
    SDR_FOR_TEST = 99
};

struct sdr_random4 {
    uint32_t word[4];
};
struct sdr_random4 sdr_philox(uint64_t seed, uint32_t purpose, uint64_t a, uint32_t b);

/* A sequential generator over the counter b for one (seed, purpose, a). */
struct sdr_stream {
    uint64_t seed, a;
    uint32_t purpose, b;
    unsigned left;
    struct sdr_random4 words;
};
struct sdr_stream sdr_stream_open(uint64_t seed, enum sdr_purpose purpose, uint64_t a);
uint32_t sdr_stream_u32(struct sdr_stream *stream);
uint64_t sdr_stream_below(struct sdr_stream *stream, uint64_t n); /* 0 … n−1, unbiased */
double sdr_stream_uniform(struct sdr_stream *stream);             /* [0, 1), 53 bits */
double sdr_stream_normal(struct sdr_stream *stream);              /* mean 0, variance 1 */

/* Fills order with a random permutation of 0 … n−1. */
void sdr_shuffle(uint32_t *order, uint32_t n, struct sdr_stream *stream);

/* Fills row with k ≤ n distinct numbers of 0 … n−1, increasing; every set of k is equally likely.
   Time and memory grow with k, not n. Sampling rows by a stride instead would see only one phase of
   a periodic order. */
void sdr_sample(uint64_t seed, uint32_t n, uint32_t k, uint32_t *row);

#endif
