#include "base/affinity.h"
#include "base/memory.h"
#include "base/thread.h"

#include <hwloc.h>
#include <unistd.h>

struct sdr_affinity {
    hwloc_topology_t topology;
    int workers;
    hwloc_cpuset_t *cpu;   /* owned: one CPU for each worker */
    hwloc_cpuset_t before; /* owned: the first thread's binding before pinning */
};

int sdr_affinity_nodes(void)
{
    int nodes = 1;
    char path[64];
    while (snprintf(path, sizeof path, "/sys/devices/system/node/node%d", nodes) > 0 &&
           access(path, F_OK) == 0)
        nodes++;
    return nodes;
}

static enum sdr_status load(const char *described, struct sdr_affinity *p)
{
    if (hwloc_topology_init(&p->topology) != 0)
        return sdr_fail(SDR_RUNTIME, "hwloc cannot be used here");
    if (described && hwloc_topology_set_synthetic(p->topology, described) != 0)
        return sdr_fail(SDR_USAGE, "'%s' is no topology", described);
    if (hwloc_topology_load(p->topology) != 0)
        return sdr_fail(SDR_RUNTIME, "hwloc cannot read the topology of this machine");
    if (described)
        return SDR_OK;
    if (hwloc_get_cpubind(p->topology, p->before, HWLOC_CPUBIND_THREAD) ==
        0) /* respects taskset and cgroup cpusets */
        hwloc_topology_restrict(p->topology, p->before, 0);
    return SDR_OK;
}

enum sdr_status sdr_affinity_open(const char *described, int workers, struct sdr_affinity **places)
{
    struct sdr_affinity *p;
    *places = NULL;
    SDR_TRY(sdr_allocate(&p, 1, sizeof *p, "places of workers"));
    p->before = hwloc_bitmap_alloc();
    enum sdr_status status =
        p->before ? load(described, p) : sdr_fail(SDR_RUNTIME, "out of memory: places of workers");
    if (status == SDR_OK)
        status = sdr_allocate(&p->cpu, (size_t)workers, sizeof *p->cpu, "places of workers");
    if (status != SDR_OK || hwloc_get_nbobjs_by_type(p->topology, HWLOC_OBJ_PU) < workers) {
        sdr_affinity_close(p);
        return status;
    }
    hwloc_obj_t root = hwloc_get_root_obj(p->topology);
    hwloc_distrib(p->topology, &root, 1, p->cpu, (unsigned)workers, INT_MAX, 0);
    p->workers = workers;
    for (int w = 0; w < workers; w++)
        hwloc_bitmap_singlify(p->cpu[w]);
    *places = p;
    return SDR_OK;
}

int sdr_places_cpu(const struct sdr_affinity *places, int worker)
{
    return hwloc_bitmap_first(places->cpu[worker]);
}

int sdr_places_node(const struct sdr_affinity *places, int worker)
{
    hwloc_obj_t pu =
        hwloc_get_pu_obj_by_os_index(places->topology, (unsigned)sdr_places_cpu(places, worker));
    return pu && pu->nodeset ? hwloc_bitmap_first(pu->nodeset) : 0;
}

void sdr_affinity_pin(struct sdr_affinity *places, int worker)
{
    sdr_thread_set_pinned(true);
    hwloc_set_cpubind(places->topology, places->cpu[worker], HWLOC_CPUBIND_THREAD);
}

void sdr_affinity_restore(struct sdr_affinity *places)
{
    hwloc_set_cpubind(places->topology, places->before, HWLOC_CPUBIND_THREAD);
    sdr_thread_set_pinned(false);
}

void sdr_affinity_move(struct sdr_affinity *places, int worker, void *bytes, size_t count)
{
    if (bytes && count)
        hwloc_set_area_membind(places->topology, bytes, count, places->cpu[worker],
                               HWLOC_MEMBIND_BIND, HWLOC_MEMBIND_MIGRATE);
}

void sdr_affinity_close(struct sdr_affinity *places)
{
    if (!places)
        return;
    for (int w = 0; w < places->workers; w++)
        hwloc_bitmap_free(places->cpu[w]);
    hwloc_bitmap_free(places->before);
    if (places->topology)
        hwloc_topology_destroy(places->topology);
    sdr_release(places->cpu);
    sdr_release(places);
}
