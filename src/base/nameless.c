/* Files without a name: more than memory should hold, for as long as somebody looks at it. See
   file.h. */
#define _GNU_SOURCE /* madvise */
#include "base/fault.h"
#include "base/file.h"
#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

void sdr_file_passed(const void *bytes, size_t count)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)bytes;
    uintptr_t first = (at + page - 1) / page * page, end = (at + count) / page * page;
    if (first < end)
        (void)madvise((void *)first, end - first, MADV_DONTNEED); /* the file has them */
}

enum sdr_status sdr_file_nameless(const char *folder, int *descriptor)
{
    char *path;
    SDR_TRY(sdr_path_join(folder, "sounder-XXXXXX", &path));
    *descriptor = sdr_fault_strikes(SDR_FAULT_WRITE) ? -1 : mkstemp(path);
    enum sdr_status status =
        *descriptor < 0 ? sdr_fail_errno("cannot write in '%s'", folder) : SDR_OK;
    if (*descriptor >= 0)
        unlink(path);
    sdr_release(path);
    return status;
}

enum sdr_status sdr_file_put_at(int descriptor, uint64_t offset, const void *bytes, size_t count)
{
    const char *at = bytes;
    while (count) {
        ssize_t written =
            sdr_fault_strikes(SDR_FAULT_WRITE) ? -1 : pwrite(descriptor, at, count, (off_t)offset);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return sdr_fail_errno("cannot write to a temporary file");
        at += written;
        offset += (uint64_t)written;
        count -= (size_t)written;
    }
    return SDR_OK;
}

enum sdr_status sdr_file_map_open(int descriptor, size_t count, const void **bytes)
{
    void *memory = mmap(NULL, count, PROT_READ, MAP_SHARED, descriptor, 0);
    if (memory == MAP_FAILED)
        return sdr_fail_errno("cannot map a temporary file");
    *bytes = memory;
    return SDR_OK;
}
