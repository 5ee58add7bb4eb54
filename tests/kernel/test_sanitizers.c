/* Sanitizers see what kernels read and write, on every CPU level: a child process that makes them touch memory
   beyond an array, or that of another thread, does not end well. Without a sanitizer there is nothing to check. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernel/linear.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { N = 19 }; /* sixteen lanes, and three */

/* Whether fault(kernels), in a process of its own, ends with a complaint. */
static bool is_seen(const struct sdr_linear_kernels *kernels,
                    void (*fault)(const struct sdr_linear_kernels *kernels))
{
    int status = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int nowhere = open("/dev/null", O_WRONLY); /* for the sanitizer's report */
        dup2(nowhere, STDERR_FILENO);
        fault(kernels);
        exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status != 0;
}

static void over_levels(const char *what, void (*fault)(const struct sdr_linear_kernels *kernels))
{
    for (enum sdr_cpu level = SDR_CPU_PORTABLE; level <= sdr_cpu_best(); level++)
        if (!is_seen(sdr_linear_kernels(level), fault))
            fail_msg("%s: the sanitizer sees nothing at level %s", what, sdr_cpu_name(level));
}
#endif

#if defined(__SANITIZE_ADDRESS__)
/* Held until the end: a leak would be a complaint too. */
static void *array(size_t count, size_t size)
{
    static void *volatile held[8];
    static int count_held;
    return held[count_held++] = calloc(count, size);
}

static float *floats(size_t count)
{
    return array(count, sizeof(float));
}

static void read_beyond(const struct sdr_linear_kernels *kernels)
{
    kernels->dot(floats(N), floats(N - 1), NULL, N);
}

static void read_index16_beyond(const struct sdr_linear_kernels *kernels)
{
    kernels->dot16(floats(N), array(N - 1, sizeof(uint16_t)), floats(N), N);
}

static void read_index32_beyond(const struct sdr_linear_kernels *kernels)
{
    kernels->dot32(floats(N), array(N - 1, sizeof(uint32_t)), floats(N), N);
}

static void gather(const struct sdr_linear_kernels *kernels, uint32_t weights)
{
    uint32_t *index = array(16, sizeof *index);
    for (uint32_t i = 0; i < 16; i++)
        index[i] = i;
    kernels->dot32(floats(weights), index, floats(16), 16);
}

static void gather_beyond(const struct sdr_linear_kernels *kernels)
{
    gather(kernels, 15);
}

static void write_beyond(const struct sdr_linear_kernels *kernels)
{
    kernels->add(floats(N - 1), 1, floats(N), NULL, N);
}

static void stay_within(const struct sdr_linear_kernels *kernels)
{
    kernels->dot(floats(N), floats(N), NULL, N);
    kernels->add(floats(N), 1, floats(N), NULL, N);
    gather(kernels, 16);
}

static void accesses_beyond_an_array_are_seen(void **state)
{
    (void)state;
    over_levels("values read beyond their end", read_beyond);
    over_levels("16-bit indices read beyond their end", read_index16_beyond);
    over_levels("32-bit indices read beyond their end", read_index32_beyond);
    over_levels("weights gathered beyond their end", gather_beyond);
    over_levels("sums written beyond their end", write_beyond);
    for (enum sdr_cpu level = SDR_CPU_PORTABLE; level <= sdr_cpu_best(); level++)
        assert_false(is_seen(sdr_linear_kernels(level), stay_within));
}
#else
static void accesses_beyond_an_array_are_seen(void **state)
{
    (void)state;
    skip();
}
#endif

#if defined(__SANITIZE_THREAD__)
static float shared[N];
static const float one[N];
static const struct sdr_linear_kernels *both; /* threads use it */

static void *add_to_it(void *unused)
{
    both->add(shared, 1, one, NULL, N);
    return unused;
}

static void *read_it(void *unused)
{
    return both->dot(shared, one, NULL, N) > 0 ? NULL : unused;
}

static void *gather_it(void *unused)
{
    static const uint32_t index[N];
    return both->dot32(shared, index, one, N) > 0 ? NULL : unused;
}

static void together(const struct sdr_linear_kernels *kernels, void *(*other)(void *))
{
    pthread_t thread[2];
    both = kernels;
    pthread_create(&thread[0], NULL, add_to_it, NULL);
    pthread_create(&thread[1], NULL, other, NULL);
    pthread_join(thread[0], NULL);
    pthread_join(thread[1], NULL);
}

static void both_write(const struct sdr_linear_kernels *kernels)
{
    together(kernels, add_to_it);
}

static void one_reads(const struct sdr_linear_kernels *kernels)
{
    together(kernels, read_it);
}

static void read_both(const struct sdr_linear_kernels *kernels)
{
    pthread_t thread;
    both = kernels;
    pthread_create(&thread, NULL, read_it, NULL);
    gather_it(NULL);
    pthread_join(thread, NULL);
}

static void one_gathers(const struct sdr_linear_kernels *kernels)
{
    together(kernels, gather_it);
}

static void races_are_seen(void **state)
{
    (void)state;
    over_levels("two threads write", both_write);
    over_levels("one thread reads what another writes", one_reads);
    over_levels("one thread gathers what another writes", one_gathers);
    for (enum sdr_cpu level = SDR_CPU_PORTABLE; level <= sdr_cpu_best(); level++)
        assert_false(is_seen(sdr_linear_kernels(level), read_both));
}
#else
static void races_are_seen(void **state)
{
    (void)state;
    skip();
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accesses_beyond_an_array_are_seen),
        cmocka_unit_test(races_are_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
