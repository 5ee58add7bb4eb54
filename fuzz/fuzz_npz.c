/* NPZ: any bytes, without labels, and with NaN allowed and the bytes as the file of the labels. */
#include "fuzz.h"

extern const struct sdr_format sdr_format_npz;

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct sdr_data_options options = fuzz_options();
    char path[64];
    fuzz_whole(&sdr_format_npz, &options, bytes, count);

    int file = memfd_create("labels", 0);
    FUZZ_CHECK(file >= 0 && write(file, bytes, count) == (ssize_t)count);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    options.labels = path;
    options.missing = SDR_MISSING_MEAN;
    fuzz_whole(&sdr_format_npz, &options, bytes, count);
    close(file);
    return 0;
}
