/* Sanitizers see what kernels read and write, on every CPU level: a child process that makes them
   touch memory beyond an array, or that of another thread, does not end well. Without a sanitizer
   there is nothing to check. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernel/cluster.h"
#include "kernel/full.h"
#include "kernel/linear.h"
#include "kernel/product.h"
#include "kind/optimizer.h"
#include "run/registry.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { N = 19 }; /* sixteen lanes, and three */

/* Whether fault(level), in a process of its own, ends with a complaint. */
static bool is_seen(enum sdr_cpu level, void (*fault)(enum sdr_cpu level))
{
    int status = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int nowhere = open("/dev/null", O_WRONLY); /* for the sanitizer's report */
        dup2(nowhere, STDERR_FILENO);
        fault(level);
        exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status != 0;
}

static void over_levels(const char *what, void (*fault)(enum sdr_cpu level))
{
    for (enum sdr_cpu level = SDR_CPU_PORTABLE; level <= sdr_cpu_best(); level++)
        if (!is_seen(level, fault))
            fail_msg("%s: the sanitizer sees nothing at level %s", what, sdr_cpu_name(level));
}
#endif

#if defined(__SANITIZE_ADDRESS__)
/* Held until the end: a leak would be a complaint too. */
static void *array(size_t count, size_t size)
{
    static void *volatile held[64];
    static int count_held;
    return held[count_held++] = calloc(count, size);
}

static float *floats(size_t count)
{
    return array(count, sizeof(float));
}

/* The first n numbers. */
static uint16_t *index16(uint32_t n)
{
    uint16_t *index = array(n, sizeof *index);
    for (uint32_t i = 0; i < n; i++)
        index[i] = (uint16_t)i;
    return index;
}

static uint32_t *index32(uint32_t n)
{
    uint32_t *index = array(n, sizeof *index);
    for (uint32_t i = 0; i < n; i++)
        index[i] = i;
    return index;
}

/* ---- linear models: `less` elements are missing at the end of one array ---- */
static void dot_of(enum sdr_cpu level, uint32_t less)
{
    sdr_linear_kernels(level)->dot(floats(N), floats(N - less), NULL, N);
}
static void dot16_of(enum sdr_cpu level, uint32_t less_index, uint32_t less_weights)
{
    sdr_linear_kernels(level)->dot16(floats(N - less_weights), index16(N) + less_index, floats(N),
                                     N);
}
static void dot32_of(enum sdr_cpu level, uint32_t less_index, uint32_t less_weights)
{
    sdr_linear_kernels(level)->dot32(floats(N - less_weights), index32(N) + less_index, floats(N),
                                     N);
}
static void scores_of(enum sdr_cpu level, uint32_t less)
{
    sdr_linear_kernels(level)->scores32(floats(2 * N - less), index32(2), floats(2), 2, N,
                                        floats(N));
}
static void add_to(enum sdr_cpu level, uint32_t less)
{
    sdr_linear_kernels(level)->add(floats(N - less), 1, floats(N), NULL, N);
}

/* ---- networks ---- */
static void product_of(enum sdr_cpu level, uint32_t less_read, uint32_t less_written)
{
    struct sdr_product x = {.to = floats(N - less_written),
                            .a = floats(2),
                            .b = floats(2 * N - less_read),
                            .to_row = N,
                            .a_row = 2,
                            .a_step = 1,
                            .b_step = N,
                            .rows = 1,
                            .cols = N,
                            .inner = 2};
    sdr_product_kernels(level)->product(&x);
}
static void rows_gathered(enum sdr_cpu level, uint32_t less_read, uint32_t less_written)
{
    sdr_product_kernels(level)->gather16(floats(2 * N - less_read), index16(2), floats(2), 2, N,
                                         floats(N - less_written));
}
static void activation_of(enum sdr_cpu level, uint32_t less)
{
    sdr_product_kernels(level)->activate(SDR_RELU, floats(N - less), N);
}
static void slope_of(enum sdr_cpu level, uint32_t less)
{
    sdr_product_kernels(level)->slope(SDR_TANH, floats(N - less), floats(N), N);
}

