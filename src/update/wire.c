#include "update/wire.h"
#include "base/memory.h"
#include "kind/codec.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum { MAGIC = 0x55524453 /* "SDRU" */, VERSION = 1, EIGHT = 8, PARTS_MOST = 65535 };

struct head {
    uint32_t magic;
    uint16_t version;
    uint16_t sense;
    uint32_t parts, leaves, rows;
    float computing;
    double rate;
};
_Static_assert(sizeof(struct head) == 32, "the head is read from bytes");

enum {
    DISTINCT = 1,
    INDEXED = 2,
    SHARED = 4
}; /* SHARED: its factors are those of an earlier part */
struct part_head {
    uint16_t block;
    uint8_t form, right, flags, unused[3];
    uint32_t count, first, leaf, leaves;
    uint32_t shared; /* the part whose factors it has */
    uint32_t index_bytes;
    uint64_t value_bytes, v_bytes;
};
_Static_assert(sizeof(struct part_head) == 48, "heads of parts are read from bytes");

static uint64_t padded(uint64_t bytes)
{
    return (bytes + EIGHT - 1) / EIGHT * EIGHT;
}

/* ---- writing ---- */
/* Rows of the part's block that lie in the span, and the entries of the part among them. */
struct slice {
    uint32_t first, end;
    uint64_t count, floats, stored;
};

static bool within(const struct sdr_part *part, uint32_t i, const struct slice *slice)
{
    return part->index[i] >= slice->first && part->index[i] < slice->end;
}

static struct slice slice_of(const struct sdr_wire *wire, const struct sdr_part *part,
                             struct sdr_span span)
{
    const struct sdr_block *block = &wire->layout->block[part->block];
    struct slice slice = {0};
    sdr_rows_within(block, span, &slice.first, &slice.end);
    if (slice.first == slice.end)
        return slice;
    if (part->form == SDR_DENSE) {
        slice.count = slice.floats = (uint64_t)(slice.end - slice.first) * block->cols;
    } else if (part->form == SDR_ROWS) {
        for (uint32_t i = 0; i < part->count; i++)
            slice.count += within(part, i, &slice);
        slice.floats = slice.count * block->cols;
    } else if (part->form == SDR_TOUCHED) { /* it was made for this span */
        slice.count = part->count;
        slice.floats = slice.count * block->cols;
    } else {
        slice.count = part->count;
        slice.floats = slice.count * (part->index ? 1 : block->cols);
        slice.stored = part->right == SDR_STORED ? slice.count * block->rows : 0;
    }
    return slice;
}

static uint64_t value_bound(const struct sdr_wire *wire, uint64_t floats)
{
    return padded(wire->codec ? wire->codec->bound(wire->codec_options, floats)
                              : floats * sizeof(float));
}

uint64_t sdr_wire_bound(const struct sdr_wire *wire, const struct sdr_update *update,
                        struct sdr_span span, uint32_t leaves)
{
    uint64_t bytes = sizeof(struct head) + leaves * sizeof(struct sdr_loss_sum);
    for (int p = 0; p < update->parts; p++) {
        struct slice slice = slice_of(wire, &update->part[p], span);
        bytes += sizeof(struct part_head) + padded(slice.count * sizeof(uint32_t)) +
                 value_bound(wire, slice.floats) + value_bound(wire, slice.stored);
    }
    return bytes;
}

static unsigned char *put(unsigned char *to, const void *from, uint64_t bytes)
{
    if (bytes) /* from may be NULL */
        memcpy(to, from, bytes);
    memset(to + bytes, 0, padded(bytes) - bytes);
    return to + padded(bytes);
}

static unsigned char *put_values(const struct sdr_wire *wire, const float *value, uint64_t count,
                                 float *residual, uint64_t seed, unsigned char *to, uint64_t *bytes)
{
    *bytes = count * sizeof(float);
    if (!wire->codec)
        return put(to, value, *bytes);
    *bytes = wire->codec->encode(wire->codec_options, value, count, residual, seed, to);
    memset(to + *bytes, 0, padded(*bytes) - *bytes);
    return to + padded(*bytes);
}

