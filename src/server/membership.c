/* Which workers there are: a table with a place for every worker, which grows when one joins and keeps the place of one
   that is lost. Each server has its own; the first server's says what every worker is busy with.

   A worker joins by a message of its transport, JOINED, and leaves by LOST. The simulator sends both (sim:joins,
   sim:dies), MPI sends LOST. */
#include "base/memory.h"
#include "run/run.h"
#include "server/network.h"

#include <string.h>

/* An array of `had` elements becomes one of `count`, the new ones zero. */
static enum sdr_status extend(void *pointer, uint64_t had, uint64_t count, size_t size)
{
    unsigned char *old, *larger;
    memcpy(&old, pointer, sizeof old);
    SDR_TRY(sdr_allocate(&larger, count, size, "workers"));
    if (had)
        memcpy(larger, old, had * size);
    sdr_release(old);
    memcpy(pointer, &larger, sizeof larger);
    return SDR_OK;
}

static enum sdr_status make_places(struct sdr_node *node, int workers)
{
    struct sdr_network *net = node->run->network;
    struct sdr_server *server = &net->server[node->server];
    uint64_t had = (uint64_t)server->places, count = (uint64_t)workers;
    if (workers <= server->places)
        return SDR_OK;
    SDR_TRY(extend(&server->pending, had, count, sizeof *server->pending));
    SDR_TRY(extend(&server->gone, had, count, sizeof *server->gone));
    if (node->server == 0) {
        SDR_TRY(extend(&net->lead.assignment, had, count, sizeof *net->lead.assignment));
        SDR_TRY(sdr_ledger_make_places(&net->lead.ledger, workers));
    }
    for (uint64_t w = had; w < count; w++) { /* until they join */
        server->gone[w] = true;
        if (node->server == 0)
            net->lead.assignment[w].gone = true;
    }
    server->places = workers;
    return SDR_OK;
}

enum sdr_status sdr_members_start(struct sdr_node *node, int workers)
{
    struct sdr_network *net = node->run->network;
    struct sdr_server *server = &net->server[node->server];
    SDR_TRY(make_places(node, workers));
    for (int w = 0; w < workers; w++) {
        server->gone[w] = false;
        if (node->server == 0)
            net->lead.assignment[w].gone = false;
    }
    if (node->server == 0)
        net->lead.alive = workers;
    return SDR_OK;
}

enum sdr_status sdr_member_join(struct sdr_node *node, int worker)
{
    struct sdr_coordinator *lead = &node->run->network->lead;
    SDR_TRY(make_places(node, worker + 1));
    sdr_server_of(node)->gone[worker] = false;
    if (worker >= node->workers)
        node->workers = worker + 1;
    if (node->server > 0 || !lead->assignment[worker].gone)
        return SDR_OK;
    uint64_t steps = lead->assignment[worker].steps; /* of its own that were applied, if it was here */
    lead->assignment[worker] = (struct sdr_assignment){.steps = steps};
    lead->alive++;
    return SDR_OK;
}

void sdr_member_lose(struct sdr_node *node, int worker)
{
    struct sdr_coordinator *lead = &node->run->network->lead;
    sdr_server_of(node)->gone[worker] = true;
    if (node->server > 0 || lead->assignment[worker].gone)
        return;
    struct sdr_assignment *of = &lead->assignment[worker];
    lead->idle -= of->idle;
    of->busy = of->prefetched = of->idle = false;
    of->gone = true;
    lead->alive--;
}
