/* The builder: rows depend neither on how they were cut into pieces nor on how much memory there
   is. */
#include "files.h"

#include <math.h>

static const struct sdr_data_options plain = {.base = -1, .threads = 1, .format_rest = ""};

/* One row of a test: entries end with value 0 and index 0; a text is a category. */
struct entry {
    uint32_t index;
    float value;
    const char *category;
};

struct table {
    struct sdr_piece piece;
    const struct sdr_data_options *options;
    const struct sdr_schema *known;
    struct sdr_schema schema;
    struct sdr_builder *builder;
    enum sdr_layout_wish wish;
    int base;
    uint32_t numbers;
    enum sdr_status status;
};

static void begin(struct table *t)
{
    t->schema = (struct sdr_schema){.base = t->base, .numbers = t->numbers, .features = t->numbers};
    if (!t->options)
        t->options = &plain;
    t->status = sdr_builder_create(t->options, t->known, &t->schema, t->wish, &t->builder);
}

static void add_entry(struct table *t, uint32_t index, float value, const char *category)
{
    struct sdr_piece *piece = &t->piece;
    if (t->status == SDR_OK)
        t->status = sdr_piece_reserve(piece, piece->entries + 1, piece->rows + 1);
    if (t->status == SDR_OK && category)
        t->status = sdr_piece_category(piece, category, strlen(category), &index);
    if (t->status != SDR_OK)
        return;
    piece->index_zero |= index == 0;
    if (!category && index + 1 > piece->features)
        piece->features = index + 1;
    piece->has_missing |= value != value;
    piece->index[piece->entries] = index;
    piece->value[piece->entries++] = value;
}

static void end_row(struct table *t, float label)
{
    struct sdr_piece *piece = &t->piece;
    if (t->status == SDR_OK)
        t->status = sdr_piece_reserve(piece, piece->entries + 1, piece->rows + 1);
    if (t->status == SDR_OK)
        t->status = sdr_piece_label_number(piece, label, NULL, 0);
    if (t->status != SDR_OK)
        return;
    piece->weight[piece->rows] = label + 10;
    piece->label[piece->rows] = label;
    piece->end[piece->rows++] = piece->entries;
}

static void flush(struct table *t)
{
    if (t->status == SDR_OK)
        t->status = sdr_builder_add(t->builder, &t->piece);
    sdr_piece_clear(&t->piece);
}

/* The data, or NULL with t->status. */
static struct sdr_data *finish(struct table *t)
{
    struct sdr_data *data = NULL;
    flush(t);
    sdr_piece_free(&t->piece);
    if (t->status == SDR_OK)
        t->status = sdr_allocate(&data, 1, sizeof *data, "test");
    if (t->status == SDR_OK)
        t->status = sdr_builder_finish(t->builder, data);
    else
        sdr_builder_destroy(t->builder);
    if (t->status != SDR_OK) {
        sdr_schema_free(&t->schema);
        sdr_data_destroy(data);
        return NULL;
    }
    data->schema = t->schema;
    return data;
}

static uint32_t index_at(const struct sdr_data *data, uint64_t i)
{
    return data->rows.index16 ? data->rows.index16[i] : data->rows.index32[i];
}

static void assert_entries(const struct sdr_data *data, const struct entry *expected, size_t count)
{
    assert_int_equal(data->nonzeros, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(index_at(data, i), expected[i].index);
        assert_true(data->rows.value[i] == expected[i].value);
    }
}

static void indices_count_from_one_unless_a_zero_shows_up(void **state)
{
    (void)state;
    for (int zero = 0; zero < 2; zero++)
        for (int base = -1; base < 2; base++) {
            struct table t = {.base = base};
            begin(&t);
            add_entry(&t, 1, 5, NULL);
            add_entry(&t, 4, 6, NULL);
            end_row(&t, 1);
            flush(&t);
            if (zero)
                add_entry(&t, 0, 7, NULL);
            add_entry(&t, 2, 8, NULL);
            end_row(&t, -1);
            struct sdr_data *data = finish(&t);
            if (base == 1 && zero) {
                assert_int_equal(t.status, SDR_BAD_DATA);
                continue;
            }
            assert_int_equal(t.status, SDR_OK);
            uint32_t first = base == 1 || (base == -1 && !zero);
            assert_int_equal(data->schema.base, first);
            assert_int_equal(data->rows.features, 5 - first);
            struct entry expected[] = {
                {1 - first, 5, 0}, {4 - first, 6, 0}, {0, 7, 0}, {2 - first, 8, 0}};
            if (!zero)
                expected[2] = expected[3];
            assert_entries(data, expected, 3 + (size_t)zero);
            sdr_data_destroy(data);
        }
}

