/* Parameters: creation, aliases and replicas, values and averages. See parameters.h. */
#include "update/parameters.h"
#include "base/memory.h"

#include <string.h>

/* A block as the target of a step. */
static struct sdr_target make_target(struct sdr_parameters *p, const struct sdr_block *block)
{
    const struct sdr_step_rule *rule = &p->rule;
    bool own = !block->penalised && sdr_constants_differ(rule->optimizer);
    struct sdr_target t = {.value = p->value + block->offset,
                           .constant = own ? p->unpenalised : p->constant};
    for (int s = 0; s < rule->optimizer->slots; s++)
        t.slot[s] = p->slot[s] + block->offset;
    if (block->per_feature) {
        t.scale = rule->scale;
        t.center = rule->center;
    }
    if (block->penalised) {
        t.penalty_paid = p->penalty_paid ? p->penalty_paid + block->offset : NULL;
        t.l1 = (float)rule->penalty.l1;
        t.l2 = (float)rule->penalty.l2;
        t.group = (float)rule->penalty.group;
        t.standardize = rule->penalty.standardize;
        t.plain_decay = rule->penalty.standardize || rule->optimizer->decay;
    }
    return t;
}

static enum sdr_status make_targets(struct sdr_parameters *p)
{
    if (!p->target)
        SDR_TRY(sdr_allocate(&p->target, (size_t)p->layout->blocks, sizeof *p->target, "blocks"));
    for (int b = 0; b < p->layout->blocks; b++)
        p->target[b] = make_target(p, &p->layout->block[b]);
    return SDR_OK;
}

/* Zeros, one a value. */
static enum sdr_status allocate_array(const struct sdr_parameters *p, float **array,
                                      const char *what)
{
    SDR_TRY(sdr_allocate(array, p->layout->count, sizeof(float), what));
    sdr_large_pages(*array, p->layout->count * sizeof(float));
    return SDR_OK;
}

static enum sdr_status allocate_state(struct sdr_parameters *p)
{
    const struct sdr_penalty *penalty = &p->rule.penalty;
    SDR_TRY(allocate_array(p, &p->value, "the model"));
    for (int s = 0; s < p->rule.optimizer->slots; s++)
        SDR_TRY(allocate_array(p, &p->slot[s], "the optimizer's state"));
    if (penalty->l1 > 0 || penalty->l2 > 0 || penalty->group > 0)
        SDR_TRY(allocate_array(p, &p->penalty_paid, "the penalties"));
    return SDR_OK;
}

enum sdr_status sdr_parameters_create(struct sdr_parameters *p, const struct sdr_layout *layout,
                                      const struct sdr_step_rule *rule, bool batches, bool average)
{
    *p = (struct sdr_parameters){.layout = layout, .rule = *rule, .held = sdr_all(layout)};
    SDR_TRY(allocate_state(p));
    SDR_TRY(sdr_allocate(&p->published, layout->count, sizeof(float), "the model"));
    if (average)
        SDR_TRY(sdr_allocate(&p->average.sum, layout->count, sizeof(double), "the averaged model"));
    if (batches)
        SDR_TRY(sdr_scratch_create(&p->scratch, layout));
    return make_targets(p);
}

void sdr_parameters_populate(struct sdr_parameters *p)
{
    for (int i = 0; i <= p->rule.optimizer->slots; i++)
        sdr_populate(sdr_parameters_array(p, i), p->layout->count * sizeof(float));
}

/* Copies to an array of zeros. Pages where there is nothing to copy stay untouched, and take no
   memory. */
static void copy_to_zeros(float *to, const float *from, uint64_t count)
{
    enum { RUN = 1024 };
    static const float zeros[RUN];
    for (uint64_t i = 0; i < count; i += RUN) {
        size_t bytes = (size_t)(count - i < RUN ? count - i : RUN) * sizeof(float);
        if (memcmp(from + i, zeros, bytes) != 0)
            memcpy(to + i, from + i, bytes);
    }
}

