/* Cache files: any bytes as they stand, then with every hash put right, so that the checks behind
   the hashes are reached. What is mapped must be rows that kernels can read without checks. */
#include "fuzz.h"

#include "base/hash.h"
#include "data/cache.h"

static void train_on(struct sdr_data *data)
{
    struct sdr_options *options;
    struct sdr_run *run;
    FUZZ_CHECK(sdr_options_create(&options) == SDR_OK);
    FUZZ_CHECK(sdr_options_set(options, "threads", "1") == SDR_OK);
    FUZZ_CHECK(sdr_options_set(options, "epochs", "1") == SDR_OK);
    if (sdr_run_create(options, data, NULL, &run) == SDR_OK) {
        enum sdr_status status = sdr_run_train(run);
        FUZZ_CHECK(status == SDR_OK || *sdr_error());
        sdr_run_destroy(run);
    }
    sdr_options_destroy(options);
}

static void map(const uint8_t *bytes, size_t count)
{
    char path[64], *json;
    struct sdr_data *data;
    int file = memfd_create("fuzz", 0);
    FUZZ_CHECK(file >= 0 && write(file, bytes, count) == (ssize_t)count);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    enum sdr_status status = sdr_cache_map(path, NULL, &data);
    FUZZ_CHECK(status == SDR_OK || (status == SDR_BAD_FILE && !data && *sdr_error()));
    if (status == SDR_OK) {
        fuzz_check_rows(&data->rows);
        for (uint64_t r = 0; r < data->rows.count && data->rows.weight; r++)
            FUZZ_CHECK(fuzz_finite(data->rows.weight[r]) && data->rows.weight[r] >= 0);
        if (sdr_data_inspect(data, &json) == SDR_OK)
            sdr_string_free(json);
        if (data->rows.count <= 4096 && data->rows.features <= 1 << 16)
            train_on(data);
    }
    sdr_data_destroy(data);
    enum sdr_status lazy = sdr_cache_map_within(path, NULL, 0, true, &data);
    for (uint32_t r = 0; lazy == SDR_OK && r < data->rows.count; r++)
        lazy = sdr_data_demand(data, &r, 1);
    FUZZ_CHECK(lazy == SDR_OK || lazy == SDR_BAD_FILE);
    FUZZ_CHECK(status != SDR_OK || lazy == SDR_OK); /* what hashes alone tell aside */
    if (lazy == SDR_OK)
        fuzz_check_rows(&data->rows);
    sdr_data_destroy(data);
    close(file);
}

static void fix_hashes(uint8_t *bytes, size_t count)
{
    struct sdr_cache_header header;
    char text[33];
    memcpy(&header, bytes, sizeof header);
    for (int i = 0; i < SDR_SECTIONS; i++) {
        struct sdr_cache_section *section = &header.section[i];
        if (section->offset > count || section->bytes > count - section->offset)
            continue;
        sdr_hash_text(bytes + section->offset, (size_t)section->bytes, text);
        memcpy(section->hash, text, sizeof section->hash);
    }
    memcpy(header.magic, SDR_CACHE_MAGIC, sizeof header.magic);
    sdr_hash_text(&header, offsetof(struct sdr_cache_header, hash), text);
    memcpy(header.hash, text, sizeof header.hash);
    memcpy(bytes, &header, sizeof header);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    map(bytes, count);
    if (count < sizeof(struct sdr_cache_header))
        return 0;
    uint8_t *copy = malloc(count);
    FUZZ_CHECK(copy != NULL);
    memcpy(copy, bytes, count);
    fix_hashes(copy, count);
    map(copy, count);
    free(copy);
    return 0;
}
