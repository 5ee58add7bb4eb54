#define _GNU_SOURCE
#include "base/file.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/memory.h"
#include "base/stop.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum sdr_status sdr_file_facts(const char *path, struct sdr_file_facts *facts)
{
    struct stat s;
    if (stat(path, &s) != 0)
        return sdr_fail_errno("cannot read '%s'", path);
    facts->bytes = (uint64_t)s.st_size;
    facts->modified_ns = (int64_t)s.st_mtim.tv_sec * 1000000000 + s.st_mtim.tv_nsec;
    facts->regular = S_ISREG(s.st_mode);
    facts->directory = S_ISDIR(s.st_mode);
    return SDR_OK;
}

bool sdr_file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

/* Waits until a pipe has bytes; returns early if a stop is requested. */
static enum sdr_status await_bytes(int descriptor)
{
    enum { LOOK_MS = 100 };
    struct pollfd wait = {.fd = descriptor, .events = POLLIN};
    int ready;
    do {
        SDR_TRY(sdr_check_stop("reading"));
        ready = poll(&wait, 1, LOOK_MS);
    } while (ready == 0 || (ready < 0 && errno == EINTR));
    return SDR_OK;
}

enum sdr_status sdr_file_open(const char *path, int *descriptor)
{
    *descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*descriptor < 0)
        return sdr_fail_errno("cannot open '%s'", path);
    int flags = fcntl(*descriptor, F_GETFL);
    if (flags >= 0 && fcntl(*descriptor, F_SETFL, flags & ~O_NONBLOCK) == 0)
        return SDR_OK;
    enum sdr_status status = sdr_fail_errno("cannot open '%s'", path);
    close(*descriptor);
    *descriptor = -1;
    return status;
}

enum sdr_status sdr_file_read(int descriptor, void *bytes, size_t count, size_t *got,
                              const char *name)
{
    *got = 0;
    if (sdr_fault_strikes(SDR_FAULT_READ))
        return sdr_fail_errno("cannot read '%s'", name);
    while (*got < count) {
        SDR_TRY(await_bytes(descriptor));
        ssize_t n = read(descriptor, (char *)bytes + *got, count - *got);
        if (n == 0)
            break;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return sdr_fail_errno("cannot read '%s'", name);
        *got += (size_t)n;
    }
    return SDR_OK;
}

enum sdr_status sdr_file_head(const char *path, void *bytes, size_t count, size_t *got)
{
    struct sdr_file_facts facts = {0};
    *got = 0;
    if (sdr_file_facts(path, &facts) != SDR_OK || !facts.regular)
        return SDR_OK;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return SDR_OK;
    enum sdr_status status = sdr_file_read(descriptor, bytes, count, got, path);
    close(descriptor);
    return status;
}

enum sdr_status sdr_file_load(const char *path, uint64_t limit, char **bytes, size_t *count)
{
    struct sdr_file_facts facts = {0};
    *bytes = NULL;
    SDR_TRY(sdr_file_facts(path, &facts));
    if (facts.directory)
        return sdr_fail(SDR_RUNTIME, "cannot read '%s': it is a folder", path);
    if (facts.bytes > limit)
        return sdr_fail(SDR_BAD_FILE, "'%s' is too large for what it should be", path);
    int descriptor;
    SDR_TRY(sdr_file_open(path, &descriptor));
    /* A pipe has no size: read up to 1 MiB. */
    size_t most = facts.regular ? (size_t)facts.bytes : limit < 1 << 20 ? (size_t)limit : 1 << 20;
    enum sdr_status status = sdr_allocate(bytes, most + 1, 1, path);
    if (status == SDR_OK)
        status = sdr_file_read(descriptor, *bytes, most, count, path);
    close(descriptor);
    if (status != SDR_OK) {
        sdr_release(*bytes);
        *bytes = NULL;
    }
    return status;
}

enum sdr_status sdr_file_map(const char *path, const void **bytes, size_t *count)
{
    struct stat s;
    *bytes = NULL;
    *count = 0;
    if (sdr_fault_strikes(SDR_FAULT_READ))
        return sdr_fail_errno("cannot read '%s'", path);
    int descriptor;
    SDR_TRY(sdr_file_open(path, &descriptor));
    enum sdr_status status = SDR_OK;
    if (fstat(descriptor, &s) != 0) {
        status = sdr_fail_errno("cannot read '%s'", path);
    } else if (s.st_size > 0) {
        void *memory = mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_SHARED, descriptor, 0);
        if (memory == MAP_FAILED) {
            status = sdr_fail_errno("cannot map '%s'", path);
        } else {
            *bytes = memory;
            *count = (size_t)s.st_size;
        }
    }
    close(descriptor);
    return status;
}