static void indices_are_widened_once_there_are_more_than_65536_features(void **state)
{
    (void)state;
    /* 65536 from 1 fits 16 bits; if a 0 shows up later it no longer does. */
    for (int zero = 0; zero < 2; zero++)
        for (uint32_t largest = 65535; largest < 65538; largest++) {
            struct table t = {.base = -1};
            begin(&t);
            for (uint32_t i = 1; i < 10000; i += 2)
                add_entry(&t, i, (float)i, NULL);
            end_row(&t, 1);
            flush(&t);
            add_entry(&t, largest, 2, NULL);
            end_row(&t, 1);
            flush(&t);
            if (zero)
                add_entry(&t, 0, 3, NULL);
            end_row(&t, 1);
            struct sdr_data *data = finish(&t);
            assert_int_equal(t.status, SDR_OK);
            uint32_t features = largest + (uint32_t)zero;
            assert_int_equal(data->rows.features, features);
            assert_int_equal(data->rows.index16 != NULL, features <= 65536);
            assert_int_equal(data->rows.index32 != NULL, features > 65536);
            for (uint32_t i = 0; i < 5000; i++)
                assert_int_equal(index_at(data, i), 2 * i + (uint32_t)zero);
            assert_int_equal(index_at(data, 5000), largest - !zero);
            sdr_data_destroy(data);
        }
}

static void zeros_are_left_out(void **state)
{
    struct table t = {.base = 0};
    (void)state;
    begin(&t);
    add_entry(&t, 1, 0, NULL);
    add_entry(&t, 2, 3, NULL);
    add_entry(&t, 9, -0.0f, NULL);
    end_row(&t, 1);
    add_entry(&t, 0, 0, NULL);
    end_row(&t, 1);
    struct sdr_data *data = finish(&t);
    assert_entries(data, (struct entry[]){{2, 3, 0}}, 1);
    assert_int_equal(data->rows.features, 10); /* they still tell how wide rows are */
    assert_int_equal(data->rows.start[1], 1);
    assert_int_equal(data->rows.start[2], 1);
    sdr_data_destroy(data);
}

static void categories_follow_the_numbers_in_order_of_appearance(void **state)
{
    struct table t = {.base = 0, .numbers = 2};
    (void)state;
    begin(&t);
    add_entry(&t, 0, 1.5f, NULL);
    add_entry(&t, 0, 1, "c=red");
    add_entry(&t, 0, 1, "d=x");
    add_entry(&t, 1, 2.5f, NULL);
    end_row(&t, 0);
    flush(&t);
    add_entry(&t, 0, 1, "d=x");
    add_entry(&t, 0, 1, "c=blue");
    end_row(&t, 1);
    add_entry(&t, 0, 1, "c=blue");
    add_entry(&t, 0, 1, "c=red");
    end_row(&t, 1);
    struct sdr_data *train = finish(&t);
    assert_entries(train,
                   (struct entry[]){{0, 1.5f, 0},
                                    {1, 2.5f, 0},
                                    {2, 1, 0},
                                    {3, 1, 0},
                                    {3, 1, 0},
                                    {4, 1, 0},
                                    {2, 1, 0},
                                    {4, 1, 0}},
                   8);
    assert_int_equal(train->rows.features, 5);
    assert_int_equal(train->schema.numbers, 2);
    assert_string_equal(train->schema.category.text[2], "c=blue");

    /* With a known schema what it does not know is left out and counted. */
    struct table u = {.base = 0, .known = &train->schema};
    begin(&u);
    add_entry(&u, 0, 1, "c=green");
    add_entry(&u, 0, 1, "c=blue");
    add_entry(&u, 1, 4, NULL);
    end_row(&u, 1);
    struct sdr_data *test = finish(&u);
    assert_entries(test, (struct entry[]){{1, 4, 0}, {4, 1, 0}}, 2);
    assert_int_equal(test->unseen, 1);
    assert_int_equal(test->rows.features, 5);
    sdr_data_destroy(test);
    sdr_data_destroy(train);
}

