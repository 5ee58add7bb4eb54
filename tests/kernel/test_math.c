/* exp and log of kernel/math.h against the C library's, over their whole range. */
#include "conform/numbers.h"

#include "kernel/math.h"

static double anywhere(double low, double high)
{
    return low + (high - low) * (random_bits() / 4294967296.0);
}

static void exp_is_exact_to_its_stated_error(void **unused)
{
    (void)unused;
    for (int i = 0; i < 1000000; i++) {
        double x = i % 2 ? anywhere(-707, 709) : anywhere(-2, 2);
        assert_near(sdr_exp(x), exp(x), 1e-15 * exp(x), "exp(%.17g)", x);
    }
    assert_true(sdr_exp(0) == 1);
    assert_true(sdr_exp(-1e300) == 0);
    assert_true(isfinite(sdr_exp(1e300)));
    assert_true(sdr_exp(-708.5) >= 0);
}

static void log_is_exact_to_rounding(void **unused)
{
    (void)unused;
    for (int i = 0; i < 1000000; i++) {
        double x = i % 2 ? exp(anywhere(-700, 700)) : anywhere(0.5, 3);
        assert_near(sdr_log(x), log(x), 4e-16 * fabs(log(x)) + 3e-16, "log(%.17g)", x);
    }
    assert_true(sdr_log(1) == 0);
}

/* "exact to rounding also where e is tiny or huge" */
static void log_of_one_plus_exp_is_exact_to_rounding_everywhere(void **unused)
{
    (void)unused;
    for (int i = 0; i < 1000000; i++) {
        double x = i % 2 ? anywhere(-700, 700) : anywhere(-40, 40), e = exp(x);
        double exact = x > 36 ? x + exp(-x) : log1p(e);
        assert_near(sdr_log1p_of_exp(x, e), exact, 4e-16 * exact, "log(1 + exp(%.17g))", x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exp_is_exact_to_its_stated_error),
        cmocka_unit_test(log_is_exact_to_rounding),
        cmocka_unit_test(log_of_one_plus_exp_is_exact_to_rounding_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
