/* The few calls of MPI that the transport needs. They are in a module of their own, which is loaded
   when asked for: programs start without MPI, and run where there is none. */
#ifndef SDR_TRANSPORT_MPI_SHIM_H
#define SDR_TRANSPORT_MPI_SHIM_H

#include <stdbool.h>
#include <stddef.h>

struct sdr_mpi {
    int version; /* of this struct */
    /* All are called by one thread at a time. NULL, or what went wrong, static. */
    const char *(*start)(int *rank, int *size, bool *one_machine);
    /* Collective: `all` gets the bytes of every process, in order. */
    const char *(*gather)(const void *bytes, size_t count, void *all);
    /* Begins; the bytes stay where they are until it is done. A request is at most 16 bytes. */
    const char *(*send)(int to, int tag, const void *bytes, size_t count, void *request);
    /* The same; it is not done before the receiver has begun to receive it. */
    const char *(*send_slowly)(int to, int tag, const void *bytes, size_t count, void *request);
    const char *(*receive)(int from, int tag, void *bytes, size_t count, void *request);
    /* Begins a sum over all processes, in place, which all begin in the same order. */
    const char *(*sum)(float *value, size_t count, void *request);
    const char *(*test)(void *request, bool *done);
    /* The first of `count` receives that is done, which is cleared then, and the bytes that came;
       *which is −1 if none is. Requests that are cleared are passed over. With an error *which is
       the receive that failed, or −1. */
    const char *(*test_receives)(void *requests, int count, int *which, size_t *bytes);
    void (*clear)(void *request);  /* makes it a request of nothing, whatever it was */
    bool (*cancel)(void *request); /* a receive's; false: a part of it has come, it is under way */
    void (*progress)(void);        /* looks at all connections */
    void (*finish)(void);
    void (*give_up)(int code); /* ends all processes */
};
enum { SDR_MPI_SHIM = 7, SDR_MPI_REQUEST_BYTES = 16 };

#endif
