#include "transport/sim_link.h"
#include "base/memory.h"
#include "server/compute_times.h"
#include "server/network.h"

#include <math.h>

struct sdr_sim_link {
    uint64_t nodes; /* sender and receiver, + 1; 0: the slot is free */
    int64_t until;
};

enum sdr_status sdr_sim_links_open(struct sdr_sim_links *links, const char *far, int servers,
                                   int workers)
{
    links->servers = servers;
    if (links->port > 0)
        SDR_TRY(sdr_allocate(&links->at_port, (size_t)(servers + workers), sizeof *links->at_port,
                             "the simulator"));
    return *far ? sdr_parse_factors(far, '+', "sim:far", workers, &links->far) : SDR_OK;
}

void sdr_sim_links_free(struct sdr_sim_links *links)
{
    sdr_release(links->link);
    sdr_release(links->at_port);
    sdr_release(links->far);
}

bool sdr_sim_links_instant(const struct sdr_sim_links *links)
{
    return links->latency == 0 && links->bandwidth == 0 && links->port == 0;
}

/* ---- busy links ---- */
/* The slot of a link; a new link gets a free slot, or that of an idle link. */
static struct sdr_sim_link *place_of(const struct sdr_sim_links *links, uint64_t nodes, int64_t now)
{
    struct sdr_sim_link *idle = NULL;
    for (uint64_t at = nodes * UINT64_C(0x9E3779B97F4A7C15) >> 32;; at++) {
        struct sdr_sim_link *link = &links->link[at & (links->room - 1)];
        if (link->nodes == nodes)
            return link;
        if (!link->nodes)
            return idle ? idle : link;
        if (!idle && link->until <= now)
            idle = link;
    }
}

/* A hash table in which busy links take at most a quarter of the slots; idle links lose theirs.
   So 10 000 nodes that all talk to each other need memory only for concurrent transfers. */
static enum sdr_status make_room(struct sdr_sim_links *links, int64_t now)
{
    enum { LEAST = 64 };
    struct sdr_sim_links larger = *links;
    uint64_t busy = 0;
    for (uint64_t i = 0; i < links->room; i++)
        busy += links->link[i].until > now;
    larger.count = 0;
    for (larger.room = LEAST; larger.room < 4 * busy;)
        larger.room *= 2;
    SDR_TRY(sdr_allocate(&larger.link, larger.room, sizeof *larger.link, "links"));
    for (uint64_t i = 0; i < links->room; i++)
        if (links->link[i].until > now) {
            *place_of(&larger, links->link[i].nodes, now) = links->link[i];
            larger.count++;
        }
    sdr_release(links->link);
    *links = larger;
    return SDR_OK;
}

static enum sdr_status find_link(struct sdr_sim_links *links, int64_t now, int from, int to,
                                 int64_t **until)
{
    uint64_t nodes = ((uint64_t)from << 32 | (uint32_t)to) + 1;
    struct sdr_sim_link *link = links->room ? place_of(links, nodes, now) : NULL;
    if (!link || (!link->nodes && 2 * (links->count + 1) > links->room)) {
        SDR_TRY(make_room(links, now));
        link = place_of(links, nodes, now);
    }
    links->count += link->nodes == 0;
    if (link->nodes != nodes)
        *link = (struct sdr_sim_link){.nodes = nodes};
    *until = &link->until;
    return SDR_OK;
}

/* ---- arrival ---- */
/* The slower end of a link determines its speed. */
static double slowness(const struct sdr_sim_links *links, int from, int to)
{
    double slow = 1;
    if (links->far && from >= links->servers)
        slow = links->far[from - links->servers];
    if (links->far && to >= links->servers)
        slow = fmax(slow, links->far[to - links->servers]);
    return slow;
}

static int64_t nanoseconds(double seconds)
{
    return (int64_t)llrint(seconds * 1e9);
}

/* Queues a transfer behind those before it: busy until they end, plus the time of its bytes. */
static int64_t pass(int64_t *busy_until, int64_t time, double seconds)
{
    return *busy_until = (*busy_until > time ? *busy_until : time) + nanoseconds(seconds);
}

static bool has_port(const struct sdr_sim_links *links, int node)
{
    return links->at_port && (node < links->servers || links->servers == 0);
}

bool sdr_sim_idle(const struct sdr_sim_links *links, int64_t now, int from, int to)
{
    uint64_t nodes = ((uint64_t)from << 32 | (uint32_t)to) + 1;
    if (has_port(links, from) && links->at_port[from].out > now)
        return false;
    if (links->bandwidth <= 0 || !links->room)
        return true;
    const struct sdr_sim_link *link = place_of(links, nodes, now);
    return !link || link->nodes != nodes || link->until <= now;
}

enum sdr_status sdr_sim_arrival(struct sdr_sim_links *links, int64_t now, int from, int to,
                                double bytes, int64_t *time)
{
    double slow = slowness(links, from, to);
    *time = now;
    if (has_port(links, from))
        *time = pass(&links->at_port[from].out, *time, bytes / links->port);
    if (links->bandwidth > 0) {
        int64_t *until;
        SDR_TRY(find_link(links, now, from, to, &until));
        *time = pass(until, *time, bytes / links->bandwidth * slow);
    }
    *time += nanoseconds(links->latency * slow);
    if (!has_port(links, to))
        return SDR_OK;
    int64_t *in = &links->at_port[to].in;
    if (links->servers > 0)
        *time = pass(in, *time, bytes / links->port);
    else /* received while it was sent */
        *time = *in = *in + nanoseconds(bytes / links->port) > *time
                          ? *in + nanoseconds(bytes / links->port)
                          : *time;
    return SDR_OK;
}
