/* Laws of our own exp and log: the C library's long double is the judge. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "kernel/math.h"

#include <math.h>

static const long double least = 4e-15L; /* relative */

static void expect_near(double ours, long double truth, double x)
{
    long double error = fabsl((long double)ours - truth);
    if (!(error <= least * fabsl(truth)))
        fail_msg("at %a (%g): %.17g, not %.17Lg", x, x, ours, truth);
}

static void exp_is_right_to_4e_15(void **state)
{
    struct sdr_stream stream = sdr_stream_open(1, SDR_FOR_TEST, 0);
    (void)state;
    for (int i = 0; i < 400000; i++) {
        double wide = -707 + 1415 * sdr_stream_uniform(&stream);
        double narrow = 4 * sdr_stream_normal(&stream);
        double tiny = narrow * exp2(-(double)sdr_stream_below(&stream, 80));
        expect_near(sdr_exp(wide), expl(wide), wide);
        expect_near(sdr_exp(narrow), expl(narrow), narrow);
        expect_near(sdr_exp(tiny), expl(tiny), tiny);
    }
    for (int k = -45000; k <= 45000; k++) { /* where the table's cells meet */
        double x = (k + 0.5) * (0.69314718055994530942 / 64);
        expect_near(sdr_exp(x), expl(x), x);
        expect_near(sdr_exp(nextafter(x, 1e9)), expl(nextafter(x, 1e9)), x);
    }
}

static void exp_beyond_its_range_is_clamped_and_finite(void **state)
{
    (void)state;
    assert_true(sdr_exp(0) == 1);
    assert_true(sdr_exp(-0.0) == 1);
    assert_true(sdr_exp(-708.5) == 0 && sdr_exp(-1e300) == 0 && sdr_exp(-INFINITY) == 0);
    assert_true(isfinite(sdr_exp(710)) && isfinite(sdr_exp(1e300)) && isfinite(sdr_exp(INFINITY)));
    assert_true(sdr_exp(710) == sdr_exp(709) && sdr_exp(709) > 8e307);
}

static void exp_rises(void **state)
{
    double before = 0;
    (void)state;
    for (double x = -700; x < 700; x += 0.00371) {
        double e = sdr_exp(x);
        assert_true(e > before);
        before = e;
    }
}

/* The logarithm's error is small against 1, not against itself, save a little above 1: what it is
   for is log(1 + e). */
static void expect_log(double x)
{
    long double truth = logl(x), size = fabsl(truth);
    double ours = sdr_log(x);
    long double allowed = x >= 1 && x < 1 + 1.0 / 64 ? 4e-15L * size : 1e-15L * (1 + size);
    if (!(fabsl(ours - truth) <= allowed))
        fail_msg("at %a (%g): %.17g, not %.17Lg", x, x, ours, truth);
}

static void log_is_right_to_1e_15(void **state)
{
    struct sdr_stream stream = sdr_stream_open(2, SDR_FOR_TEST, 0);
    (void)state;
    for (int i = 0; i < 400000; i++) {
        double any = exp2(-1021 + 2044 * sdr_stream_uniform(&stream));
        double usual = 1 + exp2(-20 + 60 * sdr_stream_uniform(&stream));
        double near = 0.5 + 1.5 * sdr_stream_uniform(&stream);
        expect_log(any);
        expect_log(usual);
        expect_log(near);
    }
    for (int shift = 1; shift <= 52; shift++) { /* as near to 1 as doubles come */
        double below = 1 - ldexp(1, -shift), above = 1 + ldexp(1, -shift);
        expect_log(below);
        expect_log(above);
    }
    assert_true(sdr_log(1) == 0);
    for (int k = -1022; k <= 1023; k++) /* m = √2 and √½: the borders of the reduction */
        for (int side = -1; side <= 1; side++) {
            double x = ldexp(0x1.6a09e667f3bcdp0 + side * 0x1p-52, k);
            expect_log(x);
        }
}

static void log1p_of_exp_is_right_and_never_overflows(void **state)
{
    struct sdr_stream stream = sdr_stream_open(3, SDR_FOR_TEST, 0);
    (void)state;
    for (int i = 0; i < 400000; i++) {
        double x = -700 + 1400 * sdr_stream_uniform(&stream);
        long double truth = x > 11000 ? x : log1pl(expl(x));
        double ours = sdr_log1p_of_exp(x, sdr_exp(x));
        /* 1 + e is rounded before the logarithm: an absolute error of one unit of 1. */
        assert_true(fabsl(ours - truth) <= 4e-15L * truth + 1.2e-16L);
    }
    assert_true(sdr_log1p_of_exp(1e300, sdr_exp(1e300)) == 1e300);
    assert_true(sdr_log1p_of_exp(-1e300, sdr_exp(-1e300)) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exp_is_right_to_4e_15),
        cmocka_unit_test(exp_beyond_its_range_is_clamped_and_finite),
        cmocka_unit_test(exp_rises),
        cmocka_unit_test(log_is_right_to_1e_15),
        cmocka_unit_test(log1p_of_exp_is_right_and_never_overflows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
