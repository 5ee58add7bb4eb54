/* A model on rows that are made by what it needs: sparse and dense, weighted or not, with an
   intercept or without. */
#ifndef TESTS_CONFORM_TRIAL_H
#define TESTS_CONFORM_TRIAL_H

#include "conform/reference.h"
#include "conform/subject.h"

#include "kernel/linear.h"
#include "update/gradient.h"

enum { FEATURES = 24, ROWS = 70 };

/* ---- rows ---- */
/* Where derivatives are taken pairs leave the first features alone: those may be terminals, which
   no gradient moves. */
enum { PAIRS_FROM = 8, ITEMS_FROM = 16 };

/* The same numbers dense, and sparse with short and long indices. All are multiples of 1/16. */
struct sample {
    float dense[ROWS * FEATURES], value[ROWS * FEATURES], target[ROWS], weight[ROWS];
    float center[FEATURES];
    uint16_t index16[ROWS * FEATURES];
    uint32_t index32[ROWS * FEATURES], batch[ROWS];
    uint64_t start[ROWS + 1];
    uint8_t side[FEATURES];
};

static inline void make_row(const struct subject *s, uint32_t i, uint32_t pairs_from, float *x)
{
    memset(x, 0, FEATURES * sizeof *x);
    if (s->kind->needs & SDR_NEEDS_PAIRS) {
        x[pairs_from + random_below(ITEMS_FROM - pairs_from)] = 1;
        x[ITEMS_FROM + random_below(FEATURES - ITEMS_FROM)] = 1;
        return;
    }
    for (uint32_t j = 0; j < FEATURES; j++) /* row 0 is full, row 1 empty */
        if (i == 0 || (i > 1 && random_below(3) == 0))
            x[j] = (float)((int)random_below(65) - 32) / 16;
}

static inline struct sample *make_sample(const struct subject *s, uint32_t pairs_from)
{
    static struct sample sample;
    uint64_t at = 0;
    for (uint32_t i = 0; i < ROWS; i++) {
        make_row(s, i, pairs_from, sample.dense + i * FEATURES);
        sample.start[i] = at;
        for (uint32_t j = 0; j < FEATURES; j++)
            if (sample.dense[i * FEATURES + j] != 0) {
                sample.index16[at] = (uint16_t)j;
                sample.index32[at] = j;
                sample.value[at++] = sample.dense[i * FEATURES + j];
            }
        sample.target[i] = random_target(s);
        sample.weight[i] = (float)(1 + random_below(8)) / 4;
        sample.batch[i] = (i * 29 + 2) % ROWS;
    }
    sample.start[ROWS] = at;
    for (uint32_t j = 0; j < FEATURES; j++) {
        sample.center[j] = (float)((int)random_below(33) - 16) / 16;
        sample.side[j] = j >= ITEMS_FROM;
    }
    return &sample;
}

/* ---- a model on these rows ---- */
enum { FORMS = 4 };
static const struct form {
    const char *name;
    int bits; /* of an index; 0: dense */
    bool centered;
} form_of[FORMS] = {{"sparse rows, 16 bits", 16, false},
                    {"sparse rows, 32 bits", 32, false},
                    {"dense rows", 0, false},
                    {"dense rows, centered", 0, true}};

struct trial {
    const struct subject *s;
    const struct form *form;
    struct sample *sample;
    struct sdr_rows rows;
    struct sdr_problem problem;
    struct sdr_layout layout;
    struct sdr_gradient_space space;
    float *w;        /* owned */
    void *workspace; /* owned: for ROWS rows */
};

static inline struct sdr_view view_of(const struct trial *t)
{
    return (struct sdr_view){&t->problem, t->layout.block, t->w, 7};
}

static inline struct sdr_batch batch_of(const struct trial *t, uint32_t count)
{
    return (struct sdr_batch){.rows = &t->rows, .row = t->sample->batch, .count = count};
}

/* Values that the model starts from, moved away from where many are equal; statistics, which mean
   something, get those of a few rows more instead. */
