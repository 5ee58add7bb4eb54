/* Parameters in cells: see parameters.h. */
#include "update/parameters.h"
#include "base/memory.h"

#include <math.h>
#include <string.h>

static uint32_t cell_floats(const struct sdr_parameters *p)
{
    return p->rule.optimizer->slots > 1 ? 8 : 4;
}

enum sdr_status sdr_cells_allocate(struct sdr_parameters *p)
{
    uint64_t floats = (uint64_t)p->layout->block[0].rows * cell_floats(p);
    SDR_TRY(sdr_allocate(&p->cell, floats, sizeof(float), "the model's cells"));
    sdr_large_pages(p->cell, floats * sizeof(float));
    return SDR_OK;
}

/* Fills the cells from the arrays of `from`. */
static void pack_from(struct sdr_parameters *p, const struct sdr_parameters *from)
{
    const struct sdr_target *t = &from->target[0];
    uint32_t floats = cell_floats(p);
    for (uint32_t j = 0; j < p->layout->block[0].rows; j++) {
        float *cell = p->cell + (size_t)j * floats;
        cell[0] = t->value[j];
        cell[1] = t->slot[0] ? t->slot[0][j] : 0;
        cell[2] = t->scale ? t->scale[j] : 1;
        cell[3] = t->penalty_paid ? t->penalty_paid[j] : 0;
        if (t->slot[1])
            cell[4] = t->slot[1][j];
    }
    p->in_cells = true;
}

void sdr_cells_pack(struct sdr_parameters *p)
{
    if (!p->in_cells)
        pack_from(p, p);
}

void sdr_cells_unpack(struct sdr_parameters *p)
{
    const struct sdr_target *t = &p->target[0];
    uint32_t floats = cell_floats(p);
    for (uint32_t j = 0; j < p->layout->block[0].rows && p->in_cells; j++) {
        const float *cell = p->cell + (size_t)j * floats;
        t->value[j] = cell[0];
        if (t->slot[0])
            t->slot[0][j] = cell[1];
        if (t->penalty_paid)
            t->penalty_paid[j] = cell[3];
        if (t->slot[1])
            t->slot[1][j] = cell[4];
    }
    p->in_cells = false;
}

bool sdr_cells_merged(const struct sdr_parameters *replica)
{
    return replica->cell && !replica->base[0] && !replica->penalty_paid && !replica->rule.optimizer->own_penalty;
}

void sdr_cells_pull(struct sdr_parameters *replica, const struct sdr_parameters *shared)
{
    uint64_t first = replica->layout->block[0].rows, count = replica->layout->count - first;
    if (!replica->in_cells)
        pack_from(replica, shared);
    for (int i = 0; i <= replica->rule.optimizer->slots; i++)
        memcpy(sdr_parameters_array(replica, i) + first, sdr_parameters_array(shared, i) + first,
               count * sizeof(float));
}

/* As the kernel `merge` (kernel/linear.h): a value that one replica changed is taken as it is; otherwise the
   changes are added up, or their mean is. The replicas get the result, too. */
static void merge_value(float *shared, struct sdr_parameters *replica, int replicas, size_t at, bool mean,
                        const float *damping)
{
    float base = *shared, sum = 0, last = base;
    int changes = 0;
    for (int c = 0; c < replicas; c++) {
        float mine = replica[c].cell[at];
        if (mine != base) {
            sum += mine - base;
            last = mine;
            changes++;
        }
    }
    if (changes == 0)
        return;
    float share = mean ? 1.0f / (float)changes : 1.0f;
    if (damping && !mean)
        share = fminf(1, fmaxf(2.0f / (float)changes, *damping));
    *shared = changes == 1 ? last : base + share * sum;
    for (int c = 0; c < replicas; c++)
        replica[c].cell[at] = *shared;
}

void sdr_cells_merge(struct sdr_parameters *shared, struct sdr_parameters *replica, int replicas,
                     const float *damping, uint64_t first, uint64_t end)
{
    static const int place[3] = {0, 1, 4}; /* in a cell: value and slots */
    uint32_t floats = cell_floats(shared);
    bool mean = !shared->rule.optimizer->sums;
    for (uint64_t j = first; j < end; j++)
        for (int i = 0; i <= shared->rule.optimizer->slots; i++)
            merge_value(&sdr_parameters_array(shared, i)[j], replica, replicas, j * floats + (size_t)place[i],
                        i > 0 && mean, i == 0 && damping ? &damping[j] : NULL);
}
