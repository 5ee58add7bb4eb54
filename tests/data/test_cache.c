/* Cache files: what was written is what is mapped; whatever else is in the file, nothing breaks. */
#include "base/hash.h"
#include "data/cache.h"
#include "files.h"

#include <math.h>

/* A small data set with everything in it: text labels, weights, categories, means, odd bytes. */
static struct sdr_data *make_data(bool dense)
{
    struct sdr_data *data;
    struct sdr_piece piece = {0};
    struct sdr_builder *builder;
    static const struct sdr_data_options options = {.base = 0, .format_rest = ""};
    static const char *const label[] = {"yes", "no", "m\xF6gl"};
    assert_int_equal(sdr_allocate(&data, 1, sizeof *data, "test"), SDR_OK);
    data->schema.numbers = 3;
    assert_int_equal(sdr_copy_string(&data->name, "test"), SDR_OK);
    assert_int_equal(sdr_copy_string(&data->schema.format, "csv"), SDR_OK);
    assert_int_equal(sdr_allocate(&data->schema.column, 2, sizeof(struct sdr_column), "test"),
                     SDR_OK);
    data->schema.columns = 2;
    data->schema.column[1].kind = SDR_COLUMN_CATEGORY;
    assert_int_equal(sdr_copy_string(&data->schema.column[0].name, "a \"b\""), SDR_OK);
    assert_int_equal(sdr_copy_string(&data->schema.column[1].name, "c"), SDR_OK);
    assert_int_equal(sdr_builder_create(&options, NULL, &data->schema,
                                        dense ? SDR_LAYOUT_BY_DENSITY : SDR_LAYOUT_SPARSE,
                                        &builder),
                     SDR_OK);
    assert_int_equal(sdr_piece_reserve(&piece, 100, 10), SDR_OK);
    piece.has_weights = piece.has_missing = true;
    for (uint32_t r = 0; r < 6; r++) {
        for (uint32_t i = 0; i < 3; i++)
            if (dense || (r + i) % 3) {
                piece.index[piece.entries] = i;
                piece.value[piece.entries++] = r == 4 && i == 1 ? NAN : (float)(r * 3 + i) / 8;
            }
        if (!dense) {
            assert_int_equal(sdr_piece_category(&piece, r % 2 ? "c=x" : "c=\xFF\0y", r % 2 ? 3 : 5,
                                                &piece.index[piece.entries]),
                             SDR_OK);
            piece.value[piece.entries++] = 1;
        }
        assert_int_equal(
            sdr_piece_label_text(&piece, label[r % 3], strlen(label[r % 3]), &piece.label[r]),
            SDR_OK);
        piece.weight[r] = (float)r / 2;
        piece.end[r] = piece.entries;
    }
    piece.rows = 6;
    piece.features = 3;
    assert_int_equal(sdr_builder_add(builder, &piece), SDR_OK);
    assert_int_equal(sdr_builder_finish(builder, data), SDR_OK);
    assert_int_equal(sdr_data_sign(data), SDR_OK);
    assert_int_equal(data->rows.dense != NULL, dense);
    sdr_piece_free(&piece);
    return data;
}

static void what_is_mapped_is_what_was_written(void **state)
{
    (void)state;
    for (int dense = 0; dense < 2; dense++) {
        struct sdr_data *data = make_data(dense), *mapped;
        const char *path = path_of("a.sdc");
        assert_int_equal(sdr_cache_write(data, path), SDR_OK);
        assert_int_equal(sdr_cache_map(path, NULL, &mapped), SDR_OK);
        assert_same_data(data, mapped);
        assert_string_equal(mapped->schema.format, "csv");
        assert_int_equal(mapped->schema.columns, 2);
        assert_string_equal(mapped->schema.column[0].name, "a \"b\"");
        assert_int_equal(mapped->schema.column[1].kind, SDR_COLUMN_CATEGORY);
        assert_false(mapped->streams);
        sdr_data_destroy(mapped);
        assert_int_equal(sdr_cache_map_within(path, NULL, 100, false, &mapped), SDR_OK);
        assert_true(mapped->streams);
        assert_same_data(data, mapped);
        sdr_data_destroy(mapped);
        sdr_data_destroy(data);
    }
}

