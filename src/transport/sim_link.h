/* How long messages travel in virtual time.

   A message passes the sender's port, the link from one node to the other, and the receiver's port, each after
   the messages before it, and takes the latency on top: so none overtakes another on the same link. Servers
   have ports; where there is none, every node has one. What is received there was already sent at the speed of a
   port, and fills both at the same time: the receiver's port adds time only where several senders share it. */
#ifndef SDR_TRANSPORT_SIM_LINK_H
#define SDR_TRANSPORT_SIM_LINK_H

#include "base/fail.h"
#include <stdbool.h>
#include <stdint.h>

struct sdr_sim_links {
    double latency;         /* seconds */
    double bandwidth, port; /* bytes a second; 0: no limit */
    float *far;             /* owned, per worker: how slow its links are; NULL: all 1 */
    int servers;            /* nodes from 0 on; the others are workers */
    /* Until when a link is busy, for those that are: owned, a hash table of `room` places, a power of two. A link
       that is idle has no place, or one that is given up when the table grows. */
    struct sdr_sim_link *link;
    uint64_t count, room;
    /* Until when a node's port is busy: owned; NULL: ports have no limit. */
    struct sdr_sim_port {
        int64_t in, out;
    } * at_port;
};

/* The speeds are set; the rest is zero. `far` may be "". */
enum sdr_status sdr_sim_links_open(struct sdr_sim_links *links, const char *far, int servers,
                                   int workers);
void sdr_sim_links_free(struct sdr_sim_links *links);
/* Whether every message arrives when it is sent. */
bool sdr_sim_links_instant(const struct sdr_sim_links *links);
/* When a message that is sent now arrives; from one node to another. */
enum sdr_status sdr_sim_arrival(struct sdr_sim_links *links, int64_t now, int from, int to,
                                double bytes, int64_t *time);

#endif
