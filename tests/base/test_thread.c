/* Laws of the parallel-for: every index once, the lowest failure wins, no thread is needed. Threads
   that start on cores of their own may move. */
#define _GNU_SOURCE /* CPU_EQUAL */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fail.h"
#include "base/thread.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>

enum { MOST = 10000 };
struct work {
    atomic_uint done[MOST];
    size_t fails_from, fails_to; /* indices that fail */
};
static struct work work;

static enum sdr_status task(void *context, size_t index)
{
    struct work *w = context;
    atomic_fetch_add(&w->done[index], 1);
    if (index >= w->fails_from && index < w->fails_to)
        return sdr_fail(SDR_BAD_DATA, "task %zu failed", index);
    return SDR_OK;
}

static void reset(size_t from, size_t to)
{
    for (int i = 0; i < MOST; i++)
        atomic_store(&work.done[i], 0);
    work.fails_from = from;
    work.fails_to = to;
}

static void every_index_is_done_once_with_any_number_of_threads(void **state)
{
    static const int threads[] = {-1, 0, 1, 2, 3, 16, 300};
    static const size_t counts[] = {0, 1, 2, 17, MOST};
    (void)state;
    for (size_t t = 0; t < sizeof threads / sizeof *threads; t++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            reset(0, 0);
            assert_int_equal(sdr_parallel(threads[t], counts[c], task, &work), SDR_OK);
            for (size_t i = 0; i < MOST; i++)
                assert_int_equal(atomic_load(&work.done[i]), i < counts[c]);
        }
}

static void the_lowest_failing_index_gives_status_and_sentence(void **state)
{
    (void)state;
    for (int trial = 0; trial < 200; trial++) {
        reset(100, 110);
        sdr_fail(SDR_USAGE, "an older failure");
        assert_int_equal(sdr_parallel(4, MOST, task, &work), SDR_BAD_DATA);
        assert_string_equal(sdr_error(), "task 100 failed");
        for (size_t i = 0; i < 100; i++)
            assert_int_equal(atomic_load(&work.done[i]), 1);
    }
}

static void a_failure_stops_the_hand_out(void **state)
{
    (void)state;
    reset(10, 11);
    assert_int_equal(sdr_parallel(1, MOST, task, &work), SDR_BAD_DATA);
    for (size_t i = 11; i < MOST; i++)
        assert_int_equal(atomic_load(&work.done[i]), 0);
}

static void the_limit_is_at_least_one(void **state)
{
    (void)state;
    assert_true(sdr_thread_limit() >= 1);
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void *count_one(void *count)
{
    pthread_mutex_lock(&gate);
    atomic_fetch_add((atomic_int *)count, 1);
    pthread_mutex_unlock(&gate);
    return NULL;
}

static void threads_start_and_may_run_where_their_creator_may(void **state)
{
    enum { THREADS = 5 };
    pthread_t thread[THREADS];
    cpu_set_t mine, its;
    atomic_int count = 0;
    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof mine, &mine), 0);
    for (int threads = 2; threads <= THREADS; threads++) {
        atomic_store(&count, 0);
        pthread_mutex_lock(&gate); /* they are alive when they are asked */
        for (int i = 1; i < threads; i++) {
            assert_int_equal(sdr_thread_create(&thread[i], i, threads, count_one, &count), 0);
            assert_int_equal(pthread_getaffinity_np(thread[i], sizeof its, &its), 0);
            assert_true(CPU_EQUAL(&mine, &its));
        }
        pthread_mutex_unlock(&gate);
        for (int i = 1; i < threads; i++)
            pthread_join(thread[i], NULL);
        assert_int_equal(atomic_load(&count), threads - 1);
    }
}

static enum sdr_status compare_cores(void *context, size_t index)
{
    cpu_set_t set;
    pthread_t *creator = context;
    (void)index;
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    if (!pthread_equal(pthread_self(), *creator) && CPU_COUNT(&set) != sdr_thread_limit())
        return sdr_fail(SDR_RUNTIME, "it has the cores of its creator");
    return SDR_OK;
}

static void a_pinned_thread_shares_work_with_all_cores(void **state)
{
    cpu_set_t all, one;
    pthread_t self = pthread_self();
    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    int limit = sdr_thread_limit();
    if (limit != CPU_COUNT(&all) || limit == 1)
        return; /* a quota limits them */
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sdr_thread_set_pinned(true);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(sdr_thread_limit(), limit);
    for (int threads = 2; threads <= 2 * limit; threads++)
        if (threads != limit) /* these begin on one core each */
            assert_int_equal(sdr_parallel(threads, 1000, compare_cores, &self), SDR_OK);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    sdr_thread_set_pinned(false);
    assert_int_equal(sdr_thread_limit(), limit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_index_is_done_once_with_any_number_of_threads),
        cmocka_unit_test(the_lowest_failing_index_gives_status_and_sentence),
        cmocka_unit_test(a_failure_stops_the_hand_out),
        cmocka_unit_test(the_limit_is_at_least_one),
        cmocka_unit_test(threads_start_and_may_run_where_their_creator_may),
        cmocka_unit_test(a_pinned_thread_shares_work_with_all_cores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
