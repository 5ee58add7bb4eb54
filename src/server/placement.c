/* The process of every node. Servers are spread over the processes, neighbours together, so that
   a process holds one span of values. Workers go to all processes in turn; with
   --dedicated-servers, to the processes without a server. */
#include "server/placement.h"
#include "run/run.h"
#include "server/network.h"

static int server_processes(const struct sdr_network *net)
{
    int most = net->processes - net->dedicated;
    return net->servers < most ? net->servers : most;
}

int sdr_process_of(const struct sdr_network *net, int node)
{
    int homes = server_processes(net), first = net->dedicated ? homes : 0;
    if (node < net->servers)
        return (int)((int64_t)node * homes / net->servers);
    return first + (node - net->servers) % (net->processes - first);
}

bool sdr_is_here(const struct sdr_node *node)
{
    return sdr_process_of(node->run->network, node->id) == node->run->process;
}

bool sdr_servers_apart(const struct sdr_network *net)
{
    return net->servers > 1 && server_processes(net) > 1;
}

int sdr_workers_of_job(const struct sdr_run *run)
{
    const struct sdr_settings *s = &run->options.settings;
    int servers = (int)s->servers, most = run->processes - 1;
    return s->dedicated_servers ? run->processes - (servers < most ? servers : most)
                                : run->processes;
}
