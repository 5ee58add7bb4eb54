/* Reading: the data does not depend on threads, chunks, packing or where it came from. */
#include "data/read.h"
#include "files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <zlib.h>

static char notes[4096];
static unsigned reports;

static void listen(void *context, const struct sdr_report *report)
{
    (void)context;
    reports++;
    if (report->kind == SDR_REPORT_NOTE) {
        size_t used = strlen(notes);
        snprintf(notes + used, sizeof notes - used, "%s\n", report->note);
    }
}

static struct sdr_data_options options_with(int threads)
{
    notes[0] = 0;
    return (struct sdr_data_options){
        .base = -1, .threads = threads, .format_rest = "", .report = listen};
}

static enum sdr_status read_one(const struct sdr_data_options *options, const char *path,
                                size_t chunk, struct sdr_data **data)
{
    return sdr_data_read_chunked(options, &path, 1, NULL, chunk, data);
}

/* LIBSVM text with rows of very different lengths, comments and empty lines. */
static char *make_text(int rows, size_t *count)
{
    char *text = malloc((size_t)rows * 400 + 1000), *at = text;
    for (int r = 0; r < rows; r++) {
        at += sprintf(at, "%d", r * 7919 % 5 - 1);
        int entries = r % 50 == 49 ? 40 : r % 4;
        for (int i = 0; i < entries; i++)
            at +=
                sprintf(at, " %d:%.4g", 1 + i * 3 + (r * 31 + i) % 3, (r * 17 + i * 5) % 23 / 7.0);
        at += sprintf(at, r % 13 ? "\n" : " # comment\n\n");
    }
    *count = (size_t)(at - text);
    return text;
}

static void threads_and_chunks_do_not_change_the_data(void **state)
{
    static const int threads[] = {1, 2, 3, 7};
    static const size_t chunks[] = {1, 2, 7, 61, 1000, 4099, 1 << 20};
    size_t count;
    char *text = make_text(600, &count);
    const char *path = write_file("a.svm", text, count);
    struct sdr_data *first, *data;
    (void)state;
    struct sdr_data_options options = options_with(1);
    assert_int_equal(read_one(&options, path, SDR_CHUNK_BYTES, &first), SDR_OK);
    assert_int_equal(first->rows.count, 600);
    for (int last = 0; last < 2; last++) { /* with and without a newline at the end */
        path = write_file("a.svm", text, count - (size_t)last);
        for (size_t t = 0; t < 4; t++)
            for (size_t c = 0; c < 7; c++) {
                options = options_with(threads[t]);
                assert_int_equal(read_one(&options, path, chunks[c], &data), SDR_OK);
                assert_same_data(first, data);
                sdr_data_destroy(data);
            }
    }
    sdr_data_destroy(first);
    free(text);
}

static void the_same_rows_come_from_text_gzip_stdin_cache_and_stream(void **state)
{
    size_t count;
    char *text = make_text(500, &count), caches[300], scratch[300];
    struct sdr_data *first, *data;
    struct sdr_data_options options = options_with(2);
    (void)state;
    const char *path = write_file("same.svm", text, count), *packed = path_of("same.svm.gz");
    assert_int_equal(read_one(&options, path, 1000, &first), SDR_OK);
    gzFile gz = gzopen(packed, "wb");
    assert_int_equal(gzwrite(gz, text, (unsigned)count), count);
    gzclose(gz);
    assert_int_equal(read_one(&options, packed, 1000, &data), SDR_OK);
    assert_same_data(first, data);
    sdr_data_destroy(data);

    int kept = dup(STDIN_FILENO), file = open(packed, O_RDONLY);
    dup2(file, STDIN_FILENO);
    close(file);
    enum sdr_status status = read_one(&options, "-", 1000, &data);
    dup2(kept, STDIN_FILENO);
    close(kept);
    assert_int_equal(status, SDR_OK);
    assert_non_null(strstr(notes, "<stdin>: reading as libsvm"));
    assert_same_data(first, data);
    sdr_data_destroy(data);

    snprintf(caches, sizeof caches, "%s", path_of("caches"));
    options.cache = caches;
    for (int pass = 0; pass < 2; pass++) {
        notes[0] = 0;
        assert_int_equal(read_one(&options, path, 1000, &data), SDR_OK);
        assert_int_equal(strstr(notes, "using cache") != NULL, pass);
        assert_int_equal(data->map != NULL, pass);
        assert_same_data(first, data);
        assert_string_equal(data->name, path);
        sdr_data_destroy(data);
        assert_int_equal(files_in(caches), 1);
    }
    options.cache = NULL;
    snprintf(scratch, sizeof scratch, "%s", path_of("scratch"));
    assert_int_equal(sdr_folder_make(scratch), SDR_OK);
    options.scratch = scratch;
    options.memory = 3000;
    assert_int_equal(read_one(&options, path, 100, &data), SDR_OK);
    assert_true(data->streams);
    assert_same_data(first, data);
    assert_int_equal(files_in(scratch), 0);
    sdr_data_destroy(data);
    sdr_data_destroy(first);
    free(text);
}

