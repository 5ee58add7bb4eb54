/* Reads and checks updates: see wire.h. */
#include "base/memory.h"
#include "kind/codec.h"
#include "update/wire_format.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum { PARTS_MOST = 65535 };

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

/* The remaining bytes. */
struct bytes {
    const unsigned char *at;
    uint64_t left;
};

static const void *take(struct bytes *from, uint64_t bytes)
{
    const unsigned char *at = from->at;
    if (bytes > from->left) /* a multiple of the alignment: the padding fits too */
        return NULL;
    from->at += sdr_wire_padded(bytes);
    from->left -= sdr_wire_padded(bytes);
    return at;
}

/* The reader's expectations. */
struct expected {
    const struct sdr_wire *wire;
    uint32_t examples;
    struct sdr_span span;
    enum sdr_sense sense; /* as stated in the message */
};

/* Checks the form and the numbers of a part against its block. */
static enum sdr_status check_part(const struct expected *e, const struct sdr_wire_part *head,
                                  struct sdr_wire_slice *slice)
{
    enum { LEAVES_MOST = 1 << 30 }; /* so that the double does not overflow */
    if (head->block >= e->wire->layout->blocks)
        return bad("no such block");
    const struct sdr_block *block = &e->wire->layout->block[head->block];
    bool indexed = head->flags & SDR_WIRE_INDEXED;
    if (head->form > SDR_FACTORS || head->right > SDR_ONES ||
        head->flags > (SDR_WIRE_DISTINCT | SDR_WIRE_INDEXED | SDR_WIRE_SHARED))
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

static enum sdr_status check_index(const struct sdr_block *block, const struct sdr_wire_part *head,
                                   const struct sdr_wire_slice *slice, const uint32_t *index)
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

/* Plain or decoded values. The reader has room for all of them. */
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

static enum sdr_status take_part(const struct expected *e, const struct sdr_wire_part *head,
                                 struct bytes *from, float **decoded,
                                 const struct sdr_part *earlier, uint32_t known,
                                 struct sdr_part *part)
{
    const struct sdr_wire *wire = e->wire;
    struct sdr_wire_slice slice = {0};
    SDR_TRY(check_part(e, head, &slice));
    *part = (struct sdr_part){.block = head->block,
                              .form = (enum sdr_form)head->form,
                              .right = (enum sdr_right)head->right,
                              .distinct = head->flags & SDR_WIRE_DISTINCT,
                              .count = head->count,
                              .first = head->first,
                              .leaf = head->leaf,
                              .leaves = head->leaves};
    if (head->flags & SDR_WIRE_SHARED) {
        if (head->shared >= known || head->form != SDR_FACTORS || head->right == SDR_STORED)
            return bad("factors of a part that is not there");
        const struct sdr_part *other = &earlier[head->shared];
        uint32_t cols = wire->layout->block[head->block].cols;
        if (other->form != SDR_FACTORS || other->count != head->count ||
            !other->index != !(head->flags & SDR_WIRE_INDEXED) ||
            wire->layout->block[other->block].cols != cols)
            return bad("factors of another part");
        part->value = other->value;
        part->index = other->index;
        return SDR_OK;
    }
    if (head->flags & SDR_WIRE_INDEXED) {
        part->index = take(from, head->index_bytes);
        SDR_TRY(check_index(&wire->layout->block[head->block], head, &slice, part->index));
    }
    SDR_TRY(take_values(wire, from, head->value_bytes, slice.floats, decoded, &part->value));
    if (slice.stored)
        SDR_TRY(take_values(wire, from, head->v_bytes, slice.stored, decoded, &part->v));
    return SDR_OK;
}

/* Every block has one part, except dense ones: these may have one per run of leaves. */
static enum sdr_status check_blocks(const struct sdr_wire_part *part, uint32_t parts)
{
    _Static_assert(SDR_BLOCKS_MOST <= 64, "a bit for every block");
    uint64_t listed = 0, dense = 0;
    for (uint32_t p = 0; p < parts && parts > 1; p++) {
        uint64_t bit = UINT64_C(1) << (part[p].block % SDR_BLOCKS_MOST);
        bool is_dense = part[p].form == SDR_DENSE;
        if (listed & bit || (dense & bit && !is_dense))
            return bad("a block that is there twice");
        *(is_dense ? &dense : &listed) |= bit;
    }
    return SDR_OK;
}

/* Upper bound on the values of an update: examples have a value for every row or column of their
   blocks, a few times over. */
static uint64_t values_most(const struct expected *e)
{
    enum { TIMES = 64 };
    const struct sdr_layout *layout = e->wire->layout;
    uint64_t columns = 0;
    for (int b = 0; b < layout->blocks; b++)
        columns += layout->block[b].cols;
    return TIMES * (layout->count + (uint64_t)e->examples * (layout->rows + columns));
}

/* Allocates the parts, and their values if a codec decodes them. */
static enum sdr_status make_room(const struct expected *e, const struct sdr_wire_part *part,
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
    if (!e->wire->codec)
        return SDR_OK;
    for (uint32_t p = 0; p < parts; p++) {
        struct sdr_wire_slice slice = {0};
        SDR_TRY(check_part(e, &part[p], &slice));
        floats += part[p].flags & SDR_WIRE_SHARED ? 0 : slice.floats + slice.stored;
    }
    if (floats <= reader->decoded_room)
        return SDR_OK;
    if (floats > values_most(e))
        return bad("more values than the model has");
    sdr_release(reader->decoded);
    reader->decoded = NULL;
    reader->decoded_room = 0;
    SDR_TRY(sdr_allocate(&reader->decoded, floats, sizeof(float), "a message"));
    reader->decoded_room = floats;
    return SDR_OK;
}

/* Reads the head; NULL: missing, or of another format. Its members are read one by one: the time
   in it is written last, and alone. */
static const struct sdr_wire_head *read_head(struct bytes *from, struct sdr_wire_facts *facts)
{
    const struct sdr_wire_head *head =
        from->left % SDR_WIRE_ALIGN ? NULL : take(from, sizeof *head);
    if (!head || head->magic != SDR_WIRE_MAGIC || head->version != SDR_WIRE_VERSION ||
        !(head->computing >= 0) || !isfinite(head->computing) || !(head->rate >= 0) ||
        !isfinite(head->rate))
        return NULL;
    facts->rows = head->rows;
    facts->leaves = head->leaves;
    facts->computing = head->computing;
    facts->rate = head->rate;
    facts->losses = take(from, head->leaves * (uint64_t)sizeof *facts->losses);
    return facts->losses ? head : NULL;
}

bool sdr_wire_facts_of(const unsigned char *bytes, uint64_t count, struct sdr_wire_facts *facts)
{
    struct bytes from = {bytes, count};
    return read_head(&from, facts);
}

void sdr_wire_set_computing(unsigned char *bytes, float seconds)
{
    memcpy(bytes + offsetof(struct sdr_wire_head, computing), &seconds, sizeof seconds);
}

enum sdr_status sdr_wire_read(const struct sdr_wire *wire, const unsigned char *bytes,
                              uint64_t count, uint32_t examples, struct sdr_span span,
                              struct sdr_wire_reader *reader, struct sdr_wire_facts *facts,
                              struct sdr_update *update)
{
    struct bytes from = {bytes, count};
    const struct sdr_wire_head *head = read_head(&from, facts);
    if (!head)
        return bad("it is cut off, or of another version");
    if (head->sense > SDR_STATISTIC || head->parts > PARTS_MOST || head->rows != examples)
        return bad("it is of another batch");
    const struct sdr_wire_part *part = take(&from, head->parts * (uint64_t)sizeof *part);
    if (!part)
        return bad("it is cut off");
    const struct expected expected = {wire, examples, span, (enum sdr_sense)head->sense};
    SDR_TRY(check_blocks(part, head->parts));
    SDR_TRY(make_room(&expected, part, head->parts, reader));
    float *decoded = reader->decoded;
    for (uint32_t p = 0; p < head->parts; p++)
        SDR_TRY(take_part(&expected, &part[p], &from, &decoded, reader->part, p, &reader->part[p]));
    if (from.left)
        return bad("something is behind it");
    update->sense = (enum sdr_sense)head->sense;
    update->version = 0;
    update->batch = (struct sdr_batch){0};
    update->part = reader->part;
    update->parts = (int)head->parts;
    update->loss = update->weight = 0;
    for (uint32_t l = 0; l < facts->leaves; l++) {
        update->loss += facts->losses[l].loss;
        update->weight += facts->losses[l].weight;
    }
    return SDR_OK;
}
