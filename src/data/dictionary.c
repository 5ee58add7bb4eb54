/* Distinct texts numbered by first appearance: a hash table of numbers, over texts stored in large
   blocks. A category column may have millions of short texts. */
#include "base/hash.h"
#include "data/data.h"

#include <string.h>

enum { BLOCK_BYTES = 1 << 14, FIRST_SLOTS = 64, MOST_TEXTS = 0x7FFFFFFF };

static uint32_t home(const struct sdr_dictionary *d, const char *text, size_t length)
{
    return (uint32_t)sdr_hash64(text, length, 0) & (d->slots - 1);
}

/* The slot of the text, or the free slot where it belongs. */
static uint32_t seek(const struct sdr_dictionary *d, const char *text, size_t length)
{
    uint32_t at = home(d, text, length);
    for (; d->slot[at]; at = (at + 1) & (d->slots - 1)) {
        uint32_t number = d->slot[at] - 1;
        if (d->length[number] == length && memcmp(d->text[number], text, length) == 0)
            break;
    }
    return at;
}

static enum sdr_status grow_slots(struct sdr_dictionary *d)
{
    uint32_t *slot, slots = d->slots ? 2 * d->slots : FIRST_SLOTS;
    SDR_TRY(sdr_allocate(&slot, slots, sizeof *slot, "a dictionary"));
    sdr_release(d->slot);
    d->slot = slot;
    d->slots = slots;
    for (uint32_t i = 0; i < d->count; i++) {
        uint32_t at = home(d, d->text[i], d->length[i]);
        while (slot[at])
            at = (at + 1) & (slots - 1);
        slot[at] = i + 1;
    }
    return SDR_OK;
}

static enum sdr_status grow_texts(struct sdr_dictionary *d)
{
    char **text;
    uint32_t *length, room = d->room ? 2 * d->room : 16;
    SDR_TRY(sdr_allocate(&text, room, sizeof *text, "a dictionary"));
    enum sdr_status status = sdr_allocate(&length, room, sizeof *length, "a dictionary");
    if (status != SDR_OK) {
        sdr_release(text);
        return status;
    }
    if (d->count) {
        memcpy(text, d->text, d->count * sizeof *text);
        memcpy(length, d->length, d->count * sizeof *length);
    }
    sdr_release(d->text);
    sdr_release(d->length);
    d->text = text;
    d->length = length;
    d->room = room;
    return SDR_OK;
}

static enum sdr_status store(struct sdr_dictionary *d, const char *text, size_t length, char **copy)
{
    if (!d->block || length + 1 > d->block_room - d->block_used) {
        char *block;
        size_t room = sizeof(char *) + length + 1;
        room = room < BLOCK_BYTES ? BLOCK_BYTES : room;
        SDR_TRY(sdr_allocate(&block, room, 1, "a dictionary"));
        memcpy(block, &d->block, sizeof(char *));
        d->block = block;
        d->block_used = sizeof(char *);
        d->block_room = room;
    }
    *copy = d->block + d->block_used;
    if (length)
        memcpy(*copy, text, length);
    (*copy)[length] = 0;
    d->block_used += length + 1;
    return SDR_OK;
}

uint32_t sdr_dictionary_number(const struct sdr_dictionary *d, const char *text, size_t length)
{
    uint32_t found = d->slots ? d->slot[seek(d, text, length)] : 0;
    return found ? found - 1 : UINT32_MAX;
}

enum sdr_status sdr_dictionary_find(struct sdr_dictionary *d, const char *text, size_t length,
                                    bool add, uint32_t *number)
{
    *number = sdr_dictionary_number(d, text, length);
    if (*number != UINT32_MAX || !add)
        return SDR_OK;
    if (d->count >= MOST_TEXTS || length >= UINT32_MAX)
        return sdr_fail(SDR_RUNTIME, "too many distinct texts");
    if (2 * (uint64_t)(d->count + 1) > d->slots)
        SDR_TRY(grow_slots(d));
    if (d->count == d->room)
        SDR_TRY(grow_texts(d));
    SDR_TRY(store(d, text, length, &d->text[d->count]));
    d->length[d->count] = (uint32_t)length;
    d->slot[seek(d, text, length)] = d->count + 1;
    *number = d->count++;
    return SDR_OK;
}

static void free_blocks(char *block)
{
    while (block) {
        char *before;
        memcpy(&before, block, sizeof before);
        sdr_release(block);
        block = before;
    }
}

void sdr_dictionary_clear(struct sdr_dictionary *d)
{
    if (d->count == 0)
        return;
    char *before;
    memcpy(&before, d->block, sizeof before);
    free_blocks(before);
    before = NULL;
    memcpy(d->block, &before, sizeof before);
    d->block_used = sizeof before;
    memset(d->slot, 0, d->slots * sizeof *d->slot);
    d->count = 0;
}

void sdr_dictionary_free(struct sdr_dictionary *d)
{
    free_blocks(d->block);
    sdr_release(d->text);
    sdr_release(d->length);
    sdr_release(d->slot);
    *d = (struct sdr_dictionary){0};
}
