/* Files of labels: any bytes, as NPY, IDX, Matrix Market or lines, with and without a schema. */
#include "fuzz.h"

#include "data/label_file.h"

static void check(const struct sdr_schema *known, const struct sdr_region *bytes)
{
    struct sdr_label_file labels;
    struct sdr_piece piece = {0};
    if (sdr_label_file_parse("fuzz", known, bytes, &labels) != SDR_OK)
        return;
    FUZZ_CHECK(sdr_piece_reserve(&piece, 1, 1) == SDR_OK);
    for (uint64_t i = 0; i < labels.count; i++) {
        FUZZ_CHECK(fuzz_finite(labels.value[i]));
        FUZZ_CHECK(sdr_label_file_put(&labels, i, &piece, 0) == SDR_OK);
        FUZZ_CHECK(!labels.is_text || piece.label[0] == labels.value[i]);
    }
    sdr_piece_free(&piece);
    sdr_label_file_free(&labels);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t count)
{
    struct sdr_region bytes = {0};
    struct sdr_schema known = {.text_labels = true};
    uint32_t number;
    FUZZ_CHECK(sdr_region_append(&bytes, input, count) == SDR_OK);
    FUZZ_CHECK(sdr_dictionary_find(&known.labels, "cat", 3, true, &number) == SDR_OK);
    check(NULL, &bytes);
    check(&known, &bytes);
    sdr_schema_free(&known);
    sdr_region_free(&bytes);
    return 0;
}
