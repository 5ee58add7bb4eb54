/* Messages as bytes: what was packed is unpacked, and bytes that are no message are refused. */
#include "transport/mpi_wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { NODES = 5 };
static struct sdr_pool *pool;

static struct sdr_message example(uint64_t bytes)
{
    struct sdr_message message = {.kind = SDR_MESSAGE_TASK,
                                  .flags = 0xA5,
                                  .sequence = 0xB6C7,
                                  .from = 4,
                                  .to = 0,
                                  .about = -7,
                                  .version = UINT64_MAX - 3,
                                  .batch = UINT64_C(1) << 60,
                                  .value = -0.1};
    if (bytes)
        assert_int_equal(sdr_body_create(pool, bytes, &message.body), SDR_OK);
    for (uint64_t i = 0; i < bytes; i++)
        message.body->data[i] = (unsigned char)(i * 7 + bytes);
    return message;
}

/* Bodies up to SDR_WIRE_SMALL go with the header; of larger ones the length is told. */
static void a_message_comes_back(void **state)
{
    static const uint64_t size[] = {0, 1, 47, 48, 4095, 4096, 4097, 100000};
    (void)state;
    for (size_t i = 0; i < sizeof size / sizeof *size; i++) {
        unsigned char bytes[SDR_WIRE_MOST];
        struct sdr_message message = example(size[i]), got;
        struct sdr_wire_rest rest;
        uint64_t with = size[i] <= SDR_WIRE_SMALL ? size[i] : 0;
        size_t count = sdr_wire_pack(&message, NULL, bytes);
        assert_int_equal(count, SDR_HEADER_BYTES + with);
        assert_int_equal(sdr_wire_unpack(bytes, count, NODES, pool, &got, &rest), SDR_OK);
        assert_int_equal(rest.bytes, size[i] - with);
        assert_false(rest.stays);
        assert_true(got.kind == message.kind && got.flags == message.flags);
        assert_true(got.from == message.from && got.to == message.to);
        assert_int_equal(got.sequence, message.sequence);
        assert_true(got.about == message.about && got.version == message.version);
        assert_true(got.batch == message.batch && got.value == message.value);
        assert_int_equal(got.body ? got.body->bytes : 0, with);
        if (with)
            assert_memory_equal(got.body->data, message.body->data, with);
        sdr_body_drop(message.body);
        sdr_body_drop(got.body);
    }
}

/* Of a body that stays with its sender the place is told; a small one never stays. */
static void the_place_of_a_body_comes_back(void **state)
{
    const struct sdr_wire_place place = {UINT64_C(1) << 40, 128};
    unsigned char bytes[SDR_WIRE_MOST];
    struct sdr_message message = example(100000), got;
    struct sdr_wire_rest rest;
    (void)state;
    size_t count = sdr_wire_pack(&message, &place, bytes);
    assert_int_equal(count, SDR_HEADER_BYTES + sizeof place);
    assert_int_equal(sdr_wire_unpack(bytes, count, NODES, pool, &got, &rest), SDR_OK);
    assert_true(rest.stays && rest.bytes == 100000 && !got.body);
    assert_memory_equal(&rest.place, &place, sizeof place);
    sdr_body_drop(message.body);
    message = example(16);
    count = sdr_wire_pack(&message, &place, bytes);
    assert_int_equal(sdr_wire_unpack(bytes, count, NODES, pool, &got, &rest), SDR_RUNTIME);
    sdr_body_drop(message.body);
}

