/* The contract of every model: scores, gradients and statistics of batches, saving and loading. A
   new model is held to it without another line: its rows are made by what it needs. */
#include "conform/trial.h"

#include "base/fault.h"
#include "data/files.h"
#include "update/subset.h"

#include "sounder/sounder.h"

enum { SIZES = 4 };
static const uint32_t batch_size[SIZES] = {1, 5, 64, 65};

/* ---- scores ---- */
static void scores_do_not_depend_on_the_batch(void **unused)
{
    (void)unused;
    FOR_EVERY_MODEL(s)
    FOR_EVERY_TRIAL(s, t)
    {
        float together[ROWS * OUTPUTS_MOST], alone[OUTPUTS_MOST];
        struct sdr_view view = view_of(&t);
        struct sdr_batch batch = batch_of(&t, ROWS);
        assert_int_equal(s.kind->score(&view, &batch, t.workspace, together), SDR_OK);
        for (uint32_t i = 0; i < ROWS; i++) {
            struct sdr_batch one = {.rows = &t.rows, .row = batch.row + i, .count = 1};
            void *workspace = exactly(s.kind->workspace(&t.problem, 1));
            assert_int_equal(s.kind->score(&view, &one, workspace, alone), SDR_OK);
            free(workspace);
            if (memcmp(alone, together + i * s.outputs, s.outputs * sizeof *alone) != 0)
                fail_msg("%s on %s: the score of a row depends on its batch", s.kind->name,
                         t.form->name);
        }
    }
}

static void scores_are_the_same_for_sparse_and_dense_rows(void **unused)
{
    (void)unused;
    FOR_EVERY_MODEL(s)
    for (int variant = 0; variant < 4; variant++) {
        float score[FORMS][ROWS * OUTPUTS_MOST];
        uint64_t seed = random_state;
        for (int f = 0; f < 3; f++) {
            struct trial t;
            random_state = seed; /* the same rows and the same point */
            memcpy(score[f], score[0], sizeof score[f]);
            if (!open_trial(&t, &s, &form_of[f], variant & 1, variant & 2))
                continue;
            struct sdr_view view = view_of(&t);
            struct sdr_batch batch = batch_of(&t, ROWS);
            assert_int_equal(s.kind->score(&view, &batch, t.workspace, score[f]), SDR_OK);
            close_trial(&t);
        }
        assert_memory_equal(score[0], score[1], ROWS * s.outputs * sizeof(float));
        for (uint32_t i = 0; i < ROWS * s.outputs; i++)
            assert_near(score[2][i], score[0][i], 2e-5 * (1 + fabs(score[0][i])),
                        "%s: score %u, dense against sparse", s.kind->name, i);
    }
}

/* Models that are fused without factors have linear scores. */
static void linear_scores_are_products(void **unused)
{
    int models = 0;
    (void)unused;
    FOR_EVERY_MODEL(s)
    {
        if (!s.kind->fused || s.kind->fused->factors)
            continue;
        models++;
        FOR_EVERY_TRIAL(s, t)
        {
            float score[ROWS * OUTPUTS_MOST];
            struct sdr_view view = view_of(&t);
            struct sdr_batch batch = batch_of(&t, ROWS);
            assert_int_equal(s.kind->score(&view, &batch, t.workspace, score), SDR_OK);
            for (uint32_t i = 0; i < ROWS; i++)
                for (uint32_t k = 0; k < s.outputs; k++) {
                    double exact = t.problem.intercept ? t.w[t.layout.block[1].offset + k] : 0;
                    for (uint32_t j = 0; j < FEATURES; j++)
                        exact += example_value(&t.rows, batch.row[i], j, t.problem.center) *
                                 t.w[j * s.outputs + k];
                    /* Products of these numbers are exact in float, and so are their sums. */
                    if (score[i * s.outputs + k] != exact)
                        fail_msg("%s on %s: score %.9g of row %u, not %.9g", s.kind->name,
                                 t.form->name, score[i * s.outputs + k], i, exact);
                }
        }
    }
    assert_true(models >= 6);
}

/* ---- gradients ---- */
/* The objective of a batch: the mean loss and the penalties of its rows, by their weights, in
   double. */
