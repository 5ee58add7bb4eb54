/* The loops of kernel/full.h, compiled once per CPU level. */
#include "kernel/full.h"
#include "kernel/doubles.h"
#include "kernel/level.h"

#include <stdbool.h>

/* Sums that stay in registers: SCORE_ROWS × SCORE_OUTPUTS scores of SDR_DOUBLE_CHAINS chains each,
   and ADD_VECTORS vectors of features for ADD_OUTPUTS outputs, or ONE_VECTORS for one. */
#if defined(__AVX512F__)
enum { SCORE_ROWS = 4, SCORE_OUTPUTS = 5, ADD_VECTORS = 4, ADD_OUTPUTS = 5, ONE_VECTORS = 8 };
#elif defined(__AVX2__)
enum { SCORE_ROWS = 2, SCORE_OUTPUTS = 2, ADD_VECTORS = 3, ADD_OUTPUTS = 3, ONE_VECTORS = 8 };
#else
enum { SCORE_ROWS = 2, SCORE_OUTPUTS = 1, ADD_VECTORS = 4, ADD_OUTPUTS = 2, ONE_VECTORS = 8 };
#endif
enum { SCORE_MOST = 4 }; /* rows of one output */

/* ---- dense rows: scores ---- */
/* m rows times c outputs. A loaded vector of weights serves m rows, one of a row c outputs. */
SDR_INLINE void score_tile(const double *w, size_t w_row, uint32_t outputs, const float *const *x,
                           uint32_t n, const int m, const int c, double *score)
{
    doubles sum[SCORE_MOST * SCORE_OUTPUTS * PARTS];
    uint32_t j = 0;
    SDR_UNROLLED_FOR (32, int i = 0; i < m * c * PARTS; i++)
        sum[i] = doubles_all(0);
    for (; j + SDR_DOUBLE_CHAINS <= n; j += SDR_DOUBLE_CHAINS)
        SDR_UNROLLED_FOR (4, int p = 0; p < PARTS; p++) {
            doubles row[SCORE_MOST];
            SDR_UNROLLED_FOR (4, int r = 0; r < m; r++)
                row[r] = doubles_floats(x[r] + j + p * DOUBLES);
            SDR_UNROLLED_FOR (8, int k = 0; k < c; k++) {
                doubles weight = doubles_load(w + (size_t)k * w_row + j + p * DOUBLES);
                SDR_UNROLLED_FOR (4, int r = 0; r < m; r++)
                    sum[(r * c + k) * PARTS + p] += row[r] * weight;
            }
        }
    SDR_UNROLLED_FOR (4, int p = 0; p < PARTS; p++)
        if (j + p * DOUBLES < n) {
            uint32_t at = j + p * DOUBLES, left = n - at < DOUBLES ? n - at : DOUBLES;
            SDR_UNROLLED_FOR (4, int r = 0; r < m; r++) {
                doubles row = doubles_tail(x[r] + at, left);
                SDR_UNROLLED_FOR (8, int k = 0; k < c; k++)
                    sum[(r * c + k) * PARTS + p] += row * doubles_load(w + (size_t)k * w_row + at);
            }
        }
    SDR_UNROLLED_FOR (4, int r = 0; r < m; r++)
        SDR_UNROLLED_FOR (8, int k = 0; k < c; k++)
            score[(size_t)r * outputs + k] = doubles_sum(sum + (r * c + k) * PARTS);
}

/* All rows for c outputs: m rows at a time, then one by one. */
SDR_INLINE void score_rows(const double *w, size_t w_row, uint32_t outputs, const float *const *x,
                           uint32_t rows, uint32_t n, const int m, const int c, double *score)
{
    uint32_t r = 0;
    for (; r + m <= rows; r += m)
        score_tile(w, w_row, outputs, x + r, n, m, c, score + (size_t)r * outputs);
    for (; r < rows; r++)
        score_tile(w, w_row, outputs, x + r, n, 1, c, score + (size_t)r * outputs);
}

/* Output number t of `tiles` parts of them, as even as possible. */
SDR_INLINE uint32_t cut(uint32_t outputs, uint32_t t, uint32_t tiles)
{
    return (uint32_t)((uint64_t)outputs * t / tiles);
}

