/* A stack switch takes a dozen instructions on x86-64 and arm64. Other CPUs use ucontext, which
   makes a system call per switch. Sanitizers track stacks and are told of every switch. */
#define _GNU_SOURCE /* MAP_STACK */
#include "base/coroutine.h"
#include "base/memory.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__has_feature) /* clang */
#if __has_feature(address_sanitizer) && !defined(__SANITIZE_ADDRESS__)
#define __SANITIZE_ADDRESS__ 1
#endif
#if __has_feature(thread_sanitizer) && !defined(__SANITIZE_THREAD__)
#define __SANITIZE_THREAD__ 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif
#if defined(__x86_64__) || defined(__aarch64__)
#define SWITCHES 1
#else
#define SWITCHES 0
#include <ucontext.h>
#endif

/* Stored at the top of its own stack, so that resuming touches neighbouring cache lines. */
struct sdr_coroutine {
    void (*loop)(void *argument);
    void *argument;
    bool over;
    unsigned char *stack; /* the lowest page is an unmapped guard */
    size_t size;
#if SWITCHES
    void *own, *other; /* saved stack pointers */
#else
    ucontext_t own, other;
#endif
#if defined(__SANITIZE_ADDRESS__)
    void *own_fake, *other_fake;
    const void *other_bottom;
    size_t other_size;
#endif
#if defined(__SANITIZE_THREAD__)
    void *own_fiber, *other_fiber;
#endif
};

#if SWITCHES
/* Pushes the callee-saved registers on the current stack, switches to `to` and pops them there. */
void sdr_switch_stacks(void **from, void *to);
#if defined(__x86_64__)
__asm__(".text\n"
        ".globl sdr_switch_stacks\n"
        ".hidden sdr_switch_stacks\n"
        ".type sdr_switch_stacks, @function\n"
        "sdr_switch_stacks:\n"
        "    pushq %rbp\n    pushq %rbx\n    pushq %r12\n    pushq %r13\n    pushq %r14\n    pushq "
        "%r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n    popq %r14\n    popq %r13\n    popq %r12\n    popq %rbx\n    popq %rbp\n"
        "    ret\n"
        ".size sdr_switch_stacks, .-sdr_switch_stacks\n");
enum { SAVED = 6 }; /* words below the return address */
#else
__asm__(".text\n"
        ".globl sdr_switch_stacks\n"
        ".hidden sdr_switch_stacks\n"
        ".type sdr_switch_stacks, %function\n"
        "sdr_switch_stacks:\n"
        "    sub sp, sp, #160\n"
        "    stp x19, x20, [sp, #0]\n    stp x21, x22, [sp, #16]\n    stp x23, x24, [sp, #32]\n"
        "    stp x25, x26, [sp, #48]\n    stp x27, x28, [sp, #64]\n    stp x29, x30, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n    stp d14, d15, [sp, #144]\n"
        "    mov x2, sp\n    str x2, [x0]\n"
        "    mov sp, x1\n"
        "    ldp x19, x20, [sp, #0]\n    ldp x21, x22, [sp, #16]\n    ldp x23, x24, [sp, #32]\n"
        "    ldp x25, x26, [sp, #48]\n    ldp x27, x28, [sp, #64]\n    ldp x29, x30, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n    ldp d10, d11, [sp, #112]\n"
        "    ldp d12, d13, [sp, #128]\n    ldp d14, d15, [sp, #144]\n"
        "    add sp, sp, #160\n"
        "    ret\n"
        ".size sdr_switch_stacks, .-sdr_switch_stacks\n");
#endif
#endif

/* Passes the coroutine to begin(), which has no arguments. */
static _Thread_local struct sdr_coroutine *starting;

static void arrived(struct sdr_coroutine *c)
{
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(c->own_fake, &c->other_bottom, &c->other_size);
#endif
    (void)c;
}

static void leave(struct sdr_coroutine *c)
{
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(c->over ? NULL : &c->own_fake, c->other_bottom, c->other_size);
#endif
#if defined(__SANITIZE_THREAD__)
    __tsan_switch_to_fiber(c->other_fiber, 0);
#endif
#if SWITCHES
    sdr_switch_stacks(&c->own, c->other);
#else
    swapcontext(&c->own, &c->other);
#endif
    arrived(c);
}