/* The listed rows that lie in the span. */
static enum sdr_status filter_rows(const struct sdr_wire *wire, const struct sdr_part *part,
                                   const struct slice *slice, struct sdr_wire_writer *writer)
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

static enum sdr_status put_part(const struct sdr_wire *wire, struct sdr_part part,
                                const struct slice *slice, float *residual, uint64_t seed,
                                struct sdr_wire_writer *writer, struct part_head *head,
                                unsigned char **to)
{
    const struct sdr_block *block = &wire->layout->block[part.block];
    uint64_t from = (uint64_t)(slice->first - part.first) * block->cols;
    if (part.form == SDR_ROWS && slice->count < part.count) {
        SDR_TRY(filter_rows(wire, &part, slice, writer));
        part.index = writer->index;
        part.value = writer->value;
    }
    if (part.form == SDR_DENSE)
        part.value += from;
    if (part.index) {
        head->index_bytes = (uint32_t)(slice->count * sizeof(uint32_t));
        *to = put(*to, part.index, head->index_bytes);
    }
    float *own = residual && part.form == SDR_DENSE
                     ? residual + block->offset + (uint64_t)slice->first * block->cols
                     : NULL;
    *to = put_values(wire, part.value, slice->floats, own, seed, *to, &head->value_bytes);
    if (slice->stored)
        *to = put_values(wire, part.v, slice->stored, NULL, ~seed, *to, &head->v_bytes);
    return SDR_OK;
}

/* Parts may have their factors in common, as weight and intercept of a linear model do: they are sent
   once. */
static int shared_with(const struct sdr_update *update, int p, const int *place)
{
    const struct sdr_part *part = &update->part[p];
    for (int q = 0; q < p; q++)
        if (place[q] >= 0 && part->form == SDR_FACTORS && part->right != SDR_STORED &&
            update->part[q].form == SDR_FACTORS && update->part[q].value == part->value &&
            update->part[q].index == part->index)
            return place[q];
    return -1;
}

enum sdr_status sdr_wire_write(const struct sdr_wire *wire, const struct sdr_update *update,
                               struct sdr_span span, const struct sdr_wire_facts *facts,
                               float *residual, uint64_t seed, struct sdr_wire_writer *writer,
                               unsigned char *to, uint64_t *bytes)
{
    struct head head = {MAGIC,         VERSION,     (uint16_t)update->sense, 0,
                        facts->leaves, facts->rows, facts->computing,        facts->rate};
    int place[SDR_BLOCKS_MOST * 2];
    struct part_head *part = (struct part_head *)(void *)put(to + sizeof head, facts->losses,
                                                             facts->leaves * sizeof *facts->losses);
    for (int p = 0; p < update->parts; p++) {
        uint32_t first, end;
        sdr_rows_within(&wire->layout->block[update->part[p].block], span, &first, &end);
        if (p < SDR_BLOCKS_MOST * 2)
            place[p] = first < end ? (int)head.parts : -1;
        head.parts += first < end;
    }
    unsigned char *at = (unsigned char *)(part + head.parts);
    for (int p = 0; p < update->parts; p++) {
        const struct sdr_part *from = &update->part[p];
        struct slice slice = slice_of(wire, from, span);
        if (slice.first == slice.end)
            continue;
        *part = (struct part_head){
            .block = (uint16_t)from->block,
            .form = (uint8_t)from->form,
            .right = (uint8_t)from->right,
            .flags = (uint8_t)((from->distinct ? DISTINCT : 0) | (from->index ? INDEXED : 0)),
            .count = (uint32_t)slice.count,
            .first = from->form == SDR_DENSE ? slice.first : 0,
            .leaf = from->leaf,
            .leaves = from->leaves};
        int shared = p < SDR_BLOCKS_MOST * 2 ? shared_with(update, p, place) : -1;
        if (shared >= 0) {
            part->flags |= SHARED;
            part->shared = (uint32_t)shared;
        } else {
            SDR_TRY(put_part(wire, *from, &slice, residual, seed + (uint64_t)p, writer, part, &at));
        }
        part++;
    }
    memcpy(to, &head, sizeof head);
    *bytes = (uint64_t)(at - to);
    return SDR_OK;
}

