/* Cells: the floats that belong to one feature, side by side, so that a step on a sparse row touches one cache line a
   feature. Four floats each, or eight; sixteen-byte aligned. Compiled once per CPU level. */
#ifndef SDR_KERNEL_CELLS_H
#define SDR_KERNEL_CELLS_H

#include "kernel/lanes.h"

typedef float four __attribute__((vector_size(16)));

/* ---- four vectors ↔ the first four floats of as many cells ---- */
#if defined(__AVX512F__)
typedef __m512 cells_row; /* floats of four cells, every fourth one */
#define CELLS_ROW(r)                                                                               \
    _mm512_insertf32x4(                                                                            \
        _mm512_insertf32x4(_mm512_insertf32x4(_mm512_castps128_ps512(CELL_AT(r)), CELL_AT((r) + 4), 1), CELL_AT((r) + 8), 2), \
        CELL_AT((r) + 12), 3)
SDR_INLINE void cells_turn(const cells_row from[4], lanes to[4])
{
    __m512d t0 = _mm512_castps_pd(_mm512_unpacklo_ps(from[0], from[1]));
    __m512d t1 = _mm512_castps_pd(_mm512_unpackhi_ps(from[0], from[1]));
    __m512d t2 = _mm512_castps_pd(_mm512_unpacklo_ps(from[2], from[3]));
    __m512d t3 = _mm512_castps_pd(_mm512_unpackhi_ps(from[2], from[3]));
    to[0] = (lanes)_mm512_unpacklo_pd(t0, t2);
    to[1] = (lanes)_mm512_unpackhi_pd(t0, t2);
    to[2] = (lanes)_mm512_unpacklo_pd(t1, t3);
    to[3] = (lanes)_mm512_unpackhi_pd(t1, t3);
}
SDR_INLINE __m128 cells_part(lanes row, const int part)
{
    switch (part) {
    case 0: return _mm512_castps512_ps128((__m512)row);
    case 1: return _mm512_extractf32x4_ps((__m512)row, 1);
    case 2: return _mm512_extractf32x4_ps((__m512)row, 2);
    default: return _mm512_extractf32x4_ps((__m512)row, 3);
    }
}
#elif defined(__AVX2__)
typedef __m256 cells_row;
#define CELLS_ROW(r) _mm256_insertf128_ps(_mm256_castps128_ps256(CELL_AT(r)), CELL_AT((r) + 4), 1)
SDR_INLINE void cells_turn(const cells_row from[4], lanes to[4])
{
    __m256d t0 = _mm256_castps_pd(_mm256_unpacklo_ps(from[0], from[1]));
    __m256d t1 = _mm256_castps_pd(_mm256_unpackhi_ps(from[0], from[1]));
    __m256d t2 = _mm256_castps_pd(_mm256_unpacklo_ps(from[2], from[3]));
    __m256d t3 = _mm256_castps_pd(_mm256_unpackhi_ps(from[2], from[3]));
    to[0] = (lanes)_mm256_unpacklo_pd(t0, t2);
    to[1] = (lanes)_mm256_unpackhi_pd(t0, t2);
    to[2] = (lanes)_mm256_unpacklo_pd(t1, t3);
    to[3] = (lanes)_mm256_unpackhi_pd(t1, t3);
}
SDR_INLINE __m128 cells_part(lanes row, const int part)
{
    return part == 0 ? _mm256_castps256_ps128((__m256)row) : _mm256_extractf128_ps((__m256)row, 1);
}
#else
typedef lanes cells_row;
#define CELLS_ROW(r) CELL_AT(r)
SDR_INLINE void cells_turn(const cells_row from[4], lanes to[4])
{
    lanes t0 = __builtin_shufflevector(from[0], from[1], 0, 4, 1, 5);
    lanes t1 = __builtin_shufflevector(from[0], from[1], 2, 6, 3, 7);
    lanes t2 = __builtin_shufflevector(from[2], from[3], 0, 4, 1, 5);
    lanes t3 = __builtin_shufflevector(from[2], from[3], 2, 6, 3, 7);
    to[0] = __builtin_shufflevector(t0, t2, 0, 1, 4, 5);
    to[1] = __builtin_shufflevector(t0, t2, 2, 3, 6, 7);
    to[2] = __builtin_shufflevector(t1, t3, 0, 1, 4, 5);
    to[3] = __builtin_shufflevector(t1, t3, 2, 3, 6, 7);
}
SDR_INLINE lanes cells_part(lanes row, const int part)
{
    (void)part;
    return row;
}
#endif

