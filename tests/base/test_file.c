/* Laws of files: they appear whole or not at all, whichever write fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fault.h"
#include "base/file.h"
#include "base/memory.h"

#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/sounder-file-XXXXXX";

static int enter(void **state)
{
    (void)state;
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

/* Removes every file; returns how many there were. */
static int sweep(void)
{
    int count = 0;
    DIR *directory = opendir(".");
    struct dirent *entry;
    while ((entry = readdir(directory)))
        if (entry->d_name[0] != '.') {
            remove(entry->d_name);
            count++;
        }
    closedir(directory);
    return count;
}

static int leave(void **state)
{
    (void)state;
    sweep();
    return chdir("/") == 0 ? rmdir(folder) : -1;
}

static void expect_content(const char *path, const char *content)
{
    char *bytes;
    size_t count;
    assert_int_equal(sdr_file_load(path, 1 << 20, &bytes, &count), SDR_OK);
    assert_int_equal(count, strlen(content));
    assert_string_equal(bytes, content);
    sdr_release(bytes);
}

static enum sdr_status write_and_patch(const char *path)
{
    enum { BLOCK = 100000, BLOCKS = 12 }; /* several flushes of the writer's buffer */
    static char block[BLOCK];
    struct sdr_writer *writer;
    enum sdr_status status = SDR_OK;
    memset(block, 'n', sizeof block);
    SDR_TRY(sdr_writer_open(path, &writer));
    for (int i = 0; i < BLOCKS && status == SDR_OK; i++)
        status = sdr_writer_add(writer, block, sizeof block);
    if (status == SDR_OK)
        status = sdr_writer_patch(writer, 0, "NEW", 3);
    if (status != SDR_OK) {
        sdr_writer_abandon(writer);
        return status;
    }
    assert_int_equal(sdr_writer_written(writer), BLOCK * BLOCKS);
    return sdr_writer_commit(writer);
}

static void expect_new(const char *path)
{
    char *bytes;
    size_t count;
    assert_int_equal(sdr_file_load(path, 1 << 24, &bytes, &count), SDR_OK);
    assert_int_equal(count, 1200000);
    assert_memory_equal(bytes, "NEWnnn", 6);
    assert_int_equal(strspn(bytes + 3, "n"), count - 3);
    sdr_release(bytes);
}

/* Whichever operation fails: the old file is intact, no other is there, and the sentence is one
   line. */
static void sweep_faults(enum sdr_fault kind)
{
    for (uint64_t nth = 1;; nth++) {
        assert_int_equal(sdr_file_write("file", "old", 3), SDR_OK);
        sdr_fault_arm(kind, nth);
        enum sdr_status status = write_and_patch("file");
        bool struck = sdr_fault_count(kind) >= nth;
        sdr_fault_arm(kind, 0);
        if (status == SDR_OK) {
            expect_new("file");
        } else {
            assert_int_equal(status, SDR_RUNTIME);
            assert_null(strchr(sdr_error(), '\n'));
            expect_content("file", "old");
        }
        if (kind == SDR_FAULT_WRITE)
            assert_int_equal(status != SDR_OK, struck);
        assert_int_equal(sweep(), 1);
        if (!struck)
            return;
        assert_true(nth < 1000);
    }
}

static void the_old_file_stays_until_the_last_write_succeeded(void **state)
{
    (void)state;
    sweep_faults(SDR_FAULT_WRITE);
}

static void the_old_file_stays_whichever_allocation_fails(void **state)
{
    (void)state;
    sweep_faults(SDR_FAULT_ALLOCATE);
}

static void an_abandoned_file_leaves_nothing(void **state)
{
    struct sdr_writer *writer;
    (void)state;
    assert_int_equal(sdr_writer_open("new", &writer), SDR_OK);
    assert_int_equal(sdr_writer_add(writer, "x", 1), SDR_OK);
    sdr_writer_abandon(writer);
    sdr_writer_abandon(NULL);
    assert_int_equal(sweep(), 0);
}

/* A container gives every start of a program the same process number; what a killed one left behind
   must not stop the next. */
