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
    float weight = problem->row_weight ? problem->row_weight[row] : 1.0f;
    return dloss_at(fused, score, problem->target[row], weight);
}

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
        if (cells) {                                                                               \
            float score = due ? cells_dot_paid##bits(t, index, r.x, r.n)                           \
                              : cells_dot##bits(t->cell, CELL_FLOATS, index, r.x, r.n);            \
            dloss = dloss_of(fused, row, score);                                                   \
            cells_step##bits(t->cell, c, index, r.x, r.n, dloss);                                  \
        } else {                                                                                   \
            dloss = dloss_of(fused, row, lanes_dot##bits(t->value, index, r.x, r.n));              \
            sparse##bits##_loop(t, c, index, r.x, r.n, dloss, scaled);                             \
        }                                                                                          \
    } while (0)

/* shared: other workers write the same weights. Stores of others between load and store are lost, so that time
   must be short: the step loads the weights again. */
SDR_INLINE void fused_rows(struct sdr_fused_steps *fused, const bool cells, const bool scaled,
                           const bool shared)
{
    const struct sdr_rows *rows = fused->problem->rows;
    const void *options = fused->optimizer_options;
    struct sdr_target *t = fused->weight;
    float dloss, c[SDR_CONSTANTS] = {0};
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
            struct sdr_sparse_row r = sdr_sparse_row(rows, row);
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

/* Pairs of features: one step on both rows of factors, m values of each at a time. */
SDR_INLINE void pair_steps(const struct sdr_target *t, const float *c, size_t a, size_t b,
                           uint32_t rank, bool bias, float dloss, const float l2[2])
{
    lanes one = lanes_all(1.0f);
    for (uint32_t k = 0, m; k < rank; k += m) {
        m = lanes_left(rank, k);
        lanes wa = lanes_load(t->value + a + k, m), wb = lanes_load(t->value + b + k, m);
        step_run(t, c, a + k, m, wb * dloss + wa * l2[0], one);
        step_run(t, c, b + k, m, wa * dloss + wb * l2[1], one);
    }
    if (bias) {
        lanes wa = lanes_load(t->value + a + rank, 1), wb = lanes_load(t->value + b + rank, 1);
        step_run(t, c, a + rank, 1, wa * l2[0] + dloss, one);
        step_run(t, c, b + rank, 1, wb * l2[1] + dloss, one);
    }
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
    sdr_fetch(t->value + at, count * sizeof(float));
    if (SDR_STEP_SLOTS > 0)
        sdr_fetch(t->slot[0] + at, count * sizeof(float));
    if (SDR_STEP_SLOTS > 1)
        sdr_fetch(t->slot[1] + at, count * sizeof(float));
}

SDR_INLINE void fused_pairs(struct sdr_fused_steps *fused)
{
    enum { AHEAD = 6 };
    struct sdr_target *t = fused->weight;
    uint32_t cols = fused->columns, rank = fused->factors;
    float dloss, l2[2], c[SDR_CONSTANTS] = {0};
    fused->kind->fused->pair_penalty(fused->problem->model_options, l2);
    for (uint32_t i = 0; i < fused->count; i++) {
        uint32_t at = fused->place ? fused->place[i] : i;
        uint64_t update = fused->version + at + 1;
        double rate = fused->rate[at];
        struct sdr_pair pair = pair_at(fused, i);
        size_t a = (size_t)pair.one * cols, b = (size_t)pair.two * cols;
        if (fused->ahead)
            sdr_fetch_row(fused->problem, fused->ahead[i]);
        if (i + AHEAD < fused->count) {
            struct sdr_pair next = pair_at(fused, i + AHEAD);
            fetch_values(t, (size_t)next.one * cols, cols);
            fetch_values(t, (size_t)next.two * cols, cols);
        }
        if (t->penalty_paid && fused->place)
            begin(fused->optimizer_options, update - 1, rate, t, fused->constant);
        double penalty_due = fused->penalty_due_at ? fused->penalty_due_at[at] : fused->penalty_due;
        if (t->penalty_paid && penalty_due > 0) {
            t->penalty_due = (float)penalty_due;
            catch_up_row(t, pair.one, cols);
            catch_up_row(t, pair.two, cols);
        }
        begin(fused->optimizer_options, update, rate, t, c);
        float score = lanes_dot(t->value + a, t->value + b, NULL, rank);
        if (cols > rank) {
            score += t->value[a + rank];
            score += t->value[b + rank];
        }
        dloss = dloss_at(fused, score, pair.target, pair.weight);
        float own[2] = {pair.weight * l2[sdr_side(fused->problem, pair.one, 0)],
                        pair.weight * l2[sdr_side(fused->problem, pair.two, 1)]};
        pair_steps(t, c, a, b, rank, cols > rank, dloss, own);
        finish_row(fused, c, update, at, rate, dloss, false);
    }
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
