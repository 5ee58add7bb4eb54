/* Data larger than --memory: each column goes to an unnamed temporary file; at the end a cache file
   is assembled from them block by block, and mapped. */
#define _GNU_SOURCE /* O_TMPFILE, madvise */
#include "base/fault.h"
#include "base/file.h"
#include "data/build.h"
#include "data/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 1 << 16 };

static const char *folder_of(const struct sdr_builder *b)
{
    if (b->options->scratch)
        return b->options->scratch;
    return b->options->cache ? b->options->cache : "/tmp";
}

/* Opens an unnamed file, which disappears with its descriptor. */
static enum sdr_status open_nameless(const char *folder, int *descriptor)
{
    *descriptor = -1;
    if (sdr_fault_strikes(SDR_FAULT_WRITE))
        return sdr_fail_errno("cannot make a temporary file in '%s'", folder);
#ifdef O_TMPFILE
    *descriptor = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (*descriptor >= 0)
        return SDR_OK;
#endif
    char *path;
    SDR_TRY(sdr_path_join(folder, "sounder-XXXXXX", &path));
    *descriptor = mkostemp(path, O_CLOEXEC);
    if (*descriptor >= 0)
        unlink(path);
    sdr_release(path);
    return *descriptor >= 0 ? SDR_OK
                            : sdr_fail_errno("cannot make a temporary file in '%s'", folder);
}

static enum sdr_status put(struct sdr_builder *b, enum spill_column column, const void *bytes,
                           size_t count)
{
    const char *from = bytes;
    if (count && sdr_fault_strikes(SDR_FAULT_WRITE))
        return sdr_fail_errno("cannot write a temporary file in '%s'", folder_of(b));
    while (count) {
        ssize_t n = write(b->spill[column], from, count);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return sdr_fail_errno("cannot write a temporary file in '%s'", folder_of(b));
        from += n;
        count -= (size_t)n;
    }
    return SDR_OK;
}

static enum sdr_status put_region(struct sdr_builder *b, enum spill_column column,
                                  struct sdr_region *region)
{
    SDR_TRY(put(b, column, region->bytes, region->used));
    region->used = 0;
    return SDR_OK;
}

enum sdr_status sdr_spill_flush(struct sdr_builder *b)
{
    SDR_TRY(put_region(b, SPILL_START, &b->staged.start));
    SDR_TRY(put_region(b, SPILL_INDEX, &b->staged.index));
    SDR_TRY(put_region(b, SPILL_VALUE, &b->staged.value));
    SDR_TRY(put_region(b, SPILL_LABEL, &b->staged.label));
    return put_region(b, SPILL_WEIGHT, &b->staged.weight);
}

/* Restores staged indices, counted from 0 and possibly narrow, to those of the file. */
static enum sdr_status put_indices(struct sdr_builder *b)
{
    uint32_t *as_written;
    enum sdr_status status = SDR_OK;
    size_t count = b->staged.index.used / (b->wide ? 4 : 2);
    const uint16_t *index16 = (const uint16_t *)(const void *)b->staged.index.bytes;
    const uint32_t *index32 = (const uint32_t *)(const void *)b->staged.index.bytes;
    SDR_TRY(sdr_allocate(&as_written, BLOCK, sizeof *as_written, "a temporary file"));
    for (size_t first = 0; status == SDR_OK && first < count; first += BLOCK) {
        size_t block = count - first < BLOCK ? count - first : BLOCK;
        for (size_t i = 0; i < block; i++)
            as_written[i] = (b->wide ? index32[first + i] : index16[first + i]) + b->base;
        status = put(b, SPILL_INDEX, as_written, block * sizeof *as_written);
    }
    sdr_release(as_written);
    return status;
}

enum sdr_status sdr_spill_start(struct sdr_builder *b)
{
    if (b->is_dense)
        SDR_TRY(sdr_layout_to_sparse(b));
    for (int i = 0; i < SPILL_COLUMNS; i++)
        SDR_TRY(open_nameless(folder_of(b), &b->spill[i]));
    SDR_TRY(put_indices(b));
    sdr_region_free(&b->staged.index);
    SDR_TRY(sdr_spill_flush(b));
    sdr_region_free(&b->staged.start);
    sdr_region_free(&b->staged.value);
    sdr_region_free(&b->staged.label);
    sdr_region_free(&b->staged.weight);
    b->spilled = b->wide = true;
    return SDR_OK;
}

void sdr_spill_close(struct sdr_builder *b)
{
    for (int i = 0; i < SPILL_COLUMNS; i++)
        if (b->spill[i] >= 0)
            close(b->spill[i]);
}

/* ---- assembling the cache file ---- */

/* The column files, mapped. */
struct spilled {
    const struct sdr_builder *b;
    const void *bytes[SPILL_COLUMNS];
    size_t count[SPILL_COLUMNS];
    struct sdr_cache_writer *writer;
    void *block; /* buffer for BLOCK numbers, or a dense row */
};

