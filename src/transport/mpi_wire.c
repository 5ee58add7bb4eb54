#include "transport/mpi_wire.h"

#include <string.h>

/* In the byte order of the machine: one with another order does not know the mark. Raise FORMAT
   when a field changes. */
enum { MARK = 0x5344, FORMAT = 3 };
struct header {
    uint16_t mark;
    uint8_t format, kind, flags, stays; /* stays: 1: the place of the body follows */
    uint16_t sequence;
    int32_t from, to, about;
    uint32_t bytes; /* of the body */
    uint64_t version, batch;
    double value;
};
_Static_assert(sizeof(struct header) == SDR_HEADER_BYTES, "headers have no gaps");

size_t sdr_wire_pack(const struct sdr_message *message, const struct sdr_wire_place *place,
                     unsigned char *bytes)
{
    uint32_t body = message->body ? (uint32_t)message->body->bytes : 0;
    struct header header = {.mark = MARK,
                            .format = FORMAT,
                            .kind = message->kind,
                            .flags = message->flags,
                            .stays = place != NULL,
                            .sequence = message->sequence,
                            .from = message->from,
                            .to = message->to,
                            .about = message->about,
                            .bytes = body,
                            .version = message->version,
                            .batch = message->batch,
                            .value = message->value};
    memcpy(bytes, &header, sizeof header);
    if (place) {
        memcpy(bytes + sizeof header, place, sizeof *place);
        return sizeof header + sizeof *place;
    }
    if (body == 0 || body > SDR_WIRE_SMALL)
        return sizeof header;
    memcpy(bytes + sizeof header, message->body->data, body);
    return sizeof header + body;
}

enum sdr_status sdr_wire_unpack(const unsigned char *bytes, size_t count, int nodes,
                                struct sdr_pool *pool, struct sdr_message *message,
                                struct sdr_wire_rest *rest)
{
    struct header header = {0};
    if (count >= sizeof header)
        memcpy(&header, bytes, sizeof header);
    if (header.mark != MARK || header.format != FORMAT)
        return sdr_fail(SDR_RUNTIME, "a message came that is none of this program");
    uint32_t with = header.bytes <= SDR_WIRE_SMALL ? header.bytes : 0;
    bool stays = header.stays == 1 && header.bytes > SDR_WIRE_SMALL;
    size_t expected = sizeof header + (stays ? sizeof rest->place : with);
    if (header.stays != stays || count != expected || header.bytes > SDR_WIRE_LARGEST)
        return sdr_fail(SDR_RUNTIME, "a message came with %zu bytes, and should have %zu", count,
                        expected);
    bool travels = header.kind < SDR_MESSAGE_KINDS && !sdr_message_is_local(header.kind);
    if (!travels && header.kind != SDR_WIRE_BYE)
        return sdr_fail(SDR_RUNTIME, "a message came of a kind that does not travel");
    if (header.from < 0 || header.from >= nodes || header.to < 0 || header.to >= nodes)
        return sdr_fail(SDR_RUNTIME, "a message came for a node that does not exist");
    *message = (struct sdr_message){.kind = header.kind,
                                    .flags = header.flags,
                                    .sequence = header.sequence,
                                    .from = header.from,
                                    .to = header.to,
                                    .about = header.about,
                                    .version = header.version,
                                    .batch = header.batch,
                                    .value = header.value};
    *rest = (struct sdr_wire_rest){.bytes = header.bytes - with, .stays = stays};
    if (stays)
        memcpy(&rest->place, bytes + sizeof header, sizeof rest->place);
    if (!with)
        return SDR_OK;
    SDR_TRY(sdr_body_create(pool, with, &message->body));
    memcpy(message->body->data, bytes + sizeof header, with);
    return SDR_OK;
}
