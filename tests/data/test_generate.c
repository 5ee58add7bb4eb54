/* Generators: the same options give the same bytes, longer files begin with shorter ones, and the
   data is what its truth says. */
#include "base/fault.h"
#include "run/registry.h"
#include "whole.h"
#include <jansson.h>
#include <math.h>

static const struct sdr_generator *generator(const char *name)
{
    for (size_t i = 0; sdr_generator_table[i]; i++)
        if (strcmp(sdr_generator_table[i]->name, name) == 0)
            return sdr_generator_table[i];
    fail_msg("no generator '%s'", name);
    return NULL;
}

static char *make(const char *kind, const struct sdr_generate_options *options, const char *path,
                  size_t *count)
{
    char *bytes;
    enum sdr_status status = generator(kind)->make(options, path);
    if (status != SDR_OK)
        fail_msg("%s: %s", kind, sdr_error());
    assert_int_equal(sdr_file_load(path, 1 << 30, &bytes, count), SDR_OK);
    return bytes;
}

static void remove_all(const char *path)
{
    static const char *const endings[] = {"", ".truth.json", ".labels.npy", ".truth.pgm"};
    char name[200];
    for (size_t i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "%s%s", path, endings[i]);
        unlink(name);
    }
}

static json_t *load_truth(const char *path)
{
    char name[200];
    snprintf(name, sizeof name, "%s.truth.json", path);
    json_t *truth = json_load_file(name, 0, NULL);
    assert_non_null(truth);
    return truth;
}

static void longer_files_begin_with_shorter_ones(void **unused)
{
    static const char *const kinds[] = {"sparse-classification",
                                        "dense-classification",
                                        "sparse-regression",
                                        "dense-regression",
                                        "ratings",
                                        "clusters",
                                        "documents"};
    (void)unused;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        struct sdr_generate_options options = {
            .rows = 700, .features = 200, .nnz = 10, .classes = 3, .seed = 5, .noise = 0.1};
        size_t count[4];
        char *bytes[4];
        const char *path = test_path(strcmp(kinds[k], "ratings") == 0 ? "g.txt" : "g.svm");
        bytes[0] = make(kinds[k], &options, path, &count[0]);
        bytes[1] = make(kinds[k], &options, path, &count[1]);
        options.rows = 1001;
        bytes[2] = make(kinds[k], &options, path, &count[2]);
        options.seed = 6;
        bytes[3] = make(kinds[k], &options, path, &count[3]);
        assert_int_equal(count[0], count[1]);
        assert_memory_equal(bytes[0], bytes[1], count[0]);
        assert_true(count[2] > count[0]);
        assert_memory_equal(bytes[0], bytes[2], count[0]);
        assert_true(count[3] != count[2] || memcmp(bytes[3], bytes[2], count[2]) != 0);
        for (int i = 0; i < 4; i++)
            sdr_release(bytes[i]);
        remove_all(path);
    }
}

/* Rows as they are read back, against the weights of the truth. */
static double score(const struct sdr_data *data, uint64_t row, const double *weight)
{
    double sum = 0;
    for (uint32_t j = 0; j < data->rows.features; j++)
        sum += weight[j] * cell(data, row, j);
    return sum;
}

static void load_weights(json_t *truth, double *weight, size_t count)
{
    json_t *pairs = json_object_get(truth, "weights"), *pair;
    size_t i;
    assert_true(json_array_size(pairs) > 0);
    json_array_foreach(pairs, i, pair)
    {
        json_int_t feature = json_integer_value(json_array_get(pair, 0));
        assert_true(feature >= 0 && (size_t)feature < count);
        weight[feature] = json_number_value(json_array_get(pair, 1));
    }
}

