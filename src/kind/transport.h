/* Transports: messages between nodes, and the clock. */
#ifndef SDR_KIND_TRANSPORT_H
#define SDR_KIND_TRANSPORT_H

#include "kind/about.h"

struct sdr_node;
struct sdr_run;
/* Nodes exchange messages. A loop gets a node, and reaches others only through its transport. */
struct sdr_message;
/* Work in steps that take time: each call of compute runs one step, and the loop can send
   results between two calls. compute may call run() at any moment before it returns, on any
   thread or stack, or never. run() reads and writes *argument, and polls *stop. */
struct sdr_work {
    enum sdr_status (*run)(void *argument, uint32_t step, const atomic_uint *stop);
    void *argument;
    bool certain;         /* nobody will cancel it */
    uint32_t steps, next; /* next: the step that compute runs, from 0; incremented when done */
    const double *cost;   /* per step: relative time; NULL: all equal */
    /* The time of all steps is the sum of `draws` random draws (--compute, --delay): numbers
       `number` and so on of those of its worker. */
    uint64_t number;
    uint32_t draws;
    int64_t time; /* for the transport: the drawn time, nanoseconds */
    /* For peers: handles messages that arrive meanwhile, without waiting; NULL: they stay where
       they are. In virtual time compute calls it on every arrival; in real time another thread
       does, see peer/helper.c. */
    enum sdr_status (*progress)(void *context);
    void *context;
};
enum { SDR_SUM_REQUEST = 16 }; /* bytes of a request, at most */
struct sdr_transport {
    SDR_ABOUT;
    bool simulated;    /* time is virtual; all nodes are in this process, on one thread */
    bool by_reference; /* receivers of one body share it, without copies */
    uint64_t workers_most;
    /* Jobs of several processes. join: number of this process and of all; called before data is
       read, any number of times. leave: passes the status of this process; returns the exit
       status. NULL: one process. */
    enum sdr_status (*join)(const void *options, int *process, int *processes);
    enum sdr_status (*leave)(enum sdr_status status);
    /* Barrier with timeout, the option's plus `more` seconds. Fails unless every process passes
       the same text. */
    enum sdr_status (*barrier)(const void *options, double more, const char *text);
    /* Broadcasts bytes of the first process; the others wait for it. */
    enum sdr_status (*share)(void *bytes, size_t count);
    /* Allocates what the nodes share; run->network exists. */
    enum sdr_status (*open)(struct sdr_run *run, const void *options);
    /* Runs loop(node) for every node of this process until all have returned. Returns the status
       of the first that failed. */
    enum sdr_status (*launch)(struct sdr_run *run, enum sdr_status (*loop)(struct sdr_node *node));
    /* Never waits for the receiver. Takes ownership of the body, also on failure. Any node can
       send to any other, and to itself; messages from one node to another arrive in the order
       sent. Those that sdr_message_admitted refuses on arrival are dropped. */
    enum sdr_status (*send)(struct sdr_node *node, struct sdr_message *message);
    /* Waits for the next message, in order of arrival. Fails if no message can come any more, as
       far as the transport can tell. In real time node 0 gets a NONE from time to time. Nodes
       for which sdr_hears_of_deaths is true get a LOST for every node that has died. */
    enum sdr_status (*receive)(struct sdr_node *node, struct sdr_message *message);
    /* For workers: runs the next step of the work. *done is false if an URGENT message has
       arrived, before or during the step; the result of run() is then discarded. */
    enum sdr_status (*compute)(struct sdr_node *node, struct sdr_work *work, bool *done);
    /* Whether a message has arrived: receive would not wait. */
    bool (*any)(struct sdr_node *node);
    /* Whether all nodes are on this machine, so that messages take computing instead of time. */
    bool (*one_machine)(const struct sdr_node *node);
    /* For a second thread of the node: blocks until a message has arrived or the timeout, in
       nanoseconds, has passed. NULL: time is virtual. */
    void (*wait)(struct sdr_node *node, int64_t nanoseconds);
    /* For peers, one a process: begins a sum over all of them, in place. All begin the same sums in
       the same order. summed: whether it is complete; never, if a process dies. NULL: the transport
       has messages alone. */
    enum sdr_status (*sum)(struct sdr_node *node, float *value, uint64_t count, void *request);
    enum sdr_status (*summed)(struct sdr_node *node, void *request, bool *done);
    /* For slots (server/slots.h): sets run->network->slots.at for nodes whose memory this process
       can write; zeroed. */
    enum sdr_status (*expose)(struct sdr_run *run);
    /* Whether a PUT to a node would not queue behind another one; NULL: it never does. */
    bool (*idle)(struct sdr_node *node, int to);
    int64_t (*now)(const struct sdr_node *node); /* nanoseconds since the launch */
    void (*close)(struct sdr_run *run);          /* must not wait for dead nodes */
};

#endif
