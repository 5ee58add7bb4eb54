/* Vowpal Wabbit text: any bytes. */
#include "fuzz.h"

extern const struct sdr_format sdr_format_vw;

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct sdr_data_options options = fuzz_options();
    fuzz_lines(&sdr_format_vw, &options, bytes, count);
    options.labels_optional = true;
    options.bits = 3;
    fuzz_lines(&sdr_format_vw, &options, bytes, count);
    return 0;
}
