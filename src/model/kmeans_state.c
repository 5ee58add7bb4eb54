/* The state of k-means for strategies that exchange states: the centers, one behind the other,
   relative to the origin. Every worker keeps its own counts, which say how far a row moves a
   center. */
#include "model/kmeans.h"

static uint64_t state_values(const struct sdr_block *block, uint64_t *piece)
{
    *piece = block[0].rows;
    return (uint64_t)block[0].rows * block[0].cols;
}

static void copy_centers(const struct sdr_block *block, const float *w, float *state)
{
    const float *sum = w + block[0].offset, *count = w + block[1].offset;
    for (uint32_t k = 0; k < block[0].cols; k++)
        for (uint32_t j = 0; j < block[0].rows; j++)
            state[(uint64_t)k * block[0].rows + j] =
                count[k] > 0 ? sum[(uint64_t)j * block[0].cols + k] / count[k] : 0.0f;
}

/* Centers that are as they were keep their bits. */
static void set_centers(const struct sdr_block *block, const float *state, float *w)
{
    float *sum = w + block[0].offset;
    const float *count = w + block[1].offset;
    for (uint32_t k = 0; k < block[0].cols; k++)
        for (uint32_t j = 0; j < block[0].rows; j++) {
            float *here = &sum[(uint64_t)j * block[0].cols + k],
                  center = state[(uint64_t)k * block[0].rows + j];
            if (count[k] > 0 && *here / count[k] != center)
                *here = center * count[k];
        }
}

const struct sdr_model_state sdr_kmeans_state = {
    .values = state_values, .copy = copy_centers, .set = set_centers};
