/* Laws of one-sided writes, over every transport: see test_transport.c, of which this is a part. */
#include "base/clock.h"
#include "conform/transport.h"
#include "server/slots.h"

#include <pthread.h>
#include <sched.h>

enum { BYTES = 20000 };

/* Bytes that tell who wrote them, and which time: all words are alike. */
static void fill(uint64_t *bytes, int from, uint64_t time)
{
    for (int i = 0; i < BYTES / 8; i++)
        bytes[i] = (uint64_t)from << 32 | time;
}

static bool is_filled(const uint64_t *bytes)
{
    for (int i = 1; i < BYTES / 8; i++)
        if (bytes[i] != bytes[0])
            return false;
    return true;
}

/* `bytes` as they will be read: a head and the rest. */
static enum sdr_status put(struct sdr_node *node, int to, int slot, const uint64_t *bytes)
{
    return sdr_slot_put(node, to, slot, bytes, bytes + 1, BYTES - 8);
}

static struct sdr_run *create_with_slots(const struct way *way)
{
    struct sdr_run *run = create_peers(way, (struct times){0});
    assert_int_equal(sdr_slots_create(run, NODES, BYTES), SDR_OK);
    return run;
}

/* Everybody writes to everybody, itself included, and says so. */
static enum sdr_status write_once(struct sdr_node *node)
{
    static _Thread_local uint64_t bytes[BYTES / 8];
    const struct sdr_slots *slots = &node->run->network->slots;
    struct sdr_found found;
    for (int to = 0; to < NODES; to++) {
        fill(bytes, node->id, (uint64_t)to);
        SDR_TRY(put(node, to, node->id, bytes));
        SDR_TRY(tell(node, to, 0, 0));
    }
    for (int i = 0; i < NODES; i++) {
        struct sdr_message message;
        SDR_TRY(hear(node, &message));
        sdr_slot_read(slots, node->id, message.from, bytes, &found);
        EXPECT(found.bytes == BYTES && !found.torn && found.missed == 0);
        EXPECT(is_filled(bytes) && bytes[0] == ((uint64_t)message.from << 32 | (uint64_t)node->id));
        sdr_slot_read(slots, node->id, message.from, bytes, &found);
        EXPECT(found.bytes == 0);
    }
    return SDR_OK;
}

LAW(what_is_written_is_found_once)
{
    struct sdr_run *run = create_with_slots(way);
    expect_launch(way, run, write_once);
    sdr_run_destroy(run);
}

/* The last of several writes is found, and how many it has overwritten. */
static enum sdr_status write_often(struct sdr_node *node)
{
    enum { TIMES = 5 };
    static _Thread_local uint64_t bytes[BYTES / 8];
    struct sdr_found found;
    struct sdr_message message;
    int to = (node->id + 1) % NODES, from = (node->id + NODES - 1) % NODES;
    for (uint64_t i = 0; i < TIMES; i++) {
        fill(bytes, node->id, i);
        SDR_TRY(put(node, to, 2, bytes));
    }
    SDR_TRY(tell(node, to, 0, 0));
    SDR_TRY(hear(node, &message));
    sdr_slot_read(&node->run->network->slots, node->id, 2, bytes, &found);
    EXPECT(found.bytes == BYTES && !found.torn && found.missed == TIMES - 1);
    EXPECT(is_filled(bytes) && bytes[0] == ((uint64_t)from << 32 | (TIMES - 1)));
    return SDR_OK;
}

LAW(the_last_write_is_found)
{
    struct sdr_run *run = create_with_slots(way);
    expect_launch(way, run, write_often);
    sdr_run_destroy(run);
}

/* All write to one slot of node 0 at the same time, which reads meanwhile: what is not torn is of
   one write. */
static enum sdr_status write_together(struct sdr_node *node)
{
    enum { TIMES = 2000 };
    static _Thread_local uint64_t bytes[BYTES / 8];
    struct sdr_found found;
    uint64_t reads = 0, missed = 0;
    for (uint64_t i = 0; i < TIMES && node->id > 0; i++) {
        fill(bytes, node->id, i);
        SDR_TRY(put(node, 0, 1, bytes));
    }
    if (node->id > 0)
        return tell(node, 0, 0, 0);
    for (int done = 0; done < NODES - 1;) {
        struct sdr_message message;
        sdr_slot_read(&node->run->network->slots, 0, 1, bytes, &found);
        EXPECT(found.bytes == 0 || found.bytes == BYTES);
        EXPECT(found.torn || !found.bytes || is_filled(bytes));
        reads += found.bytes > 0;
        missed += found.missed;
        if (transport_of(node)->simulated || transport_of(node)->any(node)) {
            SDR_TRY(hear(node, &message));
            done++;
        }
    }
    sdr_slot_read(&node->run->network->slots, 0, 1, bytes, &found);
    EXPECT(found.torn || !found.bytes || is_filled(bytes));
    EXPECT(reads + missed + (found.bytes > 0) + found.missed == (NODES - 1) * TIMES);
    return SDR_OK;
}

LAW(a_mixture_is_torn)
{
    struct sdr_run *run = create_with_slots(way);
    expect_launch(way, run, write_together);
    sdr_run_destroy(run);
}

/* Two threads write a few bytes at the same time, many times; then the slot is read. Threads that
   do not have a core each meet rarely: they end after a while. */
enum { ROUNDS = 200000, SECONDS = 2 };
static struct {
    struct sdr_slots slots;
    uint64_t bytes;
    atomic_int here;  /* twice for every time that both have met */
    atomic_bool over; /* this round is the last */
} pair;

