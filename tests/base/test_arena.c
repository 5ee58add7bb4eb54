/* Laws of arenas: what is taken is aligned and not taken twice, also by several threads; another
   process sees it; memory that was given back is zero. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/memory.h"

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct sdr_arena arena;

static void what_is_taken_is_aligned_and_zero(void **state)
{
    static const size_t size[] = {1, 63, 64, 65, 100000};
    size_t used = 0;
    (void)state;
    for (size_t i = 0; i < sizeof size / sizeof *size; i++) {
        unsigned char *bytes = sdr_arena_take(&arena, size[i]);
        assert_non_null(bytes);
        assert_true(sdr_arena_has(&arena, bytes) && !sdr_arena_has(&arena, &arena));
        assert_int_equal((uintptr_t)bytes % SDR_ALIGN, 0);
        assert_true(bytes >= arena.bytes + used);
        for (size_t b = 0; b < size[i]; b++)
            assert_int_equal(bytes[b], 0);
        memset(bytes, 0xAA, size[i]);
        used = (size_t)(bytes - arena.bytes) + size[i];
    }
    assert_null(sdr_arena_take(&arena, arena.size));
    assert_null(sdr_arena_take(&arena, SIZE_MAX));
    assert_null(sdr_arena_take(&arena, SIZE_MAX - SDR_ALIGN + 2));
}

enum { TAKES = 1000 };
static void *take_many(void *marks)
{
    for (int i = 0; i < TAKES; i++)
        ((unsigned char **)marks)[i] = sdr_arena_take(&arena, 64);
    return NULL;
}

static void threads_take_different_memory(void **state)
{
    static unsigned char *taken[2][TAKES];
    pthread_t other;
    size_t before = arena.used;
    (void)state;
    assert_int_equal(pthread_create(&other, NULL, take_many, taken[1]), 0);
    take_many(taken[0]);
    pthread_join(other, NULL);
    for (int t = 0; t < 2; t++)
        for (int i = 0; i < TAKES; i++) {
            assert_non_null(taken[t][i]);
            assert_int_equal(*taken[t][i], 0);
            *taken[t][i] = 1;
        }
    assert_int_equal(arena.used - before, 2 * TAKES * 64);
}

static void another_process_reads_and_writes_it(void **state)
{
    unsigned char *bytes = sdr_arena_take(&arena, 8192);
    int code;
    (void)state;
    bytes[8191] = 7;
    pid_t owner = getpid(), child = fork();
    if (child == 0) {
        unsigned char *there = sdr_arena_map(owner, arena.file, arena.size);
        size_t at = (size_t)(bytes - arena.bytes);
        if (!there || there == arena.bytes || there[at + 8191] != 7)
            _exit(1);
        there[at] = 9;
        sdr_arena_unmap(there, arena.size);
        _exit(sdr_arena_map(owner, arena.file, arena.size + 1) ||
                      sdr_arena_map(owner, 1000000, arena.size)
                  ? 2
                  : 0);
    }
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_true(WIFEXITED(code));
    assert_int_equal(WEXITSTATUS(code), 0);
    assert_int_equal(bytes[0], 9);
}

static void what_is_given_back_is_zero_again(void **state)
{
    enum { KEEP = 4096, MUCH = 1 << 20 };
    (void)state;
    sdr_arena_reset(&arena, 0);
    memset(sdr_arena_take(&arena, KEEP), 5, KEEP);
    memset(sdr_arena_take(&arena, MUCH), 6, MUCH);
    sdr_arena_reset(&arena, KEEP);
    assert_int_equal(arena.used, KEEP);
    assert_int_equal(arena.bytes[KEEP - 1], 5);
    unsigned char *again = sdr_arena_take(&arena, MUCH);
    assert_ptr_equal(again, arena.bytes + KEEP);
    for (int i = 0; i < MUCH; i++)
        assert_int_equal(again[i], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_taken_is_aligned_and_zero),
        cmocka_unit_test(threads_take_different_memory),
        cmocka_unit_test(another_process_reads_and_writes_it),
        cmocka_unit_test(what_is_given_back_is_zero_again),
    };
    if (!sdr_arena_create(&arena)) {
        print_message("skipped: this machine has no files without a name\n");
        return 77;
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    sdr_arena_destroy(&arena);
    return failed;
}
