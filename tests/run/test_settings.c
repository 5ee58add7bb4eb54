/* Laws of settings: what reading takes from the options. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/thread.h"
#include "run/settings.h"
#include "sounder/sounder.h"

/* Threads that read with these --workers and --threads; NULL: not given. */
static int reading_threads(const char *workers, const char *threads)
{
    struct sdr_options *options;
    struct sdr_data_options data;
    char *format;
    assert_int_equal(sdr_options_create(&options), SDR_OK);
    if (workers)
        assert_int_equal(sdr_options_set(options, "workers", workers), SDR_OK);
    if (threads)
        assert_int_equal(sdr_options_set(options, "threads", threads), SDR_OK);
    assert_int_equal(sdr_settings_data(options, &data, &format), SDR_OK);
    sdr_release(format);
    sdr_options_destroy(options);
    return data.threads;
}

static void reading_follows_threads_and_not_workers(void **state)
{
    static const char *const workers[] = {NULL, "1", "2", "64"};
    (void)state;
    for (size_t i = 0; i < sizeof workers / sizeof *workers; i++) {
        assert_int_equal(reading_threads(workers[i], NULL), sdr_thread_limit());
        assert_int_equal(reading_threads(workers[i], "0"), sdr_thread_limit());
        assert_int_equal(reading_threads(workers[i], "1"), 1);
        assert_int_equal(reading_threads(workers[i], "3"), 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reading_follows_threads_and_not_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
