/* Parameters: see parameters.h. */
#include "optimizer/parameters.h"
#include "base/memory.h"

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
        t.charged = p->charged ? p->charged + block->offset : NULL;
        t.l1 = (float)p->penalty.l1;
        t.l2 = (float)p->penalty.l2;
        t.group = (float)p->penalty.group;
        t.standardize = p->penalty.standardize;
        t.plain_decay = p->penalty.standardize || p->optimizer->decay;
    }
    return t;
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
    const char *what = "the model";
    SDR_TRY(sdr_allocate(&p->value, p->count, sizeof(float), what));
    SDR_TRY(sdr_allocate(&p->published, p->count, sizeof(float), what));
    for (int s = 0; s < optimizer->slots; s++)
        SDR_TRY(sdr_allocate(&p->slot[s], p->count, sizeof(float), "the optimizer's state"));
    if (penalty->l1 > 0 || penalty->l2 > 0 || penalty->group > 0)
        SDR_TRY(sdr_allocate(&p->charged, p->count, sizeof(float), what));
    if (average)
        SDR_TRY(sdr_allocate(&p->sum, p->count, sizeof(double), "the averaged model"));
    if (batches) {
        SDR_TRY(sdr_allocate(&p->gradient, p->count, sizeof(float), "the gradient of a batch"));
        SDR_TRY(sdr_allocate(&p->touched, block[0].rows, sizeof(uint32_t), what));
        SDR_TRY(sdr_allocate(&p->place, block[0].rows, sizeof(uint32_t), what));
        SDR_TRY(sdr_allocate(&p->mark, block[0].rows, sizeof(uint32_t), what));
    }
    for (int b = 0; b < blocks; b++)
        p->target[b] = make_target(p, &p->block[b]);
    return SDR_OK;
}

void sdr_parameters_destroy(struct sdr_parameters *p)
{
    sdr_release(p->value);
    sdr_release(p->published);
    sdr_release(p->slot[0]);
    sdr_release(p->slot[1]);
    sdr_release(p->charged);
    sdr_release(p->sum);
    sdr_release(p->gradient);
    sdr_release(p->touched);
    sdr_release(p->place);
    sdr_release(p->mark);
    *p = (struct sdr_parameters){0};
}

void sdr_parameters_settle(struct sdr_parameters *p, const struct sdr_batch *batch)
{
    if (!p->charged || p->charge == 0) /* nothing is due */
        return;
    struct sdr_target *t = &p->target[0];
    const struct sdr_rows *rows = batch->rows;
    uint32_t outputs = p->block[0].cols;
    t->charge = (float)p->charge;
    if (rows->dense) {
        p->optimizer->settle(t, p->block[0].rows, outputs);
        return;
    }
    for (uint32_t i = 0; i < batch->count; i++) {
        struct sdr_sparse_row r = sdr_sparse_row(rows, batch->row[i]);
        if (r.index16)
            p->optimizer->settle16(t, r.index16, r.n, outputs);
        else
            p->optimizer->settle32(t, r.index32, r.n, outputs);
    }
}

