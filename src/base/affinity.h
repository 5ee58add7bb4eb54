/* Thread and memory affinity by hwloc: spreads workers over NUMA nodes and cores. */
#ifndef SDR_BASE_AFFINITY_H
#define SDR_BASE_AFFINITY_H

#include "base/fail.h"

/* Number of NUMA nodes, read from sysfs without loading hwloc's topology. */
int sdr_affinity_nodes(void);

/* Assigns one CPU to each of `workers` threads, among the CPUs this process may use. The CPUs are
   spread as far apart as possible: over nodes first, then cores, then hardware threads. `described`
   is a synthetic topology in hwloc's notation, for tests; NULL is this machine. *places is NULL if
   there are more workers than CPUs. */
struct sdr_affinity;
enum sdr_status sdr_affinity_open(const char *described, int workers, struct sdr_affinity **places);
int sdr_places_cpu(const struct sdr_affinity *places, int worker);
int sdr_places_node(const struct sdr_affinity *places, int worker);
/* Pins the calling thread to the worker's CPU; _restore undoes it. A refusal by the system is
   ignored: placement is an optimization. */
void sdr_affinity_pin(struct sdr_affinity *places, int worker);
void sdr_affinity_restore(struct sdr_affinity *places);
/* Migrates memory that only this worker uses to its NUMA node. */
void sdr_affinity_move(struct sdr_affinity *places, int worker, void *bytes, size_t count);
void sdr_affinity_close(struct sdr_affinity *places); /* NULL is fine */

#endif
