/* The contract of walks: for every optimizer, on every CPU level, a walk over rows gives the bits
   that settling, gradient and step give for one row after the other, and on every level the
   same. */
#include "conform/numbers.h"

#include "base/cpu.h"
#include "base/memory.h"
#include "kernel/linear.h"
#include "model/linear.h"
#include "run/registry.h"
#include "run/settings.h"
#include "update/parameters.h"

#include <stdlib.h>

enum { ROWS = 60, FEATURES = 8000, LONGEST = 4997, DENSE = 37 };

extern const struct sdr_model_kind sdr_model_kind_logistic;

/* One data set in the three forms rows come in. */
struct example {
    uint64_t start[ROWS + 1];
    uint16_t *index16;
    uint32_t *index32;
    float *value, *dense, target[ROWS], weight[ROWS], scale[FEATURES], center[FEATURES];
    uint32_t order[ROWS];
    double rate[ROWS];
};

static void make_example(struct example *e)
{
    uint64_t room = ROWS * 64 + LONGEST, used = 0;
    e->index16 = malloc(room * sizeof *e->index16);
    e->index32 = malloc(room * sizeof *e->index32);
    e->value = malloc(room * sizeof *e->value);
    e->dense = malloc(sizeof(float) * ROWS * DENSE);
    assert_true(e->index16 && e->index32 && e->value && e->dense);
    for (uint32_t r = 0; r < ROWS; r++) {
        /* Every length from none on, and one row too long for its weights to be kept. */
        uint32_t n = r == 50 ? LONGEST : r, at = 0;
        e->start[r] = used;
        for (uint32_t i = 0; i < n; i++, used++) {
            e->index32[used] = at;
            e->index16[used] = (uint16_t)at;
            e->value[used] = random_float(1);
            at += 1 + (r == 50 ? 0 : random_below(3));
        }
        e->target[r] = random_below(2) ? 1 : -1;
        e->weight[r] = 0.5f + fabsf(random_float(1));
        e->order[r] = (r * 37 + 11) % ROWS;
        e->rate[r] = 0.3 / (1 + 0.1 * r);
    }
    e->start[ROWS] = used;
    for (int i = 0; i < ROWS * DENSE; i++)
        e->dense[i] = random_float(1);
    for (int j = 0; j < FEATURES; j++) {
        e->scale[j] = 0.5f + fabsf(random_float(1));
        e->center[j] = random_float(0.5f);
    }
}

static void free_example(struct example *e)
{
    free(e->index16);
    free(e->index32);
    free(e->value);
    free(e->dense);
}

struct variant {
    int form; /* 16 or 32 bits of index, 0: dense */
    bool scaled, weighted, intercept, penalty;
};

struct result {
    float value[FEATURES + 32];
    double loss_sum, weight_sum, penalty_due;
    uint64_t version;
};

/* Goes over the rows in two stretches, on arrays, on cells of all features or of those that occur,
   or by single steps. */
