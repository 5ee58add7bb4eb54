/* The Parzen window of ASGD: whether the steps of a worker, from `before` to `after`, have come
   closer to a state. */
#ifndef SDR_SYNC_PARZEN_H
#define SDR_SYNC_PARZEN_H

#include <stdbool.h>
#include <stdint.h>

struct sdr_parzen {
    double before, after; /* squared distances from the state */
};

static inline void sdr_parzen_add(struct sdr_parzen *parzen, const float *before,
                                  const float *after, const float *state, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        double b = (double)before[i] - state[i], a = (double)after[i] - state[i];
        parzen->before += b * b;
        parzen->after += a * a;
    }
}

/* ‖after − state‖² < ‖before − state‖²; with steps η·g that is ⟨g, before − state⟩ > η/2 ‖g‖².
   False if a value is not a number. */
static inline bool sdr_parzen_takes(const struct sdr_parzen *parzen)
{
    return parzen->after < parzen->before;
}

#endif
