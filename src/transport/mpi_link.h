/* Connections between the processes of an MPI job. Every process listens to every other; MPI
   connects two of them at the first message. Messages go from node to node; nothing here waits.

   MPI does not report the death of a process; missing heartbeats do (mpi_heartbeat.c). Nothing
   more is sent to a lost process, its pending messages are abandoned, and nodes are told that
   its nodes are lost. */
#ifndef SDR_TRANSPORT_MPI_LINK_H
#define SDR_TRANSPORT_MPI_LINK_H

#include "transport/mpi_job.h"
#include "transport/mpi_wire.h"
#include "transport/node_threads.h"

struct sdr_run;
struct sdr_network;

/* The receiving side of another process: a header, or the body that follows one. */
struct sdr_mpi_link {
    unsigned char header[SDR_WIRE_MOST];
    struct sdr_message message; /* owned: its body is arriving */
    struct sdr_wire_rest rest;  /* that body; none: waiting for a header */
    bool listening;
    bool sent;    /* this process has sent to it */
    bool awaited; /* it has sent to this process, which waits for its last message */
    bool bye;     /* its last message has arrived */
    bool lost;
};

struct sdr_mpi_sending;
/* Shared by the nodes of this process. job->calls guards all but the threads. */
struct sdr_mpi_links {
    struct sdr_node_threads threads; /* first: see node_threads.h */
    struct sdr_mpi_link *link;       /* owned, per process */
    unsigned char (
        *receiving)[SDR_MPI_REQUEST_BYTES]; /* owned, per process: cleared, or listening */
    struct sdr_mpi_sending *out, *spare;    /* owned */
    unsigned char *talked;      /* owned, at process 0: which processes (bits) have sent to each */
    atomic_uint_fast64_t bytes; /* sent between other processes, which process 0 does not see */
    bool parting;               /* the last message of this process was sent */
};

enum sdr_status sdr_mpi_links_open(struct sdr_run *run, struct sdr_mpi_links *links);
/* Does not wait for dead processes: memory that MPI may still write to is leaked. */
void sdr_mpi_links_free(struct sdr_mpi_links *links);

/* Sends a message to another process, or drops it if that is lost. Takes ownership of the body,
   also on failure. */
enum sdr_status sdr_mpi_post(struct sdr_run *run, int process, const struct sdr_message *message);
/* Whether no one-sided write is on its way to a process. */
bool sdr_mpi_idle(struct sdr_run *run, int process);
/* Polls for all nodes of this process, unless another thread does; *any: a message has arrived. */
enum sdr_status sdr_mpi_poll(struct sdr_run *run, bool *any);

/* The caller holds job->calls. Starts listening to all processes. */
enum sdr_status sdr_mpi_listen(struct sdr_run *run);
/* The last message to a process: how it went here. To process 0: who else was sent something. From
   process 0: who has sent something to that process. */
enum sdr_status sdr_mpi_say_bye(struct sdr_run *run, int process, enum sdr_status how);
/* Whether MPI needs none of the messages of this process any more. */
bool sdr_mpi_all_sent(const struct sdr_mpi_links *links);
/* Whether the last messages of all processes have come that this one waits for, and everything was
   sent. */
bool sdr_mpi_all_said_bye(const struct sdr_mpi_links *links);

#endif