static void a_damaged_or_stale_cache_is_made_anew(void **state)
{
    size_t count;
    char *text = make_text(100, &count), caches[300], command[1000];
    struct sdr_data *first, *data;
    struct sdr_data_options options = options_with(1);
    (void)state;
    const char *path = write_file("c.svm", text, count);
    snprintf(caches, sizeof caches, "%s", path_of("more-caches"));
    options.cache = caches;
    assert_int_equal(read_one(&options, path, 1000, &first), SDR_OK);
    snprintf(command, sizeof command,
             "printf x | dd of=$(ls %s/*.sdc) bs=1 seek=1500 conv=notrunc 2>/dev/null", caches);
    assert_int_equal(system(command), 0);
    notes[0] = 0;
    assert_int_equal(read_one(&options, path, 1000, &data), SDR_OK);
    assert_non_null(strstr(notes, "damaged"));
    assert_non_null(strstr(notes, "made anew"));
    assert_same_data(first, data);
    sdr_data_destroy(data);
    notes[0] = 0;
    assert_int_equal(read_one(&options, path, 1000, &data), SDR_OK);
    assert_non_null(strstr(notes, "using cache"));
    sdr_data_destroy(data);
    /* Another way to read it is another file. */
    options.base = 0;
    notes[0] = 0;
    assert_int_equal(read_one(&options, path, 1000, &data), SDR_OK);
    assert_null(strstr(notes, "using cache"));
    assert_int_equal(data->rows.features, first->rows.features + 1);
    sdr_data_destroy(data);
    assert_int_equal(files_in(caches), 2);
    /* Another content takes the place of the old one. */
    options.base = -1;
    write_text("c.svm", "1 1:1\n0 2:1\n");
    for (int pass = 0; pass < 2; pass++) {
        notes[0] = 0;
        assert_int_equal(read_one(&options, path_of("c.svm"), 1000, &data), SDR_OK);
        assert_int_equal(data->rows.count, 2);
        assert_int_equal(strstr(notes, "stale") && strstr(notes, "made anew"), !pass);
        assert_int_equal(strstr(notes, "using cache") != NULL, pass);
        assert_int_equal(files_in(caches), 2);
        sdr_data_destroy(data);
    }
    sdr_data_destroy(first);
    free(text);
}

