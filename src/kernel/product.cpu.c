/* The loops of kernel/product.h, compiled once per CPU level. */
#include "kernel/product.h"
#include "kernel/level.h"
#include "kernel/vector.h"

/* Sums of a tile, m rows × n vectors, stay in registers: 28 of 32, 12 of 16, 20 of 32. */
#if defined(__AVX512F__)
enum { TILE_VECTORS = 4, TILE_ROWS = 7 };
#elif defined(__AVX2__)
enum { TILE_VECTORS = 2, TILE_ROWS = 6 };
#elif defined(__ARM_NEON)
enum { TILE_VECTORS = 4, TILE_ROWS = 5 };
#else
enum { TILE_VECTORS = 2, TILE_ROWS = 4 };
#endif

/* ---- product ---- */
/* Where the elements of `a` and `b` are: by tables, by strides, or by strides with a_row = 1: as a
   constant it is part of the instructions that load, which makes the gradient of a dense batch 5 %
   faster. */
enum places { BY_TABLES, BY_STRIDES, ROWS_ADJACENT };

/* Sums of the tile stay in registers: `m` rows × `n` vectors. The last vector may be partial. */
SDR_INLINE void tile(const struct sdr_product *x, uint32_t i, uint32_t j, uint32_t from,
                     uint32_t end, const int m, const int n, const enum places places,
                     const bool whole, tail last)
{
    vector sum[TILE_ROWS * TILE_VECTORS];
    float *to[TILE_ROWS];
    const float *a = x->a + i * x->a_row, *b = x->b + j;
    const bool strides = places != BY_TABLES;
    size_t a_row = places == ROWS_ADJACENT ? 1 : x->a_row, a_step = x->a_step, b_step = x->b_step;
    const size_t *a_at = x->a_at, *b_at = x->b_at;
    bool add = x->add || from > 0;
    SDR_UNROLLED_FOR (8, int r = 0; r < m; r++)
        to[r] = x->to + j + (x->to_at ? x->to_at[i + (uint32_t)r] : (i + (uint32_t)r) * x->to_row);
    SDR_UNROLLED_FOR (8, int r = 0; r < m; r++)
        SDR_UNROLLED_FOR (4, int v = 0; v < n; v++)
            sum[r * n + v] = !add                   ? all(0)
                             : !whole && v == n - 1 ? load_tail(to[r] + v * WIDE, last)
                                                    : load(to[r] + v * WIDE);
    if (strides) {
        a += from * a_step;
        b += from * b_step;
    }
    for (uint32_t p = from; p < end; p++) {
        const float *ap = strides ? a : a + a_at[p], *bp = strides ? b : b + b_at[p];
        vector row[TILE_VECTORS];
        SDR_UNROLLED_FOR (4, int v = 0; v < n; v++)
            row[v] = !whole && v == n - 1 ? load_tail(bp + v * WIDE, last) : load(bp + v * WIDE);
        SDR_UNROLLED_FOR (8, int r = 0; r < m; r++) {
            vector one = all(ap[r * a_row]);
            SDR_UNROLLED_FOR (4, int v = 0; v < n; v++)
                sum[r * n + v] = multiply_add(one, row[v], sum[r * n + v]);
        }
        if (strides) {
            a += a_step;
            b += b_step;
        }
    }
    SDR_UNROLLED_FOR (8, int r = 0; r < m; r++)
        SDR_UNROLLED_FOR (4, int v = 0; v < n; v++)
            if (!whole && v == n - 1)
                store_tail(to[r] + v * WIDE, sum[r * n + v], last);
            else
                store(to[r] + v * WIDE, sum[r * n + v]);
}

/* One function per number of vectors: the number of rows is chosen inside. */
#define TILE_CASE(m, n)                                                                            \
    case m:                                                                                        \
        tile(x, i, j, from, end, m, n, places, whole, last);                                       \
        break;
