/* The bytes of one path, decompressed: gzip and zstd are detected by their magic bytes;
   concatenated members or frames form one stream. */
#define _GNU_SOURCE /* posix_fadvise */
#include "base/fault.h"
#include "base/file.h"
#include "data/data.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

enum { RAW_BYTES = 1 << 18 };
enum packing { PLAIN, GZIP, ZSTD };

struct sdr_source {
    int descriptor;
    char *name;
    enum packing packing;
    uint64_t taken, limit; /* limit: bytes that sdr_source_rest may unpack; 0: unlimited */
    struct stat opened;    /* state of the file when it was opened */
    /* Raw bytes of the file. Plain files use this for the first bytes only. */
    unsigned char *raw;
    size_t raw_at, raw_used;
    bool raw_end;
    /* The peeked head: decompressed, not yet consumed. */
    struct sdr_region head;
    size_t head_at, head_room;
    bool head_end; /* the source ends with the head */
    bool inside;   /* a member or frame is open: the end of file would be a truncation */
    bool inflating;
    z_stream gzip;
    ZSTD_DStream *zstd;
};

static voidpf gzip_allocate(voidpf context, uInt count, uInt size)
{
    void *memory;
    (void)context;
    return sdr_allocate(&memory, count, size, "the gzip decoder") == SDR_OK ? memory : Z_NULL;
}

static void gzip_release(voidpf context, voidpf memory)
{
    (void)context;
    sdr_release(memory);
}

/* Detects that the file was modified while being read. */
static enum sdr_status check_unchanged(const struct sdr_source *s)
{
    struct stat now;
    if (!S_ISREG(s->opened.st_mode) || s->descriptor == STDIN_FILENO)
        return SDR_OK;
    if (fstat(s->descriptor, &now) != 0)
        return sdr_fail_errno("cannot read '%s'", s->name);
    if (now.st_size != s->opened.st_size || s->taken != (uint64_t)now.st_size ||
        now.st_mtim.tv_sec != s->opened.st_mtim.tv_sec ||
        now.st_mtim.tv_nsec != s->opened.st_mtim.tv_nsec)
        return sdr_fail(SDR_BAD_DATA,
                        "%s: the file changed while it was read: start again once it is complete",
                        s->name);
    return SDR_OK;
}

/* Raw bytes of the file; fewer than `count` at its end. */
static enum sdr_status read_raw(struct sdr_source *s, void *to, size_t count, size_t *got)
{
    SDR_TRY(sdr_file_read(s->descriptor, to, count, got, s->name));
    s->taken += *got;
    s->raw_end = *got < count;
    return s->raw_end ? check_unchanged(s) : SDR_OK;
}

/* Refills the empty raw buffer. */
static enum sdr_status fill_raw(struct sdr_source *s)
{
    s->raw_at = s->raw_used = 0;
    return s->raw_end ? SDR_OK : read_raw(s, s->raw, RAW_BYTES, &s->raw_used);
}

static enum packing packing_of(const unsigned char *raw, size_t count)
{
    static const unsigned char zstd[4] = {0x28, 0xB5, 0x2F, 0xFD}, skip[3] = {0x2A, 0x4D, 0x18};
    if (count >= 2 && raw[0] == 0x1F && raw[1] == 0x8B)
        return GZIP;
    if (count >= 4 && memcmp(raw, zstd, 4) == 0)
        return ZSTD;
    if (count >= 4 && (raw[0] & 0xF0) == 0x50 && memcmp(raw + 1, skip, 3) == 0)
        return ZSTD;
    return PLAIN;
}

/* Refuses known but unsupported compressions. */
static enum sdr_status refuse_packing(const struct sdr_source *s)
{
    static const struct {
        const char *magic, *tool;
    } packings[] = {{"\xFD"
                     "7zXZ",
                     "xzcat"},
                    {"BZh", "bzcat"}};
    for (size_t i = 0; i < sizeof packings / sizeof *packings; i++) {
        size_t length = strlen(packings[i].magic);
        if (s->raw_used >= length && memcmp(s->raw, packings[i].magic, length) == 0)
            return sdr_fail(SDR_BAD_DATA,
                            "%s: a packed file of this kind is not read; unpack it: "
                            "%s FILE | sounder ... -",
                            s->name, packings[i].tool);
    }
    return SDR_OK;
}