static double objective(const struct trial *t, const struct sdr_batch *batch, float *score)
{
    const struct sdr_model_kind *kind = t->s->kind;
    struct sdr_view view = view_of(t);
    double sum = 0;
    float slope[OUTPUTS_MOST];
    assert_int_equal(kind->score(&view, batch, t->workspace, score), SDR_OK);
    for (uint32_t i = 0; i < batch->count; i++) {
        uint32_t row = batch->row[i];
        double value = kind->loss(t->s->options, score + i * t->s->outputs, t->s->outputs,
                                  t->sample->target[row], slope);
        if (kind->row_penalty)
            value += kind->row_penalty(&view, row);
        sum += value * (t->problem.row_weight ? t->problem.row_weight[row] : 1);
    }
    return sum / batch->count;
}

/* Whether a central difference of fourth order, with some step, is the derivative by value i. A
   kink nearer than a small step, or rounding of the scores, may be in the way of some of them. */
static bool confirmed(struct trial *t, const struct sdr_batch *batch, uint64_t i, double derivative,
                      double allowed)
{
    float before = t->w[i], score[ROWS * OUTPUTS_MOST];
    bool right = false;
    for (float h = 0x1p-5f; h >= 0x1p-14f && !right; h /= 8) {
        double at[4];
        for (int side = 0; side < 4; side++) {
            t->w[i] = before + h * (float)(side < 2 ? side - 2 : side - 1);
            at[side] = objective(t, batch, score);
        }
        double numeric = (8 * (at[2] - at[1]) - (at[3] - at[0])) / (12 * (double)h);
        right = fabs(numeric - derivative) <= allowed;
    }
    t->w[i] = before;
    return right;
}

/* Notes which values of the gradient are the derivative of the objective at this point, and returns
   how many were so at none. */
static int wrong_values(struct trial *t, const struct sdr_batch *batch, const double *g,
                        bool *right)
{
    enum { LOOKED_AT = 100 }; /* values of a large layout, on average */
    int wrong = 0;
    double most = 0;
    for (uint64_t i = 0; i < t->layout.count; i++)
        most = fmax(most, fabs(g[i]));
    for (int b = 0; b < t->layout.blocks; b++) {
        const struct sdr_block *block = &t->layout.block[b];
        uint64_t end = block->offset + (uint64_t)block->rows * block->cols;
        for (uint64_t i = block->offset; i < end && !block->fixed; i++) {
            right[i] = right[i] || random_below((uint32_t)t->layout.count) > LOOKED_AT ||
                       confirmed(t, batch, i, g[i], 1e-4 * fabs(g[i]) + 1e-5 * most);
            wrong += !right[i];
        }
    }
    return wrong;
}

static void gradient_is_the_derivative_of_the_mean_loss(void **unused)
{
    /* One of 12 points is far from all kinks of a loss; at one of 3 rounding is small enough. */
    enum { POINTS = 12, POINTS_IF_SMOOTH = 3 };
    (void)unused;
    FOR_EVERY_MODEL(s)
    {
        if (s.kind->sense != SDR_GRADIENT)
            continue;
        FOR_EVERY_TRIAL(s, t)
        for (int size = 0; size < SIZES; size++) {
            int wrong = 1;
            int points = s.kind->curvature > 0 && !s.kind->layered ? POINTS_IF_SMOOTH : POINTS;
            bool *right = exactly(t.layout.count * sizeof *right);
            memset(right, 0, t.layout.count * sizeof *right);
            for (int point = 0; point < points && wrong; point++) {
                struct sdr_batch batch = batch_of(&t, batch_size[size]);
                struct sdr_update update;
                choose_point(&t);
                struct sdr_view view = view_of(&t);
                assert_int_equal(
                    sdr_batch_gradient(&t.space, &view, &batch, 0, NULL, NULL, &update), SDR_OK);
                assert_int_equal(update.sense, SDR_GRADIENT);
                struct dense d = dense_of(&t, &update);
                wrong = wrong_values(&t, &batch, d.g, right);
                free_dense(&d);
            }
            free(right);
            if (wrong)
                fail_msg("%s on %s%s%s, %u rows: %d values are not the derivative", s.spec,
                         t.form->name, t.problem.row_weight ? ", weighted" : "",
                         t.problem.intercept ? ", intercept" : "", batch_size[size], wrong);
        }
    }
}

