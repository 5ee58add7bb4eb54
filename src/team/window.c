/* Windows of rows whose components are trained in parallel (sync/cyclades.c).

   The first epoch determines the rows of each window; later epochs shuffle the windows and the rows
   within each, so components are computed only once. The place of a row in its window determines
   its step size and penalty due, and rows of a component keep their order. So the result equals
   that of one worker that trains the window in order. The intercept belongs to all components: it
   is constant during a window and makes one step at its end. */
#include "team/window.h"
#include "base/memory.h"
#include "base/rng.h"
#include "run/run.h"
#include "schedule/components.h"

#include <math.h>
#include <string.h>

struct sdr_window {
    uint32_t rows, count; /* rows of a window; number of windows */
    struct sdr_components components;
    uint32_t *base;   /* owned: the rows of all windows, window by window */
    uint32_t *number; /* owned: this epoch's order of windows */
    uint8_t *planned; /* owned, per window: whether its rows have bins */
    uint8_t *bin;     /* owned, per row of the data */
    bool laid;        /* base is initialised */
    /* The current window. */
    uint32_t *row, *place; /* owned: sorted by bin, in window order within each */
    uint32_t start[SDR_BINS + 1];
    double *rate;               /* owned, by place */
    double *penalty_due;        /* owned, by place: the total before it; one more at the end */
    float *dloss;               /* owned, by place */
};

/* ---- window length ---- */
enum sdr_status sdr_window_choose(const struct sdr_run *run, uint64_t *rows)
{
    enum { LEAST = 128, MOST = 4096 };
    const struct sdr_row_list *list = &run->set.train_rows;
    struct sdr_components c = {0};
    uint32_t *row = NULL, most = list->count / 4 < MOST ? list->count / 4 : MOST;
    uint8_t *bin = NULL;
    enum sdr_status status;
    *rows = 0;
    if (run->data->rows.dense || most < LEAST)
        return SDR_OK;
    SDR_CHECK(sdr_components_create(&c, run->data->rows.features, MOST));
    SDR_CHECK(sdr_allocate(&row, MOST, sizeof *row, "a window"));
    SDR_CHECK(sdr_allocate(&bin, run->data->rows.count, 1, "a window"));
    for (uint32_t size = LEAST; size <= most; size *= 2) {
        sdr_sample(run->options.settings.seed, list->count, size, row);
        for (uint32_t i = 0; i < size; i++)
            row[i] = sdr_listed(list, row[i]);
        if (sdr_components_find(&c, &run->data->rows, row, size, SDR_BINS, bin) > 0.1)
            break;
        *rows = size;
    }
cleanup:
    sdr_components_destroy(&c);
    sdr_release(row);
    sdr_release(bin);
    return status;
}

enum sdr_status sdr_window_create(struct sdr_run *run)
{
    struct sdr_window *w;
    uint32_t rows = (uint32_t)run->shared.plan.share, count = run->set.train_rows.count;
    SDR_TRY(sdr_allocate(&w, 1, sizeof *w, "windows"));
    run->shared.window = w;
    w->rows = rows;
    w->count = (count + rows - 1) / rows;
    SDR_TRY(sdr_components_create(&w->components, run->problem.features, rows));
    SDR_TRY(sdr_allocate(&w->base, count, sizeof *w->base, "windows"));
    SDR_TRY(sdr_allocate(&w->number, w->count, sizeof *w->number, "windows"));
    SDR_TRY(sdr_allocate(&w->planned, w->count, 1, "windows"));
    SDR_TRY(sdr_allocate(&w->bin, run->data->rows.count, 1, "windows"));
    SDR_TRY(sdr_allocate(&w->row, rows, sizeof *w->row, "windows"));
    SDR_TRY(sdr_allocate(&w->place, rows, sizeof *w->place, "windows"));
    SDR_TRY(sdr_allocate(&w->rate, rows, sizeof *w->rate, "windows"));
    SDR_TRY(sdr_allocate(&w->penalty_due, (size_t)rows + 1, sizeof *w->penalty_due, "windows"));
    return sdr_allocate(&w->dloss, (size_t)rows * run->problem.outputs, sizeof *w->dloss,
                        "windows");
}

void sdr_window_destroy(struct sdr_window *w)
{
    if (!w)
        return;
    sdr_components_destroy(&w->components);
    sdr_release(w->base);
    sdr_release(w->number);
    sdr_release(w->planned);
    sdr_release(w->bin);
    sdr_release(w->row);
    sdr_release(w->place);
    sdr_release(w->rate);
    sdr_release(w->penalty_due);
    sdr_release(w->dloss);
    sdr_release(w);
}

/* ---- the order of windows ---- */
bool sdr_window_needs_base(const struct sdr_run *run)
{
    return !run->shared.window->laid;
}