static enum sdr_status start_unpacking(struct sdr_source *s)
{
    if (s->packing == GZIP) {
        s->gzip = (z_stream){.zalloc = gzip_allocate, .zfree = gzip_release};
        if (inflateInit2(&s->gzip, 15 + 16) != Z_OK)
            return sdr_fail(SDR_RUNTIME, "out of memory: the gzip decoder");
        s->inflating = s->inside = true;
    } else if (s->packing == ZSTD) {
        s->zstd = sdr_fault_strikes(SDR_FAULT_ALLOCATE) ? NULL : ZSTD_createDStream();
        if (!s->zstd)
            return sdr_fail(SDR_RUNTIME, "out of memory: the zstd decoder");
        s->inside = true;
    }
    return SDR_OK;
}

static enum sdr_status open_file(struct sdr_source *s, const char *path)
{
    bool standard = strcmp(path, "-") == 0;
    SDR_TRY(sdr_copy_string(&s->name, standard ? "<stdin>" : path));
    if (standard)
        s->descriptor = STDIN_FILENO;
    else
        SDR_TRY(sdr_file_open(path, &s->descriptor));
    if (fstat(s->descriptor, &s->opened) != 0)
        return sdr_fail_errno("cannot read '%s'", path);
    if (S_ISDIR(s->opened.st_mode))
        return sdr_fail(SDR_RUNTIME, "cannot read '%s': it is a folder", path);
    (void)posix_fadvise(s->descriptor, 0, 0, POSIX_FADV_SEQUENTIAL); /* a hint; fails for pipes */
    return SDR_OK;
}

enum sdr_status sdr_source_open(const char *path, struct sdr_source **source)
{
    struct sdr_source *s;
    enum sdr_status status;
    *source = NULL;
    SDR_TRY(sdr_allocate(&s, 1, sizeof *s, "a file reader"));
    s->descriptor = -1;
    SDR_CHECK(open_file(s, path));
    SDR_CHECK(sdr_allocate(&s->raw, RAW_BYTES, 1, "a file reader"));
    SDR_CHECK(fill_raw(s));
    s->packing = packing_of(s->raw, s->raw_used);
    SDR_CHECK(refuse_packing(s));
    SDR_CHECK(start_unpacking(s));
    *source = s;
    return SDR_OK;
cleanup:
    sdr_source_close(s);
    return status;
}

void sdr_source_close(struct sdr_source *s)
{
    if (!s)
        return;
    if (s->inflating)
        inflateEnd(&s->gzip);
    ZSTD_freeDStream(s->zstd);
    if (s->descriptor > STDIN_FILENO)
        close(s->descriptor);
    sdr_release(s->raw);
    sdr_region_free(&s->head);
    sdr_release(s->name);
    sdr_release(s);
}

static enum sdr_status read_plain(struct sdr_source *s, char *to, size_t count, size_t *got)
{
    size_t held = s->raw_used - s->raw_at, more = 0;
    if (held > count)
        held = count;
    memcpy(to, s->raw + s->raw_at, held);
    s->raw_at += held;
    if (held < count && !s->raw_end)
        SDR_TRY(read_raw(s, to + held, count - held, &more));
    *got = held + more;
    return SDR_OK;
}

/* After a member: the next one, zero padding (tapes), or the end. */
static enum sdr_status next_member(struct sdr_source *s)
{
    for (;;) {
        if (s->raw_at == s->raw_used)
            SDR_TRY(fill_raw(s));
        if (s->raw_at == s->raw_used)
            return SDR_OK;
        if (s->raw[s->raw_at] != 0)
            break;
        s->raw_at++;
    }
    if (s->raw[s->raw_at] != 0x1F || inflateReset(&s->gzip) != Z_OK)
        return sdr_fail(SDR_BAD_DATA, "%s: corrupt gzip archive (something follows its end)",
                        s->name);
    s->inside = true;
    return SDR_OK;
}

static enum sdr_status read_gzip(struct sdr_source *s, char *to, size_t count, size_t *got)
{
    while (*got < count) {
        if (!s->inside)
            SDR_TRY(next_member(s));
        if (!s->inside)
            return SDR_OK;
        if (s->raw_at == s->raw_used)
            SDR_TRY(fill_raw(s));
        size_t room = count - *got < UINT32_MAX ? count - *got : UINT32_MAX;
        s->gzip.next_in = s->raw + s->raw_at;
        s->gzip.avail_in = (uInt)(s->raw_used - s->raw_at);
        s->gzip.next_out = (Bytef *)to + *got;
        s->gzip.avail_out = (uInt)room;
        bool dry = s->gzip.avail_in == 0;
        int result = inflate(&s->gzip, Z_NO_FLUSH);
        size_t made = room - s->gzip.avail_out;
        s->raw_at = s->raw_used - s->gzip.avail_in;
        *got += made;
        if (result == Z_STREAM_END)
            s->inside = false;
        else if (result == Z_MEM_ERROR)
            return sdr_fail(SDR_RUNTIME, "out of memory: the gzip decoder");
        else if (result != Z_OK && result != Z_BUF_ERROR)
            return sdr_fail(SDR_BAD_DATA, "%s: corrupt gzip archive", s->name);
        else if (dry && made == 0)
            return sdr_fail(SDR_BAD_DATA, "%s: truncated gzip archive", s->name);
    }
    return SDR_OK;
}