static void leftovers_of_a_killed_process_with_our_number_do_not_matter(void **state)
{
    (void)state;
    for (int serial = 0; serial < 4000; serial++) {
        char name[64];
        snprintf(name, sizeof name, "file.tmp-%ld-%d", (long)getpid(), serial);
        int descriptor = open(name, O_WRONLY | O_CREAT, 0666);
        assert_true(descriptor >= 0);
        close(descriptor);
    }
    enum sdr_status status = sdr_file_write("file", "new", 3);
    if (status == SDR_OK)
        expect_content("file", "new");
    sweep();
    if (status != SDR_OK)
        fail_msg("%s", sdr_error());
}

static void two_writers_of_one_file_do_not_meet(void **state)
{
    struct sdr_writer *first, *second;
    (void)state;
    assert_int_equal(sdr_writer_open("file", &first), SDR_OK);
    assert_int_equal(sdr_writer_open("file", &second), SDR_OK);
    assert_int_equal(sdr_writer_add(first, "one", 3), SDR_OK);
    assert_int_equal(sdr_writer_add(second, "second", 6), SDR_OK);
    assert_int_equal(sdr_writer_commit(first), SDR_OK);
    expect_content("file", "one");
    assert_int_equal(sdr_writer_commit(second), SDR_OK);
    expect_content("file", "second");
    assert_int_equal(sweep(), 1);
}

static void where_nothing_can_be_written_the_path_is_named(void **state)
{
    (void)state;
    assert_int_equal(sdr_file_write("no/folder/file", "x", 1), SDR_RUNTIME);
    assert_non_null(strstr(sdr_error(), "no/folder/file"));
    assert_int_equal(sdr_file_write("line\nbreak/file", "x", 1), SDR_RUNTIME);
    assert_null(strchr(sdr_error(), '\n'));
    assert_int_equal(sdr_folder_make("file.d"), SDR_OK);
    assert_int_equal(sdr_file_write("file.d", "x", 1), SDR_RUNTIME);
    assert_int_equal(sweep(), 1);
}

static void loading_refuses_what_is_missing_or_too_large(void **state)
{
    char *bytes = (char *)1;
    size_t count;
    (void)state;
    assert_int_equal(sdr_file_load("missing", 10, &bytes, &count), SDR_RUNTIME);
    assert_null(bytes);
    assert_int_equal(sdr_file_load(".", 1 << 20, &bytes, &count), SDR_RUNTIME);
    assert_int_equal(sdr_file_write("file", "12345678901", 11), SDR_OK);
    assert_int_equal(sdr_file_load("file", 10, &bytes, &count), SDR_BAD_FILE);
    assert_int_equal(sdr_file_load("file", 11, &bytes, &count), SDR_OK);
    assert_int_equal(bytes[11], 0);
    sdr_release(bytes);
    sdr_fault_arm(SDR_FAULT_READ, 1);
    assert_int_equal(sdr_file_load("file", 11, &bytes, &count), SDR_RUNTIME);
    sdr_fault_arm(SDR_FAULT_READ, 0);
    assert_null(bytes);
    sweep();
}

static void a_map_shows_the_file_and_an_empty_one_is_null(void **state)
{
    const void *bytes;
    size_t count;
    (void)state;
    assert_int_equal(sdr_file_write("file", "abc", 3), SDR_OK);
    assert_int_equal(sdr_file_map("file", &bytes, &count), SDR_OK);
    assert_int_equal(count, 3);
    assert_memory_equal(bytes, "abc", 3);
    sdr_file_unmap(bytes, count);
    assert_int_equal(sdr_file_write("file", "", 0), SDR_OK);
    assert_int_equal(sdr_file_map("file", &bytes, &count), SDR_OK);
    assert_true(bytes == NULL && count == 0);
    sdr_file_unmap(bytes, count);
    assert_int_equal(sdr_file_map("missing", &bytes, &count), SDR_RUNTIME);
    assert_int_equal(sdr_file_map(".", &bytes, &count), SDR_RUNTIME);
    sweep();
}

