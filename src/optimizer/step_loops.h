/* The loops around step() and metric(); included once by every optimizer, see optimizer/step.h. */

/* One vector: values w with state s0, s1, gradient g in original units, scale q. */
SDR_INLINE lanes moved(const float *c, lanes w, lanes g, lanes q, lanes *s0, lanes *s1)
{
#if defined(SDR_STEP_ASSIGNS)
    return q * step(c, q * g, w / q, s0, s1);
#else
    return w + q * step(c, q * g, s0, s1);
#endif
}

/* The same where all scales are one: the common case must not pay for it. */
SDR_INLINE lanes moved_unscaled(const float *c, lanes w, lanes g, lanes *s0, lanes *s1)
{
#if defined(SDR_STEP_ASSIGNS)
    return step(c, g, w, s0, s1);
#else
    return w + step(c, g, s0, s1);
#endif
}

/* ---- steps on one output ---- */
/* kept: the values at hand, w[index[i]]; NULL: they are gathered. What the loop needs of the target
   is copied first: a store might, as far as the compiler knows, change the target itself. */
#define SPARSE_BLOCK(load, put, m)                                                                 \
    do {                                                                                           \
        lanes_index at = load(index + i, m);                                                       \
        lanes g = lanes_load(x + i, m) * u, s0 = {0}, s1 = {0};                                    \
        lanes w = kept ? lanes_load(kept + i, m) : lanes_gather(value, at, m);                     \
        if (SDR_STEP_SLOTS > 0)                                                                    \
            s0 = lanes_gather(slot0, at, m);                                                       \
        if (SDR_STEP_SLOTS > 1)                                                                    \
            s1 = lanes_gather(slot1, at, m);                                                       \
        if (scaled)                                                                                \
            w = moved(constant, w, g, lanes_gather(scale, at, m), &s0, &s1);                       \
        else                                                                                       \
            w = moved_unscaled(constant, w, g, &s0, &s1);                                          \
        put(value, index + i, w, m);                                                               \
        if (SDR_STEP_SLOTS > 0)                                                                    \
            put(slot0, index + i, s0, m);                                                          \
        if (SDR_STEP_SLOTS > 1)                                                                    \
            put(slot1, index + i, s1, m);                                                          \
    } while (0)

#define SPARSE_STEP(name, type, load, put)                                                         \
    SDR_INLINE void name##_loop(const struct sdr_target *t, const float *constant,                 \
                                const type *index, const float *x, uint32_t n, float u,            \
                                const bool scaled, const float *kept)                              \
    {                                                                                              \
        float *value = t->value, *slot0 = t->slot[0], *slot1 = t->slot[1];                         \
        const float *scale = t->scale;                                                             \
        uint32_t i = 0;                                                                            \
        (void)slot0, (void)slot1, (void)scale;                                                     \
        for (; i + SDR_LANES <= n; i += SDR_LANES)                                                 \
            SPARSE_BLOCK(load, put, SDR_LANES);                                                    \
        if (i < n)                                                                                 \
            SPARSE_BLOCK(load, put, n - i);                                                        \
    }                                                                                              \
    static void name(const struct sdr_target *t, const type *index, const float *x, uint32_t n,    \
                     float u)                                                                      \
    {                                                                                              \
        if (t->scale)                                                                              \
            name##_loop(t, t->constant, index, x, n, u, true, NULL);                               \
        else                                                                                       \
            name##_loop(t, t->constant, index, x, n, u, false, NULL);                              \
    }
SPARSE_STEP(sparse16, uint16_t, lanes_load16, lanes_put16)
SPARSE_STEP(sparse32, uint32_t, lanes_load32, lanes_put32)

/* m values from `at` with gradient g and scale q. */
SDR_INLINE void step_run(const struct sdr_target *t, const float *constant, size_t at, uint32_t m,
                         lanes g, lanes q)
{
    lanes w = lanes_load(t->value + at, m), s0 = {0}, s1 = {0};
    if (SDR_STEP_SLOTS > 0)
        s0 = lanes_load(t->slot[0] + at, m);
    if (SDR_STEP_SLOTS > 1)
        s1 = lanes_load(t->slot[1] + at, m);
    w = t->scale ? moved(constant, w, g, q, &s0, &s1) : moved_unscaled(constant, w, g, &s0, &s1);
    lanes_store(t->value + at, w, m);
    if (SDR_STEP_SLOTS > 0)
        lanes_store(t->slot[0] + at, s0, m);
    if (SDR_STEP_SLOTS > 1)
        lanes_store(t->slot[1] + at, s1, m);
}