#define TILE_ROWS_(n) TILE_CASE(1, n) TILE_CASE(2, n) TILE_CASE(3, n) TILE_CASE(4, n)
#if defined(__AVX512F__)
#define TILE_CASES(n) TILE_ROWS_(n) TILE_CASE(5, n) TILE_CASE(6, n) TILE_CASE(7, n)
#elif defined(__AVX2__)
#define TILE_CASES(n) TILE_ROWS_(n) TILE_CASE(5, n) TILE_CASE(6, n)
#elif defined(__ARM_NEON)
#define TILE_CASES(n) TILE_ROWS_(n) TILE_CASE(5, n)
#else
#define TILE_CASES(n) TILE_ROWS_(n)
#endif
SDR_INLINE void tile_rows(const struct sdr_product *x, uint32_t i, uint32_t m, uint32_t j,
                          uint32_t from, uint32_t end, const int n, const enum places places,
                          const bool whole, tail last)
{
    switch (m) {
        TILE_CASES(n)
    }
}

/* All rows of a block of columns, as evenly tiled as possible. */
SDR_INLINE void columns(const struct sdr_product *x, uint32_t j, uint32_t cols, uint32_t from,
                        uint32_t end, const enum places places, const bool whole)
{
    uint32_t tiles = (x->rows + TILE_ROWS - 1) / TILE_ROWS;
    uint32_t vectors = (cols + WIDE - 1) / WIDE;
    tail last = tail_of(cols - (vectors - 1) * WIDE);
    for (uint32_t t = 0; t < tiles; t++) {
        uint32_t i = (uint32_t)((uint64_t)x->rows * t / tiles);
        uint32_t m = (uint32_t)((uint64_t)x->rows * (t + 1) / tiles) - i;
        switch (vectors) {
        case 1: tile_rows(x, i, m, j, from, end, 1, places, whole, last); break;
        case 2: tile_rows(x, i, m, j, from, end, 2, places, whole, last); break;
#if defined(__AVX512F__) || defined(__ARM_NEON)
        case 3: tile_rows(x, i, m, j, from, end, 3, places, whole, last); break;
        case 4: tile_rows(x, i, m, j, from, end, 4, places, whole, last); break;
#endif
        }
    }
}

SDR_INLINE void columns_by(const struct sdr_product *x, uint32_t j, uint32_t cols, uint32_t from,
                           uint32_t end, const enum places places)
{
    if (cols % WIDE == 0)
        columns(x, j, cols, from, end, places, true);
    else
        columns(x, j, cols, from, end, places, false);
}

/* Columns by blocks of a tile, the inner index by blocks whose part of b fits the first cache. */
static void product(const struct sdr_product *x)
{
    enum { INNER = 128, COLUMNS = TILE_VECTORS * WIDE };
    for (uint32_t j = 0; j < x->cols; j += COLUMNS) {
        uint32_t cols = x->cols - j < COLUMNS ? x->cols - j : COLUMNS, from = 0;
        do {
            uint32_t end = x->inner - from < INNER ? x->inner : from + INNER;
            if (x->a_at)
                columns_by(x, j, cols, from, end, BY_TABLES);
            else if (x->a_row == 1)
                columns_by(x, j, cols, from, end, ROWS_ADJACENT);
            else
                columns_by(x, j, cols, from, end, BY_STRIDES);
            from = end;
        } while (from < x->inner);
    }
}

/* ---- cross ---- */
/* Sums over examples: `m` rows × `n` columns, sixteen chains each, in registers. */
enum { PARTS = SDR_CHAINS / WIDE };
#if defined(__AVX512F__)
enum { CROSS_ROWS = 4, CROSS_COLS = 6 };
#elif defined(__AVX2__)
enum { CROSS_ROWS = 3, CROSS_COLS = 2 };
#elif defined(__ARM_NEON)
enum { CROSS_ROWS = 2, CROSS_COLS = 2 };
#else
enum { CROSS_ROWS = 1, CROSS_COLS = 2 };
#endif