static void loss_and_weight_are_the_sums_of_the_rows(void **unused)
{
    (void)unused;
    FOR_EVERY_MODEL(s)
    FOR_EVERY_TRIAL(s, t)
    for (int size = 0; size < SIZES; size++) {
        float score[ROWS * OUTPUTS_MOST], slope[OUTPUTS_MOST];
        struct sdr_batch batch = batch_of(&t, batch_size[size]);
        struct sdr_view view = view_of(&t);
        struct sdr_loss_sum leaf[2];
        struct sdr_update update;
        double loss = 0, weight = 0;
        assert_int_equal(s.kind->score(&view, &batch, t.workspace, score), SDR_OK);
        for (uint32_t i = 0; i < batch.count; i++) {
            double share = t.problem.row_weight ? t.problem.row_weight[batch.row[i]] : 1;
            loss += share * s.kind->loss(s.options, score + i * s.outputs, s.outputs,
                                         t.sample->target[batch.row[i]], slope);
            weight += share;
        }
        assert_int_equal(sdr_batch_gradient(&t.space, &view, &batch, 0, leaf, NULL, &update),
                         SDR_OK);
        assert_near(update.loss, loss, 2e-5 * loss, "%s on %s: loss of %u rows", s.kind->name,
                    t.form->name, batch.count);
        assert_near(update.weight, weight, 1e-12 * weight, "%s: weight", s.kind->name);
        assert_true(update.loss == leaf[0].loss + (batch.count > SDR_LEAF_ROWS ? leaf[1].loss : 0));
    }
}

/* Of the whole batch at once, of its leaves, and of its rows one by one. */
static void gradient_of_a_batch_is_the_sum_of_its_parts(void **unused)
{
    (void)unused;
    FOR_EVERY_MODEL(s)
    FOR_EVERY_TRIAL(s, t)
    for (int size = 0; size < SIZES; size++) {
        struct sdr_part part[SDR_BLOCKS_MOST];
        struct sdr_view view = view_of(&t);
        struct sdr_batch batch = batch_of(&t, batch_size[size]);
        struct sdr_update update;
        struct dense rows = {exactly(t.layout.count * sizeof(double)),
                             exactly(t.layout.count * sizeof(double))};
        double loss = 0;
        for (uint32_t i = 0; i < batch.count; i++) {
            struct sdr_batch one = batch;
            one.row += i;
            one.count = 1;
            one.of = batch.count;
            assert_int_equal(sdr_leaf_gradient(&t.space, &view, &one, 0, &update), SDR_OK);
            for (int p = 0; p < update.parts; p++)
                reference_add(&t.layout, &update.part[p], &one, t.problem.center, rows.g,
                              rows.size);
            loss += update.loss;
        }
        assert_int_equal(sdr_batch_gradient(&t.space, &view, &batch, 0, NULL, NULL, &update),
                         SDR_OK);
        struct dense leaves = dense_of(&t, &update);
        assert_dense_near(&t, &leaves, &rows, 1e-6, "of leaves and of rows");
        assert_near(update.loss, loss, 2e-5 * loss, "%s: loss of rows", s.kind->name);
        update = (struct sdr_update){.batch = batch, .part = part};
        for (int stage = 0; stage < (s.kind->stages ? s.kind->stages(&t.problem) : 1); stage++)
            assert_int_equal(s.kind->gradient(s.kind, &view, &batch, stage, t.workspace, &update),
                             SDR_OK);
        struct dense whole = dense_of(&t, &update);
        assert_dense_near(&t, &whole, &rows, 1e-6, "of the batch and of rows");
        free_dense(&whole);
        free_dense(&leaves);
        free_dense(&rows);
    }
}

/* Whoever computes which leaves, and however they are grouped: the bits of the sum are one
   worker's. */
static void leaves_of_several_workers_give_the_same_bits(void **unused)
{
    (void)unused;
    FOR_EVERY_MODEL(s)
    FOR_EVERY_TRIAL(s, t)
    {
        struct sdr_view view = view_of(&t);
        struct sdr_batch batch = batch_of(&t, ROWS);
        struct sdr_gradient_space other;
        struct sdr_sum server;
        struct sdr_update update;
        assert_int_equal(sdr_gradient_space_create(&other, s.kind, &t.problem, &t.layout), SDR_OK);
        assert_int_equal(sdr_sum_create(&server, &t.layout), SDR_OK);
        assert_int_equal(sdr_batch_gradient(&t.space, &view, &batch, 0, NULL, NULL, &update),
                         SDR_OK);
        sdr_sum_begin(&server, s.kind->sense);
        for (uint32_t from = 0; from < ROWS; from += SDR_LEAF_ROWS) {
            struct sdr_batch half = batch;
            struct sdr_update part;
            half.row += from;
            half.count = ROWS - from < SDR_LEAF_ROWS ? ROWS - from : SDR_LEAF_ROWS;
            half.of = ROWS;
            assert_int_equal(
                sdr_batch_gradient(&other, &view, &half, from / SDR_LEAF_ROWS, NULL, NULL, &part),
                SDR_OK);
            assert_int_equal(sdr_sum_add(&server, &part, 1), SDR_OK);
        }
        const struct sdr_update *sum = sdr_sum_end(&server, true);
        struct dense one = dense_of(&t, &update), two = dense_of(&t, sum);
        assert_int_equal(update.parts, sum->parts);
        assert_memory_equal(one.g, two.g, t.layout.count * sizeof(double));
        free_dense(&one);
        free_dense(&two);
        sdr_gradient_space_free(&other);
        sdr_sum_free(&server);
    }
}