static void long_rows_of_categories_are_sorted(void **state)
{
    struct table t = {.base = 0};
    char text[20];
    (void)state;
    begin(&t);
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < 500; i++) {
            snprintf(text, sizeof text, "t%d", (i * 7 + pass) % 500);
            add_entry(&t, 0, 1, text);
        }
        end_row(&t, 1);
    }
    struct sdr_data *data = finish(&t);
    assert_int_equal(data->nonzeros, 1000);
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(index_at(data, i), i % 500);
    sdr_data_destroy(data);
}

static void a_known_width_is_kept(void **state)
{
    const struct sdr_schema known = {.features = 4, .numbers = 4, .base = 1};
    struct table t = {.base = -1, .known = &known};
    (void)state;
    begin(&t);
    add_entry(&t, 2, 1, NULL);
    add_entry(&t, 4, 2, NULL);
    add_entry(&t, 5, 3, NULL);
    end_row(&t, 1);
    struct sdr_data *data = finish(&t);
    assert_entries(data, (struct entry[]){{1, 1, 0}, {3, 2, 0}}, 2);
    assert_int_equal(data->unseen, 1);
    assert_int_equal(data->rows.features, 4);
    sdr_data_destroy(data);
}

static void missing_cells_become_the_mean_of_those_present(void **state)
{
    (void)state;
    for (int dense = 0; dense < 2; dense++) {
        struct table t = {.base = 0, .numbers = dense ? 2 : 10};
        t.wish = SDR_LAYOUT_BY_DENSITY;
        begin(&t);
        add_entry(&t, 0, 1, NULL);
        add_entry(&t, 1, NAN, NULL);
        end_row(&t, 1);
        add_entry(&t, 0, NAN, NULL);
        add_entry(&t, 1, 8, NULL);
        end_row(&t, 1);
        add_entry(&t, 0, 4, NULL);
        end_row(&t, 1); /* a zero, and present */
        struct sdr_data *data = finish(&t);
        assert_int_equal(data->rows.dense != NULL, dense);
        assert_true(data->schema.mean[0] == 2.5f && data->schema.mean[1] == 4);
        if (dense) {
            assert_true(data->rows.dense[1] == 4);
            assert_true(data->rows.dense[data->rows.stride] == 2.5f);
            assert_int_equal(data->rows.stride, 16);
        } else {
            assert_entries(
                data, (struct entry[]){{0, 1, 0}, {1, 4, 0}, {0, 2.5f, 0}, {1, 8, 0}, {0, 4, 0}},
                5);
        }
        struct table u = {.base = 0, .known = &data->schema};
        begin(&u);
        add_entry(&u, 1, NAN, NULL);
        end_row(&u, 1);
        struct sdr_data *test = finish(&u);
        assert_entries(test, (struct entry[]){{1, 4, 0}}, 1);
        sdr_data_destroy(test);
        sdr_data_destroy(data);
    }
}

static void few_distinct_labels_are_listed_and_many_are_not(void **state)
{
    (void)state;
    for (int many = 0; many < 2; many++) {
        struct table t = {.base = 0};
        begin(&t);
        int distinct = many ? SDR_LABELS_MOST + 1 : SDR_LABELS_MOST;
        for (int i = 0; i < distinct; i++) {
            end_row(&t, (float)(i % distinct) / 4);
            if (i % 100 == 0)
                flush(&t);
        }
        end_row(&t, 0.25f);
        struct sdr_data *data = finish(&t);
        assert_int_equal(data->schema.many_labels, many);
        assert_int_equal(data->schema.labels.count, many ? 0 : SDR_LABELS_MOST);
        if (!many) {
            assert_string_equal(data->schema.labels.text[5], "1.25");
            assert_true(data->schema.label_value[5] == 1.25f);
        }
        sdr_data_destroy(data);
    }
}

static void text_labels_are_numbered_by_appearance(void **state)
{
    static const char *const label[] = {"cat", "dog", "cat", "owl", "dog"};
    struct table t = {.base = 0};
    (void)state;
    begin(&t);
    for (int i = 0; i < 5; i++) {
        float number;
        assert_int_equal(sdr_piece_reserve(&t.piece, 1, t.piece.rows + 1), SDR_OK);
        assert_int_equal(sdr_piece_label_text(&t.piece, label[i], 3, &number), SDR_OK);
        t.piece.label[t.piece.rows] = number;
        t.piece.end[t.piece.rows++] = 0;
        flush(&t); /* every piece numbers from 0 */
    }
    struct sdr_data *data = finish(&t);
    assert_true(data->schema.text_labels);
    assert_memory_equal(data->rows.label, ((float[]){0, 1, 0, 2, 1}), 20);
    sdr_data_destroy(data);
}

