/* The contract of every model: loss and slope, convexity, curvature, probabilities, gradients of batches. */
#include "conform/numbers.h"

#include "base/memory.h"
#include "kernel/linear.h"
#include "run/registry.h"
#include "run/settings.h"

enum { OUTPUTS = 5, FEATURES = 37, ROWS = 9 };

struct subject {
    const struct sdr_model_kind *kind;
    void *options; /* owned */
    uint32_t outputs;
};

static struct subject subject_open(const struct sdr_model_kind *kind)
{
    struct subject s = {.kind = kind, .outputs = kind->truth == SDR_CLASSES ? OUTPUTS : 1};
    const struct sdr_plugin *plugin;
    assert_int_equal(
        sdr_plugin_choose("model", sdr_model_kind_table, kind->name, &plugin, &s.options), SDR_OK);
    assert_ptr_equal(plugin, kind);
    return s;
}

#define FOR_EVERY_MODEL(s)                                                                         \
    for (const struct sdr_model_kind *const *k_ = sdr_model_kind_table; *k_; k_++)                 \
        for (struct subject s = subject_open(*k_); s.kind; s.kind = NULL, sdr_release(s.options))

/* Those whose scores are predictions, of any size; distances and cuts have laws of their own. */
#define FOR_EVERY_PREDICTOR(s) FOR_EVERY_MODEL(s) if (sdr_has_truth(s.kind->truth))

static float random_target(const struct subject *s)
{
    switch (s->kind->truth) {
    case SDR_BINARY:
        return random_below(2) ? 1.0f : -1.0f;
    case SDR_CLASSES:
        return (float)random_below(s->outputs);
    default:
        return random_dyadic(4);
    }
}

static double loss_at(const struct subject *s, const float *score, float target)
{
    float slope[OUTPUTS];
    return s->kind->loss(s->options, score, s->outputs, target, slope);
}