static inline void choose_point(struct trial *t)
{
    const struct sdr_model_kind *kind = t->s->kind;
    struct sdr_batch all = {.rows = &t->rows, .count = ROWS};
    memset(t->w, 0, t->layout.count * sizeof *t->w);
    if (kind->start)
        assert_int_equal(
            kind->start(&t->problem, t->layout.block, &all, 1, sdr_all(&t->layout), t->w), SDR_OK);
    if (kind->sense == SDR_GRADIENT) {
        for (uint64_t i = 0; i < t->layout.count; i++) /* multiples of 2⁻¹² */
            t->w[i] = rintf(t->w[i] * 4096) / 4096 + (float)((int)random_below(4097) - 2048) / 4096;
        return;
    }
    struct sdr_view view = view_of(t);
    struct sdr_batch batch = batch_of(t, 40);
    struct sdr_update update;
    double *g = exactly(t->layout.count * sizeof *g);
    assert_int_equal(sdr_leaf_gradient(&t->space, &view, &batch, 0, &update), SDR_OK);
    for (int p = 0; p < update.parts; p++)
        reference_add(&t->layout, &update.part[p], &batch, t->problem.center, g, NULL);
    for (uint64_t i = 0; i < t->layout.count; i++)
        t->w[i] += (float)g[i];
    free(g);
}

/* False: the model does not take such rows. */
static inline bool open_trial(struct trial *t, const struct subject *s, const struct form *form,
                              bool weighted, bool intercept)
{
    struct sdr_block block[SDR_BLOCKS_MOST];
    struct sample *sample = make_sample(s, PAIRS_FROM);
    bool pairs = s->kind->needs & SDR_NEEDS_PAIRS;
    *t = (struct trial){.s = s, .form = form, .sample = sample};
    t->rows = (struct sdr_rows){.count = ROWS, .features = FEATURES};
    if (form->bits) {
        t->rows.start = sample->start;
        t->rows.value = sample->value;
        t->rows.index16 = form->bits == 16 ? sample->index16 : NULL;
        t->rows.index32 = form->bits == 32 ? sample->index32 : NULL;
    } else {
        t->rows.dense = sample->dense;
        t->rows.stride = FEATURES;
    }
    t->problem = (struct sdr_problem){.rows = &t->rows,
                                      .target = sample->target,
                                      .row_weight = weighted ? sample->weight : NULL,
                                      .center = form->centered ? sample->center : NULL,
                                      .side = pairs ? sample->side : NULL,
                                      .features = FEATURES,
                                      .outputs = s->outputs,
                                      .classes = s->kind->truth == SDR_BINARY    ? 2
                                                 : s->kind->truth == SDR_CLASSES ? s->outputs
                                                                                 : 0,
                                      .image = {4, 6, 0},
                                      .seed = 5,
                                      .intercept = intercept,
                                      .model_options = s->options,
                                      .kernels = sdr_linear_kernels(sdr_cpu_level())};
    if (s->kind->check && s->kind->check(&t->problem, "rows") != SDR_OK) {
        if (form->bits) /* sparse rows are made by what it needs */
            fail_msg("%s: %s", s->kind->name, sdr_error());
        return false;
    }
    sdr_layout_make(&t->layout, block, s->kind->shape(&t->problem, block));
    t->w = exactly(t->layout.count * sizeof *t->w);
    t->workspace = exactly(s->kind->workspace(&t->problem, ROWS));
    assert_int_equal(sdr_gradient_space_create(&t->space, s->kind, &t->problem, &t->layout),
                     SDR_OK);
    choose_point(t);
    return true;
}

static inline void close_trial(struct trial *t)
{
    sdr_gradient_space_free(&t->space);
    free(t->w);
    free(t->workspace);
    t->s = NULL;
}

/* All rows that the model takes, weighted or not, with an intercept or without. */
#define FOR_EVERY_TRIAL(s, t)                                                                      \
    for (int v_ = 0; v_ < FORMS * 4; v_++)                                                         \
        for (struct trial t,                                                                       \
             *on_ = open_trial(&t, &s, &form_of[v_ / 4], v_ & 1, v_ & 2) ? &t : NULL;              \
             on_ && t.s; close_trial(&t))

/* The gradient of a batch, multiplied out in double, and the sizes of what was added up; both owned
   by the caller. */
struct dense {
    double *g, *size;
};

static inline struct dense dense_of(const struct trial *t, const struct sdr_update *update)
{
    struct dense d = {exactly(t->layout.count * sizeof(double)),
                      exactly(t->layout.count * sizeof(double))};
    for (int p = 0; p < update->parts; p++)
        reference_add(&t->layout, &update->part[p], &update->batch, t->problem.center, d.g, d.size);
    return d;
}

static inline void free_dense(struct dense *d)
{
    free(d->g);
    free(d->size);
}

static inline void assert_dense_near(const struct trial *t, const struct dense *a,
                                     const struct dense *b, double share, const char *what)
{
    for (uint64_t i = 0; i < t->layout.count; i++)
        assert_near(a->g[i], b->g[i], share * (a->size[i] + b->size[i]), "%s on %s: value %llu, %s",
                    t->s->kind->name, t->form->name, (unsigned long long)i, what);
}

#endif
