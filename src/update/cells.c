/* Parameters in cells: see parameters.h. */
#include "update/parameters.h"
#include "base/memory.h"

#include <string.h>

enum { ALIGN = 16 }; /* cells are allocated in multiples, for merging */

static uint32_t cell_floats(const struct sdr_parameters *p)
{
    return p->rule.optimizer->slots > 1 ? 8 : 4;
}

enum sdr_status sdr_cells_allocate(struct sdr_parameters *p)
{
    uint64_t rows = ((uint64_t)p->layout->block[0].rows + ALIGN - 1) / ALIGN * ALIGN, floats = rows * cell_floats(p);
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
    if (!p->in_cells) /* and nothing is written: workers may share the arrays */
        return;
    const struct sdr_target *t = &p->target[0];
    uint32_t floats = cell_floats(p);
    for (uint32_t j = 0; j < p->layout->block[0].rows; j++) {
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

void sdr_cells_merge(struct sdr_parameters *shared, struct sdr_parameters *replica, int replicas,
                     const float *damping, uint64_t first, uint64_t end)
{
    enum { REPLICAS_MOST = 1024 };
    float *array[3] = {shared->value, shared->slot[0], shared->slot[1]}, *cell[REPLICAS_MOST];
    const struct sdr_optimizer *o = shared->rule.optimizer;
    for (int c = 0; c < replicas; c++)
        cell[c] = replica[c].cell;
    shared->rule.kernels->merge_cells(array, 1 + o->slots, cell, replicas, cell_floats(shared), first, end,
                                      o->sums ? SDR_MERGE_SUM : SDR_MERGE_MEAN, damping);
}