static void a_cache_file_is_data_too(void **state)
{
    struct sdr_data *train, *test, *data;
    struct sdr_data_options options = options_with(1);
    char path[300];
    (void)state;
    assert_int_equal(read_one(&options, write_text("w4.svm", "1 1:2 4:3\n0 2:5\n"), 1000, &train),
                     SDR_OK);
    assert_int_equal(read_one(&options, write_text("w6.svm", "1 2:1 6:3\n"), 1000, &test), SDR_OK);
    snprintf(path, sizeof path, "%s", path_of("w6.sdc"));
    assert_int_equal(sdr_cache_write(test, path), SDR_OK);
    assert_int_equal(read_one(&options, path, 1000, &data), SDR_OK);
    assert_same_data(test, data);
    sdr_data_destroy(data);
    /* With the schema of the training data: its width, as if it came from text. */
    const char *const text = path_of("w6.svm"), *const cached = path;
    struct sdr_data *from_text, *from_cache;
    assert_int_equal(sdr_data_read(&options, &text, 1, &train->schema, &from_text), SDR_OK);
    assert_int_equal(sdr_data_read(&options, &cached, 1, &train->schema, &from_cache), SDR_OK);
    assert_int_equal(from_text->rows.features, 4);
    assert_int_equal(from_text->unseen, 1);
    assert_same_data(from_text, from_cache);
    const char *both[] = {path, path};
    assert_int_equal(sdr_data_read(&options, both, 2, NULL, &data), SDR_USAGE);
    sdr_data_destroy(from_text);
    sdr_data_destroy(from_cache);
    sdr_data_destroy(test);
    sdr_data_destroy(train);
}

static void options_that_do_nothing_for_the_format_are_refused(void **state)
{
    static const struct {
        const char *name, *text, *words;
        struct sdr_data_options options;
    } cases[] = {
        {"o.svm", "1 1:1\n", "--labels does nothing for libsvm data", {.labels = "y", .base = -1}},
        {"o.svm",
         "1 1:1\n",
         "--label does nothing for libsvm data (it is for csv)",
         {.label = "y", .base = -1}},
        {"o.svm",
         "1 1:1\n",
         "--missing does nothing for libsvm data",
         {.missing = SDR_MISSING_MEAN, .base = -1}},
        {"o.csv",
         "a,y\n1,2\n",
         "--labels does nothing for csv data, which takes --label",
         {.labels = "y", .base = -1}},
        {"o.csv",
         "a,y\n1,2\n",
         "--bits does nothing for csv data (it is for libsvm, vw)",
         {.bits = 10, .base = -1}},
        {"o.csv", "a,y\n1,2\n", "--base does nothing for csv data (it is for libsvm)", {.base = 0}},
        {"o.vw", "1 | a\n", "--weight does nothing for vw data", {.weight = "w", .base = -1}},
        {"o.triples",
         "a b 3\n",
         "--ignore does nothing for triples data",
         {.ignore = "w", .base = -1}},
    };
    struct sdr_data *data, *train;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sdr_data_options options = cases[i].options;
        options.format_rest = "";
        options.threads = 1;
        assert_int_equal(read_one(&options, write_text(cases[i].name, cases[i].text), 100, &data),
                         SDR_USAGE);
        if (!strstr(sdr_error(), cases[i].words))
            assert_string_equal(sdr_error(), cases[i].words);
    }
    /* A cache file takes none; other data is read as the first was, whatever was typed for it. */
    struct sdr_data_options options = options_with(1);
    const char *path = write_text("o.svm", "1 1:1\n"), *cache = path_of("o.sdc");
    assert_int_equal(read_one(&options, path, 100, &train), SDR_OK);
    assert_int_equal(sdr_cache_write(train, cache), SDR_OK);
    options.bits = 10;
    assert_int_equal(read_one(&options, cache, 100, &data), SDR_USAGE);
    assert_non_null(strstr(sdr_error(), "--bits does nothing for .sdc data"));
    options.label = "y";
    assert_int_equal(sdr_data_read(&options, &path, 1, &train->schema, &data), SDR_OK);
    sdr_data_destroy(data);
    sdr_data_destroy(train);
}

