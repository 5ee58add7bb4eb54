/* Laws of safetensors files: what is written is read back, and nothing else is believed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fault.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/rng.h"
#include "base/tensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/sounder-tensors-XXXXXX";
static const float weight[6] = {1, -2, 3.5f, 0, 1e-38f, -1e38f};
static const double sum[2] = {1e-300, 3};
static const unsigned char state_bytes[3] = {0, 255, 7};
static const struct sdr_tensor tensors[] = {
    {.name = "weight", .dtype = SDR_F32, .shape = {2, 3}, .data = weight},
    {.name = "sum", .dtype = SDR_F64, .shape = {2, 0}, .data = sum},
    {.name = "state", .dtype = SDR_U8, .shape = {3, 0}, .data = state_bytes},
    {.name = "nothing", .dtype = SDR_F32, .shape = {0, 0}, .data = weight},
};
enum { COUNT = sizeof tensors / sizeof *tensors };

static int enter(void **state)
{
    (void)state;
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int leave(void **state)
{
    (void)state;
    remove("file");
    return chdir("/") == 0 ? rmdir(folder) : -1;
}

static enum sdr_status write_file(void)
{
    json_t *metadata =
        json_pack("{s:s, s:s, s:s}", "format", "test", "empty", "", "text", "Grüße \"quoted\"\n\\");
    enum sdr_status status = sdr_tensors_write("file", metadata, tensors, COUNT);
    json_decref(metadata);
    return status;
}

static void expect_whole(const struct sdr_tensors *file)
{
    static const size_t width[] = {4, 8, 1};
    assert_int_equal(file->count, COUNT);
    assert_string_equal(sdr_tensors_text(file, "format"), "test");
    assert_string_equal(sdr_tensors_text(file, "empty"), "");
    assert_string_equal(sdr_tensors_text(file, "text"), "Grüße \"quoted\"\n\\");
    assert_null(sdr_tensors_text(file, "missing"));
    assert_null(sdr_tensors_find(file, "missing"));
    for (int i = 0; i < COUNT; i++) {
        const struct sdr_tensor *found = sdr_tensors_find(file, tensors[i].name);
        assert_non_null(found);
        assert_int_equal(found->dtype, tensors[i].dtype);
        assert_memory_equal(found->shape, tensors[i].shape, sizeof found->shape);
        assert_int_equal(sdr_tensor_count(found), sdr_tensor_count(&tensors[i]));
        if (sdr_tensor_count(found))
            assert_memory_equal(found->data, tensors[i].data,
                                sdr_tensor_count(found) * width[found->dtype]);
    }
}

static void what_is_written_is_read_back(void **state)
{
    struct sdr_tensors file;
    (void)state;
    assert_int_equal(write_file(), SDR_OK);
    assert_int_equal(sdr_tensors_read("file", &file), SDR_OK);
    expect_whole(&file);
    sdr_tensors_free(&file);
    sdr_tensors_free(&file);
}

static void equal_content_gives_equal_bytes(void **state)
{
    char *first, *second;
    size_t count, again;
    (void)state;
    assert_int_equal(write_file(), SDR_OK);
    assert_int_equal(sdr_file_load("file", 1 << 20, &first, &count), SDR_OK);
    assert_int_equal(write_file(), SDR_OK);
    assert_int_equal(sdr_file_load("file", 1 << 20, &second, &again), SDR_OK);
    assert_int_equal(count, again);
    assert_memory_equal(first, second, count);
    sdr_release(first);
    sdr_release(second);
}

/* Parses a copy, which the parser takes over. */
static enum sdr_status parse(const char *bytes, size_t count, struct sdr_tensors *file)
{
    char *copy;
    assert_int_equal(sdr_copy_bytes(&copy, bytes, count), SDR_OK);
    enum sdr_status status = sdr_tensors_parse("file", copy, count, file);
    if (status != SDR_OK) {
        assert_int_equal(status, SDR_BAD_FILE);
        assert_null(file->tensor);
        assert_null(strchr(sdr_error(), '\n'));
    }
    return status;
}