void sdr_window_order(struct sdr_run *run)
{
    struct sdr_window *w = run->shared.window;
    uint32_t count = run->set.train_rows.count, at = 0, inner[4096];
    uint64_t seed = run->options.settings.seed;
    if (!w->laid)
        memcpy(w->base, run->rows.order, count * sizeof *w->base);
    w->laid = true;
    for (uint32_t i = 0; i < w->count; i++)
        w->number[i] = i;
    if (run->progress.epoch == 0 || run->rows.shuffle == SDR_SHUFFLE_NONE) {
        memcpy(run->rows.order, w->base, count * sizeof *w->base);
        return;
    }
    struct sdr_stream stream = sdr_stream_open(seed, SDR_FOR_BLOCK_SHUFFLE, run->progress.epoch);
    sdr_shuffle(w->number, w->count - 1, &stream); /* the last window may be short and stays last */
    for (uint32_t i = 0; i < w->count; i++) {
        uint32_t first = w->number[i] * w->rows;
        uint32_t rows = count - first < w->rows ? count - first : w->rows;
        stream = sdr_stream_open(seed, SDR_FOR_SHUFFLE, run->progress.epoch << 32 | w->number[i]);
        sdr_shuffle(inner, rows, &stream);
        for (uint32_t k = 0; k < rows; k++)
            run->rows.order[at++] = w->base[first + inner[k]];
    }
}

/* ---- components ---- */
static void plan_window(struct sdr_run *run, uint32_t number)
{
    struct sdr_window *w = run->shared.window;
    uint32_t first = number * w->rows, count = run->set.train_rows.count - first;
    sdr_components_find(&w->components, &run->data->rows, w->base + first,
                        count < w->rows ? count : w->rows, SDR_BINS, w->bin);
    w->planned[number] = 1;
}

void sdr_plan_ahead(struct sdr_node *node, const struct sdr_batch *window)
{
    struct sdr_window *w = node->run->shared.window;
    uint64_t next = window->at / w->rows + 1;
    if (node->workers > 1 && next < w->count && !w->planned[w->number[next]])
        plan_window(node->run, w->number[next]);
}

/* Counting sort by bin, stable. */
static void sort_by_bin(struct sdr_window *w, const struct sdr_batch *window)
{
    uint32_t next[SDR_BINS], count[SDR_BINS] = {0};
    for (uint32_t i = 0; i < window->count; i++)
        count[w->bin[window->row[i]]]++;
    w->start[0] = 0;
    for (int b = 0; b < SDR_BINS; b++) {
        next[b] = w->start[b];
        w->start[b + 1] = w->start[b] + count[b];
    }
    for (uint32_t i = 0; i < window->count; i++) {
        uint32_t to = next[w->bin[window->row[i]]]++;
        w->row[to] = window->row[i];
        w->place[to] = i;
    }
}

void sdr_window_open(struct sdr_run *run, const struct sdr_batch *window)
{
    struct sdr_window *w = run->shared.window;
    const struct sdr_parameters *p = &run->parameters;
    sdr_rates(run, window->at, window->count, w->rate);
    if (run->workers > 1) {
        uint32_t number = w->number[window->at / w->rows];
        if (!w->planned[number])
            plan_window(run, number);
        sort_by_bin(w, window);
    }
    if (!p->penalty_paid)
        return;
    w->penalty_due[0] = p->penalty_due;
    for (uint32_t i = 0; i < window->count; i++)
        w->penalty_due[i + 1] =
            w->penalty_due[i] + sdr_step_penalty(p, window->number + i + 1, w->rate[i]);
}

/* ---- training ---- */
/* One step on one row of a model with several outputs, without the intercept. */
static enum sdr_status step_apart(struct sdr_node *node, const struct sdr_batch *window,
                                  uint32_t row, uint32_t at)
{
    struct sdr_run *run = node->run;
    struct sdr_window *w = run->shared.window;
    struct sdr_parameters *p = node->parameters;
    uint32_t outputs = run->problem.outputs;
    struct sdr_batch batch = {.rows = window->rows, .row = &row, .count = 1};
    struct sdr_update update;
    if (p->penalty_paid && w->penalty_due[at] > 0) {
        p->version = window->number + at - 1; /* the previous step */
        p->penalty_due = w->penalty_due[at];
        sdr_parameters_begin(p, w->rate[at]);
        sdr_parameters_catch_up(p, &batch, sdr_all(p->layout));
    }
    p->version = window->number + at;
    struct sdr_view view = {&run->problem, p->layout->block, p->value, p->version};
    SDR_TRY(sdr_batch_gradient(&node->space, &view, &batch, 0, NULL, NULL, &update));
    sdr_parameters_begin(p, w->rate[at]);
    sdr_parameters_apply_blocks(p, &update, true);
    if (run->shared.plan.known.all_conflict) /* a window of one row: step the intercept too */
        sdr_parameters_apply_blocks(p, &update, false);
    for (int i = 0; i < update.parts && !run->shared.plan.known.all_conflict; i++)
        if (!p->layout->block[update.part[i].block].per_feature)
            memcpy(w->dloss + (size_t)at * outputs, update.part[i].value, outputs * sizeof(float));
    node->loss_sum->loss += update.loss;
    node->loss_sum->weight += update.weight;
    return SDR_OK;
}

