#include "base/tensors.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    uint64_t bytes;
} dtypes[] = {{"F32", 4}, {"F64", 8}, {"U8", 1}, {"I32", 4}};

uint64_t sdr_tensor_count(const struct sdr_tensor *tensor)
{
    return tensor->shape[0] * (tensor->shape[1] ? tensor->shape[1] : 1);
}

static uint64_t bytes_of(const struct sdr_tensor *tensor)
{
    return sdr_tensor_count(tensor) * dtypes[tensor->dtype].bytes;
}

/* The checksum covers the metadata and all array bytes, to detect damaged files. */
static void add_metadata(struct sdr_hasher *hasher, const json_t *metadata)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)metadata, key, value)
    {
        if (strcmp(key, "checksum") == 0)
            continue;
        sdr_hasher_add(hasher, key, strlen(key) + 1);
        sdr_hasher_add(hasher, json_string_value(value), json_string_length(value) + 1);
    }
}

static void add_name(struct sdr_hasher *hasher, const struct sdr_tensor *tensor)
{
    sdr_hasher_add(hasher, tensor->name, strlen(tensor->name) + 1);
    sdr_hasher_add(hasher, tensor->shape, sizeof tensor->shape);
}

static enum sdr_status checksum(const json_t *metadata, const struct sdr_tensor *tensor, int count,
                                char text[33])
{
    struct sdr_hasher *hasher = sdr_hasher_create();
    if (!hasher)
        return sdr_fail(SDR_RUNTIME, "out of memory: a checksum");
    add_metadata(hasher, metadata);
    for (int i = 0; i < count; i++) {
        add_name(hasher, &tensor[i]);
        sdr_hasher_add(hasher, tensor[i].data, bytes_of(&tensor[i]));
    }
    sdr_hasher_text(hasher, text);
    sdr_hasher_destroy(hasher);
    return SDR_OK;
}

static json_t *describe(const struct sdr_tensor *tensor, uint64_t offset)
{
    json_t *shape = tensor->shape[1] ? json_pack("[I, I]", (json_int_t)tensor->shape[0],
                                                 (json_int_t)tensor->shape[1])
                                     : json_pack("[I]", (json_int_t)tensor->shape[0]);
    return json_pack("{s:s, s:o, s:[I,I]}", "dtype", dtypes[tensor->dtype].name, "shape", shape,
                     "data_offsets", (json_int_t)offset, (json_int_t)(offset + bytes_of(tensor)));
}

/* The same length whatever the checksum is. */
static enum sdr_status make_header(const json_t *metadata, const struct sdr_tensor *tensor,
                                   int count, const char *sum, char **header)
{
    uint64_t offset = 0;
    json_t *root = json_object(), *own = json_deep_copy(metadata);
    bool good = root && own && json_object_set_new(own, "checksum", json_string(sum)) == 0;
    good = good && json_object_set(root, "__metadata__", own) == 0;
    json_decref(own);
    for (int i = 0; i < count && good; i++) {
        good = json_object_set_new(root, tensor[i].name, describe(&tensor[i], offset)) == 0;
        offset += bytes_of(&tensor[i]);
    }
    char *text = NULL;
    enum sdr_status status = good ? sdr_json_dump(root, JSON_COMPACT, &text)
                                  : sdr_fail(SDR_RUNTIME, "out of memory: a file header");
    json_decref(root);
    SDR_TRY(status);
    size_t length = strlen(text), padded = (length + 63) / 64 * 64 + 56; /* data aligned to 64 */
    status = sdr_allocate(header, padded + 1, 1, "a file header");
    if (status == SDR_OK) {
        memset(*header, ' ', padded);
        memcpy(*header, text, length);
    }
    sdr_string_free(text);
    return status;
}

/* An array goes to the file and into the checksum: as it lies in memory, or piece by piece. */
static enum sdr_status write_array(struct sdr_writer *writer, struct sdr_hasher *hasher,
                                   const struct sdr_tensor *tensor)
{
    enum { PIECE = 1 << 20 };
    uint64_t size = dtypes[tensor->dtype].bytes, count = sdr_tensor_count(tensor);
    unsigned char *piece;
    add_name(hasher, tensor);
    if (!tensor->read) {
        sdr_hasher_add(hasher, tensor->data, bytes_of(tensor));
        return sdr_writer_add(writer, tensor->data, bytes_of(tensor));
    }
    SDR_TRY(sdr_allocate(&piece, PIECE, size, "a piece of an array"));
    enum sdr_status status = SDR_OK;
    for (uint64_t at = 0; at < count && status == SDR_OK; at += PIECE) {
        uint64_t some = count - at < PIECE ? count - at : PIECE;
        status = tensor->read(tensor->context, at, some, piece);
        if (status == SDR_OK) {
            sdr_hasher_add(hasher, piece, some * size);
            status = sdr_writer_add(writer, piece, some * size);
        }
    }
    sdr_release(piece);
    return status;
}