void sdr_file_unmap(const void *bytes, size_t count)
{
    if (bytes)
        munmap((void *)(uintptr_t)bytes, count);
}

struct sdr_writer {
    char *path, *temporary;
    int descriptor;
    bool unsynced;
    uint64_t written; /* flushed bytes, without the buffer */
    size_t held;
    unsigned char buffer[1 << 18];
};
/* Temporary files of open writers, for sdr_writers_remove. That runs in a signal handler, which
   must not take locks: hence atomic pointers. With the table full a writer stays unlisted, and a
   signal may leave its file behind. */
enum { LISTED_MOST = 64 };
static _Atomic(char *) listed[LISTED_MOST];
static atomic_bool removing; /* the process is exiting: paths are no longer freed */

static void list_writer(const struct sdr_writer *w)
{
    for (int i = 0; i < LISTED_MOST; i++) {
        char *none = NULL;
        if (atomic_compare_exchange_strong(&listed[i], &none, w->temporary))
            return;
    }
}

static void unlist_writer(const struct sdr_writer *w)
{
    for (int i = 0; i < LISTED_MOST && w->temporary; i++) {
        char *own = w->temporary;
        if (atomic_compare_exchange_strong(&listed[i], &own, NULL))
            return;
    }
}

void sdr_writers_remove(void)
{
    removing = true;
    for (int i = 0; i < LISTED_MOST; i++) {
        const char *path = atomic_load(&listed[i]);
        if (path)
            unlink(path);
    }
}

