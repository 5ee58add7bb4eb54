/* The loops of kernel/linear.h, compiled once per CPU level. */
#include "kernel/linear.h"
#include "kernel/cells.h"
#include "kernel/dot.h"
#include "kernel/level.h"

static float dot16(const float *w, const uint16_t *index, const float *x, uint32_t n)
{
    return lanes_dot16(w, index, x, n);
}

static float dot32(const float *w, const uint32_t *index, const float *x, uint32_t n)
{
    return lanes_dot32(w, index, x, n);
}

static float dot(const float *w, const float *x, const float *center, uint32_t n)
{
    return lanes_dot(w, x, center, n);
}

/* Sixteen outputs at a time over all features, so that the sums stay in a register. */
#define SPARSE_SCORES(name, type)                                                                  \
    static void name(const float *w, const type *index, const float *x, uint32_t n,                \
                     uint32_t outputs, float *score)                                               \
    {                                                                                              \
        for (uint32_t k = 0, m; k < outputs; k += m) {                                             \
            m = lanes_left(outputs, k);                                                            \
            lanes sum = lanes_load(score + k, m);                                                  \
            for (uint32_t i = 0; i < n; i++)                                                       \
                sum += lanes_load(w + (size_t)index[i] * outputs + k, m) * x[i];                   \
            lanes_store(score + k, sum, m);                                                        \
        }                                                                                          \
    }
SPARSE_SCORES(scores16, uint16_t)
SPARSE_SCORES(scores32, uint32_t)

static void scores(const float *w, const float *x, const float *center, uint32_t n,
                   uint32_t outputs, float *score)
{
    for (uint32_t k = 0, m; k < outputs; k += m) {
        m = lanes_left(outputs, k);
        lanes sum = lanes_load(score + k, m);
        for (uint32_t i = 0; i < n; i++) {
            float xi = center ? x[i] - center[i] : x[i];
            sum += lanes_load(w + (size_t)i * outputs + k, m) * xi;
        }
        lanes_store(score + k, sum, m);
    }
}

SDR_INLINE void copy_lanes(float *to, const float *x, const float *center, uint32_t n)
{
    lanes v = lanes_load(x, n);
    if (center)
        v -= lanes_load(center, n);
    lanes_store(to, v, n);
}

static void copy(float *to, const float *x, const float *center, uint32_t n)
{
    uint32_t i = 0;
    for (; i + SDR_LANES <= n; i += SDR_LANES)
        copy_lanes(to + i, x + i, center ? center + i : NULL, SDR_LANES);
    if (i < n)
        copy_lanes(to + i, x + i, center ? center + i : NULL, n - i);
}

/* ---- rows together ---- */
enum {
    /* features per chunk, at most: the centered values of a group stay in the L1 cache */
    CHUNK = 256,
    LINE = 16, /* floats of a cache line */
/* The sums of a tile stay in registers; a group of rows is copied at a time. */
#if defined(__AVX512F__)
    TILE_ROWS = 8,
    VECTORS = 3,
    GROUP = 3 * TILE_ROWS
#else
    TILE_ROWS = 6,
    VECTORS = 2,
    GROUP = 2 * TILE_ROWS
#endif
};

/* A chunk of features times `vectors` of outputs: each loaded weight serves all rows of a tile.
   `last`: lanes of the last vector. ahead: for each row, what is needed next; `fetched` floats of
   it are fetched meanwhile, n at most. */
SDR_INLINE void tile(const float *w, float x[][CHUNK], uint32_t n, uint32_t outputs,
                     const int vectors, uint32_t last, const float *const *ahead, uint32_t fetched,
                     float *const *score)
{
    lanes total[TILE_ROWS * VECTORS];
    SDR_UNROLLED_FOR (8, int r = 0; r < TILE_ROWS; r++)
        SDR_UNROLLED_FOR (4, int v = 0; v < vectors; v++)
            total[r * VECTORS + v] =
                lanes_load(score[r] + v * SDR_LANES, v + 1 < vectors ? (uint32_t)SDR_LANES : last);
    for (uint32_t i = 0; i < n;) {
        uint32_t end = n - i < LINE ? n : i + LINE;
        for (int r = 0; r < TILE_ROWS && i < fetched; r++)
            __builtin_prefetch(ahead[r] + i);
        for (; i < end; i++, w += outputs) {
            lanes s[VECTORS];
            SDR_UNROLLED_FOR (4, int v = 0; v < vectors; v++)
                s[v] = lanes_load(w + v * SDR_LANES, v + 1 < vectors ? (uint32_t)SDR_LANES : last);
            SDR_UNROLLED_FOR (8, int r = 0; r < TILE_ROWS; r++)
                SDR_UNROLLED_FOR (4, int v = 0; v < vectors; v++)
                    total[r * VECTORS + v] += s[v] * x[r][i];
        }
    }
    SDR_UNROLLED_FOR (8, int r = 0; r < TILE_ROWS; r++)
        SDR_UNROLLED_FOR (4, int v = 0; v < vectors; v++)
            lanes_store(score[r] + v * SDR_LANES, total[r * VECTORS + v],
                        v + 1 < vectors ? (uint32_t)SDR_LANES : last);
}