/* ---- parts ---- */
static void check_part(const struct trial *t, const struct sdr_part *part, uint32_t examples)
{
    const struct sdr_block *block = &t->layout.block[part->block];
    if (block->fixed)
        fail_msg("%s: block %s is fixed, and has a gradient", t->s->kind->name, block->name);
    switch (part->form) {
    case SDR_DENSE:
        assert_int_equal(part->first, 0);
        assert_int_equal(part->count, block->rows * block->cols);
        break;
    case SDR_ROWS:
        for (uint32_t i = 0; i < part->count; i++)
            assert_true(part->index[i] < block->rows);
        break;
    case SDR_FACTORS:
        if (part->right != SDR_STORED)
            assert_int_equal(part->count, examples);
        if (part->right == SDR_EXAMPLES)
            assert_true(block->per_feature && block->rows == FEATURES);
        if (part->right == SDR_ONES)
            assert_int_equal(block->rows, 1);
        for (uint32_t i = 0; i < part->count && part->index; i++)
            assert_true(part->index[i] < block->cols);
        break;
    default: fail_msg("%s: a part of a form that gradients do not have", t->s->kind->name);
    }
}

static void every_block_that_is_not_fixed_has_one_part(void **unused)
{
    (void)unused;
    FOR_EVERY_MODEL(s)
    FOR_EVERY_TRIAL(s, t)
    for (int size = 0; size < SIZES; size++) {
        int parts[SDR_BLOCKS_MOST] = {0};
        struct sdr_view view = view_of(&t);
        struct sdr_batch batch = batch_of(&t, batch_size[size]);
        struct sdr_update update;
        assert_int_equal(sdr_batch_gradient(&t.space, &view, &batch, 0, NULL, NULL, &update),
                         SDR_OK);
        assert_true(update.version == view.version && update.sense == s.kind->sense);
        for (int p = 0; p < update.parts; p++) {
            assert_true(update.part[p].block >= 0 && update.part[p].block < t.layout.blocks);
            check_part(&t, &update.part[p], batch.count);
            parts[update.part[p].block]++;
        }
        for (int b = 0; b < t.layout.blocks; b++)
            assert_int_equal(parts[b], t.layout.block[b].fixed ? 0 : 1);
    }
}

static void parts_of_a_stage_are_final(void **unused)
{
    (void)unused;
    FOR_EVERY_MODEL(s)
    FOR_EVERY_TRIAL(s, t)
    {
        int stages = s.kind->stages ? s.kind->stages(&t.problem) : 1, before = 0;
        struct sdr_part part[SDR_BLOCKS_MOST];
        struct dense after[SDR_BLOCKS_MOST];
        struct sdr_view view = view_of(&t);
        struct sdr_batch batch = batch_of(&t, 40);
        struct sdr_update update = {.batch = batch, .part = part};
        double loss = 0;
        assert_true(stages >= 1 && stages <= SDR_BLOCKS_MOST);
        for (int stage = 0; stage < stages; stage++) {
            assert_int_equal(s.kind->gradient(s.kind, &view, &batch, stage, t.workspace, &update),
                             SDR_OK);
            assert_true(update.parts > before);
            assert_true(stage == 0 || update.loss == loss);
            after[stage] = dense_of(&t, &update);
            before = update.parts;
            loss = update.loss;
        }
        struct dense end = dense_of(&t, &update);
        for (int stage = 0; stage < stages; stage++) {
            for (uint64_t i = 0; i < t.layout.count; i++)
                if (after[stage].size[i] != 0 && after[stage].g[i] != end.g[i])
                    fail_msg("%s: stage %d changed a part of an earlier one", s.kind->name, stage);
            free_dense(&after[stage]);
        }
        free_dense(&end);
    }
}