/* The caller's indices are 32 bits wide however few features there are. */
static void rows_of_the_caller_are_mapped_as_they_were(void **state)
{
    static const uint64_t start[] = {0, 2, 3};
    static const uint32_t column[] = {0, 2, 1};
    static const float value[] = {1, 2, 3}, label[] = {1, 0};
    struct sdr_data *data, *mapped;
    const char *path = path_of("csr.sdc");
    (void)state;
    assert_int_equal(sdr_data_csr(start, column, value, 2, 3, label, NULL, &data), SDR_OK);
    assert_int_equal(sdr_cache_write(data, path), SDR_OK);
    assert_int_equal(sdr_cache_map(path, NULL, &mapped), SDR_OK);
    assert_same_data(data, mapped);
    sdr_data_destroy(mapped);
    sdr_data_destroy(data);
}

static void another_key_is_stale(void **state)
{
    (void)state;
    struct sdr_data *data = make_data(false), *mapped;
    const char *path = path_of("k.sdc");
    assert_int_equal(sdr_cache_write_keyed(data, "one", path), SDR_OK);
    assert_int_equal(sdr_cache_map(path, "two", &mapped), SDR_BAD_FILE);
    assert_non_null(strstr(sdr_error(), "stale"));
    assert_null(mapped);
    assert_int_equal(sdr_cache_map(path, "one", &mapped), SDR_OK);
    sdr_data_destroy(mapped);
    sdr_data_destroy(data);
}

static void any_changed_byte_is_noticed_or_harmless(void **state)
{
    (void)state;
    for (int dense = 0; dense < 2; dense++) {
        struct sdr_data *data = make_data(dense), *mapped;
        char *bytes;
        size_t count, refused = 0;
        assert_int_equal(sdr_cache_write(data, path_of("a.sdc")), SDR_OK);
        assert_int_equal(sdr_file_load(path_of("a.sdc"), 1 << 20, &bytes, &count), SDR_OK);
        for (size_t i = 0; i < count; i++)
            for (int bit = 0; bit < 8; bit += 7) {
                bytes[i] ^= (char)(1 << bit);
                write_file("bent.sdc", bytes, count);
                bytes[i] ^= (char)(1 << bit);
                enum sdr_status status = sdr_cache_map(path_of("bent.sdc"), NULL, &mapped);
                if (status == SDR_OK)
                    assert_same_data(data, mapped);
                else
                    assert_int_equal(status, SDR_BAD_FILE);
                refused += status != SDR_OK;
                sdr_data_destroy(mapped);
            }
        assert_true(refused > count); /* more than half of what was tried */
        for (size_t n = 0; n < count; n++) {
            write_file("cut.sdc", bytes, n);
            assert_int_equal(sdr_cache_map(path_of("cut.sdc"), NULL, &mapped), SDR_BAD_FILE);
        }
        sdr_release(bytes);
        sdr_data_destroy(data);
    }
}

/* ---- files made to do harm: the hashes are right, what they hash is not ---- */

static void sign_file(char *bytes, size_t count)
{
    struct sdr_cache_header header;
    char text[33];
    memcpy(&header, bytes, sizeof header);
    for (int i = 0; i < SDR_SECTIONS; i++) {
        struct sdr_cache_section *s = &header.section[i];
        if (s->offset == 0 || s->offset > count || s->bytes > count - s->offset)
            continue;
        sdr_hash_text(bytes + s->offset, (size_t)s->bytes, text);
        memcpy(s->hash, text, 32);
    }
    sdr_hash_text(&header, offsetof(struct sdr_cache_header, hash), text);
    memcpy(header.hash, text, 32);
    memcpy(bytes, &header, sizeof header);
}

