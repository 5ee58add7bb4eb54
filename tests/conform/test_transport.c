/* The contract of transports, run over every transport there is. A loop that sees a law broken
   fails, and its sentence comes out of the launch.

   Under mpirun the nodes live in several processes, and what loops tell each other goes by
   messages. Laws that need more than that, or a launch that fails, which ends the job, are left out
   there. */
#include "conform/transport.h"

static void a_transport_is_complete(void **state)
{
    (void)state;
    for (const struct sdr_transport *const *t = sdr_transport_table; *t; t++) {
        assert_non_null((*t)->summary);
        assert_true(!(*t)->options == !(*t)->options_size);
        assert_true((*t)->workers_most > 0);
        assert_true(!(*t)->join == !(*t)->leave);
        assert_false((*t)->join && ((*t)->simulated || (*t)->by_reference));
        assert_true((*t)->open && (*t)->launch && (*t)->send && (*t)->receive);
        assert_true((*t)->compute && (*t)->any && (*t)->now && (*t)->close);
    }
}

/* ---- launch ---- */
/* The first server is done first, and workers dally. */
static enum sdr_status report(struct sdr_node *node)
{
    struct labour labour = {0};
    bool done = true, seen[NODES] = {true};
    scene.began[node->id]++;
    for (int i = 1; i < NODES && node->id == 0; i++) {
        struct sdr_message message;
        SDR_TRY(hear(node, &message));
        EXPECT(message.from > 0 && message.from < NODES && !seen[message.from]);
        seen[message.from] = true;
    }
    if (node->id > 0)
        SDR_TRY(tell(node, 0, 0, 0));
    if (node->worker >= 0)
        SDR_TRY(compute(node, &labour, false, &done));
    EXPECT(done);
    scene.returned[node->id]++;
    return SDR_OK;
}

LAW(every_loop_runs_once_and_launch_waits_for_all)
{
    struct sdr_run *run = create(way, (struct times){.delay = "const:0.1"});
    expect_launch(way, run, report);
    for (int i = 0; i < NODES; i++) {
        assert_int_equal(scene.began[i], scene.returned[i]);
        assert_true(scene.began[i] == 1 || (scene.several && scene.began[i] == 0));
    }
    sdr_run_destroy(run);
}

static enum sdr_status fail_among_others(struct sdr_node *node)
{
    struct labour labour = {.patient = !transport_of(node)->simulated};
    struct sdr_message message;
    enum sdr_status status = SDR_OK;
    bool done = true;
    scene.began[node->id]++;
    if (node->id == scene.fails) {
        for (int i = 0; i < NODES; i++)
            if (talk(i, node->id))
                SDR_TRY(hear(node, &message));
        scene.returned[node->id]++;
        return sdr_fail(SDR_DIVERGED, "node %d has had enough", node->id);
    }
    if (talk(node->id, scene.fails))
        SDR_TRY(tell(node, scene.fails, 0, 0));
    if (node->worker >= 0 && node->id != OTHER)
        status = compute(node, &labour, false, &done);
    if (node->worker >= 0 && node->id != OTHER && status == SDR_OK)
        scene.began[node->id] += done || !labour.stopped; /* then it was not ended */
    if (status == SDR_OK)
        status = hear(node, &message);
    scene.returned[node->id] += status != SDR_OK;
    return status;
}

LAW(a_loop_that_fails_ends_the_launch)
{
    for (int fails = 0; fails < NODES && way->processes == 1; fails++) {
        char sentence[64];
        struct sdr_run *run = create(way, (struct times){.compute = "const:1"});
        scene.fails = fails;
        snprintf(sentence, sizeof sentence, "node %d has had enough", fails);
        assert_int_equal(run->use.transport->launch(run, fail_among_others), SDR_DIVERGED);
        assert_string_equal(sdr_error(), sentence);
        for (int i = 0; i < NODES && !way->transport->simulated; i++) {
            assert_int_equal(scene.began[i], 1);
            assert_int_equal(scene.returned[i], 1);
        }
        sdr_run_destroy(run);
    }
}

static enum sdr_status fail_at_work(struct sdr_node *node)
{
    struct labour labour = {.status = SDR_BAD_DATA};
    struct sdr_message message;
    bool done;
    if (node->id == scene.fails)
        SDR_TRY(compute(node, &labour, scene.certain, &done));
    return hear(node, &message);
}

