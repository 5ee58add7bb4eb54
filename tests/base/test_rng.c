/* Laws of randomness: Philox gives the published numbers, and what is built on it is fair. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Known answers of Random123 (kat_vectors, philox4x32-10): counter, key, result. Our counter is
   (b, purpose, low a, high a), our key the seed. */
static void philox_gives_the_known_answers_of_random123(void **state)
{
    static const uint32_t known[][10] = {
        {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
        {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x408f276d,
         0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
        {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09,
         0x94fdcceb, 0x5001e420, 0x24126ea1}};
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const uint32_t *k = known[i];
        struct sdr_random4 r =
            sdr_philox((uint64_t)k[5] << 32 | k[4], k[1], (uint64_t)k[3] << 32 | k[2], k[0]);
        assert_memory_equal(r.word, k + 6, sizeof r.word);
    }
}

static void a_stream_is_a_pure_function_of_its_four_numbers(void **state)
{
    (void)state;
    struct sdr_stream a = sdr_stream_open(7, SDR_FOR_TEST, 3), b = a, other;
    for (int i = 0; i < 1000; i++)
        assert_int_equal(sdr_stream_u32(&a), sdr_stream_u32(&b));
    /* Neighbours in seed, purpose and a share nothing. */
    const struct sdr_stream near[] = {sdr_stream_open(8, SDR_FOR_TEST, 3),
                                      sdr_stream_open(7, SDR_FOR_NOISE, 3),
                                      sdr_stream_open(7, SDR_FOR_TEST, 4)};
    for (size_t n = 0; n < sizeof near / sizeof *near; n++) {
        int same = 0;
        a = sdr_stream_open(7, SDR_FOR_TEST, 3);
        other = near[n];
        for (int i = 0; i < 1000; i++)
            same += sdr_stream_u32(&a) == sdr_stream_u32(&other);
        assert_true(same < 3);
    }
}

/* Chi-square with many degrees of freedom is nearly normal: mean d, variance 2d. */
static void expect_fair(const uint32_t *count, size_t cells, double expected)
{
    double chi = 0, freedom = (double)cells - 1;
    for (size_t i = 0; i < cells; i++)
        chi += (count[i] - expected) * (count[i] - expected) / expected;
    if (fabs(chi - freedom) > 5 * sqrt(2 * freedom))
        fail_msg("chi-square %g for %g degrees of freedom", chi, freedom);
}

static void every_permutation_of_five_is_equally_likely(void **state)
{
    enum { PERMUTATIONS = 120, EACH = 500 };
    uint32_t count[PERMUTATIONS] = {0};
    (void)state;
    for (uint64_t trial = 0; trial < PERMUTATIONS * EACH; trial++) {
        struct sdr_stream stream = sdr_stream_open(1, SDR_FOR_TEST, trial);
        uint32_t order[5];
        sdr_shuffle(order, 5, &stream);
        uint32_t number = 0;
        for (uint32_t i = 0; i < 5; i++) { /* Lehmer code */
            uint32_t smaller = 0;
            for (uint32_t j = i + 1; j < 5; j++)
                smaller += order[j] < order[i];
            number = number * (5 - i) + smaller;
        }
        assert_true(number < PERMUTATIONS);
        count[number]++;
    }
    expect_fair(count, PERMUTATIONS, EACH);
}

static void every_value_reaches_every_place_equally_often(void **state)
{
    enum { N = 32, TRIALS = 20000 };
    static uint32_t count[N * N];
    (void)state;
    memset(count, 0, sizeof count);
    for (uint64_t trial = 0; trial < TRIALS; trial++) {
        struct sdr_stream stream = sdr_stream_open(trial, SDR_FOR_SHUFFLE, 0);
        uint32_t order[N];
        sdr_shuffle(order, N, &stream);
        for (uint32_t i = 0; i < N; i++)
            count[i * N + order[i]]++;
    }
    /* Rows and columns are tied to their sums: (n−1)² degrees of freedom of n². */
    double chi = 0, expected = (double)TRIALS / N, freedom = (N - 1) * (N - 1);
    for (size_t i = 0; i < N * N; i++)
        chi += (count[i] - expected) * (count[i] - expected) / expected;
    assert_true(fabs(chi - freedom) < 5 * sqrt(2 * freedom));
}

static void a_shuffle_of_any_length_is_a_permutation(void **state)
{
    static const uint32_t lengths[] = {0, 1, 2, 3, 1000, 100003};
    (void)state;
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        uint32_t n = lengths[l], *order = calloc(n + 1, sizeof *order);
        unsigned char *seen = calloc(n + 1, 1);
        assert_true(order && seen);
        struct sdr_stream stream = sdr_stream_open(5, SDR_FOR_TEST, n);
        order[n] = 0xDEADBEEF;
        sdr_shuffle(order, n, &stream);
        assert_int_equal(order[n], 0xDEADBEEF);
        for (uint32_t i = 0; i < n; i++) {
            assert_true(order[i] < n && !seen[order[i]]);
            seen[order[i]] = 1;
        }
        free(order);
        free(seen);
    }
}