static void every_cut_is_noticed(void **state)
{
    struct sdr_tensors file;
    char *bytes;
    size_t count;
    (void)state;
    assert_int_equal(write_file(), SDR_OK);
    assert_int_equal(sdr_file_load("file", 1 << 20, &bytes, &count), SDR_OK);
    for (size_t keep = 0; keep < count; keep++)
        assert_int_equal(parse(bytes, keep, &file), SDR_BAD_FILE);
    char *longer = calloc(count + 1, 1);
    assert_non_null(longer);
    memcpy(longer, bytes, count);
    assert_int_equal(parse(longer, count + 1, &file), SDR_BAD_FILE);
    free(longer);
    sdr_release(bytes);
}

static void every_flipped_bit_is_noticed_or_harmless(void **state)
{
    struct sdr_tensors file;
    char *bytes;
    size_t count, harmless = 0;
    (void)state;
    assert_int_equal(write_file(), SDR_OK);
    assert_int_equal(sdr_file_load("file", 1 << 20, &bytes, &count), SDR_OK);
    for (size_t bit = 0; bit < count * 8; bit++) {
        bytes[bit / 8] ^= (char)(1 << bit % 8);
        if (parse(bytes, count, &file) == SDR_OK) {
            expect_whole(&file); /* a blank that became another blank, say */
            sdr_tensors_free(&file);
            harmless++;
        }
        bytes[bit / 8] ^= (char)(1 << bit % 8);
    }
    assert_true(harmless < count);
    sdr_release(bytes);
}

static size_t make(char *bytes, const char *header, size_t data)
{
    size_t length = strlen(header);
    for (int i = 0; i < 8; i++)
        bytes[i] = (char)(length >> (8 * i));
    memcpy(bytes + 8, header, length);
    memset(bytes + 8 + length, 0, data);
    return 8 + length + data;
}

static void headers_that_lie_are_refused(void **state)
{
#define FILE_OF(entries) "{\"__metadata__\":{\"checksum\":\"x\"}" entries "}"
#define TENSOR(shape, from, to)                                                                    \
    ",\"a\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":[" from "," to "]}"
    static const char *const headers[] = {
        "",
        "{",
        "[]",
        "1",
        "null",
        "{}",
        "{\"__metadata__\":1}",
        "{\"__metadata__\":{}}",
        "{\"__metadata__\":{\"a\":1}}",
        "{\"__metadata__\":{\"a\":{}}}",
        FILE_OF(""),
        FILE_OF(",\"a\":1"),
        FILE_OF(",\"a\":{}"),
        FILE_OF(TENSOR("[4]", "0", "16")), /* only the checksum is wrong */
        FILE_OF(TENSOR("[4]", "0", "12")),
        FILE_OF(TENSOR("[4]", "4", "20")),
        FILE_OF(TENSOR("[5]", "0", "20")),
        FILE_OF(TENSOR("[-1]", "0", "-4")),
        FILE_OF(TENSOR("[4,0]", "0", "0")),
        FILE_OF(TENSOR("[]", "0", "4")),
        FILE_OF(TENSOR("[1,1,4]", "0", "16")),
        FILE_OF(TENSOR("[4.0]", "0", "16")),
        FILE_OF(TENSOR("\"4\"", "0", "16")),
        FILE_OF(TENSOR("[4]", "\"0\"", "16")),
        FILE_OF(TENSOR("[1099511627776,1099511627776]", "0", "16")),
        FILE_OF(TENSOR("[1099511627777]", "0", "16")),
        FILE_OF(TENSOR("[4611686018427387904]", "0", "0")),
        FILE_OF(TENSOR("[1099511627776,4194304]", "0", "0")),
        FILE_OF(TENSOR("[4]", "0", "16") TENSOR("[4]", "0", "16")),
        FILE_OF(",\"a\":{\"dtype\":\"F16\",\"shape\":[8],\"data_offsets\":[0,16]}"),
        FILE_OF(",\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0]}"),
        FILE_OF(",\"a\":{\"dtype\":\"F32\",\"shape\":[4]}"),
        FILE_OF(",\"a\":{\"dtype\":[\"F32\"],\"shape\":[4],\"data_offsets\":[0,16]}"),
        FILE_OF(",\"a name that is far too long to be kept in the sixty-four bytes there are\":"
                "{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}"),
    };
    char bytes[1000];
    struct sdr_tensors file;
    (void)state;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        for (size_t data = 0; data <= 20; data += 4)
            if (parse(bytes, make(bytes, headers[i], data), &file) == SDR_OK)
                fail_msg("header %zu with %zu bytes of data was believed", i, data);
    /* Lengths of the header that reach outside. */
    static const uint64_t lengths[] = {0, 1, 993, 1u << 31, UINT64_MAX, UINT64_MAX - 7};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        memset(bytes, ' ', sizeof bytes);
        for (int b = 0; b < 8; b++)
            bytes[b] = (char)(lengths[i] >> (8 * b));
        assert_int_equal(parse(bytes, sizeof bytes, &file), SDR_BAD_FILE);
    }
}