/* v[f] = float f of the cells listed: lanes from n on are copies of the last one, and are not stored. */
#if defined(__AVX2__)
#define CELL_AT(i) _mm_load_ps(cell + (size_t)at[i] * size)
#else
#define CELL_AT(i) (*(const four *)(const void *)(cell + (size_t)at[i] * size))
#endif
#define CELLS(bits, type)                                                                          \
    SDR_INLINE void cells_load##bits(const float *cell, const size_t size, const type *index,      \
                                     uint32_t n, lanes v[4])                                       \
    {                                                                                              \
        type copy[SDR_LANES];                                                                      \
        const type *at = index;                                                                    \
        if (n < SDR_LANES) {                                                                       \
            for (uint32_t i = 0; i < SDR_LANES; i++)                                               \
                copy[i] = index[i < n ? i : n - 1];                                                \
            at = copy;                                                                             \
        }                                                                                          \
        cells_row row[4] = {CELLS_ROW(0), CELLS_ROW(1), CELLS_ROW(2), CELLS_ROW(3)};               \
        cells_turn(row, v);                                                                        \
    }                                                                                              \
    SDR_INLINE void cells_store##bits(float *cell, const size_t size, const type *index,           \
                                      uint32_t n, const lanes v[4])                                \
    {                                                                                              \
        lanes row[4];                                                                              \
        cells_turn((const cells_row[4]){(cells_row)v[0], (cells_row)v[1], (cells_row)v[2],         \
                                        (cells_row)v[3]},                                          \
                   row);                                                                           \
        if (n == SDR_LANES) {                                                                      \
            _Pragma("GCC unroll 4") for (int part = 0; part < SDR_LANES / 4; part++)               \
                _Pragma("GCC unroll 4") for (int r = 0; r < 4; r++)                                \
                    *(four *)(void *)(cell + (size_t)index[part * 4 + r] * size) =                 \
                        (four)cells_part(row[r], part);                                            \
            return;                                                                                \
        }                                                                                          \
        lanes kept[4] = {row[0], row[1], row[2], row[3]};                                          \
        for (uint32_t i = 0; i < n; i++)                                                           \
            memcpy(cell + (size_t)index[i] * size,                                                 \
                   (const float *)(const void *)&kept[i % 4] + i / 4 * 4, sizeof(four));           \
    }
CELLS(16, uint16_t)
CELLS(32, uint32_t)
#undef CELLS
#undef CELL_AT
#undef CELLS_ROW

/* ---- inner products ---- */
/* Adds to the first four chains; what others get is +0, which changes no sum. */
SDR_INLINE void chains_add_four(struct chains *sum, four v)
{
#if defined(__AVX512F__)
    sum->part[0] += (lanes)_mm512_zextps128_ps512((__m128)v);
#elif defined(__AVX2__)
    sum->part[0] += (lanes)_mm256_zextps128_ps256((__m128)v);
#else
    sum->part[0] += v;
#endif
}

/* −1 in lanes from `first` on. */
SDR_INLINE lanes_index lanes_since(int32_t first)
{
    lanes_index number;
    for (int i = 0; i < SDR_LANES; i++)
        number[i] = i;
    return number >= first;
}

