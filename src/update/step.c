/* Steps: apply an update to the parameters. See parameters.h. */
#include "update/parameters.h"

#include <string.h>

static void project_row(const struct sdr_parameters *p, int block, uint32_t row)
{
    uint32_t cols = p->layout->block[block].cols;
    if (p->rule.project)
        p->rule.project(p->target[block].value + (size_t)row * cols, cols);
}

/* One example: the step u·xᵀ needs no sum. */
static void step_example(struct sdr_parameters *p, const struct sdr_part *part,
                         const struct sdr_batch *batch)
{
    const struct sdr_optimizer *o = p->rule.optimizer;
    const struct sdr_target *t = &p->target[part->block];
    const struct sdr_rows *rows = batch->rows;
    const float *u = part->value;
    uint32_t cols = p->layout->block[part->block].cols;
    if (rows->dense) {
        const float *x = sdr_dense_row(rows, batch->row[0]);
        if (cols == 1)
            o->dense(t, x, rows->features, u[0]);
        else
            o->matrix(t, x, rows->features, u, cols);
        return;
    }
    struct sdr_sparse_row r = sdr_sparse_row(rows, batch->row[0]);
    if (cols == 1 && r.index16)
        o->sparse16(t, r.index16, r.x, r.n, u[0]);
    else if (cols == 1)
        o->sparse32(t, r.index32, r.x, r.n, u[0]);
    else if (r.index16)
        o->matrix16(t, r.index16, r.x, r.n, u, cols);
    else
        o->matrix32(t, r.index32, r.x, r.n, u, cols);
}

/* Steps on an expanded part, rows first … end − 1. */
static void step_expanded(struct sdr_parameters *p, const struct sdr_part *part, uint32_t first,
                          uint32_t end)
{
    static const float one = 1;
    const struct sdr_optimizer *o = p->rule.optimizer;
    uint32_t cols = p->layout->block[part->block].cols;
    struct sdr_target t = p->target[part->block];
    if (first > 0 && part->form == SDR_DENSE)
        t = sdr_target_from(t, first, cols);
    t.center = NULL; /* of examples: the sums include it */
    if (part->form == SDR_DENSE) {
        if (cols == 1)
            o->dense(&t, part->value, end - first, 1.0f);
        else
            o->matrix_rows(&t, part->value, end - first, cols);
        return;
    }
    if (cols == 1) {
        o->sparse32(&t, part->index, part->value, part->count, 1.0f);
        return;
    }
    for (uint32_t i = 0; i < part->count; i++) {
        o->matrix32(&t, &part->index[i], &one, 1, part->value + (size_t)i * cols, cols);
        project_row(p, part->block, part->index[i]);
    }
}

/* Statistics are added without an optimizer, times the rate. A batch is summed before it is
   added: single rows would be lost to rounding in large sums. */
static void add_expanded(struct sdr_parameters *p, const struct sdr_part *part, uint32_t first,
                         uint32_t end, float rate)
{
    uint32_t cols = p->layout->block[part->block].cols;
    float *value = p->target[part->block].value;
    if (part->form == SDR_DENSE)
        for (size_t i = 0; i < (size_t)(end - first) * cols; i++)
            value[(size_t)first * cols + i] += rate * part->value[i];
    for (uint32_t i = 0; i < part->count && part->form == SDR_ROWS; i++)
        for (uint32_t k = 0; k < cols; k++)
            value[(size_t)part->index[i] * cols + k] += rate * part->value[(size_t)i * cols + k];
}

/* The mark of rows touched by this update: never 0, different for every update. */
static uint32_t mark_of(const struct sdr_parameters *p)
{
    return (uint32_t)(p->version % UINT32_MAX) + 1;
}

