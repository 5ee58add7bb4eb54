/* Writing cache files; see cache.h for the layout and cache_map.c for reading. */
#include "data/cache.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"

#include <stdlib.h>
#include <string.h>

struct sdr_cache_writer {
    struct sdr_writer *file;
    struct sdr_hasher *hasher;
    int section; /* being written; −1: none */
    struct sdr_cache_header header;
};

void sdr_cache_abandon(struct sdr_cache_writer *w)
{
    if (!w)
        return;
    sdr_writer_abandon(w->file);
    sdr_hasher_destroy(w->hasher);
    sdr_release(w);
}

enum sdr_status sdr_cache_begin(const char *path, struct sdr_cache_writer **writer)
{
    struct sdr_cache_writer *w;
    enum sdr_status status;
    *writer = NULL;
    SDR_TRY(sdr_allocate(&w, 1, sizeof *w, "a cache file"));
    w->section = -1;
    SDR_CHECK(sdr_writer_open(path, &w->file));
    /* A placeholder, patched at the end. */
    SDR_CHECK(sdr_writer_add(w->file, &w->header, sizeof w->header));
    *writer = w;
    return SDR_OK;
cleanup:
    sdr_cache_abandon(w);
    return status;
}

static void close_section(struct sdr_cache_writer *w)
{
    char text[33];
    if (w->section < 0)
        return;
    struct sdr_cache_section *section = &w->header.section[w->section];
    section->bytes = sdr_writer_written(w->file) - section->offset;
    sdr_hasher_text(w->hasher, text);
    memcpy(section->hash, text, sizeof section->hash);
    sdr_hasher_destroy(w->hasher);
    w->hasher = NULL;
    w->section = -1;
}

enum sdr_status sdr_cache_add(struct sdr_cache_writer *w, enum sdr_section section,
                              const void *bytes, size_t count)
{
    static const char zeros[SDR_ALIGN];
    if (w->section != (int)section) {
        close_section(w);
        w->hasher = sdr_hasher_create();
        if (!w->hasher)
            return sdr_fail(SDR_RUNTIME, "out of memory: a cache file");
        w->section = (int)section;
        uint64_t odd = sdr_writer_written(w->file) % SDR_ALIGN;
        SDR_TRY(sdr_writer_add(w->file, zeros, odd ? SDR_ALIGN - (size_t)odd : 0));
        w->header.section[section].offset = sdr_writer_written(w->file);
    }
    sdr_hasher_add(w->hasher, bytes, count);
    return sdr_writer_add(w->file, bytes, count);
}

static enum sdr_status add_schema(struct sdr_cache_writer *w, const struct sdr_schema *schema)
{
    json_t *json;
    SDR_TRY(sdr_schema_to_json(schema, &json));
    char *text;
    enum sdr_status status = sdr_json_dump(json, JSON_COMPACT, &text);
    json_decref(json);
    if (status == SDR_OK)
        status = sdr_cache_add(w, SDR_SECTION_SCHEMA, text, strlen(text));
    sdr_string_free(text);
    return status;
}

static void complete_header(struct sdr_cache_writer *w, const struct sdr_cache_header *facts)
{
    struct sdr_cache_header *header = &w->header;
    struct sdr_cache_section section[SDR_SECTIONS];
    char text[33];
    memcpy(section, header->section, sizeof section);
    *header = *facts;
    memcpy(header->section, section, sizeof section);
    memcpy(header->magic, SDR_CACHE_MAGIC, sizeof header->magic);
    header->version = SDR_CACHE_VERSION;
    sdr_hash_text(header, offsetof(struct sdr_cache_header, hash), text);
    memcpy(header->hash, text, sizeof header->hash);
}

enum sdr_status sdr_cache_end(struct sdr_cache_writer *w, const struct sdr_cache_header *facts,
                              const struct sdr_schema *schema)
{
    enum sdr_status status;
    SDR_CHECK(add_schema(w, schema));
    close_section(w);
    complete_header(w, facts);
    SDR_CHECK(sdr_writer_patch(w->file, 0, &w->header, sizeof w->header));
    status = sdr_writer_commit(w->file);
    w->file = NULL;
cleanup:
    sdr_cache_abandon(w);
    return status;
}

static enum sdr_status add_arrays(struct sdr_cache_writer *w, const struct sdr_data *data,
                                  struct sdr_cache_header *facts)
{
    const struct sdr_rows *rows = &data->rows;
    if (rows->dense) {
        uint64_t stride = facts->stride = ((uint64_t)rows->features + 15) / 16 * 16;
        static const float zeros[16];
        for (uint64_t r = 0; r < rows->count; r++) { /* borrowed rows may have another stride */
            SDR_TRY(sdr_cache_add(w, SDR_SECTION_DENSE, rows->dense + r * rows->stride,
                                  rows->features * sizeof(float)));
            SDR_TRY(sdr_cache_add(w, SDR_SECTION_DENSE, zeros,
                                  (size_t)(stride - rows->features) * sizeof(float)));
        }
    } else {
        const void *index = rows->index16 ? (const void *)rows->index16 : rows->index32;
        size_t entries = (size_t)rows->start[rows->count];
        facts->index_bytes = rows->index16 ? 2 : 4;
        SDR_TRY(sdr_cache_add(w, SDR_SECTION_START, rows->start,
                              (size_t)(rows->count + 1) * sizeof *rows->start));
        SDR_TRY(sdr_cache_add(w, SDR_SECTION_INDEX, index, entries * facts->index_bytes));
        SDR_TRY(sdr_cache_add(w, SDR_SECTION_VALUE, rows->value, entries * sizeof *rows->value));
    }
    if (rows->label)
        SDR_TRY(sdr_cache_add(w, SDR_SECTION_LABEL, rows->label,
                              (size_t)rows->count * sizeof *rows->label));
    if (rows->weight)
        SDR_TRY(sdr_cache_add(w, SDR_SECTION_WEIGHT, rows->weight,
                              (size_t)rows->count * sizeof *rows->weight));
    return SDR_OK;
}

enum sdr_status sdr_cache_write_keyed(const struct sdr_data *data, const char *key,
                                      const char *path)
{
    struct sdr_cache_writer *w;
    struct sdr_cache_header facts = {.rows = data->rows.count,
                                     .features = data->rows.features,
                                     .nonzeros = data->nonzeros,
                                     .unseen = data->unseen,
                                     .has_labels = data->rows.label != NULL};
    strncpy(facts.key, key, sizeof facts.key - 1);
    SDR_TRY(sdr_cache_begin(path, &w));
    enum sdr_status status = add_arrays(w, data, &facts);
    if (status == SDR_OK)
        return sdr_cache_end(w, &facts, &data->schema);
    sdr_cache_abandon(w);
    return status;
}

enum sdr_status sdr_cache_write(const struct sdr_data *data, const char *path)
{
    return sdr_cache_write_keyed(data, "", path);
}