static void begin(void)
{
    struct sdr_coroutine *c = starting;
    arrived(c);
    c->loop(c->argument);
    c->over = true;
    leave(c); /* never returns */
    __builtin_trap();
}

/* Page-aligned stacks would compete for the same few cache sets when there are thousands of them;
   this offset spreads them over 48 cache lines. */
static size_t shift(const void *memory)
{
    enum { LINE = 64, PLACES = 48 };
    return (uintptr_t)memory / 4096 * 11 % PLACES * LINE;
}

enum sdr_status sdr_coroutine_create(void (*loop)(void *argument), void *argument, size_t stack,
                                     struct sdr_coroutine **coroutine)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = (stack + page - 1) / page * page + page;
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED)
        return sdr_fail(SDR_RUNTIME, "out of memory: the stack of a node (give fewer --workers)");
    uintptr_t top = (uintptr_t)memory + size - shift(memory) - sizeof(struct sdr_coroutine);
    struct sdr_coroutine *c = (struct sdr_coroutine *)(top & ~(uintptr_t)63);
    *c = (struct sdr_coroutine){.loop = loop, .argument = argument, .stack = memory, .size = size};
    /* Guard page: an overflow faults. At the kernel's limit of mappings the stack stays
       unguarded. */
    (void)mprotect(memory, page, PROT_NONE);
#if SWITCHES
#if defined(__x86_64__)
    void **at = (void **)c - 2; /* as after a call: 16-byte aligned + 8 */
    *at = (void *)(uintptr_t)begin;
    memset(at - SAVED, 0, SAVED * sizeof *at);
    c->own = at - SAVED;
#else
    uint64_t *at = (uint64_t *)c - 20;
    memset(at, 0, 20 * sizeof *at);
    at[11] = (uint64_t)(uintptr_t)begin; /* x30 */
    c->own = at;
#endif
#else
    getcontext(&c->own);
    c->own.uc_stack.ss_sp = c->stack + page;
    c->own.uc_stack.ss_size = (size_t)((unsigned char *)c - c->stack) - page;
    c->own.uc_link = NULL;
    makecontext(&c->own, begin, 0);
#endif
#if defined(__SANITIZE_THREAD__)
    c->own_fiber = __tsan_create_fiber(0);
#endif
    *coroutine = c;
    return SDR_OK;
}

void sdr_coroutine_destroy(struct sdr_coroutine *c)
{
    if (!c)
        return;
#if defined(__SANITIZE_THREAD__)
    __tsan_destroy_fiber(c->own_fiber);
#endif
#if defined(__SANITIZE_ADDRESS__)
    /* A loop that never finished left poisoned frames; the next stack may be mapped here. */
    __asan_unpoison_memory_region(c->stack, c->size);
#endif
    munmap(c->stack, c->size);
}

void sdr_coroutine_fetch(const struct sdr_coroutine *c)
{
    enum { LINE = 64, LINES = 12 }; /* the frames of a suspended node loop */
    for (int i = 0; i <= LINES; i++)
        __builtin_prefetch((const unsigned char *)c + sizeof *c - 1 - i * LINE, 1);
}

bool sdr_coroutine_resume(struct sdr_coroutine *c)
{
    if (c->over)
        return false;
    starting = c;
#if defined(__SANITIZE_THREAD__)
    c->other_fiber = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(c->own_fiber, 0);
#endif
#if defined(__SANITIZE_ADDRESS__)
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    __sanitizer_start_switch_fiber(&c->other_fake, c->stack + page, c->size - page);
#endif
#if SWITCHES
    sdr_switch_stacks(&c->other, c->own);
#else
    swapcontext(&c->other, &c->own);
#endif
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(c->other_fake, NULL, NULL);
#endif
    return !c->over;
}

void sdr_coroutine_yield(struct sdr_coroutine *c)
{
    leave(c);
}