/* Opens a temporary file beside path under an unused name; a killed process may have left some. */
static enum sdr_status open_temporary(struct sdr_writer *w)
{
    static atomic_uint serial;
    for (int attempt = 0; attempt < 100; attempt++) {
        struct sdr_text name = {0};
        sdr_text_add(&name, "%s.tmp-%ld-%llx-%u", w->path, (long)getpid(),
                     (unsigned long long)sdr_clock_now(), atomic_fetch_add(&serial, 1));
        sdr_release(w->temporary);
        SDR_TRY(sdr_text_take(&name, &w->temporary));
        w->descriptor = open(w->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (w->descriptor >= 0)
            return SDR_OK;
        if (errno != EEXIST)
            break;
    }
    return sdr_fail_errno("cannot write '%s'", w->path);
}

enum sdr_status sdr_writer_open(const char *path, struct sdr_writer **writer)
{
    struct sdr_writer *w;
    *writer = NULL;
    SDR_TRY(sdr_allocate(&w, 1, sizeof *w, "a file writer"));
    w->descriptor = -1;
    enum sdr_status status = sdr_copy_string(&w->path, path);
    if (status == SDR_OK)
        status = open_temporary(w);
    if (status != SDR_OK) {
        sdr_writer_abandon(w);
        return status;
    }
    list_writer(w);
    *writer = w;
    return SDR_OK;
}

static enum sdr_status write_all(struct sdr_writer *w, const void *bytes, size_t count, off_t at)
{
    const char *from = bytes;
    if (count && sdr_fault_strikes(SDR_FAULT_WRITE))
        return sdr_fail_errno("cannot write '%s'", w->path);
    while (count) {
        ssize_t n = pwrite(w->descriptor, from, count, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return sdr_fail_errno("cannot write '%s'", w->path);
        from += n;
        at += n;
        count -= (size_t)n;
    }
    return SDR_OK;
}

static enum sdr_status flush(struct sdr_writer *w)
{
    SDR_TRY(write_all(w, w->buffer, w->held, (off_t)w->written));
    w->written += w->held;
    w->held = 0;
    return SDR_OK;
}

enum sdr_status sdr_writer_add(struct sdr_writer *w, const void *bytes, size_t count)
{
    if (count > sizeof w->buffer - w->held)
        SDR_TRY(flush(w));
    if (count >= sizeof w->buffer) {
        SDR_TRY(write_all(w, bytes, count, (off_t)w->written));
        w->written += count;
        return SDR_OK;
    }
    if (count)
        memcpy(w->buffer + w->held, bytes, count);
    w->held += count;
    return SDR_OK;
}

uint64_t sdr_writer_written(const struct sdr_writer *w)
{
    return w->written + w->held;
}

enum sdr_status sdr_writer_patch(struct sdr_writer *w, uint64_t offset, const void *bytes,
                                 size_t count)
{
    SDR_TRY(flush(w));
    return write_all(w, bytes, count, (off_t)offset);
}

/* A rename survives a power cut only after an fsync of its folder. A failure here is ignored: the
   rename itself succeeded. */
static void sync_folder(const char *path)
{
    char folder[4096] = ".";
    size_t length = (size_t)(sdr_path_base(path) - path);
    if (length >= sizeof folder)
        return;
    if (length) {
        memcpy(folder, path, length);
        folder[length] = 0;
    }
    int descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor >= 0) {
        (void)fsync(descriptor);
        close(descriptor);
    }
}

static void writer_free(struct sdr_writer *w)
{
    unlist_writer(w);
    if (w->descriptor >= 0)
        close(w->descriptor);
    if (!removing)
        sdr_release(w->temporary);
    sdr_release(w->path);
    sdr_release(w);
}

enum sdr_status sdr_writer_commit(struct sdr_writer *w)
{
    enum sdr_status status = flush(w);
    if (status == SDR_OK && !w->unsynced &&
        (sdr_fault_strikes(SDR_FAULT_WRITE) || fsync(w->descriptor) != 0))
        status = sdr_fail_errno("cannot write '%s'", w->path);
    if (status == SDR_OK && rename(w->temporary, w->path) != 0)
        status = sdr_fail_errno("cannot write '%s'", w->path);
    if (status != SDR_OK) {
        sdr_writer_abandon(w);
        return status;
    }
    if (!w->unsynced)
        sync_folder(w->path);
    writer_free(w);
    return SDR_OK;
}

void sdr_writer_abandon(struct sdr_writer *w)
{
    if (!w)
        return;
    if (w->descriptor >= 0)
        unlink(w->temporary);
    writer_free(w);
}

static enum sdr_status write_whole(const char *path, const void *bytes, size_t count, bool unsynced)
{
    struct sdr_writer *writer;
    SDR_TRY(sdr_writer_open(path, &writer));
    writer->unsynced = unsynced;
    enum sdr_status status = sdr_writer_add(writer, bytes, count);
    if (status == SDR_OK)
        return sdr_writer_commit(writer);
    sdr_writer_abandon(writer);
    return status;
}

enum sdr_status sdr_file_write(const char *path, const void *bytes, size_t count)
{
    return write_whole(path, bytes, count, false);
}

enum sdr_status sdr_file_put(const char *path, const void *bytes, size_t count)
{
    return write_whole(path, bytes, count, true);
}

enum sdr_status sdr_file_append(const char *path, const char *line, size_t length)
{
    int descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (descriptor < 0)
        return sdr_fail_errno("cannot write '%s'", path);
    off_t before = lseek(descriptor, 0, SEEK_END);
    ssize_t n = sdr_fault_strikes(SDR_FAULT_WRITE) ? -1 : write(descriptor, line, length);
    enum sdr_status status = SDR_OK;
    if (n != (ssize_t)length) {
        if (n >= 0)
            errno = ENOSPC; /* a short write sets no errno; assume a full disk */
        status = sdr_fail_errno("cannot write '%s'", path);
        if (n > 0 && before >= 0)
            (void)!ftruncate(descriptor, before); /* remove the partial line */
    }
    close(descriptor);
    return status;
}

enum sdr_status sdr_folder_make(const char *path)
{
    char *copy;
    enum sdr_status status = SDR_OK;
    if (!*path)
        return sdr_fail(SDR_USAGE, "a folder's name is empty");
    SDR_TRY(sdr_copy_string(&copy, path));
    for (char *p = copy + 1; status == SDR_OK; p++) {
        if (*p != '/' && *p)
            continue;
        char kept = *p;
        *p = 0;
        struct sdr_file_facts facts = {0};
        if (mkdir(copy, 0777) != 0 &&
            (errno != EEXIST || sdr_file_facts(copy, &facts) != SDR_OK || !facts.directory))
            status = sdr_fail_errno("cannot make the folder '%s'", copy);
        *p = kept;
        if (!kept)
            break;
    }
    sdr_release(copy);
    return status;
}

enum sdr_status sdr_path_join(const char *folder, const char *name, char **path)
{
    struct sdr_text text = {0};
    size_t length = strlen(folder);
    sdr_text_add(&text, "%s%s%s", folder, length && folder[length - 1] == '/' ? "" : "/", name);
    return sdr_text_take(&text, path);
}

const char *sdr_path_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
