/* Parameters: see parameters.h. */
#include "update/parameters.h"
#include "base/affinity.h"
#include "base/memory.h"
#include "kernel/exchange.h"

#include <math.h>
#include <string.h>

enum { BLOCK_ALIGN = SDR_ALIGN / sizeof(float) };

/* A block as a step sees it; blocks that belong to no feature have neither scale nor penalty. */
static struct sdr_target make_target(struct sdr_parameters *p, const struct sdr_block *block)
{
    struct sdr_target t = {.value = p->value + block->offset, .constant = p->constant};
    for (int s = 0; s < p->optimizer->slots; s++)
        t.slot[s] = p->slot[s] + block->offset;
    if (block->per_feature) {
        t.scale = p->scale;
        t.center = p->center;
        t.penalty_paid = p->penalty_paid ? p->penalty_paid + block->offset : NULL;
        t.l1 = (float)p->penalty.l1;
        t.l2 = (float)p->penalty.l2;
        t.group = (float)p->penalty.group;
        t.standardize = p->penalty.standardize;
        t.plain_decay = p->penalty.standardize || p->optimizer->decay;
    }
    return t;
}

static enum sdr_status allocate_state(struct sdr_parameters *p)
{
    SDR_TRY(sdr_allocate(&p->value, p->count, sizeof(float), "the model"));
    for (int s = 0; s < p->optimizer->slots; s++)
        SDR_TRY(sdr_allocate(&p->slot[s], p->count, sizeof(float), "the optimizer's state"));
    const struct sdr_penalty *penalty = &p->penalty;
    if (penalty->l1 > 0 || penalty->l2 > 0 || penalty->group > 0)
        SDR_TRY(sdr_allocate(&p->penalty_paid, p->count, sizeof(float), "the penalties"));
    return SDR_OK;
}

static enum sdr_status allocate_scratch(struct sdr_parameters *p)
{
    const char *what = "the gradient of a batch";
    SDR_TRY(sdr_allocate(&p->gradient, p->count, sizeof(float), what));
    SDR_TRY(sdr_allocate(&p->touched, p->block[0].rows, sizeof(uint32_t), what));
    if (p->block[0].cols == 1)
        SDR_TRY(sdr_allocate(&p->sums, p->block[0].rows, sizeof(float), what));
    SDR_TRY(sdr_allocate(&p->place, p->block[0].rows, sizeof(uint32_t), what));
    return sdr_allocate(&p->mark, p->block[0].rows, sizeof(uint32_t), what);
}

enum sdr_status sdr_parameters_create(struct sdr_parameters *p, const struct sdr_block *block,
                                      int blocks, const struct sdr_optimizer *optimizer,
                                      const void *optimizer_options,
                                      const struct sdr_penalty *penalty, const float *scale,
                                      const float *center, const struct sdr_linear_kernels *kernels,
                                      bool batches, bool average)
{
    *p = (struct sdr_parameters){.blocks = blocks,
                                 .optimizer = optimizer,
                                 .optimizer_options = optimizer_options,
                                 .penalty = *penalty,
                                 .scale = scale,
                                 .center = center,
                                 .kernels = kernels};
    memcpy(p->block, block, (size_t)blocks * sizeof *block);
    for (int b = 0; b < blocks; b++) {
        uint64_t size = (uint64_t)block[b].rows * block[b].cols;
        p->block[b].offset = p->count;
        p->count += (size + BLOCK_ALIGN - 1) / BLOCK_ALIGN * BLOCK_ALIGN;
    }
    SDR_TRY(allocate_state(p));
    SDR_TRY(sdr_allocate(&p->published, p->count, sizeof(float), "the model"));
    if (average)
        SDR_TRY(sdr_allocate(&p->sum, p->count, sizeof(double), "the averaged model"));
    if (batches)
        SDR_TRY(allocate_scratch(p));
    for (int b = 0; b < blocks; b++)
        p->target[b] = make_target(p, &p->block[b]);
    return SDR_OK;
}

/* Values, then state: the arrays that workers exchange. */
static float *array_of(const struct sdr_parameters *p, int i)
{
    return i == 0 ? p->value : p->slot[i - 1];
}