/* What kernels rely on without checking. */
static void assert_safe(const struct sdr_data *data)
{
    const struct sdr_rows *rows = &data->rows;
    for (uint64_t r = 0; r < rows->count; r++) {
        if (rows->dense) {
            for (uint64_t i = 0; i < rows->stride; i++)
                assert_true(isfinite(rows->dense[r * rows->stride + i]));
        } else {
            assert_true(rows->start[r] <= rows->start[r + 1]);
            for (uint64_t i = rows->start[r]; i < rows->start[r + 1]; i++) {
                uint32_t index = rows->index16 ? rows->index16[i] : rows->index32[i];
                assert_true(index < rows->features);
                if (i > rows->start[r])
                    assert_true(index >
                                (rows->index16 ? rows->index16[i - 1] : rows->index32[i - 1]));
                assert_true(isfinite(rows->value[i]));
            }
        }
        if (rows->label && data->schema.text_labels)
            assert_true(rows->label[r] < (float)data->schema.labels.count);
        if (rows->weight)
            assert_true(isfinite(rows->weight[r]) && rows->weight[r] >= 0);
    }
    assert_int_equal(data->schema.features, rows->features);
    assert_int_equal(data->schema.numbers + data->schema.category.count, rows->features);
}

/* Row after row on demand, and again, when they are known. */
static enum sdr_status map_on_demand(const char *path)
{
    struct sdr_data *data;
    enum sdr_status status = sdr_cache_map_within(path, NULL, 0, true, &data);
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t r = 0; status == SDR_OK && r < data->rows.count; r++)
            status = sdr_data_demand(data, &r, 1);
    if (status == SDR_OK)
        assert_safe(data);
    sdr_data_destroy(data);
    return status;
}

static void a_file_made_to_do_harm_gives_safe_rows_or_none(void **state)
{
    static const unsigned char values[] = {0, 1, 2, 0x7F, 0x80, 0xFF};
    (void)state;
    for (int dense = 0; dense < 2; dense++) {
        struct sdr_data *data = make_data(dense), *mapped;
        char *bytes, *bent;
        size_t count, accepted = 0;
        assert_int_equal(sdr_cache_write(data, path_of("a.sdc")), SDR_OK);
        assert_int_equal(sdr_file_load(path_of("a.sdc"), 1 << 20, &bytes, &count), SDR_OK);
        bent = malloc(count);
        for (size_t i = 8; i < count; i++)
            for (size_t v = 0; v < sizeof values; v++) {
                memcpy(bent, bytes, count);
                bent[i] = (char)values[v];
                sign_file(bent, count);
                write_file("harm.sdc", bent, count);
                enum sdr_status status = sdr_cache_map(path_of("harm.sdc"), NULL, &mapped);
                assert_true(status == SDR_OK || status == SDR_BAD_FILE);
                if (status == SDR_OK)
                    assert_safe(mapped);
                assert_int_equal(map_on_demand(path_of("harm.sdc")), status);
                accepted += status == SDR_OK;
                sdr_data_destroy(mapped);
            }
        assert_true(accepted > 0); /* the hashes are indeed right */
        free(bent);
        sdr_release(bytes);
        sdr_data_destroy(data);
    }
}

