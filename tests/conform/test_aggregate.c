/* The contract of every aggregate: weights, the order of gradients, one gradient, equal
   gradients. */
#include "conform/reference.h"

#include "kind/aggregate.h"
#include "run/registry.h"
#include "run/settings.h"

enum { WORKERS_MOST = 11, VALUES = 37 };

struct subject {
    const struct sdr_aggregate *aggregate;
    void *options; /* owned */
};

static struct subject subject_open(const struct sdr_aggregate *aggregate)
{
    struct subject s = {.aggregate = aggregate};
    const struct sdr_plugin *plugin;
    assert_int_equal(
        sdr_plugin_choose("aggregate", sdr_aggregate_table, aggregate->name, &plugin, &s.options),
        SDR_OK);
    assert_ptr_equal(plugin, aggregate);
    return s;
}

static void subject_close(struct subject *s)
{
    sdr_plugin_free(s->aggregate, s->options);
    s->aggregate = NULL;
}

#define FOR_EVERY_AGGREGATE(s)                                                                     \
    for (const struct sdr_aggregate *const *at_ = sdr_aggregate_table; *at_; at_++)                \
        for (struct subject s = subject_open(*at_); s.aggregate; subject_close(&s))

/* Gradients, and their squared distances. */
struct gradients {
    uint32_t n;
    float value[WORKERS_MOST][VALUES];
    const float *each[WORKERS_MOST];
    double distance[WORKERS_MOST * WORKERS_MOST];
};

static void measure(struct gradients *g)
{
    for (uint32_t i = 0; i < g->n; i++)
        for (uint32_t k = 0; k < g->n; k++) {
            double sum = 0;
            for (int v = 0; v < VALUES; v++) {
                double apart = (double)g->value[i][v] - g->value[k][v];
                sum += apart * apart;
            }
            g->distance[i * g->n + k] = sum;
        }
}

static void make_gradients(struct gradients *g, uint32_t n, bool equal)
{
    *g = (struct gradients){.n = n};
    for (uint32_t i = 0; i < n; i++) {
        g->each[i] = g->value[i];
        for (int v = 0; v < VALUES; v++)
            g->value[i][v] = equal && i ? g->value[0][v] : random_float(1);
    }
    measure(g);
}

/* Some rules need several gradients: they refuse fewer, with the reason. */
static bool weigh(const struct subject *s, const struct gradients *g, float *weight)
{
    double *distance = NULL;
    if (s->aggregate->needs_distances) {
        distance = exactly(g->n * g->n * sizeof *distance);
        memcpy(distance, g->distance, g->n * g->n * sizeof *distance);
    }
    float *exact = exactly(g->n * sizeof *exact);
    enum sdr_status status = s->aggregate->weights(s->options, g->n, distance, exact);
    memcpy(weight, exact, g->n * sizeof *weight);
    free(distance);
    free(exact);
    assert_true(status == SDR_OK || *sdr_error());
    return status == SDR_OK;
}

/* What becomes of the gradients; false: it refuses so many. */
static bool merge(const struct subject *s, const struct gradients *g, float *out)
{
    float weight[WORKERS_MOST];
    if (s->aggregate->combine)
        return s->aggregate->combine(s->options, g->n, g->each, VALUES, out) == SDR_OK;
    if (!weigh(s, g, weight))
        return false;
    memset(out, 0, VALUES * sizeof *out);
    for (uint32_t i = 0; i < g->n; i++)
        for (int v = 0; v < VALUES; v++)
            out[v] += weight[i] * g->value[i][v];
    return true;
}

static void weights_are_finite_and_sum_to_one(void **unused)
{
    (void)unused;
    FOR_EVERY_AGGREGATE(s)
    {
        int taken = 0;
        assert_true(!s.aggregate->weights == !!s.aggregate->combine); /* one of the two */
        assert_true(s.aggregate->weights || !s.aggregate->needs_distances);
        if (!s.aggregate->weights)
            continue;
        for (uint32_t n = 1; n <= WORKERS_MOST; n++)
            for (int equal = 0; equal < 2; equal++) {
                struct gradients g;
                float weight[WORKERS_MOST];
                double sum = 0;
                make_gradients(&g, n, equal);
                if (!weigh(&s, &g, weight))
                    continue;
                taken++;
                for (uint32_t i = 0; i < n; i++) {
                    assert_true(isfinite(weight[i]) && weight[i] >= 0);
                    sum += weight[i];
                }
                assert_near(sum, 1, 1e-6, "%s: weights of %u gradients", s.aggregate->name, n);
            }
        if (taken < WORKERS_MOST)
            fail_msg("%s: it takes hardly any number of gradients", s.aggregate->name);
    }
}