enum sdr_status sdr_parameters_replicate(struct sdr_parameters *p, const struct sdr_parameters *of,
                                         bool copy, bool base)
{
    uint64_t count = of->layout->count;
    int slots = of->rule.optimizer->slots;
    *p = *of;
    p->borrowed = !copy;
    p->average = (struct sdr_average){0};
    p->scratch = (struct sdr_scratch){0};
    p->published = NULL;
    p->target = NULL;
    p->cell = NULL;
    p->in_cells = false;
    p->numbering = NULL;
    if (copy) {
        p->value = p->slot[0] = p->slot[1] = p->penalty_paid = NULL;
        SDR_TRY(allocate_state(p));
        for (int i = 0; i <= slots; i++)
            copy_to_zeros(sdr_parameters_array(p, i), sdr_parameters_array(of, i), count);
        for (int i = 0; i <= slots && base; i++)
            SDR_TRY(sdr_allocate(&p->base[i], count, sizeof(float), "a worker's copy"));
    }
    if (of->scratch.gradient)
        SDR_TRY(sdr_scratch_create(&p->scratch, of->layout));
    return make_targets(p);
}

void sdr_parameters_follow(struct sdr_parameters *p, const struct sdr_parameters *of)
{
    p->version = of->version;
    p->penalty_due = of->penalty_due;
    p->rate = of->rate;
    p->begun = of->begun;
    memcpy(p->constant, of->constant, sizeof p->constant);
    memcpy(p->unpenalised, of->unpenalised, sizeof p->unpenalised);
}

void sdr_parameters_lend(struct sdr_parameters *p, float *const slot[2])
{
    for (int s = 0; s < p->rule.optimizer->slots; s++)
        p->slot[s] = slot[s];
    make_targets(p); /* cannot fail: nothing is allocated */
}

enum sdr_status sdr_parameters_stepper(struct sdr_parameters *p, const struct sdr_parameters *of,
                                       float *value)
{
    SDR_TRY(sdr_parameters_replicate(p, of, false, false));
    p->value = value;
    p->penalty_paid = NULL;
    if (!p->rule.optimizer->decay) /* its steps account for the decay that servers charge */
        p->rule.penalty = (struct sdr_penalty){0};
    p->version = 0; /* counts its own steps: rows are marked by this number */
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
    sdr_release(p->cell);
    sdr_release(p->target);
    sdr_release(p->published);
    sdr_release(p->average.sum);
    sdr_scratch_free(&p->scratch);
    *p = (struct sdr_parameters){0};
}

struct sdr_target sdr_target_from(struct sdr_target t, uint32_t row, uint32_t cols)
{
    size_t at = (size_t)row * cols;
    t.value += at;
    for (int s = 0; s < 2; s++)
        t.slot[s] = t.slot[s] ? t.slot[s] + at : NULL;
    t.penalty_paid = t.penalty_paid ? t.penalty_paid + at : NULL;
    t.scale = t.scale ? t.scale + row : NULL;
    t.center = t.center ? t.center + row : NULL;
    return t;
}

/* ---- values ---- */
void sdr_parameters_copy_touched(const struct sdr_parameters *p, const struct sdr_batch *batch,
                                 float *to)
{
    if (batch->rows->dense || p->rule.reads == SDR_READS_ALL) {
        memcpy(to, p->value, p->layout->count * sizeof *to);
        return;
    }
    for (int b = 0; b < p->layout->blocks; b++) {
        const struct sdr_block *block = &p->layout->block[b];
        const float *from = p->value + block->offset;
        float *place = to + block->offset;
        if (!block->per_feature) {
            memcpy(place, from, (size_t)block->rows * block->cols * sizeof *to);
            continue;
        }
        for (uint32_t i = 0; i < batch->count; i++) {
            struct sdr_sparse_row r = sdr_sparse_row(batch->rows, batch->row[i]);
            for (uint32_t n = 0; n < r.n; n++) {
                size_t at = sdr_row_index(&r, n) * (size_t)block->cols;
                memcpy(place + at, from + at, block->cols * sizeof *to);
            }
        }
    }
}

void sdr_parameters_recompute(struct sdr_parameters *p, double rate)
{
    const struct sdr_step_rule *rule = &p->rule;
    if (!rule->project && !rule->optimizer->own_penalty)
        return;
    sdr_cells_unpack(p);
    for (int b = 0; b < p->layout->blocks; b++) {
        const struct sdr_block *block = &p->layout->block[b];
        for (uint32_t j = 0; j < block->rows && rule->project && block->per_feature; j++)
            rule->project(p->value + block->offset + (size_t)j * block->cols, block->cols);
    }
    if (!rule->optimizer->own_penalty)
        return;
    for (int b = 0; b < p->layout->blocks; b++) {
        const struct sdr_block *block = &p->layout->block[b];
        struct sdr_target t = p->target[b];
        t.constant = p->constant;
        rule->optimizer->begin(rule->optimizer_options, p->version + 1, rate, &t, p->constant);
        rule->optimizer->catch_up(&t, block->rows, block->cols);
    }
}