LAW(work_that_fails_ends_the_launch)
{
    for (int certain = 0; certain < 2 && way->processes == 1; certain++) {
        struct sdr_run *run = create(way, (struct times){0});
        scene.fails = BUSY;
        scene.certain = certain;
        assert_int_equal(run->use.transport->launch(run, fail_at_work), SDR_BAD_DATA);
        assert_string_equal(sdr_error(), "this work cannot be done");
        sdr_run_destroy(run);
    }
}

static enum sdr_status wait_in_vain(struct sdr_node *node)
{
    struct labour labour = {0};
    struct sdr_message message;
    bool done;
    if (node->id == 0)
        return SDR_OK;
    if (node->id == BUSY)
        SDR_TRY(compute(node, &labour, false, &done));
    return hear(node, &message);
}

LAW(simulated_nodes_that_wait_for_each_other_are_told_so)
{
    if (!way->transport->simulated)
        return;
    struct sdr_run *run = create(way, (struct times){0});
    assert_int_not_equal(run->use.transport->launch(run, wait_in_vain), SDR_OK);
    if (!strstr(sdr_error(), "wait") || !strstr(sdr_error(), "node 1"))
        fail_msg("%s does not say that node 1 waits: %s", way->text, sdr_error());
    sdr_run_destroy(run);
}

/* ---- messages ---- */
enum { MESSAGES = 300 };

static uint64_t size_of_body(int number)
{
    static const uint64_t size[] = {0, 0, 1, 4096, 4097};
    return number % 150 == 71 ? 1000000 : size[number % 5];
}

static struct sdr_message plain_message(int from, int to, int number)
{
    static const uint8_t kind[] = {SDR_MESSAGE_TASK, SDR_MESSAGE_GRADIENT, SDR_MESSAGE_APPLY,
                                   SDR_MESSAGE_STOP, SDR_MESSAGE_PEER,     SDR_MESSAGE_ANSWER};
    return (struct sdr_message){.kind = kind[number % 6],
                                .flags = (uint8_t)(number % 8),
                                .from = from,
                                .to = to,
                                .about = number % 2 ? -number : INT32_MAX - number,
                                .version = UINT64_MAX - (uint64_t)number,
                                .batch = (uint64_t)number << 33,
                                .value = number / 7.0};
}

static unsigned char byte_of(int from, int to, int number, uint64_t at)
{
    return (unsigned char)(at * 7 + at / 251 + (uint64_t)(from * 31 + to * 17 + number));
}

static enum sdr_status send_number(struct sdr_node *node, int to, int number)
{
    struct sdr_message message = plain_message(node->id, to, number);
    uint64_t bytes = size_of_body(number);
    if (number % 5) /* else there is none */
        SDR_TRY(sdr_body_create(node->run->network->pool, bytes, &message.body));
    for (uint64_t i = 0; i < bytes; i++)
        message.body->data[i] = byte_of(node->id, to, number, i);
    return transport_of(node)->send(node, &message);
}

static enum sdr_status expect_number(const struct sdr_node *node, const struct sdr_message *message,
                                     int number)
{
    struct sdr_message sent = plain_message(message->from, node->id, number);
    uint64_t bytes = size_of_body(number), same = 0;
    EXPECT(message->batch == sent.batch);
    EXPECT(message->kind == sent.kind && message->flags == sent.flags);
    EXPECT(message->to == sent.to && message->about == sent.about);
    EXPECT(message->version == sent.version && message->value == sent.value);
    EXPECT((message->body ? message->body->bytes : 0) == bytes);
    while (same < bytes &&
           message->body->data[same] == byte_of(message->from, node->id, number, same))
        same++;
    EXPECT(same == bytes);
    return SDR_OK;
}

static enum sdr_status send_all_then_receive(struct sdr_node *node)
{
    int next[NODES] = {0}, links = 0;
    for (int number = 0; number < MESSAGES; number++)
        for (int to = 0; to < NODES; to++)
            if (talk(node->id, to))
                SDR_TRY(send_number(node, to, number));
    for (int from = 0; from < NODES; from++)
        links += talk(from, node->id);
    for (int i = 0; i < links * MESSAGES; i++) {
        struct sdr_message message;
        SDR_TRY(hear(node, &message));
        EXPECT(message.from >= 0 && message.from < NODES && talk(message.from, node->id));
        SDR_TRY(expect_number(node, &message, next[message.from]++));
        sdr_body_drop(message.body);
    }
    EXPECT(!transport_of(node)->any(node));
    return SDR_OK;
}

