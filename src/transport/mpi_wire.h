/* Messages as bytes between processes: a header, with the body behind it where that is small; a larger one comes by
   itself. Nothing that came is used before it was checked. */
#ifndef SDR_TRANSPORT_MPI_WIRE_H
#define SDR_TRANSPORT_MPI_WIRE_H

#include "server/message.h"
#include <stddef.h>

enum {
    SDR_WIRE_BYE = 255,    /* kind: the last message of a process */
    SDR_WIRE_SMALL = 4096, /* bytes of a body that goes with its header */
    SDR_WIRE_MOST = SDR_HEADER_BYTES + SDR_WIRE_SMALL,
    SDR_WIRE_LARGEST = 0x7FFFFFFF, /* body, in bytes */
};

/* Writes the header, and the body if it is small, to `bytes` (SDR_WIRE_MOST of them); how many. The body has
   SDR_WIRE_LARGEST bytes at most. */
size_t sdr_wire_pack(const struct sdr_message *message, unsigned char *bytes);
/* The message that `count` bytes are; its body, if it has come with it, is from the pool, and the caller's. *rest: the bytes
   of a body that is still to come, or 0. Fails unless the header is of this version, its kind is known, its nodes are below `nodes`, and
   the length is what it says. */
enum sdr_status sdr_wire_unpack(const unsigned char *bytes, size_t count, int nodes,
                                struct sdr_pool *pool, struct sdr_message *message, uint64_t *rest);

#endif
