/* The loops of kernel/cluster.h, compiled once per CPU level. */
#include "kernel/cluster.h"
#include "kernel/lanes.h"
#include "kernel/level.h"

#include <stdbool.h>

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
    CHAINS_ADD(
        total, n,
        square((lanes_load(x + i, m) - lanes_load(origin + i, m)) - lanes_load(center + i, m)));
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
const struct sdr_cluster_kernels SDR_FOR_LEVEL(sdr_cluster_kernels) = {squares, length, distance,
                                                                       nearest};
