/* The node of a worker that runs alone: dealing batches, gradients, steps. */
#include "node.h"
#include "base/clock.h"
#include "base/memory.h"
#include "run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LOOK_EVERY = 1024 }; /* rows between two looks at the clock */

/* A loss beyond all reason is the end of a run, long before it overflows. */
static void check_health(struct sdr_run *run)
{
    double typical = run->weight_sum > 0 ? run->loss_sum / run->weight_sum : 0;
    double bound =
        1e9 * (run->kind->task == SDR_REGRESSION
                   ? run->target_size * run->target_size + run->target_mean * run->target_mean
                   : 1);
    if (!isfinite(typical) || typical > bound) {
        run->over = run->diverged = true;
        run->why_over = "diverged";
    }
}

/* Looks up from the work: requests and the clock. */
static enum sdr_status look_around(struct sdr_run *run)
{
    unsigned requests = atomic_exchange(&run->requests, 0);
    const struct sdr_settings *s = &run->options.settings;
    if (requests & SDR_REQUEST_STOP) {
        run->over = run->preempted = true;
        run->why_over = "stopped on request";
        return s->run ? sdr_checkpoint_write(run) : SDR_OK;
    }
    if ((requests & SDR_REQUEST_CHECKPOINT) && s->run)
        SDR_TRY(sdr_checkpoint_write(run));
    return sdr_watch_tick(run);
}

/* True once per LOOK_EVERY rows. */
static bool due(const struct sdr_run *run, uint64_t dealt)
{
    return run->at / LOOK_EVERY != (run->at - dealt) / LOOK_EVERY;
}

/* Data that streams: on entering a block, ask for it and let the last one go. */
static void move_window(struct sdr_run *run)
{
    uint64_t size = run->data->stream_rows;
    if (!run->data->streams || run->shuffle == SDR_SHUFFLE_ROWS)
        return;
    uint64_t first = run->order[run->at] / size * size;
    if (first == run->window)
        return;
    sdr_data_will_need(run->data, first, first + size);
    if (run->window != UINT64_MAX)
        sdr_data_done_with(run->data, run->window, run->window + size);
    run->window = first;
}

static enum sdr_status between_batches(struct sdr_run *run, uint64_t dealt)
{
    const struct sdr_settings *s = &run->options.settings;
    bool ended = run->at == run->train_rows.count, look = ended || due(run, dealt);
    if (look)
        check_health(run);
    if (ended && !run->over)
        SDR_TRY(sdr_epoch_end(run));
    if (look && !run->over)
        SDR_TRY(look_around(run));
    if (!run->over && s->updates && run->parameters.version >= s->updates) {
        run->over = true;
        run->why_over = "all updates done";
    }
    return SDR_OK;
}

static enum sdr_status deal(struct sdr_run *run, uint32_t most, struct sdr_batch *batch, bool *more)
{
    uint64_t left = run->train_rows.count - run->at;
    *batch = (struct sdr_batch){.rows = &run->data->rows,
                                .row = run->order + run->at,
                                .count = left < most ? (uint32_t)left : most,
                                .number = run->parameters.version};
    *more = !run->over;
    if (*more) {
        move_window(run);
        sdr_order_prefetch(run);
    }
    return SDR_OK;
}

enum sdr_status sdr_deal(struct sdr_node *node, struct sdr_batch *batch, bool *more)
{
    struct sdr_run *run = node->run;
    if (batch->count) /* not the first: account for the last one */
        SDR_TRY(between_batches(run, batch->count));
    return deal(run, (uint32_t)run->options.settings.batch, batch, more);
}

enum sdr_status sdr_deal_all(struct sdr_node *node, struct sdr_batch *batch, bool *more)
{
    struct sdr_run *run = node->run;
    if (batch->count)
        SDR_TRY(between_batches(run, batch->count));
    return deal(run, UINT32_MAX, batch, more);
}

void sdr_pull(struct sdr_node *node, const struct sdr_batch *batch, struct sdr_view *view)
{
    struct sdr_parameters *p = &node->run->parameters;
    sdr_parameters_settle(p, batch);
    *view = (struct sdr_view){p->version, p->value};
}

void sdr_gradient(struct sdr_node *node, const struct sdr_view *view, const struct sdr_batch *batch,
                  struct sdr_update *update)
{
    struct sdr_run *run = node->run;
    run->kind->gradient(run->kind, &run->problem, run->parameters.block, view->w, batch,
                        run->scratch, update);
}

static void count(struct sdr_run *run, uint64_t rows, double loss, double weight)
{
    run->at += rows;
    run->rows_done += rows;
    run->loss_sum += loss;
    run->weight_sum += weight;
}

void sdr_commit(struct sdr_node *node, const struct sdr_update *update)
{
    struct sdr_run *run = node->run;
    double epoch = (double)run->epoch + (double)run->at / run->train_rows.count;
    double factor = run->schedule->factor(run->schedule_options, epoch, run->length);
    sdr_parameters_apply(&run->parameters, update, run->rate * factor);
    count(run, update->examples.count, update->loss, update->weight);
    if (run->epoch >= run->average_from && run->parameters.version % run->average_every == 0)
        sdr_parameters_average(&run->parameters);
}

/* ---- for loops that take their own steps ---- */
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
    struct sdr_node_array *array = &node->array[node->arrays];
    SDR_TRY(sdr_allocate(&array->value, count, sizeof(double), name));
    snprintf(array->name, sizeof array->name, "%s", name);
    array->count = count;
    node->arrays++;
    *value = array->value;
    return SDR_OK;
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
static double sum_rows(struct sdr_run *run, const double *w, bool curve, double *gradient)
{
    const struct sdr_problem *problem = &run->problem;
    const struct sdr_parameters *p = &run->parameters;
    uint32_t outputs = problem->outputs, feature;
    uint64_t intercept = problem->intercept ? p->block[1].offset : 0;
    double total = 0;
    float *u = run->scratch;
    memset(gradient, 0, p->count * sizeof *gradient);
    for (uint32_t i = 0; i < run->train_rows.count; i++) {
        uint32_t row = run->train_rows.row ? run->train_rows.row[i] : i;
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
    *loss = sum_rows(node->run, w, false, gradient);
}

void sdr_curve(struct sdr_node *node, const double *v, double *product)
{
    sum_rows(node->run, v, true, product);
}

void sdr_put(struct sdr_node *node, const double *w, double loss)
{
    struct sdr_run *run = node->run;
    for (uint64_t i = 0; i < run->parameters.count; i++)
        run->parameters.value[i] = (float)w[i];
    run->parameters.version++;
    double weight = run->train_rows.count;
    count(run, run->train_rows.count, loss * weight, weight);
}

double sdr_penalty(struct sdr_node *node, const double *w)
{
    struct sdr_parameters *p = &node->run->parameters;
    for (uint64_t i = 0; i < p->count; i++)
        p->published[i] = (float)w[i];
    return sdr_parameters_penalty(p, p->published);
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