/* Puts what sdr_part_expand gave for rows first … end − 1 of a block to its place. */
static void place(const struct trial *t, const struct sdr_part *sum, uint32_t first, uint32_t end,
                  double *g)
{
    const struct sdr_block *block = &t->layout.block[sum->block];
    if (sum->form == SDR_DENSE) {
        for (uint64_t i = 0; i < (uint64_t)(end - first) * block->cols; i++)
            g[block->offset + (uint64_t)first * block->cols + i] = sum->value[i];
        return;
    }
    assert_int_equal(sum->form, SDR_ROWS);
    for (uint32_t i = 0; i < sum->count; i++)
        for (uint32_t k = 0; k < block->cols; k++) {
            assert_true(sum->index[i] >= first && sum->index[i] < end);
            g[block->offset + (uint64_t)sum->index[i] * block->cols + k] =
                sum->value[(size_t)i * block->cols + k];
        }
}

static void parts_that_are_expanded_are_the_dense_gradient(void **unused)
{
    (void)unused;
    FOR_EVERY_MODEL(s)
    FOR_EVERY_TRIAL(s, t)
    {
        struct sdr_scratch scratch = {0};
        assert_int_equal(sdr_scratch_create(&scratch, &t.layout), SDR_OK);
        for (int size = 0; size < SIZES; size++)
            for (uint32_t pieces = 1; pieces <= 3; pieces++) {
                struct sdr_expansion to = {.layout = &t.layout,
                                           .kernels = t.problem.kernels,
                                           .center = t.problem.center,
                                           .scratch = &scratch,
                                           .mark = (uint32_t)size * 3 + pieces,
                                           .times = 1};
                struct sdr_view view = view_of(&t);
                struct sdr_batch batch = batch_of(&t, batch_size[size]);
                struct sdr_update update;
                struct dense sum = {exactly(t.layout.count * sizeof(double)),
                                    exactly(t.layout.count * sizeof(double))};
                assert_int_equal(
                    sdr_batch_gradient(&t.space, &view, &batch, 0, NULL, NULL, &update), SDR_OK);
                for (int p = 0; p < update.parts; p++) {
                    const struct sdr_part *part = &update.part[p];
                    uint32_t rows = t.layout.block[part->block].rows;
                    for (uint32_t n = 0; n < pieces; n++) {
                        uint32_t first = rows * n / pieces, end = rows * (n + 1) / pieces;
                        if (first == end)
                            continue;
                        struct sdr_part piece = sdr_part_expand(&to, part, &batch, first, end);
                        assert_int_equal(piece.block, part->block);
                        place(&t, &piece, first, end, sum.g);
                    }
                }
                struct dense exact = dense_of(&t, &update);
                assert_dense_near(&t, &sum, &exact, 5e-6, "expanded");
                free_dense(&sum);
                free_dense(&exact);
            }
        sdr_scratch_free(&scratch);
    }
}

/* ---- statistics ---- */
/* A statistic is a sum over rows, whatever batch they are a part of. */
static void statistics_do_not_depend_on_the_batch(void **unused)
{
    (void)unused;
    FOR_EVERY_MODEL(s)
    {
        if (s.kind->sense != SDR_STATISTIC)
            continue;
        FOR_EVERY_TRIAL(s, t)
        {
            struct sdr_view view = view_of(&t);
            struct sdr_batch batch = batch_of(&t, 40);
            struct sdr_update update;
            assert_int_equal(sdr_leaf_gradient(&t.space, &view, &batch, 0, &update), SDR_OK);
            struct dense whole = dense_of(&t, &update);
            batch.of = 400;
            assert_int_equal(sdr_leaf_gradient(&t.space, &view, &batch, 0, &update), SDR_OK);
            struct dense part = dense_of(&t, &update);
            assert_memory_equal(whole.g, part.g, t.layout.count * sizeof(double));
            free_dense(&whole);
            free_dense(&part);
        }
    }
}

/* Squared distance of a row to a center: origin + sum / count. */
static double distance(const struct trial *t, uint32_t row, uint32_t k)
{
    const struct sdr_block *block = t->layout.block;
    double square = 0, count = t->w[block[1].offset + k];
    for (uint32_t j = 0; j < FEATURES; j++) {
        double center =
            t->w[block[2].offset + j] + t->w[block[0].offset + j * t->s->outputs + k] / count;
        double apart = example_value(&t->rows, row, j, NULL) - center;
        square += apart * apart;
    }
    return square;
}