enum way { STEPS, WALK, CELLS, NUMBERED };
static void go(const struct example *e, const struct variant *v, enum sdr_cpu level,
               const char *name, enum way way, struct result *result)
{
    const struct sdr_plugin *plugin;
    const struct sdr_model_kind *kind = &sdr_model_kind_logistic;
    void *options;
    struct sdr_parameters p;
    struct sdr_block block[2];
    struct sdr_layout layout;
    struct sdr_part part[2];
    struct sdr_rows rows = {.count = ROWS, .features = v->form ? FEATURES : DENSE};
    if (v->form) {
        rows.start = e->start;
        rows.value = e->value;
        rows.index16 = v->form == 16 ? e->index16 : NULL;
        rows.index32 = v->form == 32 ? e->index32 : NULL;
    } else {
        rows.dense = e->dense;
        rows.stride = DENSE;
    }
    assert_int_equal(
        sdr_plugin_choose("optimizer", sdr_optimizer_table[level], name, &plugin, &options),
        SDR_OK);
    const struct sdr_optimizer *o = (const struct sdr_optimizer *)plugin;
    struct sdr_problem problem = {.rows = &rows,
                                  .target = e->target,
                                  .row_weight = v->weighted ? e->weight : NULL,
                                  .center = v->form ? NULL : e->center,
                                  .features = rows.features,
                                  .outputs = 1,
                                  .classes = 2,
                                  .intercept = v->intercept,
                                  .kernels = sdr_linear_kernels(level)};
    struct sdr_penalty penalty = {.l1 = v->penalty ? 1e-3 : 0,
                                  .l2 = v->penalty ? 2e-3 : 0,
                                  .standardize = v->scaled && o->own_penalty};
    if (o->decay)
        penalty.l1 = 0;
    struct sdr_step_rule rule = {.optimizer = o,
                                 .optimizer_options = options,
                                 .penalty = penalty,
                                 .scale = v->scaled ? e->scale : NULL,
                                 .center = problem.center,
                                 .kernels = problem.kernels};
    sdr_layout_make(&layout, block, kind->shape(&problem, block));
    assert_int_equal(sdr_parameters_create(&p, &layout, &rule, false, false), SDR_OK);
    /* features that do not occur pay penalties, too */
    for (uint32_t j = 0; j < rows.features; j++) {
        p.value[j] = 0.1f * e->center[j];
        for (int i = 0; i < o->slots; i++)
            p.slot[i][j] = 0.1f * e->scale[j];
    }
    bool walks = way != STEPS;
    struct sdr_numbering numbering = {0};
    if (way == NUMBERED) {
        assert_int_equal(sdr_numbering_create(&numbering, &rows, NULL, ROWS, 1000, FEATURES, 1),
                         SDR_OK);
        assert_non_null(numbering.index);
    }
    if (way == CELLS || way == NUMBERED)
        assert_int_equal(sdr_cells_allocate(&p, way == NUMBERED ? &numbering : NULL), SDR_OK);
    *result = (struct result){0};
    for (uint32_t at = 0, count; at < ROWS; at += count) {
        count = !walks ? 1 : at == 0 ? 23 : ROWS - at;
        if (walks) {
            struct sdr_fused_steps walk = {.problem = &problem,
                                           .kind = kind,
                                           .row = e->order + at,
                                           .ahead = at ? e->order : NULL,
                                           .rate = e->rate + at,
                                           .count = count,
                                           .loss_sum = result->loss_sum,
                                           .weight_sum = result->weight_sum};
            sdr_parameters_fused_steps(&p, &walk);
            result->loss_sum = walk.loss_sum;
            result->weight_sum = walk.weight_sum;
            continue;
        }
        struct sdr_batch batch = {.rows = &rows, .row = e->order + at, .count = 1};
        struct sdr_view view = {&problem, layout.block, p.value, p.version};
        struct sdr_update update = {.batch = batch, .part = part};
        float scratch[1];
        assert_true(kind->workspace(&problem, 1) <= sizeof scratch);
        sdr_parameters_catch_up(&p, &batch, sdr_all(&layout));
        assert_int_equal(kind->gradient(kind, &view, &batch, 0, scratch, &update), SDR_OK);
        sdr_parameters_apply(&p, &update, e->rate[at]);
        result->loss_sum += update.loss;
        result->weight_sum += update.weight;
    }
    result->version = p.version;
    result->penalty_due = p.penalty_due;
    memcpy(result->value, sdr_parameters_weights(&p), layout.count * sizeof(float));
    sdr_parameters_destroy(&p);
    sdr_numbering_destroy(&numbering);
    sdr_release(options);
}

static void a_walk_is_one_step_after_the_other(void **unused)
{
    static struct example e;
    static struct result steps, walk;
    (void)unused;
    make_example(&e);
    for (const struct sdr_optimizer *const *o = sdr_optimizer_table[0]; *o; o++)
        for (int bits = 0; bits < 48; bits++) {
            static const int form[3] = {0, 16, 32};
            struct variant v = {form[bits / 16], bits & 1, bits & 2, bits & 4, bits & 8};
            go(&e, &v, SDR_CPU_PORTABLE, (*o)->name, STEPS, &steps);
            assert_int_equal(steps.version, ROWS);
            for (enum sdr_cpu level = 0; level <= sdr_cpu_best(); level++) {
                for (enum way way = WALK; way <= (v.form == 32 ? NUMBERED
                                                  : v.form     ? CELLS
                                                               : WALK);
                     way++) {
                    go(&e, &v, level, (*o)->name, way, &walk);
                    if (memcmp(&steps, &walk, sizeof steps) != 0)
                        fail_msg(
                            "%s on %s, %d bits of index%s%s%s%s%s: a walk differs from its steps",
                            (*o)->name, sdr_cpu_name(level), v.form,
                            way == CELLS      ? ", cells"
                            : way == NUMBERED ? ", cells of features that occur"
                                              : "",
                            v.scaled ? ", scaled" : "", v.weighted ? ", weighted" : "",
                            v.intercept ? ", intercept" : "", v.penalty ? ", penalty" : "");
                }
            }
        }
    free_example(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_walk_is_one_step_after_the_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
