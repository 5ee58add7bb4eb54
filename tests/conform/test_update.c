/* The laws of src/update: forms of parts multiplied out, spans, sums, values that travel. */
#include "conform/updates.h"

#include "update/values.h"

/* ---- multiplying out ---- */
/* What sdr_part_expand gives for rows first … end − 1 of the part's block, put to its place in
   `to`. */
static void expand_rows(const struct sdr_expansion *how, const struct sdr_part *part,
                        const struct sdr_batch *batch, uint32_t first, uint32_t end, float *to)
{
    const struct sdr_block *block = &how->layout->block[part->block];
    struct sdr_part sum = sdr_part_expand(how, part, batch, first, end);
    float *out = to + block->offset;
    assert_int_equal(sum.block, part->block);
    if (sum.form == SDR_DENSE) {
        memcpy(out + (size_t)first * block->cols, sum.value,
               (size_t)(end - first) * block->cols * sizeof *out);
        return;
    }
    assert_true(sum.form == SDR_ROWS && sum.distinct);
    bool *seen = exactly(block->rows);
    for (uint32_t i = 0; i < sum.count; i++) {
        uint32_t row = sum.index[i];
        assert_true(row >= first && row < end && !seen[row]);
        seen[row] = true;
        memcpy(out + (size_t)row * block->cols, sum.value + (size_t)i * block->cols,
               block->cols * sizeof *out);
    }
    free(seen);
}

static void every_form_is_multiplied_out_as_it_says(void **unused)
{
    (void)unused;
    struct world world;
    struct sdr_scratch scratch = {0};
    make_world(&world);
    assert_int_equal(sdr_scratch_create(&scratch, &world.layout), SDR_OK);
    uint32_t mark = 0;
    for (int tries = 0; tries < 40; tries++)
        for (int form = 0; form < FORMS; form++)
            for (int rows = 0; rows < ROW_KINDS; rows++) {
                struct given g;
                make_given(&world, form, rows, 1 + random_below(ROWS), &g);
                struct sdr_expansion how = {&world.layout, kernels(), g.center,
                                            &scratch,      ++mark,    1};
                uint64_t count = world.layout.count;
                uint32_t block_rows = world.layout.block[g.part.block].rows;
                double *exact = exactly(count * sizeof *exact),
                       *size = exactly(count * sizeof *size);
                float *whole = exactly(count * sizeof *whole);
                reference_add(&world.layout, &g.part, &g.batch, g.center, exact, size);
                expand_rows(&how, &g.part, &g.batch, 0, block_rows, whole);
                for (uint64_t i = 0; i < count; i++)
                    assert_near(whole[i], exact[i], 4e-6 * size[i], "%s, %s, value %llu",
                                form_name[form], row_name[rows], (unsigned long long)i);
                free(whole);
                free(exact);
                free(size);
                free_given(&g);
            }
    sdr_scratch_free(&scratch);
    free_world(&world);
}

static void ranges_put_together_are_the_whole_bit_for_bit(void **unused)
{
    (void)unused;
    struct world world;
    struct sdr_scratch scratch = {0};
    make_world(&world);
    assert_int_equal(sdr_scratch_create(&scratch, &world.layout), SDR_OK);
    uint32_t mark = 0;
    for (int tries = 0; tries < 30; tries++)
        for (int form = 0; form < FORMS; form++)
            for (int rows = 0; rows < ROW_KINDS; rows++) {
                struct given g;
                make_given(&world, form, rows, 1 + random_below(ROWS), &g);
                uint32_t block_rows = world.layout.block[g.part.block].rows;
                struct sdr_expansion how = {&world.layout, kernels(), g.center,
                                            &scratch,      ++mark,    1};
                uint64_t bytes = world.layout.count * sizeof(float);
                float *whole = exactly(bytes), *pieces = exactly(bytes);
                expand_rows(&how, &g.part, &g.batch, 0, block_rows, whole);
                how.mark = ++mark;
                for (uint32_t at = 0, end; at < block_rows; at = end) {
                    end = at + 1 + random_below(block_rows - at);
                    expand_rows(&how, &g.part, &g.batch, at, end, pieces);
                }
                if (memcmp(whole, pieces, bytes) != 0)
                    fail_msg("%s, %s: pieces give other bits", form_name[form], row_name[rows]);
                free(whole);
                free(pieces);
                free_given(&g);
            }
    sdr_scratch_free(&scratch);
    free_world(&world);
}