void sdr_parameters_settle_all(struct sdr_parameters *p)
{
    if (!p->charged || p->charge == 0)
        return;
    p->target[0].charge = (float)p->charge;
    p->target[0].settle_fully = true;
    p->optimizer->settle(&p->target[0], p->block[0].rows, p->block[0].cols);
    p->target[0].settle_fully = false;
    /* Starting over keeps the float sums exact: the charge stays small against its steps. */
    memset(p->charged, 0, p->count * sizeof *p->charged);
    p->charge = 0;
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

/* The row of the scratch gradient that collects feature j of this batch, zeroed at its first use.
 */
static float *gradient_row(struct sdr_parameters *p, uint32_t j, uint32_t *count)
{
    uint32_t outputs = p->block[0].cols;
    if (p->mark[j] != p->marks) {
        p->mark[j] = p->marks;
        p->place[j] = *count;
        p->touched[*count] = j;
        memset(p->gradient + (size_t)*count * outputs, 0, outputs * sizeof(float));
        ++*count;
    }
    return p->gradient + (size_t)p->place[j] * outputs;
}

/* Multiplies the factors of several sparse rows out: ROWS of the touched features, in the order of
   the examples within each feature. */
static struct sdr_update multiply_sparse(struct sdr_parameters *p, const struct sdr_update *update)
{
    const struct sdr_batch *batch = &update->examples;
    uint32_t outputs = update->outputs, count = 0;
    if (++p->marks == 0) {
        memset(p->mark, 0, p->block[0].rows * sizeof *p->mark);
        p->marks = 1;
    }
    for (uint32_t i = 0; i < batch->count; i++) {
        struct sdr_sparse_row r = sdr_sparse_row(batch->rows, batch->row[i]);
        const float *u = update->u + (size_t)i * outputs;
        for (uint32_t n = 0; n < r.n; n++) {
            float *g = gradient_row(p, sdr_row_index(&r, n), &count);
            for (uint32_t k = 0; k < outputs; k++)
                g[k] += u[k] * r.x[n];
        }
    }
    return (struct sdr_update){.form = SDR_ROWS,
                               .outputs = outputs,
                               .index = p->touched,
                               .count = count,
                               .value = p->gradient};
}

static struct sdr_update multiply_dense(struct sdr_parameters *p, const struct sdr_update *update)
{
    const struct sdr_batch *batch = &update->examples;
    uint32_t outputs = update->outputs, features = batch->rows->features;
    memset(p->gradient, 0, (size_t)features * outputs * sizeof(float));
    for (uint32_t i = 0; i < batch->count; i++) {
        const float *x = sdr_dense_row(batch->rows, batch->row[i]);
        const float *u = update->u + (size_t)i * outputs;
        if (outputs == 1) {
            p->kernels->add(p->gradient, u[0], x, p->center, features);
            continue;
        }
        for (uint32_t j = 0; j < features; j++)
            p->kernels->add(p->gradient + (size_t)j * outputs,
                            p->center ? x[j] - p->center[j] : x[j], u, NULL, outputs);
    }
    return (struct sdr_update){.form = SDR_DENSE, .outputs = outputs, .value = p->gradient};
}

/* Steps on a gradient that was multiplied out: it is what it is, no row to center. */
static void step_rows(struct sdr_parameters *p, struct sdr_target t,
                      const struct sdr_update *update)
{
    static const float one = 1;
    uint32_t outputs = update->outputs;
    t.center = NULL;
    if (update->form == SDR_DENSE && outputs == 1) {
        p->optimizer->dense(&t, update->value, p->block[0].rows, 1.0f);
    } else if (update->form == SDR_DENSE) {
        for (uint32_t j = 0; j < p->block[0].rows; j++)
            p->optimizer->matrix32(&t, &j, &one, 1, update->value + (size_t)j * outputs, outputs);
    } else if (outputs == 1) {
        p->optimizer->sparse32(&t, update->index, update->value, update->count, 1.0f);
    } else {
        for (uint32_t i = 0; i < update->count; i++)
            p->optimizer->matrix32(&t, &update->index[i], &one, 1,
                                   update->value + (size_t)i * outputs, outputs);
    }
}

/* The intercept's gradient is the sum of the slopes. */
static void step_intercept(struct sdr_parameters *p, const struct sdr_update *update, double rate)
{
    const struct sdr_target *t = &p->target[1];
    uint32_t outputs = update->outputs;
    if (p->optimizer->own_penalty) /* its constants hold the penalty, which the intercept has not */
        p->optimizer->begin(p->optimizer_options, p->version + 1, rate, t, p->constant);
    if (update->form == SDR_DENSE) {
        p->optimizer->dense(t, update->value + p->block[1].offset, outputs, 1.0f);
        return;
    }
    if (update->examples.count == 1) {
        p->optimizer->dense(t, update->u, outputs, 1.0f);
        return;
    }
    /* The first block's gradient has been used by now: its place serves for the sum. */
    float *sum = p->gradient;
    memset(sum, 0, outputs * sizeof *sum);
    for (uint32_t i = 0; i < update->examples.count; i++)
        for (uint32_t k = 0; k < outputs; k++)
            sum[k] += update->u[(size_t)i * outputs + k];
    p->optimizer->dense(t, sum, outputs, 1.0f);
}

void sdr_parameters_apply(struct sdr_parameters *p, const struct sdr_update *update, double rate)
{
    const struct sdr_target *t = &p->target[0];
    p->optimizer->begin(p->optimizer_options, p->version + 1, rate, t, p->constant);
    if (update->form == SDR_FACTORS && update->examples.count == 1) {
        step_row(p, t, update->examples.rows, update->examples.row[0], update->u);
    } else if (update->form == SDR_FACTORS) {
        struct sdr_update multiplied =
            update->examples.rows->dense ? multiply_dense(p, update) : multiply_sparse(p, update);
        step_rows(p, *t, &multiplied);
    } else {
        step_rows(p, *t, update);
    }
    if (p->blocks > 1)
        step_intercept(p, update, rate);
    if (p->blocks > 1 && p->optimizer->own_penalty)
        p->optimizer->begin(p->optimizer_options, p->version + 1, rate, t, p->constant);
    p->version++;
    if (p->charged)
        p->charge += p->optimizer->charge
                         ? rate * p->optimizer->charge(p->optimizer_options, p->version)
                         : rate;
}

void sdr_parameters_walk(struct sdr_parameters *p, struct sdr_walk *walk)
{
    walk->optimizer = p->optimizer;
    walk->optimizer_options = p->optimizer_options;
    walk->weight = &p->target[0];
    walk->intercept = p->blocks > 1 ? &p->target[1] : NULL;
    walk->constant = p->constant;
    walk->version = p->version;
    walk->charge = p->charge;
    p->optimizer->walk(walk);
    p->version = walk->version;
    p->charge = walk->charge;
}

const float *sdr_parameters_weights(struct sdr_parameters *p)
{
    sdr_parameters_settle_all(p);
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