static void kmeans_adds_rows_to_the_nearest_center(void **unused)
{
    (void)unused;
    FOR_EVERY_MODEL(s)
    {
        if (strcmp(s.kind->name, "kmeans") != 0)
            continue;
        FOR_EVERY_TRIAL(s, t)
        for (int size = 0; size < SIZES; size++) {
            struct sdr_view view = view_of(&t);
            struct sdr_batch batch = batch_of(&t, batch_size[size]);
            struct sdr_update update;
            struct dense exact = {exactly(t.layout.count * sizeof(double)),
                                  exactly(t.layout.count * sizeof(double))};
            double inertia = 0;
            for (uint32_t i = 0; i < batch.count; i++) {
                uint32_t best = 0, row = batch.row[i];
                double weight = t.problem.row_weight ? t.problem.row_weight[row] : 1;
                for (uint32_t k = 1; k < s.outputs; k++)
                    best = distance(&t, row, k) < distance(&t, row, best) ? k : best;
                inertia += weight * distance(&t, row, best);
                exact.g[t.layout.block[1].offset + best] += weight;
                for (uint32_t j = 0; j < FEATURES; j++)
                    exact.g[j * s.outputs + best] +=
                        weight * example_value(&t.rows, row, j, t.problem.center);
            }
            assert_int_equal(sdr_batch_gradient(&t.space, &view, &batch, 0, NULL, NULL, &update),
                             SDR_OK);
            struct dense sums = dense_of(&t, &update);
            assert_dense_near(&t, &sums, &exact, 1e-9, "sums and counts");
            assert_near(update.loss, inertia, 1e-4 * (1 + inertia), "inertia");
            free_dense(&sums);
            free_dense(&exact);
        }
    }
}

/* ---- where to start, and what was trained ---- */
static void the_same_seed_gives_the_same_start(void **unused)
{
    (void)unused;
    FOR_EVERY_MODEL(s)
    FOR_EVERY_TRIAL(s, t)
    {
        struct sdr_batch all = {.rows = &t.rows, .count = ROWS};
        float *start[3];
        for (int i = 0; i < 3; i++) {
            start[i] = exactly(t.layout.count * sizeof(float));
            t.problem.seed = i < 2 ? 11 : 12;
            if (s.kind->start)
                assert_int_equal(s.kind->start(&t.problem, t.layout.block, &all, 2,
                                               sdr_all(&t.layout), start[i]),
                                 SDR_OK);
        }
        assert_memory_equal(start[0], start[1], t.layout.count * sizeof(float));
        for (uint64_t i = 0; i < t.layout.count; i++)
            assert_true(isfinite(start[2][i]));
        for (int i = 0; i < 3; i++)
            free(start[i]);
    }
}

/* Servers in different processes start with their own spans. */
static void a_start_by_spans_is_the_whole_start(void **unused)
{
    enum { SPANS = 3 };
    (void)unused;
    FOR_EVERY_MODEL(s)
    FOR_EVERY_TRIAL(s, t)
    {
        struct sdr_batch all = {.rows = &t.rows, .count = ROWS};
        struct sdr_span span[SPANS];
        float *whole = exactly(t.layout.count * sizeof(float));
        float *pieces = exactly(t.layout.count * sizeof(float));
        if (!s.kind->start) {
            free(whole);
            free(pieces);
            continue;
        }
        sdr_cut_spans(&t.layout, NULL, 1, 0.5, SPANS, span);
        memset(whole, 0, t.layout.count * sizeof(float));
        memset(pieces, 0, t.layout.count * sizeof(float));
        assert_int_equal(
            s.kind->start(&t.problem, t.layout.block, &all, 2, sdr_all(&t.layout), whole), SDR_OK);
        for (int i = 0; i < SPANS; i++) {
            float *own = exactly(t.layout.count * sizeof(float));
            memset(own, 0, t.layout.count * sizeof(float));
            assert_int_equal(s.kind->start(&t.problem, t.layout.block, &all, 2, span[i], own),
                             SDR_OK);
            for (uint64_t at = 0; at < t.layout.count; at++) {
                if (at < span[i].first || at >= span[i].end)
                    assert_true(own[at] == 0);
                pieces[at] += own[at];
            }
            free(own);
        }
        assert_memory_equal(whole, pieces, t.layout.count * sizeof(float));
        free(whole);
        free(pieces);
    }
}

