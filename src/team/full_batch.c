/* Full-batch helpers for strategies that take their own steps: sums over all rows in double, and
   the proximal step of the penalty. */
#include "base/memory.h"
#include "run/run.h"
#include "team/node.h"
#include "train.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum sdr_status sdr_node_array(struct sdr_node *node, const char *name, uint64_t count,
                               double **value)
{
    for (int i = 0; i < node->arrays; i++)
        if (strcmp(node->array[i].name, name) == 0) {
            *value = node->array[i].value;
            return node->array[i].count == count
                       ? SDR_OK
                       : sdr_fail(SDR_BAD_FILE, "the checkpoint is of another model");
        }
    if (node->arrays == SDR_NODE_ARRAYS) /* a checkpoint may contain unknown arrays */
        return sdr_fail(SDR_BAD_FILE, "the checkpoint is of another model");
    struct sdr_node_array *array = &node->array[node->arrays];
    SDR_TRY(sdr_allocate(&array->value, count, sizeof(double), name));
    snprintf(array->name, sizeof array->name, "%s", name);
    array->count = count;
    node->arrays++;
    *value = array->value;
    return SDR_OK;
}

enum sdr_status sdr_node_array_renew(struct sdr_node *node, const char *name, uint64_t count,
                                     double **value)
{
    for (int i = 0; i < node->arrays; i++)
        if (strcmp(node->array[i].name, name) == 0) {
            struct sdr_node_array *array = &node->array[i];
            SDR_TRY(sdr_allocate(value, count, sizeof(double), name));
            sdr_release(array->value);
            array->value = *value;
            array->count = count;
            return SDR_OK;
        }
    return sdr_node_array(node, name, count, value);
}

uint64_t sdr_values(const struct sdr_node *node)
{
    return node->run->parameters.layout->count;
}

const float *sdr_weights(struct sdr_node *node)
{
    return sdr_parameters_weights(&node->run->parameters);
}

/* The block of value i; padding belongs to the block before it. */
static const struct sdr_block *block_of(const struct sdr_layout *layout, uint64_t i)
{
    int b = layout->blocks - 1;
    while (b > 0 && i < layout->block[b].offset)
        b--;
    return &layout->block[b];
}

double sdr_unit(const struct sdr_node *node, uint64_t i)
{
    const struct sdr_parameters *p = &node->run->parameters;
    const struct sdr_block *block = block_of(p->layout, i);
    uint64_t row = (i - block->offset) / block->cols;
    return p->rule.scale && block->per_feature && row < block->rows ? p->rule.scale[row] : 1.0;
}

static struct sdr_view view_of(const struct sdr_node *node)
{
    struct sdr_run *run = node->run;
    return (struct sdr_view){.problem = &run->problem,
                             .block = run->parameters.layout->block,
                             .w = run->parameters.value,
                             .version = run->parameters.version};
}

static struct sdr_batch all_rows(const struct sdr_run *run)
{
    return (struct sdr_batch){.rows = &run->data->rows,
                              .row = run->set.train_rows.row,
                              .count = run->set.train_rows.count};
}

bool sdr_has_full_gradient(const struct sdr_node *node)
{
    const struct sdr_model_kind *kind = node->run->use.kind;
    return kind->full && kind->full->gradient && kind->curvature > 0;
}

bool sdr_has_rounds(const struct sdr_node *node)
{
    return node->run->use.kind->full && node->run->use.kind->full->round;
}

static enum sdr_status full_gradient(struct sdr_node *node, const double *w, bool curve,
                                     double *loss, double *gradient)
{
    const struct sdr_run *run = node->run;
    struct sdr_view view = view_of(node);
    struct sdr_batch rows = all_rows(run);
    memset(gradient, 0, run->parameters.layout->count * sizeof *gradient); /* padding */
    return run->use.kind->full->gradient(run->use.kind, &view, &rows, sdr_run_threads(run), w,
                                         curve, loss, gradient);
}

