/* The loops of kernel/cluster.h, compiled once per CPU level. */
#include "kernel/cluster.h"
#include "kernel/lanes.h"
#include "kernel/level.h"

#include <stdbool.h>

enum {
    CHUNK = 256,   /* features per chunk: the centered values stay in the L1 cache */
    TILE_ROWS = 6, /* the sums of a tile stay in registers */
#if defined(__AVX512F__)
    VECTORS = 4
#else
    VECTORS = 2
#endif
};

/* A chunk of features times `vectors` of clusters: each loaded value of `sum` serves six rows. `last`: lanes of
   the last vector. */
SDR_INLINE void tile(const float *sum, float x[][CHUNK], uint32_t n, uint32_t outputs, const int vectors, uint32_t last,
                     float *const *score)
{
    lanes total[TILE_ROWS * VECTORS];
    _Pragma("GCC unroll 8") for (int r = 0; r < TILE_ROWS; r++)
        _Pragma("GCC unroll 4") for (int v = 0; v < vectors; v++)
            total[r * VECTORS + v] = lanes_load(score[r] + v * SDR_LANES, v + 1 < vectors ? (uint32_t)SDR_LANES : last);
    for (uint32_t i = 0; i < n; i++, sum += outputs) {
        lanes s[VECTORS];
        _Pragma("GCC unroll 4") for (int v = 0; v < vectors; v++)
            s[v] = lanes_load(sum + v * SDR_LANES, v + 1 < vectors ? (uint32_t)SDR_LANES : last);
        _Pragma("GCC unroll 8") for (int r = 0; r < TILE_ROWS; r++)
            _Pragma("GCC unroll 4") for (int v = 0; v < vectors; v++)
                total[r * VECTORS + v] += s[v] * x[r][i];
    }
    _Pragma("GCC unroll 8") for (int r = 0; r < TILE_ROWS; r++)
        _Pragma("GCC unroll 4") for (int v = 0; v < vectors; v++)
            lanes_store(score[r] + v * SDR_LANES, total[r * VECTORS + v], v + 1 < vectors ? (uint32_t)SDR_LANES : last);
}

SDR_INLINE void columns(const float *w, float x[][CHUNK], uint32_t n, uint32_t outputs, float *const *to, uint32_t left)
{
    uint32_t last = (left - 1) % SDR_LANES + 1;
    if (left >= VECTORS * SDR_LANES)
        tile(w, x, n, outputs, VECTORS, SDR_LANES, to);
#if defined(__AVX512F__)
    else if (left > 3 * SDR_LANES)
        tile(w, x, n, outputs, 4, last, to);
    else if (left > 2 * SDR_LANES)
        tile(w, x, n, outputs, 3, last, to);
#endif
    else if (left > SDR_LANES)
        tile(w, x, n, outputs, 2, last, to);
    else
        tile(w, x, n, outputs, 1, last, to);
}

static void products(const float *sum, const float *const *x, uint32_t rows, const float *center,
                     uint32_t n, uint32_t outputs, float *score)
{
    float part[SDR_TOGETHER][CHUNK], spare[VECTORS * SDR_LANES] = {0};
    uint32_t tiles = (rows + TILE_ROWS - 1) / TILE_ROWS;
    memset(score, 0, (size_t)rows * outputs * sizeof *score);
    for (uint32_t from = 0; from < n; from += CHUNK) {
        uint32_t count = n - from < CHUNK ? n - from : CHUNK;
        for (uint32_t r = 0; r < tiles * TILE_ROWS; r++) { /* missing rows repeat the first */
            const float *row = x[r < rows ? r : 0] + from;
            for (uint32_t i = 0, m; i < count; i += m) {
                m = count - i < SDR_LANES ? count - i : SDR_LANES;
                lanes v = lanes_load(row + i, m);
                if (center)
                    v -= lanes_load(center + from + i, m);
                lanes_store(part[r] + i, v, m);
            }
        }
        const float *w = sum + (size_t)from * outputs;
        for (uint32_t k = 0; k < outputs; k += VECTORS * SDR_LANES)
            for (uint32_t t = 0; t < tiles; t++) {
                float *to[TILE_ROWS];
                for (uint32_t r = 0; r < TILE_ROWS; r++)
                    to[r] = t * TILE_ROWS + r < rows ? score + (size_t)(t * TILE_ROWS + r) * outputs + k : spare;
                columns(w + k, part + t * TILE_ROWS, count, outputs, to, outputs - k);
            }
    }
}

static void squares(const float *sum, const float *share, uint32_t n, uint32_t outputs,
                    float *square)
{
    for (uint32_t k = 0, m; k < outputs; k += m) {
        m = outputs - k < SDR_LANES ? outputs - k : SDR_LANES;
        lanes total = {0}, part = lanes_load(share + k, m);
        for (uint32_t i = 0; i < n; i++) {
            lanes v = lanes_load(sum + (size_t)i * outputs + k, m) * part;
            total += v * v;
        }
        lanes_store(square + k, total, m);
    }
}

SDR_INLINE lanes square(lanes v)
{
    return v * v;
}

static float length(const float *x, const float *center, uint32_t n)
{
    struct chains total = {0};
    if (center)
        CHAINS_ADD(total, n, square(lanes_load(x + i, m) - lanes_load(center + i, m)));
    else
        CHAINS_ADD(total, n, square(lanes_load(x + i, m)));
    return chains_sum(total);
}

static float distance(const float *x, const float *origin, const float *center, uint32_t n)
{
    struct chains total = {0};
    CHAINS_ADD(total, n, square((lanes_load(x + i, m) - lanes_load(origin + i, m)) - lanes_load(center + i, m)));
    return chains_sum(total);
}

static uint32_t nearest(const float *score, const float *twice, const float *norm, uint32_t outputs,
                        float *value, float *second)
{
    lanes_index lane, at, where;
    for (int i = 0; i < SDR_LANES; i++)
        lane[i] = i;
    at = where = lane;
    lanes best = lanes_all(-INFINITY), next = best;
    for (uint32_t k = 0, m; k < outputs; k += m, at += SDR_LANES) {
        m = outputs - k < SDR_LANES ? outputs - k : SDR_LANES;
        lanes v = lanes_load(score + k, m) * lanes_load(twice + k, m) - lanes_load(norm + k, m);
        v = lanes_select(lane < (int32_t)m, v, lanes_all(-INFINITY));
        lanes_index better = v > best;
        next = lanes_max(next, lanes_min(v, best));
        best = lanes_select(better, v, best);
        where = (better & at) | (~better & where);
    }
    uint32_t first = (uint32_t)where[0];
    *value = best[0];
    *second = next[0];
    for (int i = 1; i < SDR_LANES; i++) {
        bool wins = best[i] > *value || (best[i] == *value && (uint32_t)where[i] < first);
        float loser = wins ? *value : best[i];
        *second = loser > *second ? loser : *second;
        *second = next[i] > *second ? next[i] : *second;
        if (wins) {
            *value = best[i];
            first = (uint32_t)where[i];
        }
    }
    return first;
}

const struct sdr_cluster_kernels SDR_FOR_LEVEL(sdr_cluster_kernels);
const struct sdr_cluster_kernels SDR_FOR_LEVEL(sdr_cluster_kernels) = {products, squares, length,
                                                                       distance, nearest};
