/* Loaded in front of the C library (LD_PRELOAD): makes the n-th allocation of a whole program fail,
   those of the libraries it uses included.

       FAIL_AT=n      the n-th call of malloc, calloc, realloc, aligned_alloc or posix_memalign returns NULL
       FAIL_FROM=n    so do all calls from the n-th on
       FAIL_COUNT=f   at its end the program writes the number of its calls into file f

   strdup, fopen and the like call malloc. What the dynamic loader allocates before the program
   begins is not counted: no program can answer for it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

static atomic_ullong calls;
static unsigned long long at, from;
static const char *count_file;
static atomic_bool counting;

static unsigned long long number(const char *name)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : 0;
}

static __attribute__((constructor)) void begin(void)
{
    at = number("FAIL_AT");
    from = number("FAIL_FROM");
    count_file = getenv("FAIL_COUNT");
    atomic_store(&counting, true);
}

static __attribute__((destructor)) void end(void)
{
    char text[32];
    atomic_store(&counting, false);
    int file = count_file ? open(count_file, O_WRONLY | O_CREAT | O_TRUNC, 0666) : -1;
    if (file < 0)
        return;
    int length = snprintf(text, sizeof text, "%llu\n", atomic_load(&calls));
    (void)!write(file, text, (size_t)length);
    close(file);
}

static bool fails(void)
{
    if (!atomic_load_explicit(&counting, memory_order_relaxed))
        return false;
    unsigned long long call = atomic_fetch_add(&calls, 1) + 1;
    if (call != at && !(from && call >= from))
        return false;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t bytes)
{
    return fails() ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    return fails() ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes)
{
    return fails() ? NULL : __libc_realloc(memory, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return fails() ? NULL : __libc_memalign(alignment, bytes);
}

int posix_memalign(void **memory, size_t alignment, size_t bytes)
{
    *memory = fails() ? NULL : __libc_memalign(alignment, bytes);
    return *memory ? 0 : ENOMEM;
}