SDR_INLINE void dense_loop(const struct sdr_target *t, const float *constant, const float *x,
                           uint32_t n, float u)
{
    for (uint32_t i = 0, m; i < n; i += m) {
        m = lanes_left(n, i);
        lanes v = lanes_load(x + i, m);
        if (t->center)
            v -= lanes_load(t->center + i, m);
        step_run(t, constant, i, m, v * u,
                 t->scale ? lanes_load(t->scale + i, m) : lanes_all(1.0f));
    }
}

static void dense(const struct sdr_target *t, const float *x, uint32_t n, float u)
{
    dense_loop(t, t->constant, x, n, u);
}

/* ---- steps on several outputs ---- */
SDR_INLINE void matrix_row(const struct sdr_target *t, uint32_t j, float x, const float *u,
                           uint32_t outputs)
{
    lanes q = lanes_all(t->scale ? t->scale[j] : 1.0f);
    for (uint32_t k = 0, m; k < outputs; k += m) {
        m = lanes_left(outputs, k);
        step_run(t, t->constant, (size_t)j * outputs + k, m, lanes_load(u + k, m) * x, q);
    }
}

static void matrix16(const struct sdr_target *t, const uint16_t *index, const float *x, uint32_t n,
                     const float *u, uint32_t outputs)
{
    for (uint32_t i = 0; i < n; i++)
        matrix_row(t, index[i], x[i], u, outputs);
}

static void matrix32(const struct sdr_target *t, const uint32_t *index, const float *x, uint32_t n,
                     const float *u, uint32_t outputs)
{
    for (uint32_t i = 0; i < n; i++)
        matrix_row(t, index[i], x[i], u, outputs);
}

static void matrix(const struct sdr_target *t, const float *x, uint32_t n, const float *u,
                   uint32_t outputs)
{
    for (uint32_t i = 0; i < n; i++)
        matrix_row(t, i, t->center ? x[i] - t->center[i] : x[i], u, outputs);
}

/* ---- penalties ---- */
/* Settles one vector of values in place; *charged moves on where something was charged. A charge
   too small to show in a float waits for more, unless all must be settled: otherwise penalties of
   frequent features would be rounded away. Zeros are never behind: they owe nothing. */
SDR_INLINE lanes shrunk(const struct sdr_target *t, lanes w, lanes q, lanes s0, lanes s1,
                        lanes *penalty_paid)
{
#if defined(SDR_STEP_ASSIGNS)
    (void)w;
    *penalty_paid = lanes_all(t->penalty_due);
    return q * settled(t->constant, s0, s1);
#else
    lanes one = lanes_all(1.0f), size = lanes_abs(w), less;
    lanes m = metric(t->constant, s0, s1) * (t->penalty_due - *penalty_paid);
    if (t->l2 > 0) {
        lanes x = (t->plain_decay ? m : m * q * q) * t->l2;
        lanes ratio = (t->standardize ? q : one) * (t->l1 / t->l2);
        less = lanes_gone(x) * (size + ratio);
    } else {
        less = m * q * (t->standardize ? one : q) * t->l1;
    }
    lanes_index waits = (less < size * 0x1p-17f) & (size > 0.0f);
    if (t->pay_fully)
        waits = (lanes_index){0};
    *penalty_paid = lanes_select(waits, *penalty_paid, lanes_all(t->penalty_due));
    return lanes_select(waits, w, lanes_copysign(lanes_positive(size - less), w));
#endif
}

/* Settles m values from `at` of one row (or of consecutive rows of one value each). */
SDR_INLINE void catch_up_run(const struct sdr_target *t, size_t at, uint32_t m, lanes q)
{
    lanes w = lanes_load(t->value + at, m), s0 = {0}, s1 = {0};
    if (SDR_STEP_SLOTS > 0)
        s0 = lanes_load(t->slot[0] + at, m);
    if (SDR_STEP_SLOTS > 1)
        s1 = lanes_load(t->slot[1] + at, m);
    lanes penalty_paid =
        t->penalty_paid ? lanes_load(t->penalty_paid + at, m) : lanes_all(t->penalty_due);
    lanes_store(t->value + at, shrunk(t, w, q, s0, s1, &penalty_paid), m);
    if (t->penalty_paid)
        lanes_store(t->penalty_paid + at, penalty_paid, m);
}

