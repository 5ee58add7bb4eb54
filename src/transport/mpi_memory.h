/* Large bodies of messages between processes of one machine stay where they are: the receiver reads
   them in the sender's memory, and sets a word there when it is done. Every process has an arena
   for its bodies, and maps those of the others; where that is not allowed, or on another machine,
   bodies are copied by MPI. */
#ifndef SDR_TRANSPORT_MPI_MEMORY_H
#define SDR_TRANSPORT_MPI_MEMORY_H

#include "base/fail.h"
#include "server/message.h"
#include "transport/mpi/shim.h"
#include "transport/mpi_wire.h"

/* Collective: the arenas of all processes; NULL, or what went wrong. */
const char *sdr_mpi_memory_open(const struct sdr_mpi *mpi, int process, int processes);
/* For a run: bodies of the pool can stay, if the option says so. end: those of the run are no
   longer read by anybody. */
void sdr_mpi_memory_begin(struct sdr_pool *pool, bool share);
void sdr_mpi_memory_end(void);

/* The same number of bytes in every process that has an arena, before any body: of this process
   (NULL: it has none; fails if there is no room), and of another one (NULL: it cannot be written
   here). */
enum sdr_status sdr_mpi_memory_take(uint64_t bytes, unsigned char **memory);
unsigned char *sdr_mpi_memory_there(int process);
/* Whether a process can read this body where it is; if so, its place, and the word that is not 0
   when the process is done. A word is the caller's until it calls `recycle`, when it is not 0. */
bool sdr_mpi_memory_lend(const struct sdr_body *body, int process, struct sdr_wire_place *place,
                         atomic_uint **freed);
void sdr_mpi_memory_recycle(atomic_uint *freed);
/* A body that stays with another process; fails if the place makes no sense. */
enum sdr_status sdr_mpi_memory_borrow(struct sdr_pool *pool, int process,
                                      const struct sdr_wire_rest *rest, struct sdr_body **body);

#endif
