/* The loops around step() and metric(); every optimizer includes it once, see optimizer/step.h. */

/* One vector: values w with state s0, s1, gradient g in original units, scale q. */
SDR_INLINE lanes moved(const float *c, lanes w, lanes g, lanes q, lanes *s0, lanes *s1)
{
#if defined(SDR_STEP_ASSIGNS)
    return q * step(c, q * g, w / q, s0, s1);
#else
    return w + q * step(c, q * g, s0, s1);
#endif
}

/* The same with all scales one, the common case. */
SDR_INLINE lanes moved_unscaled(const float *c, lanes w, lanes g, lanes *s0, lanes *s1)
{
#if defined(SDR_STEP_ASSIGNS)
    return step(c, g, w, s0, s1);
#else
    return w + step(c, g, s0, s1);
#endif
}

/* ---- steps on one output ---- */
/* Members of the target are copied to locals first: the compiler must assume that a store changes
   the target. */
#define SPARSE_BLOCK(pick, put, m)                                                                 \
    do {                                                                                           \
        lanes g = lanes_load(x + i, m) * u, s0 = {0}, s1 = {0};                                    \
        lanes w = pick(value, index + i, m);                                                       \
        if (SDR_STEP_SLOTS > 0)                                                                    \
            s0 = pick(slot0, index + i, m);                                                        \
        if (SDR_STEP_SLOTS > 1)                                                                    \
            s1 = pick(slot1, index + i, m);                                                        \
        if (scaled)                                                                                \
            w = moved(constant, w, g, pick(scale, index + i, m), &s0, &s1);                        \
        else                                                                                       \
            w = moved_unscaled(constant, w, g, &s0, &s1);                                          \
        put(value, index + i, w, m);                                                               \
        if (SDR_STEP_SLOTS > 0)                                                                    \
            put(slot0, index + i, s0, m);                                                          \
        if (SDR_STEP_SLOTS > 1)                                                                    \
            put(slot1, index + i, s1, m);                                                          \
    } while (0)

#define SPARSE_STEP(name, type, pick, put)                                                         \
    SDR_INLINE void name##_loop(const struct sdr_target *t, const float *constant,                 \
                                const type *index, const float *x, uint32_t n, float u,            \
                                const bool scaled)                                                 \
    {                                                                                              \
        float *value = t->value, *slot0 = t->slot[0], *slot1 = t->slot[1];                         \
        const float *scale = t->scale;                                                             \
        uint32_t i = 0;                                                                            \
        (void)slot0, (void)slot1, (void)scale;                                                     \
        for (; i + SDR_LANES <= n; i += SDR_LANES)                                                 \
            SPARSE_BLOCK(pick, put, SDR_LANES);                                                    \
        if (i < n)                                                                                 \
            SPARSE_BLOCK(pick, put, n - i);                                                        \
    }                                                                                              \
    static void name(const struct sdr_target *t, const type *index, const float *x, uint32_t n,    \
                     float u)                                                                      \
    {                                                                                              \
        if (t->scale)                                                                              \
            name##_loop(t, t->constant, index, x, n, u, true);                                     \
        else                                                                                       \
            name##_loop(t, t->constant, index, x, n, u, false);                                    \
    }
SPARSE_STEP(sparse16, uint16_t, lanes_pick16, lanes_put16)
SPARSE_STEP(sparse32, uint32_t, lanes_pick32, lanes_put32)

/* Steps m consecutive values from `at`, with gradient g and scale q. */
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