static void lines_are_appended_whole(void **state)
{
    (void)state;
    assert_int_equal(sdr_file_append("log", "one\n", 4), SDR_OK);
    sdr_fault_arm(SDR_FAULT_WRITE, 1);
    assert_int_equal(sdr_file_append("log", "two\n", 4), SDR_RUNTIME);
    sdr_fault_arm(SDR_FAULT_WRITE, 0);
    assert_int_equal(sdr_file_append("log", "three\n", 6), SDR_OK);
    expect_content("log", "one\nthree\n");
    assert_int_equal(sdr_file_append("no/log", "x\n", 2), SDR_RUNTIME);
    sweep();
}

static void folders_are_made_with_their_parents(void **state)
{
    struct sdr_file_facts facts;
    (void)state;
    assert_int_equal(sdr_folder_make("a/b/c"), SDR_OK);
    assert_int_equal(sdr_folder_make("a/b/c"), SDR_OK);
    assert_int_equal(sdr_folder_make("a//b/c/"), SDR_OK);
    assert_int_equal(sdr_folder_make("/"), SDR_OK);
    assert_int_equal(sdr_folder_make(""), SDR_USAGE);
    assert_int_equal(sdr_file_facts("a/b/c", &facts), SDR_OK);
    assert_true(facts.directory && !facts.regular);
    assert_int_equal(sdr_file_write("a/file", "x", 1), SDR_OK);
    assert_int_equal(sdr_folder_make("a/file"), SDR_RUNTIME);
    assert_int_equal(sdr_folder_make("a/file/b"), SDR_RUNTIME);
    remove("a/file");
    rmdir("a/b/c");
    rmdir("a/b");
    assert_int_equal(rmdir("a"), 0);
}

static int files_of(const char *pattern)
{
    glob_t found;
    int count = glob(pattern, 0, NULL, &found) == 0 ? (int)found.gl_pathc : 0;
    globfree(&found);
    return count;
}

/* In a process of its own: writers are of no use afterwards. A signal handler removes the files. */
static void on_signal(int number)
{
    (void)number;
    sdr_writers_remove();
    _exit(files_of("removed-*.tmp-*"));
}

static void a_signal_handler_can_remove_what_is_half_written(void **state)
{
    int status;
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        struct sdr_writer *writer[3];
        for (int i = 0; i < 3; i++) {
            char path[32];
            snprintf(path, sizeof path, "removed-%d", i);
            if (sdr_writer_open(path, &writer[i]) != SDR_OK)
                _exit(100);
        }
        sdr_writer_abandon(writer[1]);
        if (files_of("removed-*.tmp-*") != 2)
            _exit(101);
        signal(SIGBUS, on_signal);
        raise(SIGBUS);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void paths_join_with_one_slash(void **state)
{
    char *path;
    (void)state;
    assert_int_equal(sdr_path_join("a", "b", &path), SDR_OK);
    assert_string_equal(path, "a/b");
    sdr_release(path);
    assert_int_equal(sdr_path_join("a/", "b", &path), SDR_OK);
    assert_string_equal(path, "a/b");
    sdr_release(path);
    assert_string_equal(sdr_path_base("a/b/c"), "c");
    assert_string_equal(sdr_path_base("c"), "c");
    assert_string_equal(sdr_path_base("a/"), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_old_file_stays_until_the_last_write_succeeded),
        cmocka_unit_test(the_old_file_stays_whichever_allocation_fails),
        cmocka_unit_test(an_abandoned_file_leaves_nothing),
        cmocka_unit_test(leftovers_of_a_killed_process_with_our_number_do_not_matter),
        cmocka_unit_test(two_writers_of_one_file_do_not_meet),
        cmocka_unit_test(where_nothing_can_be_written_the_path_is_named),
        cmocka_unit_test(loading_refuses_what_is_missing_or_too_large),
        cmocka_unit_test(a_map_shows_the_file_and_an_empty_one_is_null),
        cmocka_unit_test(lines_are_appended_whole),
        cmocka_unit_test(folders_are_made_with_their_parents),
        cmocka_unit_test(a_signal_handler_can_remove_what_is_half_written),
        cmocka_unit_test(paths_join_with_one_slash),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
