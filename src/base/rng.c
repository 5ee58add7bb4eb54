#include "base/rng.h"

#include <math.h>
#include <stdlib.h>

struct sdr_random4 sdr_philox(uint64_t seed, uint32_t purpose, uint64_t a, uint32_t b)
{
    uint32_t c0 = b, c1 = purpose, c2 = (uint32_t)a, c3 = (uint32_t)(a >> 32);
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0;
        uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return (struct sdr_random4){{c0, c1, c2, c3}};
}

struct sdr_stream sdr_stream_open(uint64_t seed, enum sdr_purpose purpose, uint64_t a)
{
    return (struct sdr_stream){.seed = seed, .a = a, .purpose = (uint32_t)purpose};
}

uint32_t sdr_stream_u32(struct sdr_stream *stream)
{
    if (stream->left == 0) {
        stream->words = sdr_philox(stream->seed, stream->purpose, stream->a, stream->b++);
        stream->left = 4;
    }
    return stream->words.word[--stream->left];
}

static uint64_t next_u64(struct sdr_stream *stream)
{
    uint64_t high = sdr_stream_u32(stream);
    return high << 32 | sdr_stream_u32(stream);
}

/* Lemire's multiply-and-reject; the 32-bit path covers all but enormous ranges. */
uint64_t sdr_stream_below(struct sdr_stream *stream, uint64_t n)
{
    if (n <= UINT32_MAX) {
        uint32_t range = (uint32_t)n;
        uint64_t product = (uint64_t)sdr_stream_u32(stream) * range;
        if ((uint32_t)product < range) /* rare: only this case needs the division */
            while ((uint32_t)product < -range % range)
                product = (uint64_t)sdr_stream_u32(stream) * range;
        return product >> 32;
    }
    uint64_t limit = UINT64_MAX - UINT64_MAX % n, draw;
    do
        draw = next_u64(stream);
    while (draw >= limit);
    return draw % n;
}

double sdr_stream_uniform(struct sdr_stream *stream)
{
    return (double)(next_u64(stream) >> 11) * 0x1p-53;
}

/* Box–Muller, dropping the second value: every call consumes the same number of draws. */
double sdr_stream_normal(struct sdr_stream *stream)
{
    double u = 1.0 - sdr_stream_uniform(stream), v = sdr_stream_uniform(stream);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

void sdr_shuffle(uint32_t *order, uint32_t n, struct sdr_stream *stream)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t j = (uint32_t)sdr_stream_below(stream, (uint64_t)i + 1);
        order[i] = order[j];
        order[j] = i;
    }
}

/* Selection sampling (Knuth, algorithm S): takes each number with probability needed /
   remaining. */
static void sample_many(struct sdr_stream *stream, uint32_t n, uint32_t k, uint32_t *row)
{
    uint32_t taken = 0;
    for (uint32_t i = 0; taken < k; i++)
        if (sdr_stream_below(stream, n - i) < k - taken)
            row[taken++] = i;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Rejection sampling: draws until k numbers are distinct. All sets of k are equally likely. */
static void sample_few(struct sdr_stream *stream, uint32_t n, uint32_t k, uint32_t *row)
{
    for (uint32_t distinct = 0; distinct < k;) {
        for (uint32_t i = distinct; i < k; i++)
            row[i] = (uint32_t)sdr_stream_below(stream, n);
        qsort(row, k, sizeof *row, by_number);
        distinct = 0;
        for (uint32_t i = 0; i < k; i++)
            if (i == 0 || row[i] != row[distinct - 1])
                row[distinct++] = row[i];
    }
}

void sdr_sample(uint64_t seed, uint32_t n, uint32_t k, uint32_t *row)
{
    struct sdr_stream stream = sdr_stream_open(seed, SDR_FOR_SAMPLE, 0);
    if (n / 4 < k)
        sample_many(&stream, n, k, row);
    else
        sample_few(&stream, n, k, row);
}
