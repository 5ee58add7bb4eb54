/* Steps on cells (kernel/cells.h): value, state, scale and penalty paid of a feature side by side. The same arithmetic as
   the loops over separate arrays, and the same bits. Included by step_loops.h. */

/* Floats of a cell; a second slot is its fifth float. */
enum { CELL_VALUE, CELL_SLOT, CELL_SCALE, CELL_PAID, CELL_SLOT2, CELL_FLOATS = SDR_STEP_SLOTS > 1 ? 8 : 4 };

/* The last entries of a row are stepped as a whole vector of them; those stepped before, the first `done`, keep
   what they have. So rows of any length take the same path, which the CPU can predict. */
#define CELL_LOOPS(bits, type)                                                                     \
    SDR_INLINE void cells_step##bits##_part(float *cell, const float *c, const type *index,        \
                                            const float *x, uint32_t n, float u, const bool last,  \
                                            int32_t done)                                          \
    {                                                                                              \
        lanes v[4], w[4] = {0}, s0, s1 = {0};                                                      \
        cells_load##bits(cell, CELL_FLOATS, index, n, v);                                          \
        if (SDR_STEP_SLOTS > 1) {                                                                  \
            cells_load##bits(cell + CELL_SLOT2, CELL_FLOATS, index, n, w);                         \
            s1 = w[0];                                                                             \
        }                                                                                          \
        s0 = v[CELL_SLOT];                                                                         \
        lanes to = moved(c, v[CELL_VALUE], lanes_load(x, n) * u, v[CELL_SCALE], &s0, &s1);         \
        if (last) {                                                                                \
            lanes_index fresh = lanes_since(done);                                                 \
            to = lanes_select(fresh, to, v[CELL_VALUE]);                                           \
            s0 = lanes_select(fresh, s0, v[CELL_SLOT]);                                            \
            s1 = lanes_select(fresh, s1, w[0]);                                                    \
        }                                                                                          \
        v[CELL_VALUE] = to;                                                                        \
        v[CELL_SLOT] = s0;                                                                         \
        cells_store##bits(cell, CELL_FLOATS, index, n, v);                                         \
        if (SDR_STEP_SLOTS > 1) {                                                                  \
            w[0] = s1;                                                                             \
            cells_store##bits(cell + CELL_SLOT2, CELL_FLOATS, index, n, w);                        \
        }                                                                                          \
    }                                                                                              \
    SDR_INLINE void cells_step##bits(float *cell, const float *c, const type *index,               \
                                     const float *x, uint32_t n, float u)                          \
    {                                                                                              \
        uint32_t i = 0;                                                                            \
        for (; i + SDR_LANES <= n; i += SDR_LANES)                                                 \
            cells_step##bits##_part(cell, c, index + i, x + i, SDR_LANES, u, false, 0);            \
        if (i < n && n < SDR_LANES)                                                                \
            cells_step##bits##_part(cell, c, index, x, n, u, false, 0);                            \
        else if (i < n) {                                                                          \
            uint32_t from = n - SDR_LANES;                                                         \
            cells_step##bits##_part(cell, c, index + from, x + from, SDR_LANES, u, true,           \
                                    (int32_t)(i - from));                                          \
        }                                                                                          \
    }                                                                                              \
    SDR_INLINE lanes cells_paid##bits(const struct sdr_target *t, const type *index, uint32_t n)   \
    {                                                                                              \
        lanes v[4], w[4] = {0};                                                                    \
        cells_load##bits(t->cell, CELL_FLOATS, index, n, v);                                       \
        if (SDR_STEP_SLOTS > 1)                                                                    \
            cells_load##bits(t->cell + CELL_SLOT2, CELL_FLOATS, index, n, w);                      \
        v[CELL_VALUE] =                                                                            \
            shrunk(t, v[CELL_VALUE], v[CELL_SCALE], v[CELL_SLOT], w[0], &v[CELL_PAID]);            \
        cells_store##bits(t->cell, CELL_FLOATS, index, n, v);                                      \
        return v[CELL_VALUE];                                                                      \
    }                                                                                              \
    /* The inner product of cells_dot, of values that pay the penalties due first. Paying twice is paying once. */ \
    SDR_INLINE float cells_dot_paid##bits(const struct sdr_target *target, const type *index,      \
                                          const float *x, uint32_t n)                              \
    {                                                                                              \
        struct sdr_target own = *target, *t = &own; /* which no store can change */                \
        float constant[SDR_CONSTANTS];                                                             \
        memcpy(constant, target->constant, sizeof constant);                                       \
        own.constant = constant;                                                                   \
        struct chains sum = {0};                                                                   \
        uint32_t i = 0;                                                                            \
        if (n < SDR_CHAINS) {                                                                      \
            for (; i + SDR_LANES <= n; i += SDR_LANES)                                             \
                cells_paid##bits(t, index + i, SDR_LANES);                                         \
            if (i < n)                                                                             \
                cells_paid##bits(t, index + i, n - i);                                             \
            return cells_dot##bits(t->cell, CELL_FLOATS, index, x, n);                             \
        }                                                                                          \
        for (; i + SDR_CHAINS <= n; i += SDR_CHAINS)                                               \
            _Pragma("GCC unroll 4") for (int v = 0; v < SDR_CHAIN_VECTORS; v++)                    \
                sum.part[v] += cells_paid##bits(t, index + i + v * SDR_LANES, SDR_LANES) *         \
                               lanes_load(x + i + v * SDR_LANES, SDR_LANES);                       \
        if (i < n) {                                                                               \
            int32_t done = (int32_t)(i - (n - SDR_CHAINS));                                        \
            i = n - SDR_CHAINS;                                                                    \
            _Pragma("GCC unroll 4") for (int v = 0; v < SDR_CHAIN_VECTORS; v++)                    \
                sum.part[v] += cells_paid##bits(t, index + i + v * SDR_LANES, SDR_LANES) *         \
                               (lanes)(lanes_since(done - v * SDR_LANES) &                         \
                                       (lanes_index)lanes_load(x + i + v * SDR_LANES, SDR_LANES)); \
        }                                                                                          \
        return chains_sum(sum);                                                                    \
    }
CELL_LOOPS(16, uint16_t)
CELL_LOOPS(32, uint32_t)
#undef CELL_LOOPS
