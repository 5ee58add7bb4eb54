/* Stores the entries of a piece: in bulk if none needs a lookup or is dropped, else one by one. */
#include "data/build.h"

#include <string.h>

static uint64_t *room_for_rows(struct sdr_builder *b, uint64_t rows, enum sdr_status *status)
{
    *status = sdr_region_reserve(&b->staged.start, (size_t)rows * sizeof(uint64_t));
    return (uint64_t *)(void *)(b->staged.start.bytes + b->staged.start.used);
}

enum sdr_status sdr_entries_copy(struct sdr_builder *b, const struct sdr_piece *piece)
{
    enum sdr_status status;
    size_t width = b->wide ? sizeof(uint32_t) : sizeof(uint16_t), count = (size_t)piece->entries;
    uint32_t shift = sdr_builder_shift(b);
    uint64_t before = b->nonzeros, *end = room_for_rows(b, piece->rows, &status);
    SDR_TRY(status);
    SDR_TRY(sdr_region_reserve(&b->staged.index, count * width + SDR_ALIGN));
    SDR_TRY(sdr_region_append(&b->staged.value, piece->value, count * sizeof(float)));
    void *to = b->staged.index.bytes + b->staged.index.used;
    const uint32_t *restrict from = piece->index;
    if (b->wide) {
        uint32_t *restrict index = to;
        for (size_t i = 0; i < count; i++)
            index[i] = from[i] - shift;
    } else {
        uint16_t *restrict index = to;
        for (size_t i = 0; i < count; i++)
            index[i] = (uint16_t)(from[i] - shift);
    }
    for (uint64_t r = 0; r < piece->rows; r++)
        end[r] = before + piece->end[r];
    b->staged.index.used += count * width;
    b->staged.start.used += (size_t)piece->rows * sizeof(uint64_t);
    b->nonzeros += count;
    return SDR_OK;
}

/* Maps the piece's categories to features; UINT32_MAX if the known schema lacks one. */
static enum sdr_status map_categories(struct sdr_builder *b, const struct sdr_piece *piece)
{
    const struct sdr_dictionary *theirs = &piece->category;
    struct sdr_dictionary ours = b->known ? b->known->category : b->schema->category;
    SDR_TRY(sdr_builder_map(b, theirs->count));
    for (uint32_t i = 0; i < theirs->count; i++) {
        enum sdr_status status =
            sdr_dictionary_find(&ours, theirs->text[i], theirs->length[i], !b->known, &b->map[i]);
        if (!b->known)
            b->schema->category = ours; /* also on failure: the schema owns the memory */
        SDR_TRY(status);
        if (b->map[i] != UINT32_MAX) {
            if (b->map[i] >= SDR_CATEGORY_BIT - 1 - b->numbers)
                return sdr_fail(SDR_BAD_DATA, "too many different categories");
            b->map[i] += b->numbers;
        }
    }
    return SDR_OK;
}

static void swap_entries(uint32_t *index, float *value, uint64_t a, uint64_t b)
{
    uint32_t feature = index[a];
    float x = value[a];
    index[a] = index[b];
    value[a] = value[b];
    index[b] = feature;
    value[b] = x;
}

static void sift_down(uint32_t *index, float *value, uint64_t root, uint64_t count)
{
    for (uint64_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && index[child + 1] > index[child])
            child++;
        if (index[root] >= index[child])
            return;
        swap_entries(index, value, root, child);
    }
}

/* In place and O(n log n): a hostile row may be as long as the file. */
static void heap_sort(uint32_t *index, float *value, uint64_t count)
{
    for (uint64_t i = count / 2; i-- > 0;)
        sift_down(index, value, i, count);
    for (uint64_t i = count; i-- > 1;) {
        swap_entries(index, value, 0, i);
        sift_down(index, value, 0, i);
    }
}

