/* The loops around step() and metric(); included once by every optimizer, see optimizer/step.h. */

/* Lanes of work left at i of n. */
SDR_INLINE uint32_t left(uint32_t n, uint32_t i)
{
    return n - i < SDR_LANES ? n - i : SDR_LANES;
}

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
#define SPARSE_BLOCK(load, m)                                                                      \
    do {                                                                                           \
        lanes_index at = load(index + i, m);                                                       \
        lanes g = lanes_load(x + i, m) * u, s0 = {0}, s1 = {0};                                    \
        lanes w = kept ? lanes_load(t->kept + i, m) : lanes_gather(t->value, at, m);               \
        if (SDR_STEP_SLOTS > 0)                                                                    \
            s0 = lanes_gather(t->slot[0], at, m);                                                  \
        if (SDR_STEP_SLOTS > 1)                                                                    \
            s1 = lanes_gather(t->slot[1], at, m);                                                  \
        if (scaled)                                                                                \
            w = moved(t->constant, w, g, lanes_gather(t->scale, at, m), &s0, &s1);                 \
        else                                                                                       \
            w = moved_unscaled(t->constant, w, g, &s0, &s1);                                       \
        lanes_scatter(t->value, at, w, m);                                                         \
        if (SDR_STEP_SLOTS > 0)                                                                    \
            lanes_scatter(t->slot[0], at, s0, m);                                                  \
        if (SDR_STEP_SLOTS > 1)                                                                    \
            lanes_scatter(t->slot[1], at, s1, m);                                                  \
    } while (0)

#define SPARSE_STEP(name, type, load)                                                              \
    SDR_INLINE void name##_loop(const struct sdr_target *t, const type *index, const float *x,     \
                                uint32_t n, float u, const bool scaled, const bool kept)           \
    {                                                                                              \
        uint32_t i = 0;                                                                            \
        for (; i + SDR_LANES <= n; i += SDR_LANES)                                                 \
            SPARSE_BLOCK(load, SDR_LANES);                                                         \
        if (i < n)                                                                                 \
            SPARSE_BLOCK(load, n - i);                                                             \
    }                                                                                              \
    static void name(const struct sdr_target *t, const type *index, const float *x, uint32_t n,    \
                     float u)                                                                      \
    {                                                                                              \
        if (t->scale && t->kept)                                                                   \
            name##_loop(t, index, x, n, u, true, true);                                            \
        else if (t->scale)                                                                         \
            name##_loop(t, index, x, n, u, true, false);                                           \
        else if (t->kept)                                                                          \
            name##_loop(t, index, x, n, u, false, true);                                           \
        else                                                                                       \
            name##_loop(t, index, x, n, u, false, false);                                          \
    }
SPARSE_STEP(sparse16, uint16_t, lanes_load16)
SPARSE_STEP(sparse32, uint32_t, lanes_load32)

/* m values from `at` with gradient g and scale q. */
SDR_INLINE void step_run(const struct sdr_target *t, size_t at, uint32_t m, lanes g, lanes q)
{
    lanes w = lanes_load(t->value + at, m), s0 = {0}, s1 = {0};
    if (SDR_STEP_SLOTS > 0)
        s0 = lanes_load(t->slot[0] + at, m);
    if (SDR_STEP_SLOTS > 1)
        s1 = lanes_load(t->slot[1] + at, m);
    w = t->scale ? moved(t->constant, w, g, q, &s0, &s1)
                 : moved_unscaled(t->constant, w, g, &s0, &s1);
    lanes_store(t->value + at, w, m);
    if (SDR_STEP_SLOTS > 0)
        lanes_store(t->slot[0] + at, s0, m);
    if (SDR_STEP_SLOTS > 1)
        lanes_store(t->slot[1] + at, s1, m);
}

static void dense(const struct sdr_target *t, const float *x, uint32_t n, float u)
{
    for (uint32_t i = 0, m; i < n; i += m) {
        m = left(n, i);
        lanes v = lanes_load(x + i, m);
        if (t->center)
            v -= lanes_load(t->center + i, m);
        step_run(t, i, m, v * u, t->scale ? lanes_load(t->scale + i, m) : lanes_all(1.0f));
    }
}