/* Σ value·x[i] over the cells listed; a cell's value is its first float. Sixteen chains. The last sixteen
   entries are taken as one piece, in which those already added count as zero: a piece of another length would be a
   branch that nobody can predict. Rows of fewer than sixteen entries are added four at a time to the first four
   chains, then one by one to the first. (Dense rows: CHAINS_ADD.)

   The values are loaded one by one at every level. In training, the previous row has just stored many of them: a
   plain load can take a value from a store still under way, but a gather waits until all stores have completed. */
#define CELLS_DOT(bits, type)                                                                      \
    SDR_INLINE four cells_four##bits(const float *cell, const size_t size, const type *index)      \
    {                                                                                              \
        return (four){cell[(size_t)index[0] * size], cell[(size_t)index[1] * size],                \
                      cell[(size_t)index[2] * size], cell[(size_t)index[3] * size]};               \
    }                                                                                              \
    SDR_INLINE lanes cells_values##bits(const float *cell, const size_t size, const type *index)   \
    {                                                                                              \
        four part[SDR_LANES / 4];                                                                  \
        _Pragma("GCC unroll 4") for (int p = 0; p < SDR_LANES / 4; p++) part[p] =                  \
            cells_four##bits(cell, size, index + 4 * p);                                           \
        return CELLS_JOIN(part);                                                                   \
    }                                                                                              \
    SDR_INLINE float cells_dot##bits(const float *cell, const size_t size, const type *index,      \
                                     const float *x, uint32_t n)                                   \
    {                                                                                              \
        struct chains sum = {0};                                                                   \
        uint32_t i = 0;                                                                            \
        for (; i + SDR_CHAINS <= n; i += SDR_CHAINS)                                               \
            _Pragma("GCC unroll 4") for (int v = 0; v < SDR_CHAIN_VECTORS; v++)                    \
                sum.part[v] += cells_values##bits(cell, size, index + i + v * SDR_LANES) *         \
                               lanes_load(x + i + v * SDR_LANES, SDR_LANES);                       \
        if (i > 0 && i < n) {                                                                      \
            int32_t done = (int32_t)(i - (n - SDR_CHAINS));                                        \
            i = n - SDR_CHAINS;                                                                    \
            _Pragma("GCC unroll 4") for (int v = 0; v < SDR_CHAIN_VECTORS; v++)                    \
                sum.part[v] += cells_values##bits(cell, size, index + i + v * SDR_LANES) *         \
                               (lanes)(lanes_since(done - v * SDR_LANES) &                         \
                                       (lanes_index)lanes_load(x + i + v * SDR_LANES, SDR_LANES)); \
            i = n;                                                                                 \
        }                                                                                          \
        for (; i + 4 <= n; i += 4) {                                                               \
            four w = cells_four##bits(cell, size, index + i), v;                                   \
            memcpy(&v, x + i, sizeof v);                                                           \
            chains_add_four(&sum, w * v);                                                          \
        }                                                                                          \
        for (; i < n; i++)                                                                         \
            chains_add_four(&sum, (four){cell[(size_t)index[i] * size] * x[i], 0, 0, 0});          \
        return chains_sum(sum);                                                                    \
    }
#if defined(__AVX512F__)
#define CELLS_JOIN(p)                                                                              \
    (lanes) _mm512_insertf32x8(                                                                    \
        _mm512_castps256_ps512(_mm256_set_m128((__m128)(p)[1], (__m128)(p)[0])),                   \
        _mm256_set_m128((__m128)(p)[3], (__m128)(p)[2]), 1)
#elif defined(__AVX2__)
#define CELLS_JOIN(p) (lanes) _mm256_set_m128((__m128)(p)[1], (__m128)(p)[0])
#else
#define CELLS_JOIN(p) (p)[0]
#endif
CELLS_DOT(16, uint16_t)
CELLS_DOT(32, uint32_t)
#undef CELLS_DOT
#undef CELLS_JOIN

#endif
