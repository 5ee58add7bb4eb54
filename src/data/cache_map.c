/* Reads cache files. Nothing in the file is trusted: hashes detect damage, and every offset, size
   and array is checked as well. Even a malicious file gives either SDR_BAD_FILE or rows that
   kernels can read without checks. Rows read on demand are checked without hashes. */
#define _GNU_SOURCE /* madvise */
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/stop.h"
#include "data/cache.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { STEP = 1 << 20, MOST_FEATURES = 0x7FFFFFFF };

struct mapping {
    const char *path;
    const unsigned char *bytes;
    size_t count;
    struct sdr_cache_header header; /* a copy: the file may change meanwhile */
    bool drop;                      /* release pages after checking them */
};

static enum sdr_status damaged(const struct mapping *m, const char *what)
{
    return sdr_fail(SDR_BAD_FILE, "%s: the cache file is damaged (%s)", m->path, what);
}

static enum sdr_status check_header(struct mapping *m, const char *key)
{
    struct sdr_cache_header *h = &m->header;
    char text[33];
    if (m->count < sizeof *h || memcmp(m->bytes, SDR_CACHE_MAGIC, sizeof h->magic) != 0)
        return sdr_fail(SDR_BAD_FILE, "%s: this is no cache file, or it is cut off", m->path);
    memcpy(h, m->bytes, sizeof *h);
    if (h->version != SDR_CACHE_VERSION)
        return sdr_fail(SDR_BAD_FILE, "%s: cache version %u, this program has %d", m->path,
                        h->version, SDR_CACHE_VERSION);
    sdr_hash_text(h, offsetof(struct sdr_cache_header, hash), text);
    if (memcmp(text, h->hash, sizeof h->hash) != 0)
        return damaged(m, "header");
    if (h->key[SDR_CACHE_KEY - 1] != 0)
        return damaged(m, "key");
    if (key && strcmp(key, h->key) != 0)
        return sdr_fail(SDR_BAD_FILE, "%s: the cache file is stale: its source has changed",
                        m->path);
    return SDR_OK;
}

/* The section's array if it has count × size bytes; count 0: the section must be absent, *array is
   NULL. */
static enum sdr_status find(const struct mapping *m, enum sdr_section section, const char *name,
                            bool present, uint64_t count, uint64_t size, const void **array)
{
    const struct sdr_cache_section *s = &m->header.section[section];
    uint64_t bytes;
    *array = NULL;
    if (!present)
        return s->offset || s->bytes ? damaged(m, name) : SDR_OK;
    if (__builtin_mul_overflow(count, size, &bytes) || s->bytes != bytes ||
        s->offset < sizeof m->header || s->offset % SDR_ALIGN || s->offset > m->count ||
        s->bytes > m->count - s->offset)
        return damaged(m, name);
    *array = m->bytes + s->offset;
    return SDR_OK;
}

static enum sdr_status find_arrays(const struct mapping *m, struct sdr_data *data)
{
    const struct sdr_cache_header *h = &m->header;
    struct sdr_rows *rows = &data->rows;
    bool dense = h->stride != 0;
    const void *array[SDR_SECTIONS];
    bool weighted = h->section[SDR_SECTION_WEIGHT].offset != 0;
    if (h->rows == 0 || h->rows > (uint64_t)1 << 48 || h->features > MOST_FEATURES ||
        h->has_labels > 1 || h->nonzeros > (uint64_t)1 << 56)
        return damaged(m, "counts");
    if (dense ? h->stride != (h->features + 15) / 16 * 16 || h->index_bytes != 0
              : h->index_bytes != 4 && (h->index_bytes != 2 || h->features > 65536))
        return damaged(m, "layout");
    SDR_TRY(find(m, SDR_SECTION_START, "start", !dense, h->rows + 1, 8, &array[0]));
    SDR_TRY(find(m, SDR_SECTION_INDEX, "index", !dense, h->nonzeros, h->index_bytes, &array[1]));
    SDR_TRY(find(m, SDR_SECTION_VALUE, "value", !dense, h->nonzeros, 4, &array[2]));
    SDR_TRY(find(m, SDR_SECTION_DENSE, "dense rows", dense, h->rows, h->stride * 4, &array[3]));
    SDR_TRY(find(m, SDR_SECTION_LABEL, "labels", h->has_labels, h->rows, 4, &array[4]));
    SDR_TRY(find(m, SDR_SECTION_WEIGHT, "weights", weighted, h->rows, 4, &array[5]));
    rows->count = h->rows;
    rows->features = (uint32_t)h->features;
    rows->stride = h->stride;
    rows->start = array[0];
    rows->index16 = h->index_bytes == 2 ? array[1] : NULL;
    rows->index32 = h->index_bytes == 4 ? array[1] : NULL;
    rows->value = array[2];
    rows->dense = array[3];
    rows->label = array[4];
    rows->weight = array[5];
    data->nonzeros = h->nonzeros;
    data->unseen = h->unseen;
    data->has_labels = h->has_labels;
    return SDR_OK;
}