static void sparse_classification_is_what_was_asked(void **unused)
{
    enum { ROWS = 4000, FEATURES = 2000 };
    struct sdr_generate_options options = {
        .rows = ROWS, .features = FEATURES, .nnz = 40, .classes = 2, .seed = 3, .noise = 0.1};
    static double weight[FEATURES];
    const char *path = test_path("s.svm");
    (void)unused;
    assert_int_equal(generator("sparse-classification")->make(&options, path), SDR_OK);
    struct sdr_data *data = read_good(path, NULL);
    json_t *truth = load_truth(path);
    load_weights(truth, weight, FEATURES);
    double threshold = json_number_value(json_object_get(truth, "threshold"));
    uint64_t right = 0, positive = 0;
    assert_int_equal(data->rows.count, ROWS);
    for (uint64_t r = 0; r < ROWS; r++) {
        double square = 0;
        for (uint32_t j = 0; j < data->rows.features; j++)
            square += (double)cell(data, r, j) * cell(data, r, j);
        assert_true(fabs(square - 1) < 1e-3);
        right += (score(data, r, weight) > threshold) == (data->rows.label[r] > 0);
        positive += data->rows.label[r] > 0;
    }
    assert_true(fabs((double)data->nonzeros / ROWS - 40) < 1.5);
    assert_true(fabs((double)right / ROWS - 0.9) < 0.02);
    assert_true(fabs((double)positive / ROWS - 0.476) < 0.04);
    json_decref(truth);
    sdr_data_destroy(data);
    remove_all(path);
}

static void regression_noise_is_its_standard_deviation(void **unused)
{
    static const char *const kinds[] = {"dense-regression", "sparse-regression"};
    enum { ROWS = 2000, FEATURES = 50 };
    (void)unused;
    for (int k = 0; k < 2; k++) {
        struct sdr_generate_options options = {
            .rows = ROWS, .features = FEATURES, .nnz = 10, .seed = 1, .noise = 0.5};
        double weight[FEATURES] = {0}, squares = 0;
        const char *path = test_path("r.csv");
        struct sdr_data *data;
        assert_int_equal(generator(kinds[k])->make(&options, path), SDR_OK);
        data = read_good(path, NULL);
        json_t *truth = load_truth(path);
        load_weights(truth, weight, FEATURES);
        double bias = k == 0 ? json_number_value(json_object_get(truth, "bias")) : 0;
        assert_int_equal(data->rows.features, FEATURES);
        for (uint64_t r = 0; r < ROWS; r++)
            squares += pow(data->rows.label[r] - score(data, r, weight) - bias, 2);
        assert_true(fabs(sqrt(squares / ROWS) - 0.5) < 0.03);
        json_decref(truth);
        sdr_data_destroy(data);
        remove_all(path);
    }
}

static void npy_and_text_hold_the_same_rows(void **unused)
{
    struct sdr_generate_options options = {
        .rows = 600, .features = 7, .classes = 4, .seed = 2, .noise = 0.3};
    const char *text = test_path("c.csv"), *array = test_path("c.npy");
    char labels[200];
    (void)unused;
    snprintf(labels, sizeof labels, "%s.labels.npy", array);
    assert_int_equal(generator("clusters")->make(&options, text), SDR_OK);
    assert_int_equal(generator("clusters")->make(&options, array), SDR_OK);
    struct sdr_data *a = read_good(text, NULL), *b = read_good(array, labels);
    assert_int_equal(a->rows.count, 600);
    assert_int_equal(b->rows.count, 600);
    assert_int_equal(a->schema.labels.count, 4);
    for (uint64_t r = 0; r < 600; r++) {
        assert_true(a->rows.label[r] == b->rows.label[r]);
        for (uint32_t j = 0; j < 7; j++)
            assert_true(fabsf(cell(a, r, j) - cell(b, r, j)) <= 0.6e-5f);
    }
    sdr_data_destroy(a);
    sdr_data_destroy(b);
    remove_all(text);
    remove_all(array);
}