void sdr_parameters_reset(struct sdr_parameters *p, const float *value)
{
    uint64_t first = p->held.first, count = p->held.end - first;
    p->in_cells = false;
    memcpy(p->value + first, value + first, count * sizeof *value);
    for (int s = 0; s < p->rule.optimizer->slots; s++)
        memset(p->slot[s] + first, 0, count * sizeof(float));
    if (p->penalty_paid)
        memset(p->penalty_paid + first, 0, count * sizeof *p->penalty_paid);
    p->penalty_due = 0;
    if (p->average.sum)
        memset(p->average.sum + first, 0, count * sizeof *p->average.sum);
    p->average.summed = 0;
}

const float *sdr_parameters_weights(struct sdr_parameters *p)
{
    sdr_parameters_catch_up_all(p);
    if (!p->rule.optimizer->publish || p->version == 0)
        return p->value;
    for (int b = 0; b < p->layout->blocks; b++) {
        const struct sdr_block *block = &p->layout->block[b];
        uint32_t first, end;
        sdr_rows_within(block, p->held, &first, &end);
        struct sdr_target t = sdr_target_from(p->target[b], first, block->cols);
        if (first < end)
            p->rule.optimizer->publish(&t, end - first, block->cols,
                                       p->published + block->offset +
                                           (uint64_t)first * block->cols);
    }
    return p->published;
}

void sdr_parameters_average(struct sdr_parameters *p)
{
    const float *w = sdr_parameters_weights(p);
    for (uint64_t i = p->held.first; i < p->held.end; i++)
        p->average.sum[i] += w[i];
    p->average.summed++;
}

const float *sdr_parameters_result(struct sdr_parameters *p)
{
    if (!p->average.summed)
        return sdr_parameters_weights(p);
    for (uint64_t i = p->held.first; i < p->held.end; i++)
        p->published[i] = (float)(p->average.sum[i] / (double)p->average.summed);
    return p->published;
}

void sdr_parameters_ready(struct sdr_parameters *p)
{
    p->ready = (float *)(uintptr_t)sdr_parameters_result(p);
}

/* The exponent of NaN and infinity is all ones: one more reaches the sign bit. */
bool sdr_parameters_finite(const struct sdr_parameters *p)
{
    uint32_t any = 0;
    for (uint64_t i = p->held.first; i < p->held.end; i++) {
        uint32_t bits;
        memcpy(&bits, &p->ready[i], sizeof bits);
        any |= (bits & 0x7f800000u) + 0x00800000u;
    }
    return !(any >> 31);
}

void sdr_parameters_keep(const struct sdr_parameters *p, float *to)
{
    memcpy(to + p->held.first, p->ready + p->held.first,
           (p->held.end - p->held.first) * sizeof *to);
}

/* Lists the arrays that charging penalties changes; returns their number. */
static int changed_arrays(const struct sdr_parameters *p, double due, float *array[4])
{
    int count = 0;
    if (!p->penalty_paid || due == 0)
        return 0;
    array[count++] = p->value;
    array[count++] = p->penalty_paid;
    for (int s = 0; s < p->rule.optimizer->slots; s++)
        array[count++] = p->slot[s];
    return count;
}

enum sdr_status sdr_parameters_save(struct sdr_parameters *p, struct sdr_saved *saved)
{
    uint64_t held = p->held.end - p->held.first;
    float *array[4];
    sdr_cells_unpack(p);
    *saved = (struct sdr_saved){.penalty_due = p->penalty_due, .any = true};
    int count = changed_arrays(p, p->penalty_due, array);
    for (int i = 0; i < count; i++) {
        SDR_TRY(sdr_allocate(&saved->array[i], held, sizeof(float), "parameters to come back to"));
        memcpy(saved->array[i], array[i] + p->held.first, held * sizeof(float));
    }
    return SDR_OK;
}

void sdr_parameters_restore(struct sdr_parameters *p, struct sdr_saved *saved)
{
    uint64_t held = p->held.end - p->held.first;
    float *array[4];
    int count = changed_arrays(p, saved->penalty_due, array);
    sdr_cells_unpack(p);
    for (int i = 0; i < count && saved->array[i]; i++)
        memcpy(array[i] + p->held.first, saved->array[i], held * sizeof(float));
    p->penalty_due = saved->penalty_due;
    sdr_saved_free(saved);
}

void sdr_saved_free(struct sdr_saved *saved)
{
    for (int i = 0; i < 4; i++)
        sdr_release(saved->array[i]);
    *saved = (struct sdr_saved){0};
}