enum sdr_status sdr_tensors_write(const char *path, const json_t *metadata,
                                  const struct sdr_tensor *tensor, int count)
{
    struct sdr_writer *writer = NULL;
    struct sdr_hasher *hasher = sdr_hasher_create();
    char *header = NULL, sum[33] = "00000000000000000000000000000000";
    enum sdr_status status;
    if (!hasher)
        return sdr_fail(SDR_RUNTIME, "out of memory: a checksum");
    SDR_CHECK(make_header(metadata, tensor, count, sum, &header));
    SDR_CHECK(sdr_writer_open(path, &writer));
    uint64_t length = strlen(header);
    unsigned char prefix[8];
    for (int i = 0; i < 8; i++)
        prefix[i] = (unsigned char)(length >> (8 * i));
    SDR_CHECK(sdr_writer_add(writer, prefix, sizeof prefix));
    SDR_CHECK(sdr_writer_add(writer, header, length));
    add_metadata(hasher, metadata);
    for (int i = 0; i < count; i++)
        SDR_CHECK(write_array(writer, hasher, &tensor[i]));
    sdr_hasher_text(hasher, sum);
    sdr_release(header);
    header = NULL;
    SDR_CHECK(make_header(metadata, tensor, count, sum, &header));
    SDR_CHECK(sdr_writer_patch(writer, sizeof prefix, header, length));
    status = sdr_writer_commit(writer);
    writer = NULL;
cleanup:
    sdr_writer_abandon(writer);
    sdr_hasher_destroy(hasher);
    sdr_release(header);
    return status;
}

/* ---- reading ---- */
static enum sdr_status bad(const char *path, const char *why)
{
    return sdr_fail(SDR_BAD_FILE, "%s: not a readable model or checkpoint: %s", path, why);
}

/* The header's length, from the first eight bytes. */
static uint64_t header_length(const char *bytes)
{
    uint64_t length = 0;
    for (int i = 0; i < 8; i++)
        length |= (uint64_t)(unsigned char)bytes[i] << (8 * i);
    return length;
}

bool sdr_tensors_begin(const char *head, size_t count)
{
    return count > 8 && head[8] == '{' && header_length(head) >= 2 &&
           header_length(head) < (uint64_t)1 << 40;
}

static bool read_shape(const json_t *shape, struct sdr_tensor *tensor)
{
    size_t dimensions = json_array_size(shape);
    if (dimensions < 1 || dimensions > 2)
        return false;
    for (size_t i = 0; i < dimensions; i++) {
        const json_t *size = json_array_get(shape, i);
        json_int_t value = json_integer_value(size);
        if (!json_is_integer(size) || value < (i ? 1 : 0) || value > (json_int_t)1 << 40)
            return false;
        tensor->shape[i] = (uint64_t)value;
    }
    return true;
}

static bool read_dtype(const json_t *dtype, struct sdr_tensor *tensor)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (json_is_string(dtype) && strcmp(json_string_value(dtype), dtypes[i].name) == 0) {
            tensor->dtype = (enum sdr_dtype)i;
            return true;
        }
    return false;
}

/* Arrays must be contiguous and in listed order, so that the checksum covers every byte. */
static enum sdr_status read_tensor(const char *path, const char *name, const json_t *entry,
                                   const char *data, uint64_t data_bytes, uint64_t *offset,
                                   struct sdr_tensor *tensor)
{
    const json_t *offsets = json_object_get(entry, "data_offsets");
    if (strlen(name) >= sizeof tensor->name || !json_is_object(entry) ||
        !read_dtype(json_object_get(entry, "dtype"), tensor) ||
        !read_shape(json_object_get(entry, "shape"), tensor) || json_array_size(offsets) != 2)
        return bad(path, "an array is described wrongly");
    snprintf(tensor->name, sizeof tensor->name, "%s", name);
    uint64_t count, bytes;
    if (__builtin_mul_overflow(tensor->shape[0], tensor->shape[1] ? tensor->shape[1] : 1, &count) ||
        __builtin_mul_overflow(count, dtypes[tensor->dtype].bytes, &bytes))
        return bad(path, "an array is too large");
    if (json_integer_value(json_array_get(offsets, 0)) != (json_int_t)*offset ||
        bytes > data_bytes - *offset ||
        json_integer_value(json_array_get(offsets, 1)) != (json_int_t)(*offset + bytes))
        return bad(path, "it is cut off or its arrays overlap");
    tensor->data = data + *offset;
    *offset += bytes;
    return SDR_OK;
}

