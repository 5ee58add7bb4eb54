/* Connections between the processes of an MPI job: every process listens to every other, and MPI connects two of them
   when one sends to the other for the first time. Messages travel from node to node; nothing here waits.

   MPI does not report that a process has died; its missing heartbeats do (mpi_heartbeat.c). Nothing is sent to a lost
   process any more, what was on its way is abandoned, and nodes are told about its nodes. */
#ifndef SDR_TRANSPORT_MPI_LINK_H
#define SDR_TRANSPORT_MPI_LINK_H

#include "transport/mpi_job.h"
#include "transport/mpi_wire.h"
#include "transport/node_threads.h"

struct sdr_run;
struct sdr_network;

/* What comes from another process: a header, or the body that follows one. */
struct sdr_mpi_link {
    unsigned char header[SDR_WIRE_MOST];
    struct sdr_message message; /* owned: its body is on its way */
    uint64_t rest;              /* bytes of that; 0: a header is awaited */
    bool listening;
    bool sent;    /* this process has sent to it */
    bool awaited; /* it has sent to this process, which waits for its last message */
    bool bye;     /* which has come */
    bool lost;
};

struct sdr_mpi_sending;
/* What the nodes of this process share. job->calls guards all but the threads. */
struct sdr_mpi_links {
    struct sdr_node_threads threads; /* first: see node_threads.h */
    struct sdr_mpi_link *link;       /* owned, per process */
    unsigned char (
        *receiving)[SDR_MPI_REQUEST_BYTES]; /* owned, per process: cleared, or listening */
    struct sdr_mpi_sending *out, *spare;    /* owned */
    unsigned char *talked;      /* owned, process 0's: which processes (bits) have sent to each */
    atomic_uint_fast64_t bytes; /* sent past process 0, which counts what it sees */
    bool parting;               /* the last message of this process was sent */
};

enum sdr_status sdr_mpi_links_open(struct sdr_run *run, struct sdr_mpi_links *links);
/* Must not wait for the dead: what MPI may still write to is left behind. */
void sdr_mpi_links_free(struct sdr_mpi_links *links);

/* Sends a message to another process, or drops it if that is lost. The body is gone in every case. */
enum sdr_status sdr_mpi_post(struct sdr_run *run, int process, const struct sdr_message *message);
/* Looks after all messages of this process, unless somebody else does; *any: one has arrived. */
enum sdr_status sdr_mpi_poll(struct sdr_run *run, bool *any);

/* The caller holds job->calls. Begins to listen to everybody. */
enum sdr_status sdr_mpi_listen(struct sdr_run *run);
/* The last message to a process: how it went here. To process 0: who else was sent something. From process 0: who has
   sent something to that process. */
enum sdr_status sdr_mpi_say_bye(struct sdr_run *run, int process, enum sdr_status how);
/* Whether the last messages of all processes have come that this one waits for, and everything was sent. */
bool sdr_mpi_all_said_bye(const struct sdr_mpi_links *links);

#endif