/* Sorts a row by feature and sums duplicates. */
static uint64_t sort_row(uint32_t *index, float *value, uint64_t count)
{
    enum { SHORT_ROW = 64 };
    if (count > SHORT_ROW)
        heap_sort(index, value, count);
    for (uint64_t i = 1; i < count; i++) {
        uint32_t feature = index[i];
        float x = value[i];
        uint64_t j = i;
        for (; j > 0 && index[j - 1] > feature; j--) {
            index[j] = index[j - 1];
            value[j] = value[j - 1];
        }
        index[j] = feature;
        value[j] = x;
    }
    uint64_t kept = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (kept && index[kept - 1] == index[i]) {
            value[kept - 1] += value[i];
        } else {
            index[kept] = index[i];
            value[kept++] = value[i];
        }
    }
    return kept;
}

/* Resolves one row in place; returns the number of remaining entries. */
static uint64_t resolve_row(struct sdr_builder *b, uint32_t *index, float *value, uint64_t count,
                            bool categories)
{
    uint64_t kept = 0;
    for (uint64_t i = 0; i < count; i++) {
        bool category = categories && (index[i] & SDR_CATEGORY_BIT);
        uint32_t feature = category ? b->map[index[i] & ~SDR_CATEGORY_BIT] : index[i] - b->base;
        if (value[i] == 0.0f)
            continue;
        if (feature == UINT32_MAX || (!category && feature >= b->limit)) {
            b->unseen++;
            continue;
        }
        index[kept] = feature;
        value[kept++] = value[i];
    }
    return categories ? sort_row(index, value, kept) : kept;
}

/* Plain features must lie below the first category. */
static enum sdr_status check_indices(const struct sdr_builder *b, const struct sdr_piece *piece)
{
    for (uint64_t i = 0; i < piece->entries; i++) {
        uint32_t index = piece->index[i];
        bool category = index & SDR_CATEGORY_BIT;
        if (category ? (index & ~SDR_CATEGORY_BIT) >= piece->category.count
                     : !b->known && index >= b->numbers)
            return sdr_fail(SDR_BAD_DATA, "an index is out of range");
    }
    return SDR_OK;
}

static void narrow(struct sdr_builder *b, const uint32_t *index, uint64_t count)
{
    uint32_t back = b->spilled ? b->base : 0; /* files hold indices as written */
    if (b->wide) {
        uint32_t *to = (uint32_t *)(void *)(b->staged.index.bytes + b->staged.index.used);
        for (uint64_t i = 0; i < count; i++)
            to[i] = index[i] + back;
    } else {
        uint16_t *to = (uint16_t *)(void *)(b->staged.index.bytes + b->staged.index.used);
        for (uint64_t i = 0; i < count; i++)
            to[i] = (uint16_t)index[i];
    }
    b->staged.index.used += count * (b->wide ? sizeof(uint32_t) : sizeof(uint16_t));
}

enum sdr_status sdr_entries_append(struct sdr_builder *b, const struct sdr_piece *piece)
{
    enum sdr_status status;
    bool categories = piece->category.count > 0;
    if (categories) {
        SDR_TRY(check_indices(b, piece));
        SDR_TRY(map_categories(b, piece));
        uint64_t features = (uint64_t)b->numbers + b->schema->category.count;
        if (!b->known && !b->wide && features > NARROW_FEATURES)
            SDR_TRY(sdr_layout_widen(b));
    }
    uint64_t entry = 0, *end = room_for_rows(b, piece->rows, &status);
    SDR_TRY(status);
    SDR_TRY(sdr_region_reserve(&b->staged.index,
                               (size_t)piece->entries * sizeof(uint32_t) + SDR_ALIGN));
    SDR_TRY(
        sdr_region_reserve(&b->staged.value, (size_t)piece->entries * sizeof(float) + SDR_ALIGN));
    for (uint64_t r = 0; r < piece->rows; r++) {
        uint64_t count = piece->end[r] - entry;
        uint32_t *index = piece->index + entry;
        float *value = piece->value + entry;
        uint64_t kept = resolve_row(b, index, value, count, categories);
        narrow(b, index, kept);
        memcpy(b->staged.value.bytes + b->staged.value.used, value, kept * sizeof(float));
        b->staged.value.used += kept * sizeof(float);
        b->nonzeros += kept;
        end[r] = b->nonzeros;
        entry = piece->end[r];
    }
    b->staged.start.used += (size_t)piece->rows * sizeof(uint64_t);
    return SDR_OK;
}