enum sdr_status sdr_parameters_replicate(struct sdr_parameters *p, const struct sdr_parameters *of,
                                         bool copy, bool base)
{
    *p = *of;
    p->borrowed = !copy;
    p->sum = NULL;
    p->published = p->gradient = NULL;
    p->touched = p->place = p->mark = NULL;
    p->sums = NULL;
    if (copy) {
        p->value = p->slot[0] = p->slot[1] = p->penalty_paid = NULL;
        SDR_TRY(allocate_state(p));
        for (int i = 0; i <= p->optimizer->slots; i++)
            memcpy(array_of(p, i), array_of(of, i), p->count * sizeof(float));
        for (int i = 0; i <= p->optimizer->slots && base; i++)
            SDR_TRY(sdr_allocate(&p->base[i], p->count, sizeof(float), "a worker's copy"));
    }
    if (of->gradient)
        SDR_TRY(allocate_scratch(p));
    for (int b = 0; b < p->blocks; b++)
        p->target[b] = make_target(p, &p->block[b]);
    return SDR_OK;
}

void sdr_parameters_follow(struct sdr_parameters *p, const struct sdr_parameters *of)
{
    p->version = of->version;
    p->penalty_due = of->penalty_due;
    p->rate = of->rate;
    p->begun = of->begun;
    memcpy(p->constant, of->constant, sizeof p->constant);
}

void sdr_parameters_lend(struct sdr_parameters *p, float *const slot[2])
{
    for (int s = 0; s < p->optimizer->slots; s++)
        p->slot[s] = slot[s];
    for (int b = 0; b < p->blocks; b++)
        p->target[b] = make_target(p, &p->block[b]);
}

enum sdr_status sdr_parameters_stepper(struct sdr_parameters *p, const struct sdr_parameters *of,
                                       float *value)
{
    SDR_TRY(sdr_parameters_replicate(p, of, false, false));
    p->value = value;
    p->penalty_paid = NULL;
    if (!p->optimizer->decay) /* whose steps allow for the decay that servers charge */
        p->penalty = (struct sdr_penalty){0};
    p->version = 0; /* counts its own steps, whosever state it has: features are marked by it */
    return SDR_OK;
}

void sdr_parameters_destroy(struct sdr_parameters *p)
{
    if (!p->borrowed) {
        sdr_release(p->value);
        sdr_release(p->slot[0]);
        sdr_release(p->slot[1]);
        sdr_release(p->penalty_paid);
    }
    for (int i = 0; i < 3; i++)
        sdr_release(p->base[i]);
    sdr_release(p->published);
    sdr_release(p->sum);
    sdr_release(p->gradient);
    sdr_release(p->touched);
    sdr_release(p->sums);
    sdr_release(p->place);
    sdr_release(p->mark);
    *p = (struct sdr_parameters){0};
}

/* The entries of a row within a range of features: they are sorted. */
static struct sdr_sparse_row row_within(const struct sdr_rows *rows, uint32_t row, uint32_t first,
                                        uint32_t end)
{
    struct sdr_sparse_row r = sdr_sparse_row(rows, row);
    uint32_t bound[2] = {first, end}, place[2];
    if (first == 0 && end == rows->features)
        return r;
    for (int i = 0; i < 2; i++) {
        uint32_t low = 0, high = r.n;
        while (low < high) {
            uint32_t middle = (low + high) / 2;
            if (sdr_row_index(&r, middle) < bound[i])
                low = middle + 1;
            else
                high = middle;
        }
        place[i] = low;
    }
    return (struct sdr_sparse_row){r.index16 ? r.index16 + place[0] : NULL,
                                   r.index32 ? r.index32 + place[0] : NULL, r.x + place[0],
                                   place[1] - place[0]};
}

/* A target whose arrays begin at a feature. */
static struct sdr_target shifted(struct sdr_target t, uint32_t first, uint32_t outputs)
{
    size_t at = (size_t)first * outputs;
    t.value += at;
    for (int s = 0; s < 2; s++)
        t.slot[s] = t.slot[s] ? t.slot[s] + at : NULL;
    t.penalty_paid = t.penalty_paid ? t.penalty_paid + at : NULL;
    t.scale = t.scale ? t.scale + first : NULL;
    t.center = t.center ? t.center + first : NULL;
    return t;
}