static enum sdr_status unpack(const unsigned char *bytes, size_t count)
{
    struct sdr_message got = {0};
    struct sdr_wire_rest rest = {0};
    unsigned char *exact = malloc(count ? count : 1); /* so that sanitizers see a byte too many */
    assert_non_null(exact);
    memcpy(exact, bytes, count);
    enum sdr_status status = sdr_wire_unpack(exact, count, NODES, pool, &got, &rest);
    free(exact);
    if (status == SDR_OK) {
        assert_true(got.from >= 0 && got.from < NODES && got.to >= 0 && got.to < NODES);
        assert_true(got.kind < SDR_MESSAGE_KINDS || got.kind == SDR_WIRE_BYE);
        assert_int_equal(count, SDR_HEADER_BYTES + (rest.stays ? sizeof rest.place
                                                    : got.body ? got.body->bytes
                                                               : 0));
        sdr_body_drop(got.body);
    }
    return status;
}

static void a_message_of_another_length_is_refused(void **state)
{
    (void)state;
    for (uint64_t size = 0; size < 200; size += 50) {
        unsigned char bytes[SDR_WIRE_MOST] = {0};
        struct sdr_message message = example(size);
        size_t count = sdr_wire_pack(&message, NULL, bytes);
        for (size_t other = 0; other < count + 100; other++)
            assert_int_equal(unpack(bytes, other) == SDR_OK, other == count);
        sdr_body_drop(message.body);
    }
}

/* Mark, format, kind, nodes and length each have a value that is refused, and so has the byte that
   says where the body is. */
static void a_header_with_a_wrong_field_is_refused(void **state)
{
    static const struct {
        size_t at, size;
        uint32_t value;
    } wrong[] = {{0, 2, 0x4453},
                 {2, 1, 1},
                 {3, 1, SDR_MESSAGE_KINDS},
                 {5, 1, 1},
                 {5, 1, 2},
                 {3, 1, SDR_MESSAGE_NONE},
                 {3, 1, SDR_MESSAGE_LOST},
                 {3, 1, SDR_MESSAGE_JOINED},
                 {8, 4, NODES},
                 {8, 4, -1u},
                 {12, 4, -1u},
                 {12, 4, NODES},
                 {20, 4, 31},
                 {20, 4, -1u}};
    unsigned char good[SDR_WIRE_MOST], bytes[SDR_WIRE_MOST];
    struct sdr_message message = example(30);
    size_t count = sdr_wire_pack(&message, NULL, good);
    (void)state;
    assert_int_equal(unpack(good, count), SDR_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        memcpy(bytes, good, count);
        uint16_t two = (uint16_t)wrong[i].value;
        uint8_t one = (uint8_t)wrong[i].value;
        const void *value = wrong[i].size == 4   ? (const void *)&wrong[i].value
                            : wrong[i].size == 2 ? (const void *)&two
                                                 : (const void *)&one;
        memcpy(bytes + wrong[i].at, value, wrong[i].size);
        assert_int_not_equal(unpack(bytes, count), SDR_OK);
    }
    sdr_body_drop(message.body);
}

/* Random bytes, with a header that is right to begin with in every second case: an error or a sound
   message. */
static void random_bytes_do_no_harm(void **state)
{
    uint64_t random = 1;
    int sound = 0;
    (void)state;
    for (int i = 0; i < 20000; i++) {
        unsigned char bytes[SDR_WIRE_MOST];
        struct sdr_message message = example(60);
        size_t count = sdr_wire_pack(&message, NULL, bytes);
        for (int k = i % 2 ? 1 : SDR_HEADER_BYTES; k > 0; k--) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
            bytes[random >> 33 & 63] = (unsigned char)(random >> 50);
        }
        sound += unpack(bytes, count) == SDR_OK;
        sdr_body_drop(message.body);
    }
    assert_true(sound > 1000 && sound < 15000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_comes_back),
        cmocka_unit_test(the_place_of_a_body_comes_back),
        cmocka_unit_test(a_message_of_another_length_is_refused),
        cmocka_unit_test(a_header_with_a_wrong_field_is_refused),
        cmocka_unit_test(random_bytes_do_no_harm),
    };
    if (sdr_pool_create(true, &pool) != SDR_OK)
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    sdr_pool_destroy(pool);
    return failed;
}
