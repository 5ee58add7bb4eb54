/* The coordinator, the first server: assigns batches, counts gradients, decides what is applied.
   The functions that strategies call are in role.h. */
#ifndef SDR_SERVER_COORDINATOR_H
#define SDR_SERVER_COORDINATOR_H

#include "server/batch_queue.h"
#include "server/ledger.h"
#include "server/message.h"

/* The coordinator's view of a worker. */
struct sdr_assignment {
    uint64_t batch, version;
    bool busy;              /* with that batch */
    bool idle;              /* waits because the queue was empty */
    bool gone;              /* lost, or not joined yet */
    uint64_t tasks;         /* assigned so far */
    uint64_t steps;         /* its own steps that were applied */
    int64_t assigned, came; /* transport time of the task, and of the gradient before it */
    int32_t waited_for;     /* see ledger.h */
    uint32_t bytes;         /* of the task */
    bool prefetched;        /* its next batch was sent ahead, with values */
    int patches;            /* sent for these values, so far */
    uint64_t next;          /* that batch */
    uint32_t next_bytes;    /* of its values and patches */
    struct sdr_body *sent;  /* owned: those values, as the worker has them */
    double tokens;          /* token bucket: bytes that may be sent to it now */
    int64_t filled;         /* transport time of the last refill */
};

/* The state of the coordinator. */
struct sdr_coordinator {
    struct sdr_assignment *assignment; /* owned, per worker */
    struct sdr_batch_queue queue;      /* of the planned epochs */
    int idle;                          /* workers that wait because the queue is empty */
    int alive;                         /* workers that are not lost */
    int last;                          /* worker whose gradient came last; −1: none yet */
    uint64_t discard_before; /* gradients of older versions are ignored (after a restart) */
    uint64_t dropped;        /* gradients that arrived too late */
    uint64_t applied, staleness,
        stalest; /* gradients applied; sum and maximum of their staleness */
    struct sdr_ledger ledger;
    char server_lost[512]; /* the sentence about a server that was lost; "": none was */
    char ledger_lost[512]; /* why records of it are lost; "": none are */
    int64_t ended;         /* transport time when the run was over */
};

struct sdr_network;
/* Takes the next batch number (the queue must not be empty); puts one back. */
uint64_t sdr_next_number(struct sdr_network *net);
enum sdr_status sdr_return_number(struct sdr_network *net, uint64_t number);

#endif