/* Waits for the other one. */
static void meet(int times)
{
    enum { SPINS = 2000 };
    atomic_fetch_add(&pair.here, 1);
    for (int spins = 0; atomic_load(&pair.here) < 2 * times; spins++)
        if (spins > SPINS)
            sched_yield();
}

static void *write_in_step(void *argument)
{
    static uint64_t bytes[BYTES / 8];
    (void)argument;
    fill(bytes, 2, 0);
    bool over = false;
    for (int round = 0; !over; round++) {
        meet(2 * round + 1);
        over = atomic_load(&pair.over);
        sdr_slot_write(&pair.slots, 0, 0, bytes, bytes + 1, pair.bytes - 8, true);
        meet(2 * round + 2);
    }
    return NULL;
}

static void a_mixture_of_two_small_writes_is_torn(void **state)
{
    static uint64_t memory[BYTES / 8 + 16], own[BYTES / 8], bytes[BYTES / 8], *at[1] = {memory};
    (void)state;
    fill(own, 1, 0);
    for (uint64_t size = 512; size <= 4096; size *= 2) {
        pthread_t other;
        uint64_t mixed = 0;
        memset(memory, 0, sizeof memory);
        pair.slots = (struct sdr_slots){.count = 1, .bytes = BYTES, .at = at};
        pair.bytes = size;
        atomic_store(&pair.here, 0);
        atomic_store(&pair.over, false);
        assert_int_equal(pthread_create(&other, NULL, write_in_step, NULL), 0);
        int64_t end = sdr_clock_now() + (int64_t)SECONDS * 1000000000;
        bool over = false;
        for (int round = 0; !over; round++) {
            struct sdr_found found;
            bool alike = true;
            over = round + 1 == ROUNDS || sdr_clock_now() > end;
            atomic_store(&pair.over, over);
            meet(2 * round + 1);
            sdr_slot_write(&pair.slots, 0, 0, own, own + 1, size - 8, true);
            meet(2 * round + 2);
            sdr_slot_read(&pair.slots, 0, 0, bytes, &found);
            for (uint64_t i = 1; i < size / 8; i++)
                alike = alike && bytes[i] == bytes[0];
            mixed += !found.bytes || (!alike && !found.torn);
        }
        pthread_join(other, NULL);
        assert_int_equal(mixed, 0);
    }
}

/* A write that was broken off is found, as torn, on top of what was there before. */
static void a_part_is_torn(void **state)
{
    static uint64_t memory[4 * (BYTES / 8 + 16)], bytes[BYTES / 8], *at[1] = {memory};
    struct sdr_slots slots = {.count = 2, .bytes = BYTES, .at = at};
    struct sdr_found found;
    (void)state;
    assert_true(sdr_slots_size(&slots) <= sizeof memory);
    fill(bytes, 1, 1);
    sdr_slot_write(&slots, 0, 1, bytes, bytes + 1, BYTES - 8, true);
    sdr_slot_read(&slots, 0, 0, bytes, &found);
    assert_int_equal(found.bytes, 0);
    sdr_slot_read(&slots, 0, 1, bytes, &found);
    assert_true(found.bytes == BYTES && !found.torn && is_filled(bytes));
    fill(bytes, 2, 2);
    sdr_slot_write(&slots, 0, 1, bytes, bytes + 1, BYTES - 8, false);
    sdr_slot_read(&slots, 0, 1, bytes, &found);
    assert_true(found.bytes == BYTES && found.torn && found.missed == 0);
    assert_true(bytes[1] >> 32 == 2 && bytes[BYTES / 8 - 1] >> 32 == 1);
    fill(bytes, 3, 3);
    sdr_slot_write(&slots, 0, 1, bytes, bytes + 1, BYTES - 8, true);
    sdr_slot_read(&slots, 0, 1, bytes, &found);
    assert_true(found.bytes == BYTES && !found.torn && is_filled(bytes));
}

/* A writer that was killed in the middle spoils one read; after that, writes of others are whole
   again. */
static void a_killed_writer_spoils_one_read(void **state)
{
    static uint64_t memory[2 * (BYTES / 8 + 16)], bytes[BYTES / 8], *at[1] = {memory};
    struct sdr_slots slots = {.count = 1, .bytes = BYTES, .at = at};
    struct sdr_found found;
    (void)state;
    for (int killed = 0; killed < 3; killed++) {
        memory[0]++; /* one has begun, and will not end */
        sdr_slot_read(&slots, 0, 0, bytes, &found);
        assert_int_equal(found.bytes, 0);
        atomic_store(&slots.losses, true);
        for (int time = 0; time < 10; time++) {
            fill(bytes, 3, (uint64_t)time);
            sdr_slot_write(&slots, 0, 0, bytes, bytes + 1, BYTES - 8, true);
            for (found.bytes = 0; found.bytes == 0;)
                sdr_slot_read(&slots, 0, 0, bytes, &found);
            assert_true(is_filled(bytes));
            assert_int_equal(found.torn, time == 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_writer_spoils_one_read),
        cmocka_unit_test(what_is_written_is_found_once),
        cmocka_unit_test(the_last_write_is_found),
        cmocka_unit_test(a_mixture_is_torn),
        cmocka_unit_test(a_mixture_of_two_small_writes_is_torn),
        cmocka_unit_test(a_part_is_torn),
    };
    return run_laws(tests, sizeof tests / sizeof *tests);
}
