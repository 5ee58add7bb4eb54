/* The contract of formats, run over every format there is. A format brings its samples as
   fuzz/corpus/<name>/; one without samples fails. Samples named bad-… are those it must refuse. */
#include "../data/files.h"
#include "run/registry.h"

enum { SAMPLES_MOST = 64 };

struct sample {
    char name[64];
    char *bytes;
    size_t count;
};

static int load_samples(const char *format, struct sample *sample)
{
    char path[600];
    const char *source = getenv("SOUNDER_SOURCE");
    int count = 0;
    snprintf(path, sizeof path, "%s/fuzz/corpus/%s", source ? source : ".", format);
    DIR *list = opendir(path);
    struct dirent *entry;
    while (list && (entry = readdir(list)) && count < SAMPLES_MOST) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/fuzz/corpus/%s/%s", source ? source : ".", format,
                 entry->d_name);
        snprintf(sample[count].name, sizeof sample[count].name, "%.63s", entry->d_name);
        assert_int_equal(sdr_file_load(path, 1 << 24, &sample[count].bytes, &sample[count].count),
                         SDR_OK);
        count++;
    }
    if (list)
        closedir(list);
    return count;
}

static enum sdr_status read_bytes(const char *format, const char *bytes, size_t count, int threads,
                                  struct sdr_data **data)
{
    const char *path = write_file("sample", bytes, count);
    struct sdr_data_options options = {.format = format,
                                       .format_rest = "",
                                       .base = -1,
                                       .missing = SDR_MISSING_MEAN,
                                       .threads = threads,
                                       .labels_optional = true};
    enum sdr_status status = sdr_data_read(&options, &path, 1, NULL, data);
    if (status == SDR_USAGE) { /* a format that knows no missing values */
        options.missing = SDR_MISSING_ERROR;
        status = sdr_data_read(&options, &path, 1, NULL, data);
    }
    return status;
}

static int good_samples;

static void over_samples_of(const struct sdr_format *format,
                            void (*law)(const struct sdr_format *, const struct sample *))
{
    struct sample sample[SAMPLES_MOST];
    int count = load_samples(format->name, sample);
    if (count == 0)
        fail_msg("format %s has no samples in fuzz/corpus", format->name);
    for (int i = 0; i < count; i++) {
        law(format, &sample[i]);
        sdr_release(sample[i].bytes);
    }
}

/* Runs a law over every sample of every format. */
static void over_samples(void (*law)(const struct sdr_format *, const struct sample *))
{
    for (const struct sdr_format *const *format = sdr_format_table; *format; format++)
        over_samples_of(*format, law);
}

static void a_format_is_complete(void **state)
{
    (void)state;
    for (const struct sdr_format *const *format = sdr_format_table; *format; format++) {
        assert_non_null((*format)->summary);
        assert_non_null((*format)->recognise);
        assert_non_null((*format)->open);
        assert_true(!(*format)->parse != !(*format)->whole);
        assert_true(!(*format)->options == !(*format)->options_size);
    }
}

/* A sample whose name begins with "bad-" is refused, every other one is read. */
static void check_acceptance(const struct sdr_format *format, const struct sample *sample)
{
    struct sdr_data *data = NULL;
    enum sdr_status status = read_bytes(format->name, sample->bytes, sample->count, 1, &data);
    bool bad = strncmp(sample->name, "bad-", 4) == 0;
    if (bad && status != SDR_BAD_DATA)
        fail_msg("%s: %s ends with status %d", format->name, sample->name, status);
    if (!bad && status != SDR_OK)
        fail_msg("%s refuses its sample %s: %s", format->name, sample->name, sdr_error());
    if (!bad && (data->rows.count == 0 || data->rows.features == 0))
        fail_msg("%s finds nothing in its sample %s", format->name, sample->name);
    good_samples += !bad;
    sdr_data_destroy(data);
}