void sdr_parameters_catch_up_range(struct sdr_parameters *p, const struct sdr_batch *batch,
                                   uint32_t first, uint32_t end)
{
    if (!p->penalty_paid || p->penalty_due == 0) /* nothing is due */
        return;
    struct sdr_target t = p->target[0];
    const struct sdr_rows *rows = batch->rows;
    uint32_t outputs = p->block[0].cols;
    t.penalty_due = (float)p->penalty_due;
    if (rows->dense) {
        t = shifted(t, first, outputs);
        p->optimizer->catch_up(&t, end - first, outputs);
        return;
    }
    for (uint32_t i = 0; i < batch->count; i++) {
        struct sdr_sparse_row r = row_within(rows, batch->row[i], first, end);
        if (r.index16)
            p->optimizer->catch_up16(&t, r.index16, r.n, outputs);
        else
            p->optimizer->catch_up32(&t, r.index32, r.n, outputs);
    }
}

void sdr_parameters_catch_up(struct sdr_parameters *p, const struct sdr_batch *batch)
{
    sdr_parameters_catch_up_range(p, batch, 0, p->block[0].rows);
}

void sdr_parameters_copy_touched(const struct sdr_parameters *p, const struct sdr_batch *batch,
                                 float *to)
{
    size_t outputs = p->block[0].cols;
    if (batch->rows->dense || p->whole) {
        memcpy(to, p->value, p->count * sizeof *to);
        return;
    }
    for (uint32_t i = 0; i < batch->count; i++) {
        struct sdr_sparse_row r = sdr_sparse_row(batch->rows, batch->row[i]);
        for (uint32_t n = 0; n < r.n; n++) {
            size_t at = sdr_row_index(&r, n) * outputs;
            memcpy(to + at, p->value + at, outputs * sizeof *to);
        }
    }
    for (int b = 1; b < p->blocks; b++)
        memcpy(to + p->block[b].offset, p->value + p->block[b].offset,
               (size_t)p->block[b].rows * p->block[b].cols * sizeof *to);
}

void sdr_parameters_catch_up_span(struct sdr_parameters *p, uint32_t first, uint32_t end)
{
    if (!p->penalty_paid || p->penalty_due == 0 || first == end)
        return;
    struct sdr_target t = shifted(p->target[0], first, p->block[0].cols);
    t.penalty_due = (float)p->penalty_due;
    p->optimizer->catch_up(&t, end - first, p->block[0].cols);
}

void sdr_parameters_catch_up_all(struct sdr_parameters *p)
{
    if (!p->penalty_paid || p->penalty_due == 0)
        return;
    p->target[0].penalty_due = (float)p->penalty_due;
    p->target[0].pay_fully = true;
    p->optimizer->catch_up(&p->target[0], p->block[0].rows, p->block[0].cols);
    p->target[0].pay_fully = false;
    /* Starting over keeps the float sums exact: the charge stays small against its steps. */
    memset(p->penalty_paid, 0, p->count * sizeof *p->penalty_paid);
    p->penalty_due = 0;
}

static void step_row(struct sdr_parameters *p, const struct sdr_target *t,
                     const struct sdr_rows *rows, uint32_t row, const float *u)
{
    const struct sdr_optimizer *o = p->optimizer;
    uint32_t outputs = p->block[0].cols;
    if (rows->dense) {
        const float *x = sdr_dense_row(rows, row);
        if (outputs == 1)
            o->dense(t, x, rows->features, u[0]);
        else
            o->matrix(t, x, rows->features, u, outputs);
        return;
    }
    struct sdr_sparse_row r = sdr_sparse_row(rows, row);
    if (outputs == 1 && r.index16)
        o->sparse16(t, r.index16, r.x, r.n, u[0]);
    else if (outputs == 1)
        o->sparse32(t, r.index32, r.x, r.n, u[0]);
    else if (r.index16)
        o->matrix16(t, r.index16, r.x, r.n, u, outputs);
    else
        o->matrix32(t, r.index32, r.x, r.n, u, outputs);
}

static void project_row(struct sdr_parameters *p, uint32_t j)
{
    if (p->project)
        p->project(p->target[0].value + (size_t)j * p->block[0].cols, p->block[0].cols);
}

/* One example with a gradient row for each of its entries. */
static void step_entries(struct sdr_parameters *p, const struct sdr_update *update)
{
    static const float one = 1;
    struct sdr_sparse_row r = sdr_sparse_row(update->examples.rows, update->examples.row[0]);
    for (uint32_t n = 0; n < r.n; n++) {
        uint32_t j = sdr_row_index(&r, n);
        p->optimizer->matrix32(&p->target[0], &j, &one, 1,
                               update->u + 1 + (size_t)n * update->outputs, update->outputs);
        project_row(p, j);
    }
}

