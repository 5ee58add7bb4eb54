/* Laws of CPU levels: the highest is in use unless another is chosen, and one that the CPU lacks is
   refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cpu.h"

#include <string.h>

static void the_highest_level_is_in_use(void **state)
{
    (void)state;
    assert_int_equal(sdr_cpu_level(), sdr_cpu_best());
}

static void a_level_is_used_or_refused(void **state)
{
    (void)state;
    for (enum sdr_cpu level = SDR_CPU_PORTABLE; level < SDR_CPU_LEVELS; level++) {
        assert_int_equal(sdr_cpu_use(SDR_CPU_PORTABLE), SDR_OK);
        if (level <= sdr_cpu_best()) {
            assert_int_equal(sdr_cpu_use(level), SDR_OK);
            assert_int_equal(sdr_cpu_level(), level);
        } else {
            assert_int_equal(sdr_cpu_use(level), SDR_USAGE);
            assert_non_null(strstr(sdr_error(), sdr_cpu_name(level)));
            assert_int_equal(sdr_cpu_level(), SDR_CPU_PORTABLE);
        }
    }
    assert_int_equal(sdr_cpu_use(SDR_CPU_LEVELS), SDR_OK);
    assert_int_equal(sdr_cpu_level(), sdr_cpu_best());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_highest_level_is_in_use),
        cmocka_unit_test(a_level_is_used_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
