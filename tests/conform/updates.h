/* Updates for tests: a layout of several blocks, rows of every kind, parts of every form. */
#ifndef TESTS_CONFORM_UPDATES_H
#define TESTS_CONFORM_UPDATES_H

#include "conform/reference.h"

#include "kernel/linear.h"

enum { FEATURES = 29, ROWS = 40, BLOCKS = 5 };

/* Rows as they come, always the same numbers. */
enum { ROW_KINDS = 4, CENTERED = 3 };
static const char *const row_name[ROW_KINDS] = {"sparse rows, 16 bits", "sparse rows, 32 bits",
                                                "dense rows", "dense rows, centered"};

struct world {
    struct sdr_layout layout;
    struct sdr_rows rows[ROW_KINDS];
    float *dense, *value, *center; /* owned */
    uint64_t *start;               /* owned */
    uint16_t *index16;             /* owned */
    uint32_t *index32, *order;     /* owned */
};

static inline const struct sdr_linear_kernels *kernels(void)
{
    return sdr_linear_kernels(sdr_cpu_level());
}

static inline void make_world(struct world *world)
{
    static const struct sdr_block block[BLOCKS] = {
        {.name = "weight", .rows = FEATURES, .cols = 3, .per_feature = true},
        {.name = "intercept", .rows = 1, .cols = 3},
        {.name = "one", .rows = FEATURES, .cols = 1, .per_feature = true},
        {.name = "hidden", .rows = 7, .cols = 5},
        {.name = "wide", .rows = 4, .cols = 19}};
    uint64_t used = 0;
    *world = (struct world){.dense = exactly(ROWS * FEATURES * sizeof(float)),
                            .value = exactly(ROWS * FEATURES * sizeof(float)),
                            .center = exactly(FEATURES * sizeof(float)),
                            .start = exactly((ROWS + 1) * sizeof(uint64_t)),
                            .index16 = exactly(ROWS * FEATURES * sizeof(uint16_t)),
                            .index32 = exactly(ROWS * FEATURES * sizeof(uint32_t)),
                            .order = exactly(ROWS * sizeof(uint32_t))};
    sdr_layout_make(&world->layout, block, BLOCKS);
    for (uint32_t i = 0; i < ROWS; i++) {
        world->start[i] = used;
        world->order[i] = (i * 7 + 3) % ROWS;
        for (uint32_t j = 0; j < FEATURES; j++) {
            if (i == 0 || random_below(4)) /* row 0 is empty */
                continue;
            float x = random_float(2);
            world->dense[i * FEATURES + j] = x;
            world->index16[used] = (uint16_t)j;
            world->index32[used] = j;
            world->value[used++] = x;
        }
    }
    world->start[ROWS] = used;
    for (uint32_t j = 0; j < FEATURES; j++)
        world->center[j] = random_float(1);
    for (int kind = 0; kind < ROW_KINDS; kind++) {
        struct sdr_rows *rows = &world->rows[kind];
        *rows = (struct sdr_rows){.count = ROWS, .features = FEATURES};
        if (kind < 2) {
            rows->start = world->start;
            rows->value = world->value;
            rows->index16 = kind == 0 ? world->index16 : NULL;
            rows->index32 = kind == 1 ? world->index32 : NULL;
        } else {
            rows->dense = world->dense;
            rows->stride = FEATURES;
        }
    }
}

static inline void free_world(struct world *world)
{
    free(world->dense);
    free(world->value);
    free(world->center);
    free(world->start);
    free(world->index16);
    free(world->index32);
    free(world->order);
}

static inline struct sdr_batch batch_on(const struct world *world, int kind, uint32_t count)
{
    return (struct sdr_batch){.rows = &world->rows[kind],
                              .row = world->order + random_below(ROWS - count + 1),
                              .count = count};
}

/* ---- parts ---- */
enum {
    FORM_DENSE,
    FORM_ROWS,
    FORM_ROWS_DISTINCT,
    FORM_EXAMPLES,
    FORM_EXAMPLES_ONE, /* a block of one column */
    FORM_EXAMPLES_HOT, /* an example to one column each */
    FORM_STORED,
    FORM_ONES,
    FORM_ONES_HOT,
    FORMS
};
static const char *const form_name[FORMS] = {"dense",
                                             "rows",
                                             "distinct rows",
                                             "factors",
                                             "factors of one column",
                                             "factors, one column each",
                                             "stored",
                                             "sums",
                                             "sums, one column each"};
static const int form_block[FORMS] = {4, 0, 0, 0, 2, 0, 3, 1, 1};

/* One part, with arrays of exactly its size. */
struct given {
    struct sdr_part part;
    struct sdr_batch batch;
    const float *center; /* borrowed */
    float *value, *v;    /* owned */
    uint32_t *index;     /* owned */
};

/* A part of a block with `count` examples or rows. */
static inline void make_given_on(const struct world *world, int number, int form, int rows,
                                 uint32_t count, struct given *g)
{
    const struct sdr_block *block = &world->layout.block[number];
    bool hot = form == FORM_EXAMPLES_HOT || form == FORM_ONES_HOT;
    bool listed = form == FORM_ROWS || form == FORM_ROWS_DISTINCT;
    if (form == FORM_ROWS_DISTINCT && count > block->rows)
        count = block->rows;
    if (form == FORM_DENSE)
        count = block->rows * block->cols;
    *g = (struct given){.part = {.block = number,
                                 .form = form == FORM_DENSE ? SDR_DENSE
                                         : listed           ? SDR_ROWS
                                                            : SDR_FACTORS,
                                 .right = form == FORM_STORED ? SDR_STORED
                                          : form == FORM_ONES || form == FORM_ONES_HOT
                                              ? SDR_ONES
                                              : SDR_EXAMPLES,
                                 .distinct = form == FORM_ROWS_DISTINCT,
                                 .count = count},
                        .batch = batch_on(world, rows, form == FORM_DENSE ? 1 : count),
                        .center = rows == CENTERED ? world->center : NULL};
    uint64_t floats = (uint64_t)count * (hot || form == FORM_DENSE ? 1 : block->cols);
    uint32_t columns = listed ? block->rows : block->cols;
    g->part.value = g->value = exactly(floats * sizeof(float));
    for (uint64_t i = 0; i < floats; i++)
        g->value[i] = random_float(1);
    if (hot || listed) {
        g->part.index = g->index = exactly(count * sizeof(uint32_t));
        for (uint32_t i = 0; i < count; i++)
            g->index[i] =
                form == FORM_ROWS_DISTINCT ? (i * 5 + 2) % columns : random_below(columns);
    }
    if (form == FORM_STORED) {
        g->part.v = g->v = exactly((size_t)count * block->rows * sizeof(float));
        for (uint64_t i = 0; i < (uint64_t)count * block->rows; i++)
            g->v[i] = random_float(1);
    }
}

static inline void make_given(const struct world *world, int form, int rows, uint32_t count,
                              struct given *g)
{
    make_given_on(world, form_block[form], form, rows, count, g);
}

static inline void free_given(struct given *g)
{
    free(g->value);
    free(g->index);
    free(g->v);
}

#endif