LAW(messages_arrive_once_in_order_and_unchanged)
{
    go_through(way, (struct times){0}, send_all_then_receive);
}

/* Two send more than any way can hold before they receive. */
static enum sdr_status flood(struct sdr_node *node)
{
    enum { LARGE = 300000, FLOOD = 200 };
    struct sdr_body *body;
    struct sdr_message message;
    int to = node->id == 0 ? BUSY : 0;
    if (node->id != 0 && node->id != BUSY)
        return SDR_OK;
    SDR_TRY(sdr_body_create(node->run->network->pool, LARGE, &body));
    memset(body->data, node->id, LARGE);
    for (int i = 0; i < FLOOD; i++) {
        message = (struct sdr_message){
            .kind = SDR_MESSAGE_TASK, .from = node->id, .to = to, .body = sdr_body_hold(body)};
        SDR_TRY(transport_of(node)->send(node, &message));
    }
    sdr_body_drop(body);
    for (int i = 0; i < FLOOD; i++) {
        SDR_TRY(hear(node, &message));
        EXPECT(message.body && message.body->bytes == LARGE && message.body->data[LARGE - 1] == to);
        sdr_body_drop(message.body);
    }
    return SDR_OK;
}

LAW(sending_never_waits_for_the_receiver)
{
    go_through(way, (struct times){0}, flood);
}

static enum sdr_status look_up(struct sdr_node *node)
{
    struct sdr_message message;
    if (node->id > 0)
        return hear_from(node, 0, 1);
    for (int i = 0; i < 3; i++) {
        SDR_TRY(transport_of(node)->receive(node, &message));
        EXPECT(message.kind == SDR_MESSAGE_NONE && !message.body);
    }
    for (int i = 1; i < NODES; i++)
        SDR_TRY(tell(node, i, 0, 1));
    return SDR_OK;
}

LAW(the_first_server_looks_up_now_and_then)
{
    if (!way->transport->simulated)
        go_through(way, (struct times){0}, look_up);
}

/* Nothing is sent to the busy worker but what it has asked for. */
static enum sdr_status ask_whether_any(struct sdr_node *node)
{
    const struct sdr_transport *transport = transport_of(node);
    struct sdr_message message;
    if (node->id == 0) {
        SDR_TRY(hear_from(node, BUSY, 1));
        SDR_TRY(tell(node, BUSY, 0, 2));
        SDR_TRY(tell(node, BUSY, SDR_URGENT, 3));
        SDR_TRY(hear_from(node, BUSY, 4));
        EXPECT(!transport->any(node));
        if (!transport->simulated) {
            SDR_TRY(transport->receive(node, &message));
            EXPECT(message.kind == SDR_MESSAGE_NONE);
        }
    }
    if (node->id != BUSY)
        return SDR_OK;
    EXPECT(!transport->any(node));
    SDR_TRY(tell(node, 0, 0, 1));
    SDR_TRY(be_disturbed(node)); /* now both are there */
    int64_t before = transport->now(node);
    EXPECT(transport->any(node));
    SDR_TRY(hear_from(node, 0, 2));
    EXPECT(transport->any(node));
    SDR_TRY(hear_from(node, 0, 3));
    EXPECT(!transport->simulated || transport->now(node) == before);
    EXPECT(!transport->any(node));
    return tell(node, 0, 0, 4);
}

LAW(any_tells_whether_receive_would_wait)
{
    go_through(way, disturbance, ask_whether_any);
}

/* ---- work ---- */
static enum sdr_status disturb(struct sdr_node *node)
{
    struct labour labour = {0};
    bool done;
    if (node->id == OTHER)
        return moment_over(node);
    if (node->id == 0) {
        SDR_TRY(hear_from(node, OTHER, 0));
        return tell(node, BUSY, SDR_URGENT, 1);
    }
    if (node->id != BUSY)
        return SDR_OK;
    SDR_TRY(be_disturbed(node));
    SDR_TRY(hear_from(node, 0, 1));
    SDR_TRY(compute(node, &labour, false, &done));
    EXPECT(done && labour.runs == 1 && !labour.stopped);
    return SDR_OK;
}