/* Values that servers gather for rows from their spans, as a worker or an evaluation gets them. */
static void pull_subset(struct trial *t, const struct sdr_batch *batch, struct sdr_subset *subset)
{
    enum { SPANS = 3 };
    struct sdr_span span[SPANS];
    struct sdr_marks marks;
    float *packed = exactly(t->layout.count * sizeof *packed);
    assert_int_equal(sdr_marks_create(&marks, FEATURES), SDR_OK);
    sdr_cut_spans(&t->layout, NULL, 1, 0.5, SPANS, span);
    for (int i = 0; i < SPANS; i++) {
        uint64_t count = sdr_move_values(&t->layout, &marks, batch, span[i], t->w, packed,
                                         t->layout.count, SDR_GATHER);
        assert_int_equal(sdr_subset_scatter(subset, &t->layout, span[i], packed, count), count);
    }
    sdr_marks_free(&marks);
    free(packed);
}

static void gradients_and_scores_of_a_subset_are_those_of_its_rows(void **unused)
{
    (void)unused;
    FOR_EVERY_MODEL(s)
    FOR_EVERY_TRIAL(s, t)
    {
        static const uint32_t counts[] = {40, 1, 7, 70, 3};
        struct sdr_subset subset = {0};
        struct sdr_view view = view_of(&t);
        for (size_t c = 0; sdr_subset_suits(s.kind, &t.problem) && c < 5; c++) {
            struct sdr_batch batch = batch_of(&t, counts[c]);
            struct sdr_update update;
            float *score[2];
            double *g[2];
            for (int i = 0; i < 2; i++) {
                g[i] = exactly(t.layout.count * sizeof *g[i]);
                score[i] = exactly((size_t)batch.count * s.outputs * sizeof *score[i]);
                memset(g[i], 0, t.layout.count * sizeof *g[i]);
                struct sdr_batch rows = batch;
                if (i == 1) {
                    assert_int_equal(sdr_subset_make(&subset, &t.problem, &t.layout, &batch),
                                     SDR_OK);
                    pull_subset(&t, &batch, &subset);
                    view = (struct sdr_view){&subset.problem, subset.layout.block, subset.w, 7};
                    rows = subset.batch;
                } else {
                    view = view_of(&t);
                }
                assert_int_equal(s.kind->score(&view, &rows, t.workspace, score[i]), SDR_OK);
                assert_int_equal(sdr_batch_gradient(&t.space, &view, &rows, 0, NULL, NULL, &update),
                                 SDR_OK);
                if (i == 1)
                    assert_int_equal(sdr_subset_translate(&subset, &batch, &update), SDR_OK);
                for (int p = 0; p < update.parts; p++)
                    reference_add(&t.layout, &update.part[p], &update.batch, NULL, g[i], NULL);
            }
            assert_memory_equal(score[0], score[1],
                                (size_t)batch.count * s.outputs * sizeof *score[0]);
            assert_memory_equal(g[0], g[1], t.layout.count * sizeof *g[0]);
            for (int i = 0; i < 2; i++) {
                free(g[i]);
                free(score[i]);
            }
        }
        sdr_subset_free(&subset);
    }
}

static void a_subset_without_memory_fails_and_frees_what_it_has(void **unused)
{
    (void)unused;
    FOR_EVERY_MODEL(s)
    FOR_EVERY_TRIAL(s, t)
    {
        struct sdr_batch batch = batch_of(&t, 20);
        bool failed = sdr_subset_suits(s.kind, &t.problem);
        for (uint64_t nth = 1; failed; nth++) {
            struct sdr_subset subset = {0};
            sdr_fault_arm(SDR_FAULT_ALLOCATE, nth);
            failed = sdr_subset_make(&subset, &t.problem, &t.layout, &batch) != SDR_OK;
            sdr_fault_arm(SDR_FAULT_ALLOCATE, 0);
            if (failed) /* once more, with memory */
                assert_int_equal(sdr_subset_make(&subset, &t.problem, &t.layout, &batch), SDR_OK);
            sdr_subset_free(&subset);
        }
    }
}

static void a_row_that_was_projected_stays_where_it_is(void **unused)
{
    (void)unused;
    FOR_EVERY_MODEL(s)
    for (int tries = 0; tries < 500 && s.kind->project; tries++) {
        float once[OUTPUTS_MOST], twice[OUTPUTS_MOST];
        uint32_t cols = 1 + random_below(OUTPUTS_MOST);
        float size = tries % 2 ? 1 : 30;
        for (uint32_t k = 0; k < cols; k++)
            once[k] = random_float(size);
        s.kind->project(once, cols);
        memcpy(twice, once, sizeof once);
        s.kind->project(twice, cols);
        for (uint32_t k = 0; k < cols; k++)
            assert_near(twice[k], once[k], 1e-6 * size, "%s: column %u", s.kind->name, k);
    }
}