enum sdr_status sdr_full_gradient(struct sdr_node *node, const double *w, double *loss,
                                  double *gradient)
{
    return full_gradient(node, w, false, loss, gradient);
}

enum sdr_status sdr_curve(struct sdr_node *node, const double *v, double *product)
{
    double none;
    return full_gradient(node, v, true, &none, product);
}

enum sdr_status sdr_curvatures(struct sdr_node *node, double *diagonal, double *most)
{
    const struct sdr_run *run = node->run;
    struct sdr_view view = view_of(node);
    struct sdr_batch rows = all_rows(run);
    memset(diagonal, 0, run->parameters.layout->count * sizeof *diagonal); /* padding */
    return run->use.kind->full->curvatures(run->use.kind, &view, &rows, sdr_run_threads(run),
                                           diagonal, most);
}

enum sdr_status sdr_full_round(struct sdr_node *node, double *loss, double *w)
{
    struct sdr_run *run = node->run;
    struct sdr_view view = view_of(node);
    struct sdr_batch rows = all_rows(run);
    return run->use.kind->full->round(&view, &rows, sdr_run_threads(run), &run->shared.round_memory,
                                      loss, w);
}

const char *sdr_rounds_converged(const struct sdr_node *node)
{
    return node->run->use.kind->full->converged;
}

void sdr_stop(struct sdr_node *node, const char *why)
{
    node->run->end.enough = why;
}

void sdr_put(struct sdr_node *node, const double *w, double loss)
{
    struct sdr_run *run = node->run;
    for (uint64_t i = 0; i < run->parameters.layout->count; i++)
        run->parameters.value[i] = (float)w[i];
    run->parameters.version++;
    double weight = run->set.train_rows.count;
    node->loss_sum->loss += loss * weight;
    node->loss_sum->weight += weight;
}

double sdr_penalty(struct sdr_node *node, const double *w)
{
    return sdr_parameters_penalty(&node->run->parameters, NULL, w);
}

void sdr_penalty_of(const struct sdr_node *node, uint64_t i, double *l1, double *l2)
{
    const struct sdr_parameters *p = &node->run->parameters;
    const struct sdr_penalty *penalty = &p->rule.penalty;
    double unit = penalty->standardize ? sdr_unit(node, i) : 1;
    bool penalised = block_of(p->layout, i)->penalised;
    *l1 = penalised ? penalty->l1 / unit : 0;
    *l2 = penalised ? penalty->l2 / (unit * unit) : 0;
}

bool sdr_has_groups(const struct sdr_node *node)
{
    return node->run->parameters.rule.penalty.group > 0;
}

/* Proximal step of one row of a penalised block. */
static void shrink_row(const struct sdr_penalty *penalty, double unit, double step, uint32_t cols,
                       double *row)
{
    double one = step * unit * (penalty->standardize ? 1 : unit), norm = 0;
    double two = step * (penalty->standardize ? 1 : unit * unit);
    for (uint32_t k = 0; k < cols; k++) {
        double size = fmax(fabs(row[k]) - one * penalty->l1, 0);
        row[k] = copysign(size, row[k]);
        norm += size * size;
    }
    norm = sqrt(norm);
    double keep = norm > 0 ? fmax(norm - one * penalty->group, 0) / norm : 0;
    for (uint32_t k = 0; k < cols; k++)
        row[k] *= keep / (1 + two * penalty->l2);
}

void sdr_proximal(struct sdr_node *node, double *w, double step)
{
    const struct sdr_parameters *p = &node->run->parameters;
    const struct sdr_penalty *penalty = &p->rule.penalty;
    if (penalty->l1 == 0 && penalty->l2 == 0 && penalty->group == 0)
        return;
    for (int b = 0; b < p->layout->blocks; b++) {
        const struct sdr_block *block = &p->layout->block[b];
        const float *scale = block->per_feature ? p->rule.scale : NULL;
        for (uint32_t j = 0; j < block->rows && block->penalised; j++)
            shrink_row(penalty, scale ? scale[j] : 1.0, step, block->cols,
                       w + block->offset + (uint64_t)j * block->cols);
    }
}
