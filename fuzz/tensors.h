/* For fuzz targets of safetensors files. A checksum stops nearly every change at the door, so a
   target may also give the parts of a file, which are put together with the right lengths, offsets
   and checksum:

       {"__metadata__": …, "name": {"dtype", "shape"}, …}\n   then bytes for the arrays, repeated as needed */
#ifndef SDR_FUZZ_TENSORS_H
#define SDR_FUZZ_TENSORS_H

#include "fuzz.h" /* first: it asks for memfd_create */

#include "base/hash.h"
#include "base/tensors.h"

enum { FUZZ_DATA_MOST = 1 << 18 }; /* bytes of one array */

/* Bytes of an array of the header, or −1 if it is not described as one. */
static inline int64_t fuzz_tensor_bytes(const json_t *entry, uint64_t shape[2])
{
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    const json_t *sizes = json_object_get(entry, "shape");
    int64_t bytes = !dtype                      ? 0
                    : strcmp(dtype, "F32") == 0 ? 4
                    : strcmp(dtype, "F64") == 0 ? 8
                    : strcmp(dtype, "U8") == 0  ? 1
                                                : 0;
    shape[0] = shape[1] = 0;
    if (!bytes || json_array_size(sizes) < 1 || json_array_size(sizes) > 2)
        return -1;
    for (size_t i = 0; i < json_array_size(sizes); i++) {
        json_int_t size = json_integer_value(json_array_get(sizes, i));
        if (size < 0 || size > FUZZ_DATA_MOST)
            return -1;
        shape[i] = (uint64_t)size;
        bytes = bytes > FUZZ_DATA_MOST ? bytes : bytes * size;
    }
    return bytes > FUZZ_DATA_MOST ? -1 : bytes;
}

/* Sets the checksum that base/tensors.c would: over the texts, then every array's name, shape,
   bytes. */
static inline void fuzz_sign(json_t *root, const uint8_t *data)
{
    json_t *metadata = json_object_get(root, "__metadata__"), *value;
    const char *key;
    char text[33];
    struct sdr_hasher *hasher = sdr_hasher_create();
    FUZZ_CHECK(hasher != NULL);
    json_object_foreach(metadata, key, value)
    {
        if (strcmp(key, "checksum") == 0 || !json_is_string(value))
            continue;
        sdr_hasher_add(hasher, key, strlen(key) + 1);
        sdr_hasher_add(hasher, json_string_value(value), json_string_length(value) + 1);
    }
    json_object_foreach(root, key, value)
    {
        uint64_t shape[2];
        int64_t bytes = fuzz_tensor_bytes(value, shape);
        if (strcmp(key, "__metadata__") == 0 || bytes < 0)
            continue;
        sdr_hasher_add(hasher, key, strlen(key) + 1);
        sdr_hasher_add(hasher, shape, sizeof shape);
        sdr_hasher_add(hasher, data, (size_t)bytes);
        data += bytes;
    }
    sdr_hasher_text(hasher, text);
    sdr_hasher_destroy(hasher);
    if (json_is_object(metadata))
        json_object_set_new(metadata, "checksum", json_string(text));
}

/* The file that the parts make; free it. The input as it stands if it is not given in parts. `key`
   of the metadata, if not NULL, is set to `text`. */
static inline uint8_t *fuzz_tensors(const uint8_t *bytes, size_t count, const char *key,
                                    const char *text, size_t *made)
{
    const uint8_t *line = count && bytes[0] == '{' ? memchr(bytes, '\n', count) : NULL;
    json_t *root = line ? json_loadb((const char *)bytes, (size_t)(line - bytes), 0, NULL) : NULL;
    uint8_t *file = malloc(count + 1), *data;
    FUZZ_CHECK(file != NULL);
    memcpy(file, bytes, count);
    *made = count;
    if (!json_is_object(root)) {
        json_decref(root);
        return file;
    }
    if (key && json_is_object(json_object_get(root, "__metadata__")))
        json_object_set_new(json_object_get(root, "__metadata__"), key, json_string(text));
    int64_t total = 0;
    const char *name;
    json_t *entry;
    json_object_foreach(root, name, entry)
    {
        uint64_t shape[2];
        int64_t size = fuzz_tensor_bytes(entry, shape);
        if (strcmp(name, "__metadata__") == 0 || size < 0)
            continue;
        json_object_set_new(entry, "data_offsets",
                            json_pack("[I,I]", (json_int_t)total, (json_int_t)(total + size)));
        total += size;
    }
    const uint8_t *given = line + 1;
    size_t length = (size_t)(bytes + count - given);
    data = calloc((size_t)total + 1, 1);
    FUZZ_CHECK(data != NULL);
    for (int64_t i = 0; i < total && length; i++)
        data[i] = given[(size_t)i % length];
    fuzz_sign(root, data);
    char *header = json_dumps(root, JSON_COMPACT);
    json_decref(root);
    if (header) {
        size_t size = strlen(header);
        free(file);
        *made = 8 + size + (size_t)total;
        file = malloc(*made);
        FUZZ_CHECK(file != NULL);
        for (int i = 0; i < 8; i++)
            file[i] = (uint8_t)(size >> (8 * i));
        memcpy(file + 8, header, size);
        memcpy(file + 8 + size, data, (size_t)total);
    }
    free(header);
    free(data);
    return file;
}

/* A file in memory with these bytes; its name in path. Close the descriptor. */
static inline int fuzz_file(const void *bytes, size_t count, char path[64])
{
    int file = memfd_create("fuzz", 0);
    FUZZ_CHECK(file >= 0 && write(file, bytes, count) == (ssize_t)count);
    snprintf(path, 64, "/proc/self/fd/%d", file);
    return file;
}

#endif