/* What marks the features that this update has met: never 0, and new for every update. */
static uint32_t mark_of(const struct sdr_parameters *p)
{
    return (uint32_t)(p->version % UINT32_MAX) + 1;
}

/* Shuffled rows lie anywhere: they are fetched a few ahead. */
enum { AHEAD = 6 };
static inline __attribute__((always_inline)) void fetch_entries(const struct sdr_batch *batch,
                                                                uint32_t i)
{
    if (i >= batch->count)
        return;
    struct sdr_sparse_row r = sdr_sparse_row(batch->rows, batch->row[i]);
    sdr_fetch(r.x, r.n * sizeof(float));
    if (r.index16)
        sdr_fetch(r.index16, r.n * sizeof(uint16_t));
    else
        sdr_fetch(r.index32, r.n * sizeof(uint32_t));
}

/* The gradient of sparse rows where there is one output, as in most models: features are summed up where they
   are, and put together at the end. */
#define MULTIPLY_ONE(bits)                                                                         \
    static uint32_t multiply_one##bits(struct sdr_parameters *p, const struct sdr_update *update,  \
                                       uint32_t first, uint32_t end)                               \
    {                                                                                              \
        const struct sdr_batch *batch = &update->examples;                                         \
        uint32_t count = 0, mark = mark_of(p), *marks = p->mark, *touched = p->touched + first;    \
        float *sum = p->sums;                                                                      \
        for (uint32_t i = 0; i < batch->count; i++) {                                              \
            fetch_entries(batch, i + AHEAD);                                                       \
            struct sdr_sparse_row r = row_within(batch->rows, batch->row[i], first, end);          \
            float u = update->u[(size_t)i * update->stride];                                       \
            for (uint32_t n = 0; n < r.n; n++) {                                                   \
                uint32_t j = r.index##bits[n];                                                     \
                if (marks[j] != mark) {                                                            \
                    marks[j] = mark;                                                               \
                    touched[count++] = j;                                                          \
                    sum[j] = 0;                                                                    \
                }                                                                                  \
                sum[j] += u * r.x[n];                                                              \
            }                                                                                      \
        }                                                                                          \
        for (uint32_t i = 0; i < count; i++)                                                       \
            p->gradient[first + i] = sum[touched[i]];                                              \
        return count;                                                                              \
    }
MULTIPLY_ONE(16)
MULTIPLY_ONE(32)

/* Multiplies the factors of several sparse rows out: ROWS of the touched features, in the order of
   the examples within each feature. A range has the scratch from its first feature on for itself. */
static struct sdr_update multiply_sparse(struct sdr_parameters *p, const struct sdr_update *update,
                                         uint32_t first, uint32_t end)
{
    const struct sdr_batch *batch = &update->examples;
    uint32_t outputs = update->outputs, count = 0, mark = mark_of(p);
    uint32_t *touched = p->touched + first;
    float *gradient = p->gradient + (size_t)first * outputs;
    if (mark == 1)
        memset(p->mark + first, 0, (end - first) * sizeof *p->mark);
    struct sdr_update rows = {
        .form = SDR_ROWS, .outputs = outputs, .index = touched, .value = gradient};
    if (outputs == 1 && update->form == SDR_FACTORS) {
        rows.count = batch->rows->index16 ? multiply_one16(p, update, first, end)
                                          : multiply_one32(p, update, first, end);
        return rows;
    }
    for (uint32_t i = 0; i < batch->count; i++) {
        struct sdr_sparse_row r = row_within(batch->rows, batch->row[i], first, end);
        const float *u = update->u + (size_t)i * update->stride;
        size_t skipped = (size_t)(r.x - sdr_sparse_row(batch->rows, batch->row[i]).x);
        for (uint32_t n = 0; n < r.n; n++) {
            uint32_t j = sdr_row_index(&r, n);
            if (p->mark[j] != mark) {
                p->mark[j] = mark;
                p->place[j] = count;
                touched[count] = j;
                memset(gradient + (size_t)count++ * outputs, 0, outputs * sizeof(float));
            }
            float *g = gradient + (size_t)p->place[j] * outputs;
            const float *own = u + 1 + (skipped + n) * outputs;
            for (uint32_t k = 0; k < outputs; k++)
                g[k] += update->form == SDR_ENTRIES ? own[k] : u[k] * r.x[n];
        }
    }
    rows.count = count;
    return rows;
}