/* ---- spans ---- */
static void spans_cover_everything_once_with_whole_rows(void **unused)
{
    enum { MOST = 200 };
    (void)unused;
    struct world world;
    make_world(&world);
    uint32_t *touched = exactly(FEATURES * sizeof *touched);
    for (int tries = 0; tries < 60; tries++) {
        struct sdr_layout layout = world.layout;
        struct sdr_span span[MOST];
        if (tries % 2) { /* other shapes, and blocks without padding between */
            struct sdr_block block[6];
            int blocks = 1 + (int)random_below(6);
            for (int b = 0; b < blocks; b++)
                block[b] =
                    (struct sdr_block){.rows = 1 + random_below(20), .cols = 1 + random_below(20)};
            block[0].per_feature = true;
            block[0].rows = FEATURES;
            sdr_layout_make(&layout, block, blocks);
        }
        for (uint32_t j = 0; j < FEATURES; j++)
            touched[j] = random_below(4) ? random_below(3) : random_below(1000);
        for (uint32_t spans = 1; spans <= MOST; spans += 1 + spans / 8) {
            sdr_cut_spans(&layout, tries % 3 ? touched : NULL, 1000, 0, spans, span);
            assert_int_equal(span[0].first, 0);
            assert_int_equal(span[spans - 1].end, layout.count);
            for (uint32_t p = 0; p < spans; p++)
                assert_true(span[p].first <= span[p].end &&
                            (p == 0 || span[p].first == span[p - 1].end));
            for (int b = 0; b < layout.blocks; b++) {
                uint32_t next = 0, first, end;
                for (uint32_t p = 0; p < spans; p++) {
                    sdr_rows_within(&layout.block[b], span[p], &first, &end);
                    if (first == end)
                        continue;
                    assert_int_equal(first, next);
                    next = end;
                    /* a row lies in one span with all its values */
                    assert_true(layout.block[b].offset + (uint64_t)first * layout.block[b].cols >=
                                span[p].first);
                    assert_true(layout.block[b].offset + (uint64_t)end * layout.block[b].cols <=
                                span[p].end);
                }
                assert_int_equal(next, layout.block[b].rows);
            }
        }
    }
    free(touched);
    free_world(&world);
}

/* No span has more work than its share and the largest row. */
static void spans_have_about_the_same_work(void **unused)
{
    enum { SPANS = 8 };
    (void)unused;
    struct world world;
    make_world(&world);
    uint32_t touched[FEATURES];
    for (int tries = 0; tries < 50; tries++) {
        struct sdr_span span[SPANS];
        double total = 0, largest = 0, work[SPANS] = {0};
        for (uint32_t j = 0; j < FEATURES; j++)
            touched[j] = random_below(100);
        sdr_cut_spans(&world.layout, touched, 100, 0, SPANS, span);
        for (int p = 0; p < SPANS; p++)
            for (int b = 0; b < world.layout.blocks; b++) {
                const struct sdr_block *block = &world.layout.block[b];
                uint32_t first, end;
                sdr_rows_within(block, span[p], &first, &end);
                for (uint32_t j = first; j < end; j++) {
                    double cost = block->cols * (block->per_feature ? touched[j] + 1.0 : 101.0);
                    work[p] += cost;
                    total += cost;
                    largest = fmax(largest, cost);
                }
            }
        for (int p = 0; p < SPANS; p++)
            assert_true(work[p] <= total / SPANS + largest + SPANS);
    }
    free_world(&world);
}

