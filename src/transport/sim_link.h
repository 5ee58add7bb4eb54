/* Transfer times of messages in virtual time. A message passes the sender's port, the link
   between the nodes, and the receiver's port, each in FIFO order, and then takes the latency:
   messages of one link never overtake. Servers have ports; without servers every node has one.
   Transmission through both ports overlaps: the receiver's port adds time only if several
   senders share it. */
#ifndef SDR_TRANSPORT_SIM_LINK_H
#define SDR_TRANSPORT_SIM_LINK_H

#include "base/fail.h"
#include <stdbool.h>
#include <stdint.h>

struct sdr_sim_links {
    double latency;         /* seconds */
    double bandwidth, port; /* bytes a second; 0: no limit */
    float *far;             /* owned, per worker: slowness of its links; NULL: all 1 */
    int servers;            /* nodes 0 … servers − 1; the others are workers */
    /* End of the last transfer of every busy link: owned, a hash table of `room` slots, a power
       of two. An idle link has no slot, or loses it when the table grows. */
    struct sdr_sim_link *link;
    uint64_t count, room;
    /* End of the last transfer of every port: owned; NULL: no limit. */
    struct sdr_sim_port {
        int64_t in, out;
    } * at_port;
};

/* The caller sets the speeds; the rest is zero. `far` may be "". */
enum sdr_status sdr_sim_links_open(struct sdr_sim_links *links, const char *far, int servers,
                                   int workers);
void sdr_sim_links_free(struct sdr_sim_links *links);
/* Whether every message arrives at the time it is sent. */
bool sdr_sim_links_instant(const struct sdr_sim_links *links);
/* Whether a message sent now would go out at once. */
bool sdr_sim_idle(const struct sdr_sim_links *links, int64_t now, int from, int to);
/* The arrival time of a message sent now, from one node to another. */
enum sdr_status sdr_sim_arrival(struct sdr_sim_links *links, int64_t now, int from, int to,
                                double bytes, int64_t *time);

#endif