static struct sdr_update multiply_dense(struct sdr_parameters *p, const struct sdr_update *update,
                                        uint32_t first, uint32_t end)
{
    const struct sdr_batch *batch = &update->examples;
    uint32_t outputs = update->outputs;
    const float *center = p->center ? p->center + first : NULL;
    float *gradient = p->gradient + (size_t)first * outputs;
    memset(gradient, 0, (size_t)(end - first) * outputs * sizeof(float));
    for (uint32_t i = 0; i < batch->count; i++) {
        const float *x = sdr_dense_row(batch->rows, batch->row[i]) + first;
        const float *u = update->u + (size_t)i * update->stride;
        if (outputs == 1) {
            p->kernels->add(gradient, u[0], x, center, end - first);
            continue;
        }
        for (uint32_t j = 0; j < end - first; j++)
            p->kernels->add(gradient + (size_t)j * outputs, center ? x[j] - center[j] : x[j], u,
                            NULL, outputs);
    }
    return (struct sdr_update){.form = SDR_DENSE, .outputs = outputs, .value = p->gradient};
}

/* Steps on a gradient that was multiplied out: it is what it is, no row to center. */
static void step_rows(struct sdr_parameters *p, const struct sdr_update *update, uint32_t first,
                      uint32_t end)
{
    static const float one = 1;
    uint32_t outputs = update->outputs;
    struct sdr_target t = p->target[0];
    t.center = NULL;
    if (update->form == SDR_DENSE && outputs == 1) {
        t = shifted(t, first, 1);
        p->optimizer->dense(&t, update->value + first, end - first, 1.0f);
    } else if (update->form == SDR_DENSE) {
        for (uint32_t j = first; j < end; j++)
            p->optimizer->matrix32(&t, &j, &one, 1, update->value + (size_t)j * outputs, outputs);
    } else if (outputs == 1) {
        p->optimizer->sparse32(&t, update->index, update->value, update->count, 1.0f);
    } else {
        for (uint32_t i = 0; i < update->count; i++) {
            p->optimizer->matrix32(&t, &update->index[i], &one, 1,
                                   update->value + (size_t)i * outputs, outputs);
            project_row(p, update->index[i]);
        }
    }
}

/* ---- statistics ---- */
/* Adds each row, as often as its weight says, to a column of `sum` of its own. */
static void add_columns(const struct sdr_parameters *p, const struct sdr_update *update,
                        uint32_t first, uint32_t end, float *sum)
{
    const struct sdr_rows *rows = update->examples.rows;
    size_t outputs = update->outputs;
    for (uint32_t i = 0; i < update->examples.count; i++) {
        const float *u = update->u + (size_t)i * update->stride;
        float *to = sum + (uint32_t)u[0], weight = u[1] * (float)p->rate;
        if (rows->dense) {
            const float *x = sdr_dense_row(rows, update->examples.row[i]);
            for (uint32_t j = first; j < end; j++)
                to[j * outputs] += weight * (p->center ? x[j] - p->center[j] : x[j]);
            continue;
        }
        struct sdr_sparse_row r = row_within(rows, update->examples.row[i], first, end);
        for (uint32_t n = 0; n < r.n; n++)
            to[sdr_row_index(&r, n) * outputs] += weight * r.x[n];
        for (uint32_t j = first; j < end && p->center; j++)
            to[j * outputs] -= weight * p->center[j];
    }
}

static void add_counts(const struct sdr_parameters *p, const struct sdr_update *update,
                       float *count)
{
    for (uint32_t i = 0; i < update->examples.count; i++) {
        const float *u = update->u + (size_t)i * update->stride;
        count[(uint32_t)u[0]] += u[1] * (float)p->rate;
    }
}

/* A batch is summed up before it is added: one by one, rows would be rounded away from the sums of very
   many. */
static void add_statistics(struct sdr_parameters *p, const struct sdr_update *update,
                           uint32_t first, uint32_t end)
{
    size_t outputs = update->outputs, from = first * outputs, to = end * outputs;
    float *value = p->target[0].value, *sum = p->gradient;
    if (!sum) {
        add_columns(p, update, first, end, value);
        return;
    }
    memset(sum + from, 0, (to - from) * sizeof *sum);
    add_columns(p, update, first, end, sum);
    for (size_t i = from; i < to; i++)
        value[i] += sum[i];
}