/* ---- the arrays ---- */

/* Checks that values are finite, and weights not negative. NaN and infinity have an exponent of all
   ones. */
static bool floats_valid(const void *bytes, size_t count, bool weights)
{
    const uint32_t *bits = bytes;
    uint32_t bad = 0, limit = 0x7F800000u;
    if (weights)
        for (size_t i = 0; i < count; i++)
            bad |= bits[i] >= limit && bits[i] != 0x80000000u; /* a sign bit exceeds limit */
    else
        for (size_t i = 0; i < count; i++)
            bad |= (bits[i] & 0x7FFFFFFF) >= limit;
    return !bad;
}

/* Counts descents (index[i] ≤ index[i − 1]) and finds the largest index. */
static void scan_indices16(const uint16_t *index, size_t count, uint32_t *largest, uint64_t *falls)
{
    uint32_t most = *largest, fell = 0;
    for (size_t i = 0; i < count; i++)
        most = index[i] > most ? index[i] : most;
    for (size_t i = 1; i < count; i++)
        fell += index[i] <= index[i - 1];
    *largest = most;
    *falls += fell;
}

static void scan_indices32(const uint32_t *index, size_t count, uint32_t *largest, uint64_t *falls)
{
    uint32_t most = *largest, fell = 0;
    for (size_t i = 0; i < count; i++)
        most = index[i] > most ? index[i] : most;
    for (size_t i = 1; i < count; i++)
        fell += index[i] <= index[i - 1];
    *largest = most;
    *falls += fell;
}

struct index_check {
    uint32_t largest;
    uint64_t falls;
};

/* Checks one step of a section, besides its hash. */
static bool step_valid(const struct mapping *m, enum sdr_section section, const unsigned char *at,
                       size_t bytes, bool first, struct index_check *check)
{
    uint32_t width = m->header.index_bytes;
    switch (section) {
    case SDR_SECTION_INDEX: {
        /* Overlap by one index, to count descents between steps. */
        size_t back = first ? 0 : width;
        if (width == 2)
            scan_indices16((const uint16_t *)(const void *)(at - back), (bytes + back) / 2,
                           &check->largest, &check->falls);
        else
            scan_indices32((const uint32_t *)(const void *)(at - back), (bytes + back) / 4,
                           &check->largest, &check->falls);
        return true;
    }
    case SDR_SECTION_VALUE:
    case SDR_SECTION_DENSE:
    case SDR_SECTION_LABEL:
    case SDR_SECTION_WEIGHT: return floats_valid(at, bytes / 4, section == SDR_SECTION_WEIGHT);
    case SDR_SECTION_START:
    case SDR_SECTION_SCHEMA:
    case SDR_SECTIONS: break;
    }
    return true;
}

static void drop(const struct mapping *m, const unsigned char *at, size_t bytes)
{
    uintptr_t first = (uintptr_t)at & ~(uintptr_t)4095, end = (uintptr_t)(at + bytes);
    if (m->drop)
        (void)madvise((void *)first, end - first, MADV_DONTNEED); /* read-only: safe */
}