static enum sdr_status map_columns(struct spilled *s)
{
    for (int i = 0; i < SPILL_COLUMNS; i++) {
        struct stat facts;
        if (fstat(s->b->spill[i], &facts) != 0 || sdr_fault_strikes(SDR_FAULT_READ))
            return sdr_fail_errno("cannot read a temporary file");
        if (facts.st_size == 0)
            continue;
        void *memory = mmap(NULL, (size_t)facts.st_size, PROT_READ, MAP_SHARED, s->b->spill[i], 0);
        if (memory == MAP_FAILED)
            return sdr_fail_errno("cannot map a temporary file");
        s->bytes[i] = memory;
        s->count[i] = (size_t)facts.st_size;
    }
    return SDR_OK;
}

static void unmap_columns(struct spilled *s)
{
    for (int i = 0; i < SPILL_COLUMNS; i++)
        sdr_file_unmap(s->bytes[i], s->count[i]);
}

/* Releases the pages of a column up to `end`. */
static void release_up_to(const struct spilled *s, enum spill_column column, size_t *from,
                          size_t end)
{
    enum { WORTH = 4 << 20 };
    end &= ~(size_t)4095;
    if (end < *from + WORTH)
        return;
    (void)madvise((char *)(uintptr_t)s->bytes[column] + *from, end - *from, MADV_DONTNEED);
    *from = end;
}

/* Calls `add` for every block of entries and releases its pages. */
static enum sdr_status over_entries(struct spilled *s,
                                    enum sdr_status (*add)(struct spilled *s, const uint32_t *index,
                                                           const float *value, size_t count))
{
    const uint32_t *index = s->bytes[SPILL_INDEX];
    const float *value = s->bytes[SPILL_VALUE];
    uint64_t entries = s->b->nonzeros;
    size_t index_gone = 0, value_gone = 0;
    for (uint64_t first = 0; first < entries; first += BLOCK) {
        size_t count = entries - first < BLOCK ? (size_t)(entries - first) : BLOCK;
        SDR_TRY(add(s, index + first, value + first, count));
        release_up_to(s, SPILL_INDEX, &index_gone, (size_t)(first + count) * sizeof *index);
        release_up_to(s, SPILL_VALUE, &value_gone, (size_t)(first + count) * sizeof *value);
    }
    return SDR_OK;
}

struct sums {
    double *sum;
    uint64_t *missing;
};

static enum sdr_status add_sums(struct spilled *s, const uint32_t *index, const float *value,
                                size_t count)
{
    struct sums *sums = s->block;
    sdr_layout_sum(index, NULL, value, count, s->b->base, sums->sum, sums->missing);
    return SDR_OK;
}

static enum sdr_status find_means(struct spilled *s)
{
    uint32_t features = s->b->schema->features;
    struct sums sums = {0};
    if (s->b->known)
        return sdr_layout_known_means(s->b);
    enum sdr_status status = sdr_allocate(&sums.sum, features, sizeof *sums.sum, "the means");
    if (status == SDR_OK)
        status = sdr_allocate(&sums.missing, features, sizeof *sums.missing, "the means");
    s->block = &sums;
    if (status == SDR_OK)
        status = over_entries(s, add_sums);
    if (status == SDR_OK)
        status = sdr_layout_means(s->b, sums.sum, sums.missing);
    s->block = NULL;
    sdr_release(sums.sum);
    sdr_release(sums.missing);
    return status;
}

static enum sdr_status add_indices(struct spilled *s, const uint32_t *index, const float *value,
                                   size_t count)
{
    uint32_t base = s->b->base;
    (void)value;
    if (s->b->schema->features > NARROW_FEATURES) {
        uint32_t *to = s->block;
        for (size_t i = 0; i < count; i++)
            to[i] = index[i] - base;
        return sdr_cache_add(s->writer, SDR_SECTION_INDEX, to, count * sizeof *to);
    }
    uint16_t *to = s->block;
    for (size_t i = 0; i < count; i++)
        to[i] = (uint16_t)(index[i] - base);
    return sdr_cache_add(s->writer, SDR_SECTION_INDEX, to, count * sizeof *to);
}

static float filled(const struct sdr_builder *b, uint32_t index, float value)
{
    return value == value ? value : b->schema->mean[index - b->base];
}

static enum sdr_status add_values(struct spilled *s, const uint32_t *index, const float *value,
                                  size_t count)
{
    float *to = s->block;
    if (!s->b->met.has_missing)
        return sdr_cache_add(s->writer, SDR_SECTION_VALUE, value, count * sizeof *value);
    for (size_t i = 0; i < count; i++)
        to[i] = filled(s->b, index[i], value[i]);
    return sdr_cache_add(s->writer, SDR_SECTION_VALUE, to, count * sizeof *to);
}

