/* The kernels of linear models: right to rounding, and the same bits on every CPU level. */
#include "conform/numbers.h"

#include "kernel/linear.h"

enum { MOST = 48, FEATURES = 300, OUTPUTS_MOST = 40, GUARD = 3 };

struct row {
    uint32_t n, outputs;
    uint16_t index16[MOST];
    uint32_t index32[MOST];
    float x[MOST], center[MOST];
};

static float w[FEATURES * OUTPUTS_MOST];

static struct row make_row(uint32_t n, uint32_t outputs)
{
    struct row row = {.n = n, .outputs = outputs};
    uint32_t at = random_below(4);
    for (uint32_t i = 0; i < n; i++) {
        row.index32[i] = at;
        row.index16[i] = (uint16_t)at;
        row.x[i] = random_float(3);
        row.center[i] = random_float(1);
        at += 1 + random_below(5);
        assert_true(at < FEATURES);
    }
    for (size_t i = 0; i < FEATURES * OUTPUTS_MOST; i++)
        w[i] = random_float(1);
    return row;
}

#define FOR_EVERY_LEVEL(kernels)                                                                   \
    for (int level_ = 0; level_ <= (int)sdr_cpu_best(); level_++)                                  \
        for (const struct sdr_linear_kernels *kernels = sdr_linear_kernels((enum sdr_cpu)level_);  \
             kernels; kernels = NULL)

static void dots_are_the_sums_with_one_set_of_bits(void **unused)
{
    const struct sdr_linear_kernels *portable = sdr_linear_kernels(SDR_CPU_PORTABLE);
    (void)unused;
    for (uint32_t n = 0; n <= 40; n++)
        for (int tries = 0; tries < 20; tries++) {
            struct row r = make_row(n, 1);
            double sparse = 0, dense = 0, centered = 0, size = 0;
            for (uint32_t i = 0; i < n; i++) {
                sparse += (double)w[r.index32[i]] * r.x[i];
                dense += (double)w[i] * r.x[i];
                centered += (double)w[i] * ((double)r.x[i] - r.center[i]);
                size += 4;
            }
            float first[4] = {portable->dot16(w, r.index16, r.x, n),
                              portable->dot32(w, r.index32, r.x, n), portable->dot(w, r.x, NULL, n),
                              portable->dot(w, r.x, r.center, n)};
            FOR_EVERY_LEVEL(kernels)
            {
                float all[4] = {kernels->dot16(w, r.index16, r.x, n),
                                kernels->dot32(w, r.index32, r.x, n), kernels->dot(w, r.x, NULL, n),
                                kernels->dot(w, r.x, r.center, n)};
                same_bits(first, all, 4, "dot", n);
                assert_near(all[0], sparse, 4e-7 * size, "dot16");
                assert_near(all[1], sparse, 4e-7 * size, "dot32");
                assert_near(all[2], dense, 4e-7 * size, "dot");
                assert_near(all[3], centered, 4e-7 * size, "dot, centered");
            }
        }
}

static void rows_together_have_the_scores_of_each(void **unused)
{
    enum { LONGEST = 800, ROWS_MOST = 67, SCORES_MOST = 100 };
    static const uint32_t outputs_of[] = {1, 2, 7, 10, 16, 17, 33, 40, 48, 49, 63, 100};
    static const uint32_t rows_of[] = {1, 5, 6, 8, 12, 13, 24, 25, 31, 48, 67};
    static float w_of[LONGEST * SCORES_MOST], x[ROWS_MOST][LONGEST], center[LONGEST];
    static float one[ROWS_MOST * SCORES_MOST + GUARD], all[ROWS_MOST * SCORES_MOST + GUARD];
    const float *row[ROWS_MOST];
    (void)unused;
    for (size_t i = 0; i < sizeof w_of / sizeof *w_of; i++)
        w_of[i] = random_float(1);
    for (uint32_t i = 0; i < LONGEST; i++)
        center[i] = random_float(1);
    for (uint32_t r = 0; r < ROWS_MOST; r++)
        for (uint32_t i = 0; i < LONGEST; i++)
            x[r][i] = random_float(1);
    for (size_t o = 0; o < sizeof outputs_of / sizeof *outputs_of; o++)
        for (size_t c = 0; c < sizeof rows_of / sizeof *rows_of; c++) {
            static const uint32_t lengths[] = {0, 255, 256, 257, 784};
            uint32_t outputs = outputs_of[o], rows = rows_of[c];
            uint32_t n = random_below(2) ? lengths[random_below(5)] : random_below(LONGEST + 1);
            const float *from = random_below(2) ? center : NULL;
            FOR_EVERY_LEVEL(kernels)
            {
                for (uint32_t i = 0; i < sizeof one / sizeof *one; i++)
                    one[i] = all[i] = (float)i;
                for (uint32_t r = 0; r < rows; r++) {
                    row[r] = x[r];
                    kernels->scores(w_of, x[r], from, n, outputs, one + r * outputs);
                }
                kernels->scores_together(w_of, row, rows, from, n, outputs, all);
                float moved[LONGEST];
                kernels->copy(moved, x[0], from, n);
                for (uint32_t i = 0; i < n; i++)
                    assert_true(moved[i] == (from ? x[0][i] - from[i] : x[0][i]));
                same_bits(one, all, sizeof one / sizeof *one, "rows together", n);
            }
        }
}