LAW(an_urgent_message_ends_work)
{
    go_through(way, disturbance, disturb);
}

/* A message that is not urgent waits until the work is done. */
static enum sdr_status do_not_disturb(struct sdr_node *node)
{
    struct labour labour = {0};
    bool done = false;
    if (node->id == 0) {
        for (int i = 0; i < 20; i++)
            SDR_TRY(tell(node, BUSY, i % 2 ? SDR_SPARSE : SDR_PATCH, (uint64_t)i));
        return SDR_OK;
    }
    if (node->id != BUSY)
        return SDR_OK;
    SDR_TRY(compute(node, &labour, false, &done));
    EXPECT(done && labour.runs == 1 && !labour.stopped);
    for (int i = 0; i < 20; i++)
        SDR_TRY(hear_from(node, 0, (uint64_t)i));
    return SDR_OK;
}

LAW(other_messages_do_not_end_work)
{
    go_through(way, (struct times){.compute = "const:1", .delay = "const:0.05"}, do_not_disturb);
}

static enum sdr_status begin_with_urgent_waiting(struct sdr_node *node)
{
    const struct sdr_transport *transport = transport_of(node);
    struct labour last = {0};
    bool done;
    if (node->id == 0)
        return tell(node, BUSY, SDR_URGENT, 1);
    if (node->id != BUSY)
        return SDR_OK;
    SDR_TRY(be_disturbed(node)); /* now it is there */
    int64_t before = transport->now(node);
    for (int certain = 0; certain < 2; certain++) {
        struct labour labour = {.patient = true};
        done = true;
        SDR_TRY(compute(node, &labour, certain, &done));
        EXPECT(!done);
        EXPECT(labour.looks == labour.runs); /* stopped at its first look, if it began */
        EXPECT(!transport->simulated || transport->now(node) == before);
    }
    SDR_TRY(hear_from(node, 0, 1));
    SDR_TRY(compute(node, &last, false, &done));
    EXPECT(done && last.runs == 1);
    return SDR_OK;
}

LAW(an_urgent_message_that_waits_ends_work_at_once)
{
    go_through(way, disturbance, begin_with_urgent_waiting);
}

/* ---- time ---- */
static enum sdr_status watch_the_clock(struct sdr_node *node)
{
    enum { ROUNDS = 5 };
    const struct sdr_transport *transport = transport_of(node);
    int64_t last = transport->now(node), least = transport->simulated ? 520000000 : 20000000;
    EXPECT(last >= 0);
    for (int i = 0; i < ROUNDS * WORKERS && node->id == 0; i++) {
        struct sdr_message message;
        SDR_TRY(hear(node, &message));
        int64_t now = transport->now(node);
        EXPECT(now >= last);
        EXPECT(scene.several || now >= (int64_t)message.batch); /* when it was sent */
        last = now;
    }
    for (int i = 0; i < ROUNDS && node->worker >= 0; i++) {
        struct labour labour = {0};
        bool done;
        int64_t before = transport->now(node);
        EXPECT(before >= last);
        SDR_TRY(compute(node, &labour, i % 2, &done));
        last = transport->now(node);
        EXPECT(done && labour.runs == 1);
        EXPECT(last - before >= least);
        SDR_TRY(tell(node, 0, 0, (uint64_t)last));
    }
    return SDR_OK;
}

LAW(time_never_goes_back_and_work_takes_what_it_is_said_to)
{
    go_through(way, (struct times){.compute = "const:0.5", .delay = "const:0.02"}, watch_the_clock);
}

static void note(const struct sdr_node *node, int from, uint64_t what)
{
    scene.logged += (size_t)snprintf(scene.log + scene.logged, sizeof scene.log - scene.logged,
                                     "%d<%d:%llu@%lld\n", node->id, from, (unsigned long long)what,
                                     (long long)transport_of(node)->now(node));
}

/* Workers that are disturbed at times; who and when is drawn. */
static enum sdr_status gossip(struct sdr_node *node)
{
    enum { ROUNDS = 12 };
    struct sdr_message message;
    for (int i = 0; i < ROUNDS * WORKERS && node->id == 0; i++) {
        SDR_TRY(hear(node, &message));
        note(node, message.from, message.batch);
        SDR_TRY(tell(node, FIRST_WORKER + (message.from + i) % WORKERS, i % 3 ? 0 : SDR_URGENT,
                     (uint64_t)i));
    }
    for (int i = 0; i < ROUNDS && node->worker >= 0; i++) {
        struct labour labour = {.number = (uint64_t)i};
        bool done;
        SDR_TRY(compute(node, &labour, false, &done));
        while (transport_of(node)->any(node)) {
            SDR_TRY(hear(node, &message));
            note(node, message.from, message.batch);
        }
        SDR_TRY(tell(node, 0, 0, (uint64_t)(2 * i + done)));
    }
    return SDR_OK;
}