static void scores(const double *w, size_t w_row, uint32_t outputs, const float *const *x,
                   uint32_t rows, uint32_t n, double *score)
{
    uint32_t tiles = (outputs + SCORE_OUTPUTS - 1) / SCORE_OUTPUTS;
    for (uint32_t t = 0; t < tiles; t++) {
        uint32_t k = cut(outputs, t, tiles);
        const double *from = w + k * w_row;
        double *to = score + k;
#define SCORES(c)                                                                                  \
    case c:                                                                                        \
        if (c <= SCORE_OUTPUTS)                                                                    \
            score_rows(from, w_row, outputs, x, rows, n, c == 1 ? SCORE_MOST : SCORE_ROWS,         \
                       c <= SCORE_OUTPUTS ? c : 1, to);                                            \
        break;
        switch (cut(outputs, t + 1, tiles) - k) {
            SCORES(1)
            SCORES(2)
            SCORES(3)
            SCORES(4)
            SCORES(5)
        }
#undef SCORES
    }
}

/* ---- dense rows: sums ---- */
/* v vectors of features from `at` on, for c outputs. The sums stay in registers over all rows.
   `last`: features of the last vector. */
SDR_INLINE void add_tile(double *sum, size_t sum_row, uint32_t outputs, const float *const *x,
                         uint32_t rows, uint32_t at, const double *u, const int v, const int c,
                         const bool whole, uint32_t last)
{
    doubles
        total[ADD_VECTORS * ADD_OUTPUTS > ONE_VECTORS ? ADD_VECTORS * ADD_OUTPUTS : ONE_VECTORS];
    SDR_UNROLLED_FOR (8, int k = 0; k < c; k++)
        SDR_UNROLLED_FOR (8, int i = 0; i < v; i++)
            total[k * v + i] = doubles_load(sum + (size_t)k * sum_row + at + i * DOUBLES);
    for (uint32_t r = 0; r < rows; r++, u += outputs) {
        doubles row[ONE_VECTORS];
        SDR_UNROLLED_FOR (8, int i = 0; i < v; i++)
            row[i] = whole || i < v - 1 ? doubles_floats(x[r] + at + i * DOUBLES)
                                        : doubles_tail(x[r] + at + i * DOUBLES, last);
        SDR_UNROLLED_FOR (8, int k = 0; k < c; k++) {
            doubles factor = doubles_all(u[k]);
            SDR_UNROLLED_FOR (8, int i = 0; i < v; i++)
                total[k * v + i] += factor * row[i];
        }
    }
    SDR_UNROLLED_FOR (8, int k = 0; k < c; k++)
        SDR_UNROLLED_FOR (8, int i = 0; i < v; i++)
            doubles_store(sum + (size_t)k * sum_row + at + i * DOUBLES, total[k * v + i]);
}

/* All features for c outputs, in tiles of `most` vectors at most, as even as possible. */
SDR_INLINE void add_outputs(double *sum, size_t sum_row, uint32_t outputs, const float *const *x,
                            uint32_t rows, uint32_t n, const double *u, const uint32_t most,
                            const int c)
{
    uint32_t vectors = (n + DOUBLES - 1) / DOUBLES, tiles = (vectors + most - 1) / most;
    for (uint32_t t = 0; t < tiles; t++) {
        uint32_t first = (uint32_t)((uint64_t)vectors * t / tiles);
        uint32_t v = (uint32_t)((uint64_t)vectors * (t + 1) / tiles) - first;
        uint32_t at = first * DOUBLES, last = n - at - (v - 1) * DOUBLES;
        bool whole = last >= DOUBLES;
#define ADD_TILE(number)                                                                           \
    case number:                                                                                   \
        if (number > most)                                                                         \
            break;                                                                                 \
        if (whole)                                                                                 \
            add_tile(sum, sum_row, outputs, x, rows, at, u, number, c, true, DOUBLES);             \
        else                                                                                       \
            add_tile(sum, sum_row, outputs, x, rows, at, u, number, c, false, last);               \
        break;
        switch (v) {
            ADD_TILE(1)
            ADD_TILE(2)
            ADD_TILE(3)
            ADD_TILE(4)
            ADD_TILE(5)
            ADD_TILE(6)
            ADD_TILE(7)
            ADD_TILE(8)
        }
#undef ADD_TILE
    }
}

