/* The contract of every model's loss: its derivative, convexity, curvature, probabilities. */
#include "conform/subject.h"

/* Those whose scores are predictions, of any size; distances and cuts have laws of their own. */
#define FOR_EVERY_PREDICTOR(s) FOR_EVERY_MODEL(s) if (s.kind->truth != SDR_UNSUPERVISED)

static double loss_at(const struct subject *s, const float *score, float target)
{
    float slope[OUTPUTS_MOST];
    return s->kind->loss(s->options, score, s->outputs, target, slope);
}

/* Loss at score + h·direction; exact in float for the dyadic numbers used here. */
static double loss_beyond(const struct subject *s, const float *score, const float *direction,
                          double h, float target)
{
    float moved[OUTPUTS_MOST];
    for (uint32_t k = 0; k < s->outputs; k++) {
        moved[k] = (float)(score[k] + h * direction[k]);
        assert_true((double)moved[k] == score[k] + h * direction[k]);
    }
    return loss_at(s, moved, target);
}

static const double H = 1.0 / 512;

/* Second derivative along a direction. */
static double bend(const struct subject *s, const float *score, const float *d, double h, float t)
{
    return (loss_beyond(s, score, d, h, t) - 2 * loss_at(s, score, t) +
            loss_beyond(s, score, d, -h, t)) /
           (h * h);
}

/* A kink within two steps of H shows as a second derivative that changes from one side to the
   other. */
static bool kink_is_near(const struct subject *s, const float *score, uint32_t k, float t)
{
    float d[OUTPUTS_MOST] = {0}, left[OUTPUTS_MOST], right[OUTPUTS_MOST];
    memcpy(left, score, sizeof left);
    memcpy(right, score, sizeof right);
    d[k] = 1;
    left[k] -= (float)H;
    right[k] += (float)H;
    double a = bend(s, left, d, H, t), b = bend(s, score, d, H, t), c = bend(s, right, d, H, t);
    double allowed = 1e-2 * (1e-2 + fabs(b));
    return fabs(a - b) > allowed || fabs(c - b) > allowed;
}

static void slope_is_the_derivative_of_the_loss(void **unused)
{
    (void)unused;
    FOR_EVERY_MODEL(s)
    {
        int checked = 0, points = 2000;
        for (int i = 0; i < points; i++) {
            float score[OUTPUTS_MOST] = {0}, slope[OUTPUTS_MOST], t = random_target(&s);
            for (uint32_t k = 0; k < s.outputs; k++)
                score[k] = random_dyadic(4);
            s.kind->loss(s.options, score, s.outputs, t, slope);
            for (uint32_t k = 0; k < s.outputs; k++) {
                float d[OUTPUTS_MOST] = {0};
                d[k] = 1;
                if (kink_is_near(&s, score, k, t))
                    continue;
                double numeric =
                    (8 * (loss_beyond(&s, score, d, H, t) - loss_beyond(&s, score, d, -H, t)) -
                     (loss_beyond(&s, score, d, 2 * H, t) - loss_beyond(&s, score, d, -2 * H, t))) /
                    (12 * H);
                assert_near(slope[k], numeric, 1e-6 * fabs(numeric) + 1e-7,
                            "%s: slope %u at %g, target %g", s.kind->name, k, score[k], t);
                checked++;
            }
        }
        if (checked < 0.9 * points * s.outputs)
            fail_msg("%s: only %d slopes could be checked", s.kind->name, checked);
    }
}

static void slope_may_overwrite_the_scores(void **unused)
{
    (void)unused;
    FOR_EVERY_MODEL(s)
    for (int i = 0; i < 200; i++) {
        float score[OUTPUTS_MOST], slope[OUTPUTS_MOST], t = random_target(&s);
        for (uint32_t k = 0; k < s.outputs; k++)
            score[k] = random_float(6);
        double apart = s.kind->loss(s.options, score, s.outputs, t, slope);
        double in_place = s.kind->loss(s.options, score, s.outputs, t, score);
        assert_true(apart == in_place);
        assert_memory_equal(score, slope, s.outputs * sizeof(float));
    }
}

static void loss_is_convex_along_every_line(void **unused)
{
    (void)unused;
    FOR_EVERY_PREDICTOR(s)
    for (int i = 0; i < 2000; i++) {
        float a[OUTPUTS_MOST], b[OUTPUTS_MOST], middle[OUTPUTS_MOST], at_a[OUTPUTS_MOST],
            at_b[OUTPUTS_MOST];
        float t = random_target(&s);
        double climb = 0, size = 0;
        for (uint32_t k = 0; k < s.outputs; k++) {
            a[k] = random_dyadic(20);
            b[k] = random_dyadic(20);
            middle[k] = (a[k] + b[k]) / 2;
        }
        double left = s.kind->loss(s.options, a, s.outputs, t, at_a);
        double right = s.kind->loss(s.options, b, s.outputs, t, at_b);
        if (loss_at(&s, middle, t) > (left + right) / 2 + 1e-13 * (left + right))
            fail_msg("%s: not convex between %g and %g", s.kind->name, a[0], b[0]);
        for (uint32_t k = 0; k < s.outputs; k++) {
            climb += ((double)at_b[k] - at_a[k]) * ((double)b[k] - a[k]);
            size += fabs((double)b[k] - a[k]);
        }
        if (climb < -2e-7 * size)
            fail_msg("%s: the slope falls from %g to %g", s.kind->name, a[0], b[0]);
    }
}