static void apply_part(struct sdr_parameters *p, const struct sdr_update *update,
                       const struct sdr_part *part, struct sdr_span span)
{
    bool adds = update->sense == SDR_STATISTIC, scaled = part->form == SDR_FACTORS;
    struct sdr_expansion to = {.layout = p->layout,
                               .kernels = p->rule.kernels,
                               .center = p->rule.center,
                               .scratch = &p->scratch,
                               .mark = mark_of(p),
                               .times = adds ? (float)p->rate : 1};
    uint32_t first, end;
    sdr_rows_within(&p->layout->block[part->block], span, &first, &end);
    if (first == end || part->count == 0)
        return;
    struct sdr_part sum = sdr_part_expand(&to, part, &update->batch, first, end);
    if (adds)
        add_expanded(p, &sum, first, end, scaled ? 1 : (float)p->rate);
    else
        step_expanded(p, &sum, first, end);
}

void sdr_parameters_begin_as(struct sdr_parameters *p, uint64_t update, double rate)
{
    const struct sdr_step_rule *rule = &p->rule;
    sdr_cells_unpack(p);
    p->rate = rate;
    p->begun = update;
    struct sdr_target penalised = {.l1 = (float)rule->penalty.l1,
                                   .l2 = (float)rule->penalty.l2,
                                   .group = (float)rule->penalty.group};
    rule->optimizer->begin(rule->optimizer_options, update, rate, &penalised, p->constant);
    if (sdr_constants_differ(rule->optimizer)) {
        struct sdr_target plain = {0};
        rule->optimizer->begin(rule->optimizer_options, update, rate, &plain, p->unpenalised);
    }
}

void sdr_parameters_begin(struct sdr_parameters *p, double rate)
{
    sdr_parameters_begin_as(p, p->version + 1, rate);
}

void sdr_parameters_apply_span(struct sdr_parameters *p, const struct sdr_update *update,
                               struct sdr_span span)
{
    for (int i = 0; i < update->parts; i++)
        apply_part(p, update, &update->part[i], span);
}

void sdr_parameters_finish(struct sdr_parameters *p, double rate)
{
    p->version++;
    if (p->penalty_paid)
        p->penalty_due += sdr_step_penalty(p, p->version, rate);
}

void sdr_parameters_apply_blocks(struct sdr_parameters *p, const struct sdr_update *update,
                                 bool per_feature)
{
    for (int i = 0; i < update->parts; i++) {
        const struct sdr_part *part = &update->part[i];
        bool example = part->form == SDR_FACTORS && part->right == SDR_EXAMPLES &&
                       part->count == 1 && !part->index;
        if (p->layout->block[part->block].per_feature != per_feature)
            continue;
        if (example)
            step_example(p, part, &update->batch);
        else
            apply_part(p, update, part, sdr_all(p->layout));
    }
}

void sdr_parameters_apply(struct sdr_parameters *p, const struct sdr_update *update, double rate)
{
    sdr_parameters_begin(p, rate);
    sdr_parameters_apply_blocks(p, update, true);
    sdr_parameters_apply_blocks(p, update, false);
    sdr_parameters_finish(p, rate);
}

void sdr_parameters_fused_steps(struct sdr_parameters *p, struct sdr_fused_steps *fused)
{
    const struct sdr_optimizer *o = p->rule.optimizer;
    const struct sdr_problem *problem = fused->problem;
    struct sdr_problem numbered;
    fused->optimizer_options = p->rule.optimizer_options;
    if (fused->place)
        sdr_cells_unpack(p);
    else if (p->cell)
        sdr_cells_pack(p);
    if (p->in_cells && p->rule.cell_optimizer)
        o = p->rule.cell_optimizer;
    if (p->in_cells && p->numbering) {
        numbered = *problem;
        numbered.rows = &p->numbering->rows;
        fused->problem = &numbered;
    }
    fused->optimizer = o;
    p->target[0].cell = p->in_cells ? p->cell : NULL;
    fused->weight = &p->target[0];
    fused->bias = NULL;
    fused->intercept = NULL;
    for (int b = 1; b < p->layout->blocks; b++)
        *(p->layout->block[b].per_feature ? &fused->bias : &fused->intercept) = &p->target[b];
    fused->constant = p->constant;
    fused->version = p->version;
    fused->penalty_due = p->penalty_due;
    if (p->borrowed && !fused->place)
        o->fused_shared(fused);
    else
        o->fused(fused);
    fused->problem = problem;
    p->version = fused->version;
    p->penalty_due = fused->penalty_due;
}
