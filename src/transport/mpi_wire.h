/* Messages as bytes between processes: a header, followed by a small body; a larger body is sent
   separately, or stays in the sender's memory, and the receiver is told where. Received bytes are
   checked before use. */
#ifndef SDR_TRANSPORT_MPI_WIRE_H
#define SDR_TRANSPORT_MPI_WIRE_H

#include "server/message.h"
#include <stddef.h>

enum {
    SDR_WIRE_BYE = 255,    /* kind: the last message of a process */
    SDR_WIRE_SMALL = 4096, /* bytes of a body sent with its header */
    SDR_WIRE_MOST = SDR_HEADER_BYTES + SDR_WIRE_SMALL,
    SDR_WIRE_LARGEST = 0x7FFFFFFF, /* body, in bytes */
};

/* Where a body stays in the sender's arena (transport/mpi_memory.h), and what is to be set there
   when the receiver is done with it; offsets. */
struct sdr_wire_place {
    uint64_t body, freed;
};
/* A body that is not with its header. */
struct sdr_wire_rest {
    uint64_t bytes; /* 0: there is none */
    bool stays;     /* at `place`; otherwise it is the next message */
    struct sdr_wire_place place;
};

/* Writes the header, and the body if it is small, or its place, to `bytes` (SDR_WIRE_MOST of them);
   returns the length. The body has at most SDR_WIRE_LARGEST bytes. place: NULL, or of a large
   body. */
size_t sdr_wire_pack(const struct sdr_message *message, const struct sdr_wire_place *place,
                     unsigned char *bytes);
/* Reads a message from `count` bytes; its body, if included, is from the pool and owned by the
   caller. Fails unless the version and kind are known, the nodes are below `nodes`, and the length
   is right. */
enum sdr_status sdr_wire_unpack(const unsigned char *bytes, size_t count, int nodes,
                                struct sdr_pool *pool, struct sdr_message *message,
                                struct sdr_wire_rest *rest);

#endif
