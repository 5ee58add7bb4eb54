/* The Parzen window is its inner product, ⟨g, w − w_j⟩ > η/2 ‖g‖²: for random vectors, and at the
   boundary, where numbers are exact. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "sync/parzen.h"

#include <math.h>

enum { MOST = 300 };
static float before[MOST], after[MOST], state[MOST], gradient[MOST];

static bool takes(uint64_t count)
{
    struct sdr_parzen parzen = {0};
    uint64_t half = count / 2; /* pieces add up */
    sdr_parzen_add(&parzen, before, after, state, half);
    sdr_parzen_add(&parzen, before + half, after + half, state + half, count - half);
    return sdr_parzen_takes(&parzen);
}

static void random_vectors(void **unused)
{
    struct sdr_stream random = sdr_stream_open(1, SDR_FOR_TEST, 1);
    int taken = 0, total = 20000;
    (void)unused;
    for (int t = 0; t < total; t++) {
        uint64_t count = 1 + sdr_stream_below(&random, MOST);
        double rate = exp(sdr_stream_normal(&random) - 3), product = 0, square = 0;
        for (uint64_t i = 0; i < count; i++) {
            before[i] = (float)sdr_stream_normal(&random);
            state[i] = (float)(before[i] + 0.3 * sdr_stream_normal(&random));
            gradient[i] = (float)sdr_stream_normal(&random);
            after[i] = (float)(before[i] - rate * gradient[i]);
            double step = (double)before[i] - after[i]; /* η·g as it was rounded */
            product += step * ((double)before[i] - state[i]);
            square += step * step;
        }
        taken += takes(count);
        if (fabs(product - square / 2) > 1e-9 * (fabs(product) + square))
            assert_int_equal(takes(count), product > square / 2);
    }
    assert_in_range(taken, total / 20, total - total / 20);
}

/* w, g and w_j are small multiples of 2^-10, η is 2^-3: nothing is rounded. w_j = w − η/2 g + v
   with v orthogonal to g is as far from w as from w − ηg: not taken; a little nearer along g it
   is. */
static void the_boundary(void **unused)
{
    struct sdr_stream random = sdr_stream_open(1, SDR_FOR_TEST, 2);
    const double unit = 0x1p-10, rate = 0x1p-3;
    (void)unused;
    for (int t = 0; t < 2000; t++) {
        uint64_t count = 2 * (1 + sdr_stream_below(&random, MOST / 2));
        for (uint64_t i = 0; i < count; i += 2) {
            double a = 16.0 * (double)(1 + sdr_stream_below(&random, 50)),
                   b = 16.0 * (double)sdr_stream_below(&random, 50);
            /* (−b, a) is orthogonal to (a, b) */
            double across = (double)sdr_stream_below(&random, 9) - 4;
            gradient[i] = (float)(a * unit);
            gradient[i + 1] = (float)(b * unit);
            for (int k = 0; k < 2; k++) {
                before[i + (uint64_t)k] = (float)((double)sdr_stream_below(&random, 4096) * unit);
                after[i + (uint64_t)k] =
                    (float)(before[i + (uint64_t)k] - rate * gradient[i + (uint64_t)k]);
            }
            state[i] = (float)(before[i] - rate / 2 * gradient[i] - across * b / 16 * unit);
            state[i + 1] =
                (float)(before[i + 1] - rate / 2 * gradient[i + 1] + across * a / 16 * unit);
        }
        assert_false(takes(count));
        state[0] -= (float)unit;
        assert_true(takes(count));
        state[0] += (float)(2 * unit);
        assert_false(takes(count));
    }
}

static void no_numbers(void **unused)
{
    (void)unused;
    for (int i = 0; i < 4; i++) {
        before[i] = 1;
        after[i] = 0.5f;
        state[i] = 0;
    }
    assert_true(takes(4));
    state[2] = NAN;
    assert_false(takes(4));
    state[2] = INFINITY;
    assert_false(takes(4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_vectors),
                                       cmocka_unit_test(the_boundary),
                                       cmocka_unit_test(no_numbers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