void sdr_wire_writer_free(struct sdr_wire_writer *writer)
{
    sdr_release(writer->index);
    sdr_release(writer->value);
    *writer = (struct sdr_wire_writer){0};
}

/* ---- reading ---- */
void sdr_wire_reader_free(struct sdr_wire_reader *reader)
{
    sdr_release(reader->part);
    sdr_release(reader->decoded);
    *reader = (struct sdr_wire_reader){0};
}

static enum sdr_status bad(const char *what)
{
    return sdr_fail(SDR_BAD_FILE, "a message cannot be read: %s", what);
}

/* What is left of the bytes. */
struct bytes {
    const unsigned char *at;
    uint64_t left;
};

static const void *take(struct bytes *from, uint64_t bytes)
{
    const unsigned char *at = from->at;
    if (bytes > from->left || padded(bytes) > from->left)
        return NULL;
    from->at += padded(bytes);
    from->left -= padded(bytes);
    return at;
}

/* What a reader expects. */
struct expected {
    const struct sdr_wire *wire;
    uint32_t examples;
    struct sdr_span span;
    enum sdr_sense sense; /* that the message says of itself */
};

/* Whether a part of this form may stand for its block, by the numbers alone. */
static enum sdr_status check_part(const struct expected *e, const struct part_head *head,
                                  struct slice *slice)
{
    enum { LEAVES_MOST = 1 << 30 }; /* so that twice as many can be counted */
    if (head->block >= e->wire->layout->blocks)
        return bad("no such block");
    const struct sdr_block *block = &e->wire->layout->block[head->block];
    bool indexed = head->flags & INDEXED;
    if (head->form > SDR_FACTORS || head->right > SDR_ONES ||
        head->flags > (DISTINCT | INDEXED | SHARED))
        return bad("an unknown form");
    if (e->sense == SDR_STEP ? head->form != SDR_DENSE && head->form != SDR_TOUCHED
                             : head->form == SDR_TOUCHED)
        return bad("a form that goes with another kind of update");
    sdr_rows_within(block, e->span, &slice->first, &slice->end);
    if (slice->first == slice->end || (block->fixed && e->sense != SDR_STEP))
        return bad("values of another place");
    if (head->form == SDR_DENSE) {
        slice->floats = (uint64_t)(slice->end - slice->first) * block->cols;
        if (indexed || head->first != slice->first || head->count != slice->floats)
            return bad("values of another place");
    } else if (head->first) {
        return bad("values of another place");
    } else if (head->form == SDR_ROWS || head->form == SDR_TOUCHED) {
        if (indexed != (head->form == SDR_ROWS) || !block->cols)
            return bad("rows without an index");
        slice->floats = (uint64_t)head->count * block->cols;
    } else {
        if (head->right == SDR_EXAMPLES && (!block->per_feature || head->count != e->examples))
            return bad("other examples than the batch has");
        if (head->right == SDR_ONES && block->rows != 1)
            return bad("a sum for a block of several rows");
        if (indexed && head->right == SDR_STORED)
            return bad("an unknown form");
        slice->floats = (uint64_t)head->count * (indexed ? 1 : block->cols);
        slice->stored = head->right == SDR_STORED ? (uint64_t)head->count * block->rows : 0;
    }
    if (head->leaves & (head->leaves - 1) || head->leaves > LEAVES_MOST ||
        (head->leaves && head->leaf % head->leaves))
        return bad("leaves that are none");
    return SDR_OK;
}

