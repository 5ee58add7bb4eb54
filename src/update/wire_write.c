/* Writes updates as bytes: see wire.h. */
#include "base/memory.h"
#include "kind/codec.h"
#include "update/wire_format.h"

#include <string.h>

static bool within(const struct sdr_part *part, uint32_t i, const struct sdr_wire_slice *slice)
{
    return part->index[i] >= slice->first && part->index[i] < slice->end;
}

static struct sdr_wire_slice slice_of(const struct sdr_wire *wire, const struct sdr_part *part,
                                      struct sdr_span span)
{
    const struct sdr_block *block = &wire->layout->block[part->block];
    struct sdr_wire_slice slice = {0};
    sdr_rows_within(block, span, &slice.first, &slice.end);
    if (slice.first == slice.end)
        return slice;
    if (part->form == SDR_DENSE) {
        slice.count = slice.floats = (uint64_t)(slice.end - slice.first) * block->cols;
    } else if (part->form == SDR_ROWS) {
        bool whole = slice.first == 0 && slice.end == block->rows;
        slice.count = whole ? part->count : 0;
        for (uint32_t i = 0; i < part->count && !whole; i++)
            slice.count += within(part, i, &slice);
        slice.floats = slice.count * block->cols;
    } else if (part->form == SDR_TOUCHED) { /* made for this span */
        slice.count = part->count;
        slice.floats = slice.count * block->cols;
    } else {
        slice.count = part->count;
        slice.floats = slice.count * (part->index ? 1 : block->cols);
        slice.stored = part->right == SDR_STORED ? slice.count * block->rows : 0;
    }
    return slice;
}

/* Parts may have their factors in common, as weight and intercept of a linear model do: they are
   sent once, with the first of these parts that lies in the span; −1: this is the first. */
enum { SHARING_MOST = 2 * SDR_BLOCKS_MOST }; /* parts behind these have their own */
static inline int shared_with(const struct sdr_wire *wire, const struct sdr_update *update, int p,
                              struct sdr_span span)
{
    const struct sdr_part *part = &update->part[p];
    bool shares = part->form == SDR_FACTORS && part->right != SDR_STORED && p < SHARING_MOST;
    for (int q = 0; q < p && shares; q++) {
        const struct sdr_part *other = &update->part[q];
        uint32_t first, end;
        sdr_rows_within(&wire->layout->block[other->block], span, &first, &end);
        if (other->form == SDR_FACTORS && other->value == part->value &&
            other->index == part->index && first < end)
            return q;
    }
    return -1;
}

static uint64_t value_bound(const struct sdr_wire *wire, uint64_t floats)
{
    return sdr_wire_padded(wire->codec ? wire->codec->bound(wire->codec_options, floats)
                                       : floats * sizeof(float));
}

uint64_t sdr_wire_bound(const struct sdr_wire *wire, const struct sdr_update *update,
                        struct sdr_span span, uint32_t leaves)
{
    uint64_t bytes = sizeof(struct sdr_wire_head) + leaves * sizeof(struct sdr_loss_sum);
    for (int p = 0; p < update->parts; p++) {
        struct sdr_wire_slice slice = slice_of(wire, &update->part[p], span);
        bytes += sizeof(struct sdr_wire_part);
        if (shared_with(wire, update, p, span) >= 0)
            continue;
        uint64_t index = update->part[p].index ? slice.count * sizeof(uint32_t) : 0;
        bytes += sdr_wire_padded(index) + value_bound(wire, slice.floats) +
                 (slice.stored ? value_bound(wire, slice.stored) : 0);
    }
    return bytes;
}

static unsigned char *put(unsigned char *to, const void *from, uint64_t bytes)
{
    unsigned char *end = to + sdr_wire_padded(bytes);
    if (bytes == 0) /* from may be NULL */
        return to;
    memset(end - SDR_WIRE_ALIGN, 0, SDR_WIRE_ALIGN); /* the rest of it is padding */
    memcpy(to, from, bytes);
    return end;
}

static unsigned char *put_values(const struct sdr_wire *wire, const float *value, uint64_t count,
                                 float *residual, uint64_t seed, unsigned char *to, uint64_t *bytes)
{
    *bytes = count * sizeof(float);
    if (!wire->codec)
        return put(to, value, *bytes);
    *bytes = wire->codec->encode(wire->codec_options, value, count, residual, seed, to);
    memset(to + *bytes, 0, sdr_wire_padded(*bytes) - *bytes);
    return to + sdr_wire_padded(*bytes);
}