static void rows_without_weight_among_others_weigh_one(void **state)
{
    struct table t = {.base = 0};
    (void)state;
    begin(&t);
    end_row(&t, 1);
    end_row(&t, 2);
    flush(&t);
    end_row(&t, 3);
    t.piece.has_weights = true;
    flush(&t);
    end_row(&t, 4);
    struct sdr_data *data = finish(&t);
    assert_memory_equal(data->rows.weight, ((float[]){1, 1, 13, 1}), 16);
    sdr_data_destroy(data);
}

/* ---- layouts, and rows that come dense ---- */

static float cell(uint64_t r, uint32_t i, unsigned percent)
{
    uint64_t h = (r * 1000003 + i) * 0x9E3779B97F4A7C15ull >> 20;
    return h % 100 < percent ? (float)(h % 1000) + 1 : 0;
}

static struct sdr_data *build_cells(const struct sdr_data_options *options, unsigned percent,
                                    unsigned later, size_t step, bool dense_rows, bool holes)
{
    enum { ROWS = 700, FEATURES = 37 };
    struct table t = {
        .base = 0, .wish = SDR_LAYOUT_BY_DENSITY, .options = options, .numbers = FEATURES};
    float x[FEATURES], label;
    begin(&t);
    for (uint64_t r = 0; r < ROWS; r++) {
        for (uint32_t i = 0; i < FEATURES; i++) {
            x[i] = cell(r, i, r < 100 ? percent : later);
            if (holes && (r + i) % 50 == 0)
                x[i] = NAN;
        }
        label = (float)(r % 3);
        if (dense_rows) {
            if (t.status == SDR_OK)
                t.status = sdr_builder_add_dense(t.builder, x, 1, FEATURES, &label, NULL);
            continue;
        }
        for (uint32_t i = 0; i < FEATURES; i++)
            if (x[i] != 0)
                add_entry(&t, i, x[i], NULL);
        end_row(&t, label);
        if (r % step == step - 1)
            flush(&t);
    }
    return finish(&t);
}

static void the_layout_is_decided_by_all_rows(void **state)
{
    static const unsigned density[4][2] = {{80, 80}, {10, 10}, {80, 10}, {10, 80}};
    (void)state;
    for (int d = 0; d < 4; d++)
        for (int holes = 0; holes < 2; holes++) {
            struct sdr_data *whole =
                build_cells(&plain, density[d][0], density[d][1], 1000, false, holes);
            assert_int_equal(whole->rows.dense != NULL, density[d][1] == 80);
            if (whole->rows.dense) {
                assert_int_equal(whole->rows.stride, 48);
                assert_int_equal((uintptr_t)whole->rows.dense % 64, 0);
                assert_true(whole->rows.dense[47] == 0);
            }
            for (size_t step = 1; step < 300; step = step * 3 + 1) {
                struct sdr_data *cut =
                    build_cells(&plain, density[d][0], density[d][1], step, false, holes);
                assert_same_data(whole, cut);
                sdr_data_destroy(cut);
            }
            struct sdr_data *dense =
                build_cells(&plain, density[d][0], density[d][1], 1, true, holes);
            assert_same_data(whole, dense);
            sdr_data_destroy(dense);
            sdr_data_destroy(whole);
        }
}

static void data_larger_than_memory_is_the_same_and_leaves_no_file(void **state)
{
    static const unsigned density[4][2] = {{80, 80}, {10, 10}, {80, 10}, {10, 80}};
    (void)state;
    for (int d = 0; d < 4; d++)
        for (int holes = 0; holes < 2; holes++)
            for (uint64_t memory = 1000; memory < 100000; memory *= 7) {
                struct sdr_data_options options = plain;
                options.memory = memory;
                options.scratch = folder;
                struct sdr_data *a =
                    build_cells(&plain, density[d][0], density[d][1], 10, false, holes);
                struct sdr_data *b =
                    build_cells(&options, density[d][0], density[d][1], 10, d % 2, holes);
                assert_non_null(b);
                assert_same_data(a, b);
                if (memory < 10000) {
                    assert_true(b->streams);
                    assert_in_range(b->stream_rows, 1, 600);
                    for (uint64_t r = 0; r < b->rows.count; r += b->stream_rows) {
                        sdr_data_will_need(b, r, r + b->stream_rows);
                        sdr_data_done_with(b, r, r + b->stream_rows);
                    }
                    assert_same_data(a, b);
                }
                assert_int_equal(files_in(folder), 0);
                sdr_data_destroy(a);
                sdr_data_destroy(b);
            }
}