static void numbers_below_n_are_below_n_and_fair(void **state)
{
    enum { N = 1000, EACH = 100 };
    static uint32_t count[N];
    struct sdr_stream stream = sdr_stream_open(3, SDR_FOR_TEST, 0);
    (void)state;
    memset(count, 0, sizeof count);
    for (int i = 0; i < N * EACH; i++) {
        uint64_t x = sdr_stream_below(&stream, N);
        assert_true(x < N);
        count[x]++;
    }
    expect_fair(count, N, EACH);
    assert_int_equal(sdr_stream_below(&stream, 1), 0);
    /* Ranges beyond 32 bits, where a plain remainder would favour the lower half. */
    uint64_t n = ((uint64_t)1 << 63) + ((uint64_t)1 << 62);
    int upper = 0;
    for (int i = 0; i < 30000; i++) {
        uint64_t x = sdr_stream_below(&stream, n);
        assert_true(x < n);
        upper += x >= n / 2;
    }
    assert_true(abs(upper - 15000) < 5 * 87);
    for (int i = 0; i < 1000; i++)
        assert_true(sdr_stream_below(&stream, (uint64_t)UINT32_MAX + 1) <= UINT32_MAX);
}

static void uniform_and_normal_numbers_have_their_moments(void **state)
{
    enum { N = 200000 };
    struct sdr_stream stream = sdr_stream_open(11, SDR_FOR_TEST, 0);
    double sum = 0, square = 0, cube = 0, fourth = 0;
    (void)state;
    for (int i = 0; i < N; i++) {
        double u = sdr_stream_uniform(&stream);
        assert_true(u >= 0 && u < 1);
        sum += u;
        square += u * u;
    }
    assert_true(fabs(sum / N - 0.5) < 5 * 0.2887 / sqrt(N));
    assert_true(fabs(square / N - 1.0 / 3) < 5 * 0.2982 / sqrt(N));
    sum = square = 0;
    for (int i = 0; i < N; i++) {
        double x = sdr_stream_normal(&stream);
        assert_true(isfinite(x));
        sum += x;
        square += x * x;
        cube += x * x * x;
        fourth += x * x * x * x;
    }
    assert_true(fabs(sum / N) < 5 / sqrt(N));
    assert_true(fabs(square / N - 1) < 5 * sqrt(2.0 / N));
    assert_true(fabs(cube / N) < 5 * sqrt(15.0 / N));
    assert_true(fabs(fourth / N - 3) < 5 * sqrt(96.0 / N));
}

/* Pairs of rows too: a stride, or one row of each of k parts, would meet some pairs never. */
static void every_row_and_every_pair_is_sampled_equally_often(void **state)
{
    enum { MOST = 40, TRIALS = 20000 };
    static const uint32_t shape[][2] = {{7, 3}, {8, 7}, {40, 5}, {5, 5}, {6, 1}}; /* n, k */
    (void)state;
    for (size_t s = 0; s < sizeof shape / sizeof *shape; s++) {
        uint32_t n = shape[s][0], k = shape[s][1], row[MOST];
        uint32_t seen[MOST] = {0}, together[MOST * MOST] = {0};
        for (uint32_t trial = 0; trial < TRIALS; trial++) {
            sdr_sample(trial, n, k, row);
            for (uint32_t i = 0; i < k; i++) {
                assert_true(row[i] < n && (i == 0 || row[i] > row[i - 1]));
                seen[row[i]]++;
                for (uint32_t j = 0; j < i; j++)
                    together[row[j] * n + row[i]]++;
            }
        }
        double p = (double)k / n, q = p * (k - 1) / (n - 1);
        for (uint32_t a = 0; a < n; a++) {
            assert_true(fabs(seen[a] - TRIALS * p) <= 6 * sqrt(TRIALS * p * (1 - p)));
            for (uint32_t b = a + 1; b < n; b++)
                assert_true(fabs(together[a * n + b] - TRIALS * q) <=
                            6 * sqrt(TRIALS * q * (1 - q)) + 1e-6);
        }
    }
}

static void a_sample_of_many_rows_depends_on_the_seed_alone(void **state)
{
    enum { K = 20000 };
    static uint32_t a[K], b[K], c[K];
    (void)state;
    sdr_sample(5, UINT32_MAX, K, a);
    sdr_sample(5, UINT32_MAX, K, b);
    sdr_sample(6, UINT32_MAX, K, c);
    assert_memory_equal(a, b, sizeof a);
    assert_memory_not_equal(a, c, sizeof a);
    double mean = 0;
    for (uint32_t i = 0; i < K; i++)
        mean += (double)a[i] / UINT32_MAX / K;
    assert_true(fabs(mean - 0.5) < 5 * 0.2887 / sqrt(K));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_gives_the_known_answers_of_random123),
        cmocka_unit_test(a_stream_is_a_pure_function_of_its_four_numbers),
        cmocka_unit_test(every_permutation_of_five_is_equally_likely),
        cmocka_unit_test(every_value_reaches_every_place_equally_often),
        cmocka_unit_test(a_shuffle_of_any_length_is_a_permutation),
        cmocka_unit_test(numbers_below_n_are_below_n_and_fair),
        cmocka_unit_test(every_row_and_every_pair_is_sampled_equally_often),
        cmocka_unit_test(a_sample_of_many_rows_depends_on_the_seed_alone),
        cmocka_unit_test(uniform_and_normal_numbers_have_their_moments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
