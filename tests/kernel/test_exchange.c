/* Laws of exchanging: nothing is lost however many do it at once, a value that one alone changed
   comes back to the bit, and merging is the same on every CPU level. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/thread.h"
#include "kernel/linear.h"

#include <math.h>
#include <string.h>

enum { COUNT = 64, WORKERS = 4, ROUNDS = 2000 };

struct job {
    float shared[COUNT] __attribute__((aligned(64)));
};

/* Adds 1 to every third value and 2 to every fifth, again and again. */
static enum sdr_status add_often(void *context, size_t worker)
{
    struct job *job = context;
    float mine[COUNT], base[COUNT];
    for (int round = 0; round < ROUNDS; round++) {
        sdr_exchange_take(job->shared, mine, base, COUNT);
        for (int i = 0; i < COUNT; i++)
            mine[i] += (i % 3 == 0) + 2 * (i % 5 == 0) + (i == (int)worker);
        sdr_exchange_give(job->shared, mine, base, COUNT, SDR_MERGE_SUM);
    }
    return SDR_OK;
}

static void no_change_is_lost(void **state)
{
    (void)state;
    for (enum sdr_cpu level = 0; level <= sdr_cpu_best(); level++) {
        static struct job job;
        memset(&job, 0, sizeof job);
        assert_int_equal(sdr_cpu_use(level), SDR_OK);
        assert_int_equal(sdr_parallel(WORKERS, WORKERS, add_often, &job), SDR_OK);
        for (int i = 0; i < COUNT; i++) {
            float wanted = (float)(WORKERS * ROUNDS * ((i % 3 == 0) + 2 * (i % 5 == 0)) +
                                   (i < WORKERS ? ROUNDS : 0));
            assert_true(job.shared[i] == wanted);
        }
    }
    assert_int_equal(sdr_cpu_use(SDR_CPU_LEVELS), SDR_OK);
}

static void what_one_alone_changed_is_its_own(void **state)
{
    float shared[4] = {0.1f, 0.2f, 0.3f, 1e8f}, mine[4], base[4];
    (void)state;
    sdr_exchange_take(shared, mine, base, 4);
    mine[0] = 0.7f;
    mine[3] = 1e-8f;
    shared[1] = 5; /* somebody else, on the other half of the pair */
    shared[2] = 6;
    sdr_exchange_give(shared, mine, base, 4, SDR_MERGE_SUM);
    assert_true(shared[0] == 0.7f && shared[1] == 5 && shared[2] == 6 && shared[3] == 1e-8f);
}

static void two_who_changed_it_add_up_or_meet(void **state)
{
    float base[2] = {1, -2}, mine[2] = {3, 0}, sum[2] = {2, -1}, mean[2] = {2, -1},
          shrunk[2] = {2, -1};
    (void)state;
    sdr_exchange_give(sum, mine, base, 2, SDR_MERGE_SUM);
    assert_true(sum[0] == 4 && sum[1] == 1);
    sdr_exchange_give(mean, mine, base, 2, SDR_MERGE_MEAN);
    assert_true(mean[0] == 2.5f && mean[1] == -0.5f);
    sdr_exchange_give(shrunk, mine, base, 2, SDR_MERGE_SHRUNK); /* −2 was shrunk by 1, and by 2 */
    assert_true(shrunk[0] == 4 && shrunk[1] == 0);
}

/* What merge says, one value at a time. */
static float merged(const float *copy, int copies, float base, enum sdr_merge how, float calm)
{
    float sum = 0, last = base;
    int changes = 0;
    for (int c = 0; c < copies; c++)
        if (copy[c] != base) {
            sum += copy[c] - base;
            last = copy[c];
            changes++;
        }
    if (changes <= 1)
        return last;
    float share = how == SDR_MERGE_MEAN ? 1.0f / (float)changes
                                        : fminf(1, fmaxf(2.0f / (float)changes, calm));
    float next = base + share * sum;
    return how == SDR_MERGE_SHRUNK && last * base >= 0 && next * base < 0 ? 0 : next;
}

static void merging_is_what_it_says_at_every_level(void **state)
{
    enum { COPIES = 5 };
    static float shared[COUNT], copy[COPIES][COUNT], calm[COUNT], column[COPIES];
    const float *pointer[COPIES];
    (void)state;
    for (enum sdr_cpu level = 0; level <= sdr_cpu_best(); level++)
        for (int how = SDR_MERGE_SUM; how <= SDR_MERGE_MEAN; how++) {
            float before[COUNT];
            for (int i = 0; i < COUNT; i++) {
                before[i] = shared[i] = (float)((i * 37) % 11 - 5) / 3;
                calm[i] = (float)(i % 4) / 3;
                for (int c = 0; c < COPIES; c++) {
                    copy[c][i] =
                        (i + c) % 3 ? shared[i] + (float)((i * 7 + c * 5) % 9 - 4) / 7 : shared[i];
                    pointer[c] = copy[c];
                }
            }
            sdr_linear_kernels(level)->merge(shared, pointer, COPIES, COUNT, (enum sdr_merge)how,
                                             calm);
            for (int i = 0; i < COUNT; i++) {
                for (int c = 0; c < COPIES; c++)
                    column[c] = copy[c][i];
                float wanted = merged(column, COPIES, before[i], (enum sdr_merge)how, calm[i]);
                assert_true(memcmp(&wanted, &shared[i], sizeof wanted) == 0 || wanted == shared[i]);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_change_is_lost),
        cmocka_unit_test(what_one_alone_changed_is_its_own),
        cmocka_unit_test(two_who_changed_it_add_up_or_meet),
        cmocka_unit_test(merging_is_what_it_says_at_every_level),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
