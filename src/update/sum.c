/* Sums of updates: see update.h. */
#include "base/memory.h"
#include "update/update.h"

#include <string.h>

/* The dense gradient of consecutive leaves: `leaves` of them, a power of two, from number `leaf`
   on. Two neighbours of one size, the first at an even position, are merged: the order of all
   additions follows from the leaf numbers alone. */
struct sdr_node_sum {
    int block;
    uint32_t first,
        count; /* its values, from row `first` of the block on: all, or those of a span */
    uint32_t leaf, leaves;
    float *value; /* owned; kept for reuse when the node is removed */
    uint64_t room;
};

/* Upper bound on the nodes of consecutive leaves: two of every size. */
enum { NODES_MOST = 64 };

enum sdr_status sdr_sum_create(struct sdr_sum *sum, const struct sdr_layout *layout)
{
    size_t blocks = (size_t)layout->blocks;
    *sum = (struct sdr_sum){.layout = layout};
    SDR_TRY(sdr_allocate(&sum->part, blocks * NODES_MOST, sizeof *sum->part, "an update"));
    return sdr_allocate(&sum->array, blocks, sizeof *sum->array, "an update");
}

void sdr_sum_free(struct sdr_sum *sum)
{
    for (int b = 0; sum->array && b < sum->layout->blocks; b++) {
        sdr_release(sum->array[b].index);
        sdr_release(sum->array[b].value);
        sdr_release(sum->array[b].v);
    }
    for (int i = 0; i < sum->node_room; i++)
        sdr_release(sum->node[i].value);
    sdr_release(sum->array);
    sdr_release(sum->part);
    sdr_release(sum->node);
    sdr_release(sum->row);
    *sum = (struct sdr_sum){0};
}

void sdr_sum_begin(struct sdr_sum *sum, enum sdr_sense sense)
{
    sum->update = (struct sdr_update){.sense = sense, .part = sum->part};
    sum->nodes = 0;
}

/* Makes room for `count` more items behind the first `used`, which are kept. Allocates an array
   even for none: a part of no rows still lists rows. */
static enum sdr_status make_room(void *array, uint64_t used, uint64_t count, uint64_t *room,
                                 size_t size)
{
    void **memory = array, *larger;
    if (*memory && used + count <= *room)
        return SDR_OK;
    uint64_t wanted = 2 * (used + count);
    SDR_TRY(sdr_allocate(&larger, wanted, size, "an update"));
    if (used)
        memcpy(larger, *memory, used * size);
    sdr_release(*memory);
    *memory = larger;
    *room = wanted;
    return SDR_OK;
}

static void copy_scaled(float *to, const float *from, uint64_t count, float weight)
{
    if (weight == 1) {
        memcpy(to, from, count * sizeof *to);
        return;
    }
    for (uint64_t i = 0; i < count; i++)
        to[i] = weight > 0 ? from[i] * weight : 0; /* from[i] may be NaN */
}

/* ---- parts that list rows or examples ---- */
static enum sdr_status append(struct sdr_sum *sum, struct sdr_part *to, const struct sdr_part *part,
                              float weight)
{
    const struct sdr_block *block = &sum->layout->block[part->block];
    struct sdr_arrays *array = &sum->array[to - sum->part];
    bool hot = part->form == SDR_FACTORS && part->index;
    uint64_t cols = hot ? 1 : block->cols, used = to->count;
    uint64_t stored = part->form == SDR_FACTORS && part->right == SDR_STORED ? block->rows : 0;
    SDR_TRY(make_room(&array->value, used * cols, part->count * cols, &array->value_room,
                      sizeof(float)));
    copy_scaled(array->value + used * cols, part->value, part->count * cols, weight);
    if (part->index) {
        SDR_TRY(make_room(&array->index, used, part->count, &array->index_room, sizeof(uint32_t)));
        memcpy(array->index + used, part->index, part->count * sizeof(uint32_t));
    }
    if (stored) {
        SDR_TRY(make_room(&array->v, used * stored, part->count * stored, &array->v_room,
                          sizeof(float)));
        memcpy(array->v + used * stored, part->v, part->count * stored * sizeof(float));
    }
    to->distinct &= used == 0;
    to->count += part->count;
    to->value = array->value;
    to->index = part->index ? array->index : NULL;
    to->v = stored ? array->v : NULL;
    return SDR_OK;
}

/* Parts may share their factors, as weight and intercept of a linear model do: they are stored
   once. */
static int shared_with(const struct sdr_update *update, int p)
{
    for (int q = 0; q < p; q++)
        if (update->part[q].value == update->part[p].value &&
            update->part[q].index == update->part[p].index && update->part[q].form == SDR_FACTORS &&
            update->part[p].form == SDR_FACTORS && update->part[p].right != SDR_STORED)
            return q;
    return -1;
}

/* ---- dense parts ---- */
static bool neighbours(const struct sdr_node_sum *a, const struct sdr_node_sum *b)
{
    return a->block == b->block && a->leaves == b->leaves && a->leaf % (2 * a->leaves) == 0 &&
           b->leaf == a->leaf + a->leaves;
}

static void add_values(float *to, const float *from, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        to[i] += from[i];
}

/* Nodes of a block are in the order of their leaves; this inserts one behind the last of its
   block. */