static enum sdr_status add_dense(struct spilled *s)
{
    const struct sdr_builder *b = s->b;
    const uint64_t *start = s->bytes[SPILL_START];
    const uint32_t *index = s->bytes[SPILL_INDEX];
    const float *value = s->bytes[SPILL_VALUE];
    uint64_t stride = sdr_stride(b->schema->features);
    size_t index_gone = 0, value_gone = 0;
    float *row = s->block;
    for (uint64_t r = 0; r < b->rows; r++) {
        memset(row, 0, (size_t)stride * sizeof *row);
        for (uint64_t i = start[r]; i < start[r + 1]; i++)
            row[index[i] - b->base] = filled(b, index[i], value[i]);
        SDR_TRY(sdr_cache_add(s->writer, SDR_SECTION_DENSE, row, (size_t)stride * sizeof *row));
        release_up_to(s, SPILL_INDEX, &index_gone, (size_t)start[r + 1] * sizeof *index);
        release_up_to(s, SPILL_VALUE, &value_gone, (size_t)start[r + 1] * sizeof *value);
    }
    return SDR_OK;
}

static enum sdr_status add_column(struct spilled *s, enum spill_column column,
                                  enum sdr_section section)
{
    enum { STEP = 1 << 20 };
    const char *bytes = s->bytes[column];
    size_t gone = 0;
    for (size_t done = 0; done < s->count[column]; done += STEP) {
        size_t count = s->count[column] - done < STEP ? s->count[column] - done : STEP;
        SDR_TRY(sdr_cache_add(s->writer, section, bytes + done, count));
        release_up_to(s, column, &gone, done + count);
    }
    return SDR_OK;
}

static enum sdr_status add_all(struct spilled *s, bool dense)
{
    const struct sdr_builder *b = s->b;
    if (dense) {
        SDR_TRY(add_dense(s));
    } else {
        SDR_TRY(add_column(s, SPILL_START, SDR_SECTION_START));
        SDR_TRY(sdr_cache_add(s->writer, SDR_SECTION_INDEX, NULL, 0));
        SDR_TRY(over_entries(s, add_indices));
        SDR_TRY(sdr_cache_add(s->writer, SDR_SECTION_VALUE, NULL, 0));
        SDR_TRY(over_entries(s, add_values));
    }
    if (!b->met.lacks_labels)
        SDR_TRY(add_column(s, SPILL_LABEL, SDR_SECTION_LABEL));
    return b->met.has_weights ? add_column(s, SPILL_WEIGHT, SDR_SECTION_WEIGHT) : SDR_OK;
}

static enum sdr_status assemble(struct spilled *s, bool dense, const char *path, const char *key)
{
    const struct sdr_builder *b = s->b;
    uint64_t stride = sdr_stride(b->schema->features);
    struct sdr_cache_header facts = {.rows = b->rows,
                                     .features = b->schema->features,
                                     .nonzeros = b->nonzeros,
                                     .unseen = b->unseen,
                                     .has_labels = !b->met.lacks_labels};
    enum sdr_status status;
    facts.stride = dense ? stride : 0;
    facts.index_bytes = dense ? 0 : facts.features > NARROW_FEATURES ? 4 : 2;
    strncpy(facts.key, key, sizeof facts.key - 1);
    SDR_CHECK(map_columns(s));
    if (b->met.has_missing)
        SDR_CHECK(find_means(s));
    SDR_CHECK(sdr_allocate(&s->block, dense ? (size_t)stride : BLOCK, sizeof(float), "the data"));
    SDR_CHECK(sdr_cache_begin(path, &s->writer));
    SDR_CHECK(add_all(s, dense));
    status = sdr_cache_end(s->writer, &facts, b->schema);
    s->writer = NULL;
cleanup:
    sdr_cache_abandon(s->writer);
    sdr_release(s->block);
    unmap_columns(s);
    return status;
}

/* Maps the file; data keeps its schema and name. */
static enum sdr_status map_result(const struct sdr_builder *b, const char *path, const char *key,
                                  struct sdr_data *data)
{
    struct sdr_data *mapped;
    SDR_TRY(sdr_cache_map_within(path, key, b->options->memory, false, &mapped));
    data->rows = mapped->rows;
    data->map = mapped->map;
    data->map_bytes = mapped->map_bytes;
    mapped->map = NULL;
    sdr_data_destroy(mapped);
    sdr_data_limit(data, b->options->memory);
    return SDR_OK;
}

enum sdr_status sdr_spill_finish(struct sdr_builder *b, bool dense, struct sdr_data *data)
{
    static atomic_uint serial;
    struct spilled s = {.b = b};
    const char *path = b->keep_path, *key = b->keep_key ? b->keep_key : "";
    char *temporary = NULL;
    SDR_TRY(sdr_spill_flush(b));
    if (!path) {
        struct sdr_text text = {0};
        sdr_text_add(&text, "%s/sounder-%ld-%u.sdc", folder_of(b), (long)getpid(),
                     atomic_fetch_add(&serial, 1));
        SDR_TRY(sdr_text_take(&text, &temporary));
        path = temporary;
    }
    enum sdr_status status = assemble(&s, dense, path, key);
    if (status == SDR_OK) {
        sdr_spill_close(b); /* frees disk space before the check */
        for (int i = 0; i < SPILL_COLUMNS; i++)
            b->spill[i] = -1;
        status = map_result(b, path, key, data);
    }
    if (temporary)
        unlink(temporary); /* the mapping keeps the file */
    sdr_release(temporary);
    return status;
}
