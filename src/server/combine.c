/* Aggregates that need more than a weighted sum: gradients are multiplied out over the values of the
   server, one array each. */
#include "base/memory.h"
#include "run/run.h"
#include "server/network.h"

#include <string.h>

/* Adds an update, multiplied out, to `out`, the values of the server's span. */
static void expand_update(struct sdr_parameters *p, struct sdr_span span,
                          const struct sdr_update *update, uint32_t mark, float *out)
{
    struct sdr_expansion to = {.layout = p->layout,
                               .kernels = p->rule.kernels,
                               .center = p->rule.center,
                               .scratch = &p->scratch,
                               .mark = mark,
                               .times = 1};
    for (int i = 0; i < update->parts; i++) {
        const struct sdr_block *block = &p->layout->block[update->part[i].block];
        uint32_t first, end;
        sdr_rows_within(block, span, &first, &end);
        if (first == end || update->part[i].count == 0)
            continue;
        struct sdr_part sum = sdr_part_expand(&to, &update->part[i], &update->batch, first, end);
        float *place = out + (block->offset - span.first);
        if (sum.form == SDR_DENSE)
            for (uint64_t k = 0; k < (uint64_t)(end - first) * block->cols; k++)
                place[(uint64_t)first * block->cols + k] += sum.value[k];
        for (uint32_t r = 0; r < sum.count && sum.form == SDR_ROWS; r++)
            for (uint32_t k = 0; k < block->cols; k++)
                place[(uint64_t)sum.index[r] * block->cols + k] +=
                    sum.value[(uint64_t)r * block->cols + k];
    }
}

/* Room for n arrays of gradients and one for what becomes of them. */
static enum sdr_status make_room(struct sdr_server *server, uint64_t n)
{
    uint64_t values = server->span.end - server->span.first, wanted = (n + 1) * values;
    if (wanted <= server->dense_room)
        return SDR_OK;
    sdr_release(server->dense);
    server->dense = NULL;
    server->dense_room = 0;
    SDR_TRY(sdr_allocate(&server->dense, wanted, sizeof(float), "gradients"));
    server->dense_room = wanted;
    return SDR_OK;
}

/* Gradient i lies at server->dense + i × (values of the span). */
static enum sdr_status expand_all(struct sdr_node *node, const struct sdr_gradient *gradient,
                                  uint64_t count)
{
    struct sdr_server *server = sdr_server_of(node);
    struct sdr_parameters *p = server->parameters;
    uint64_t values = server->span.end - server->span.first;
    SDR_TRY(make_room(server, count));
    memset(server->dense, 0, count * values * sizeof(float));
    for (uint64_t i = 0; i < count; i++) {
        struct sdr_wire_facts facts;
        struct sdr_update update;
        SDR_TRY(sdr_read_update(node, &gradient[i], server->row, &facts, &update));
        /* Marks of gradients, counted down, never meet those of updates. */
        server->combined = server->combined ? server->combined - 1 : UINT32_MAX;
        expand_update(p, server->span, &update, server->combined, server->dense + i * values);
    }
    return SDR_OK;
}

enum sdr_status sdr_combine(struct sdr_node *node, const struct sdr_gradient *gradient,
                            uint64_t count, struct sdr_update *update)
{
    const struct sdr_run *run = node->run;
    struct sdr_server *server = sdr_server_of(node);
    uint64_t values = server->span.end - server->span.first;
    const float **each;
    SDR_TRY(expand_all(node, gradient, count));
    SDR_TRY(sdr_allocate(&each, count, sizeof *each, "gradients"));
    for (uint64_t i = 0; i < count; i++)
        each[i] = server->dense + i * values;
    float *out = server->dense + count * values;
    enum sdr_status status =
        run->aggregate->combine(run->aggregate_options, (uint32_t)count, each, values, out);
    sdr_release(each);
    *update = (struct sdr_update){.sense = SDR_GRADIENT, .part = server->sum.part};
    for (int b = 0; b < run->layout.blocks; b++) {
        const struct sdr_block *block = &run->layout.block[b];
        uint32_t first, end;
        sdr_rows_within(block, server->span, &first, &end);
        if (first < end && !block->fixed)
            update->part[update->parts++] =
                (struct sdr_part){.block = b,
                                  .form = SDR_DENSE,
                                  .count = (end - first) * block->cols,
                                  .first = first,
                                  .value = out + (block->offset + (uint64_t)first * block->cols -
                                                  server->span.first)};
    }
    return status;
}

enum sdr_status sdr_distances(struct sdr_node *node, const struct sdr_gradient *gradient,
                              uint64_t count, double *distance)
{
    struct sdr_server *server = sdr_server_of(node);
    uint64_t values = server->span.end - server->span.first;
    SDR_TRY(expand_all(node, gradient, count));
    for (uint64_t i = 0; i < count; i++)
        for (uint64_t k = 0; k < count; k++) {
            const float *a = server->dense + i * values, *b = server->dense + k * values;
            double sum = 0;
            for (uint64_t v = 0; v < values; v++)
                sum += ((double)a[v] - b[v]) * ((double)a[v] - b[v]);
            distance[i * count + k] = sum;
        }
    return SDR_OK;
}