static enum sdr_status insert_node(struct sdr_sum *sum, const struct sdr_part *part, int *at)
{
    uint64_t room = (uint64_t)sum->node_room;
    if (sum->nodes == sum->node_room) {
        SDR_TRY(make_room(&sum->node, (uint64_t)sum->nodes, 8, &room, sizeof *sum->node));
        memset(sum->node + sum->nodes, 0, (room - (uint64_t)sum->nodes) * sizeof *sum->node);
        sum->node_room = (int)room;
    }
    int place = sum->nodes;
    struct sdr_node_sum spare = sum->node[sum->nodes];
    while (place > 0 && sum->node[place - 1].block > part->block) {
        sum->node[place] = sum->node[place - 1];
        place--;
    }
    sum->node[place] = spare;
    sum->nodes++;
    *at = place;
    return SDR_OK;
}

static void remove_node(struct sdr_sum *sum, int at)
{
    struct sdr_node_sum spare = sum->node[at];
    memmove(sum->node + at, sum->node + at + 1, (size_t)(sum->nodes - at - 1) * sizeof *sum->node);
    sum->node[--sum->nodes] = spare;
}

static enum sdr_status add_dense(struct sdr_sum *sum, const struct sdr_part *part, float weight)
{
    uint64_t count = part->count;
    int at;
    SDR_TRY(insert_node(sum, part, &at));
    struct sdr_node_sum *node = &sum->node[at];
    const struct sdr_node_sum *before = at > 0 && node[-1].block == part->block ? &node[-1] : NULL;
    if (before && (before->first != part->first || before->count != part->count))
        return sdr_fail(SDR_RUNTIME, "gradients of one block have different rows");
    node->block = part->block;
    node->first = part->first;
    node->count = part->count;
    node->leaf = part->leaves ? part->leaf : before ? before->leaf + before->leaves : 0;
    node->leaves = part->leaves ? part->leaves : 1;
    if (node->room < count) {
        sdr_release(node->value);
        node->value = NULL;
        node->room = 0;
        SDR_TRY(sdr_allocate(&node->value, count, sizeof(float), "a gradient"));
        node->room = count;
    }
    copy_scaled(node->value, part->value, count, weight);
    while (at > 0 && neighbours(&sum->node[at - 1], &sum->node[at])) {
        add_values(sum->node[at - 1].value, sum->node[at].value, count);
        sum->node[at - 1].leaves *= 2;
        remove_node(sum, at--);
    }
    return SDR_OK;
}

/* ---- the sum ---- */
/* Rows of consecutive leaves are borrowed; others are copied. */
static enum sdr_status add_rows(struct sdr_sum *sum, const struct sdr_batch *batch)
{
    struct sdr_batch *all = &sum->update.batch;
    if (!all->count) {
        *all = *batch;
        return SDR_OK;
    }
    if (batch->row && all->row + all->count == batch->row) {
        all->count += batch->count;
        return SDR_OK;
    }
    uint64_t count = all->count;
    bool own = sum->row && all->row == sum->row;
    SDR_TRY(make_room(&sum->row, own ? count : 0, own ? batch->count : count + batch->count,
                      &sum->row_room, sizeof *sum->row));
    if (!own && all->row)
        memcpy(sum->row, all->row, count * sizeof *sum->row);
    if (batch->row)
        memcpy(sum->row + count, batch->row, batch->count * sizeof *sum->row);
    all->row = sum->row;
    all->count += batch->count;
    return SDR_OK;
}

enum sdr_status sdr_sum_add(struct sdr_sum *sum, const struct sdr_update *update, float weight)
{
    struct sdr_update *all = &sum->update;
    for (int p = 0; p < update->parts; p++) {
        const struct sdr_part *part = &update->part[p];
        if (part->form == SDR_DENSE) {
            SDR_TRY(add_dense(sum, part, weight));
            continue;
        }
        if (part->count == 0) /* none of its rows is in this span */
            continue;
        int place = 0;
        while (place < all->parts && all->part[place].block != part->block)
            place++;
        struct sdr_part *to = &all->part[place];
        if (place == all->parts) {
            *to = *part;
            to->count = 0;
            all->parts++;
        } else if (to->form != part->form || to->right != part->right ||
                   !to->index != !part->index) {
            return sdr_fail(SDR_RUNTIME, "gradients of one block have different forms");
        }
        int other = shared_with(update, p);
        if (other < 0) {
            SDR_TRY(append(sum, to, part, weight));
            continue;
        }
        int from = 0;
        while (all->part[from].block != update->part[other].block)
            from++;
        to->count = all->part[from].count;
        to->value = all->part[from].value;
        to->index = all->part[from].index;
    }
    SDR_TRY(add_rows(sum, &update->batch));
    all->loss += update->loss;
    all->weight += update->weight;
    return SDR_OK;
}

const struct sdr_update *sdr_sum_end(struct sdr_sum *sum, bool whole)
{
    struct sdr_update *all = &sum->update;
    for (int at = sum->nodes - 1; at > 0 && whole;
         at--) /* merges the rest, from the last leaves on */
        if (sum->node[at - 1].block == sum->node[at].block) {
            add_values(sum->node[at - 1].value, sum->node[at].value, sum->node[at].count);
            remove_node(sum, at);
        }
    for (int i = 0; i < sum->nodes; i++) {
        const struct sdr_node_sum *node = &sum->node[i];
        all->part[all->parts++] = (struct sdr_part){.block = node->block,
                                                    .form = SDR_DENSE,
                                                    .count = node->count,
                                                    .first = node->first,
                                                    .leaf = node->leaf,
                                                    .leaves = whole ? 0 : node->leaves,
                                                    .value = node->value};
    }
    sum->nodes = 0;
    return all;
}
