/* Features that occur are numbered in their order; entries of the rows that train have the numbers
   of their features. */
#include "conform/numbers.h"

#include "base/memory.h"
#include "update/numbering.h"

#include <stdlib.h>

enum { ROWS = 301, FEATURES = 70001, MOST = 7 };

struct sparse {
    uint64_t start[ROWS + 1];
    uint32_t index[ROWS * MOST], listed[ROWS], listed_count;
    struct sdr_rows rows;
};

/* Rows of up to MOST entries; every third row does not train. */
static void make_rows(struct sparse *s, uint32_t features)
{
    uint64_t used = 0;
    s->listed_count = 0;
    for (uint32_t r = 0; r < ROWS; r++) {
        uint32_t n = random_below(MOST + 1), at = random_below(features / 2);
        s->start[r] = used;
        for (uint32_t i = 0; i < n && at < features; i++, at += 1 + random_below(features / 8))
            s->index[used++] = at;
        if (r % 3 > 0)
            s->listed[s->listed_count++] = r;
    }
    s->start[ROWS] = used;
    s->rows = (struct sdr_rows){
        .count = ROWS, .features = features, .start = s->start, .index32 = s->index};
}

static void expect_numbers(const struct sparse *s, const uint32_t *listed, uint32_t count,
                           const struct sdr_numbering *n)
{
    bool *occurs = calloc(s->rows.features, sizeof *occurs);
    uint32_t number = 0;
    assert_non_null(occurs);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t r = listed ? listed[i] : i;
        for (uint64_t e = s->start[r]; e < s->start[r + 1]; e++) {
            occurs[s->index[e]] = true;
            assert_int_equal(n->feature[n->rows.index32[e]], s->index[e]);
        }
    }
    for (uint32_t j = 0; j < s->rows.features; j++)
        if (occurs[j])
            assert_int_equal(n->feature[number++], j);
    assert_int_equal(n->count, number);
    assert_int_equal(n->rows.features, number);
    for (; number % SDR_NUMBERS_ALIGN; number++)
        assert_false(occurs[n->feature[number]]);
    free(occurs);
}

static void every_entry_has_the_number_of_its_feature(void **unused)
{
    static struct sparse s;
    (void)unused;
    for (int threads = 1; threads <= 3; threads += 2)
        for (uint32_t features = FEATURES; features < FEATURES + 64; features += 21)
            for (int all = 0; all < 2; all++) {
                struct sdr_numbering n = {0};
                make_rows(&s, features);
                const uint32_t *listed = all ? NULL : s.listed, count = all ? ROWS : s.listed_count;
                assert_int_equal(
                    sdr_numbering_create(&n, &s.rows, listed, count, 16, FEATURES, threads),
                    SDR_OK);
                expect_numbers(&s, listed, count, &n);
                sdr_numbering_destroy(&n);
            }
}

/* Sixty-four features of every word but the last occur. */
static void whole_words_are_numbered(void **unused)
{
    enum { WIDE = 192 };
    static struct sparse s;
    struct sdr_numbering n = {0};
    (void)unused;
    s.rows =
        (struct sdr_rows){.count = ROWS, .features = WIDE, .start = s.start, .index32 = s.index};
    for (uint32_t j = 0; j < 128; j++)
        s.index[j] = j;
    for (uint32_t r = 0; r <= ROWS; r++)
        s.start[r] = r ? 128 : 0;
    assert_int_equal(sdr_numbering_create(&n, &s.rows, NULL, ROWS, 1000, WIDE, 2), SDR_OK);
    expect_numbers(&s, NULL, ROWS, &n);
    assert_int_equal(n.count, 128);
    sdr_numbering_destroy(&n);
}

/* Rows 0 … ROWS − 1 have one entry each, the features 0 … distinct − 1 in turn. */
static void make_single(struct sparse *s, uint32_t features, uint32_t distinct)
{
    for (uint32_t r = 0; r <= ROWS; r++)
        s->start[r] = r;
    for (uint32_t r = 0; r < ROWS; r++)
        s->index[r] = r % distinct;
    s->rows = (struct sdr_rows){
        .count = ROWS, .features = features, .start = s->start, .index32 = s->index};
}

static void nothing_is_numbered_that_saves_too_little(void **unused)
{
    static struct sparse s;
    static const struct {
        uint32_t features, distinct, cell_bytes, most;
        bool numbered;
    } law[] = {
        {1204, 100, 2, 1204, true},  /* 200 + 1204 bytes of 2408 */
        {1204, 100, 1, 1204, false}, /* the second index takes as much as all cells */
        {1204, 301, 4, 1204, true},  /* 1204 + 1204 of 4816 */
        {1204, 301, 2, 1204, true},  /* 602 + 1204 are three quarters of 2408 */
        {1203, 301, 2, 1204, false}, /* and more of 2406 */
        {1204, 301, 1000, 301, true},
        {1204, 301, 1000, 300, false}, /* more than are wanted */
        {301, 301, 1000, 1204, false}, /* all features occur */
        {301, 224, 1000, 1204, true},
        {301, 225, 1000, 1204, false}, /* three quarters of the cells */
    };
    (void)unused;
    for (size_t i = 0; i < sizeof law / sizeof *law; i++) {
        struct sdr_numbering n = {0}, zero = {0};
        make_single(&s, law[i].features, law[i].distinct);
        assert_int_equal(
            sdr_numbering_create(&n, &s.rows, NULL, ROWS, law[i].cell_bytes, law[i].most, 2),
            SDR_OK);
        if (law[i].numbered)
            expect_numbers(&s, NULL, ROWS, &n);
        else
            assert_memory_equal(&n, &zero, sizeof n);
        sdr_numbering_destroy(&n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_entry_has_the_number_of_its_feature),
        cmocka_unit_test(whole_words_are_numbered),
        cmocka_unit_test(nothing_is_numbered_that_saves_too_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