/* Group lasso and l2 together shrink the norm r of a row: r ← r·e − (group/l2)(1 − e). Only
   optimizers whose metric is the same for all values of a row (`uniform`) are let in, so any state
   serves to ask for it. */
SDR_INLINE void catch_up_group(const struct sdr_target *t, size_t at, uint32_t outputs, float q)
{
#if !defined(SDR_STEP_ASSIGNS)
    lanes s0 = {0}, s1 = {0};
    float m = (t->penalty_due - t->penalty_paid[at]) * metric(t->constant, s0, s1)[0], square = 0;
    for (uint32_t k = 0; k < outputs; k++)
        square += t->value[at + k] * t->value[at + k];
    float norm = sqrtf(square), less = m * q * (t->standardize ? 1.0f : q) * t->group;
    if (t->l2 > 0) {
        float x = (t->standardize ? m : m * q * q) * t->l2;
        less =
            lanes_gone(lanes_all(x))[0] * (norm + (t->standardize ? q : 1.0f) * (t->group / t->l2));
    }
    if (norm > 0 && less < norm * 0x1p-17f && !t->pay_fully)
        return;
    float keep = norm > less ? (norm - less) / norm : norm != norm ? norm : 0.0f;
    for (uint32_t k = 0; k < outputs; k++) {
        t->value[at + k] *= keep;
        t->penalty_paid[at + k] = t->penalty_due;
    }
#else
    (void)t, (void)at, (void)outputs, (void)q;
#endif
}

SDR_INLINE void catch_up_row(const struct sdr_target *t, uint32_t j, uint32_t outputs)
{
    float q = t->scale ? t->scale[j] : 1.0f;
    if (t->group > 0) {
        catch_up_group(t, (size_t)j * outputs, outputs, q);
        return;
    }
    for (uint32_t k = 0, m; k < outputs; k += m) {
        m = lanes_left(outputs, k);
        catch_up_run(t, (size_t)j * outputs + k, m, lanes_all(q));
    }
}

#define CATCH_UP(name, type, load, put)                                                            \
    static void name(const struct sdr_target *t, const type *index, uint32_t n, uint32_t outputs)  \
    {                                                                                              \
        if (outputs > 1) {                                                                         \
            for (uint32_t i = 0; i < n; i++)                                                       \
                catch_up_row(t, index[i], outputs);                                                \
            return;                                                                                \
        }                                                                                          \
        for (uint32_t i = 0, m; i < n; i += m) {                                                   \
            m = lanes_left(n, i);                                                                  \
            lanes_index at = load(index + i, m);                                                   \
            lanes w = lanes_gather(t->value, at, m), s0 = {0}, s1 = {0};                           \
            if (SDR_STEP_SLOTS > 0)                                                                \
                s0 = lanes_gather(t->slot[0], at, m);                                              \
            if (SDR_STEP_SLOTS > 1)                                                                \
                s1 = lanes_gather(t->slot[1], at, m);                                              \
            lanes q = t->scale ? lanes_gather(t->scale, at, m) : lanes_all(1.0f);                  \
            lanes penalty_paid = lanes_gather(t->penalty_paid, at, m);                             \
            put(t->value, index + i, shrunk(t, w, q, s0, s1, &penalty_paid), m);                   \
            put(t->penalty_paid, index + i, penalty_paid, m);                                      \
        }                                                                                          \
    }
CATCH_UP(catch_up16, uint16_t, lanes_load16, lanes_put16)
CATCH_UP(catch_up32, uint32_t, lanes_load32, lanes_put32)

static void catch_up_all(const struct sdr_target *t, uint32_t n, uint32_t outputs)
{
    if (outputs > 1)
        for (uint32_t j = 0; j < n; j++)
            catch_up_row(t, j, outputs);
    else
        for (uint32_t i = 0, m; i < n; i += m) {
            m = lanes_left(n, i);
            catch_up_run(t, i, m, t->scale ? lanes_load(t->scale + i, m) : lanes_all(1.0f));
        }
}

/* ---- rows one after the other ---- */
enum { KEPT = 4096 }; /* weights kept between the score of a row and its step */