SDR_INLINE void columns(const float *w, float x[][CHUNK], uint32_t n, uint32_t outputs,
                        const float *const *ahead, uint32_t fetched, float *const *to,
                        uint32_t left)
{
    uint32_t last = (left - 1) % SDR_LANES + 1;
    if (left >= VECTORS * SDR_LANES)
        tile(w, x, n, outputs, VECTORS, SDR_LANES, ahead, fetched, to);
#if defined(__AVX512F__)
    else if (left > 2 * SDR_LANES)
        tile(w, x, n, outputs, 3, last, ahead, fetched, to);
#endif
    else if (left > SDR_LANES)
        tile(w, x, n, outputs, 2, last, ahead, fetched, to);
    else
        tile(w, x, n, outputs, 1, last, ahead, fetched, to);
}

/* Features of a chunk: whole lines, and about as many in every chunk. */
static uint32_t chunk_of(uint32_t n)
{
    uint32_t chunks = (n + CHUNK - 1) / CHUNK;
    return chunks ? ((n + chunks - 1) / chunks + LINE - 1) / LINE * LINE : LINE;
}

/* A group of rows is copied chunk by chunk; its next chunk, or the first one of the next group, is
   fetched meanwhile. */
static void scores_together(const float *w, const float *const *x, uint32_t rows,
                            const float *center, uint32_t n, uint32_t outputs, float *score)
{
    float part[GROUP][CHUNK], spare[VECTORS * SDR_LANES] = {0};
    const float *ahead[GROUP];
    uint32_t chunk = chunk_of(n);
    for (uint32_t first = 0; first < rows; first += GROUP) {
        uint32_t padded =
            ((rows - first < GROUP ? rows - first : GROUP) + TILE_ROWS - 1) / TILE_ROWS * TILE_ROWS;
        for (uint32_t from = 0; from < n; from += chunk) {
            uint32_t count = n - from < chunk ? n - from : chunk;
            uint32_t left = n - from - count, fetched = left                   ? left
                                                        : first + GROUP < rows ? chunk
                                                                               : 0;
            for (uint32_t r = 0; r < padded; r++) { /* missing rows repeat the first */
                uint32_t row = first + r < rows ? first + r : first;
                uint32_t next = row + GROUP < rows ? row + GROUP : row;
                copy(part[r], x[row] + from, center ? center + from : NULL, count);
                ahead[r] = left ? x[row] + from + count : x[next];
            }
            for (uint32_t k = 0; k < outputs; k += VECTORS * SDR_LANES)
                for (uint32_t t = 0; t < padded; t += TILE_ROWS) {
                    float *to[TILE_ROWS];
                    for (uint32_t r = 0; r < TILE_ROWS; r++)
                        to[r] = first + t + r < rows ? score + (size_t)(first + t + r) * outputs + k
                                                     : spare;
                    columns(w + (size_t)from * outputs + k, part + t, count, outputs, ahead + t,
                            k == 0 ? fetched : 0, to, outputs - k);
                }
        }
    }
}

static void add(float *to, float a, const float *x, const float *center, uint32_t n)
{
    for (uint32_t i = 0, m; i < n; i += m) {
        m = lanes_left(n, i);
        lanes v = lanes_load(x + i, m);
        if (center)
            v -= lanes_load(center + i, m);
        lanes_store(to + i, lanes_load(to + i, m) + v * a, m);
    }
}

/* What replicas made of a vector of values. */
struct changes {
    lanes base, sum, count, last;
};
SDR_INLINE struct changes no_changes(lanes base)
{
    return (struct changes){base, {0}, {0}, base};
}
SDR_INLINE void add_change(struct changes *c, lanes mine)
{
    lanes_index changed = mine != c->base;
    c->sum += lanes_select(changed, mine - c->base, (lanes){0});
    c->count += lanes_select(changed, lanes_all(1.0f), (lanes){0});
    c->last = lanes_select(changed, mine, c->last);
}
/* A value that only one copy changed is taken as it is. damping: of each value; NULL: none. */
SDR_INLINE lanes merged(const struct changes *c, const enum sdr_merge how, const lanes *damping)
{
    lanes zero = {0}, one = lanes_all(1.0f), k = lanes_max(c->count, one), share = one;
    if (how == SDR_MERGE_MEAN)
        share = one / k;
    else if (damping)
        share = lanes_min(one, lanes_max(2.0f / k, *damping));
    lanes next = c->base + share * c->sum;
    if (how == SDR_MERGE_SHRUNK)
        next = lanes_select((c->last * c->base >= 0.0f) & (next * c->base < 0.0f), zero, next);
    return lanes_select(c->count <= 1.0f, c->last, next);
}