static void spans_of_large_blocks_are_whole_cache_lines_of_equal_work(void **unused)
{
    enum { MOST = 9, LINE = 16, LARGE = 64 };
    (void)unused;
    for (int tries = 0; tries < 200; tries++) {
        struct sdr_layout layout;
        struct sdr_span span[MOST];
        struct sdr_block block[2] = {{.cols = 1 + random_below(12), .per_feature = true},
                                     {.rows = 1, .cols = 1}};
        uint32_t spans = 1 + random_below(MOST);
        block[0].rows = LARGE * spans + random_below(1000);
        sdr_layout_make(&layout, block, 2);
        sdr_cut_spans(&layout, NULL, 1000, 0, spans, span);
        for (uint32_t p = 0; p < spans; p++) {
            uint64_t size = span[p].end - span[p].first, even = layout.count / spans;
            uint32_t line = LINE * block[0].cols;
            assert_int_equal(span[p].first % line, 0);
            assert_in_range(size + 2 * line, even, even + 4 * line);
        }
    }
}

/* ---- sums ---- */
enum { LEAVES_MOST = 9, WORKERS_MOST = 5 };

/* The gradients of the leaves of a batch: a part for every block, of the forms that models have. */
struct leaf {
    struct sdr_part part[BLOCKS];
    struct sdr_update update;
    struct given given[BLOCKS];
    int givens;
};

static void make_leaf(const struct world *world, uint32_t number, struct leaf *leaf)
{
    static const int form[BLOCKS] = {FORM_EXAMPLES, FORM_ONES, FORM_EXAMPLES_ONE, FORM_STORED,
                                     FORM_DENSE};
    uint32_t count = 1 + random_below(20);
    *leaf = (struct leaf){.givens = BLOCKS};
    for (int b = 0; b < BLOCKS; b++) {
        make_given(world, form[b], 0, count, &leaf->given[b]);
        leaf->part[b] = leaf->given[b].part;
        if (leaf->part[b].form == SDR_DENSE) {
            leaf->part[b].leaf = number;
            leaf->part[b].leaves = 1;
        }
    }
    /* The intercept has the factors of the weights, as in linear models. */
    leaf->part[1].value = leaf->part[0].value;
    leaf->update = (struct sdr_update){.sense = SDR_GRADIENT,
                                       .loss = random_dyadic(2),
                                       .weight = count,
                                       .batch = leaf->given[0].batch,
                                       .part = leaf->part,
                                       .parts = BLOCKS};
}

static void free_leaf(struct leaf *leaf)
{
    for (int i = 0; i < leaf->givens; i++)
        free_given(&leaf->given[i]);
}

/* A sum multiplied out, in float as an optimizer would see it. */
static float *expanded_in(const struct world *world, const struct sdr_update *update,
                          struct sdr_scratch *scratch, uint32_t mark)
{
    float *out = exactly(world->layout.count * sizeof *out);
    for (int p = 0; p < update->parts; p++) {
        struct sdr_expansion how = {&world->layout, kernels(), NULL, scratch, mark, 1};
        expand_rows(&how, &update->part[p], &update->batch, 0,
                    world->layout.block[update->part[p].block].rows, out);
    }
    return out;
}

static float *expanded(const struct world *world, const struct sdr_update *update)
{
    struct sdr_scratch scratch = {0};
    assert_int_equal(sdr_scratch_create(&scratch, &world->layout), SDR_OK);
    float *out = expanded_in(world, update, &scratch, 2);
    sdr_scratch_free(&scratch);
    return out;
}

/* What earlier updates touched does not show, also where marks have come round to 1. */
static void marks_may_start_over(void **unused)
{
    (void)unused;
    struct world world;
    struct sdr_scratch scratch = {0};
    make_world(&world);
    assert_int_equal(sdr_scratch_create(&scratch, &world.layout), SDR_OK);
    for (uint32_t step = 0; step < 200; step++) {
        struct leaf leaf;
        make_leaf(&world, 0, &leaf);
        float *used = expanded_in(&world, &leaf.update, &scratch, step % 7 + 1);
        float *clean = expanded(&world, &leaf.update);
        assert_memory_equal(used, clean, world.layout.count * sizeof *used);
        free(used);
        free(clean);
        free_leaf(&leaf);
    }
    sdr_scratch_free(&scratch);
    free_world(&world);
}

