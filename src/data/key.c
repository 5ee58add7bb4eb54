/* The name of a cache file: a hash of everything that decides what it holds. Of each source that is
   its size, its time of change and a sample of its content; reading gigabytes to hash them would
   cost what the cache is to save. */
#define _GNU_SOURCE /* O_CLOEXEC */
#include "base/file.h"
#include "base/hash.h"
#include "data/cache.h"
#include "data/read.h"

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

/* Size, time of change, and the first, middle and last megabyte. */
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
    char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(json);
    if (!text)
        return sdr_fail(SDR_RUNTIME, "out of memory: the name of the cache file");
    add_text(hasher, text);
    free(text);
    return SDR_OK;
}

static enum sdr_status add_all(struct sdr_hasher *hasher, const struct sdr_data_options *options,
                               const struct sdr_schema *known, const struct sdr_format *format,
                               const struct sdr_paths *paths, char *buffer)
{
    uint64_t numbers[6] = {SDR_CACHE_VERSION,        options->bits,
                           (uint64_t)options->base,  (uint64_t)options->missing,
                           options->labels_optional, paths->count};
    sdr_hasher_add(hasher, numbers, sizeof numbers);
    add_text(hasher, format->name);
    add_text(hasher, options->format_rest ? options->format_rest : "");
    add_text(hasher, options->label);
    add_text(hasher, options->weight);
    add_text(hasher, options->ignore);
    add_text(hasher, options->categories);
    SDR_TRY(add_schema(hasher, known));
    add_text(hasher, options->labels ? "labels" : NULL);
    if (options->labels && strcmp(options->labels, "-") != 0)
        SDR_TRY(add_file(hasher, options->labels, buffer));
    for (size_t i = 0; i < paths->count; i++)
        SDR_TRY(add_file(hasher, paths->path[i], buffer));
    return SDR_OK;
}

enum sdr_status sdr_read_key(const struct sdr_data_options *options, const struct sdr_schema *known,
                             const struct sdr_format *format, const struct sdr_paths *paths,
                             char key[33])
{
    char *buffer;
    SDR_TRY(sdr_allocate(&buffer, SAMPLE, 1, "the name of the cache file"));
    struct sdr_hasher *hasher = sdr_hasher_create();
    enum sdr_status status =
        hasher ? add_all(hasher, options, known, format, paths, buffer)
               : sdr_fail(SDR_RUNTIME, "out of memory: the name of the cache file");
    if (status == SDR_OK)
        sdr_hasher_text(hasher, key);
    sdr_hasher_destroy(hasher);
    sdr_release(buffer);
    return status;
}
