#include "data/zip.h"

#include <string.h>
#include <zlib.h>

enum { END_SIZE = 22, ENTRY_SIZE = 46, LOCAL_SIZE = 30, COMMENT_MOST = 65535 };
enum { STORED = 0, DEFLATED = 8, ENCRYPTED = 1 };

static uint32_t get16(const unsigned char *p)
{
    return p[0] | (uint32_t)p[1] << 8;
}

static uint32_t get32(const unsigned char *p)
{
    return get16(p) | get16(p + 2) << 16;
}

static enum sdr_status damaged(const struct sdr_zip *zip)
{
    return sdr_fail(SDR_BAD_DATA, "%s: the zip archive is damaged or truncated", zip->name);
}

static enum sdr_status too_large(const struct sdr_zip *zip)
{
    return sdr_fail(SDR_BAD_DATA,
                    "%s: zip64 archives (over 4 GB) cannot be read; write smaller files",
                    zip->name);
}

/* The end record comes last, except for an optional comment. */
enum sdr_status sdr_zip_open(const char *name, const void *bytes, size_t count, struct sdr_zip *zip)
{
    *zip = (struct sdr_zip){.name = name, .bytes = bytes, .count = count};
    if (count < END_SIZE)
        return damaged(zip);
    size_t least = count > END_SIZE + COMMENT_MOST ? count - END_SIZE - COMMENT_MOST : 0;
    for (size_t at = count - END_SIZE + 1; at-- > least;) {
        const unsigned char *end = zip->bytes + at;
        if (memcmp(end, "PK\5\6", 4) != 0 || at + END_SIZE + get16(end + 20) != count)
            continue;
        zip->entries = get16(end + 10);
        zip->directory = get32(end + 16);
        if (zip->entries == 0xFFFF || zip->directory == 0xFFFFFFFF)
            return too_large(zip);
        return zip->directory <= at ? SDR_OK : damaged(zip);
    }
    return damaged(zip);
}

static enum sdr_status inflate_member(const struct sdr_zip *zip, const unsigned char *packed,
                                      size_t packed_size, struct sdr_region *region, size_t size)
{
    z_stream stream = {.next_in = (unsigned char *)(uintptr_t)packed,
                       .avail_in = (uInt)packed_size,
                       .next_out = region->bytes + region->used,
                       .avail_out = (uInt)size};
    if (inflateInit2(&stream, -15) != Z_OK)
        return sdr_fail(SDR_RUNTIME, "out of memory: the zip decoder");
    int result = inflate(&stream, Z_FINISH);
    inflateEnd(&stream);
    if (result == Z_MEM_ERROR)
        return sdr_fail(SDR_RUNTIME, "out of memory: the zip decoder");
    return result == Z_STREAM_END && stream.avail_out == 0 ? SDR_OK : damaged(zip);
}

static enum sdr_status unpack(const struct sdr_zip *zip, const unsigned char *entry,
                              struct sdr_region *region)
{
    uint32_t method = get16(entry + 10), crc = get32(entry + 16);
    size_t packed = get32(entry + 20), size = get32(entry + 24), local = get32(entry + 42);
    if (packed == 0xFFFFFFFF || size == 0xFFFFFFFF || local == 0xFFFFFFFF)
        return too_large(zip);
    if (get16(entry + 8) & ENCRYPTED)
        return sdr_fail(SDR_BAD_DATA, "%s: the zip archive is encrypted", zip->name);
    if (method != STORED && method != DEFLATED)
        return sdr_fail(SDR_BAD_DATA, "%s: zip compression method %u cannot be read", zip->name,
                        method);
    if (local > zip->count || zip->count - local < LOCAL_SIZE ||
        memcmp(zip->bytes + local, "PK\3\4", 4) != 0)
        return damaged(zip);
    size_t begin =
        local + LOCAL_SIZE + get16(zip->bytes + local + 26) + get16(zip->bytes + local + 28);
    if (begin > zip->count || packed > zip->count - begin || (method == STORED && packed != size) ||
        size / 1100 > packed) /* deflate compresses at most 1032 to 1 */
        return damaged(zip);
    SDR_TRY(sdr_region_reserve(region, size + 1)); /* an empty member needs an address too */
    if (method == STORED) {
        if (size)
            memcpy(region->bytes + region->used, zip->bytes + begin, size);
    } else {
        SDR_TRY(inflate_member(zip, zip->bytes + begin, packed, region, size));
    }
    if (crc32(crc32(0, Z_NULL, 0), region->bytes + region->used, (uInt)size) != crc)
        return damaged(zip);
    region->used += size;
    return SDR_OK;
}

enum sdr_status sdr_zip_member(const struct sdr_zip *zip, const char *member,
                               struct sdr_region *region, bool *found)
{
    size_t at = zip->directory, length = strlen(member);
    *found = false;
    for (uint32_t i = 0; i < zip->entries; i++) {
        const unsigned char *entry = zip->bytes + at;
        if (zip->count - at < ENTRY_SIZE || memcmp(entry, "PK\1\2", 4) != 0)
            return damaged(zip);
        size_t name = get16(entry + 28);
        size_t whole = ENTRY_SIZE + name + get16(entry + 30) + get16(entry + 32);
        if (zip->count - at < whole)
            return damaged(zip);
        if (name == length && memcmp(entry + ENTRY_SIZE, member, length) == 0) {
            *found = true;
            return unpack(zip, entry, region);
        }
        at += whole;
    }
    return SDR_OK;
}