static void a_model_that_was_loaded_gives_the_same_scores(void **unused)
{
    (void)unused;
    FOR_EVERY_MODEL(s)
    for (int f = 1; f < 3; f++) { /* sparse and dense, by the public interface */
        struct sample *sample = make_sample(&s, 0);
        struct sdr_options *options;
        struct sdr_data *data;
        struct sdr_run *run;
        struct sdr_model *trained, *loaded;
        float before[ROWS * OUTPUTS_MOST], after[ROWS * OUTPUTS_MOST];
        if (f == 2 && s.kind->needs & SDR_NEEDS_PAIRS)
            continue;
        assert_int_equal(sdr_options_create(&options), SDR_OK);
        assert_int_equal(sdr_options_set(options, "model", s.spec), SDR_OK);
        assert_int_equal(sdr_options_set(options, "epochs", "2"), SDR_OK);
        assert_int_equal(f == 1 ? sdr_data_csr(sample->start, sample->index32, sample->value, ROWS,
                                               FEATURES, sample->target, sample->weight, &data)
                                : sdr_data_dense(sample->dense, ROWS, FEATURES, FEATURES,
                                                 sample->target, sample->weight, &data),
                         SDR_OK);
        assert_int_equal(sdr_run_create(options, data, NULL, &run), SDR_OK);
        assert_int_equal(sdr_run_train(run), SDR_OK);
        assert_int_equal(sdr_run_model(run, &trained), SDR_OK);
        assert_int_equal(sdr_model_outputs(trained), s.outputs);
        assert_int_equal(sdr_model_save(trained, path_of("model")), SDR_OK);
        assert_int_equal(sdr_model_load(path_of("model"), &loaded), SDR_OK);
        assert_int_equal(sdr_model_predict(trained, data, SDR_PREDICT_SCORE, before), SDR_OK);
        assert_int_equal(sdr_model_predict(loaded, data, SDR_PREDICT_SCORE, after), SDR_OK);
        assert_memory_equal(before, after, ROWS * s.outputs * sizeof(float));
        int differ = 0;
        for (uint32_t i = s.outputs; i < ROWS * s.outputs; i++)
            differ += before[i] != before[i % s.outputs];
        assert_true(differ > 0); /* scores of something that was trained */
        sdr_model_destroy(trained);
        sdr_model_destroy(loaded);
        sdr_run_destroy(run);
        sdr_data_destroy(data);
        sdr_options_destroy(options);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_do_not_depend_on_the_batch),
        cmocka_unit_test(scores_are_the_same_for_sparse_and_dense_rows),
        cmocka_unit_test(linear_scores_are_products),
        cmocka_unit_test(gradient_is_the_derivative_of_the_mean_loss),
        cmocka_unit_test(loss_and_weight_are_the_sums_of_the_rows),
        cmocka_unit_test(gradient_of_a_batch_is_the_sum_of_its_parts),
        cmocka_unit_test(leaves_of_several_workers_give_the_same_bits),
        cmocka_unit_test(every_block_that_is_not_fixed_has_one_part),
        cmocka_unit_test(parts_of_a_stage_are_final),
        cmocka_unit_test(parts_that_are_expanded_are_the_dense_gradient),
        cmocka_unit_test(statistics_do_not_depend_on_the_batch),
        cmocka_unit_test(kmeans_adds_rows_to_the_nearest_center),
        cmocka_unit_test(the_same_seed_gives_the_same_start),
        cmocka_unit_test(a_start_by_spans_is_the_whole_start),
        cmocka_unit_test(gradients_and_scores_of_a_subset_are_those_of_its_rows),
        cmocka_unit_test(a_subset_without_memory_fails_and_frees_what_it_has),
        cmocka_unit_test(a_row_that_was_projected_stays_where_it_is),
        cmocka_unit_test(a_model_that_was_loaded_gives_the_same_scores),
    };
    int failed = make_folder(NULL);
    FOR_EVERY_CPU_LEVEL
    failed += cmocka_run_group_tests(tests, NULL, NULL);
    return failed + remove_folder(NULL);
}
