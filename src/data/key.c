/* Names and keys of cache files. The name is a hash of the paths of the sources and of the options
   that affect reading. The key, stored inside, also covers the contents: size, modification time
   and a sample of each source, since hashing gigabytes would cost what the cache saves. So a
   changed source finds its old cache file, detects that it is stale, and replaces it. */
#define _GNU_SOURCE /* O_CLOEXEC, realpath */
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "data/read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SAMPLE = 1 << 20 };

static void add_text(struct sdr_hasher *hasher, const char *text)
{
    uint64_t length = text ? strlen(text) : UINT64_MAX;
    sdr_hasher_add(hasher, &length, sizeof length);
    if (text)
        sdr_hasher_add(hasher, text, (size_t)length);
}

static enum sdr_status add_sample(struct sdr_hasher *hasher, int descriptor, uint64_t at,
                                  char *buffer, const char *path)
{
    size_t got;
    if (lseek(descriptor, (off_t)at, SEEK_SET) < 0)
        return sdr_fail_errno("cannot read '%s'", path);
    SDR_TRY(sdr_file_read(descriptor, buffer, SAMPLE, &got, path));
    sdr_hasher_add(hasher, buffer, got);
    return SDR_OK;
}

/* Size, modification time, and the first, middle and last megabyte. */
static enum sdr_status add_file(struct sdr_hasher *hasher, const char *path, char *buffer)
{
    struct sdr_file_facts facts;
    SDR_TRY(sdr_file_facts(path, &facts));
    sdr_hasher_add(hasher, &facts.bytes, sizeof facts.bytes);
    sdr_hasher_add(hasher, &facts.modified_ns, sizeof facts.modified_ns);
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return sdr_fail_errno("cannot open '%s'", path);
    enum sdr_status status = add_sample(hasher, descriptor, 0, buffer, path);
    if (status == SDR_OK && facts.bytes > SAMPLE)
        status = add_sample(hasher, descriptor, facts.bytes / 2, buffer, path);
    if (status == SDR_OK && facts.bytes > SAMPLE)
        status = add_sample(hasher, descriptor, facts.bytes - SAMPLE, buffer, path);
    close(descriptor);
    return status;
}

static enum sdr_status add_schema(struct sdr_hasher *hasher, const struct sdr_schema *known)
{
    json_t *json;
    if (!known) {
        add_text(hasher, NULL);
        return SDR_OK;
    }
    SDR_TRY(sdr_schema_to_json(known, &json));
    char *text;
    enum sdr_status status = sdr_json_dump(json, JSON_COMPACT | JSON_SORT_KEYS, &text);
    json_decref(json);
    if (status == SDR_OK)
        add_text(hasher, text);
    sdr_string_free(text);
    return status;
}

/* The canonical path, so that all paths to a file give the same name. */
static enum sdr_status add_place(struct sdr_hasher *hasher, const char *path)
{
    char *absolute = realpath(path, NULL);
    if (!absolute && errno == ENOMEM)
        return sdr_fail(SDR_RUNTIME, "out of memory: the key of the cache file");
    add_text(hasher, absolute ? absolute : path);
    free(absolute);
    return SDR_OK;
}

static enum sdr_status add_way(struct sdr_hasher *hasher, const struct sdr_data_options *options,
                               const struct sdr_schema *known, const struct sdr_format *format,
                               const struct sdr_paths *paths)
{
    /* Bit 1 is retired: it marked caches whose label was guessed by name. */
    uint64_t numbers[5] = {options->bits, (uint64_t)options->base, (uint64_t)options->missing,
                           options->labels_optional + 4ull * options->labels_named, paths->count};
    sdr_hasher_add(hasher, numbers, sizeof numbers);
    add_text(hasher, format->name);
    add_text(hasher, options->format_rest ? options->format_rest : "");
    add_text(hasher, options->label);
    add_text(hasher, options->weight);
    add_text(hasher, options->ignore);
    add_text(hasher, options->categories);
    add_text(hasher, options->labels ? "labels" : NULL);
    if (options->labels)
        SDR_TRY(add_place(hasher, options->labels));
    for (size_t i = 0; i < paths->count; i++)
        SDR_TRY(add_place(hasher, paths->path[i]));
    return add_schema(hasher, known);
}

static enum sdr_status add_content(struct sdr_hasher *hasher,
                                   const struct sdr_data_options *options,
                                   const struct sdr_paths *paths)
{
    char *buffer;
    enum sdr_status status = SDR_OK;
    SDR_TRY(sdr_allocate(&buffer, SAMPLE, 1, "the key of the cache file"));
    if (options->labels)
        status = add_file(hasher, options->labels, buffer);
    for (size_t i = 0; status == SDR_OK && i < paths->count; i++)
        status = add_file(hasher, paths->path[i], buffer);
    sdr_release(buffer);
    return status;
}

enum sdr_status sdr_read_key(const struct sdr_data_options *options, const struct sdr_schema *known,
                             const struct sdr_format *format, const struct sdr_paths *paths,
                             char name[33], char key[33])
{
    struct sdr_hasher *way = sdr_hasher_create(), *content = sdr_hasher_create();
    enum sdr_status status =
        way && content ? SDR_OK : sdr_fail(SDR_RUNTIME, "out of memory: the key of the cache file");
    if (status == SDR_OK)
        status = add_way(way, options, known, format, paths);
    if (status == SDR_OK) {
        sdr_hasher_text(way, name);
        add_text(content, name);
        status = add_content(content, options, paths);
    }
    if (status == SDR_OK)
        sdr_hasher_text(content, key);
    sdr_hasher_destroy(way);
    sdr_hasher_destroy(content);
    return status;
}
