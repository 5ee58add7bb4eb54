/* Lazy penalties. The penalty of skipped steps is charged when a value is next read, as the
   closed solution of the penalty's flow over Σ rate (optimizer/step.h): a step costs
   O(non-zeros). */
#include "update/parameters.h"

#include <math.h>
#include <string.h>

static bool nothing_due(const struct sdr_parameters *p)
{
    return !p->penalty_paid || p->penalty_due == 0;
}

/* Rows first … end − 1 of a block. */
static void catch_up_rows(struct sdr_parameters *p, int b, uint32_t first, uint32_t end)
{
    uint32_t cols = p->layout->block[b].cols;
    struct sdr_target t = sdr_target_from(p->target[b], first, cols);
    t.penalty_due = (float)p->penalty_due;
    if (first < end)
        p->rule.optimizer->catch_up(&t, end - first, cols);
}

/* Long rows of a block, each once, however many examples touch it: the second time nothing would be
   due. */
enum { LONG_ROW = 16, FEATURES_ONCE = 1 << 14 };
static void catch_up_once(const struct sdr_optimizer *o, const struct sdr_target *t, uint32_t cols,
                          const struct sdr_batch *batch, uint32_t first, uint32_t end)
{
    uint64_t paid[FEATURES_ONCE / 64];
    memset(paid, 0, (batch->rows->features + 63) / 64 * sizeof *paid);
    for (uint32_t i = 0; i < batch->count; i++) {
        struct sdr_sparse_row r = sdr_row_within(batch->rows, batch->row[i], first, end);
        for (uint32_t n = 0; n < r.n; n++) {
            uint32_t j = sdr_row_index(&r, n);
            if (paid[j / 64] >> j % 64 & 1)
                continue;
            paid[j / 64] |= UINT64_C(1) << j % 64;
            o->catch_up32(t, &j, 1, cols);
        }
    }
}

/* The rows of a block that belong to the features of a batch. */
static void catch_up_touched(struct sdr_parameters *p, int b, const struct sdr_batch *batch,
                             uint32_t first, uint32_t end)
{
    const struct sdr_optimizer *o = p->rule.optimizer;
    struct sdr_target t = p->target[b];
    uint32_t cols = p->layout->block[b].cols;
    t.penalty_due = (float)p->penalty_due;
    if (cols >= LONG_ROW && batch->rows->features <= FEATURES_ONCE) {
        catch_up_once(o, &t, cols, batch, first, end);
        return;
    }
    for (uint32_t i = 0; i < batch->count; i++) {
        struct sdr_sparse_row r = sdr_row_within(batch->rows, batch->row[i], first, end);
        if (r.index16)
            o->catch_up16(&t, r.index16, r.n, cols);
        else
            o->catch_up32(&t, r.index32, r.n, cols);
    }
}

void sdr_parameters_catch_up(struct sdr_parameters *p, const struct sdr_batch *batch,
                             struct sdr_span span)
{
    sdr_cells_unpack(p);
    if (nothing_due(p))
        return;
    for (int b = 0; b < p->layout->blocks; b++) {
        const struct sdr_block *block = &p->layout->block[b];
        uint32_t first, end;
        if (!block->penalised)
            continue;
        sdr_rows_within(block, span, &first, &end);
        if (block->per_feature && !batch->rows->dense)
            catch_up_touched(p, b, batch, first, end);
        else
            catch_up_rows(p, b, first, end);
    }
}

void sdr_parameters_catch_up_span(struct sdr_parameters *p, struct sdr_span span)
{
    sdr_cells_unpack(p);
    if (nothing_due(p))
        return;
    for (int b = 0; b < p->layout->blocks; b++) {
        uint32_t first, end;
        sdr_rows_within(&p->layout->block[b], span, &first, &end);
        if (p->layout->block[b].penalised)
            catch_up_rows(p, b, first, end);
    }
}

void sdr_parameters_catch_up_all(struct sdr_parameters *p)
{
    sdr_cells_unpack(p);
    if (nothing_due(p))
        return;
    for (int b = 0; b < p->layout->blocks; b++) {
        const struct sdr_block *block = &p->layout->block[b];
        uint32_t first, end;
        sdr_rows_within(block, p->held, &first, &end);
        struct sdr_target t = sdr_target_from(p->target[b], first, block->cols);
        t.penalty_due = (float)p->penalty_due;
        t.pay_fully = true;
        if (block->penalised && first < end)
            p->rule.optimizer->catch_up(&t, end - first, block->cols);
    }
    /* Restarting keeps the float sums accurate: the penalty due stays small relative to its
       increments. */
    memset(p->penalty_paid + p->held.first, 0,
           (p->held.end - p->held.first) * sizeof *p->penalty_paid);
    p->penalty_due = 0;
}

double sdr_step_penalty(const struct sdr_parameters *p, uint64_t update, double rate)
{
    const struct sdr_optimizer *o = p->rule.optimizer;
    return o->penalty_due ? o->penalty_due(p->rule.optimizer_options, update, rate) : rate;
}

/* `w` or `exact` begin with the first value of the span. */
static void add_penalty(const struct sdr_parameters *p, const float *w, const double *exact,
                        struct sdr_span span, struct sdr_penalty_sum *sum)
{
    const struct sdr_penalty *penalty = &p->rule.penalty;
    for (int b = 0; b < p->layout->blocks; b++) {
        const struct sdr_block *block = &p->layout->block[b];
        const float *scale = block->per_feature && penalty->standardize ? p->rule.scale : NULL;
        uint32_t first, end;
        sdr_rows_within(block, span, &first, &end);
        for (uint32_t j = first; j < end && block->penalised; j++) {
            double size = scale ? 1.0 / scale[j] : 1.0, row = 0;
            for (uint32_t k = 0; k < block->cols; k++) {
                size_t at = block->offset + (size_t)j * block->cols + k - span.first;
                double v = size * (exact ? exact[at] : w[at]);
                sum->absolute += fabs(v);
                row += v * v;
            }
            sum->square += row;
            sum->group += sqrt(row);
        }
    }
}

void sdr_penalty_add(const struct sdr_parameters *p, const float *w, struct sdr_span span,
                     struct sdr_penalty_sum *sum)
{
    add_penalty(p, w, NULL, span, sum);
}

double sdr_penalty_total(const struct sdr_parameters *p, const struct sdr_penalty_sum *sum)
{
    const struct sdr_penalty *penalty = &p->rule.penalty;
    double l2 = p->rule.optimizer->decay
                    ? 0
                    : penalty->l2; /* decoupled decay is not part of the objective */
    return penalty->l1 * sum->absolute + 0.5 * l2 * sum->square + penalty->group * sum->group;
}

double sdr_parameters_penalty(const struct sdr_parameters *p, const float *w, const double *exact)
{
    struct sdr_penalty_sum sum = {0};
    add_penalty(p, w, exact, sdr_all(p->layout), &sum);
    return sdr_penalty_total(p, &sum);
}