/* Hashes a section and checks its values in the same pass over the CPU's cache. */
static enum sdr_status check_section(const struct mapping *m, enum sdr_section section,
                                     const char *name, struct index_check *check)
{
    const struct sdr_cache_section *s = &m->header.section[section];
    char text[33];
    bool fine = true;
    if (s->offset == 0)
        return SDR_OK;
    struct sdr_hasher *hasher = sdr_hasher_create();
    if (!hasher)
        return sdr_fail(SDR_RUNTIME, "out of memory: a cache file");
    enum sdr_status status = SDR_OK;
    for (uint64_t done = 0; done < s->bytes && status == SDR_OK; done += STEP) {
        const unsigned char *at = m->bytes + s->offset + done;
        size_t bytes = s->bytes - done < STEP ? (size_t)(s->bytes - done) : STEP;
        sdr_hasher_add(hasher, at, bytes);
        fine &= step_valid(m, section, at, bytes, done == 0, check);
        drop(m, at, bytes);
        status = sdr_check_stop("reading");
    }
    sdr_hasher_text(hasher, text);
    sdr_hasher_destroy(hasher);
    SDR_TRY(status);
    if (memcmp(text, s->hash, sizeof s->hash) != 0 || !fine)
        return damaged(m, name);
    return SDR_OK;
}

/* Offsets must rise from 0 to the number of entries, and indices within each row. Descents are
   allowed only at row starts: if the total number of descents equals the number at row starts,
   there is none inside a row. */
static enum sdr_status check_rows(const struct mapping *m, const struct sdr_data *data,
                                  const struct index_check *check)
{
    const struct sdr_rows *rows = &data->rows;
    const void *index = rows->index16 ? (const void *)rows->index16 : (const void *)rows->index32;
    uint64_t allowed = 0, entries = data->nonzeros, before = 0, dropped = 0, dropped_at = 0;
    if (rows->start[0] != 0 || rows->start[rows->count] != entries)
        return damaged(m, "start");
    for (uint64_t r = 1; r <= rows->count; r++) {
        uint64_t at = rows->start[r];
        if (at < before || at > entries)
            return damaged(m, "start");
        if (at > before && at < entries)
            allowed += rows->index16 ? rows->index16[at] <= rows->index16[at - 1]
                                     : rows->index32[at] <= rows->index32[at - 1];
        before = at;
        if (r - dropped >= STEP / 8 || at - dropped_at >= STEP) {
            drop(m, (const unsigned char *)(rows->start + dropped), (size_t)(r - dropped) * 8);
            drop(m, (const unsigned char *)index + dropped_at * m->header.index_bytes,
                 (size_t)(at - dropped_at) * m->header.index_bytes);
            dropped = r;
            dropped_at = at;
        }
    }
    if (check->falls != allowed || (entries && check->largest >= rows->features))
        return damaged(m, "index");
    return SDR_OK;
}

/* Padding must be zero: kernels read whole vectors. */
static bool padding_valid(const struct sdr_rows *rows, uint64_t r)
{
    const float *row = rows->dense + r * rows->stride;
    for (uint64_t i = rows->features; i < rows->stride; i++)
        if (row[i] != 0.0f)
            return false;
    return true;
}

static enum sdr_status check_dense(const struct mapping *m, const struct sdr_data *data)
{
    const struct sdr_rows *rows = &data->rows;
    for (uint64_t r = 0; r < rows->count; r++) {
        const float *row = rows->dense + r * rows->stride;
        if (!padding_valid(rows, r))
            return damaged(m, "dense rows");
        if (r % 4096 == 4095)
            drop(m, (const unsigned char *)(row - 4095 * rows->stride),
                 (size_t)(4096 * rows->stride * sizeof *row));
    }
    return SDR_OK;
}

static enum sdr_status check_text_labels(const struct mapping *m, const struct sdr_data *data)
{
    float most = (float)data->schema.labels.count;
    for (uint64_t r = 0; r < data->rows.count; r++) {
        float label = data->rows.label[r];
        if (!(label >= -1 && label < most && label == floorf(label)))
            return damaged(m, "labels");
    }
    return SDR_OK;
}