static void any_grouping_of_leaves_gives_the_bits_of_one_worker(void **unused)
{
    (void)unused;
    struct world world;
    make_world(&world);
    for (uint32_t leaves = 1; leaves <= LEAVES_MOST; leaves++) {
        struct leaf leaf[LEAVES_MOST];
        struct sdr_sum one, worker[WORKERS_MOST], server;
        uint64_t bytes = world.layout.count * sizeof(float);
        for (uint32_t l = 0; l < leaves; l++)
            make_leaf(&world, l, &leaf[l]);
        assert_int_equal(sdr_sum_create(&one, &world.layout), SDR_OK);
        assert_int_equal(sdr_sum_create(&server, &world.layout), SDR_OK);
        for (int w = 0; w < WORKERS_MOST; w++)
            assert_int_equal(sdr_sum_create(&worker[w], &world.layout), SDR_OK);
        sdr_sum_begin(&one, SDR_GRADIENT);
        for (uint32_t l = 0; l < leaves; l++)
            assert_int_equal(sdr_sum_add(&one, &leaf[l].update, 1), SDR_OK);
        const struct sdr_update *alone = sdr_sum_end(&one, true);
        assert_int_equal(alone->parts, BLOCKS);
        float *expected = expanded(&world, alone);
        for (uint32_t workers = 1; workers <= WORKERS_MOST; workers++)
            for (int tries = 0; tries < 8; tries++) {
                /* Runs of leaves of any length, some of none. */
                uint32_t cut[WORKERS_MOST + 1] = {0};
                for (uint32_t w = 1; w < workers; w++)
                    cut[w] = cut[w - 1] + random_below(leaves - cut[w - 1] + 1);
                cut[workers] = leaves;
                sdr_sum_begin(&server, SDR_GRADIENT);
                for (uint32_t w = 0; w < workers; w++) {
                    sdr_sum_begin(&worker[w], SDR_GRADIENT);
                    for (uint32_t l = cut[w]; l < cut[w + 1]; l++)
                        assert_int_equal(sdr_sum_add(&worker[w], &leaf[l].update, 1), SDR_OK);
                    assert_int_equal(sdr_sum_add(&server, sdr_sum_end(&worker[w], false), 1),
                                     SDR_OK);
                }
                const struct sdr_update *all = sdr_sum_end(&server, true);
                float *got = expanded(&world, all);
                assert_int_equal(all->parts, BLOCKS);
                assert_int_equal(all->batch.count, alone->batch.count);
                assert_memory_equal(all->batch.row, alone->batch.row,
                                    alone->batch.count * sizeof(uint32_t));
                assert_near(all->loss, alone->loss, 0, "loss");
                assert_near(all->weight, alone->weight, 0, "weight");
                if (memcmp(got, expected, bytes) != 0)
                    fail_msg("%u leaves, %u workers: other bits than one worker's", leaves,
                             workers);
                free(got);
            }
        free(expected);
        for (uint32_t l = 0; l < leaves; l++)
            free_leaf(&leaf[l]);
        for (int w = 0; w < WORKERS_MOST; w++)
            sdr_sum_free(&worker[w]);
        sdr_sum_free(&one);
        sdr_sum_free(&server);
    }
    free_world(&world);
}

static void a_sum_is_the_weighted_sum(void **unused)
{
    (void)unused;
    struct world world;
    make_world(&world);
    for (int tries = 0; tries < 40; tries++) {
        uint32_t count = 1 + random_below(6);
        struct leaf leaf[6];
        struct sdr_sum sum;
        double *exact = exactly(world.layout.count * sizeof *exact);
        double *size = exactly(world.layout.count * sizeof *size);
        assert_int_equal(sdr_sum_create(&sum, &world.layout), SDR_OK);
        sdr_sum_begin(&sum, SDR_GRADIENT);
        for (uint32_t i = 0; i < count; i++) {
            float weight = (float)(1 + random_below(4)) / 4;
            double *one = exactly(world.layout.count * sizeof *one);
            make_leaf(&world, i, &leaf[i]);
            for (int b = 0; b < BLOCKS; b++)
                leaf[i].part[b].leaf = leaf[i].part[b].leaves = 0; /* of workers, not of leaves */
            if (i == 1) { /* what has no weight may be anything */
                weight = 0;
                ((float *)leaf[i].part[BLOCKS - 1].value)[0] = NAN;
                ((float *)leaf[i].part[0].value)[0] = INFINITY;
            }
            assert_int_equal(sdr_sum_add(&sum, &leaf[i].update, weight), SDR_OK);
            for (int b = 0; b < BLOCKS && weight > 0; b++)
                reference_add(&world.layout, &leaf[i].part[b], &leaf[i].update.batch, NULL, one,
                              size);
            for (uint64_t v = 0; v < world.layout.count; v++)
                exact[v] += weight * one[v];
            free(one);
        }
        float *got = expanded(&world, sdr_sum_end(&sum, true));
        for (uint64_t v = 0; v < world.layout.count; v++)
            assert_near(got[v], exact[v], 4e-6 * size[v], "value %llu of a weighted sum",
                        (unsigned long long)v);
        for (uint32_t i = 0; i < count; i++)
            free_leaf(&leaf[i]);
        free(got);
        free(exact);
        free(size);
        sdr_sum_free(&sum);
    }
    free_world(&world);
}

