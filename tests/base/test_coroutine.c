/* Coroutines keep their variables, take turns, and end; delays are what their terms say. */
#include "base/coroutine.h"
#include "base/delay.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct counter {
    struct sdr_coroutine *coroutine;
    int *order, *next, id, rounds;
    double sum;
};

static void count(void *argument)
{
    struct counter *c = argument;
    double own = c->id; /* must survive the others */
    for (int i = 0; i < c->rounds; i++) {
        c->order[(*c->next)++] = c->id;
        own = own * 1.5 + i;
        sdr_coroutine_yield(c->coroutine);
    }
    c->sum = own;
}

static void take_turns(void **state)
{
    enum { MANY = 50, ROUNDS = 7 };
    struct counter counter[MANY];
    int order[MANY * ROUNDS], next = 0, alive = MANY;
    (void)state;
    for (int i = 0; i < MANY; i++) {
        counter[i] = (struct counter){.order = order, .next = &next, .id = i, .rounds = ROUNDS};
        assert_int_equal(sdr_coroutine_create(count, &counter[i], 16384, &counter[i].coroutine),
                         SDR_OK);
    }
    while (alive)
        for (int i = 0; i < MANY; i++)
            if (counter[i].coroutine && !sdr_coroutine_resume(counter[i].coroutine)) {
                assert_false(sdr_coroutine_resume(counter[i].coroutine));
                sdr_coroutine_destroy(counter[i].coroutine);
                counter[i].coroutine = NULL;
                alive--;
            }
    assert_int_equal(next, MANY * ROUNDS);
    for (int i = 0; i < MANY * ROUNDS; i++)
        assert_int_equal(order[i], i % MANY);
    for (int i = 0; i < MANY; i++) {
        double own = i;
        for (int r = 0; r < ROUNDS; r++)
            own = own * 1.5 + r;
        assert_true(counter[i].sum == own);
    }
}

static void end_before_they_return(void **state)
{
    struct counter c = {.order = (int[8]){0}, .next = (int[1]){0}, .rounds = 5};
    (void)state;
    assert_int_equal(sdr_coroutine_create(count, &c, 1, &c.coroutine), SDR_OK);
    sdr_coroutine_destroy(c.coroutine); /* never began */
    assert_int_equal(sdr_coroutine_create(count, &c, 1, &c.coroutine), SDR_OK);
    assert_true(sdr_coroutine_resume(c.coroutine));
    sdr_coroutine_destroy(c.coroutine); /* in the middle */
}

static double mean_of(const char *text)
{
    enum { DRAWS = 200000 };
    struct sdr_delay delay;
    double sum = 0;
    assert_int_equal(sdr_delay_parse(text, "--compute", &delay), SDR_OK);
    for (uint32_t i = 0; i < DRAWS; i++)
        sum += (double)sdr_delay_draw(&delay, 9, i % 7, i) * 1e-9;
    assert_true(fabs(sum / DRAWS - sdr_delay_mean(&delay)) < 0.02 * sdr_delay_mean(&delay));
    return sum / DRAWS;
}

static void delays_have_their_means(void **state)
{
    (void)state;
    assert_true(fabs(mean_of("const:1.5") - 1.5) < 1e-9);
    assert_true(fabs(mean_of("const:1+exp:rate=0.5") - 3) < 0.03);
    assert_true(fabs(mean_of("exp:mean=0.25") - 0.25) < 0.005);
    assert_true(fabs(mean_of("uniform:1-3") - 2) < 0.02);
    assert_true(fabs(mean_of("uniform:1e-3-3e-3") - 2e-3) < 2e-5);
    assert_true(fabs(mean_of("normal:mean=5,deviation=1") - 5) < 0.05);
    assert_true(fabs(mean_of("lognormal:mean=1,sigma=0.5") - exp(0.125)) < 0.02);
    assert_true(fabs(mean_of("pareto:scale=1,shape=4") - 4.0 / 3) < 0.02);
    assert_true(fabs(mean_of("const:1e+0+const:2") - 3) < 1e-9);
}

static void delays_are_repeatable(void **state)
{
    struct sdr_delay delay;
    (void)state;
    assert_int_equal(sdr_delay_parse("exp:mean=1", "--delay", &delay), SDR_OK);
    assert_true(sdr_delay_draw(&delay, 1, 2, 3) == sdr_delay_draw(&delay, 1, 2, 3));
    assert_true(sdr_delay_draw(&delay, 1, 2, 3) != sdr_delay_draw(&delay, 1, 3, 2));
    assert_true(sdr_delay_draw(&delay, 1, 2, 3) != sdr_delay_draw(&delay, 2, 2, 3));
}

static void nonsense_is_refused(void **state)
{
    static const char *const wrong[] = {"",
                                        "1",
                                        "const",
                                        "const:",
                                        "const:-1",
                                        "const:1+",
                                        "exp:0.5",
                                        "exp:rate=0",
                                        "uniform:3-1",
                                        "const:nan",
                                        "pareto:scale=1,shape=0",
                                        "gamma:1",
                                        "exp:mean=1,rat=7",
                                        "const:1,2",
                                        "normal:mean=1",
                                        "const:1e300"};
    struct sdr_delay delay;
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(sdr_delay_parse(wrong[i], "--compute", &delay), SDR_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(take_turns),
        cmocka_unit_test(end_before_they_return),
        cmocka_unit_test(delays_have_their_means),
        cmocka_unit_test(delays_are_repeatable),
        cmocka_unit_test(nonsense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
