/* LIBSVM text: any bytes, and the quick readers of every CPU level against each other. */
#include "fuzz.h"

#include "data/libsvm.h"

extern const struct sdr_format sdr_format_libsvm;

static void compare_levels(const struct sdr_data_options *options, const char *bytes, size_t count)
{
    struct fuzz_reading fuzz;
    struct sdr_piece first = {0}, other = {0};
    FUZZ_CHECK(fuzz_open(&fuzz, &sdr_format_libsvm, options, bytes, count) == SDR_OK);
    struct sdr_libsvm *state = fuzz.state;
    state->entries = sdr_libsvm_quick(SDR_CPU_PORTABLE);
    enum sdr_status status = fuzz_parse(&fuzz, bytes, count, true, &first);
    for (enum sdr_cpu level = SDR_CPU_PORTABLE + 1; level <= sdr_cpu_best(); level++) {
        state->entries = sdr_libsvm_quick(level);
        FUZZ_CHECK(fuzz_parse(&fuzz, bytes, count, true, &other) == status);
        FUZZ_CHECK(first.rows == other.rows && first.entries == other.entries);
        FUZZ_CHECK(strcmp(first.error, other.error) == 0 &&
                   first.error_column == other.error_column);
        FUZZ_CHECK(memcmp(first.index, other.index, first.entries * sizeof *first.index) == 0);
        FUZZ_CHECK(memcmp(first.value, other.value, first.entries * sizeof *first.value) == 0);
    }
    sdr_piece_free(&first);
    sdr_piece_free(&other);
    fuzz_close(&fuzz);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct sdr_data_options options = fuzz_options();
    compare_levels(&options, (const char *)bytes, count);
    fuzz_lines(&sdr_format_libsvm, &options, bytes, count);
    options.base = 1;
    fuzz_lines(&sdr_format_libsvm, &options, bytes, count);
    options.labels_optional = true;
    options.bits = 4;
    fuzz_lines(&sdr_format_libsvm, &options, bytes, count);
    return 0;
}
