/* Triples of ratings: any bytes. */
#include "fuzz.h"

extern const struct sdr_format sdr_format_triples;

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct sdr_data_options options = fuzz_options();
    fuzz_lines(&sdr_format_triples, &options, bytes, count);
    options.labels_optional = true;
    fuzz_lines(&sdr_format_triples, &options, bytes, count);
    return 0;
}