static void add_all_counts(struct sdr_parameters *p, const struct sdr_update *update)
{
    uint32_t outputs = p->block[1].cols;
    float *value = p->target[1].value, *sum = p->gradient ? p->gradient + p->block[1].offset : NULL;
    if (!sum) {
        add_counts(p, update, value);
        return;
    }
    memset(sum, 0, outputs * sizeof *sum);
    add_counts(p, update, sum);
    for (uint32_t k = 0; k < outputs; k++)
        value[k] += sum[k];
}

/* Clusters of less than a row are kept: they would be rounded to nothing. */
void sdr_parameters_halve(struct sdr_parameters *p)
{
    size_t outputs = p->block[1].cols;
    float *sum = p->target[0].value, *count = p->target[1].value;
    for (uint32_t k = 0; k < outputs; k++) {
        if (!(count[k] > 1))
            continue;
        count[k] *= 0.5f;
        for (uint32_t j = 0; j < p->block[0].rows; j++)
            sum[j * outputs + k] *= 0.5f;
    }
}

void sdr_parameters_begin_as(struct sdr_parameters *p, uint64_t update, double rate)
{
    p->rate = rate;
    p->begun = update;
    p->optimizer->begin(p->optimizer_options, update, rate, &p->target[0], p->constant);
}

void sdr_parameters_begin(struct sdr_parameters *p, double rate)
{
    sdr_parameters_begin_as(p, p->version + 1, rate);
}

void sdr_parameters_apply_range(struct sdr_parameters *p, const struct sdr_update *update,
                                uint32_t first, uint32_t end)
{
    if (update->form == SDR_COLUMNS) {
        add_statistics(p, update, first, end);
    } else if (update->form == SDR_FACTORS || update->form == SDR_ENTRIES) {
        struct sdr_update multiplied = update->examples.rows->dense
                                           ? multiply_dense(p, update, first, end)
                                           : multiply_sparse(p, update, first, end);
        step_rows(p, &multiplied, first, end);
    } else {
        step_rows(p, update, first, end);
    }
}

/* The intercept's gradient is the sum of the slopes. It has no penalty, so constants that hold one
   are its own. */
void sdr_parameters_apply_intercept(struct sdr_parameters *p, const struct sdr_update *update,
                                    double rate)
{
    enum { TOGETHER = 16 };
    struct sdr_target t = p->target[1];
    uint32_t outputs = p->block[1].cols;
    float own[SDR_CONSTANTS] = {0}, sum[TOGETHER];
    if (p->still)
        return;
    if (update->form == SDR_COLUMNS) {
        add_all_counts(p, update);
        return;
    }
    if (p->optimizer->own_penalty || p->optimizer->decay) {
        p->optimizer->begin(p->optimizer_options, p->begun, rate, &t, own);
        t.constant = own;
    }
    if (update->form == SDR_DENSE) {
        p->optimizer->dense(&t, update->value + p->block[1].offset, outputs, 1.0f);
        return;
    }
    for (uint32_t first = 0; first < outputs; first += TOGETHER) {
        uint32_t count = outputs - first < TOGETHER ? outputs - first : TOGETHER;
        const float *u = update->u + first;
        memcpy(sum, u, count * sizeof *sum);
        for (uint32_t i = 1; i < update->examples.count; i++)
            for (uint32_t k = 0; k < count; k++)
                sum[k] += u[(size_t)i * update->stride + k];
        struct sdr_target some = shifted(t, first, 1);
        p->optimizer->dense(&some, sum, count, 1.0f);
    }
}

double sdr_step_penalty(const struct sdr_parameters *p, uint64_t update, double rate)
{
    return p->optimizer->penalty_due ? p->optimizer->penalty_due(p->optimizer_options, update, rate)
                                     : rate;
}

void sdr_parameters_finish(struct sdr_parameters *p, double rate)
{
    p->version++;
    if (p->penalty_paid)
        p->penalty_due += sdr_step_penalty(p, p->version, rate);
}