/* Servers have the values of a span: dense parts of a few rows are summed up as they are. */
static void dense_parts_of_a_span_are_summed(void **unused)
{
    (void)unused;
    struct world world;
    make_world(&world);
    int dense = BLOCKS - 1;
    const struct sdr_block *block = &world.layout.block[dense];
    for (uint32_t first = 0; first < block->rows; first++)
        for (uint32_t end = first + 1; end <= block->rows; end++) {
            struct sdr_sum sum;
            uint32_t values = (end - first) * block->cols;
            float *exact = exactly(values * sizeof *exact);
            assert_int_equal(sdr_sum_create(&sum, &world.layout), SDR_OK);
            sdr_sum_begin(&sum, SDR_GRADIENT);
            for (uint32_t worker = 0; worker < 4; worker++) {
                float *value = exactly(values * sizeof *value); /* and nothing beyond */
                for (uint32_t i = 0; i < values; i++)
                    exact[i] += value[i] = random_dyadic(1);
                struct sdr_part part = {.block = dense,
                                        .form = SDR_DENSE,
                                        .count = values,
                                        .first = first,
                                        .leaf = worker,
                                        .leaves = 1,
                                        .value = value};
                struct sdr_update update = {.part = &part, .parts = 1};
                assert_int_equal(sdr_sum_add(&sum, &update, 1), SDR_OK);
                free(value);
            }
            const struct sdr_update *all = sdr_sum_end(&sum, true);
            assert_int_equal(all->parts, 1);
            assert_int_equal(all->part[0].first, first);
            assert_int_equal(all->part[0].count, values);
            assert_memory_equal(all->part[0].value, exact, values * sizeof *exact);
            free(exact);
            sdr_sum_free(&sum);
        }
    free_world(&world);
}

static void parts_that_do_not_go_together_are_refused(void **unused)
{
    (void)unused;
    struct world world;
    make_world(&world);
    struct given rows, factors, onehot;
    make_given(&world, FORM_ROWS, 0, 5, &rows);
    make_given(&world, FORM_EXAMPLES, 0, 5, &factors);
    make_given(&world, FORM_EXAMPLES_HOT, 0, 5, &onehot);
    rows.part.block = onehot.part.block = factors.part.block;
    const struct sdr_part *pair[3][2] = {
        {&rows.part, &factors.part}, {&factors.part, &onehot.part}, {&onehot.part, &rows.part}};
    for (int i = 0; i < 3; i++) {
        struct sdr_sum sum;
        struct sdr_part one = *pair[i][0], two = *pair[i][1];
        struct sdr_update a = {.part = &one, .parts = 1}, b = {.part = &two, .parts = 1};
        assert_int_equal(sdr_sum_create(&sum, &world.layout), SDR_OK);
        sdr_sum_begin(&sum, SDR_GRADIENT);
        assert_int_equal(sdr_sum_add(&sum, &a, 1), SDR_OK);
        assert_int_not_equal(sdr_sum_add(&sum, &b, 1), SDR_OK);
        sdr_sum_free(&sum);
    }
    free_given(&rows);
    free_given(&factors);
    free_given(&onehot);
    free_world(&world);
}

