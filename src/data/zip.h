/* Members of a zip archive that is in memory: stored or deflated, checked by size and CRC. Sizes
   are taken from the central directory; archives that need zip64 there are refused. */
#ifndef SDR_DATA_ZIP_H
#define SDR_DATA_ZIP_H

#include "base/memory.h"
#include <stdint.h>

struct sdr_zip {
    const char *name;           /* borrowed: of the file, for messages */
    const unsigned char *bytes; /* borrowed */
    size_t count;
    size_t directory; /* where the central directory begins */
    uint32_t entries;
};
/* SDR_BAD_DATA if there is no directory, or one that cannot be right. */
enum sdr_status sdr_zip_open(const char *name, const void *bytes, size_t count,
                             struct sdr_zip *zip);
/* Unpacks the member called `member` behind region->used; *found is false if there is none. */
enum sdr_status sdr_zip_member(const struct sdr_zip *zip, const char *member,
                               struct sdr_region *region, bool *found);

#endif