/* Sparse rows fill every cell of an array: far more than their entries. */
static void sparse_rows_are_the_same_as_text_and_as_an_array(void **unused)
{
    struct sdr_generate_options options = {
        .rows = 30, .features = 5000, .nnz = 4, .classes = 2, .seed = 2, .noise = 0.1};
    const char *text = test_path("s.svm"), *array = test_path("s.npy");
    char labels[200];
    (void)unused;
    snprintf(labels, sizeof labels, "%s.labels.npy", array);
    assert_int_equal(generator("sparse-classification")->make(&options, text), SDR_OK);
    assert_int_equal(generator("sparse-classification")->make(&options, array), SDR_OK);
    struct sdr_data *a = read_good(text, NULL), *b = read_good(array, labels);
    assert_int_equal(b->rows.features, 5000);
    assert_int_equal(a->nonzeros, b->nonzeros);
    for (uint64_t r = 0; r < 30; r++) {
        assert_true(a->rows.label[r] == b->rows.label[r]);
        for (uint32_t j = 0; j < a->rows.features; j++)
            assert_true(fabsf(cell(a, r, j) - cell(b, r, j)) <= 0.6e-5f);
    }
    sdr_data_destroy(a);
    sdr_data_destroy(b);
    remove_all(text);
    remove_all(array);
}

static void ratings_are_distinct_pairs_in_half_stars(void **unused)
{
    enum { ROWS = 3000, FEATURES = 400 };
    struct sdr_generate_options options = {
        .rows = ROWS, .features = FEATURES, .nnz = 4, .seed = 9, .noise = 0.3};
    static unsigned char seen[FEATURES][FEATURES];
    const char *path = test_path("ratings.txt");
    size_t count;
    char *bytes = make("ratings", &options, path, &count);
    int rows = 0;
    (void)unused;
    for (char *line = strtok(bytes, "\n"); line; line = strtok(NULL, "\n"), rows++) {
        unsigned user, item;
        double rating;
        char rest;
        assert_int_equal(sscanf(line, "%u %u %lf%c", &user, &item, &rating, &rest), 3);
        assert_true(user < 350 && item < 50);
        assert_false(seen[user][item]++);
        assert_true(rating >= 0.5 && rating <= 5 && rating * 2 == floor(rating * 2));
    }
    assert_int_equal(rows, ROWS);
    sdr_release(bytes);
    remove_all(path);
}

static void documents_are_whole_counts_with_their_topic(void **unused)
{
    struct sdr_generate_options options = {
        .rows = 300, .features = 500, .nnz = 60, .classes = 5, .seed = 4};
    const char *path = test_path("d.svm");
    double words = 0;
    (void)unused;
    assert_int_equal(generator("documents")->make(&options, path), SDR_OK);
    struct sdr_data *data = read_good(path, NULL);
    assert_int_equal(data->rows.count, 300);
    assert_int_equal(data->schema.labels.count, 5);
    for (uint64_t i = 0; i < data->nonzeros; i++) {
        assert_true(data->rows.value[i] >= 1 && data->rows.value[i] == floorf(data->rows.value[i]));
        words += data->rows.value[i];
    }
    assert_true(fabs(words / 300 - 60) < 8);
    sdr_data_destroy(data);
    remove_all(path);
}

static void a_picture_is_brighter_inside_its_regions(void **unused)
{
    struct sdr_generate_options options = {.rows = 60, .features = 80, .seed = 7, .noise = 0.1};
    const char *path = test_path("p.pgm"), *idx = test_path("p.idx");
    char name[200], *truth;
    size_t count, truth_count;
    char *bytes = make("image", &options, path, &count);
    double sum[2] = {0, 0}, pixels[2] = {0, 0};
    (void)unused;
    snprintf(name, sizeof name, "%s.truth.pgm", path);
    assert_int_equal(sdr_file_load(name, 1 << 20, &truth, &truth_count), SDR_OK);
    assert_int_equal(count, truth_count);
    assert_memory_equal(bytes, "P5\n80 60\n255\n", 13);
    for (size_t i = 13; i < count; i++) {
        int region = (unsigned char)truth[i] == 255;
        sum[region] += (unsigned char)bytes[i];
        pixels[region]++;
    }
    assert_true(fabs(sum[0] / pixels[0] - 85) < 4 && fabs(sum[1] / pixels[1] - 170) < 4);
    sdr_release(bytes);
    sdr_release(truth);
    assert_int_equal(generator("image")->make(&options, idx), SDR_OK);
    struct sdr_data *data = read_good(idx, NULL);
    assert_int_equal(data->rows.count, 1);
    assert_int_equal(data->schema.dims[0], 60);
    assert_int_equal(data->schema.dims[1], 80);
    sdr_data_destroy(data);
    remove_all(path);
    remove_all(idx);
}