static void scores_are_the_sums_with_one_set_of_bits(void **unused)
{
    const struct sdr_linear_kernels *portable = sdr_linear_kernels(SDR_CPU_PORTABLE);
    (void)unused;
    for (uint32_t outputs = 1; outputs <= OUTPUTS_MOST; outputs++)
        for (uint32_t n = 0; n <= 40; n += 1 + random_below(4)) {
            struct row r = make_row(n, outputs);
            float start[OUTPUTS_MOST + GUARD], first[4][OUTPUTS_MOST + GUARD];
            for (uint32_t k = 0; k < OUTPUTS_MOST + GUARD; k++)
                start[k] = random_float(1);
            FOR_EVERY_LEVEL(kernels)
            {
                float all[4][OUTPUTS_MOST + GUARD];
                for (int i = 0; i < 4; i++)
                    memcpy(all[i], start, sizeof start);
                kernels->scores16(w, r.index16, r.x, n, outputs, all[0]);
                kernels->scores32(w, r.index32, r.x, n, outputs, all[1]);
                kernels->scores(w, r.x, NULL, n, outputs, all[2]);
                kernels->scores(w, r.x, r.center, n, outputs, all[3]);
                if (kernels == portable)
                    memcpy(first, all, sizeof first);
                same_bits(first[0], all[0], sizeof first / sizeof(float), "scores", n);
                for (uint32_t k = 0; k < outputs; k++) {
                    double sum[4] = {start[k], start[k], start[k], start[k]};
                    for (uint32_t i = 0; i < n; i++) {
                        sum[0] += (double)w[r.index32[i] * outputs + k] * r.x[i];
                        sum[2] += (double)w[i * outputs + k] * r.x[i];
                        sum[3] += (double)w[i * outputs + k] * ((double)r.x[i] - r.center[i]);
                    }
                    sum[1] = sum[0];
                    for (int i = 0; i < 4; i++)
                        assert_near(all[i][k], sum[i], 1e-6 * (4 * n + 1), "scores %d", i);
                }
                for (uint32_t k = outputs; k < OUTPUTS_MOST + GUARD; k++)
                    for (int i = 0; i < 4; i++)
                        assert_true(all[i][k] == start[k]); /* nothing beyond the end */
            }
        }
}

static void add_adds_and_touches_nothing_else(void **unused)
{
    const struct sdr_linear_kernels *portable = sdr_linear_kernels(SDR_CPU_PORTABLE);
    (void)unused;
    for (uint32_t n = 0; n <= 40; n++)
        for (int centered = 0; centered < 2; centered++) {
            struct row r = make_row(n, 1);
            float start[MOST], first[MOST], all[MOST], a = random_float(2);
            const float *center = centered ? r.center : NULL;
            for (int i = 0; i < MOST; i++)
                start[i] = random_float(1);
            memcpy(first, start, sizeof start);
            portable->add(first, a, r.x, center, n);
            FOR_EVERY_LEVEL(kernels)
            {
                memcpy(all, start, sizeof start);
                kernels->add(all, a, r.x, center, n);
                same_bits(first, all, MOST, "add", n);
            }
            for (uint32_t i = 0; i < MOST; i++) {
                double x = i < n ? (double)r.x[i] - (centered ? r.center[i] : 0) : 0;
                assert_near(first[i], start[i] + a * x, i < n ? 2e-6 : 0, "add, value %u", i);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dots_are_the_sums_with_one_set_of_bits),
        cmocka_unit_test(scores_are_the_sums_with_one_set_of_bits),
        cmocka_unit_test(rows_together_have_the_scores_of_each),
        cmocka_unit_test(add_adds_and_touches_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