LAW(simulated_launches_repeat)
{
    static char first[sizeof scene.log];
    struct times times = {.compute = "exp:mean=0.1", .delay = "uniform:0-0.05"};
    if (!way->transport->simulated)
        return;
    go_through(way, times, gossip);
    memcpy(first, scene.log, sizeof first);
    assert_true(scene.logged > 500 && scene.logged < sizeof first - 1);
    go_through(way, times, gossip);
    assert_string_equal(first, scene.log);
}

/* ---- bodies ---- */
static enum sdr_status send_body(struct sdr_node *node, int to, struct sdr_body *body)
{
    struct sdr_message message = {
        .kind = SDR_MESSAGE_TASK, .from = node->id, .to = to, .body = sdr_body_hold(body)};
    return transport_of(node)->send(node, &message);
}

/* Everybody is sent the same body, and another one that nobody receives. */
static enum sdr_status hand_out(struct sdr_node *node)
{
    enum { BYTES = 100000 };
    struct sdr_message message;
    if (node->id == 0) {
        SDR_TRY(sdr_body_create(node->run->network->pool, BYTES, &scene.shared));
        memset(scene.shared->data, 7, BYTES);
    }
    for (int to = 1; to < NODES && node->id == 0; to++) {
        SDR_TRY(sdr_body_create(node->run->network->pool, BYTES, &scene.left[to]));
        SDR_TRY(send_body(node, to, scene.shared));
        SDR_TRY(send_body(node, to, scene.left[to]));
    }
    if (node->id == 0)
        return SDR_OK;
    SDR_TRY(hear(node, &message));
    EXPECT(message.body && message.body->bytes == BYTES && message.body->data[BYTES - 1] == 7);
    EXPECT(!transport_of(node)->by_reference || message.body == scene.shared);
    sdr_body_drop(message.body);
    if (node->id == scene.fails)
        return sdr_fail(SDR_DIVERGED, "node %d has had enough", node->id);
    return SDR_OK;
}

LAW(bodies_are_handed_over_and_let_go)
{
    for (int fails = 0; fails < (way->processes == 1 ? NODES : 1); fails++) {
        struct sdr_run *run = create(way, (struct times){0});
        scene.fails = fails;
        expect_status(way, run->use.transport->launch(run, hand_out),
                      fails ? SDR_DIVERGED : SDR_OK);
        run->use.transport->close(run);
        assert_null(run->network->shared);
        scene.left[0] = scene.shared;
        for (int i = 0; i < NODES; i++) {
            assert_int_equal(scene.left[i] ? atomic_load(&scene.left[i]->refs) : 1, 1);
            sdr_body_drop(scene.left[i]);
        }
        sdr_run_destroy(run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_transport_is_complete),
        cmocka_unit_test(every_loop_runs_once_and_launch_waits_for_all),
        cmocka_unit_test(a_loop_that_fails_ends_the_launch),
        cmocka_unit_test(work_that_fails_ends_the_launch),
        cmocka_unit_test(simulated_nodes_that_wait_for_each_other_are_told_so),
        cmocka_unit_test(messages_arrive_once_in_order_and_unchanged),
        cmocka_unit_test(sending_never_waits_for_the_receiver),
        cmocka_unit_test(the_first_server_looks_up_now_and_then),
        cmocka_unit_test(any_tells_whether_receive_would_wait),
        cmocka_unit_test(an_urgent_message_ends_work),
        cmocka_unit_test(other_messages_do_not_end_work),
        cmocka_unit_test(an_urgent_message_that_waits_ends_work_at_once),
        cmocka_unit_test(time_never_goes_back_and_work_takes_what_it_is_said_to),
        cmocka_unit_test(simulated_launches_repeat),
        cmocka_unit_test(bodies_are_handed_over_and_let_go),
    };
    return run_laws(tests, sizeof tests / sizeof *tests);
}