static void options_that_cannot_be_served_are_usage_errors(void **unused)
{
    static const struct {
        const char *kind, *ending;
        struct sdr_generate_options options;
    } cases[] = {
        {"sparse-classification", "x.svm", {.rows = 1, .features = 10, .nnz = 6}},
        {"sparse-classification", "x.zip", {.rows = 1, .features = 100, .nnz = 6}},
        {"dense-regression", "x.svm", {.rows = 0, .features = 10}},
        {"dense-regression", "x.svm", {.rows = 5, .features = 10, .noise = -1}},
        {"dense-classification", "x.svm", {.rows = 5, .features = 10, .classes = 2, .noise = 5}},
        {"sparse-classification", "x.svm", {.rows = 5, .classes = 2, .noise = 1.5}},
        {"ratings", "x.txt", {.rows = 1000, .features = 16}},
        {"ratings", "x.svm", {.rows = 10, .features = 400}},
        {"image", "x.csv", {.rows = 10, .features = 10}},
    };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *path = test_path(cases[i].ending);
        assert_int_equal(generator(cases[i].kind)->make(&cases[i].options, path), SDR_USAGE);
        assert_false(sdr_file_exists(path));
    }
}

static void a_failed_write_or_allocation_leaves_no_file(void **unused)
{
    static const enum sdr_fault faults[] = {SDR_FAULT_WRITE, SDR_FAULT_ALLOCATE};
    (void)unused;
    for (size_t g = 0; sdr_generator_table[g]; g++)
        for (int k = 0; k < 2; k++)
            for (uint64_t n = 1;; n++) {
                struct sdr_generate_options options = {
                    .rows = 20, .features = 64, .nnz = 4, .classes = 3, .seed = 1, .noise = 0.1};
                const char *kind = sdr_generator_table[g]->name;
                const char *path = test_path(strcmp(kind, "image") == 0     ? "fault.pgm"
                                             : strcmp(kind, "ratings") == 0 ? "fault.txt"
                                                                            : "fault.npy");
                sdr_fault_arm(faults[k], n);
                enum sdr_status status = sdr_generator_table[g]->make(&options, path);
                bool reached = sdr_fault_count(faults[k]) >= n;
                sdr_fault_arm(faults[k], 0);
                /* Memory may also lack where the folder of a whole file is synced: no failure. */
                if (!reached || status != SDR_RUNTIME)
                    assert_int_equal(status, SDR_OK);
                remove_all(path);
                if (!reached)
                    break;
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(longer_files_begin_with_shorter_ones),
        cmocka_unit_test(sparse_classification_is_what_was_asked),
        cmocka_unit_test(regression_noise_is_its_standard_deviation),
        cmocka_unit_test(npy_and_text_hold_the_same_rows),
        cmocka_unit_test(sparse_rows_are_the_same_as_text_and_as_an_array),
        cmocka_unit_test(ratings_are_distinct_pairs_in_half_stars),
        cmocka_unit_test(documents_are_whole_counts_with_their_topic),
        cmocka_unit_test(a_picture_is_brighter_inside_its_regions),
        cmocka_unit_test(options_that_cannot_be_served_are_usage_errors),
        cmocka_unit_test(a_failed_write_or_allocation_leaves_no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
