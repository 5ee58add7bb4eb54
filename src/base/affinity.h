/* Where threads run and memory lies: workers spread over nodes and cores, by hwloc. */
#ifndef SDR_BASE_AFFINITY_H
#define SDR_BASE_AFFINITY_H

#include "base/fail.h"

/* Memory nodes of this machine, without looking further: 1 unless there are several. */
int sdr_affinity_nodes(void);

/* A place for each of `workers` threads among the CPUs this process may use, as far from each other as
   they can be: nodes first, then cores, then the threads of a core. `described` is a topology in hwloc's
   notation, for tests; NULL: this machine. *places is NULL if there are more workers than CPUs. */
struct sdr_affinity;
enum sdr_status sdr_affinity_open(const char *described, int workers, struct sdr_affinity **places);
int sdr_places_cpu(const struct sdr_affinity *places, int worker);
int sdr_places_node(const struct sdr_affinity *places, int worker);
/* The calling thread stays on the worker's CPU from now on; back: where it could run before. Whether the
   system allows it or not, the work goes on. */
void sdr_affinity_pin(struct sdr_affinity *places, int worker);
void sdr_affinity_restore(struct sdr_affinity *places);
/* Memory that a worker alone uses moves to its node. */
void sdr_affinity_move(struct sdr_affinity *places, int worker, void *bytes, size_t count);
void sdr_affinity_close(struct sdr_affinity *places); /* NULL is fine */

#endif
