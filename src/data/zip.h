/* Members of a zip archive in memory: stored or deflated, checked by size and CRC. Sizes come from
   the central directory; zip64 is not supported. */
#ifndef SDR_DATA_ZIP_H
#define SDR_DATA_ZIP_H

#include "base/memory.h"
#include <stdint.h>

struct sdr_zip {
    const char *name;           /* borrowed: of the file, for messages */
    const unsigned char *bytes; /* borrowed */
    size_t count;
    size_t directory; /* offset of the central directory */
    uint32_t entries;
};
/* SDR_BAD_DATA if the central directory is missing or invalid. */
enum sdr_status sdr_zip_open(const char *name, const void *bytes, size_t count,
                             struct sdr_zip *zip);
/* Unpacks a member behind region->used; *found is false if there is none. */
enum sdr_status sdr_zip_member(const struct sdr_zip *zip, const char *member,
                               struct sdr_region *region, bool *found);

#endif