SDR_INLINE void merge_by(float *shared, const float *const *copy, int copies, uint64_t count,
                         const enum sdr_merge how, const float *damping)
{
    for (uint64_t i = 0; i < count; i += SDR_LANES) {
        struct changes c = no_changes(lanes_load(shared + i, SDR_LANES));
        for (int k = 0; k < copies; k++)
            add_change(&c, lanes_load(copy[k] + i, SDR_LANES));
        lanes least = damping ? lanes_load(damping + i, SDR_LANES) : (lanes){0};
        lanes_store(shared + i, merged(&c, how, damping ? &least : NULL), SDR_LANES);
    }
}

/* Values of the features of cells j, j + 1, …; feature NULL: cell j is feature j. */
SDR_INLINE lanes values_of_cells(const float *array, const uint32_t *feature, uint64_t j)
{
    return feature ? lanes_listed32(array, feature + j) : lanes_load(array + j, SDR_LANES);
}
SDR_INLINE void set_values_of_cells(float *array, const uint32_t *feature, uint64_t j, lanes v)
{
    if (!feature)
        lanes_store(array + j, v, SDR_LANES);
    for (uint32_t i = 0; feature && i < SDR_LANES; i++)
        array[feature[j + i]] = v[i];
}

/* arrays: a constant where it is called. */
SDR_INLINE void merge_cells_by(float *const *shared, const int arrays, const uint32_t *feature,
                               float *const *cell, int copies, const size_t size, uint64_t first,
                               uint64_t end, const enum sdr_merge how, const float *damping)
{
    for (uint64_t j = first; j < end; j += SDR_LANES) {
        struct changes c[3];
        lanes v[4], next[3];
        uint32_t at[SDR_LANES];
        lanes_index any = {0};
        for (uint32_t i = 0; i < SDR_LANES; i++)
            at[i] = i;
        for (int i = 0; i < arrays; i++)
            c[i] = no_changes(values_of_cells(shared[i], feature, j));
        for (int k = 0; k < copies; k++) {
            cells_load32(cell[k] + j * size, size, at, v);
            for (int i = 0; i < arrays && i < 2; i++)
                add_change(&c[i], v[i]);
            if (arrays > 2) {
                cells_load32(cell[k] + j * size + 4, size, at, v);
                add_change(&c[2], v[0]);
            }
        }
        for (int i = 0; i < arrays; i++)
            any |= c[i].count > 0.0f;
        if (!lanes_any(any))
            continue;
        lanes least = damping ? values_of_cells(damping, feature, j) : (lanes){0};
        for (int i = 0; i < arrays; i++) {
            next[i] = i > 0 ? merged(&c[i], how, NULL)
                            : merged(&c[0], SDR_MERGE_SUM, damping ? &least : NULL);
            set_values_of_cells(shared[i], feature, j, next[i]);
        }
        for (int k = 0; k < copies; k++) {
            cells_load32(cell[k] + j * size, size, at, v);
            for (int i = 0; i < arrays && i < 2; i++)
                v[i] = next[i];
            cells_store32(cell[k] + j * size, size, at, v);
            if (arrays > 2)
                cells_store32(cell[k] + j * size + 4, size, at, (lanes[4]){next[2]});
        }
    }
}

static void merge_cells(float *const *shared, int arrays, const uint32_t *feature,
                        float *const *cell, int copies, size_t size, uint64_t first, uint64_t end,
                        enum sdr_merge how, const float *damping)
{
    if (arrays == 1)
        merge_cells_by(shared, 1, feature, cell, copies, 4, first, end, SDR_MERGE_SUM, damping);
    else if (arrays == 2 && how == SDR_MERGE_SUM)
        merge_cells_by(shared, 2, feature, cell, copies, 4, first, end, SDR_MERGE_SUM, damping);
    else if (arrays == 2)
        merge_cells_by(shared, 2, feature, cell, copies, 4, first, end, SDR_MERGE_MEAN, damping);
    else
        merge_cells_by(shared, 3, feature, cell, copies, size, first, end, how, damping);
}

static void merge(float *shared, const float *const *copy, int copies, uint64_t count,
                  enum sdr_merge how, const float *damping)
{
    if (how == SDR_MERGE_MEAN)
        merge_by(shared, copy, copies, count, SDR_MERGE_MEAN, NULL);
    else if (how == SDR_MERGE_SHRUNK)
        merge_by(shared, copy, copies, count, SDR_MERGE_SHRUNK, damping);
    else
        merge_by(shared, copy, copies, count, SDR_MERGE_SUM, damping);
}

extern const struct sdr_product_kernels SDR_FOR_LEVEL(sdr_product_kernels);
const struct sdr_linear_kernels SDR_FOR_LEVEL(sdr_linear_kernels);
const struct sdr_linear_kernels SDR_FOR_LEVEL(sdr_linear_kernels) = {
    dot16,           dot32, dot, scores16, scores32,    scores,
    scores_together, copy,  add, merge,    merge_cells, &SDR_FOR_LEVEL(sdr_product_kernels)};
