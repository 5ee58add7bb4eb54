/* Components by union-find over the rows of a window: see components.h. */
#include "schedule/components.h"
#include "base/memory.h"

#include <string.h>

enum sdr_status sdr_components_create(struct sdr_components *c, uint32_t features, uint32_t most)
{
    *c = (struct sdr_components){.features = features, .most = most, .stamp = 1};
    SDR_TRY(sdr_allocate(&c->owner, features, sizeof *c->owner, "conflicts"));
    SDR_TRY(sdr_allocate(&c->parent, most, sizeof *c->parent, "conflicts"));
    return sdr_allocate(&c->load, most, sizeof *c->load, "conflicts");
}

void sdr_components_destroy(struct sdr_components *c)
{
    sdr_release(c->owner);
    sdr_release(c->parent);
    sdr_release(c->load);
    *c = (struct sdr_components){0};
}

static uint32_t root_of(uint32_t *parent, uint32_t i)
{
    while (parent[i] != i)
        i = parent[i] = parent[parent[i]];
    return i;
}

/* The earlier row becomes the root. */
static void join(uint32_t *parent, uint32_t a, uint32_t b)
{
    a = root_of(parent, a);
    b = root_of(parent, b);
    if (a < b)
        parent[b] = a;
    else
        parent[a] = b;
}

static void join_conflicts(struct sdr_components *c, const struct sdr_rows *rows,
                           const uint32_t *row, uint32_t count)
{
    uint32_t stamp = c->stamp, *owner = c->owner;
    for (uint32_t i = 0; i < count; i++) {
        struct sdr_sparse_row r = sdr_sparse_row(rows, row[i]);
        c->parent[i] = i;
        for (uint32_t n = 0; n < r.n; n++) {
            uint32_t j = sdr_row_index(&r, n);
            if (owner[j] >= stamp)
                join(c->parent, i, owner[j] - stamp);
            else
                owner[j] = stamp + i;
        }
    }
    c->stamp += count;
}

double sdr_components_find(struct sdr_components *c, const struct sdr_rows *rows,
                           const uint32_t *row, uint32_t count, int bins, uint8_t *bin)
{
    uint64_t all = 0, largest = 0, filled = 0;
    uint32_t at = 0;
    if (c->stamp > UINT32_MAX - count) {
        memset(c->owner, 0, c->features * sizeof *c->owner);
        c->stamp = 1;
    }
    join_conflicts(c, rows, row, count);
    memset(c->load, 0, count * sizeof *c->load);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t entries = sdr_sparse_row(rows, row[i]).n + 4; /* 4: the fixed cost of a row */
        all += entries;
        c->load[root_of(c->parent, i)] += entries;
    }
    /* Components in the order of their first rows fill one bin after the other. */
    for (uint32_t i = 0; i < count; i++) {
        if (c->parent[i] != i) {
            bin[row[i]] = bin[row[root_of(c->parent, i)]];
            continue;
        }
        largest = c->load[i] > largest ? c->load[i] : largest;
        if (filled >= all * (at + 1) / (uint64_t)bins && at + 1 < (uint32_t)bins)
            at++;
        bin[row[i]] = (uint8_t)at;
        filled += c->load[i];
    }
    return all ? (double)largest / (double)all : 0;
}