static void named_columns_are_not_found_in_other_formats(void **state)
{
    struct sdr_data *train, *data;
    struct sdr_data_options options = options_with(1);
    (void)state;
    assert_int_equal(read_one(&options, write_text("n.csv", "a,b,y\n1,2,1\n3,4,0\n"), 100, &train),
                     SDR_OK);
    const char *path = write_text("n.svm", "1 1:1\n"), *cache = path_of("n.sdc");
    assert_int_equal(sdr_data_read(&options, &path, 1, &train->schema, &data), SDR_BAD_DATA);
    assert_non_null(strstr(sdr_error(), "columns by name; libsvm data has none"));
    assert_int_equal(read_one(&options, path, 100, &data), SDR_OK);
    assert_int_equal(sdr_cache_write(data, cache), SDR_OK);
    sdr_data_destroy(data);
    assert_int_equal(sdr_data_read(&options, &cache, 1, &train->schema, &data), SDR_BAD_DATA);
    assert_non_null(strstr(sdr_error(), "columns by name; libsvm data has none"));
    sdr_data_destroy(train);
}

/* Reads CSV text with the schema of other CSV text. */
static struct sdr_data *read_after(const char *first, const char *second, bool optional,
                                   enum sdr_status *status)
{
    struct sdr_data *train, *data;
    struct sdr_data_options options = options_with(1);
    assert_int_equal(read_one(&options, write_text("l1.csv", first), 100, &train), SDR_OK);
    const char *path = write_text("l2.csv", second);
    options.labels_optional = optional;
    *status = sdr_data_read(&options, &path, 1, &train->schema, &data);
    sdr_data_destroy(train);
    return data;
}

static void labels_the_model_does_not_know_are_no_error(void **state)
{
    static const char words[] = "a,y\n1,cat\n2,dog\n", numbers[] = "a,y\n1,5\n2,6\n";
    enum sdr_status status;
    struct sdr_data *data;
    (void)state;
    for (int optional = 0; optional < 2; optional++) {
        data = read_after(words, "a,y\n1,owl\n2,dog\n", optional, &status);
        assert_int_equal(status, SDR_OK);
        assert_true(data->has_labels);
        assert_memory_equal(data->rows.label, ((float[]){SDR_MISSING_ROW_LABEL, 1}), 8);
        sdr_data_destroy(data);
    }
    data = read_after(numbers, words, true, &status);
    assert_int_equal(status, SDR_OK);
    assert_false(data->has_labels);
    sdr_data_destroy(data);
    assert_null(read_after(numbers, words, false, &status));
    assert_int_equal(status, SDR_BAD_DATA);
    /* From a cache file, where the kind of the labels is settled. */
    struct sdr_data *train;
    struct sdr_data_options options = options_with(1);
    assert_int_equal(read_one(&options, write_text("l.csv", words), 100, &data), SDR_OK);
    assert_int_equal(read_one(&options, write_text("l.csv", numbers), 100, &train), SDR_OK);
    const char *cache = path_of("l.sdc");
    assert_int_equal(sdr_cache_write(data, cache), SDR_OK);
    sdr_data_destroy(data);
    assert_int_equal(sdr_data_read(&options, &cache, 1, &train->schema, &data), SDR_BAD_DATA);
    options.labels_optional = true;
    assert_int_equal(sdr_data_read(&options, &cache, 1, &train->schema, &data), SDR_OK);
    assert_false(data->has_labels);
    sdr_data_destroy(data);
    sdr_data_destroy(train);
}

static void labels_a_float_cannot_hold_are_numbers_but_no_classes(void **state)
{
    static const struct {
        const char *name, *text;
        bool many;
    } cases[] = {
        {"x.svm", "1 1:1\n 16777217 1:1\n", true},
        {"x.svm", "-123456789012345678901234567890 1:1\n", true},
        {"x.csv", "a,y\n1,16777216\n2,16777217\n", true},
        {"x.vw", "16777217 | a\n", true},
        {"x.triples", "a b 16777219\n", true},
        {"x.svm", "16777217.0 1:1\n", true},
        {"x.svm", "1 1:1\n20000000.25 1:1\n", true},
        {"x.svm", "16777216 1:1\n-20000000 1:1\n16777218.00 1:1\n1e30 1:1\n7.5 1:1\n", false},
    };
    struct sdr_data *data;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sdr_data_options options = options_with(1);
        const char *path = write_text(cases[i].name, cases[i].text);
        assert_int_equal(read_one(&options, path, 100, &data), SDR_OK);
        assert_int_equal(data->schema.many_labels, cases[i].many);
        sdr_data_destroy(data);
    }
}