static enum sdr_status read_all(const char *path, json_t *root, const char *data,
                                uint64_t data_bytes, struct sdr_tensors *file)
{
    const char *name;
    json_t *entry, *value;
    uint64_t offset = 0;
    file->metadata = json_incref(json_object_get(root, "__metadata__"));
    if (!json_is_object(file->metadata))
        return bad(path, "it has no metadata");
    json_object_foreach(file->metadata, name, value) if (!json_is_string(value)) return bad(
        path, "its metadata is not text");
    SDR_TRY(sdr_allocate(&file->tensor, json_object_size(root), sizeof *file->tensor, path));
    json_object_foreach(root, name, entry)
    {
        if (strcmp(name, "__metadata__") == 0)
            continue;
        SDR_TRY(
            read_tensor(path, name, entry, data, data_bytes, &offset, &file->tensor[file->count]));
        file->count++;
    }
    if (offset != data_bytes)
        return bad(path, "it has bytes that belong to nothing");
    char sum[33];
    const char *stored = sdr_tensors_text(file, "checksum");
    SDR_TRY(checksum(file->metadata, file->tensor, file->count, sum));
    if (!stored || strcmp(stored, sum) != 0)
        return bad(path, "its checksum does not match: it is damaged or was changed");
    return SDR_OK;
}

/* The bytes are the file's already. */
static enum sdr_status parse(const char *path, size_t count, struct sdr_tensors *file)
{
    const char *bytes = file->bytes;
    uint64_t header = count >= 8 ? header_length(bytes) : 0;
    enum sdr_status status = SDR_OK;
    json_t *root = NULL;
    if (count < 8 || header < 2 || header > count - 8)
        status = bad(path, "it is cut off or of another kind");
    if (status == SDR_OK) {
        status = sdr_json_parse(bytes + 8, (size_t)header, &root);
        if (status == SDR_OK && json_is_object(root))
            status = read_all(path, root, bytes + 8 + header, count - 8 - header, file);
        else if (status != SDR_RUNTIME)
            status = bad(path, "its header is not JSON");
    }
    json_decref(root);
    if (status != SDR_OK)
        sdr_tensors_free(file);
    return status;
}

enum sdr_status sdr_tensors_parse(const char *path, char *bytes, size_t count,
                                  struct sdr_tensors *file)
{
    *file = (struct sdr_tensors){.bytes = bytes};
    return parse(path, count, file);
}

enum sdr_status sdr_tensors_map(const char *path, struct sdr_tensors *file)
{
    const void *bytes;
    *file = (struct sdr_tensors){0};
    SDR_TRY(sdr_file_map(path, &bytes, &file->mapped));
    file->bytes = (char *)(uintptr_t)bytes;
    return parse(path, file->mapped, file);
}

enum sdr_status sdr_tensors_read(const char *path, struct sdr_tensors *file)
{
    char *bytes;
    size_t count = 0;
    *file = (struct sdr_tensors){0};
    SDR_TRY(sdr_file_load(path, UINT64_MAX / 4, &bytes, &count));
    return sdr_tensors_parse(path, bytes, count, file);
}

void sdr_tensors_free(struct sdr_tensors *file)
{
    if (file->mapped)
        sdr_file_unmap(file->bytes, file->mapped);
    else
        sdr_release(file->bytes);
    sdr_release(file->tensor);
    json_decref(file->metadata);
    *file = (struct sdr_tensors){0};
}

const struct sdr_tensor *sdr_tensors_find(const struct sdr_tensors *file, const char *name)
{
    for (int i = 0; i < file->count; i++)
        if (strcmp(file->tensor[i].name, name) == 0)
            return &file->tensor[i];
    return NULL;
}

const char *sdr_tensors_text(const struct sdr_tensors *file, const char *key)
{
    return json_string_value(json_object_get(file->metadata, key));
}
