/* Fused steps: catch up, score, loss and step, row by row; bit-identical to pull, gradient and
   commit. Included by step_loops.h. */

/* Applies the penalties due to the values of a row. */
static void catch_up_for(const struct sdr_fused_steps *fused, uint32_t row)
{
    const struct sdr_rows *rows = fused->problem->rows;
    if (rows->dense) {
        catch_up_all(fused->weight, rows->features, 1);
        return;
    }
    struct sdr_sparse_row r = sdr_sparse_row(rows, row);
    if (r.index16)
        catch_up16(fused->weight, r.index16, r.n, 1);
    else
        catch_up32(fused->weight, r.index32, r.n, 1);
}

/* Adds the loss of an example and returns its derivative at the score. */
SDR_INLINE float dloss_at(struct sdr_fused_steps *fused, float score, float target, float weight)
{
    float dloss;
    if (fused->intercept)
        score += fused->intercept->value[0];
    fused->loss_sum +=
        weight * fused->kind->loss(fused->problem->model_options, &score, 1, target, &dloss);
    fused->weight_sum += weight;
    return weight * dloss;
}

SDR_INLINE float dloss_of(struct sdr_fused_steps *fused, uint32_t row, float score)
{
    const struct sdr_problem *problem = fused->problem;
    if (!problem->row_weight) /* spares the step a multiplication that it would wait for */
        return dloss_at(fused, score, problem->target[row], 1.0f);
    return dloss_at(fused, score, problem->target[row], problem->row_weight[row]);
}

#include "optimizer/cell_loops.h"

/* Steps the intercept and adds the penalty due of this step. shared: a step counter is stored
   behind the intercept and reveals lost steps. It is loaded before the intercept and stored after
   it: a store that overwrites another worker's step overwrites its count too. */
SDR_INLINE void finish_row(struct sdr_fused_steps *fused, const float *c, uint64_t update,
                           uint32_t at, double rate, float dloss, const bool shared)
{
    const struct sdr_optimizer *o = fused->optimizer;
    if (fused->dloss) {
        fused->dloss[at] = dloss;
    } else if (fused->intercept && !fused->factors) {
        float own[SDR_CONSTANTS] = {0};
        bool differs = o->own_penalty || o->decay; /* its constants include the penalty */
        if (differs)
            begin(fused->optimizer_options, update, rate, fused->intercept, own);
        uint32_t count = 0;
        if (shared) {
            memcpy(&count, fused->intercept->value + 1, sizeof count);
            atomic_signal_fence(memory_order_seq_cst); /* keeps the compiler from reordering */
        }
        step_one(fused->intercept, differs ? own : c, dloss);
        if (shared) {
            atomic_signal_fence(memory_order_seq_cst);
            count++;
            memcpy(fused->intercept->value + 1, &count, sizeof count);
        }
    }
    if (fused->weight->penalty_paid && !fused->place) {
        fused->penalty_due +=
            o->penalty_due ? o->penalty_due(fused->optimizer_options, update, rate) : rate;
        memcpy(fused->constant, c, SDR_CONSTANTS * sizeof *c); /* for catching up */
    }
}

