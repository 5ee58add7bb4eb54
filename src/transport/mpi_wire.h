/* Messages as bytes between processes: a header, followed by a small body; a larger body is sent
   separately. Received bytes are checked before use. */
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

/* Writes the header, and the body if it is small, to `bytes` (SDR_WIRE_MOST of them); returns
   the length. The body has at most SDR_WIRE_LARGEST bytes. */
size_t sdr_wire_pack(const struct sdr_message *message, unsigned char *bytes);
/* Reads a message from `count` bytes; its body, if included, is from the pool and owned by the
   caller. *rest: bytes of a body that is sent separately, or 0. Fails unless the version and
   kind are known, the nodes are below `nodes`, and the length is right. */
enum sdr_status sdr_wire_unpack(const unsigned char *bytes, size_t count, int nodes,
                                struct sdr_pool *pool, struct sdr_message *message, uint64_t *rest);

#endif
