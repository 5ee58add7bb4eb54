/* CSV: any bytes, as the first file of a model and as a later one read with a known schema. */
#include "fuzz.h"

extern const struct sdr_format sdr_format_csv;

/* The bytes with the schema of another file. */
static void read_known(const struct sdr_data_options *options, const char *train,
                       const uint8_t *bytes, size_t count)
{
    struct fuzz_reading first, second;
    struct sdr_piece piece = {0};
    FUZZ_CHECK(fuzz_open(&first, &sdr_format_csv, options, train, strlen(train)) == SDR_OK);
    second =
        (struct fuzz_reading){.format = first.format, .options = options, .reading = first.reading};
    FUZZ_CHECK(sdr_allocate(&second.state, 1, first.format->state_size, "fuzz") == SDR_OK);
    second.reading.known = &first.schema;
    second.reading.schema = &second.schema;
    if (first.format->open(second.state, &second.reading, (const char *)bytes, count) == SDR_OK)
        (void)fuzz_parse(&second, (const char *)bytes, count, true, &piece);
    first.format->close(second.state);
    sdr_release(second.state);
    sdr_schema_free(&second.schema);
    sdr_piece_free(&piece);
    fuzz_close(&first);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct sdr_data_options options = fuzz_options();
    fuzz_lines(&sdr_format_csv, &options, bytes, count);
    options.missing = SDR_MISSING_MEAN;
    options.labels_optional = true;
    options.categories = "c1";
    options.weight = "c2";
    fuzz_lines(&sdr_format_csv, &options, bytes, count);
    options.categories = options.weight = NULL;
    read_known(&options, "a,b,colour,y\n1,2,red,0\n", bytes, count);
    read_known(&options, "1,2,red,yes\n3,4,blue,no\n", bytes, count);
    return 0;
}