static void one_gradient_is_itself(void **unused)
{
    (void)unused;
    FOR_EVERY_AGGREGATE(s)
    for (int tries = 0; tries < 20; tries++) {
        struct gradients g;
        float out[VALUES];
        make_gradients(&g, 1, false);
        if (merge(&s, &g, out))
            assert_memory_equal(out, g.value[0], sizeof out);
    }
}

static void equal_gradients_stay_what_they_are(void **unused)
{
    (void)unused;
    FOR_EVERY_AGGREGATE(s)
    for (uint32_t n = 2; n <= WORKERS_MOST; n++) {
        struct gradients g;
        float out[VALUES];
        make_gradients(&g, n, true);
        if (!merge(&s, &g, out))
            continue;
        for (int v = 0; v < VALUES; v++)
            assert_near(out[v], g.value[0][v], 1e-6 * fabs(g.value[0][v]), "%s of %u equal ones",
                        s.aggregate->name, n);
    }
}

static void the_order_of_gradients_does_not_matter(void **unused)
{
    (void)unused;
    FOR_EVERY_AGGREGATE(s)
    for (uint32_t n = 2; n <= WORKERS_MOST; n++)
        for (int tries = 0; tries < 10; tries++) {
            struct gradients g, other;
            float one[VALUES], two[VALUES], size[VALUES] = {0};
            make_gradients(&g, n, false);
            other = g;
            for (uint32_t i = 0; i < n; i++)
                other.each[i] = other.value[i];
            for (uint32_t i = n - 1; i > 0; i--) { /* shuffled */
                uint32_t k = random_below(i + 1);
                float kept[VALUES];
                memcpy(kept, other.value[i], sizeof kept);
                memcpy(other.value[i], other.value[k], sizeof kept);
                memcpy(other.value[k], kept, sizeof kept);
            }
            measure(&other);
            bool taken = merge(&s, &g, one);
            assert_int_equal(merge(&s, &other, two), taken);
            for (uint32_t i = 0; i < n; i++)
                for (int v = 0; v < VALUES; v++)
                    size[v] += fabsf(g.value[i][v]);
            for (int v = 0; v < VALUES && taken; v++)
                assert_near(one[v], two[v], 1e-6 * size[v], "%s of %u, in another order",
                            s.aggregate->name, n);
        }
}

/* Value by value: what becomes of one value does not depend on the others, nor on how many there
   are. */
static void values_are_combined_one_by_one(void **unused)
{
    (void)unused;
    FOR_EVERY_AGGREGATE(s)
    for (uint32_t n = 1; n <= WORKERS_MOST && s.aggregate->combine; n++) {
        struct gradients g;
        float all[VALUES], one;
        make_gradients(&g, n, false);
        if (s.aggregate->combine(s.options, n, g.each, VALUES, all) != SDR_OK)
            continue;
        for (int v = 0; v < VALUES; v++) {
            const float *at[WORKERS_MOST];
            double least = INFINITY, most = -INFINITY;
            for (uint32_t i = 0; i < n; i++) {
                at[i] = g.each[i] + v;
                least = fmin(least, g.value[i][v]);
                most = fmax(most, g.value[i][v]);
            }
            assert_int_equal(s.aggregate->combine(s.options, n, at, 1, &one), SDR_OK);
            assert_memory_equal(&one, &all[v], sizeof one);
            /* and lies among what the gradients say */
            assert_true(one >= least - 1e-6 && one <= most + 1e-6);
        }
    }
}

static void the_mean_is_the_mean(void **unused)
{
    int found = 0;
    (void)unused;
    FOR_EVERY_AGGREGATE(s)
    for (uint32_t n = 1; n <= WORKERS_MOST && strcmp(s.aggregate->name, "mean") == 0; n++) {
        struct gradients g;
        float out[VALUES];
        found++;
        make_gradients(&g, n, false);
        assert_true(merge(&s, &g, out));
        for (int v = 0; v < VALUES; v++) {
            double sum = 0;
            for (uint32_t i = 0; i < n; i++)
                sum += g.value[i][v];
            assert_near(out[v], sum / n, 1e-6, "the mean of %u", n);
        }
    }
    assert_true(found > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_finite_and_sum_to_one),
        cmocka_unit_test(one_gradient_is_itself),
        cmocka_unit_test(equal_gradients_stay_what_they_are),
        cmocka_unit_test(the_order_of_gradients_does_not_matter),
        cmocka_unit_test(values_are_combined_one_by_one),
        cmocka_unit_test(the_mean_is_the_mean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
