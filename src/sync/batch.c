/* Full-batch methods.

   lbfgs:       L-BFGS, and OWL-QN with an L1 penalty (lbfgs.c)
   plain:       w ← prox(w − η∇f(w))
   fista:       accelerated, FISTA (Beck and Teboulle, 2009), y ← w' + ((t−1)/t')(w' − w),
                t' = (1 + √(1 + 4t²))/2; restarts when the step opposes the momentum
                (O'Donoghue and Candès, 2015)
   optimizer:   steps of --optimizer
   kmeans:      Lloyd's algorithm

   Plain and fista end when STEPS steps in a row have lowered the objective by less than 1e-9 of it.
   The step of plain and fista is 1/L. L bounds the curvature of the mean loss: the largest
   eigenvalue of curvature·XᵀX/N in scaled units, by power iteration. */
#include "base/rng.h"
#include "sync/lbfgs.h"

#include <math.h>
#include <string.h>

struct options {
    int method;
};
enum { AUTO, LBFGS, FISTA, PLAIN, OPTIMIZER };
static const struct sdr_option table[] = {
    {"method", SDR_CHOICE, "auto", "auto|lbfgs|fista|plain|optimizer", 0, 0,
     "L-BFGS (with --l1: OWL-QN), accelerated proximal gradient steps, plain ones, or steps of "
     "--optimizer; auto: lbfgs, or fista with --group-lasso",
     offsetof(struct options, method), 0},
    {0}};

struct state {
    double bound;     /* L */
    double momentum;  /* t */
    double objective; /* at the last gradient's point */
    double lowest;    /* objective */
    uint64_t flat;    /* steps since it was last lowered */
    struct sdr_lbfgs lbfgs;
};

struct arrays {
    double *w, *y, *gradient, *last;
    uint64_t count;
};

static enum sdr_status open_arrays(struct sdr_node *node, struct arrays *a)
{
    a->count = sdr_values(node);
    SDR_TRY(sdr_node_array(node, "w", a->count, &a->w));
    SDR_TRY(sdr_node_array(node, "y", a->count, &a->y));
    SDR_TRY(sdr_node_array(node, "gradient", a->count, &a->gradient));
    return sdr_node_array(node, "last", a->count, &a->last);
}

