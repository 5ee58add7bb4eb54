/* Transports: how messages travel between nodes, and whose time it is. */
#ifndef SDR_KIND_TRANSPORT_H
#define SDR_KIND_TRANSPORT_H

#include "kind/about.h"

struct sdr_node;
struct sdr_run;
/* Nodes that exchange messages. A loop is given a node, and talks to others by its transport alone. */
struct sdr_message;
/* Work that takes time, in steps: compute runs one a call, and between two of them a loop can send what is ready.
   run() may be called at any moment between the call of compute and its return, on any thread or stack, or never; it
   reads and writes *argument, and looks at *stop now and then. */
struct sdr_work {
    enum sdr_status (*run)(void *argument, uint32_t step, const atomic_uint *stop);
    void *argument;
    bool certain;         /* nobody will cancel it */
    uint32_t steps, next; /* next: the step that compute runs, from 0 on; it moves on when done */
    const double *cost;   /* per step: the time it takes relative to the others; NULL: all alike */
    /* The time of all steps is drawn (--compute, --delay) by the number of the work among those of its worker: the sum
       of so many draws. */
    uint64_t number;
    uint32_t draws;
    int64_t time; /* the transport's: what was drawn, nanoseconds */
};
struct sdr_transport {
    SDR_ABOUT;
    bool simulated;    /* time is virtual, and all nodes are in this process, on one thread */
    bool by_reference; /* a body that many are sent is there once */
    uint64_t workers_most;
    /* Where a job has several processes: which one this is, and how many there are; before data is read, and
       any number of times. At the end: how it went; returns the status to end with. NULL: there is one process. */
    enum sdr_status (*join)(const void *options, int *process, int *processes);
    enum sdr_status (*leave)(enum sdr_status status);
    /* Barrier with timeout, of the option and some seconds more. Fails unless every process passes the same text. */
    enum sdr_status (*barrier)(const void *options, double more, const char *text);
    /* Bytes of the first process become everybody's; the others wait for it. */
    enum sdr_status (*share)(void *bytes, size_t count);
    /* Makes what all nodes share; run->network is there. */
    enum sdr_status (*open)(struct sdr_run *run, const void *options);
    /* Runs loop(node) for every node of this process, until all have returned; the status of the first that
       failed. */
    enum sdr_status (*launch)(struct sdr_run *run, enum sdr_status (*loop)(struct sdr_node *node));
    /* Never waits for the receiver. The body is gone in every case. Any node can send to any other, and to itself;
       messages from one node to another arrive in the order sent. */
    enum sdr_status (*send)(struct sdr_node *node, struct sdr_message *message);
    /* Waits for the next message, in the order of arrival. Fails if none can come any more, as far as the
       transport can tell. In real time node 0 gets a NONE now and then. Nodes that hear of deaths (network.h) get a
       LOST for every node that has died. */
    enum sdr_status (*receive)(struct sdr_node *node, struct sdr_message *message);
    /* A worker's: runs the next step of the work. *done is false if an URGENT message came in the way, or is there
       already; what run() made is then worth nothing. */
    enum sdr_status (*compute)(struct sdr_node *node, struct sdr_work *work, bool *done);
    /* Whether a message has come: receive would not wait. */
    bool (*any)(struct sdr_node *node);
    int64_t (*now)(const struct sdr_node *node); /* nanoseconds since the launch */
    void (*close)(struct sdr_run *run);          /* must not wait for the dead */
};

#endif