/* The listed rows that lie in the span. */
static enum sdr_status filter_rows(const struct sdr_wire *wire, const struct sdr_part *part,
                                   const struct sdr_wire_slice *slice,
                                   struct sdr_wire_writer *writer)
{
    uint64_t cols = wire->layout->block[part->block].cols, count = 0;
    if (slice->floats > writer->value_room) {
        sdr_release(writer->value);
        sdr_release(writer->index);
        *writer = (struct sdr_wire_writer){0};
        SDR_TRY(sdr_allocate(&writer->value, slice->floats, sizeof(float), "a message"));
        SDR_TRY(sdr_allocate(&writer->index, slice->floats, sizeof(uint32_t), "a message"));
        writer->value_room = slice->floats;
    }
    for (uint32_t i = 0; i < part->count; i++)
        if (within(part, i, slice)) {
            memcpy(writer->value + count * cols, part->value + i * cols, cols * sizeof(float));
            writer->index[count++] = part->index[i];
        }
    return SDR_OK;
}

static enum sdr_status put_part(const struct sdr_wire *wire, const struct sdr_part *part,
                                const struct sdr_wire_slice *slice, float *residual, uint64_t seed,
                                struct sdr_wire_writer *writer, struct sdr_wire_part *head,
                                unsigned char **to)
{
    const struct sdr_block *block = &wire->layout->block[part->block];
    const uint32_t *index = part->index;
    const float *value = part->value;
    float *own = NULL; /* its part of the residual */
    if (part->form == SDR_ROWS && slice->count < part->count) {
        SDR_TRY(filter_rows(wire, part, slice, writer));
        index = writer->index;
        value = writer->value;
    }
    if (part->form == SDR_DENSE) {
        value += (uint64_t)(slice->first - part->first) * block->cols;
        own = residual ? residual + block->offset + (uint64_t)slice->first * block->cols : NULL;
    }
    if (index) {
        head->index_bytes = (uint32_t)(slice->count * sizeof *index);
        *to = put(*to, index, head->index_bytes);
    }
    *to = put_values(wire, value, slice->floats, own, seed, *to, &head->value_bytes);
    if (slice->stored)
        *to = put_values(wire, part->v, slice->stored, NULL, ~seed, *to, &head->v_bytes);
    return SDR_OK;
}

enum sdr_status sdr_wire_write(const struct sdr_wire *wire, const struct sdr_update *update,
                               struct sdr_span span, const struct sdr_wire_facts *facts,
                               float *residual, uint64_t seed, struct sdr_wire_writer *writer,
                               unsigned char *to, uint64_t *bytes)
{
    struct sdr_wire_head *head = (struct sdr_wire_head *)(void *)to;
    struct sdr_wire_part *part = (struct sdr_wire_part *)(void *)put(
        to + sizeof *head, facts->losses, facts->leaves * sizeof *facts->losses);
    int place[SHARING_MOST], parts = 0;
    for (int p = 0; p < update->parts; p++) {
        uint32_t first, end;
        sdr_rows_within(&wire->layout->block[update->part[p].block], span, &first, &end);
        if (p < SHARING_MOST)
            place[p] = parts;
        parts += first < end;
    }
    *head = (struct sdr_wire_head){.magic = SDR_WIRE_MAGIC,
                                   .version = SDR_WIRE_VERSION,
                                   .sense = (uint16_t)update->sense,
                                   .parts = (uint32_t)parts,
                                   .leaves = facts->leaves,
                                   .rows = facts->rows,
                                   .computing = facts->computing,
                                   .rate = facts->rate};
    unsigned char *at = (unsigned char *)(part + parts);
    for (int p = 0; p < update->parts; p++) {
        const struct sdr_part *from = &update->part[p];
        struct sdr_wire_slice slice = slice_of(wire, from, span);
        if (slice.first == slice.end)
            continue;
        *part = (struct sdr_wire_part){.block = (uint16_t)from->block,
                                       .form = (uint8_t)from->form,
                                       .right = (uint8_t)from->right,
                                       .flags = (uint8_t)((from->distinct ? SDR_WIRE_DISTINCT : 0) |
                                                          (from->index ? SDR_WIRE_INDEXED : 0)),
                                       .count = (uint32_t)slice.count,
                                       .first = from->form == SDR_DENSE ? slice.first : 0,
                                       .leaf = from->leaf,
                                       .leaves = from->leaves};
        int shared = shared_with(wire, update, p, span);
        if (shared >= 0) {
            part->flags |= SDR_WIRE_SHARED;
            part->shared = (uint32_t)place[shared];
        } else {
            SDR_TRY(put_part(wire, from, &slice, residual, seed + (uint64_t)p, writer, part, &at));
        }
        part++;
    }
    *bytes = (uint64_t)(at - to);
    return SDR_OK;
}

void sdr_wire_writer_free(struct sdr_wire_writer *writer)
{
    sdr_release(writer->index);
    sdr_release(writer->value);
    *writer = (struct sdr_wire_writer){0};
}
