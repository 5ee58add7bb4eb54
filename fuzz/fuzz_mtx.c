/* Matrix Market: any bytes, as a matrix and as the file of its labels. */
#include "fuzz.h"

extern const struct sdr_format sdr_format_mtx;

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct sdr_data_options options = fuzz_options();
    char path[64];
    options.labels_optional = true;
    fuzz_whole(&sdr_format_mtx, &options, bytes, count);

    int file = memfd_create("labels", 0);
    FUZZ_CHECK(file >= 0 && write(file, bytes, count) == (ssize_t)count);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    options.labels = path;
    fuzz_whole(&sdr_format_mtx, &options, bytes, count);
    close(file);
    return 0;
}