static void a_failed_write_leaves_what_was_there(void **state)
{
    (void)state;
    struct sdr_data *data = make_data(false), *mapped;
    char only[300];
    snprintf(only, sizeof only, "%s", path_of("only"));
    assert_int_equal(sdr_folder_make(only), SDR_OK);
    for (enum sdr_fault kind = SDR_FAULT_ALLOCATE; kind <= SDR_FAULT_WRITE; kind++)
        for (uint64_t n = 1;; n++) {
            unlink(path_of("only/new.sdc"));
            sdr_fault_arm(kind, n);
            enum sdr_status status = sdr_cache_write(data, path_of("only/new.sdc"));
            bool struck = sdr_fault_count(kind) >= n;
            sdr_fault_arm(kind, 0);
            bool there = sdr_file_exists(path_of("only/new.sdc"));
            if (!there)
                assert_int_equal(status, SDR_RUNTIME);
            assert_int_equal(files_in(only), there);
            if (there) { /* whole, even if telling the folder failed */
                assert_int_equal(sdr_cache_map(path_of("only/new.sdc"), NULL, &mapped), SDR_OK);
                assert_same_data(data, mapped);
                sdr_data_destroy(mapped);
            }
            if (!struck)
                break;
        }
    sdr_data_destroy(data);
}

static void a_failed_mapping_is_survived(void **state)
{
    (void)state;
    struct sdr_data *data = make_data(false), *mapped;
    assert_int_equal(sdr_cache_write(data, path_of("m.sdc")), SDR_OK);
    for (enum sdr_fault kind = SDR_FAULT_ALLOCATE; kind <= SDR_FAULT_READ; kind++)
        for (uint64_t n = 1;; n++) {
            sdr_fault_arm(kind, n);
            enum sdr_status status = sdr_cache_map(path_of("m.sdc"), NULL, &mapped);
            bool struck = sdr_fault_count(kind) >= n;
            sdr_fault_arm(kind, 0);
            assert_int_equal(status, struck ? SDR_RUNTIME : SDR_OK);
            sdr_data_destroy(mapped);
            if (!struck)
                break;
        }
    sdr_data_destroy(data);
}

static void a_schema_survives_json_and_copying(void **state)
{
    (void)state;
    struct sdr_data *data = make_data(false);
    struct sdr_schema copy, back;
    json_t *json;
    assert_int_equal(sdr_schema_copy(&copy, &data->schema), SDR_OK);
    assert_int_equal(sdr_schema_to_json(&copy, &json), SDR_OK);
    assert_int_equal(sdr_schema_from_json(json, &back), SDR_OK);
    assert_same_texts(&back.category, &data->schema.category);
    assert_same_texts(&back.labels, &data->schema.labels);
    assert_memory_equal(back.mean, data->schema.mean, back.features * sizeof(float));
    /* Every member is needed with its own type. */
    const char *key;
    json_t *value, *broken;
    json_object_foreach(json, key, value)
    {
        struct sdr_schema none;
        broken = json_copy(json);
        json_object_set_new(broken, key, json_pack("{s:n}", "x"));
        assert_int_equal(sdr_schema_from_json(broken, &none), SDR_BAD_FILE);
        json_decref(broken);
    }
    json_decref(json);
    for (uint64_t n = 1;; n++) {
        struct sdr_schema other;
        sdr_fault_arm(SDR_FAULT_ALLOCATE, n);
        enum sdr_status status = sdr_schema_copy(&other, &data->schema);
        bool struck = sdr_fault_count(SDR_FAULT_ALLOCATE) >= n;
        sdr_fault_arm(SDR_FAULT_ALLOCATE, 0);
        assert_int_equal(status, struck ? SDR_RUNTIME : SDR_OK);
        sdr_schema_free(&other);
        if (!struck)
            break;
    }
    sdr_schema_free(&copy);
    sdr_schema_free(&back);
    sdr_data_destroy(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_mapped_is_what_was_written),
        cmocka_unit_test(rows_of_the_caller_are_mapped_as_they_were),
        cmocka_unit_test(another_key_is_stale),
        cmocka_unit_test(any_changed_byte_is_noticed_or_harmless),
        cmocka_unit_test(a_file_made_to_do_harm_gives_safe_rows_or_none),
        cmocka_unit_test(a_failed_write_leaves_what_was_there),
        cmocka_unit_test(a_failed_mapping_is_survived),
        cmocka_unit_test(a_schema_survives_json_and_copying),
    };
    return cmocka_run_group_tests_name("cache", tests, make_folder, remove_folder);
}