/* A server whose rows a gradient does not touch is sent a part of no rows. */
static void a_part_of_no_rows_goes_with_others(void **unused)
{
    (void)unused;
    struct world world;
    make_world(&world);
    struct given rows;
    make_given(&world, FORM_ROWS, 0, 5, &rows);
    for (int order = 0; order < 2; order++) {
        struct sdr_sum sum;
        struct sdr_part some = rows.part, none = rows.part;
        struct sdr_update a = {.part = order ? &some : &none, .parts = 1};
        struct sdr_update b = {.part = order ? &none : &some, .parts = 1};
        none.count = 0;
        assert_int_equal(sdr_sum_create(&sum, &world.layout), SDR_OK);
        sdr_sum_begin(&sum, SDR_GRADIENT);
        assert_int_equal(sdr_sum_add(&sum, &a, 1), SDR_OK);
        assert_int_equal(sdr_sum_add(&sum, &b, 1), SDR_OK);
        const struct sdr_update *all = sdr_sum_end(&sum, true);
        assert_int_equal(all->part[0].count, 5);
        assert_memory_equal(all->part[0].index, some.index, 5 * sizeof(uint32_t));
        sdr_sum_free(&sum);
    }
    free_given(&rows);
    free_world(&world);
}

/* ---- values that travel ---- */
/* Which values a batch moves: all of blocks that are not per feature, and of dense rows. */
static void mark_moved(const struct world *world, const struct sdr_batch *batch,
                       struct sdr_span span, bool *moved)
{
    for (int b = 0; b < world->layout.blocks; b++) {
        const struct sdr_block *block = &world->layout.block[b];
        bool all = !batch || batch->rows->dense || !block->per_feature;
        for (uint32_t j = 0; j < block->rows; j++) {
            uint64_t at = block->offset + (uint64_t)j * block->cols;
            bool touched = all;
            for (uint32_t i = 0; i < (batch ? batch->count : 0) && !touched; i++) {
                struct sdr_sparse_row r = sdr_sparse_row(batch->rows, batch->row[i]);
                for (uint32_t n = 0; n < r.n; n++)
                    touched |= sdr_row_index(&r, n) == j;
            }
            for (uint32_t k = 0; k < block->cols; k++)
                moved[at + k] = touched && at >= span.first && at < span.end;
        }
    }
}

static void what_was_gathered_is_scattered_and_added(void **unused)
{
    enum { SPANS = 3 };
    (void)unused;
    struct world world;
    struct sdr_marks marks = {0};
    make_world(&world);
    assert_int_equal(sdr_marks_create(&marks, FEATURES), SDR_OK);
    uint64_t count = world.layout.count;
    for (int tries = 0; tries < 200; tries++) {
        int kind = (int)random_below(ROW_KINDS);
        struct sdr_batch batch = batch_on(&world, kind, 1 + random_below(12));
        const struct sdr_batch *of = tries % 5 ? &batch : NULL;
        struct sdr_span span[SPANS];
        float *w = exactly(count * sizeof *w), *to = exactly(count * sizeof *to);
        bool *moved = exactly(count);
        if (tries % 7 == 0) /* the stamp comes round */
            marks.stamp = UINT32_MAX - 3;
        for (uint64_t i = 0; i < count; i++) {
            w[i] = 1 + random_dyadic(1) / 2;
            to[i] = -1;
        }
        sdr_cut_spans(&world.layout, NULL, 1, 0, SPANS, span);
        for (int s = 0; s < SPANS; s++) {
            uint64_t all =
                sdr_move_values(&world.layout, &marks, of, span[s], w, NULL, 0, SDR_GATHER);
            float *packed = exactly(all * sizeof *packed);
            mark_moved(&world, of, span[s], moved);
            uint64_t expected = 0;
            for (uint64_t i = 0; i < count; i++)
                expected += moved[i];
            assert_int_equal(all, expected);
            assert_int_equal(
                sdr_move_values(&world.layout, &marks, of, span[s], w, packed, all, SDR_GATHER),
                all);
            assert_int_equal(
                sdr_move_values(&world.layout, &marks, of, span[s], to, packed, all, SDR_SCATTER),
                all);
            for (uint64_t i = span[s].first; i < span[s].end; i++)
                assert_true(to[i] == (moved[i] ? w[i] : -1));
            assert_int_equal(
                sdr_move_values(&world.layout, &marks, of, span[s], to, packed, all, SDR_ADD), all);
            for (uint64_t i = span[s].first; i < span[s].end; i++)
                assert_true(to[i] == (moved[i] ? 2 * w[i] : -1));
            free(packed);
        }
        free(moved);
        free(to);
        free(w);
    }
    sdr_marks_free(&marks);
    free_world(&world);
}