/* ---- several rows at a time ---- */
static void rows_scored(enum sdr_cpu level, uint32_t less_read, uint32_t less_written)
{
    const float *row[2] = {floats(2), floats(2)};
    sdr_linear_kernels(level)->scores_together(floats(2 * N - less_read), row, 2, NULL, 2, N,
                                               floats(2 * N - less_written));
}
static void rows_scored_in_double(enum sdr_cpu level, uint32_t less)
{
    enum { W_ROW = (N + SDR_FULL_WIDTH - 1) / SDR_FULL_WIDTH * SDR_FULL_WIDTH };
    const float *row[2] = {floats(N), floats(N - less)};
    sdr_full_kernels(level)->scores(array(2 * W_ROW, sizeof(double)), W_ROW, 2, row, 2, N,
                                    array(4, sizeof(double)));
}
static void rows_added_in_double(enum sdr_cpu level, uint32_t less)
{
    enum { SUM_ROW = (N + SDR_FULL_WIDTH - 1) / SDR_FULL_WIDTH * SDR_FULL_WIDTH };
    const float *row[2] = {floats(N), floats(N - less)};
    sdr_full_kernels(level)->add(array(2 * SUM_ROW, sizeof(double)), SUM_ROW, 2, row, 2, N,
                                 array(4, sizeof(double)));
}

/* ---- clusters ---- */
static void nearest_of(enum sdr_cpu level, uint32_t less)
{
    float value, second;
    sdr_cluster_kernels(level)->nearest(floats(N - less), floats(N), floats(N), N, &value, &second);
}

/* ---- steps: the optimizer with the most state, on scaled sparse rows and on dense ones ---- */
static void step_of(enum sdr_cpu level, bool sparse, uint32_t less_value, uint32_t less_scale)
{
    static const float constant[SDR_CONSTANTS] = {1, 1, 1, 1, 1, 1, 1, 1};
    struct sdr_target t = {.value = floats(N - less_value),
                           .slot = {floats(N), floats(N)},
                           .scale = floats(N - less_scale),
                           .constant = constant};
    for (const struct sdr_optimizer *const *o = sdr_optimizer_table[level]; *o; o++)
        if (strcmp((*o)->name, "adam") != 0)
            continue;
        else if (sparse)
            (*o)->sparse32(&t, index32(N), floats(N), N, 1);
        else
            (*o)->dense(&t, floats(N), N, 1);
}

#define FAULT(name, call)                                                                          \
    static void name(enum sdr_cpu level)                                                           \
    {                                                                                              \
        call;                                                                                      \
    }
FAULT(read_beyond, dot_of(level, 1))
FAULT(read_index16_beyond, dot16_of(level, 1, 0))
FAULT(read_index32_beyond, dot32_of(level, 1, 0))
FAULT(gather16_beyond, dot16_of(level, 0, 1))
FAULT(gather32_beyond, dot32_of(level, 0, 1))
FAULT(read_outputs_beyond, scores_of(level, 1))
FAULT(write_beyond, add_to(level, 1))
FAULT(product_reads_beyond, product_of(level, 1, 0))
FAULT(product_writes_beyond, product_of(level, 0, 1))
FAULT(rows_read_beyond, rows_gathered(level, 1, 0))
FAULT(rows_added_beyond, rows_gathered(level, 0, 1))
FAULT(activated_beyond, activation_of(level, 1))
FAULT(slope_read_beyond, slope_of(level, 1))
FAULT(weights_read_beyond, rows_scored(level, 1, 0))
FAULT(scores_written_beyond, rows_scored(level, 0, 1))
FAULT(rows_scored_beyond, rows_scored_in_double(level, 1))
FAULT(rows_summed_beyond, rows_added_in_double(level, 1))
FAULT(nearest_reads_beyond, nearest_of(level, 1))
FAULT(sparse_step_beyond, step_of(level, true, 1, 0))
FAULT(sparse_scale_beyond, step_of(level, true, 0, 1))
FAULT(dense_step_beyond, step_of(level, false, 1, 0))
FAULT(dense_scale_beyond, step_of(level, false, 0, 1))

