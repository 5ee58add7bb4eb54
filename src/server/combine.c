/* Aggregates that need more than a weighted sum: gradients are expanded over the server's
   values, one array each. */
#include "server/combine.h"
#include "base/memory.h"
#include "run/run.h"
#include "server/network.h"
#include "server/server.h"

#include <string.h>

/* Allocates n arrays of gradients and one for the result. */
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

/* One gradient multiplied out, into an array of the values of the span that is zero. */
static enum sdr_status expand(struct sdr_node *node, const struct sdr_gradient *gradient,
                              float *out)
{
    struct sdr_server *server = sdr_server_of(node);
    struct sdr_parameters *p = server->parameters;
    struct sdr_wire_facts facts;
    struct sdr_update update;
    SDR_TRY(sdr_read_update(node, gradient, server->row, &facts, &update));
    /* Marks of gradients count down from the top, so that they never equal those of updates. */
    server->combined = server->combined ? server->combined - 1 : UINT32_MAX;
    struct sdr_expansion to = {.layout = p->layout,
                               .kernels = p->rule.kernels,
                               .center = p->rule.center,
                               .scratch = &p->scratch,
                               .mark = server->combined,
                               .times = 1};
    sdr_update_expand(&to, &update, server->span, out);
    return SDR_OK;
}

/* Gradient i lies at server->dense + i × (values of the span). */
static enum sdr_status expand_all(struct sdr_node *node, const struct sdr_gradient *gradient,
                                  uint64_t count)
{
    struct sdr_server *server = sdr_server_of(node);
    uint64_t values = server->span.end - server->span.first;
    SDR_TRY(make_room(server, count));
    SDR_TRY(sdr_server_row_room(server, node->run->network->policy.batch));
    memset(server->dense, 0, count * values * sizeof(float));
    for (uint64_t i = 0; i < count; i++)
        SDR_TRY(expand(node, &gradient[i], server->dense + i * values));
    return SDR_OK;
}

enum sdr_status sdr_combine(struct sdr_node *node, const struct sdr_gradient *gradient,
                            uint64_t count, struct sdr_update *update)
{
    const struct sdr_run *run = node->run;
    struct sdr_server *server = sdr_server_of(node);
    uint64_t values = server->span.end - server->span.first;
    uint32_t used = 0;
    const float **each;
    SDR_TRY(expand_all(node, gradient, count));
    SDR_TRY(sdr_allocate(&each, count, sizeof *each, "gradients"));
    for (uint64_t i = 0; i < count; i++) {
        float *own = server->dense + i * values;
        for (uint64_t v = 0; v < values && gradient[i].weight != 1; v++)
            own[v] *= gradient[i].weight;
        if (gradient[i].weight > 0) /* others are as if they had not come */
            each[used++] = own;
    }
    float *out = server->dense + count * values;
    enum sdr_status status = SDR_OK;
    if (used > 1)
        status = run->use.aggregate->combine(run->use.aggregate_options, used, each, values, out);
    else if (used == 1)
        memcpy(out, each[0], values * sizeof *out);
    else
        memset(out, 0, values * sizeof *out);
    sdr_release(each);
    sdr_update_dense(&run->layout, out, server->span, server->sum.part, update);
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