/* ---- steps on several outputs ---- */
SDR_INLINE void matrix_row(const struct sdr_target *t, uint32_t j, float x, const float *u,
                           uint32_t outputs)
{
    lanes q = lanes_all(t->scale ? t->scale[j] : 1.0f);
    for (uint32_t k = 0, m; k < outputs; k += m) {
        m = left(outputs, k);
        step_run(t, (size_t)j * outputs + k, m, lanes_load(u + k, m) * x, q);
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
                        lanes *charged)
{
#if defined(SDR_STEP_ASSIGNS)
    (void)w;
    *charged = lanes_all(t->charge);
    return q * settled(t->constant, s0, s1);
#else
    lanes one = lanes_all(1.0f), size = lanes_abs(w), less;
    lanes m = metric(t->constant, s0, s1) * (t->charge - *charged);
    if (t->l2 > 0) {
        lanes x = (t->plain_decay ? m : m * q * q) * t->l2;
        lanes ratio = (t->standardize ? q : one) * (t->l1 / t->l2);
        less = lanes_gone(x) * (size + ratio);
    } else {
        less = m * q * (t->standardize ? one : q) * t->l1;
    }
    lanes_index waits = (less < size * 0x1p-17f) & (size > 0.0f);
    if (t->settle_fully)
        waits = (lanes_index){0};
    *charged = lanes_select(waits, *charged, lanes_all(t->charge));
    return lanes_select(waits, w, lanes_copysign(lanes_positive(size - less), w));
#endif
}

/* Settles m values from `at` of one row (or of consecutive rows of one value each). */
SDR_INLINE void settle_run(const struct sdr_target *t, size_t at, uint32_t m, lanes q)
{
    lanes w = lanes_load(t->value + at, m), s0 = {0}, s1 = {0};
    if (SDR_STEP_SLOTS > 0)
        s0 = lanes_load(t->slot[0] + at, m);
    if (SDR_STEP_SLOTS > 1)
        s1 = lanes_load(t->slot[1] + at, m);
    lanes charged = lanes_load(t->charged + at, m);
    lanes_store(t->value + at, shrunk(t, w, q, s0, s1, &charged), m);
    lanes_store(t->charged + at, charged, m);
}

/* Group lasso and l2 together shrink the norm r of a row: r ← r·e − (group/l2)(1 − e). Only
   optimizers whose metric is the same for all values of a row (`uniform`) are let in, so any state
   serves to ask for it. */
SDR_INLINE void settle_group(const struct sdr_target *t, size_t at, uint32_t outputs, float q)
{
#if !defined(SDR_STEP_ASSIGNS)
    lanes s0 = {0}, s1 = {0};
    float m = (t->charge - t->charged[at]) * metric(t->constant, s0, s1)[0], square = 0;
    for (uint32_t k = 0; k < outputs; k++)
        square += t->value[at + k] * t->value[at + k];
    float norm = sqrtf(square), less = m * q * (t->standardize ? 1.0f : q) * t->group;
    if (t->l2 > 0) {
        float x = (t->standardize ? m : m * q * q) * t->l2;
        less =
            lanes_gone(lanes_all(x))[0] * (norm + (t->standardize ? q : 1.0f) * (t->group / t->l2));
    }
    if (norm > 0 && less < norm * 0x1p-17f && !t->settle_fully)
        return;
    float keep = norm > less ? (norm - less) / norm : norm != norm ? norm : 0.0f;
    for (uint32_t k = 0; k < outputs; k++) {
        t->value[at + k] *= keep;
        t->charged[at + k] = t->charge;
    }
#else
    (void)t, (void)at, (void)outputs, (void)q;
#endif
}

SDR_INLINE void settle_row(const struct sdr_target *t, uint32_t j, uint32_t outputs)
{
    float q = t->scale ? t->scale[j] : 1.0f;
    if (t->group > 0) {
        settle_group(t, (size_t)j * outputs, outputs, q);
        return;
    }
    for (uint32_t k = 0, m; k < outputs; k += m) {
        m = left(outputs, k);
        settle_run(t, (size_t)j * outputs + k, m, lanes_all(q));
    }
}

#define SETTLE(name, type, load)                                                                   \
    static void name(const struct sdr_target *t, const type *index, uint32_t n, uint32_t outputs)  \
    {                                                                                              \
        if (outputs > 1) {                                                                         \
            for (uint32_t i = 0; i < n; i++)                                                       \
                settle_row(t, index[i], outputs);                                                  \
            return;                                                                                \
        }                                                                                          \
        for (uint32_t i = 0, m; i < n; i += m) {                                                   \
            m = left(n, i);                                                                        \
            lanes_index at = load(index + i, m);                                                   \
            lanes w = lanes_gather(t->value, at, m), s0 = {0}, s1 = {0};                           \
            if (SDR_STEP_SLOTS > 0)                                                                \
                s0 = lanes_gather(t->slot[0], at, m);                                              \
            if (SDR_STEP_SLOTS > 1)                                                                \
                s1 = lanes_gather(t->slot[1], at, m);                                              \
            lanes q = t->scale ? lanes_gather(t->scale, at, m) : lanes_all(1.0f);                  \
            lanes charged = lanes_gather(t->charged, at, m);                                       \
            lanes_scatter(t->value, at, shrunk(t, w, q, s0, s1, &charged), m);                     \
            lanes_scatter(t->charged, at, charged, m);                                             \
        }                                                                                          \
    }
SETTLE(settle16, uint16_t, lanes_load16)
SETTLE(settle32, uint32_t, lanes_load32)

static void settle_all(const struct sdr_target *t, uint32_t n, uint32_t outputs)
{
    if (outputs > 1)
        for (uint32_t j = 0; j < n; j++)
            settle_row(t, j, outputs);
    else
        for (uint32_t i = 0, m; i < n; i += m) {
            m = left(n, i);
            settle_run(t, i, m, t->scale ? lanes_load(t->scale + i, m) : lanes_all(1.0f));
        }
}