/* Steps on consecutive rows: the whole window of a single worker. */
static void fused_window(struct sdr_node *node, const struct sdr_batch *window,
                         struct sdr_fused_steps *fused)
{
    enum { CHUNK = 64 };
    struct sdr_run *run = node->run;
    uint32_t ahead[CHUNK];
    for (uint32_t from = 0; from < window->count; from += CHUNK) {
        fused->count = window->count - from < CHUNK ? window->count - from : CHUNK;
        fused->row = window->row + from;
        fused->rate = run->shared.window->rate + from;
        fused->dloss = run->shared.window->dloss + from;
        fused->ahead = sdr_order_ahead(run, fused->row, fused->count, ahead) ? ahead : NULL;
        sdr_parameters_fused_steps(node->parameters, fused);
    }
}

/* Steps on the rows of one bin. */
static void fused_bin(struct sdr_node *node, const struct sdr_batch *window, uint64_t bin,
                      struct sdr_fused_steps *fused)
{
    enum { AHEAD = 8 };
    struct sdr_window *w = node->run->shared.window;
    uint32_t first = w->start[bin], end = w->start[bin + 1];
    fused->count = end - first;
    fused->row = w->row + first;
    fused->place = w->place + first;
    fused->rate = w->rate;
    fused->penalty_due_at = node->plan->known.penalty ? w->penalty_due : NULL;
    fused->dloss = w->dloss;
    /* Prefetches from this bin or the next; not at the end of the window. */
    fused->ahead = end + AHEAD <= window->count ? w->row + first + AHEAD : NULL;
    sdr_parameters_fused_steps(node->parameters, fused);
}

enum sdr_status sdr_train_apart(struct sdr_node *node, const struct sdr_batch *window, uint64_t bin)
{
    struct sdr_run *run = node->run;
    struct sdr_window *w = run->shared.window;
    bool single_threaded = run->workers == 1;
    uint32_t first = single_threaded ? 0 : w->start[bin],
             end = single_threaded ? window->count : w->start[bin + 1];
    struct sdr_fused_steps fused = {
        .problem = &run->problem, .kind = run->use.kind, .factors = run->shared.factors};
    if (single_threaded && bin > 0)
        return SDR_OK;
    node->loss_sum = &run->shared.losses[bin];
    node->parameters->version = window->number;
    if (!run->shared.plan.known.fused)
        for (uint32_t i = first; i < end; i++)
            SDR_TRY(step_apart(node, window, single_threaded ? window->row[i] : w->row[i],
                               single_threaded ? i : w->place[i]));
    else if (single_threaded)
        fused_window(node, window, &fused);
    else
        fused_bin(node, window, bin, &fused);
    node->loss_sum->loss += fused.loss_sum;
    node->loss_sum->weight += fused.weight_sum;
    node->steps += end - first;
    return SDR_OK;
}

/* The block shared by all rows, which is constant during a window; −1 if there is none. */
static int resting_block(const struct sdr_layout *layout)
{
    for (int b = 0; b < layout->blocks; b++)
        if (!layout->block[b].per_feature && !layout->block[b].fixed)
            return b;
    return -1;
}

/* One step of the intercept on the mean derivative of the window. With plain SGD, whose steps scale
   with the rate, the step is lengthened: as far as the window's rows would have moved it one by
   one, but at most 1/curvature. */
static void step_intercept(struct sdr_run *run, const struct sdr_batch *window)
{
    struct sdr_window *w = run->shared.window;
    double rate = w->rate[0], steps = 1;
    if (run->use.optimizer->rate_power == 2)
        steps = fmin(fmax(1 / (rate * fmax(run->use.kind->curvature, 0.25)), 1), window->count);
    float share = (float)(steps / window->count);
    struct sdr_part part = {.block = resting_block(&run->layout),
                            .form = SDR_FACTORS,
                            .right = SDR_ONES,
                            .count = window->count,
                            .value = w->dloss};
    struct sdr_update update = {.batch = *window, .part = &part, .parts = 1};
    for (uint64_t i = 0; i < (uint64_t)window->count * run->problem.outputs; i++)
        w->dloss[i] *= share;
    sdr_parameters_begin(&run->parameters, rate);
    sdr_parameters_apply_blocks(&run->parameters, &update, false);
}

void sdr_window_close(struct sdr_run *run, const struct sdr_batch *window)
{
    struct sdr_parameters *p = &run->parameters;
    p->version = window->number;
    if (resting_block(&run->layout) >= 0 && !run->shared.plan.known.all_conflict)
        step_intercept(run, window);
    p->version = window->number + window->count - 1;
    sdr_parameters_begin(p, run->shared.window->rate[window->count - 1]);
    p->version++;
    if (p->penalty_paid)
        p->penalty_due = run->shared.window->penalty_due[window->count];
}
