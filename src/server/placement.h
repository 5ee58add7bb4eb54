/* Processes and nodes. */
#ifndef SDR_SERVER_PLACEMENT_H
#define SDR_SERVER_PLACEMENT_H

#include "server/network.h"

/* The process of a node, and whether it is this one. */
int sdr_process_of(const struct sdr_network *net, int node);
bool sdr_is_here(const struct sdr_node *node);
/* Whether servers live in more than one process. */
bool sdr_servers_apart(const struct sdr_network *net);
/* Default number of workers of a job. */
int sdr_workers_of_job(const struct sdr_run *run);

/* Whether a node gets LOST messages: the coordinator; every node if there are no servers; and
   servers in several processes, which would otherwise wait for messages of the lost node. */
static inline bool sdr_hears_of_deaths(const struct sdr_network *net, int node)
{
    return net->servers == 0 || node == 0 || (node < net->servers && sdr_servers_apart(net));
}

#endif