static void deep_nesting_does_not_exhaust_the_stack(void **state)
{
    enum { DEPTH = 1 << 20 };
    char *bytes = malloc(DEPTH + 8);
    struct sdr_tensors file;
    (void)state;
    assert_non_null(bytes);
    memset(bytes, '[', DEPTH + 8);
    for (int b = 0; b < 8; b++)
        bytes[b] = (char)((uint64_t)DEPTH >> (8 * b));
    assert_int_equal(parse(bytes, DEPTH + 8, &file), SDR_BAD_FILE);
    free(bytes);
}

/* Whichever operation fails: the old file or the new one, never anything between. */
static void sweep_writes(enum sdr_fault kind)
{
    for (uint64_t nth = 1;; nth++) {
        struct sdr_tensors file;
        assert_int_equal(sdr_file_write("file", "old", 3), SDR_OK);
        sdr_fault_arm(kind, nth);
        enum sdr_status status = write_file();
        bool struck = sdr_fault_count(kind) >= nth;
        sdr_fault_arm(kind, 0);
        if (status == SDR_OK) {
            assert_int_equal(sdr_tensors_read("file", &file), SDR_OK);
            expect_whole(&file);
            sdr_tensors_free(&file);
        } else {
            char *bytes;
            size_t count;
            assert_int_equal(status, SDR_RUNTIME);
            assert_int_equal(sdr_file_load("file", 1 << 20, &bytes, &count), SDR_OK);
            assert_string_equal(bytes, "old");
            sdr_release(bytes);
        }
        if (!struck)
            return;
    }
}

static void a_failed_write_keeps_the_old_file(void **state)
{
    (void)state;
    sweep_writes(SDR_FAULT_WRITE);
    sweep_writes(SDR_FAULT_ALLOCATE);
}

static void a_failed_read_is_no_damaged_file(void **state)
{
    (void)state;
    assert_int_equal(write_file(), SDR_OK);
    for (int kind = SDR_FAULT_ALLOCATE; kind <= SDR_FAULT_READ; kind++)
        for (uint64_t nth = 1;; nth++) {
            struct sdr_tensors file;
            sdr_fault_arm((enum sdr_fault)kind, nth);
            enum sdr_status status = sdr_tensors_read("file", &file);
            bool struck = sdr_fault_count((enum sdr_fault)kind) >= nth;
            sdr_fault_arm((enum sdr_fault)kind, 0);
            assert_int_equal(status, struck ? SDR_RUNTIME : SDR_OK);
            sdr_tensors_free(&file);
            if (!struck)
                break;
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(equal_content_gives_equal_bytes),
        cmocka_unit_test(every_cut_is_noticed),
        cmocka_unit_test(every_flipped_bit_is_noticed_or_harmless),
        cmocka_unit_test(headers_that_lie_are_refused),
        cmocka_unit_test(deep_nesting_does_not_exhaust_the_stack),
        cmocka_unit_test(a_failed_write_keeps_the_old_file),
        cmocka_unit_test(a_failed_read_is_no_damaged_file),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