static double dot(const double *a, const double *b, uint64_t n)
{
    double sum = 0;
    for (uint64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* L: the largest eigenvalue of the Hessian's bound, in scaled units, by power iteration. */
static enum sdr_status find_bound(struct sdr_node *node, struct arrays *a, double *found)
{
    enum { ITERATIONS = 200, STEADY = 8 };
    double bound = 0;
    *found = 1;
    int steady =
        0; /* consecutive small changes; one alone also occurs if the start is nearly orthogonal */
    struct sdr_stream stream = sdr_stream_open(1, SDR_FOR_START, a->count);
    for (uint64_t i = 0; i < a->count; i++)
        a->y[i] = sdr_stream_normal(&stream);
    for (int iteration = 0; iteration < ITERATIONS && steady < STEADY; iteration++) {
        double norm = sqrt(dot(a->y, a->y, a->count)), before = bound;
        for (uint64_t i = 0; i < a->count; i++)
            a->w[i] = sdr_unit(node, i) * (a->y[i] / norm);
        SDR_TRY(sdr_curve(node, a->w, a->y));
        for (uint64_t i = 0; i < a->count; i++)
            a->y[i] *= sdr_unit(node, i);
        bound = sqrt(dot(a->y, a->y, a->count));
        if (!(bound > 0))
            return SDR_OK;
        steady = fabs(bound - before) < 1e-3 * bound ? steady + 1 : 0;
    }
    *found = 1.02 * bound; /* margin: power iteration converges from below */
    return SDR_OK;
}

/* One proximal step from y to w; `last` keeps the previous w. */
static void proximal_step(struct sdr_node *node, struct arrays *a, double bound)
{
    for (uint64_t i = 0; i < a->count; i++) {
        double unit = sdr_unit(node, i);
        a->last[i] = a->w[i];
        a->w[i] = a->y[i] - unit * unit / bound * a->gradient[i];
    }
    sdr_proximal(node, a->w, 1 / bound);
}

/* Extrapolates y beyond w, or restarts if the step opposes the momentum. */
static void accelerate(struct sdr_node *node, struct arrays *a, struct state *s)
{
    double against = 0;
    for (uint64_t i = 0; i < a->count; i++) {
        double unit = sdr_unit(node, i);
        against += (a->y[i] - a->w[i]) * (a->w[i] - a->last[i]) / (unit * unit);
    }
    double next = against > 0 ? 1.0 : (1 + sqrt(1 + 4 * s->momentum * s->momentum)) / 2;
    double beyond = against > 0 ? 0.0 : (s->momentum - 1) / next;
    for (uint64_t i = 0; i < a->count; i++)
        a->y[i] = a->w[i] + beyond * (a->w[i] - a->last[i]);
    s->momentum = next;
}

/* Whether the objective rose too much. Plain steps never raise it; accelerated ones may, to at most
   twice the last. */
static bool rose(const struct state *s, double objective, bool accelerated)
{
    double allowed =
        accelerated ? 2 * s->objective + 1e-12 : s->objective + 1e-6 * fabs(s->objective);
    return !(objective <= allowed);
}

/* Small falls add up: `lowest` stays until they amount to something. */
static bool is_flat(struct state *s)
{
    enum { STEPS = 20 };
    bool fell = !isfinite(s->lowest) || s->objective < s->lowest - 1e-9 * fabs(s->lowest);
    s->flat = fell ? 0 : s->flat + 1;
    s->lowest = fell ? s->objective : s->lowest;
    return s->flat >= STEPS;
}

static enum sdr_status own_steps(struct sdr_node *node, bool accelerated)
{
    struct state *s = node->state;
    struct sdr_batch batch = {0};
    struct arrays a;
    SDR_TRY(open_arrays(node, &a));
    if (s->bound == 0) {
        const float *start = sdr_weights(node);
        SDR_TRY(find_bound(node, &a, &s->bound));
        s->momentum = 1;
        s->objective = s->lowest = INFINITY;
        for (uint64_t i = 0; i < a.count; i++)
            a.w[i] = a.y[i] = a.last[i] = start[i];
    }
    for (;;) {
        bool more;
        double loss;
        SDR_TRY(sdr_next_full_batch(node, &batch, &more));
        if (!more)
            return SDR_OK;
        SDR_TRY(sdr_full_gradient(node, a.y, &loss, a.gradient));
        double objective = loss + sdr_penalty(node, a.y);
        if (rose(s, objective, accelerated)) {
            /* L was too small: double it and repeat from the last good point. */
            const double *good = accelerated ? a.w : a.last;
            s->bound *= 2;
            s->momentum = 1;
            memcpy(a.w, good, a.count * sizeof *a.w);
            memcpy(a.y, a.w, a.count * sizeof *a.y);
            SDR_TRY(sdr_full_gradient(node, a.y, &loss, a.gradient));
            objective = loss + sdr_penalty(node, a.y);
        }
        s->objective = objective;
        proximal_step(node, &a, s->bound);
        if (accelerated)
            accelerate(node, &a, s);
        else
            memcpy(a.y, a.w, a.count * sizeof *a.y);
        sdr_put(node, a.w, loss);
        if (is_flat(s))
            sdr_stop(node, SDR_CONVERGED);
    }
}

static enum sdr_status optimizer_steps(struct sdr_node *node)
{
    struct sdr_batch batch = {0};
    struct sdr_view view;
    struct sdr_update gradient;
    for (;;) {
        bool more;
        SDR_TRY(sdr_next_full_batch(node, &batch, &more));
        if (!more)
            return SDR_OK;
        sdr_pull(node, &batch, &view);
        SDR_TRY(sdr_gradient(node, &view, &batch, &gradient));
        sdr_commit(node, &gradient);
    }
}

/* Rounds of the model itself (k-means: Lloyd's algorithm), until one changes nothing. */
static enum sdr_status rounds(struct sdr_node *node)
{
    struct state *s = node->state;
    struct sdr_batch batch = {0};
    double *w, *last, loss;
    uint64_t count = sdr_values(node);
    SDR_TRY(sdr_node_array(node, "w", count, &w));
    SDR_TRY(sdr_node_array(node, "last", count, &last));
    for (uint64_t i = 0; i < count && s->bound == 0; i++)
        w[i] = sdr_weights(node)[i];
    s->bound = 1; /* marks the arrays as initialised, also for a resumed run */
    for (;;) {
        bool more;
        SDR_TRY(sdr_next_full_batch(node, &batch, &more));
        if (!more)
            return SDR_OK;
        memcpy(last, w, count * sizeof *w);
        SDR_TRY(sdr_full_round(node, &loss, w));
        sdr_put(node, w, loss);
        if (memcmp(last, w, count * sizeof *w) == 0)
            sdr_stop(node, sdr_rounds_converged(node));
    }
}

static enum sdr_status worker(struct sdr_node *node)
{
    const struct options *o = node->options;
    if (sdr_has_rounds(node) && o->method != AUTO)
        return sdr_fail(SDR_USAGE,
                        "--sync batch with clusters is Lloyd's algorithm: it has no method");
    if (sdr_has_rounds(node))
        return rounds(node);
    if (o->method == OPTIMIZER)
        return optimizer_steps(node);
    if (!sdr_has_full_gradient(node))
        return sdr_fail(SDR_USAGE, "--sync batch needs a smooth loss: hinge is not "
                                   "(try --model squared-hinge, or batch:optimizer)");
    if (o->method == LBFGS && sdr_has_groups(node))
        return sdr_fail(SDR_USAGE, "--sync batch:lbfgs has no --group-lasso (try batch:fista)");
    if (o->method == LBFGS || (o->method == AUTO && !sdr_has_groups(node)))
        return sdr_lbfgs_steps(node, &((struct state *)node->state)->lbfgs);
    return own_steps(node, o->method != PLAIN);
}

static bool takes_own_steps(const void *options)
{
    return ((const struct options *)options)->method != OPTIMIZER;
}

SDR_REGISTER(strategy, batch) = {
    .name = "batch",
    .summary = "full batches: one pass over the rows per epoch, by L-BFGS (with --l1: OWL-QN)",
    .options = table,
    .options_size = sizeof(struct options),
    .state_size = sizeof(struct state),
    .full_batch = true,
    .repeatable = true,
    .ordered = true,
    .own_steps = takes_own_steps,
    .team = &(const struct sdr_team_ops){.worker = worker},
};