SDR_INLINE void cross_tile(const struct sdr_cross *x, uint32_t i, uint32_t j, const int m,
                           const int n)
{
    vector sum[CROSS_ROWS * CROSS_COLS * PARTS];
    const float *a[CROSS_ROWS], *b[CROSS_COLS];
    SDR_UNROLLED_FOR (32, int k = 0; k < m * n * PARTS; k++)
        sum[k] = all(0);
    for (int r = 0; r < m; r++)
        a[r] = x->a + x->a_at[i + (uint32_t)r];
    for (int c = 0; c < n; c++)
        b[c] = x->b + (j + (uint32_t)c) * x->b_row;
    for (uint32_t q = 0; q < x->inner; q++) {
        size_t at = x->q_at[q], bt = (size_t)q * x->lanes;
        for (uint32_t l = 0; l < x->lanes; l += SDR_CHAINS)
            SDR_UNROLLED_FOR (4, int part = 0; part < PARTS; part++) {
                vector left[CROSS_ROWS];
                SDR_UNROLLED_FOR (8, int r = 0; r < m; r++)
                    left[r] = load(a[r] + at + l + part * WIDE);
                SDR_UNROLLED_FOR (8, int c = 0; c < n; c++) {
                    vector right = load(b[c] + bt + l + part * WIDE);
                    SDR_UNROLLED_FOR (8, int r = 0; r < m; r++) {
                        vector *to = &sum[(c * m + r) * PARTS + part];
                        *to = multiply_add(left[r], right, *to);
                    }
                }
            }
    }
    float chain[CROSS_ROWS * CROSS_COLS][SDR_CHAINS] __attribute__((aligned(64)));
    SDR_UNROLLED_FOR (32, int k = 0; k < m * n * PARTS; k++)
        store(&chain[0][0] + k * WIDE, sum[k]);
    for (int r = 0; r < m; r++)
        for (int c = 0; c < n; c++) {
            x->to[(i + (uint32_t)r) * x->to_row + j + (uint32_t)c] =
                chains_sum(chains_of(chain[c * m + r]));
        }
}

static void cross(const struct sdr_cross *x)
{
    for (uint32_t i = 0, m; i < x->rows; i += m) {
        m = x->rows - i < CROSS_ROWS ? 1 : CROSS_ROWS;
        for (uint32_t j = 0, n; j < x->cols; j += n) {
            n = x->cols - j < CROSS_COLS ? 1 : CROSS_COLS;
            if (m > 1 && n > 1)
                cross_tile(x, i, j, CROSS_ROWS, CROSS_COLS);
            else if (m > 1)
                cross_tile(x, i, j, CROSS_ROWS, 1);
            else if (n > 1)
                cross_tile(x, i, j, 1, CROSS_COLS);
            else
                cross_tile(x, i, j, 1, 1);
        }
    }
}

/* ---- gather ---- */
/* Sums of `n` vectors of columns stay in registers, over all entries. */
#define GATHER(name, type)                                                                         \
    SDR_INLINE void name##_part(const float *from, const type *index, const float *x, uint32_t n,  \
                                uint32_t cols, float *to, const int vectors, const bool whole,     \
                                tail last)                                                         \
    {                                                                                              \
        vector sum[GATHERED];                                                                      \
        SDR_UNROLLED_FOR (8, int v = 0; v < vectors; v++)                                          \
            sum[v] =                                                                               \
                !whole && v == vectors - 1 ? load_tail(to + v * WIDE, last) : load(to + v * WIDE); \
        for (uint32_t i = 0; i < n; i++) {                                                         \
            const float *row = from + (size_t)index[i] * cols;                                     \
            vector one = all(x[i]);                                                                \
            SDR_UNROLLED_FOR (8, int v = 0; v < vectors; v++)                                      \
                sum[v] = multiply_add(one,                                                         \
                                      !whole && v == vectors - 1 ? load_tail(row + v * WIDE, last) \
                                                                 : load(row + v * WIDE),           \
                                      sum[v]);                                                     \
        }                                                                                          \
        SDR_UNROLLED_FOR (8, int v = 0; v < vectors; v++)                                          \
            if (!whole && v == vectors - 1)                                                        \
                store_tail(to + v * WIDE, sum[v], last);                                           \
            else                                                                                   \
                store(to + v * WIDE, sum[v]);                                                      \
    }                                                                                              \
    static void name(const float *from, const type *index, const float *x, uint32_t n,             \
                     uint32_t cols, float *to)                                                     \
    {                                                                                              \
        uint32_t j = 0;                                                                            \
        for (; j + GATHERED * WIDE <= cols; j += GATHERED * WIDE)                                  \
            name##_part(from + j, index, x, n, cols, to + j, GATHERED, true, tail_of(WIDE));       \
        for (; j + 2 * WIDE <= cols; j += 2 * WIDE)                                                \
            name##_part(from + j, index, x, n, cols, to + j, 2, true, tail_of(WIDE));              \
        if (j + WIDE < cols)                                                                       \
            name##_part(from + j, index, x, n, cols, to + j, 2, false, tail_of(cols - j - WIDE));  \
        else if (j < cols)                                                                         \
            name##_part(from + j, index, x, n, cols, to + j, 1, false, tail_of(cols - j));         \
    }