static enum sdr_status read_zstd(struct sdr_source *s, char *to, size_t count, size_t *got)
{
    while (*got < count) {
        if (s->raw_at == s->raw_used)
            SDR_TRY(fill_raw(s));
        bool dry = s->raw_at == s->raw_used;
        if (dry && !s->inside)
            return SDR_OK;
        ZSTD_inBuffer in = {s->raw, s->raw_used, s->raw_at};
        ZSTD_outBuffer out = {to, count, *got};
        size_t result = ZSTD_decompressStream(s->zstd, &out, &in);
        if (ZSTD_isError(result))
            return sdr_fail(SDR_BAD_DATA, "%s: corrupt zstd archive (%s)", s->name,
                            ZSTD_getErrorName(result));
        bool moved = out.pos > *got;
        s->raw_at = in.pos;
        *got = out.pos;
        s->inside = result != 0;
        if (dry && !moved && s->inside)
            return sdr_fail(SDR_BAD_DATA, "%s: truncated zstd archive", s->name);
    }
    return SDR_OK;
}

static enum sdr_status unpack(struct sdr_source *s, char *to, size_t count, size_t *got)
{
    *got = 0;
    switch (s->packing) {
    case GZIP: return read_gzip(s, to, count, got);
    case ZSTD: return read_zstd(s, to, count, got);
    case PLAIN: break;
    }
    return read_plain(s, to, count, got);
}

/* Extends the head to `room` bytes, in place. */
static enum sdr_status grow_head(struct sdr_source *s, size_t room)
{
    size_t more = room - s->head.used, got;
    SDR_TRY(sdr_region_reserve(&s->head, more));
    SDR_TRY(unpack(s, (char *)s->head.bytes + s->head.used, more, &got));
    s->head.used += got;
    s->head_room = room;
    s->head_end = s->head.used < room;
    return SDR_OK;
}

enum sdr_status sdr_source_peek_more(struct sdr_source *s, size_t wanted, const char **bytes,
                                     size_t *count)
{
    *bytes = "";
    *count = 0;
    if (!s->head_end && s->head_at + wanted > s->head_room)
        SDR_TRY(grow_head(s, s->head_at + wanted));
    *bytes = (const char *)s->head.bytes + s->head_at;
    *count = s->head.used - s->head_at;
    return SDR_OK;
}

enum sdr_status sdr_source_peek(struct sdr_source *s, const char **bytes, size_t *count)
{
    return sdr_source_peek_more(s, s->head_room ? 0 : SDR_HEAD_BYTES, bytes, count);
}

enum sdr_status sdr_source_read(struct sdr_source *s, void *bytes, size_t count, size_t *got)
{
    size_t held = s->head.used - s->head_at, more = 0;
    *got = 0;
    if (held > count)
        held = count;
    if (held) {
        memcpy(bytes, s->head.bytes + s->head_at, held);
        s->head_at += held;
    }
    if (held < count)
        SDR_TRY(unpack(s, (char *)bytes + held, count - held, &more));
    *got = held + more;
    return SDR_OK;
}

void sdr_source_limit(struct sdr_source *s, uint64_t bytes)
{
    s->limit = bytes;
}

enum sdr_status sdr_source_rest(struct sdr_source *s, struct sdr_region *bytes)
{
    enum { STEP = 1 << 20 };
    size_t got;
    do {
        if (s->packing != PLAIN && s->limit && bytes->used > s->limit)
            return sdr_fail(SDR_BAD_DATA,
                            "%s: unpacked it is larger than --memory (%.1f MB), and "
                            "this format is read at once: raise --memory, or decompress the file",
                            s->name, (double)s->limit / 1e6);
        SDR_TRY(sdr_region_reserve(bytes, STEP));
        SDR_TRY(sdr_source_read(s, bytes->bytes + bytes->used, STEP, &got));
        bytes->used += got;
    } while (got == STEP);
    return SDR_OK;
}

const char *sdr_source_name(const struct sdr_source *s)
{
    return s->name;
}

uint64_t sdr_source_taken(const struct sdr_source *s)
{
    return s->taken;
}