static void loss_is_never_negative_and_finite_far_out(void **unused)
{
    static const float far[] = {0, 1, 30, 88, 100, 700, 800, 1e4f, 1e9f, 1e18f};
    (void)unused;
    FOR_EVERY_PREDICTOR(s)
    for (size_t i = 0; i < sizeof far / sizeof *far; i++)
        for (int sign = -1; sign <= 1; sign += 2)
            for (int tries = 0; tries < 4; tries++) {
                float score[OUTPUTS_MOST] = {0}, slope[OUTPUTS_MOST], t = random_target(&s);
                score[0] = (float)sign * far[i];
                double loss = s.kind->loss(s.options, score, s.outputs, t, slope);
                if (!(loss >= 0) || !isfinite(loss))
                    fail_msg("%s: loss %g at %g", s.kind->name, loss, score[0]);
                for (uint32_t k = 0; k < s.outputs; k++)
                    if (!isfinite(slope[k]))
                        fail_msg("%s: slope %g at %g", s.kind->name, slope[k], score[0]);
            }
}

static void curvature_bounds_the_second_derivative_and_is_reached(void **unused)
{
    (void)unused;
    FOR_EVERY_PREDICTOR(s)
    {
        double most = 0;
        for (int i = 0; i < 4000; i++) {
            float score[OUTPUTS_MOST], d[OUTPUTS_MOST] = {0}, t = random_target(&s);
            double length = 0;
            for (uint32_t k = 0; k < s.outputs; k++) {
                score[k] = i % 2 ? random_dyadic(3) : k < 2 ? random_dyadic(1) / 8 : -16;
                if (s.outputs == 1 && i % 4 == 0)
                    score[0] = t; /* where losses of labels have their kinks */
                d[k] = s.outputs == 1 ? 1 : i % 2 ? random_dyadic(1) : k < 2 ? 1 - 2 * (float)k : 0;
                length += (double)d[k] * d[k];
            }
            if (length > 0.01)
                most = fmax(most, bend(&s, score, d, H, t) / length);
        }
        if (s.kind->curvature == 0) { /* not smooth: there must be a kink, curvature ~ jump/H */
            if (most < 10)
                fail_msg("%s: said not to be smooth, but no kink was found", s.kind->name);
        } else if (most > s.kind->curvature * (1 + 1e-6) || most < 0.9 * s.kind->curvature) {
            fail_msg("%s: curvature %g, but the second derivative reaches %g", s.kind->name,
                     s.kind->curvature, most);
        }
    }
}

static void probabilities_sum_to_one_and_agree_with_the_loss(void **unused)
{
    (void)unused;
    FOR_EVERY_MODEL(s)
    {
        if (!s.kind->probability)
            continue;
        assert_int_not_equal(s.kind->truth, SDR_REGRESSION);
        uint32_t classes = s.kind->truth == SDR_BINARY ? 2 : s.outputs;
        for (int i = 0; i < 2000; i++) {
            float score[OUTPUTS_MOST], p[OUTPUTS_MOST], t = random_target(&s);
            double sum = 0;
            for (uint32_t k = 0; k < s.outputs; k++)
                score[k] = random_float(i % 2 ? 3 : 80);
            s.kind->probability(score, s.outputs, p);
            for (uint32_t k = 0; k < classes; k++) {
                assert_true(p[k] >= 0 && p[k] <= 1);
                sum += p[k];
            }
            assert_near(sum, 1, 1e-6, "%s: sum of the probabilities", s.kind->name);
            float own = p[s.kind->truth == SDR_BINARY ? t > 0 : (int)t];
            double loss = loss_at(&s, score, t);
            if (own > 1e-37f)
                assert_near(-log(own), loss, 1e-6 * loss + 1.2e-7, "%s: -log p", s.kind->name);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slope_is_the_derivative_of_the_loss),
        cmocka_unit_test(slope_may_overwrite_the_scores),
        cmocka_unit_test(loss_is_convex_along_every_line),
        cmocka_unit_test(loss_is_never_negative_and_finite_far_out),
        cmocka_unit_test(curvature_bounds_the_second_derivative_and_is_reached),
        cmocka_unit_test(probabilities_sum_to_one_and_agree_with_the_loss),
    };
    int failed = 0;
    FOR_EVERY_CPU_LEVEL
    failed += cmocka_run_group_tests(tests, NULL, NULL);
    return failed;
}
