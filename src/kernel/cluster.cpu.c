/* The loops of kernel/cluster.h, compiled once per CPU level. */
#include "kernel/cluster.h"
#include "kernel/lanes.h"
#include "kernel/level.h"

#include <stdbool.h>

enum {
    CHUNK = 256, /* features per chunk: the centered values stay in the L1 cache */
    VECTORS = 4  /* of clusters; the sums of all rows stay in registers */
};

/* A chunk of features times up to VECTORS · 16 clusters: each loaded value of `sum` serves four rows. */
SDR_INLINE void tile(const float *sum, float x[SDR_TOGETHER][CHUNK], uint32_t n, uint32_t outputs,
                     const uint32_t vectors, uint32_t last, float *score[SDR_TOGETHER])
{
    lanes total[SDR_TOGETHER][VECTORS];
    for (uint32_t r = 0; r < SDR_TOGETHER; r++)
        for (uint32_t v = 0; v < vectors; v++)
            total[r][v] =
                lanes_load(score[r] + v * SDR_LANES, v + 1 < vectors ? (uint32_t)SDR_LANES : last);
    for (uint32_t i = 0; i < n; i++, sum += outputs)
        for (uint32_t v = 0; v < vectors; v++) {
            lanes s = lanes_load(sum + v * SDR_LANES, v + 1 < vectors ? (uint32_t)SDR_LANES : last);
            for (uint32_t r = 0; r < SDR_TOGETHER; r++)
                total[r][v] += s * x[r][i];
        }
    for (uint32_t r = 0; r < SDR_TOGETHER; r++)
        for (uint32_t v = 0; v < vectors; v++)
            lanes_store(score[r] + v * SDR_LANES, total[r][v],
                        v + 1 < vectors ? (uint32_t)SDR_LANES : last);
}

static void products(const float *sum, const float *const *x, uint32_t rows, const float *center,
                     uint32_t n, uint32_t outputs, float *score)
{
    float part[SDR_TOGETHER][CHUNK];
    memset(score, 0, (size_t)rows * outputs * sizeof *score);
    for (uint32_t from = 0; from < n; from += CHUNK) {
        uint32_t count = n - from < CHUNK ? n - from : CHUNK;
        for (uint32_t r = 0; r < SDR_TOGETHER; r++) { /* missing rows repeat the first */
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
        for (uint32_t k = 0; k < outputs; k += VECTORS * SDR_LANES) {
            uint32_t left = outputs - k, m = (left - 1) % SDR_LANES + 1;
            float spare[VECTORS * SDR_LANES], *to[SDR_TOGETHER];
            memset(spare, 0, sizeof spare);
            for (uint32_t r = 0; r < SDR_TOGETHER; r++)
                to[r] = r < rows ? score + (size_t)r * outputs + k : spare;
            if (left >= VECTORS * SDR_LANES)
                tile(w + k, part, count, outputs, 4, SDR_LANES, to);
            else if (left > 3 * SDR_LANES)
                tile(w + k, part, count, outputs, 4, m, to);
            else if (left > 2 * SDR_LANES)
                tile(w + k, part, count, outputs, 3, m, to);
            else if (left > SDR_LANES)
                tile(w + k, part, count, outputs, 2, m, to);
            else
                tile(w + k, part, count, outputs, 1, m, to);
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

static float length(const float *x, const float *center, uint32_t n)
{
    lanes total = {0};
    for (uint32_t i = 0, m; i < n; i += m) {
        m = n - i < SDR_LANES ? n - i : SDR_LANES;
        lanes v = lanes_load(x + i, m);
        if (center)
            v -= lanes_load(center + i, m);
        total += v * v;
    }
    return lanes_sum(total);
}

static float distance(const float *x, const float *origin, const float *center, uint32_t n)
{
    lanes total = {0};
    for (uint32_t i = 0, m; i < n; i += m) {
        m = n - i < SDR_LANES ? n - i : SDR_LANES;
        lanes v = (lanes_load(x + i, m) - lanes_load(origin + i, m)) - lanes_load(center + i, m);
        total += v * v;
    }
    return lanes_sum(total);
}

static uint32_t nearest(const float *score, const float *twice, const float *norm, uint32_t outputs,
                        float *value, float *second)
{
    lanes_index lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, at = lane,
                where = lane;
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