static void standard_input_is_read_once(void **state)
{
    static const char *const twice[] = {"-", "-"};
    struct sdr_data_options options = options_with(1);
    struct sdr_data *data;
    (void)state;
    assert_int_equal(sdr_data_read(&options, twice, 2, NULL, &data), SDR_USAGE);
    options.labels = "-";
    assert_int_equal(sdr_data_read(&options, twice, 1, NULL, &data), SDR_USAGE);
}

static void several_files_are_one_data_set(void **state)
{
    struct sdr_data *whole, *parts;
    char pattern[300], first[300], second[300];
    (void)state;
    snprintf(first, sizeof first, "%s", write_text("part-1", "1 1:1\n0 2:2"));
    snprintf(second, sizeof second, "%s", write_text("part-2", "1 3:3\n0 9:4\n"));
    write_text("part-3", "");
    snprintf(pattern, sizeof pattern, "%s", path_of("part-*"));
    struct sdr_data_options options = options_with(3);
    assert_int_equal(
        read_one(&options, write_text("whole", "1 1:1\n0 2:2\n1 3:3\n0 9:4\n"), 4, &whole), SDR_OK);
    assert_int_equal(read_one(&options, pattern, 4, &parts), SDR_OK);
    assert_same_data(whole, parts);
    assert_string_equal(parts->name, first);
    sdr_data_destroy(parts);
    const char *both[] = {first, second};
    assert_int_equal(sdr_data_read(&options, both, 2, NULL, &parts), SDR_OK);
    assert_same_data(whole, parts);
    sdr_data_destroy(parts);
    sdr_data_destroy(whole);
    /* A file whose name looks like a pattern is that file; a pattern without a file is named. */
    assert_int_equal(read_one(&options, write_text("odd[1]*.svm", "1 1:1\n"), 100, &parts), SDR_OK);
    sdr_data_destroy(parts);
    assert_int_equal(read_one(&options, path_of("none-*.svm"), 100, &parts), SDR_RUNTIME);
    assert_non_null(strstr(sdr_error(), "none-*.svm"));
}

static void errors_name_file_line_and_column(void **state)
{
    size_t count;
    char *text = make_text(300, &count), expected[400];
    struct sdr_data *data;
    int lines = 0;
    (void)state;
    for (size_t i = 0; i < count; i++)
        lines += text[i] == '\n';
    strcpy(text + count, "1 3:oops\n1 4:also\n");
    char path[300];
    snprintf(path, sizeof path, "%s", write_file("bad.svm", text, strlen(text)));
    snprintf(expected, sizeof expected, "%s:%d:", path, lines + 1);
    for (int threads = 1; threads < 5; threads++)
        for (size_t chunk = 5; chunk < 100000; chunk *= 11) {
            struct sdr_data_options options = options_with(threads);
            assert_int_equal(read_one(&options, path, chunk, &data), SDR_BAD_DATA);
            assert_null(data);
            if (strncmp(sdr_error(), expected, strlen(expected)) != 0)
                assert_string_equal(sdr_error(), expected);
        }
    /* Lines count from the begin of the second file. */
    char good[300];
    snprintf(good, sizeof good, "%s", write_text("good.svm", "1 1:1\n1 2:1\n"));
    snprintf(path, sizeof path, "%s", write_text("bad2.svm", "1 1:1\n1 2:x\n"));
    const char *both[] = {good, path};
    struct sdr_data_options options = options_with(2);
    assert_int_equal(sdr_data_read_chunked(&options, both, 2, NULL, 3, &data), SDR_BAD_DATA);
    snprintf(expected, sizeof expected, "%s:2:", path);
    assert_memory_equal(sdr_error(), expected, strlen(expected));
    free(text);
}

