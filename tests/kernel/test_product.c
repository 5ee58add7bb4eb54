/* Products of matrices: every element is one chain of fused multiply-adds in the order of the inner
   index, wherever the elements are, on every CPU level. */
#include "conform/numbers.h"

#include "kernel/product.h"

#include <math.h>
#include <string.h>

enum { ROWS = 15, COLS = 70, INNER = 130, GUARD = 17 };

static float a[ROWS * INNER], b[INNER * COLS], to[ROWS * COLS + GUARD], right[ROWS * COLS + GUARD];

/* By the formula of kernel/product.h. */
static void multiply(const struct sdr_product *x)
{
    for (uint32_t i = 0; i < x->rows; i++)
        for (uint32_t j = 0; j < x->cols; j++) {
            float *sum = &right[(x->to_at ? x->to_at[i] : i * x->to_row) + j];
            if (!x->add)
                *sum = 0;
            for (uint32_t p = 0; p < x->inner; p++)
                *sum = fmaf(x->a[i * x->a_row + (x->a_at ? x->a_at[p] : p * x->a_step)],
                            x->b[(x->b_at ? x->b_at[p] : p * x->b_step) + j], *sum);
        }
}

static void check(struct sdr_product *x)
{
    for (int level = 0; level <= (int)sdr_cpu_best(); level++) {
        for (size_t i = 0; i < sizeof to / sizeof *to; i++)
            to[i] = right[i] = (float)i / 64;
        x->to = to;
        sdr_product_kernels((enum sdr_cpu)level)->product(x);
        multiply(x);
        same_bits(right, to, sizeof to / sizeof *to, "product", x->inner);
    }
}

static void products_are_the_chains_of_their_elements(void **unused)
{
    static const uint32_t inner[] = {0, 1, 127, 128, 129};
    size_t a_at[INNER], b_at[INNER], to_at[ROWS];
    (void)unused;
    for (size_t i = 0; i < sizeof a / sizeof *a; i++)
        a[i] = random_float(1);
    for (size_t i = 0; i < sizeof b / sizeof *b; i++)
        b[i] = random_float(1);
    for (uint32_t p = 0; p < INNER; p++) {
        a_at[p] = (INNER - 1 - p) * ROWS;
        b_at[p] = (p * 7 % INNER) * COLS;
    }
    for (uint32_t rows = 1; rows <= ROWS; rows++)
        for (uint32_t cols = 1; cols <= COLS; cols += 1 + random_below(4)) {
            uint32_t n = inner[random_below(5)];
            for (uint32_t i = 0; i < rows; i++)
                to_at[i] = (rows - 1 - i) * cols;
            struct sdr_product x = {
                .a = a, .b = b, .rows = rows, .cols = cols, .inner = n, .add = random_below(2)};
            x.to_row = cols;
            x.b_step = COLS;
            x.a_row = INNER; /* strides */
            x.a_step = 1;
            check(&x);
            x.a_row = 1; /* adjacent rows */
            x.a_step = ROWS;
            check(&x);
            x.to_at = to_at;
            check(&x);
            x.a_at = a_at; /* tables */
            x.b_at = b_at;
            check(&x);
        }
}

/* Infinities, given or by overflow, and at every place of the chain. */
static void infinite_sums_stay_infinite(void **unused)
{
    static const float first[] = {INFINITY, -INFINITY, 3e38f, -3e38f};
    enum { N = 9, LONG = 5 };
    (void)unused;
    for (uint32_t at = 0; at < LONG; at++)
        for (int level = 0; level <= (int)sdr_cpu_best(); level++) {
            struct sdr_product x = {.a = a, .b = b, .to = to, .rows = 4, .cols = N, .inner = LONG};
            x.a_row = LONG;
            x.a_step = 1;
            x.b_step = x.to_row = N;
            for (uint32_t i = 0; i < 4 * LONG; i++)
                a[i] = i % LONG == at ? first[i / LONG] : 1;
            for (uint32_t i = 0; i < LONG * N; i++)
                b[i] = 2;
            sdr_product_kernels((enum sdr_cpu)level)->product(&x);
            for (uint32_t i = 0; i < 4 * N; i++)
                assert_true(to[i] == (i / N % 2 ? -INFINITY : INFINITY));
        }
}

/* A network that has diverged must not look sound. */
static void activations_keep_nan(void **unused)
{
    static const enum sdr_activation smooth[] = {SDR_TANH, SDR_SIGMOID};
    (void)unused;
    for (int level = 0; level <= (int)sdr_cpu_best(); level++)
        for (size_t f = 0; f < sizeof smooth / sizeof *smooth; f++) {
            float x[19];
            for (int i = 0; i < 19; i++)
                x[i] = i % 3 ? (float)i - 9 : NAN;
            sdr_product_kernels((enum sdr_cpu)level)->activate(smooth[f], x, 19);
            for (int i = 0; i < 19; i++)
                assert_int_equal(isnan(x[i]) != 0, i % 3 == 0);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_the_chains_of_their_elements),
        cmocka_unit_test(infinite_sums_stay_infinite),
        cmocka_unit_test(activations_keep_nan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