enum { GATHERED = 8 };
GATHER(gather16, uint16_t)
GATHER(gather32, uint32_t)

/* ---- scatter ---- */
SDR_INLINE void scatter_part(float *to, const uint32_t *place, const float *x, uint32_t n,
                             const float *u, uint32_t cols, const bool whole, tail last)
{
    vector v = whole ? load(u) : load_tail(u, last);
    for (uint32_t i = 0; i < n; i++) {
        float *row = to + (size_t)place[i] * cols;
        vector sum = multiply_add(all(x[i]), v, whole ? load(row) : load_tail(row, last));
        if (whole)
            store(row, sum);
        else
            store_tail(row, sum, last);
    }
}

static void scatter(float *to, const uint32_t *place, const float *x, uint32_t n, const float *u,
                    uint32_t cols)
{
    uint32_t j = 0;
    for (; j + WIDE <= cols; j += WIDE)
        scatter_part(to + j, place, x, n, u + j, cols, true, tail_of(WIDE));
    if (j < cols)
        scatter_part(to + j, place, x, n, u + j, cols, false, tail_of(cols - j));
}

/* ---- transpose ---- */
/* By squares that both sides have in the first cache. */
static void transpose(const float *from, size_t from_row, uint32_t rows, uint32_t cols, float *to,
                      size_t to_row)
{
    enum { SIDE = 16 };
    for (uint32_t i = 0; i < rows; i += SIDE)
        for (uint32_t j = 0; j < cols; j += SIDE) {
            uint32_t m = rows - i < SIDE ? rows - i : SIDE, n = cols - j < SIDE ? cols - j : SIDE;
            for (uint32_t c = 0; c < n; c++)
                for (uint32_t r = 0; r < m; r++)
                    to[(j + c) * to_row + i + r] = from[(i + r) * from_row + j + c];
        }
}

/* ---- activations ---- */
SDR_INLINE lanes activated(const enum sdr_activation f, lanes x)
{
    if (f == SDR_TANH) {
        lanes twice = lanes_abs(x) * 2.0f;
        lanes y = lanes_one_minus_exp(twice) / (1.0f + lanes_exp_negative(-twice));
        return lanes_copysign(y, x);
    }
    lanes e = lanes_exp_negative(-lanes_abs(x)), one = lanes_all(1.0f);
    return lanes_select(x < 0.0f, e, lanes_select(x >= 0.0f, one, x)) / (1.0f + e); /* NaN: x */
}

SDR_INLINE void activate_by(const enum sdr_activation f, float *x, size_t n)
{
    size_t i = 0;
    for (; i + SDR_LANES <= n; i += SDR_LANES)
        lanes_store(x + i, activated(f, lanes_load(x + i, SDR_LANES)), SDR_LANES);
    if (i < n)
        lanes_store(x + i, activated(f, lanes_load(x + i, (uint32_t)(n - i))), (uint32_t)(n - i));
}