static void a_base_found_late_holds_for_data_larger_than_memory(void **state)
{
    struct sdr_data_options options = plain;
    struct sdr_data *data[2];
    (void)state;
    options.memory = 2000;
    options.scratch = folder;
    for (int spill = 0; spill < 2; spill++) {
        struct table t = {.base = -1, .options = spill ? &options : &plain};
        begin(&t);
        for (uint32_t r = 0; r < 500; r++) {
            if (r == 400)
                add_entry(&t, 0, 1, NULL);
            add_entry(&t, 1 + r % 5, 2, NULL);
            add_entry(&t, 100 + r * (r > 300 ? 1000 : 1), r == 7 ? 0 : 3, NULL);
            end_row(&t, 1);
            t.piece.has_weights = r > 350;
            if (r % 3 == 0)
                flush(&t);
        }
        data[spill] = finish(&t);
        assert_int_equal(t.status, SDR_OK);
    }
    assert_same_data(data[0], data[1]);
    assert_int_equal(data[1]->schema.base, 0);
    assert_non_null(data[1]->rows.index32);
    sdr_data_destroy(data[0]);
    sdr_data_destroy(data[1]);
}

/* ---- failures ---- */

static struct sdr_data *build_mixed(const struct sdr_data_options *options, enum sdr_status *status)
{
    struct table t = {.base = 0, .numbers = 70000, .options = options};
    char text[20];
    begin(&t);
    for (uint32_t r = 0; t.status == SDR_OK && r < 60; r++) {
        add_entry(&t, r, r % 7 ? 1 : NAN, NULL);
        snprintf(text, sizeof text, "c%u", r % 20);
        add_entry(&t, 0, 1, text);
        t.piece.has_weights = r > 30;
        end_row(&t, (float)(r % 12));
        if (r % 5 == 0)
            flush(&t);
    }
    struct sdr_data *data = finish(&t);
    *status = t.status;
    return data;
}

static void every_failing_allocation_read_and_write_is_survived(void **state)
{
    struct sdr_data_options options = plain;
    enum sdr_status status;
    (void)state;
    options.scratch = folder;
    for (int spill = 0; spill < 2; spill++) {
        options.memory = spill ? 300 : 0;
        for (enum sdr_fault kind = SDR_FAULT_ALLOCATE; kind <= SDR_FAULT_WRITE; kind++)
            for (uint64_t n = 1;; n++) {
                sdr_fault_arm(kind, n);
                struct sdr_data *data = build_mixed(&options, &status);
                bool struck = sdr_fault_count(kind) >= n;
                sdr_fault_arm(kind, 0);
                /* Memory may also lack where the folder of a whole file is synced: no failure. */
                if (!struck || status != SDR_RUNTIME)
                    assert_int_equal(status, SDR_OK);
                assert_int_equal(files_in(folder), 0);
                sdr_data_destroy(data);
                if (!struck)
                    break;
            }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(indices_count_from_one_unless_a_zero_shows_up),
        cmocka_unit_test(indices_are_widened_once_there_are_more_than_65536_features),
        cmocka_unit_test(zeros_are_left_out),
        cmocka_unit_test(categories_follow_the_numbers_in_order_of_appearance),
        cmocka_unit_test(long_rows_of_categories_are_sorted),
        cmocka_unit_test(a_known_width_is_kept),
        cmocka_unit_test(missing_cells_become_the_mean_of_those_present),
        cmocka_unit_test(few_distinct_labels_are_listed_and_many_are_not),
        cmocka_unit_test(text_labels_are_numbered_by_appearance),
        cmocka_unit_test(rows_without_weight_among_others_weigh_one),
        cmocka_unit_test(the_layout_is_decided_by_all_rows),
        cmocka_unit_test(data_larger_than_memory_is_the_same_and_leaves_no_file),
        cmocka_unit_test(a_base_found_late_holds_for_data_larger_than_memory),
        cmocka_unit_test(every_failing_allocation_read_and_write_is_survived),
    };
    return cmocka_run_group_tests_name("build", tests, make_folder, remove_folder);
}
