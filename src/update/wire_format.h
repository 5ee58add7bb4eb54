/* The byte format of an update, for wire.c and wire_write.c: see wire.h for the order. */
#ifndef SDR_UPDATE_WIRE_FORMAT_H
#define SDR_UPDATE_WIRE_FORMAT_H

#include "update/wire.h"

enum { SDR_WIRE_MAGIC = 0x55524453 /* "SDRU" */, SDR_WIRE_VERSION = 1, SDR_WIRE_ALIGN = 8 };

struct sdr_wire_head {
    uint32_t magic;
    uint16_t version;
    uint16_t sense;
    uint32_t parts, leaves, rows;
    float computing;
    double rate;
};
_Static_assert(sizeof(struct sdr_wire_head) == 32, "the head is read from bytes");

enum sdr_wire_flag {
    SDR_WIRE_DISTINCT = 1,
    SDR_WIRE_INDEXED = 2,
    SDR_WIRE_SHARED = 4, /* shares the factors of an earlier part */
};
struct sdr_wire_part {
    uint16_t block;
    uint8_t form, right, flags, unused[3];
    uint32_t count, first, leaf, leaves;
    uint32_t shared; /* the part that owns its factors */
    uint32_t index_bytes;
    uint64_t value_bytes, v_bytes;
};
_Static_assert(sizeof(struct sdr_wire_part) == 48, "heads of parts are read from bytes");

static inline uint64_t sdr_wire_padded(uint64_t bytes)
{
    return (bytes + SDR_WIRE_ALIGN - 1) / SDR_WIRE_ALIGN * SDR_WIRE_ALIGN;
}

/* Rows of a part's block that lie in a span, and the entries of the part among them. */
struct sdr_wire_slice {
    uint32_t first, end;
    uint64_t count, floats, stored;
};

#endif