static void files_without_rows_are_refused(void **state)
{
    static const char *const texts[] = {"", "\n\n", "# nothing\n"};
    struct sdr_data *data;
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct sdr_data_options options = options_with(1);
        assert_int_equal(read_one(&options, write_text("none.svm", texts[i]), 100, &data),
                         SDR_BAD_DATA);
        assert_non_null(strstr(sdr_error(), "none.svm:1:1: no rows"));
    }
    struct sdr_data_options options = options_with(1);
    assert_int_equal(read_one(&options, path_of("absent.svm"), 100, &data), SDR_RUNTIME);
    options.format = "libsvn";
    assert_int_equal(read_one(&options, write_text("x.svm", "1 1:1\n"), 100, &data), SDR_USAGE);
    assert_non_null(strstr(sdr_error(), "libsvm"));
}

static void the_callers_arrays_are_checked_and_borrowed(void **state)
{
    const uint64_t start[] = {0, 2, 3};
    uint32_t column[] = {0, 2, 1};
    float value[] = {1, 2, 3}, label[] = {1, 0}, x[] = {1, 0, 0, 2, 9, 9};
    struct sdr_data *data;
    char *json;
    (void)state;
    assert_int_equal(sdr_data_csr(start, column, value, 2, 3, label, NULL, &data), SDR_OK);
    assert_ptr_equal(data->rows.index32, column);
    assert_int_equal(sdr_data_rows(data), 2);
    assert_int_equal(sdr_data_features(data), 3);
    assert_int_equal(sdr_data_nonzeros(data), 3);
    assert_int_equal(data->schema.labels.count, 2);
    assert_int_equal(sdr_data_inspect(data, &json), SDR_OK);
    assert_non_null(strstr(json, "\"layout\": \"sparse\""));
    sdr_string_free(json);
    sdr_data_destroy(data);
    column[1] = 0;
    assert_int_equal(sdr_data_csr(start, column, value, 2, 3, label, NULL, &data), SDR_BAD_DATA);
    column[1] = 3;
    assert_int_equal(sdr_data_csr(start, column, value, 2, 3, label, NULL, &data), SDR_BAD_DATA);
    column[1] = 2;
    value[2] = 1.0f / 0.0f;
    assert_int_equal(sdr_data_csr(start, column, value, 2, 3, label, NULL, &data), SDR_BAD_DATA);
    assert_null(data);
    assert_int_equal(sdr_data_dense(x, 2, 2, 3, label, label, &data), SDR_OK);
    assert_int_equal(sdr_data_nonzeros(data), 3);
    assert_int_equal(sdr_data_inspect(data, &json), SDR_OK);
    assert_non_null(strstr(json, "\"layout\": \"dense\""));
    sdr_string_free(json);
    sdr_data_destroy(data);
    label[1] = -1;
    assert_int_equal(sdr_data_dense(x, 2, 2, 3, NULL, label, &data), SDR_BAD_DATA);
    x[0] = 0.0f / 0.0f;
    assert_int_equal(sdr_data_dense(x, 2, 2, 3, NULL, NULL, &data), SDR_BAD_DATA);
}