static enum sdr_status check_index(const struct sdr_block *block, const struct part_head *head,
                                   const struct slice *slice, const uint32_t *index)
{
    uint32_t first = head->form == SDR_ROWS ? slice->first : 0;
    uint32_t end = head->form == SDR_ROWS ? slice->end : block->cols;
    if (head->index_bytes != head->count * (uint64_t)sizeof(uint32_t) || !index)
        return bad("an index of another length");
    for (uint32_t i = 0; i < head->count; i++)
        if (index[i] < first || index[i] >= end)
            return bad("an index beyond its block");
    return SDR_OK;
}

/* Values as they are, or decoded. The reader has room for all of them. */
static enum sdr_status take_values(const struct sdr_wire *wire, struct bytes *from, uint64_t bytes,
                                   uint64_t floats, float **decoded, const float **value)
{
    const unsigned char *at = take(from, bytes);
    if (!at)
        return bad("it is cut off");
    *value = (const float *)(const void *)at;
    if (!wire->codec)
        return bytes == floats * sizeof(float) ? SDR_OK : bad("values of another length");
    *value = *decoded;
    *decoded += floats;
    return wire->codec->decode(wire->codec_options, at, bytes, *decoded - floats, floats);
}

static enum sdr_status take_part(const struct expected *e, const struct part_head *head,
                                 struct bytes *from, float **decoded,
                                 const struct sdr_part *earlier, uint32_t known,
                                 struct sdr_part *part)
{
    const struct sdr_wire *wire = e->wire;
    struct slice slice = {0};
    SDR_TRY(check_part(e, head, &slice));
    *part = (struct sdr_part){.block = head->block,
                              .form = (enum sdr_form)head->form,
                              .right = (enum sdr_right)head->right,
                              .distinct = head->flags & DISTINCT,
                              .count = head->count,
                              .first = head->first,
                              .leaf = head->leaf,
                              .leaves = head->leaves};
    if (head->flags & SHARED) {
        if (head->shared >= known || head->form != SDR_FACTORS || head->right == SDR_STORED)
            return bad("factors of a part that is not there");
        const struct sdr_part *other = &earlier[head->shared];
        uint32_t cols = wire->layout->block[head->block].cols;
        if (other->form != SDR_FACTORS || other->count != head->count ||
            !other->index != !(head->flags & INDEXED) ||
            wire->layout->block[other->block].cols != cols)
            return bad("factors of another part");
        part->value = other->value;
        part->index = other->index;
        return SDR_OK;
    }
    if (head->flags & INDEXED) {
        part->index = take(from, head->index_bytes);
        SDR_TRY(check_index(&wire->layout->block[head->block], head, &slice, part->index));
    }
    SDR_TRY(take_values(wire, from, head->value_bytes, slice.floats, decoded, &part->value));
    if (slice.stored)
        SDR_TRY(take_values(wire, from, head->v_bytes, slice.stored, decoded, &part->v));
    return SDR_OK;
}

/* Every block has one part, except dense ones: of these there may be one for every run of leaves. */
static enum sdr_status check_blocks(const struct part_head *part, uint32_t parts)
{
    _Static_assert(SDR_BLOCKS_MOST <= 64, "a bit for every block");
    uint64_t listed = 0, dense = 0;
    for (uint32_t p = 0; p < parts; p++) {
        uint64_t bit = UINT64_C(1) << (part[p].block % SDR_BLOCKS_MOST);
        bool is_dense = part[p].form == SDR_DENSE;
        if (listed & bit || (dense & bit && !is_dense))
            return bad("a block that is there twice");
        *(is_dense ? &dense : &listed) |= bit;
    }
    return SDR_OK;
}

/* More values than any update has: examples have a value for every row or column of their blocks, a few
   times over. */
static uint64_t values_most(const struct expected *e)
{
    enum { TIMES = 64 };
    const struct sdr_layout *layout = e->wire->layout;
    uint64_t columns = 0;
    for (int b = 0; b < layout->blocks; b++)
        columns += layout->block[b].cols;
    return TIMES * (layout->count + (uint64_t)e->examples * (layout->rows + columns));
}

