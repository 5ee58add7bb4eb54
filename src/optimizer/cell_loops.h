/* Steps on cells (kernel/cells.h): value, state, scale and penalty paid of a feature side by side.
   The same arithmetic as the loops over separate arrays, and the same bits. Included by
   fused_loops.h.

   The cells of a row are loaded once, into vectors that are kept from the score to the step, and
   stored once. A row of n entries is cut into vectors like the inner product of kernel/dot.h: whole
   sixteens, then the last sixteen entries again, as far as they are needed. Entries that lie in two
   vectors are stepped twice, both times from the values kept, to the same bits: so rows of any
   length take the same path, which the CPU can predict. */

/* Floats of a cell; a second slot is its fifth float. */
enum {
    CELL_VALUE,
    CELL_SLOT,
    CELL_SCALE,
    CELL_PAID,
    CELL_SLOT2,
    CELL_FLOATS = SDR_STEP_SLOTS > 1 ? 8 : 4
};

/* Cells of more bytes than a core's own cache are fetched a row ahead. Measured, one worker: cells
   of 16 and 160 MB 1.2 and 1.3 times as fast; of 0.75 MB 0.85 times. */
enum { FETCHED_BYTES = 2 << 20 };

/* Only models of more than 65 536 features have that many cells: their rows have 32-bit indices. */
SDR_INLINE void cells_fetch(const struct sdr_target *t, const struct sdr_sparse_row *row)
{
    for (uint32_t i = 0; i < row->n; i++)
        __builtin_prefetch(t->cell + (size_t)row->index32[i] * CELL_FLOATS, 1);
}

/* The longest row whose cells are kept until its step; cells of a longer one are loaded again. */
enum { KEPT_ENTRIES = 512, KEPT_VECTORS = KEPT_ENTRIES / SDR_LANES };

/* Which penalties cells pay when they are loaded: none, any, or l2 alone, which has a shorter
   loop. */
enum paying { PAYS_NOTHING, PAYS, PAYS_SHARE };

struct cell_vector {
    lanes part[SDR_STEP_SLOTS > 1 ? 5 : 4];
};