void sdr_parameters_apply_weights(struct sdr_parameters *p, const struct sdr_update *update,
                                  double rate)
{
    sdr_parameters_begin(p, rate);
    if (update->form == SDR_FACTORS && update->examples.count == 1)
        step_row(p, &p->target[0], update->examples.rows, update->examples.row[0], update->u);
    else if (update->form == SDR_ENTRIES && update->examples.count == 1)
        step_entries(p, update);
    else
        sdr_parameters_apply_range(p, update, 0, p->block[0].rows);
}

void sdr_parameters_apply(struct sdr_parameters *p, const struct sdr_update *update, double rate)
{
    sdr_parameters_apply_weights(p, update, rate);
    if (p->blocks > 1)
        sdr_parameters_apply_intercept(p, update, rate);
    sdr_parameters_finish(p, rate);
}

void sdr_parameters_fused_steps(struct sdr_parameters *p, struct sdr_fused_steps *fused)
{
    fused->optimizer = p->optimizer;
    fused->optimizer_options = p->optimizer_options;
    fused->weight = &p->target[0];
    fused->columns = p->block[0].cols;
    fused->intercept = p->blocks > 1 ? &p->target[1] : NULL;
    fused->constant = p->constant;
    fused->version = p->version;
    fused->penalty_due = p->penalty_due;
    if (p->borrowed && !fused->place)
        p->optimizer->fused_shared(fused);
    else
        p->optimizer->fused(fused);
    p->version = fused->version;
    p->penalty_due = fused->penalty_due;
}

/* ---- several workers ---- */
/* Whether an array is the value, or stands for it: FTRL's state does. */
static bool of_value(const struct sdr_parameters *p, int i)
{
    return i == 0 || p->optimizer->own_penalty;
}

static enum sdr_merge merge_of(const struct sdr_parameters *p, int i)
{
    if (i > 0)
        return p->optimizer->sums ? SDR_MERGE_SUM : SDR_MERGE_MEAN;
    return p->penalty.l1 > 0 ? SDR_MERGE_SHRUNK : SDR_MERGE_SUM;
}

void sdr_replica_place(struct sdr_parameters *copy, struct sdr_affinity *affinity, int worker)
{
    for (int i = 0; i <= copy->optimizer->slots; i++) {
        sdr_affinity_move(affinity, worker, array_of(copy, i), copy->count * sizeof(float));
        if (copy->base[i])
            sdr_affinity_move(affinity, worker, copy->base[i], copy->count * sizeof(float));
    }
}

void sdr_replica_pull(struct sdr_parameters *copy, const struct sdr_parameters *shared)
{
    for (int i = 0; i <= copy->optimizer->slots; i++)
        if (copy->base[0])
            sdr_exchange_take(array_of(shared, i), array_of(copy, i), copy->base[i], copy->count);
        else
            memcpy(array_of(copy, i), array_of(shared, i), copy->count * sizeof(float));
}

void sdr_replica_push(struct sdr_parameters *copy, struct sdr_parameters *shared,
                      const float *damping, int copies)
{
    sdr_parameters_catch_up_all(copy);
    if (damping) /* what is not given is gone: the copy is taken anew */
        for (int i = 0; i <= copy->optimizer->slots; i++)
            for (uint64_t at = 0; at < copy->count && of_value(copy, i); at++) {
                float share =
                    damping[at] > 2.0f / (float)copies ? damping[at] : 2.0f / (float)copies;
                float *mine = &array_of(copy, i)[at], base = copy->base[i][at];
                if (share < 1)
                    *mine = base + share * (*mine - base);
            }
    for (int i = 0; i <= copy->optimizer->slots; i++)
        sdr_exchange_give(array_of(shared, i), array_of(copy, i), copy->base[i], copy->count,
                          merge_of(copy, i));
}

/* Parts are made of whole cache lines. */
static uint64_t part_start(const struct sdr_parameters *p, uint64_t part, uint64_t parts)
{
    return p->count / BLOCK_ALIGN * part / parts * BLOCK_ALIGN;
}

static float mean_of(struct sdr_parameters *copy, int copies, int array, uint64_t at)
{
    double sum = array_of(&copy[0], array)[at]; /* not 0 + …: that loses the sign of −0 */
    for (int c = 1; c < copies; c++)
        sum += array_of(&copy[c], array)[at];
    return (float)(sum / copies);
}

void sdr_replicas_mean(struct sdr_parameters *p, struct sdr_parameters *copy, int copies)
{
    for (int c = 0; c < copies; c++)
        sdr_parameters_catch_up_all(&copy[c]);
    for (int i = 0; i <= p->optimizer->slots; i++)
        for (uint64_t at = 0; at < p->count; at++)
            array_of(p, i)[at] = mean_of(copy, copies, i, at);
}

