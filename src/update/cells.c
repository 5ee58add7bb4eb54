/* Parameters in cells: see parameters.h. */
#include "update/parameters.h"
#include "base/memory.h"

static uint32_t cell_floats(const struct sdr_parameters *p)
{
    return p->rule.optimizer->slots > 1 ? 8 : 4;
}

enum sdr_status sdr_cells_allocate(struct sdr_parameters *p)
{
    uint64_t floats = (uint64_t)p->layout->block[0].rows * cell_floats(p);
    return sdr_allocate(&p->cell, floats, sizeof(float), "the model's cells");
}

void sdr_cells_pack(struct sdr_parameters *p)
{
    const struct sdr_target *t = &p->target[0];
    uint32_t floats = cell_floats(p);
    for (uint32_t j = 0; j < p->layout->block[0].rows && !p->in_cells; j++) {
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

void sdr_cells_unpack(struct sdr_parameters *p)
{
    const struct sdr_target *t = &p->target[0];
    uint32_t floats = p->in_cells ? cell_floats(p) : 0;
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