#define CELL_LOOPS(bits, type)                                                                     \
    struct cell_row##bits {                                                                        \
        const type *index;                                                                         \
        const float *x;                                                                            \
        uint32_t n, whole, vectors; /* vectors; those from `whole` on end with the row */          \
        type padded_index[SDR_LANES];                                                              \
        float padded_x[SDR_LANES];                                                                 \
        struct cell_vector kept[KEPT_VECTORS];                                                     \
    };                                                                                             \
    /* A row of fewer entries than a vector is filled up with copies of its last one: they are \
       stepped to the same bits. */   \
    SDR_INLINE void cells_open##bits(struct cell_row##bits *row, const type *index,                \
                                     const float *x, uint32_t n)                                   \
    {                                                                                              \
        uint32_t unit = n < SDR_CHAINS ? SDR_LANES : SDR_CHAINS;                                   \
        row->index = index;                                                                        \
        row->x = x;                                                                                \
        row->n = n;                                                                                \
        if (n > 0 && n < SDR_LANES) {                                                              \
            for (uint32_t i = 0; i < SDR_LANES; i++) {                                             \
                row->padded_index[i] = index[i < n ? i : n - 1];                                   \
                row->padded_x[i] = x[i < n ? i : n - 1];                                           \
            }                                                                                      \
            row->index = row->padded_index;                                                        \
            row->x = row->padded_x;                                                                \
            row->n = SDR_LANES;                                                                    \
        }                                                                                          \
        row->whole = row->n / unit * (unit / SDR_LANES);                                           \
        row->vectors = row->whole + (row->n % unit + SDR_LANES - 1) / SDR_LANES;                   \
    }                                                                                              \
    /* The first entry of a vector. */                                                             \
    SDR_INLINE uint32_t cells_first##bits(const struct cell_row##bits *row, uint32_t vector)       \
    {                                                                                              \
        return vector < row->whole ? vector * SDR_LANES                                            \
                                   : row->n - (row->vectors - vector) * SDR_LANES;                 \
    }                                                                                              \
    /* The cells of one vector, which pay the penalties due. */                                    \
    SDR_INLINE void cells_take##bits(const struct sdr_target *t, const type *index,                \
                                     const enum paying pays, struct cell_vector *to)               \
    {                                                                                              \
        lanes v[4], w[4] = {0};                                                                    \
        cells_load##bits(t->cell, CELL_FLOATS, index, v);                                          \
        if (SDR_STEP_SLOTS > 1) {                                                                  \
            cells_load##bits(t->cell + CELL_SLOT2, CELL_FLOATS, index, w);                         \
            to->part[SDR_STEP_SLOTS > 1 ? CELL_SLOT2 : 0] = w[0];                                  \
        }                                                                                          \
        if (pays == PAYS_SHARE)                                                                    \
            v[CELL_VALUE] = shrunk_by_share(t, v[CELL_VALUE], v[CELL_SCALE], v[CELL_SLOT], w[0],   \
                                            &v[CELL_PAID]);                                        \
        else if (pays)                                                                             \
            v[CELL_VALUE] =                                                                        \
                shrunk(t, v[CELL_VALUE], v[CELL_SCALE], v[CELL_SLOT], w[0], &v[CELL_PAID]);        \
        for (int f = 0; f < 4; f++)                                                                \
            to->part[f] = v[f];                                                                    \
    }                                                                                              \
    /* Steps the cells of the entries from `first` on. */                                          \
    SDR_INLINE void cells_step##bits(const struct sdr_target *t, const float *c,                   \
                                     const struct cell_row##bits *row, uint32_t first, float u,    \
                                     const struct cell_vector *kept)                               \
    {                                                                                              \
        lanes v[4], w[4] = {0};                                                                    \
        for (int f = 0; f < 4; f++)                                                                \
            v[f] = kept->part[f];                                                                  \
        if (SDR_STEP_SLOTS > 1)                                                                    \
            w[0] = kept->part[SDR_STEP_SLOTS > 1 ? CELL_SLOT2 : 0];                                \
        v[CELL_VALUE] = moved(c, v[CELL_VALUE], lanes_load(row->x + first, SDR_LANES) * u,         \
                              v[CELL_SCALE], &v[CELL_SLOT], &w[0]);                                \
        cells_store##bits(t->cell, CELL_FLOATS, row->index + first, v);                            \
        if (SDR_STEP_SLOTS > 1)                                                                    \
            cells_store##bits(t->cell + CELL_SLOT2, CELL_FLOATS, row->index + first, w);           \
    }                                                                                              \
    /* Σ value·x, in the order of lanes_dot##bits. n: entries without copies. */                 \
    SDR_INLINE float cells_score##bits(const struct sdr_target *t, struct cell_row##bits *row,     \
                                       uint32_t n, const enum paying pays, const bool keeps)       \
    {                                                                                              \
        struct chains sum = {0};                                                                   \
        uint32_t k = 0;                                                                            \
        if (n < SDR_CHAINS) {                                                                      \
            float value[SDR_CHAINS + SDR_LANES];                                                   \
            for (; k < row->vectors; k++) {                                                        \
                uint32_t first = cells_first##bits(row, k);                                        \
                cells_take##bits(t, row->index + first, pays, &row->kept[k]);                      \
                lanes_store(value + first, row->kept[k].part[CELL_VALUE], SDR_LANES);              \
            }                                                                                      \
            return chains_short(value, row->x, n);                                                 \
        }                                                                                          \
        for (; k < row->whole; k += SDR_CHAIN_VECTORS)                                             \
            SDR_UNROLLED_FOR (4, uint32_t v = 0; v < SDR_CHAIN_VECTORS; v++) {                     \
                struct cell_vector *to = &row->kept[keeps ? k + v : 0];                            \
                uint32_t first = (k + v) * SDR_LANES;                                              \
                cells_take##bits(t, row->index + first, pays, to);                                 \
                sum.part[v] += to->part[CELL_VALUE] * lanes_load(row->x + first, SDR_LANES);       \
            }                                                                                      \
        /* vectors of the last sixteen that are whole ones */                                      \
        uint32_t before = SDR_CHAIN_VECTORS - (row->vectors - k);                                  \
        int32_t done = (int32_t)(k * SDR_LANES) - (int32_t)(n - SDR_CHAINS);                       \
        SDR_UNROLLED_FOR (4, uint32_t v = 0; v < SDR_CHAIN_VECTORS; v++) {                         \
            if (v < before)                                                                        \
                continue;                                                                          \
            struct cell_vector *to = &row->kept[keeps ? k + v - before : 0];                       \
            uint32_t first = n - SDR_CHAINS + v * SDR_LANES;                                       \
            cells_take##bits(t, row->index + first, pays, to);                                     \
            sum.part[v] +=                                                                         \
                lanes_from(done - (int32_t)(v * SDR_LANES),                                        \
                           to->part[CELL_VALUE] * lanes_load(row->x + first, SDR_LANES));          \
        }                                                                                          \
        return chains_sum(sum);                                                                    \
    }                                                                                              \
    /* What is loaded again is loaded before any of it is stored. */                               \
    SDR_INLINE void cells_move##bits(const struct sdr_target *t, const float *c,                   \
                                     struct cell_row##bits *row, float u, const enum paying pays,  \
                                     const bool kept)                                              \
    {                                                                                              \
        uint32_t k = 0;                                                                            \
        for (uint32_t v = row->whole; v < row->vectors && !kept; v++)                              \
            cells_take##bits(t, row->index + cells_first##bits(row, v), pays,                      \
                             &row->kept[1 + v - row->whole]);                                      \
        for (; k < row->whole; k++) {                                                              \
            if (!kept)                                                                             \
                cells_take##bits(t, row->index + k * SDR_LANES, pays, &row->kept[0]);              \
            cells_step##bits(t, c, row, k *SDR_LANES, u, &row->kept[kept ? k : 0]);                \
        }                                                                                          \
        for (; k < row->vectors; k++)                                                              \
            cells_step##bits(t, c, row, cells_first##bits(row, k), u,                              \
                             &row->kept[kept ? k : 1 + k - row->whole]);                           \
    }                                                                                              \
    /* Scores row `number` and steps on it. next: a row to be fetched; NULL: none. */              \
    SDR_INLINE float cells_row##bits(struct sdr_fused_steps *fused, const float *c,                \
                                     uint32_t number, const struct sdr_sparse_row *next,           \
                                     const type *index, const float *x, uint32_t n,                \
                                     const enum paying pays, const bool keeps)                     \
    {                                                                                              \
        struct sdr_target target = *fused->weight; /* which no store can change */                 \
        float constant[SDR_CONSTANTS];                                                             \
        struct cell_row##bits row;                                                                 \
        if (pays) {                                                                                \
            memcpy(constant, target.constant, sizeof constant);                                    \
            target.constant = constant;                                                            \
        }                                                                                          \
        cells_open##bits(&row, index, x, n);                                                       \
        float score = cells_score##bits(&target, &row, n, pays, keeps);                            \
        if (next) /* while the loss waits for the score */                                         \
            cells_fetch(&target, next);                                                            \
        float dloss = dloss_of(fused, number, score);                                              \
        cells_move##bits(&target, c, &row, dloss, pays, keeps);                                    \
        return dloss;                                                                              \
    }                                                                                              \
    /* Rows of more entries than are kept, and penalties other than l2. */                         \
    static __attribute__((noinline)) float cells_other_row##bits(                                  \
        struct sdr_fused_steps *fused, const float *c, uint32_t number,                            \
        const struct sdr_sparse_row *next, const type *index, const float *x, uint32_t n,          \
        enum paying pays)                                                                          \
    {                                                                                              \
        bool keeps = n <= KEPT_ENTRIES;                                                            \
        if (pays == PAYS)                                                                          \
            return keeps ? cells_row##bits(fused, c, number, next, index, x, n, PAYS, true)        \
                         : cells_row##bits(fused, c, number, next, index, x, n, PAYS, false);      \
        return pays ? cells_row##bits(fused, c, number, next, index, x, n, PAYS_SHARE, false)      \
                    : cells_row##bits(fused, c, number, next, index, x, n, PAYS_NOTHING, false);   \
    }
CELL_LOOPS(16, uint16_t)
CELL_LOOPS(32, uint32_t)
#undef CELL_LOOPS