static void add(double *sum, size_t sum_row, uint32_t outputs, const float *const *x, uint32_t rows,
                uint32_t n, const double *u)
{
    uint32_t tiles = (outputs + ADD_OUTPUTS - 1) / ADD_OUTPUTS;
    for (uint32_t t = 0; t < tiles; t++) {
        uint32_t k = cut(outputs, t, tiles);
        double *to = sum + k * sum_row;
#define ADD(c)                                                                                     \
    case c:                                                                                        \
        if (c <= ADD_OUTPUTS)                                                                      \
            add_outputs(to, sum_row, outputs, x, rows, n, u + k,                                   \
                        c == 1 ? ONE_VECTORS : ADD_VECTORS, c <= ADD_OUTPUTS ? c : 1);             \
        break;
        switch (cut(outputs, t + 1, tiles) - k) {
            ADD(1)
            ADD(2)
            ADD(3)
            ADD(4)
            ADD(5)
        }
#undef ADD
    }
}

/* ---- sparse rows ---- */
/* One output: four chains, entry i in chain i mod 4. Several: one chain each, in the order of the
   entries. */
#define SPARSE(scores_name, add_name, type)                                                        \
    static void scores_name(const double *w, uint32_t outputs, const type *index, const float *x,  \
                            uint32_t n, double *score)                                             \
    {                                                                                              \
        uint32_t k = 0, i = 0;                                                                     \
        if (outputs == 1) {                                                                        \
            double a = 0, b = 0, c = 0, d = 0;                                                     \
            for (; i + 4 <= n; i += 4) {                                                           \
                a += w[index[i]] * x[i];                                                           \
                b += w[index[i + 1]] * x[i + 1];                                                   \
                c += w[index[i + 2]] * x[i + 2];                                                   \
                d += w[index[i + 3]] * x[i + 3];                                                   \
            }                                                                                      \
            for (; i < n; i++)                                                                     \
                a += w[index[i]] * x[i];                                                           \
            *score = (a + c) + (b + d);                                                            \
            return;                                                                                \
        }                                                                                          \
        for (; k + DOUBLES <= outputs; k += DOUBLES) {                                             \
            doubles sum = doubles_all(0);                                                          \
            for (i = 0; i < n; i++)                                                                \
                sum += doubles_load(w + (size_t)index[i] * outputs + k) * doubles_all(x[i]);       \
            doubles_store(score + k, sum);                                                         \
        }                                                                                          \
        for (; k < outputs; k++) {                                                                 \
            double sum = 0;                                                                        \
            for (i = 0; i < n; i++)                                                                \
                sum += w[(size_t)index[i] * outputs + k] * x[i];                                   \
            score[k] = sum;                                                                        \
        }                                                                                          \
    }                                                                                              \
    static void add_name(double *sum, uint32_t outputs, const type *index, const float *x,         \
                         uint32_t n, const double *u)                                              \
    {                                                                                              \
        for (uint32_t i = 0; i < n; i++) {                                                         \
            double *to = sum + (size_t)index[i] * outputs;                                         \
            uint32_t k = 0;                                                                        \
            for (; k + DOUBLES <= outputs; k += DOUBLES)                                           \
                doubles_store(to + k,                                                              \
                              doubles_load(to + k) + doubles_load(u + k) * doubles_all(x[i]));     \
            for (; k < outputs; k++)                                                               \
                to[k] += u[k] * x[i];                                                              \
        }                                                                                          \
    }
SPARSE(scores16, add16, uint16_t)
SPARSE(scores32, add32, uint32_t)

const struct sdr_full_kernels SDR_FOR_LEVEL(sdr_full_kernels);
const struct sdr_full_kernels SDR_FOR_LEVEL(sdr_full_kernels) = {scores,   add,   scores16,
                                                                 scores32, add16, add32};