/* Loss at score + h·direction; exact in float for the dyadic numbers used here. */
static double loss_beyond(const struct subject *s, const float *score, const float *direction,
                          double h, float target)
{
    float moved[OUTPUTS];
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

/* A kink within two steps of H shows as a second derivative that changes from one side to the other. */
static bool kink_is_near(const struct subject *s, const float *score, uint32_t k, float t)
{
    float d[OUTPUTS] = {0}, left[OUTPUTS], right[OUTPUTS];
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
            float score[OUTPUTS] = {0}, slope[OUTPUTS], t = random_target(&s);
            for (uint32_t k = 0; k < s.outputs; k++)
                score[k] = random_dyadic(4);
            s.kind->loss(s.options, score, s.outputs, t, slope);
            for (uint32_t k = 0; k < s.outputs; k++) {
                float d[OUTPUTS] = {0};
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
        float score[OUTPUTS], slope[OUTPUTS], t = random_target(&s);
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
        float a[OUTPUTS], b[OUTPUTS], middle[OUTPUTS], at_a[OUTPUTS], at_b[OUTPUTS];
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
                float score[OUTPUTS] = {0}, slope[OUTPUTS], t = random_target(&s);
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
            float score[OUTPUTS], d[OUTPUTS] = {0}, t = random_target(&s);
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
            float score[OUTPUTS], p[OUTPUTS], t = random_target(&s);
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

/* ---- rows ---- */
/* The same numbers dense, and sparse with short and long indices. */
struct sample {
    float dense[ROWS * FEATURES], value[ROWS * FEATURES], target[ROWS], weight[ROWS];
    uint16_t index16[ROWS * FEATURES];
    uint32_t index32[ROWS * FEATURES];
    uint64_t start[ROWS + 1];
    struct sdr_rows rows[3];
    float w[(FEATURES + 16) * OUTPUTS + 64];
    struct sdr_block block[2];
};

static struct sample *make_sample(const struct subject *s, struct sdr_problem *problem)
{
    static struct sample sample;
    uint64_t at = 0;
    for (int i = 0; i < ROWS; i++) {
        sample.start[i] = at;
        for (uint32_t j = 0; j < FEATURES; j++) {
            float x = random_below(3) && i ? 0 : random_float(2); /* row 0 is full */
            sample.dense[i * FEATURES + (int)j] = x;
            if (x != 0) {
                sample.index16[at] = (uint16_t)j;
                sample.index32[at] = j;
                sample.value[at++] = x;
            }
        }
        sample.target[i] = random_target(s);
        sample.weight[i] = (float)(1 + random_below(8)) / 4;
    }
    sample.start[ROWS] = at;
    struct sdr_rows sparse = {
        .count = ROWS, .features = FEATURES, .start = sample.start, .value = sample.value};
    sample.rows[0] = sample.rows[1] = sparse;
    sample.rows[0].index16 = sample.index16;
    sample.rows[1].index32 = sample.index32;
    sample.rows[2] = (struct sdr_rows){
        .count = ROWS, .features = FEATURES, .dense = sample.dense, .stride = FEATURES};
    for (size_t i = 0; i < sizeof sample.w / sizeof *sample.w; i++)
        sample.w[i] = random_float(0.5f);
    *problem = (struct sdr_problem){.rows = &sample.rows[0],
                                    .target = sample.target,
                                    .features = FEATURES,
                                    .outputs = s->outputs,
                                    .classes = s->kind->truth == SDR_BINARY ? 2 : s->outputs,
                                    .intercept = true,
                                    .model_options = s->options,
                                    .kernels = sdr_linear_kernels(sdr_cpu_level())};
    return &sample;
}

/* Rows of other models have laws of their own: see tests/model/. */
#define FOR_EVERY_LINEAR_MODEL(s) FOR_EVERY_MODEL(s) if (s.kind->linear)

/* Lays the blocks out one behind the other; returns the number of values. */
static uint64_t lay_out(const struct subject *s, const struct sdr_problem *problem,
                        struct sample *sample)
{
    uint64_t at = 0;
    int blocks = s->kind->shape(problem, sample->block);
    assert_true(blocks == 1 + problem->intercept);
    for (int b = 0; b < blocks; b++) {
        sample->block[b].offset = at;
        at += (uint64_t)sample->block[b].rows * sample->block[b].cols;
    }
    assert_true(at <= sizeof sample->w / sizeof(float));
    return at;
}

static void scores_are_the_products_for_dense_and_sparse_rows(void **unused)
{
    static const uint32_t all[ROWS] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    (void)unused;
    FOR_EVERY_LINEAR_MODEL(s)
    for (int intercept = 0; intercept < 2; intercept++)
        for (int level = 0; level <= (int)sdr_cpu_best(); level++) {
            struct sdr_problem problem;
            struct sample *sample = make_sample(&s, &problem);
            float score[3][ROWS * OUTPUTS];
            problem.intercept = intercept;
            problem.kernels = sdr_linear_kernels((enum sdr_cpu)level);
            lay_out(&s, &problem, sample);
            for (int r = 0; r < 3; r++) {
                problem.rows = &sample->rows[r];
                struct sdr_batch batch = {.rows = problem.rows, .row = all, .count = ROWS};
                s.kind->score(&problem, sample->block, sample->w, &batch, score[r]);
            }
            assert_memory_equal(score[0], score[1], ROWS * s.outputs * sizeof(float));
            for (int i = 0; i < ROWS; i++)
                for (uint32_t k = 0; k < s.outputs; k++) {
                    double exact = intercept ? sample->w[sample->block[1].offset + k] : 0;
                    double size = fabs(exact);
                    for (int j = 0; j < FEATURES; j++) {
                        double part = (double)sample->dense[i * FEATURES + j] *
                                      sample->w[(uint32_t)j * s.outputs + k];
                        exact += part;
                        size += fabs(part);
                    }
                    for (int r = 0; r < 3; r += 2)
                        assert_near(score[r][(uint32_t)i * s.outputs + k], exact, 3e-6 * size,
                                    "%s: score of row %d, layout %d", s.kind->name, i, r);
                }
        }
}

/* Σ u_i·x_iᵀ in double, weights then intercept. */
static void multiply_out(const struct sdr_update *update, const struct sample *sample,
                         const struct subject *s, double *g)
{
    assert_int_equal(update->form, SDR_FACTORS);
    assert_int_equal(update->sense, SDR_GRADIENT);
    assert_int_equal(update->outputs, s->outputs);
    memset(g, 0, (FEATURES + 1) * OUTPUTS * sizeof *g);
    for (uint32_t i = 0; i < update->examples.count; i++)
        for (uint32_t k = 0; k < s->outputs; k++) {
            double u = update->u[i * s->outputs + k];
            for (uint32_t j = 0; j < FEATURES; j++)
                g[j * s->outputs + k] += u * sample->dense[update->examples.row[i] * FEATURES + j];
            g[FEATURES * s->outputs + k] += u;
        }
}

static void gradient_of_a_batch_is_the_weighted_mean_of_its_rows(void **unused)
{
    (void)unused;
    FOR_EVERY_LINEAR_MODEL(s)
    for (int weighted = 0; weighted < 2; weighted++)
        for (uint32_t count = 1; count <= ROWS; count++) {
            struct sdr_problem problem;
            struct sample *sample = make_sample(&s, &problem);
            double whole[(FEATURES + 1) * OUTPUTS], one[(FEATURES + 1) * OUTPUTS];
            double mean[(FEATURES + 1) * OUTPUTS] = {0}, loss = 0, weight = 0;
            float scratch[ROWS * OUTPUTS];
            uint32_t row[ROWS];
            struct sdr_update update;
            problem.row_weight = weighted ? sample->weight : NULL;
            lay_out(&s, &problem, sample);
            for (uint32_t i = 0; i < count; i++) {
                row[i] = (i * 5 + 2) % ROWS;
                struct sdr_batch single = {.rows = problem.rows, .row = &row[i], .count = 1};
                float score[OUTPUTS], slope[OUTPUTS];
                s.kind->gradient(s.kind, &problem, sample->block, sample->w, &single, scratch,
                                 &update);
                multiply_out(&update, sample, &s, one);
                for (uint32_t v = 0; v < (FEATURES + 1) * s.outputs; v++)
                    mean[v] += one[v] / count;
                loss += update.loss;
                weight += update.weight;
                /* and a single row's is weight · slope */
                s.kind->score(&problem, sample->block, sample->w, &single, score);
                double at =
                    s.kind->loss(s.options, score, s.outputs, sample->target[row[i]], slope);
                double share = weighted ? sample->weight[row[i]] : 1;
                assert_near(update.loss, share * at, 1e-12 * at, "%s: loss", s.kind->name);
                for (uint32_t k = 0; k < s.outputs; k++)
                    assert_near(update.u[k], share * slope[k], 1e-7 * fabs(share * slope[k]),
                                "%s: factor %u", s.kind->name, k);
            }
            struct sdr_batch batch = {.rows = problem.rows, .row = row, .count = count};
            s.kind->gradient(s.kind, &problem, sample->block, sample->w, &batch, scratch, &update);
            multiply_out(&update, sample, &s, whole);
            assert_near(update.loss, loss, 1e-12 * loss, "%s: sum of losses", s.kind->name);
            assert_near(update.weight, weight, 1e-12 * weight, "%s: weights", s.kind->name);
            for (uint32_t v = 0; v < (FEATURES + 1) * s.outputs; v++)
                assert_near(whole[v], mean[v], 1e-6, "%s: value %u of the gradient of %u rows",
                            s.kind->name, v, count);
        }
}

/* The whole chain in double: mean loss of the batch as a function of one weight. */
static void gradient_is_the_derivative_of_the_mean_loss(void **unused)
{
    static const uint32_t all[ROWS] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    (void)unused;
    FOR_EVERY_LINEAR_MODEL(s)
    {
        int kinks = 0;
        for (int tries = 0; tries < 8; tries++) {
            struct sdr_problem problem;
            struct sample *sample = make_sample(&s, &problem);
            uint64_t values = lay_out(&s, &problem, sample);
            struct sdr_batch batch = {.rows = problem.rows, .row = all, .count = ROWS};
            struct sdr_update update;
            float scratch[ROWS * OUTPUTS], score[ROWS * OUTPUTS];
            double g[(FEATURES + 1) * OUTPUTS];
            problem.row_weight = sample->weight;
            s.kind->gradient(s.kind, &problem, sample->block, sample->w, &batch, scratch, &update);
            multiply_out(&update, sample, &s, g);
            int off = 0;
            for (uint64_t v = 0; v < values; v++) {
                double mean[2];
                float before = sample->w[v], h = 1.0f / 128;
                for (int side = 0; side < 2; side++) {
                    sample->w[v] = before + (side ? h : -h);
                    s.kind->score(&problem, sample->block, sample->w, &batch, score);
                    mean[side] = 0;
                    for (uint32_t i = 0; i < ROWS; i++)
                        mean[side] += sample->weight[i] / ROWS *
                                      loss_at(&s, score + i * s.outputs, sample->target[i]);
                }
                sample->w[v] = before;
                off += fabs((mean[1] - mean[0]) / (2 * h) - g[v]) > 1e-3 * (1 + fabs(g[v]));
            }
            /* A kink under a row may be met by all of the values it touches, but not often. */
            kinks += off > 0;
            if (off > (s.kind->curvature == 0 ? (int)values / 2 : 0) || kinks > 3)
                fail_msg("%s: %d of %d values are not the derivative", s.kind->name, off,
                         (int)values);
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
        cmocka_unit_test(scores_are_the_products_for_dense_and_sparse_rows),
        cmocka_unit_test(gradient_of_a_batch_is_the_weighted_mean_of_its_rows),
        cmocka_unit_test(gradient_is_the_derivative_of_the_mean_loss),
    };
    int failed = 0;
    FOR_EVERY_CPU_LEVEL
    failed += cmocka_run_group_tests(tests, NULL, NULL);
    return failed;
}
