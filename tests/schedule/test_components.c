/* The law of components: no feature is touched from two bins of a window, and rows that need not go
   together are spread. Against conflicts found the slow way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "schedule/components.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 400, FEATURES = 3000, ENTRIES = 6, WINDOW = 90, BINS = 16 };

struct example {
    uint64_t start[ROWS + 1];
    uint32_t index[ROWS * ENTRIES];
    float value[ROWS * ENTRIES];
    struct sdr_rows rows;
};

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void make_example(struct example *e, uint64_t seed, uint32_t features)
{
    struct sdr_stream stream = sdr_stream_open(seed, SDR_FOR_SHUFFLE, 0);
    uint64_t count = 0;
    for (int r = 0; r < ROWS; r++) {
        uint32_t draw[ENTRIES];
        for (int n = 0; n < ENTRIES; n++)
            draw[n] = (uint32_t)sdr_stream_below(&stream, features);
        qsort(draw, ENTRIES, sizeof *draw, by_number);
        for (int n = 0; n < ENTRIES; n++)
            if (n == 0 || draw[n] != draw[n - 1]) {
                e->index[count] = draw[n];
                e->value[count++] = 1;
            }
        e->start[r + 1] = count;
    }
    e->rows = (struct sdr_rows){.count = ROWS,
                                .features = FEATURES,
                                .start = e->start,
                                .index32 = e->index,
                                .value = e->value};
}

/* The first row of the component each row is in, by going over all pairs until nothing changes. */
static void slow_components(const struct example *e, const uint32_t *row, uint32_t count,
                            uint32_t *first)
{
    bool changed = true;
    for (uint32_t i = 0; i < count; i++)
        first[i] = i;
    while (changed) {
        changed = false;
        for (uint32_t i = 0; i < count; i++)
            for (uint32_t k = 0; k < i; k++) {
                struct sdr_sparse_row a = sdr_sparse_row(&e->rows, row[i]);
                struct sdr_sparse_row b = sdr_sparse_row(&e->rows, row[k]);
                bool conflict = false;
                for (uint32_t m = 0; m < a.n; m++)
                    for (uint32_t n = 0; n < b.n; n++)
                        conflict |= a.index32[m] == b.index32[n];
                if (conflict && first[i] != first[k]) {
                    uint32_t least = first[i] < first[k] ? first[i] : first[k];
                    first[i] = first[k] = least;
                    changed = true;
                }
            }
    }
}

static void bins_share_no_feature(void **state)
{
    static struct example e;
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct sdr_components c;
        uint8_t bin[ROWS];
        make_example(&e, seed, seed % 2 ? FEATURES : 300);
        assert_int_equal(sdr_components_create(&c, FEATURES, WINDOW), SDR_OK);
        for (uint32_t from = 0; from < ROWS; from += WINDOW) {
            uint32_t row[WINDOW], first[WINDOW], load[WINDOW] = {0}, all = 0, largest = 0;
            uint32_t count = ROWS - from < WINDOW ? ROWS - from : WINDOW;
            for (uint32_t i = 0; i < count; i++)
                row[i] = from + count - 1 - i;
            double share = sdr_components_find(&c, &e.rows, row, count, BINS, bin);
            slow_components(&e, row, count, first);
            for (uint32_t i = 0; i < count; i++) {
                uint32_t work = sdr_sparse_row(&e.rows, row[i]).n + 4;
                assert_true(bin[row[i]] < BINS);
                assert_int_equal(bin[row[i]], bin[row[first[i]]]);
                all += work;
                largest = (load[first[i]] += work) > largest ? load[first[i]] : largest;
            }
            assert_true(share > 0.999 * largest / all && share < 1.001 * largest / all);
        }
        sdr_components_destroy(&c);
    }
}

static void work_is_spread(void **state)
{
    static struct example e;
    struct sdr_components c;
    uint8_t bin[ROWS];
    uint32_t row[WINDOW], work[BINS] = {0}, all = 0;
    (void)state;
    make_example(&e, 9, FEATURES);
    for (uint32_t n = 0; n < e.start[ROWS]; n++) /* nothing in common at all */
        e.index[n] = n;
    e.rows.features = ROWS * ENTRIES;
    assert_int_equal(sdr_components_create(&c, ROWS * ENTRIES, WINDOW), SDR_OK);
    for (uint32_t i = 0; i < WINDOW; i++)
        row[i] = i;
    sdr_components_find(&c, &e.rows, row, WINDOW, BINS, bin);
    for (uint32_t i = 0; i < WINDOW; i++) {
        work[bin[i]] += ENTRIES + 4;
        all += ENTRIES + 4;
    }
    for (int b = 0; b < BINS; b++)
        assert_true(work[b] > 0 && work[b] <= 2 * all / BINS);
    sdr_components_destroy(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bins_share_no_feature),
        cmocka_unit_test(work_is_spread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