static void a_format_reads_its_own_samples(void **state)
{
    (void)state;
    for (const struct sdr_format *const *format = sdr_format_table; *format; format++) {
        good_samples = 0;
        over_samples_of(*format, check_acceptance);
        if (good_samples == 0)
            fail_msg("format %s has no sample that it should read", (*format)->name);
    }
}

static void check_threads(const struct sdr_format *format, const struct sample *sample)
{
    struct sdr_data *one = NULL, *three = NULL;
    enum sdr_status first = read_bytes(format->name, sample->bytes, sample->count, 1, &one);
    enum sdr_status second = read_bytes(format->name, sample->bytes, sample->count, 3, &three);
    assert_int_equal(first, second);
    if (first == SDR_OK)
        assert_same_data(one, three);
    sdr_data_destroy(one);
    sdr_data_destroy(three);
}

static void threads_do_not_change_what_is_read(void **state)
{
    (void)state;
    over_samples(check_threads);
}

/* Rows are what plugin.h says they are, whatever bytes they were made from. */
static void expect_sound(const struct sdr_data *data)
{
    const struct sdr_rows *rows = &data->rows;
    for (uint64_t r = 0; r < rows->count && rows->start; r++) {
        struct sdr_sparse_row row = sdr_sparse_row(rows, r);
        for (uint32_t i = 0; i < row.n; i++) {
            assert_true(row.x[i] - row.x[i] == 0);
            assert_true(sdr_row_index(&row, i) < rows->features);
            assert_true(i == 0 || sdr_row_index(&row, i) > sdr_row_index(&row, i - 1));
        }
    }
    for (uint64_t r = 0; r < rows->count && rows->dense; r++)
        for (uint32_t j = 0; j < rows->features; j++)
            assert_true(sdr_dense_row(rows, r)[j] - sdr_dense_row(rows, r)[j] == 0);
}

static void expect_sound_or_refused(const struct sdr_format *format, const char *bytes,
                                    size_t count)
{
    struct sdr_data *data = NULL;
    enum sdr_status status = read_bytes(format->name, bytes, count, 1, &data);
    if (status == SDR_OK) {
        expect_sound(data);
        sdr_data_destroy(data);
        return;
    }
    assert_true(status == SDR_BAD_DATA || status == SDR_USAGE);
    assert_null(data);
    assert_true(strlen(sdr_error()) > 10);
    assert_null(strchr(sdr_error(), '\n'));
    if (status == SDR_BAD_DATA && !strstr(sdr_error(), "sample"))
        fail_msg("%s: the file is not named: %s", format->name, sdr_error());
}

static void check_prefixes(const struct sdr_format *format, const struct sample *sample)
{
    size_t step = sample->count / 40 + 1;
    for (size_t count = 0; count < sample->count; count += step)
        expect_sound_or_refused(format, sample->bytes, count);
}

static void a_file_cut_off_is_sound_or_refused_by_name(void **state)
{
    (void)state;
    over_samples(check_prefixes);
}

static void check_damage(const struct sdr_format *format, const struct sample *sample)
{
    static const char put[] = {0, '\n', '9', '-', ':', ',', '"', 'e', (char)0xFF};
    size_t step = sample->count / 25 + 1;
    for (size_t at = 0; at < sample->count; at += step)
        for (size_t i = 0; i < sizeof put; i++) {
            char kept = sample->bytes[at];
            sample->bytes[at] = put[i];
            expect_sound_or_refused(format, sample->bytes, sample->count);
            sample->bytes[at] = kept;
        }
}

static void a_damaged_file_is_sound_or_refused_by_name(void **state)
{
    (void)state;
    over_samples(check_damage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_format_is_complete),
        cmocka_unit_test(a_format_reads_its_own_samples),
        cmocka_unit_test(threads_do_not_change_what_is_read),
        cmocka_unit_test(a_file_cut_off_is_sound_or_refused_by_name),
        cmocka_unit_test(a_damaged_file_is_sound_or_refused_by_name),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