static void stay_within(enum sdr_cpu level)
{
    dot_of(level, 0);
    dot16_of(level, 0, 0);
    dot32_of(level, 0, 0);
    scores_of(level, 0);
    add_to(level, 0);
    product_of(level, 0, 0);
    rows_gathered(level, 0, 0);
    activation_of(level, 0);
    slope_of(level, 0);
    rows_scored(level, 0, 0);
    rows_scored_in_double(level, 0);
    rows_added_in_double(level, 0);
    nearest_of(level, 0);
    step_of(level, true, 0, 0);
    step_of(level, false, 0, 0);
}

static void accesses_beyond_an_array_are_seen(void **state)
{
    (void)state;
    over_levels("values read beyond their end", read_beyond);
    over_levels("16-bit indices read beyond their end", read_index16_beyond);
    over_levels("32-bit indices read beyond their end", read_index32_beyond);
    over_levels("weights of 16-bit indices read beyond their end", gather16_beyond);
    over_levels("weights of 32-bit indices read beyond their end", gather32_beyond);
    over_levels("weights of several outputs read beyond their end", read_outputs_beyond);
    over_levels("sums written beyond their end", write_beyond);
    over_levels("a matrix read beyond its end", product_reads_beyond);
    over_levels("a product written beyond its end", product_writes_beyond);
    over_levels("rows of a matrix gathered beyond its end", rows_read_beyond);
    over_levels("sums of rows written beyond their end", rows_added_beyond);
    over_levels("activations beyond their end", activated_beyond);
    over_levels("slopes of values beyond their end", slope_read_beyond);
    over_levels("weights for several rows read beyond their end", weights_read_beyond);
    over_levels("scores of several rows written beyond their end", scores_written_beyond);
    over_levels("rows scored in double beyond their end", rows_scored_beyond);
    over_levels("rows added in double beyond their end", rows_summed_beyond);
    over_levels("scores of clusters read beyond their end", nearest_reads_beyond);
    over_levels("a sparse step beyond the values", sparse_step_beyond);
    over_levels("a sparse step beyond the scales", sparse_scale_beyond);
    over_levels("a dense step beyond the values", dense_step_beyond);
    over_levels("a dense step beyond the scales", dense_scale_beyond);
    for (enum sdr_cpu level = SDR_CPU_PORTABLE; level <= sdr_cpu_best(); level++)
        assert_false(is_seen(level, stay_within));
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

static void together(enum sdr_cpu level, void *(*other)(void *))
{
    pthread_t thread[2];
    both = sdr_linear_kernels(level);
    pthread_create(&thread[0], NULL, add_to_it, NULL);
    pthread_create(&thread[1], NULL, other, NULL);
    pthread_join(thread[0], NULL);
    pthread_join(thread[1], NULL);
}

static void both_write(enum sdr_cpu level)
{
    together(level, add_to_it);
}

static void one_reads(enum sdr_cpu level)
{
    together(level, read_it);
}

static void read_both(enum sdr_cpu level)
{
    pthread_t thread;
    both = sdr_linear_kernels(level);
    pthread_create(&thread, NULL, read_it, NULL);
    gather_it(NULL);
    pthread_join(thread, NULL);
}

static void one_gathers(enum sdr_cpu level)
{
    together(level, gather_it);
}

static void races_are_seen(void **state)
{
    (void)state;
    over_levels("two threads write", both_write);
    over_levels("one thread reads what another writes", one_reads);
    over_levels("one thread gathers what another writes", one_gathers);
    for (enum sdr_cpu level = SDR_CPU_PORTABLE; level <= sdr_cpu_best(); level++)
        assert_false(is_seen(level, read_both));
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
