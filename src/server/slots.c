#include "server/slots.h"
#include "base/memory.h"
#include "run/run.h"
#include "server/network.h"
#include "server/traffic.h"

#include <string.h>

typedef _Atomic uint64_t word;
struct head {
    word begun, finished; /* writes */
    word mixed;           /* the last write that another one was under way with */
    word bytes;           /* of the last write */
    /* by its node: writes begun at the last read, and at the last look that read nothing */
    word read, looked;
    /* by its node: writes that have begun and will not end: their process was killed */
    word stuck;
    word spare;
};
_Static_assert(sizeof(struct head) == 64, "a cache line");

static uint64_t stride_of(const struct sdr_slots *slots)
{
    return sizeof(struct head) + (slots->bytes + 63) / 64 * 64;
}

uint64_t sdr_slots_size(const struct sdr_slots *slots)
{
    return (uint64_t)slots->count * stride_of(slots);
}

void sdr_slots_place(const struct sdr_slots *slots, int nodes, unsigned char *memory)
{
    for (int n = 0; n < nodes; n++)
        slots->at[n] = (uint64_t *)(void *)(memory + (uint64_t)n * sdr_slots_size(slots));
}

static struct head *head_of(const struct sdr_slots *slots, int node, int slot)
{
    return (struct head *)(void *)((unsigned char *)slots->at[node] +
                                   (uint64_t)slot * stride_of(slots));
}

enum sdr_status sdr_slots_create(struct sdr_run *run, int count, uint64_t bytes)
{
    struct sdr_slots *slots = &run->network->slots;
    SDR_TRY(sdr_allocate(&slots->at, (size_t)run->network->nodes, sizeof *slots->at, "slots"));
    slots->count = count;
    slots->bytes = bytes;
    if (!run->use.transport->expose)
        return sdr_fail(SDR_USAGE, "--transport %s has no one-sided writes, which --sync %s needs",
                        run->use.transport->name, run->use.strategy->name);
    return run->use.transport->expose(run);
}

void sdr_slots_free(struct sdr_slots *slots)
{
    sdr_release(slots->at);
    *slots = (struct sdr_slots){0};
}

/* Bytes that others may write or read at the same time: a race that the numbers in the head tell
   of. memcpy moves them as fast as the machine can, in any order; for ThreadSanitizer, which knows
   no such thing, word by word. */
#ifdef __SANITIZE_THREAD__
static void copy_in(word *to, const unsigned char *from, uint64_t bytes)
{
    for (uint64_t i = 0, one = 0; i < bytes; i += sizeof one, one = 0) {
        memcpy(&one, from + i, bytes - i < sizeof one ? bytes - i : sizeof one);
        atomic_store_explicit(&to[i / sizeof one], one, memory_order_relaxed);
    }
}

static void copy_out(unsigned char *to, const word *from, uint64_t bytes)
{
    for (uint64_t i = 0, one; i < bytes; i += sizeof one) {
        one = atomic_load_explicit(&from[i / sizeof one], memory_order_relaxed);
        memcpy(to + i, &one, bytes - i < sizeof one ? bytes - i : sizeof one);
    }
}
#else
static void copy_in(word *to, const unsigned char *from, uint64_t bytes)
{
    atomic_thread_fence(memory_order_release); /* not before the write has begun */
    memcpy((void *)to, from, bytes);
}

static void copy_out(unsigned char *to, const word *from, uint64_t bytes)
{
    memcpy(to, (const void *)from, bytes);
}
#endif

static void raise(word *to, uint64_t value)
{
    uint64_t old = atomic_load_explicit(to, memory_order_relaxed);
    while (old < value && !atomic_compare_exchange_weak_explicit(
                              to, &old, value, memory_order_relaxed, memory_order_relaxed))
        ;
}

/* A writer that ends after another one has begun may have written into its bytes. */
void sdr_slot_write(const struct sdr_slots *slots, int node, int slot, const void *first,
                    const void *bytes, uint64_t count, bool whole)
{
    struct head *head = head_of(slots, node, slot);
    uint64_t mine = atomic_fetch_add_explicit(&head->begun, 1, memory_order_acq_rel) + 1;
    word *at = (word *)(void *)(head + 1);
    atomic_store_explicit(&head->bytes, sizeof *at + count, memory_order_relaxed);
    copy_in(at, first, sizeof *at);
    copy_in(at + 1, bytes, whole ? count : count / 2);
    /* the bytes are there before it looks who else has begun */
    atomic_thread_fence(memory_order_seq_cst);
    uint64_t last = atomic_load_explicit(&head->begun, memory_order_relaxed);
    if (last != mine || !whole)
        raise(&head->mixed, last);
    atomic_fetch_add_explicit(&head->finished, 1, memory_order_release);
}

enum sdr_status sdr_slot_put(struct sdr_node *node, int to, int slot, const void *head,
                             const void *bytes, uint64_t count)
{
    struct sdr_network *net = node->run->network;
    struct sdr_message message = {.kind = SDR_MESSAGE_PUT, .to = to, .about = slot};
    if (net->slots.at[to] && !node->run->use.transport->simulated) {
        sdr_slot_write(&net->slots, to, slot, head, bytes, count, true);
        sdr_count_bytes(net, sizeof(word) + count);
        return SDR_OK;
    }
    SDR_TRY(sdr_body_create(net->pool, sizeof(word) + count, &message.body));
    memcpy(message.body->data, head, sizeof(word));
    memcpy(message.body->data + sizeof(word), bytes, count);
    return sdr_send(node, &message);
}

void sdr_slot_read(const struct sdr_slots *slots, int node, int slot, void *bytes,
                   struct sdr_found *found)
{
    struct head *head = head_of(slots, node, slot);
    uint64_t finished = atomic_load_explicit(&head->finished, memory_order_acquire);
    uint64_t begun = atomic_load_explicit(&head->begun, memory_order_acquire);
    uint64_t before = atomic_load_explicit(&head->read, memory_order_relaxed);
    uint64_t stuck = atomic_load_explicit(&head->stuck, memory_order_relaxed),
             busy = begun - finished;
    *found = (struct sdr_found){0};
    if (begun == before)
        return;
    if (busy > stuck && atomic_load_explicit(&head->looked, memory_order_relaxed) != begun) {
        atomic_store_explicit(&head->looked, begun, memory_order_relaxed);
        return;
    }
    uint64_t count = atomic_load_explicit(&head->bytes, memory_order_relaxed);
    found->bytes = count < slots->bytes ? count : slots->bytes;
    copy_out(bytes, (const word *)(const void *)(head + 1), found->bytes);
    atomic_thread_fence(memory_order_acquire);
    found->torn = busy != stuck ||
                  atomic_load_explicit(&head->begun, memory_order_relaxed) != begun ||
                  atomic_load_explicit(&head->mixed, memory_order_relaxed) == begun;
    found->missed = begun - before - 1;
    if (busy < stuck || atomic_load(&slots->losses))
        atomic_store_explicit(&head->stuck, busy, memory_order_relaxed);
    atomic_store_explicit(&head->read, begun, memory_order_relaxed);
}

void sdr_slot_arrive(struct sdr_network *net, const struct sdr_message *message)
{
    const unsigned char *bytes = message->body->data;
    sdr_slot_write(&net->slots, message->to, message->about, bytes, bytes + sizeof(word),
                   message->body->bytes - sizeof(word), !(message->flags & SDR_TORN));
}
