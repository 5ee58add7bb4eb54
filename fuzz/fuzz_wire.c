/* Messages between processes: any bytes. What is unpacked has nodes that exist, a kind that is
   known, and the length that came; packed again it gives the same bytes, but for the length of a
   body to come. */
#include "fuzz.h"

#include "transport/mpi_wire.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    enum { NODES = 5, LENGTH = 20, LENGTH_END = 24 };
    struct sdr_pool *pool;
    struct sdr_message message = {0};
    struct sdr_wire_rest rest = {0};
    FUZZ_CHECK(sdr_pool_create(true, &pool) == SDR_OK);
    enum sdr_status status = sdr_wire_unpack(bytes, count, NODES, pool, &message, &rest);
    FUZZ_CHECK(status == SDR_OK || (status == SDR_RUNTIME && *sdr_error()));
    if (status == SDR_OK) {
        unsigned char again[SDR_WIRE_MOST];
        uint64_t body = message.body ? message.body->bytes : 0;
        FUZZ_CHECK(message.from >= 0 && message.from < NODES && message.to >= 0 &&
                   message.to < NODES);
        FUZZ_CHECK((message.kind < SDR_MESSAGE_KINDS && !sdr_message_is_local(message.kind)) ||
                   message.kind == SDR_WIRE_BYE);
        FUZZ_CHECK(rest.bytes == 0 ||
                   (body == 0 && rest.bytes > SDR_WIRE_SMALL && rest.bytes <= SDR_WIRE_LARGEST));
        FUZZ_CHECK(count == SDR_HEADER_BYTES + (rest.stays ? sizeof rest.place : body));
        FUZZ_CHECK(sdr_wire_pack(&message, rest.stays ? &rest.place : NULL, again) == count);
        for (size_t i = 0; i < count; i++)
            FUZZ_CHECK(again[i] == bytes[i] || (rest.bytes && i >= LENGTH && i < LENGTH_END));
        sdr_body_drop(message.body);
    }
    sdr_pool_destroy(pool);
    return 0;
}
