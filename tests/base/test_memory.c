/* Laws of memory: zeroed, aligned, never silently short; regions keep what they hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fault.h"
#include "base/memory.h"

#include <string.h>

static void memory_is_zeroed_and_aligned(void **state)
{
    static const size_t sizes[] = {0, 1, 63, 64, 65, 4096, 1000003};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *bytes;
        assert_int_equal(sdr_allocate(&bytes, sizes[i], 1, "test"), SDR_OK);
        assert_non_null(bytes);
        assert_int_equal((uintptr_t)bytes % SDR_ALIGN, 0);
        for (size_t j = 0; j < sizes[i]; j++)
            assert_int_equal(bytes[j], 0);
        memset(bytes, 0xAA, sizes[i]);
        sdr_release(bytes);
    }
    sdr_release(NULL);
}

static void sizes_that_overflow_are_refused(void **state)
{
    static const size_t bad[][2] = {{SIZE_MAX, 2},      {SIZE_MAX / 2 + 1, 2},
                                    {SIZE_MAX, 1},      {SIZE_MAX - 63, 1},
                                    {SIZE_MAX - 64, 1}, {(size_t)1 << 32, (size_t)1 << 32}};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        void *memory = &memory;
        assert_int_equal(sdr_allocate(&memory, bad[i][0], bad[i][1], "the moon"), SDR_RUNTIME);
        assert_null(memory);
        assert_non_null(strstr(sdr_error(), "the moon"));
    }
}

static void the_nth_allocation_fails_once_when_asked_to(void **state)
{
    (void)state;
    for (uint64_t nth = 1; nth <= 5; nth++) {
        sdr_fault_arm(SDR_FAULT_ALLOCATE, nth);
        for (uint64_t i = 1; i <= 7; i++) {
            char *memory;
            assert_int_equal(sdr_allocate(&memory, 10, 1, "test"), i == nth ? SDR_RUNTIME : SDR_OK);
            assert_int_equal(memory == NULL, i == nth);
            sdr_release(memory);
        }
        assert_int_equal(sdr_fault_count(SDR_FAULT_ALLOCATE), 7);
        sdr_fault_arm(SDR_FAULT_ALLOCATE, 0);
    }
}

static void copies_are_equal_and_end_with_nul(void **state)
{
    char *copy;
    (void)state;
    assert_int_equal(sdr_copy_string(&copy, "grüß"), SDR_OK);
    assert_string_equal(copy, "grüß");
    sdr_string_free(copy);
    assert_int_equal(sdr_copy_bytes(&copy, "a\0b", 3), SDR_OK);
    assert_memory_equal(copy, "a\0b", 4);
    sdr_release(copy);
    assert_int_equal(sdr_copy_bytes(&copy, "", 0), SDR_OK);
    assert_int_equal(copy[0], 0);
    sdr_release(copy);
    sdr_string_free(NULL);
}

static void a_region_keeps_what_it_holds_while_it_grows(void **state)
{
    struct sdr_region region = {0};
    uint32_t block[1000];
    (void)state;
    for (uint32_t round = 0; round < 3000; round++) { /* 12 MB: past several moves */
        for (uint32_t i = 0; i < 1000; i++)
            block[i] = round * 1000 + i;
        assert_int_equal(sdr_region_append(&region, block, sizeof block), SDR_OK);
    }
    assert_int_equal(region.used, 3000 * sizeof block);
    assert_true(region.reserved >= region.used);
    for (uint32_t i = 0; i < 3000000; i++) {
        uint32_t value;
        memcpy(&value, region.bytes + i * sizeof value, sizeof value);
        if (value != i)
            fail_msg("value %u is %u", i, value);
    }
    assert_int_equal(sdr_region_append(&region, NULL, 0), SDR_OK);
    sdr_region_free(&region);
    assert_null(region.bytes);
    sdr_region_free(&region);
}

static void a_region_that_cannot_grow_keeps_what_it_holds(void **state)
{
    struct sdr_region region = {0};
    (void)state;
    assert_int_equal(sdr_region_append(&region, "sounder", 8), SDR_OK);
    sdr_fault_arm(SDR_FAULT_ALLOCATE, 1);
    assert_int_equal(sdr_region_reserve(&region, 1 << 20), SDR_RUNTIME);
    sdr_fault_arm(SDR_FAULT_ALLOCATE, 0);
    assert_int_equal(sdr_region_reserve(&region, SIZE_MAX / 2), SDR_RUNTIME);
    assert_int_equal(sdr_region_reserve(&region, SIZE_MAX), SDR_RUNTIME);
    assert_int_equal(region.used, 8);
    assert_string_equal((char *)region.bytes, "sounder");
    assert_int_equal(sdr_region_reserve(&region, 1 << 20), SDR_OK);
    assert_string_equal((char *)region.bytes, "sounder");
    sdr_region_free(&region);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_and_aligned),
        cmocka_unit_test(sizes_that_overflow_are_refused),
        cmocka_unit_test(the_nth_allocation_fails_once_when_asked_to),
        cmocka_unit_test(copies_are_equal_and_end_with_nul),
        cmocka_unit_test(a_region_keeps_what_it_holds_while_it_grows),
        cmocka_unit_test(a_region_that_cannot_grow_keeps_what_it_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