static enum sdr_status read_schema(const struct mapping *m, struct sdr_data *data)
{
    const struct sdr_cache_section *s = &m->header.section[SDR_SECTION_SCHEMA];
    const void *text;
    json_t *json;
    SDR_TRY(find(m, SDR_SECTION_SCHEMA, "schema", true, s->bytes, 1, &text));
    SDR_TRY(check_section(m, SDR_SECTION_SCHEMA, "schema", NULL));
    enum sdr_status status = sdr_json_parse(text, (size_t)s->bytes, &json);
    if (status == SDR_BAD_FILE)
        return damaged(m, "schema");
    if (status == SDR_OK)
        status = sdr_schema_from_json(json, &data->schema);
    json_decref(json);
    if (status != SDR_OK)
        return sdr_fail_in(status, "%s: ", m->path);
    return data->schema.features == data->rows.features ? SDR_OK : damaged(m, "schema");
}

/* Checks the entries of the rows: most of the file. */
static enum sdr_status check_entries(const struct mapping *m, const struct sdr_data *data)
{
    struct index_check indices = {0};
    SDR_TRY(check_section(m, SDR_SECTION_INDEX, "index", &indices));
    SDR_TRY(check_section(m, SDR_SECTION_VALUE, "value", NULL));
    SDR_TRY(check_section(m, SDR_SECTION_DENSE, "dense rows", NULL));
    return data->rows.dense ? check_dense(m, data) : check_rows(m, data, &indices);
}

/* ---- rows read on demand ---- */

/* Disables readahead: rows are accessed at random. */
static void disable_readahead(const struct mapping *m)
{
    static const enum sdr_section small[] = {SDR_SECTION_START, SDR_SECTION_LABEL,
                                             SDR_SECTION_WEIGHT};
    (void)madvise((void *)(uintptr_t)m->bytes, m->count, MADV_RANDOM);
    for (size_t i = 0; i < sizeof small / sizeof *small; i++) {
        const struct sdr_cache_section *s = &m->header.section[small[i]];
        uintptr_t first = (uintptr_t)(m->bytes + s->offset) & ~(uintptr_t)4095;
        uintptr_t end = (uintptr_t)(m->bytes + s->offset + s->bytes);
        if (s->bytes)
            (void)madvise((void *)first, end - first, MADV_WILLNEED);
    }
}

/* Checks only the offsets: every row lies inside the sections. */
static enum sdr_status check_offsets(const struct mapping *m, const struct sdr_data *data)
{
    const struct sdr_rows *rows = &data->rows;
    if (rows->dense)
        return SDR_OK;
    if (rows->start[0] != 0 || rows->start[rows->count] != data->nonzeros)
        return damaged(m, "start");
    for (uint64_t r = 0; r < rows->count; r++)
        if (rows->start[r] > rows->start[r + 1])
            return damaged(m, "start");
    return SDR_OK;
}

/* A damaged --cache file is removed; the next run writes a new one. */
static enum sdr_status damaged_row(const struct sdr_data *data, uint32_t row)
{
    const char *cache = data->cache_path;
    bool gone = cache && unlink(cache) == 0;
    return sdr_fail(SDR_BAD_FILE, "%s: the cache file is damaged (row %u)%s",
                    cache ? cache : data->name, row + 1,
                    gone ? ": it was removed, the next run makes it anew" : "");
}

static bool row_fine(const struct sdr_rows *rows, uint64_t r)
{
    if (rows->dense)
        return floats_valid(rows->dense + r * rows->stride, rows->features, false) &&
               padding_valid(rows, r);
    uint64_t from = rows->start[r], count = rows->start[r + 1] - from, falls = 0;
    uint32_t largest = 0;
    if (rows->index16)
        scan_indices16(rows->index16 + from, count, &largest, &falls);
    else
        scan_indices32(rows->index32 + from, count, &largest, &falls);
    return !falls && (!count || largest < rows->features) &&
           floats_valid(rows->value + from, count, false);
}