void sdr_replicas_blend(struct sdr_parameters *copy, int copies, uint64_t part, uint64_t parts)
{
    uint64_t end = part_start(copy, part + 1, parts);
    for (int i = 0; i <= copy->optimizer->slots; i++)
        for (uint64_t at = part_start(copy, part, parts); at < end && of_value(copy, i); at++) {
            float mean = mean_of(copy, copies, i, at);
            for (int c = 0; c < copies; c++)
                array_of(&copy[c], i)[at] = mean;
        }
}

void sdr_replicas_merge(struct sdr_parameters *shared, struct sdr_parameters *copy, int copies,
                        const float *damping, uint64_t part, uint64_t parts)
{
    enum { COPIES_MOST = 1024 };
    const float *array[COPIES_MOST];
    uint64_t first = part_start(shared, part, parts), end = part_start(shared, part + 1, parts);
    for (int i = 0; i <= shared->optimizer->slots; i++) {
        for (int c = 0; c < copies; c++)
            array[c] = array_of(&copy[c], i) + first;
        shared->kernels->merge(array_of(shared, i) + first, array, copies, end - first,
                               merge_of(shared, i),
                               damping && of_value(shared, i) ? damping + first : NULL);
    }
}

void sdr_parameters_recompute(struct sdr_parameters *p, double rate)
{
    for (uint32_t j = 0; j < p->block[0].rows && p->project; j++)
        project_row(p, j);
    if (!p->optimizer->own_penalty)
        return;
    for (int b = 0; b < p->blocks; b++) {
        struct sdr_target *t = &p->target[b];
        p->optimizer->begin(p->optimizer_options, p->version + 1, rate, t, p->constant);
        p->optimizer->catch_up(t, p->block[b].rows, p->block[b].cols);
    }
}

void sdr_parameters_reset(struct sdr_parameters *p, const float *value)
{
    memcpy(p->value, value, p->count * sizeof *value);
    for (int s = 0; s < p->optimizer->slots; s++)
        memset(p->slot[s], 0, p->count * sizeof(float));
    if (p->penalty_paid)
        memset(p->penalty_paid, 0, p->count * sizeof *p->penalty_paid);
    p->penalty_due = 0;
    if (p->sum)
        memset(p->sum, 0, p->count * sizeof *p->sum);
    p->summed = 0;
}

const float *sdr_parameters_weights(struct sdr_parameters *p)
{
    sdr_parameters_catch_up_all(p);
    if (!p->optimizer->publish || p->version == 0)
        return p->value;
    for (int b = 0; b < p->blocks; b++) {
        p->optimizer->publish(&p->target[b], p->block[b].rows, p->block[b].cols,
                              p->published + p->block[b].offset);
    }
    return p->published;
}

void sdr_parameters_average(struct sdr_parameters *p)
{
    const float *w = sdr_parameters_weights(p);
    for (uint64_t i = 0; i < p->count; i++)
        p->sum[i] += w[i];
    p->summed++;
}

const float *sdr_parameters_result(struct sdr_parameters *p)
{
    if (!p->summed)
        return sdr_parameters_weights(p);
    for (uint64_t i = 0; i < p->count; i++)
        p->published[i] = (float)(p->sum[i] / (double)p->summed);
    return p->published;
}

double sdr_parameters_penalty(const struct sdr_parameters *p, const float *w, const double *exact)
{
    const struct sdr_penalty *penalty = &p->penalty;
    uint32_t outputs = p->block[0].cols;
    double one = 0, two = 0, group = 0;
    for (uint32_t j = 0; j < p->block[0].rows; j++) {
        double size = penalty->standardize && p->scale ? 1.0 / p->scale[j] : 1.0, row = 0;
        for (uint32_t k = 0; k < outputs; k++) {
            size_t at = p->block[0].offset + (size_t)j * outputs + k;
            double v = size * (exact ? exact[at] : w[at]);
            one += fabs(v);
            row += v * v;
        }
        two += row;
        group += sqrt(row);
    }
    double l2 =
        p->optimizer->decay ? 0 : penalty->l2; /* decoupled decay is no part of the objective */
    return penalty->l1 * one + 0.5 * l2 * two + penalty->group * group;
}