/* Steps one value, the first of an unscaled target: masked loads and stores would take longer. */
SDR_INLINE void step_one(const struct sdr_target *t, const float *constant, float g)
{
    lanes s0 = {0}, s1 = {0};
    if (SDR_STEP_SLOTS > 0)
        s0 = lanes_all(t->slot[0][0]);
    if (SDR_STEP_SLOTS > 1)
        s1 = lanes_all(t->slot[1][0]);
    t->value[0] = moved_unscaled(constant, lanes_all(t->value[0]), lanes_all(g), &s0, &s1)[0];
    if (SDR_STEP_SLOTS > 0)
        t->slot[0][0] = s0[0];
    if (SDR_STEP_SLOTS > 1)
        t->slot[1][0] = s1[0];
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

/* Steps n rows as one array of values, so that narrow rows fill whole vectors; each value has the
   scale of its row. The array of scales is filled by whole vectors, row by row: the next row
   overwrites what goes beyond the end of a row. */
static void matrix_rows(const struct sdr_target *t, const float *g, uint32_t n, uint32_t outputs)
{
    enum { VALUES = 1024 };
    float scale[VALUES + SDR_LANES];
    struct sdr_target part = *t; /* which no store can change */
    uint32_t most = VALUES / outputs;
    if (most == 0) {
        for (uint32_t j = 0; j < n; j++)
            matrix_row(t, j, 1.0f, g + (size_t)j * outputs, outputs);
        return;
    }
    for (uint32_t j = 0, rows; j < n; j += rows) {
        rows = n - j < most ? n - j : most;
        size_t at = (size_t)j * outputs;
        for (uint32_t r = 0; r < rows && t->scale; r++)
            for (uint32_t k = 0; k < outputs; k += SDR_LANES)
                lanes_store(scale + r * outputs + k, lanes_all(t->scale[j + r]), SDR_LANES);
        for (uint32_t i = 0, m; i < rows * outputs; i += m) {
            m = lanes_left(rows * outputs, i);
            step_run(&part, t->constant, at + i, m, lanes_load(g + at + i, m),
                     t->scale ? lanes_load(scale + i, m) : lanes_all(1.0f));
        }
    }
}

/* ---- penalties ---- */
/* Applies the penalty due to one vector of values; advances *penalty_paid where it did. A change
   below the precision of a float waits until it is larger, unless pay_fully: otherwise the
   penalties of frequent features would be rounded away. Zeros owe nothing. */
SDR_INLINE lanes shrunk(const struct sdr_target *t, lanes w, lanes q, lanes s0, lanes s1,
                        lanes *penalty_paid)
{
#if defined(SDR_STEP_ASSIGNS)
    (void)w;
    *penalty_paid = lanes_all(t->penalty_due);
    return q * value_of_state(t->constant, s0, s1);
#else
    lanes one = lanes_all(1.0f), size = lanes_abs(w), less;
    lanes m = metric(t->constant, t->penalty_due - *penalty_paid, s0, s1);
    if (t->l2 > 0) {
        lanes x = (t->plain_decay ? m : m * q * q) * t->l2;
        lanes ratio = (t->standardize ? q : one) * (t->l1 / t->l2);
        less = lanes_one_minus_exp(x) * (size + ratio);
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

/* Whether l2 is the only penalty: it then takes a share of each value, whatever its sign, by a
   shorter loop. */
SDR_INLINE bool shrinks_by_share(const struct sdr_target *t)
{
#if defined(SDR_STEP_ASSIGNS)
    (void)t;
    return false;
#else
    return t->l2 > 0 && t->l1 == 0 && !t->plain_decay && !t->pay_fully;
#endif
}
SDR_INLINE lanes shrunk_by_share(const struct sdr_target *t, lanes w, lanes q, lanes s0, lanes s1,
                                 lanes *penalty_paid)
{
#if defined(SDR_STEP_ASSIGNS)
    return shrunk(t, w, q, s0, s1, penalty_paid);
#else
    lanes due = (t->penalty_due - *penalty_paid) * t->l2;
    lanes share =
        lanes_one_minus_exp(metric(t->constant, due * q * q, s0, s1)); /* 0 where due is */
    lanes_index waits = (share < 0x1p-17f) & (w != 0.0f);
    *penalty_paid = lanes_select(waits, *penalty_paid, lanes_all(t->penalty_due));
    return w - w * (lanes)(~waits & (lanes_index)share);
#endif
}

SDR_INLINE lanes caught_up(const struct sdr_target *t, lanes w, lanes q, lanes s0, lanes s1,
                           lanes *penalty_paid)
{
    return shrinks_by_share(t) ? shrunk_by_share(t, w, q, s0, s1, penalty_paid)
                               : shrunk(t, w, q, s0, s1, penalty_paid);
}

/* Catches up m values from `at` of one row (or of consecutive rows with one value each). */
SDR_INLINE void catch_up_run(const struct sdr_target *t, size_t at, uint32_t m, lanes q)
{
    lanes w = lanes_load(t->value + at, m), s0 = {0}, s1 = {0};
    if (SDR_STEP_SLOTS > 0)
        s0 = lanes_load(t->slot[0] + at, m);
    if (SDR_STEP_SLOTS > 1)
        s1 = lanes_load(t->slot[1] + at, m);
    lanes penalty_paid =
        t->penalty_paid ? lanes_load(t->penalty_paid + at, m) : lanes_all(t->penalty_due);
    lanes_store(t->value + at, caught_up(t, w, q, s0, s1, &penalty_paid), m);
    if (t->penalty_paid)
        lanes_store(t->penalty_paid + at, penalty_paid, m);
}

/* Group lasso and l2 together shrink the norm r of a row: r ← r·e − (group/l2)(1 − e). The rules
   admit only optimizers whose metric is the same for all values of a row (`uniform`), so zero state
   gives it. */
SDR_INLINE void catch_up_group(const struct sdr_target *t, size_t at, uint32_t outputs, float q)
{
#if !defined(SDR_STEP_ASSIGNS)
    lanes s0 = {0}, s1 = {0}, due = lanes_all(t->penalty_due - t->penalty_paid[at]);
    float m = metric(t->constant, due, s0, s1)[0], square = 0;
    for (uint32_t k = 0; k < outputs; k++)
        square += t->value[at + k] * t->value[at + k];
    float norm = sqrtf(square), less = m * q * (t->standardize ? 1.0f : q) * t->group;
    if (t->l2 > 0) {
        float x = (t->standardize ? m : m * q * q) * t->l2;
        less = lanes_one_minus_exp(lanes_all(x))[0] *
               (norm + (t->standardize ? q : 1.0f) * (t->group / t->l2));
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

#define CATCH_UP(name, type, pick, put)                                                            \
    static void name(const struct sdr_target *t, const type *index, uint32_t n, uint32_t outputs)  \
    {                                                                                              \
        if (outputs > 1) {                                                                         \
            for (uint32_t i = 0; i < n; i++)                                                       \
                catch_up_row(t, index[i], outputs);                                                \
            return;                                                                                \
        }                                                                                          \
        for (uint32_t i = 0, m; i < n; i += m) {                                                   \
            m = lanes_left(n, i);                                                                  \
            lanes w = pick(t->value, index + i, m), s0 = {0}, s1 = {0};                            \
            if (SDR_STEP_SLOTS > 0)                                                                \
                s0 = pick(t->slot[0], index + i, m);                                               \
            if (SDR_STEP_SLOTS > 1)                                                                \
                s1 = pick(t->slot[1], index + i, m);                                               \
            lanes q = t->scale ? pick(t->scale, index + i, m) : lanes_all(1.0f);                   \
            lanes penalty_paid = pick(t->penalty_paid, index + i, m);                              \
            put(t->value, index + i, caught_up(t, w, q, s0, s1, &penalty_paid), m);                \
            put(t->penalty_paid, index + i, penalty_paid, m);                                      \
        }                                                                                          \
    }
CATCH_UP(catch_up16, uint16_t, lanes_pick16, lanes_put16)
CATCH_UP(catch_up32, uint32_t, lanes_pick32, lanes_put32)

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

#include "optimizer/fused_loops.h"