enum sdr_status sdr_data_sections(const struct sdr_data *data, char text[97])
{
    static const enum sdr_section section[] = {SDR_SECTION_INDEX, SDR_SECTION_VALUE,
                                               SDR_SECTION_DENSE};
    const struct sdr_rows *rows = &data->rows;
    const void *index = rows->index16 ? (const void *)rows->index16 : (const void *)rows->index32;
    const void *array[] = {index, rows->value, rows->dense};
    uint64_t bytes[] = {data->nonzeros * (rows->index16 ? 2 : 4), data->nonzeros * sizeof(float),
                        rows->count * rows->stride * sizeof(float)};
    memset(text, '-', 96);
    for (int i = 0; i < 3; i++) {
        char hash[33];
        if (rows->dense ? i != 2 : i == 2)
            continue;
        if (data->map) { /* the message says so */
            struct sdr_cache_header header;
            memcpy(&header, data->map, sizeof header);
            memcpy(text + 32 * i, header.section[section[i]].hash, 32);
            continue;
        }
        sdr_hash_text(array[i], bytes[i], hash);
        memcpy(text + 32 * i, hash, 32);
    }
    text[96] = 0;
    return SDR_OK;
}

enum sdr_status sdr_data_demand(const struct sdr_data *data, const uint32_t *row, uint32_t count)
{
    for (uint32_t i = 0; i < count && data->checked; i++) {
        atomic_uchar *of = &data->checked[row[i] / 8];
        unsigned char bit = (unsigned char)(1u << row[i] % 8);
        if (atomic_load_explicit(of, memory_order_relaxed) & bit)
            continue;
        if (!row_fine(&data->rows, row[i]))
            return damaged_row(data, row[i]);
        atomic_fetch_or_explicit(of, bit, memory_order_relaxed);
    }
    return SDR_OK;
}

static enum sdr_status check(const struct mapping *m, bool on_demand, struct sdr_data *data)
{
    SDR_TRY(find_arrays(m, data));
    if (on_demand)
        disable_readahead(m);
    SDR_TRY(read_schema(m, data));
    SDR_TRY(check_section(m, SDR_SECTION_START, "start", NULL));
    SDR_TRY(check_section(m, SDR_SECTION_LABEL, "labels", NULL));
    SDR_TRY(check_section(m, SDR_SECTION_WEIGHT, "weights", NULL));
    SDR_TRY(on_demand ? check_offsets(m, data) : check_entries(m, data));
    if (on_demand)
        SDR_TRY(sdr_allocate(&data->checked, data->rows.count / 8 + 1, sizeof *data->checked,
                             "rows that were read"));
    if (data->schema.text_labels && data->rows.label)
        SDR_TRY(check_text_labels(m, data));
    return SDR_OK;
}

enum sdr_status sdr_cache_map_within(const char *path, const char *key, uint64_t memory,
                                     bool on_demand, struct sdr_data **data)
{
    struct mapping m = {.path = path};
    struct sdr_data *d;
    enum sdr_status status;
    const void *bytes;
    *data = NULL;
    SDR_TRY(sdr_allocate(&d, 1, sizeof *d, "the data"));
    SDR_CHECK(sdr_file_map(path, &bytes, &m.count));
    d->map = m.bytes = bytes;
    d->map_bytes = m.count;
    m.drop = m.count > (memory ? memory : (uint64_t)4 << 30);
    SDR_CHECK(check_header(&m, key));
    SDR_CHECK(check(&m, on_demand, d));
    SDR_CHECK(sdr_copy_string(&d->name, path));
    sdr_data_limit(d, memory);
    SDR_CHECK(sdr_data_sign(d));
    *data = d;
    return SDR_OK;
cleanup:
    sdr_data_destroy(d);
    return status;
}

enum sdr_status sdr_cache_map(const char *path, const char *key, struct sdr_data **data)
{
    return sdr_cache_map_within(path, key, 0, false, data);
}