static void activate(enum sdr_activation f, float *x, size_t n)
{
    if (f == SDR_TANH)
        activate_by(SDR_TANH, x, n);
    if (f == SDR_SIGMOID)
        activate_by(SDR_SIGMOID, x, n);
    if (f != SDR_RELU)
        return;
    size_t i = 0;
    for (; i + WIDE <= n; i += WIDE)
        store(x + i, not_negative(load(x + i)));
    if (i < n)
        store_tail(x + i, not_negative(load_tail(x + i, tail_of((uint32_t)(n - i)))),
                   tail_of((uint32_t)(n - i)));
}

SDR_INLINE vector sloped(const enum sdr_activation f, vector y, vector delta)
{
    if (f == SDR_RELU)
        return where_positive(y, delta);
    return f == SDR_TANH ? delta * (1.0f - y * y) : delta * (y * (1.0f - y));
}

SDR_INLINE void slope_by(const enum sdr_activation f, const float *y, float *delta, size_t n)
{
    size_t i = 0;
    for (; i + WIDE <= n; i += WIDE)
        store(delta + i, sloped(f, load(y + i), load(delta + i)));
    if (i < n) {
        tail t = tail_of((uint32_t)(n - i));
        store_tail(delta + i, sloped(f, load_tail(y + i, t), load_tail(delta + i, t)), t);
    }
}

static void slope(enum sdr_activation f, const float *y, float *delta, size_t n)
{
    if (f == SDR_RELU)
        slope_by(SDR_RELU, y, delta, n);
    else if (f == SDR_TANH)
        slope_by(SDR_TANH, y, delta, n);
    else
        slope_by(SDR_SIGMOID, y, delta, n);
}

/* ---- pooling ---- */
/* Every window of every image, a vector of examples at a time: `at` is its first pixel, `out_at +
   l` its result. */
#define WINDOWS(w)                                                                                 \
    for (size_t c = 0, out_at = 0; c < (w)->channels; c++)                                         \
        for (size_t y = 0; y < (w)->out_rows; y++)                                                 \
            for (size_t x = 0; x < (w)->out_cols; x++, out_at += (w)->lanes)                       \
                for (size_t l = 0, at = ((c * (w)->rows + y * (w)->stride) * (w)->cols +           \
                                         x * (w)->stride) *                                        \
                                        (w)->lanes;                                                \
                     l < (w)->lanes; l += WIDE, at += WIDE)

static void pool(const struct sdr_pooling *w, const float *from, float *to)
{
    size_t row = (size_t)w->cols * w->lanes;
    WINDOWS (w) {
        vector most = load(from + at);
        for (uint32_t v = 0; v < w->size; v++)
            for (uint32_t u = 0; u < w->size; u++)
                most = larger(load(from + at + v * row + u * w->lanes), most);
        store(to + out_at + l, most);
    }
}

static void unpool(const struct sdr_pooling *w, const float *from, const float *to,
                   const float *delta, float *into)
{
    size_t row = (size_t)w->cols * w->lanes;
    bool apart = w->stride >= w->size;
    WINDOWS (w) {
        vector most = load(to + out_at + l), left = load(delta + out_at + l);
        for (uint32_t v = 0; v < w->size; v++)
            for (uint32_t u = 0; u < w->size; u++) {
                size_t place = at + v * row + u * w->lanes;
                vector share = where_equal(load(from + place), most, left);
                store(into + place, (apart ? all(0) : load(into + place)) + share);
                left = left - share; /* 0, or what it was */
            }
    }
}

const struct sdr_product_kernels SDR_FOR_LEVEL(sdr_product_kernels);
const struct sdr_product_kernels SDR_FOR_LEVEL(sdr_product_kernels) = {
    .product = product,
    .cross = cross,
    .gather16 = gather16,
    .gather32 = gather32,
    .scatter = scatter,
    .transpose = transpose,
    .activate = activate,
    .slope = slope,
    .pool = pool,
    .unpool = unpool,
#if defined(VECTOR_EMULATED)
    .emulated = true,
#endif
};
