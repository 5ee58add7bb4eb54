/* Parameters in cells: see parameters.h. */
#include "base/memory.h"
#include "update/parameters.h"

#include <string.h>

static uint32_t cell_floats(const struct sdr_parameters *p)
{
    return p->rule.optimizer->slots > 1 ? 8 : 4;
}

uint32_t sdr_cell_bytes(const struct sdr_parameters *p)
{
    return cell_floats(p) * sizeof(float);
}

/* Cells that stand for a feature. */
static uint32_t cells_used(const struct sdr_parameters *p)
{
    return p->numbering ? p->numbering->count : p->layout->block[0].rows;
}

/* Allocated are multiples of 16, for merging. */
static uint64_t cells_of(const struct sdr_parameters *p)
{
    return ((uint64_t)cells_used(p) + SDR_NUMBERS_ALIGN - 1) / SDR_NUMBERS_ALIGN *
           SDR_NUMBERS_ALIGN;
}

static uint32_t feature_of(const struct sdr_parameters *p, uint32_t cell)
{
    return p->numbering ? p->numbering->feature[cell] : cell;
}

enum sdr_status sdr_cells_allocate(struct sdr_parameters *p, const struct sdr_numbering *numbering)
{
    p->numbering = numbering;
    uint64_t floats = cells_of(p) * cell_floats(p);
    SDR_TRY(sdr_allocate(&p->cell, floats, sizeof(float), "the model's cells"));
    sdr_large_pages(p->cell, floats * sizeof(float));
    return SDR_OK;
}

/* Fills the cells from the arrays of `from`. The list of numbers is filled up with a feature that
   does not occur: its cells must equal its values, or merging would see a change. */
static void pack_from(struct sdr_parameters *p, const struct sdr_parameters *from)
{
    const struct sdr_target *t = &from->target[0];
    uint32_t floats = cell_floats(p), cells = p->numbering ? (uint32_t)cells_of(p) : cells_used(p);
    for (uint32_t i = 0; i < cells; i++) {
        float *cell = p->cell + (size_t)i * floats;
        uint32_t j = feature_of(p, i);
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
    for (uint32_t i = 0; i < cells_used(p); i++) {
        const float *cell = p->cell + (size_t)i * floats;
        uint32_t j = feature_of(p, i);
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
    return replica->cell && !replica->base[0] && !replica->penalty_paid &&
           !replica->rule.optimizer->own_penalty;
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
                     const float *damping, uint64_t part, uint64_t parts)
{
    enum { REPLICAS_MOST = 1024 };
    float *array[3] = {shared->value, shared->slot[0], shared->slot[1]}, *cell[REPLICAS_MOST];
    const struct sdr_optimizer *o = shared->rule.optimizer;
    const struct sdr_numbering *numbering = replica[0].numbering;
    uint64_t groups = cells_of(&replica[0]) / SDR_NUMBERS_ALIGN;
    for (int c = 0; c < replicas; c++)
        cell[c] = replica[c].cell;
    shared->rule.kernels->merge_cells(array, 1 + o->slots, numbering ? numbering->feature : NULL,
                                      cell, replicas, cell_floats(shared),
                                      groups * part / parts * SDR_NUMBERS_ALIGN,
                                      groups * (part + 1) / parts * SDR_NUMBERS_ALIGN,
                                      o->sums ? SDR_MERGE_SUM : SDR_MERGE_MEAN, damping);
}
