/* Cells: the floats that belong to one feature, side by side, so that a step on a sparse row
   touches one cache line a feature. Four floats each, or eight; sixteen-byte aligned. Compiled once
   per CPU level. */
#ifndef SDR_KERNEL_CELLS_H
#define SDR_KERNEL_CELLS_H

#include "kernel/lanes.h"

/* ---- four vectors ↔ the first four floats of as many cells ---- */
#if defined(__AVX512F__)
typedef __m512 cells_row; /* floats of four cells, every fourth one */
#define CELLS_ROW(r)                                                                               \
    _mm512_insertf32x4(_mm512_insertf32x4(_mm512_insertf32x4(_mm512_castps128_ps512(CELL_AT(r)),   \
                                                             CELL_AT((r) + 4), 1),                 \
                                          CELL_AT((r) + 8), 2),                                    \
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

/* v[f] = float f of the SDR_LANES cells listed, each of `size` floats. A cell may be listed twice
   if the same is stored. */
#if defined(__AVX2__)
#define CELL_AT(i) _mm_load_ps(cell + (size_t)index[i] * size)
#else
#define CELL_AT(i) (*(const lanes_four *)(const void *)(cell + (size_t)index[i] * size))
#endif
#define CELLS(bits, type)                                                                          \
    SDR_INLINE void cells_load##bits(const float *cell, const size_t size, const type *index,      \
                                     lanes v[4])                                                   \
    {                                                                                              \
        cells_row row[4] = {CELLS_ROW(0), CELLS_ROW(1), CELLS_ROW(2), CELLS_ROW(3)};               \
        cells_turn(row, v);                                                                        \
    }                                                                                              \
    SDR_INLINE void cells_store##bits(float *cell, const size_t size, const type *index,           \
                                      const lanes v[4])                                            \
    {                                                                                              \
        lanes row[4];                                                                              \
        cells_turn((const cells_row[4]){(cells_row)v[0], (cells_row)v[1], (cells_row)v[2],         \
                                        (cells_row)v[3]},                                          \
                   row);                                                                           \
        SDR_UNROLLED_FOR (4, int part = 0; part < SDR_LANES / 4; part++)                           \
            SDR_UNROLLED_FOR (4, int r = 0; r < 4; r++)                                            \
                *(lanes_four *)(void *)(cell + (size_t)index[part * 4 + r] * size) =               \
                    (lanes_four)cells_part(row[r], part);                                          \
    }
CELLS(16, uint16_t)
CELLS(32, uint32_t)
#undef CELLS
#undef CELL_AT
#undef CELLS_ROW

#endif