/* Charges the penalties of the values a row will meet. */
static void catch_up_for(const struct sdr_fused_steps *fused, uint32_t row, double penalty_due)
{
    const struct sdr_rows *rows = fused->problem->rows;
    fused->weight->penalty_due = (float)penalty_due;
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

/* Loss and slope of an example from its score. */
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

/* The step of the intercept, and the penalties that this step made due. shared: behind the intercept
   is a count of its steps, which tells how many of them get lost. The count is loaded before the
   intercept and stored after it: whatever undoes a step undoes its count. */
SDR_INLINE void finish_row(struct sdr_fused_steps *fused, const float *c, uint64_t update,
                           uint32_t at, double rate, float dloss, const bool shared)
{
    const struct sdr_optimizer *o = fused->optimizer;
    if (fused->dloss) {
        fused->dloss[at] = dloss;
    } else if (fused->intercept && !fused->factors) {
        float own[SDR_CONSTANTS] = {0};
        bool differs = o->own_penalty || o->decay; /* its constants hold the penalty */
        if (differs)
            begin(fused->optimizer_options, update, rate, fused->intercept, own);
        uint32_t count = 0;
        if (shared) {
            memcpy(&count, fused->intercept->value + 1, sizeof count);
            atomic_signal_fence(memory_order_seq_cst); /* compilers keep the order too */
        }
        step_run(fused->intercept, differs ? own : c, 0, 1, lanes_all(dloss), lanes_all(1.0f));
        if (shared) {
            atomic_signal_fence(memory_order_seq_cst);
            count++;
            memcpy(fused->intercept->value + 1, &count, sizeof count);
        }
    }
    if (fused->weight->penalty_paid && !fused->place) {
        fused->penalty_due +=
            o->penalty_due ? o->penalty_due(fused->optimizer_options, update, rate) : rate;
        memcpy(fused->constant, c,
               SDR_CONSTANTS * sizeof *c); /* penalties are settled with these */
    }
}

#define FUSED_SPARSE(bits, index)                                                                  \
    do {                                                                                           \
        if (shared) {                                                                              \
            dloss = dloss_of(fused, row, lanes_dot##bits(t->value, index, r.x, r.n, NULL));        \
            sparse##bits##_loop(t, c, index, r.x, r.n, dloss, scaled, NULL);                       \
        } else if (r.n <= KEPT) {                                                                  \
            dloss = dloss_of(fused, row, lanes_dot##bits(t->value, index, r.x, r.n, kept));        \
            sparse##bits##_loop(t, c, index, r.x, r.n, dloss, scaled, kept);                       \
        } else {                                                                                   \
            memcpy(fused->constant, c, sizeof c);                                                  \
            dloss = dloss_of(fused, row, kernels->dot##bits(t->value, index, r.x, r.n));           \
            sparse##bits(t, index, r.x, r.n, dloss);                                               \
        }                                                                                          \
    } while (0)

/* shared: others write the same weights. They are loaded once more for the step, so that little time
   lies between a load and its store: what others store meanwhile is lost. */
SDR_INLINE void fused_rows(struct sdr_fused_steps *fused, const bool scaled, const bool shared)
{
    const struct sdr_rows *rows = fused->problem->rows;
    const struct sdr_linear_kernels *kernels = fused->problem->kernels;
    const void *options = fused->optimizer_options;
    struct sdr_target *t = fused->weight;
    float kept[KEPT] __attribute__((aligned(64))), dloss, c[SDR_CONSTANTS] = {0};
    for (uint32_t i = 0; i < fused->count; i++) {
        uint32_t row = fused->row[i], at = fused->place ? fused->place[i] : i;
        uint64_t update = fused->version + at + 1;
        double rate = fused->rate[at];
        if (fused->ahead)
            sdr_fetch_row(fused->problem, fused->ahead[i]);
        if (t->penalty_paid && fused->place)
            begin(options, update - 1, rate, t,
                  fused->constant); /* who stepped last is not known */
        double penalty_due = fused->penalty_due_at ? fused->penalty_due_at[at] : fused->penalty_due;
        if (t->penalty_paid && penalty_due > 0)
            catch_up_for(fused, row, penalty_due);
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

/* Pairs of features: settle, score, slope, and a step on both rows, m values of each at a time. */
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
    if (w->weight->scale)
        fused_rows(w, true, false);
    else
        fused_rows(w, false, false);
}

/* The home of the data races. Hogwild! reads and writes floats that other threads write: each load
   and store is of one aligned float, which this machine does whole, so a value read is one that
   somebody wrote. Nothing but weights and their state is read so, and nothing is indexed by them. */
static __attribute__((no_sanitize("thread"))) void fused_shared(struct sdr_fused_steps *w)
{
    if (!w->factors)
        fused_rows(w, w->weight->scale != NULL, true);
    else
#if defined(__SANITIZE_THREAD__)
        fused_pairs(w);
#else
        pairs(w);
#endif
}