#define FUSED_SPARSE(bits, index)                                                                  \
    do {                                                                                           \
        if (!cells) {                                                                              \
            dloss = dloss_of(fused, row, lanes_dot##bits(t->value, index, r.x, r.n));              \
            sparse##bits##_loop(t, c, index, r.x, r.n, dloss, scaled);                             \
        } else if (r.n > KEPT_ENTRIES || pays == PAYS) {                                           \
            dloss = cells_other_row##bits(fused, c, row, next, index, r.x, r.n, pays);             \
        } else {                                                                                   \
            dloss =                                                                                \
                pays ? cells_row##bits(fused, c, row, next, index, r.x, r.n, PAYS_SHARE, true)     \
                     : cells_row##bits(fused, c, row, next, index, r.x, r.n, PAYS_NOTHING, true);  \
        }                                                                                          \
    } while (0)

/* shared: other workers write the same weights. Stores of others between load and store are lost,
   so that time must be short: the step loads the weights again. */
SDR_INLINE void fused_rows(struct sdr_fused_steps *fused, const bool cells, const bool scaled,
                           const bool shared)
{
    const struct sdr_rows *rows = fused->problem->rows;
    const void *options = fused->optimizer_options;
    struct sdr_target *t = fused->weight;
    float dloss, c[SDR_CONSTANTS] = {0};
    bool by_share = shrinks_by_share(t);
    bool fetches = cells && (uint64_t)rows->features * CELL_FLOATS * sizeof(float) > FETCHED_BYTES;
    for (uint32_t i = 0; i < fused->count; i++) {
        uint32_t row = fused->row[i], at = fused->place ? fused->place[i] : i;
        uint64_t update = fused->version + at + 1;
        double rate = fused->rate[at];
        if (fused->ahead)
            sdr_fetch_row(fused->problem, fused->ahead[i]);
        if (t->penalty_paid && fused->place)
            begin(options, update - 1, rate, t,
                  fused->constant); /* the last step may be another worker's */
        double penalty_due = fused->penalty_due_at ? fused->penalty_due_at[at] : fused->penalty_due;
        bool due = t->penalty_paid && penalty_due > 0;
        enum paying pays = !due ? PAYS_NOTHING : by_share ? PAYS_SHARE : PAYS;
        t->penalty_due = (float)penalty_due;
        if (due && !cells)
            catch_up_for(fused, row);
        begin(options, update, rate, t, c);
        if (rows->dense) {
            const float *x = sdr_dense_row(rows, row);
            dloss = dloss_of(fused, row,
                             lanes_dot(t->value, x, fused->problem->center, rows->features));
            dense_loop(t, c, x, rows->features, dloss);
        } else {
            struct sdr_sparse_row r = sdr_sparse_row(rows, row), after, *next = NULL;
            if (fetches && rows->index32 && i + 1 < fused->count) {
                after = sdr_sparse_row(rows, fused->row[i + 1]);
                next = &after;
            }
            if (r.index16)
                FUSED_SPARSE(16, r.index16);
            else
                FUSED_SPARSE(32, r.index32);
        }
        finish_row(fused, c, update, at, rate, dloss, shared);
    }
    fused->version += fused->count;
    if (fused->count)
        memcpy(fused->constant, c, sizeof c);
}

/* ---- pairs of features ---- */
/* m factors of both rows, which begin at a and b. */
SDR_INLINE void pair_run(const struct sdr_target *t, const float *c, size_t a, size_t b, uint32_t m,
                         float dloss, const float l2[2])
{
    lanes one = lanes_load(t->value + a, m), two = lanes_load(t->value + b, m), s[2][2] = {{{0}}};
    for (int i = 0; i < SDR_STEP_SLOTS; i++) {
        s[0][i] = lanes_load(t->slot[i] + a, m);
        s[1][i] = lanes_load(t->slot[i] + b, m);
    }
    lanes g[2] = {two * dloss + one * l2[0], one * dloss + two * l2[1]};
    lanes_store(t->value + a, moved_unscaled(c, one, g[0], &s[0][0], &s[0][1]), m);
    lanes_store(t->value + b, moved_unscaled(c, two, g[1], &s[1][0], &s[1][1]), m);
    for (int i = 0; i < SDR_STEP_SLOTS; i++) {
        lanes_store(t->slot[i] + a, s[0][i], m);
        lanes_store(t->slot[i] + b, s[1][i], m);
    }
}

/* The biases of both rows, two lanes of one vector. They are loaded and stored one by one: a store
   by mask keeps the next load of the same line waiting. */
SDR_INLINE void pair_biases(const struct sdr_target *t, const float *c, size_t a, size_t b,
                            float dloss, const float l2[2])
{
    lanes w = {t->value[a], t->value[b]}, by = {l2[0], l2[1]}, s[2] = {{0}};
    for (int i = 0; i < SDR_STEP_SLOTS; i++)
        s[i] = (lanes){t->slot[i][a], t->slot[i][b]};
    w = moved_unscaled(c, w, w * by + dloss, &s[0], &s[1]);
    t->value[a] = w[0];
    t->value[b] = w[1];
    for (int i = 0; i < SDR_STEP_SLOTS; i++) {
        t->slot[i][a] = s[i][0];
        t->slot[i][b] = s[i][1];
    }
}

/* One step on both rows of factors. */
SDR_INLINE void pair_steps(const struct sdr_target *t, const float *c, size_t a, size_t b,
                           uint32_t rank, float dloss, const float l2[2])
{
    uint32_t k = 0;
    for (; k + SDR_LANES <= rank; k += SDR_LANES)
        pair_run(t, c, a + k, b + k, SDR_LANES, dloss, l2);
    if (k < rank)
        pair_run(t, c, a + k, b + k, rank - k, dloss, l2);
}

SDR_INLINE struct sdr_pair pair_at(const struct sdr_fused_steps *fused, uint32_t i)
{
    if (fused->pair)
        return fused->pair[i];
    const struct sdr_problem *problem = fused->problem;
    uint32_t row = fused->row[i];
    struct sdr_sparse_row r = sdr_sparse_row(problem->rows, row);
    return (struct sdr_pair){.one = sdr_row_index(&r, 0),
                             .two = sdr_row_index(&r, 1),
                             .target = problem->target[row],
                             .weight = problem->row_weight ? problem->row_weight[row] : 1.0f};
}

SDR_INLINE void fetch_values(const struct sdr_target *t, size_t at, uint32_t count)
{
    sdr_fetch_to_write(t->value + at, count * sizeof(float));
    if (SDR_STEP_SLOTS > 0)
        sdr_fetch_to_write(t->slot[0] + at, count * sizeof(float));
    if (SDR_STEP_SLOTS > 1)
        sdr_fetch_to_write(t->slot[1] + at, count * sizeof(float));
}

SDR_INLINE void fused_pairs(struct sdr_fused_steps *fused)
{
    enum { AHEAD = 8 };
    const struct sdr_problem *problem = fused->problem;
    /* Copies: the compiler knows that no store changes them. */
    struct sdr_target t = *fused->weight,
                      bias = fused->bias ? *fused->bias : (struct sdr_target){0};
    uint32_t rank = fused->factors;
    float dloss, l2[2], c[SDR_CONSTANTS] = {0};
    fused->kind->fused->pair_penalty(problem->model_options, l2);
    bool sides = l2[0] != l2[1];
    for (uint32_t i = 0; i < fused->count; i++) {
        uint32_t at = fused->place ? fused->place[i] : i;
        uint64_t update = fused->version + at + 1;
        double rate = fused->rate[at];
        struct sdr_pair pair = pair_at(fused, i);
        size_t a = (size_t)pair.one * rank, b = (size_t)pair.two * rank;
        if (fused->ahead)
            sdr_fetch_row(problem, fused->ahead[i]);
        if (i + AHEAD < fused->count) {
            struct sdr_pair next = pair_at(fused, i + AHEAD);
            fetch_values(&t, (size_t)next.one * rank, rank);
            fetch_values(&t, (size_t)next.two * rank, rank);
            if (bias.value) {
                fetch_values(&bias, next.one, 1);
                fetch_values(&bias, next.two, 1);
            }
        }
        if (t.penalty_paid && fused->place)
            begin(fused->optimizer_options, update - 1, rate, &t, fused->constant);
        double penalty_due = fused->penalty_due_at ? fused->penalty_due_at[at] : fused->penalty_due;
        if (t.penalty_paid && penalty_due > 0) {
            t.penalty_due = bias.penalty_due = (float)penalty_due;
            catch_up_row(&t, pair.one, rank);
            catch_up_row(&t, pair.two, rank);
            if (bias.value) {
                catch_up_row(&bias, pair.one, 1);
                catch_up_row(&bias, pair.two, 1);
            }
        }
        begin(fused->optimizer_options, update, rate, &t, c);
        float score = lanes_dot(t.value + a, t.value + b, NULL, rank);
        if (bias.value) {
            score += bias.value[pair.one];
            score += bias.value[pair.two];
        }
        dloss = dloss_at(fused, score, pair.target, pair.weight);
        float own[2] = {pair.weight * l2[sides ? sdr_side(problem, pair.one, 0) : 0],
                        pair.weight * l2[sides ? sdr_side(problem, pair.two, 1) : 0]};
        pair_steps(&t, c, a, b, rank, dloss, own);
        if (bias.value)
            pair_biases(&bias, c, pair.one, pair.two, dloss, own);
        finish_row(fused, c, update, at, rate, dloss, false);
    }
    fused->weight->penalty_due = t.penalty_due;
    if (fused->bias)
        fused->bias->penalty_due = t.penalty_due;
    fused->version += fused->count;
    if (fused->count)
        memcpy(fused->constant, c, sizeof c);
}

static void pairs(struct sdr_fused_steps *w)
{
    fused_pairs(w);
}

static void fused(struct sdr_fused_steps *w)
{
    if (w->factors) {
        pairs(w);
        return;
    }
    if (w->weight->cell)
        fused_rows(w, true, true, false);
    else if (w->weight->scale)
        fused_rows(w, false, true, false);
    else
        fused_rows(w, false, false, false);
}

/* The only data races of the program. Hogwild! reads and writes floats that other threads write.
   Each access is one aligned float, which the hardware reads and writes in one piece, so every
   value read was written by somebody. Only weights and their state are accessed this way, and
   neither is used as an index. */
static __attribute__((no_sanitize("thread"))) void fused_shared(struct sdr_fused_steps *w)
{
    if (!w->factors)
        fused_rows(w, false, w->weight->scale != NULL, true);
    else
#if defined(__SANITIZE_THREAD__)
        fused_pairs(w);
#else
        pairs(w);
#endif
}