/* Room for the parts, and for their values where a codec has to decode them. */
static enum sdr_status make_room(const struct expected *e, const struct part_head *part,
                                 uint32_t parts, struct sdr_wire_reader *reader)
{
    uint64_t floats = 0;
    if ((int)parts > reader->room) {
        sdr_release(reader->part);
        reader->part = NULL;
        reader->room = 0;
        SDR_TRY(sdr_allocate(&reader->part, parts, sizeof *reader->part, "a message"));
        reader->room = (int)parts;
    }
    for (uint32_t p = 0; p < parts && e->wire->codec; p++) {
        struct slice slice = {0};
        SDR_TRY(check_part(e, &part[p], &slice));
        floats += part[p].flags & SHARED ? 0 : slice.floats + slice.stored;
    }
    if (floats > values_most(e))
        return bad("more values than the model has");
    if (floats <= reader->decoded_room)
        return SDR_OK;
    sdr_release(reader->decoded);
    reader->decoded = NULL;
    reader->decoded_room = 0;
    SDR_TRY(sdr_allocate(&reader->decoded, floats, sizeof(float), "a message"));
    reader->decoded_room = floats;
    return SDR_OK;
}

static bool read_head(struct bytes *from, struct head *head, struct sdr_wire_facts *facts)
{
    const void *at = take(from, sizeof *head);
    if (!at)
        return false;
    memcpy(head, at, sizeof *head);
    if (head->magic != MAGIC || head->version != VERSION || !(head->computing >= 0) ||
        !isfinite(head->computing) || !(head->rate >= 0) || !isfinite(head->rate))
        return false;
    *facts = (struct sdr_wire_facts){.rows = head->rows,
                                     .leaves = head->leaves,
                                     .computing = head->computing,
                                     .rate = head->rate};
    facts->losses = take(from, head->leaves * (uint64_t)sizeof *facts->losses);
    return facts->losses;
}

bool sdr_wire_facts_of(const unsigned char *bytes, uint64_t count, struct sdr_wire_facts *facts)
{
    struct bytes from = {bytes, count};
    struct head head;
    return read_head(&from, &head, facts);
}

void sdr_wire_set_computing(unsigned char *bytes, float seconds)
{
    memcpy(bytes + offsetof(struct head, computing), &seconds, sizeof seconds);
}

enum sdr_status sdr_wire_read(const struct sdr_wire *wire, const unsigned char *bytes,
                              uint64_t count, uint32_t examples, struct sdr_span span,
                              struct sdr_wire_reader *reader, struct sdr_wire_facts *facts,
                              struct sdr_update *update)
{
    struct bytes from = {bytes, count};
    struct head head;
    if (!read_head(&from, &head, facts))
        return bad("it is cut off, or of another version");
    if (head.sense > SDR_STATISTIC || head.parts > PARTS_MOST || head.rows != examples)
        return bad("it is of another batch");
    const struct part_head *part = take(&from, head.parts * (uint64_t)sizeof *part);
    if (!part)
        return bad("it is cut off");
    const struct expected expected = {wire, examples, span, (enum sdr_sense)head.sense};
    SDR_TRY(check_blocks(part, head.parts));
    SDR_TRY(make_room(&expected, part, head.parts, reader));
    float *decoded = reader->decoded;
    for (uint32_t p = 0; p < head.parts; p++)
        SDR_TRY(take_part(&expected, &part[p], &from, &decoded, reader->part, p, &reader->part[p]));
    if (from.left)
        return bad("something is behind it");
    *update = (struct sdr_update){
        .sense = (enum sdr_sense)head.sense, .part = reader->part, .parts = (int)head.parts};
    for (uint32_t l = 0; l < facts->leaves; l++) {
        update->loss += facts->losses[l].loss;
        update->weight += facts->losses[l].weight;
    }
    return SDR_OK;
}