static void every_failing_allocation_read_and_write_is_survived(void **state)
{
    size_t count;
    char *text = make_text(60, &count), caches[300], scratch[300], command[400];
    struct sdr_data *data;
    char path[300];
    (void)state;
    snprintf(path, sizeof path, "%s", write_file("fault.svm", text, count));
    snprintf(caches, sizeof caches, "%s", path_of("fault-caches"));
    snprintf(scratch, sizeof scratch, "%s", path_of("fault-scratch"));
    snprintf(command, sizeof command, "rm -rf '%s'", caches);
    assert_int_equal(sdr_folder_make(scratch), SDR_OK);
    for (int way = 0; way < 4; way++) {
        struct sdr_data_options options = options_with(way == 3 ? 3 : 1);
        options.memory = way == 1 ? 500 : 0;
        options.scratch = scratch;
        options.cache = way == 2 ? caches : NULL;
        for (enum sdr_fault kind = SDR_FAULT_ALLOCATE; kind <= SDR_FAULT_WRITE; kind++)
            for (uint64_t n = 1;; n++) {
                if (options.cache)
                    assert_int_equal(system(command), 0);
                notes[0] = 0;
                sdr_fault_arm(kind, n);
                enum sdr_status status = read_one(&options, path, 97, &data);
                bool struck = sdr_fault_count(kind) >= n;
                sdr_fault_arm(kind, 0);
                if (!struck) {
                    assert_int_equal(status, SDR_OK);
                } else if (status == SDR_OK) {
                    /* The cache file may be missing, and it is told; or a folder was not synced
                       behind a file that is in place. */
                    assert_true(options.cache || options.memory);
                    if (options.cache)
                        assert_true(strstr(notes, "no cache file") || files_in(caches) == 1);
                } else {
                    assert_int_equal(status, SDR_RUNTIME);
                }
                if (options.cache && status == SDR_OK && strstr(notes, "no cache file") &&
                    files_in(caches))
                    assert_int_equal(files_in(caches), 1); /* whole, or not there */
                assert_int_equal(files_in(scratch), 0);
                sdr_data_destroy(data);
                if (!struck)
                    break;
            }
    }
    free(text);
}

/* A table whose first line is longer than 64 KB, with a constant, an id and a leak: nothing but a
   note may be lost. */
static void failing_allocations_in_a_wide_table_are_survived(void **state)
{
    struct sdr_text text = {0};
    struct sdr_data *data;
    char path[300];
    (void)state;
    sdr_text_add(&text, "constant,id,leak,x%070000d,y\n", 7);
    for (int i = 0; i < 40; i++)
        sdr_text_add(&text, "1,k%d,%s,%d,%d\n", i, i % 2 ? "red" : "blue", i * i % 11, i % 2);
    assert_false(text.failed);
    snprintf(path, sizeof path, "%s", write_file("wide.csv", text.bytes, text.length));
    sdr_text_free(&text);
    struct sdr_data_options options = options_with(1);
    options.label = "y";
    for (uint64_t n = 1;; n++) {
        notes[0] = 0;
        sdr_fault_arm(SDR_FAULT_ALLOCATE, n);
        enum sdr_status status = read_one(&options, path, 1000, &data);
        bool struck = sdr_fault_count(SDR_FAULT_ALLOCATE) >= n;
        sdr_fault_arm(SDR_FAULT_ALLOCATE, 0);
        assert_true(status == SDR_OK || (struck && status == SDR_RUNTIME));
        if (status == SDR_OK)
            assert_int_equal(data->rows.count, 40);
        sdr_data_destroy(data);
        if (!struck)
            break;
    }
    assert_non_null(strstr(notes, "constant column: 'constant'"));
    assert_non_null(strstr(notes, "column 'id': 40 different texts in 40 rows; --ignore id"));
    assert_non_null(strstr(notes, "column 'leak' determines the label"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_and_chunks_do_not_change_the_data),
        cmocka_unit_test(the_same_rows_come_from_text_gzip_stdin_cache_and_stream),
        cmocka_unit_test(a_damaged_or_stale_cache_is_made_anew),
        cmocka_unit_test(a_cache_file_is_data_too),
        cmocka_unit_test(options_that_do_nothing_for_the_format_are_refused),
        cmocka_unit_test(named_columns_are_not_found_in_other_formats),
        cmocka_unit_test(labels_the_model_does_not_know_are_no_error),
        cmocka_unit_test(labels_a_float_cannot_hold_are_numbers_but_no_classes),
        cmocka_unit_test(standard_input_is_read_once),
        cmocka_unit_test(several_files_are_one_data_set),
        cmocka_unit_test(errors_name_file_line_and_column),
        cmocka_unit_test(files_without_rows_are_refused),
        cmocka_unit_test(the_callers_arrays_are_checked_and_borrowed),
        cmocka_unit_test(every_failing_allocation_read_and_write_is_survived),
        cmocka_unit_test(failing_allocations_in_a_wide_table_are_survived),
    };
    return cmocka_run_group_tests_name("read", tests, make_folder, remove_folder);
}
