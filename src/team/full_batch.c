/* For strategies that take their own steps on all rows at once: sums over the rows in double, and
   the proximal step of the penalty. */
#include "base/memory.h"
#include "run/run.h"
#include "team/node.h"

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
    if (node->arrays == SDR_NODE_ARRAYS) /* a checkpoint may bring arrays of its own */
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
    return node->run->parameters.count;
}

const float *sdr_weights(struct sdr_node *node)
{
    return sdr_parameters_weights(&node->run->parameters);
}

double sdr_curvature(const struct sdr_node *node)
{
    return node->run->kind->curvature;
}

static inline uint64_t weight_values(const struct sdr_parameters *p)
{
    return (uint64_t)p->block[0].rows * p->block[0].cols;
}

double sdr_unit(const struct sdr_node *node, uint64_t i)
{
    const struct sdr_parameters *p = &node->run->parameters;
    return p->scale && i < weight_values(p) ? p->scale[i / p->block[0].cols] : 1.0;
}

/* Feature n of a row as training sees it, and its number. */
struct entries {
    const struct sdr_problem *problem;
    struct sdr_sparse_row sparse;
    const float *dense;
    uint32_t count;
};

static struct entries entries_of(const struct sdr_problem *problem, uint32_t row)
{
    const struct sdr_rows *rows = problem->rows;
    struct entries e = {.problem = problem};
    if (rows->dense) {
        e.dense = sdr_dense_row(rows, row);
        e.count = rows->features;
    } else {
        e.sparse = sdr_sparse_row(rows, row);
        e.count = e.sparse.n;
    }
    return e;
}

static inline double entry(const struct entries *e, uint32_t n, uint32_t *feature)
{
    if (!e->dense) {
        *feature = sdr_row_index(&e->sparse, n);
        return e->sparse.x[n];
    }
    *feature = n;
    return (double)e->dense[n] - (e->problem->center ? e->problem->center[n] : 0.0f);
}

/* Sums u·x over all rows in double: first-order methods stall on float sums long before they are
   done. u is the slope of the loss at the scores of w, or the scores themselves (curve). */
static double sum_rows(struct sdr_node *node, const double *w, bool curve, double *gradient)
{
    const struct sdr_run *run = node->run;
    const struct sdr_problem *problem = &run->problem;
    const struct sdr_parameters *p = &run->parameters;
    uint32_t outputs = problem->outputs, feature;
    uint64_t intercept = problem->intercept ? p->block[1].offset : 0;
    enum { PASS = 8192 };
    uint32_t passed = 0;
    double total = 0;
    float *u = node->scratch;
    memset(gradient, 0, p->count * sizeof *gradient);
    for (uint32_t i = 0; i < run->train_rows.count; i++) {
        uint32_t row = run->train_rows.row ? run->train_rows.row[i] : i;
        if (row >= passed + PASS) {
            sdr_rows_release(problem->rows, passed, row);
            passed = row;
        }
        struct entries e = entries_of(problem, row);
        for (uint32_t k = 0; k < outputs; k++) {
            double score = problem->intercept ? w[intercept + k] : 0.0;
            for (uint32_t n = 0; n < e.count; n++) {
                double x = entry(&e, n, &feature);
                score += w[(uint64_t)feature * outputs + k] * x;
            }
            u[k] = (float)score;
        }
        double weight = problem->row_weight ? problem->row_weight[row] : 1.0;
        if (!curve)
            total += weight *
                     run->kind->loss(problem->model_options, u, outputs, problem->target[row], u);
        for (uint32_t n = 0; n < e.count; n++) {
            double x = weight * entry(&e, n, &feature);
            for (uint32_t k = 0; k < outputs; k++)
                gradient[(uint64_t)feature * outputs + k] += u[k] * x;
        }
        for (uint32_t k = 0; k < outputs && problem->intercept; k++)
            gradient[intercept + k] += weight * u[k];
    }
    double share = (curve ? run->kind->curvature : 1.0) / run->train_rows.count;
    for (uint64_t i = 0; i < p->count; i++)
        gradient[i] *= share;
    return total / run->train_rows.count;
}

void sdr_full_gradient(struct sdr_node *node, const double *w, double *loss, double *gradient)
{
    *loss = sum_rows(node, w, false, gradient);
}

void sdr_curve(struct sdr_node *node, const double *v, double *product)
{
    sum_rows(node, v, true, product);
}

void sdr_stop(struct sdr_node *node, const char *why)
{
    node->run->enough = why;
}

void sdr_put(struct sdr_node *node, const double *w, double loss)
{
    struct sdr_run *run = node->run;
    for (uint64_t i = 0; i < run->parameters.count; i++)
        run->parameters.value[i] = (float)w[i];
    run->parameters.version++;
    double weight = run->train_rows.count;
    node->loss_sum->loss += loss * weight;
    node->loss_sum->weight += weight;
}

double sdr_penalty(struct sdr_node *node, const double *w)
{
    return sdr_parameters_penalty(&node->run->parameters, NULL, w);
}

void sdr_proximal(struct sdr_node *node, double *w, double step)
{
    const struct sdr_parameters *p = &node->run->parameters;
    const struct sdr_penalty *penalty = &p->penalty;
    uint32_t outputs = p->block[0].cols;
    if (penalty->l1 == 0 && penalty->l2 == 0 && penalty->group == 0)
        return;
    for (uint32_t j = 0; j < p->block[0].rows; j++) {
        double unit = p->scale ? p->scale[j] : 1.0, norm = 0;
        double one = step * unit * (penalty->standardize ? 1 : unit);
        double two = step * (penalty->standardize ? 1 : unit * unit);
        double *row = w + (uint64_t)j * outputs;
        for (uint32_t k = 0; k < outputs; k++) {
            double size = fmax(fabs(row[k]) - one * penalty->l1, 0);
            row[k] = copysign(size, row[k]);
            norm += size * size;
        }
        norm = sqrt(norm);
        double keep = norm > 0 ? fmax(norm - one * penalty->group, 0) / norm : 0;
        for (uint32_t k = 0; k < outputs; k++)
            row[k] *= keep / (1 + two * penalty->l2);
    }
}