static void a_step_that_is_described_is_added_where_it_belongs(void **unused)
{
    enum { SPANS = 3 };
    (void)unused;
    struct world world;
    struct sdr_marks marks = {0};
    make_world(&world);
    assert_int_equal(sdr_marks_create(&marks, FEATURES), SDR_OK);
    uint64_t count = world.layout.count;
    for (int tries = 0; tries < 100; tries++) {
        struct sdr_batch batch =
            batch_on(&world, (int)random_below(ROW_KINDS), 1 + random_below(12));
        struct sdr_span span[SPANS];
        float *change = exactly(count * sizeof *change), *w = exactly(count * sizeof *w);
        bool *moved = exactly(count);
        for (uint64_t i = 0; i < count; i++)
            change[i] = random_dyadic(1) + 2;
        sdr_cut_spans(&world.layout, NULL, 1, 0, SPANS, span);
        for (int s = 0; s < SPANS; s++) {
            struct sdr_part part[BLOCKS];
            struct sdr_update step;
            uint64_t all = sdr_move_values(&world.layout, &marks, &batch, span[s], change, NULL, 0,
                                           SDR_GATHER);
            float *packed = exactly(all * sizeof *packed);
            assert_int_equal(sdr_step_gather(&world.layout, &marks, &batch, span[s], change, packed,
                                             part, &step),
                             all);
            assert_int_equal(step.sense, SDR_STEP);
            assert_int_equal(sdr_step_add(&world.layout, &marks, &step, span[s], w), SDR_OK);
            mark_moved(&world, &batch, span[s], moved);
            for (uint64_t i = span[s].first; i < span[s].end; i++)
                assert_true(w[i] == (moved[i] ? change[i] : 0));
            /* Of one value more or less none is added. */
            for (int p = 0, parts = step.parts; p < parts; p++) {
                uint32_t before = part[p].count;
                float *same = exactly(count * sizeof *same);
                step.part = &part[p];
                step.parts = 1;
                part[p].count = before - 1;
                assert_int_equal(sdr_step_add(&world.layout, &marks, &step, span[s], same),
                                 SDR_BAD_FILE);
                part[p].count = before + 1;
                assert_int_equal(sdr_step_add(&world.layout, &marks, &step, span[s], same),
                                 SDR_BAD_FILE);
                part[p].count = before;
                for (uint64_t i = 0; i < count; i++)
                    assert_true(same[i] == 0);
                free(same);
            }
            free(packed);
        }
        free(moved);
        free(w);
        free(change);
    }
    sdr_marks_free(&marks);
    free_world(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_is_multiplied_out_as_it_says),
        cmocka_unit_test(ranges_put_together_are_the_whole_bit_for_bit),
        cmocka_unit_test(marks_may_start_over),
        cmocka_unit_test(spans_cover_everything_once_with_whole_rows),
        cmocka_unit_test(spans_have_about_the_same_work),
        cmocka_unit_test(spans_of_large_blocks_are_whole_cache_lines_of_equal_work),
        cmocka_unit_test(any_grouping_of_leaves_gives_the_bits_of_one_worker),
        cmocka_unit_test(a_sum_is_the_weighted_sum),
        cmocka_unit_test(dense_parts_of_a_span_are_summed),
        cmocka_unit_test(parts_that_do_not_go_together_are_refused),
        cmocka_unit_test(a_part_of_no_rows_goes_with_others),
        cmocka_unit_test(what_was_gathered_is_scattered_and_added),
        cmocka_unit_test(a_step_that_is_described_is_added_where_it_belongs),
    };
    int failed = 0;
    FOR_EVERY_CPU_LEVEL
    failed += cmocka_run_group_tests(tests, NULL, NULL);
    return failed;
}
