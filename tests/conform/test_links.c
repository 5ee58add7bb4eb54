/* Laws of transports about any two nodes, work in steps, and deaths: see test_transport.c, of which
   this is a part.

   `test_links deaths` is the last law alone, for a job of processes that mpirun lets die: one of
   them kills itself. */
#include "conform/transport.h"

/* ---- any two nodes ---- */
/* Everybody, itself included, is asked and answers. */
static enum sdr_status ask_everybody(struct sdr_node *node)
{
    enum { ANSWER = 100 };
    int questions[NODES] = {0}, answers[NODES] = {0};
    for (int to = 0; to < NODES; to++)
        SDR_TRY(tell(node, to, 0, (uint64_t)node->id));
    for (int i = 0; i < 2 * NODES; i++) {
        struct sdr_message message;
        SDR_TRY(hear(node, &message));
        EXPECT(message.from >= 0 && message.from < NODES && message.to == node->id);
        bool question = message.batch < ANSWER;
        EXPECT(message.batch == (uint64_t)(question ? message.from : ANSWER + node->id));
        questions[message.from] += question;
        answers[message.from] += !question;
        if (question)
            SDR_TRY(tell(node, message.from, 0, (uint64_t)(ANSWER + message.from)));
    }
    for (int i = 0; i < NODES; i++)
        EXPECT(questions[i] == 1 && answers[i] == 1);
    EXPECT(!transport_of(node)->any(node));
    return SDR_OK;
}

LAW(any_two_nodes_exchange_messages)
{
    struct sdr_run *run = create_peers(way, (struct times){0});
    expect_launch(way, run, ask_everybody);
    sdr_run_destroy(run);
    go_through(way, (struct times){0}, ask_everybody);
}

/* To every node, itself included, as fast as possible; large bodies between small ones. */
static enum sdr_status count_up(struct sdr_node *node)
{
    enum { COUNT = 120 };
    uint64_t next[NODES] = {0};
    for (uint64_t i = 0; i < COUNT; i++)
        for (int to = 0; to < NODES; to++) {
            struct sdr_message message = {
                .kind = SDR_MESSAGE_PEER, .from = node->id, .to = to, .batch = i};
            if (i % 3)
                SDR_TRY(sdr_body_create(node->run->network->pool, i % 3 == 1 ? 20 : 20000,
                                        &message.body));
            SDR_TRY(transport_of(node)->send(node, &message));
        }
    for (int i = 0; i < NODES * COUNT; i++) {
        struct sdr_message message;
        SDR_TRY(hear(node, &message));
        sdr_body_drop(message.body);
        EXPECT(message.batch == next[message.from]);
        next[message.from]++;
    }
    return SDR_OK;
}

LAW(messages_of_any_two_nodes_keep_their_order)
{
    struct sdr_run *run = create_peers(way, (struct times){0});
    expect_launch(way, run, count_up);
    sdr_run_destroy(run);
}

static enum sdr_status talk_to_oneself(struct sdr_node *node)
{
    const struct sdr_transport *transport = transport_of(node);
    EXPECT(!transport->any(node));
    for (uint64_t i = 0; i < 3; i++)
        SDR_TRY(tell(node, node->id, 0, i));
    EXPECT(transport->any(node));
    int64_t before = transport->now(node);
    for (uint64_t i = 0; i < 3; i++)
        SDR_TRY(hear_from(node, node->id, i));
    EXPECT(!transport->simulated || transport->now(node) == before);
    EXPECT(!transport->any(node));
    return SDR_OK;
}

LAW(a_message_to_oneself_is_there_at_once)
{
    go_through(way, (struct times){0}, talk_to_oneself);
}

/* The i-th message: who sends it to whom, and how large it is. The same for all nodes. */
enum { RANDOM_MESSAGES = 1000 };
static struct {
    int from, to;
    uint64_t bytes;
} drawn[RANDOM_MESSAGES];

static void draw(void)
{
    uint64_t state = 42;
    for (int i = 0; i < RANDOM_MESSAGES; i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
        drawn[i].from = (int)(state >> 33) % NODES;
        drawn[i].to = (int)(state >> 43) % NODES;
        drawn[i].bytes = (state >> 53) % 8 == 0 ? 50000 + state % 1000 : (state >> 20) % 200;
    }
}

/* Sends its own when it comes to them, and receives what is there in between. */
static enum sdr_status exchange_drawn(struct sdr_node *node)
{
    bool had[RANDOM_MESSAGES] = {false};
    int missing = 0;
    for (int i = 0; i < RANDOM_MESSAGES; i++)
        missing += drawn[i].to == node->id;
    EXPECT(missing > 100);
    for (int i = 0; i < RANDOM_MESSAGES || missing > 0; i++) {
        struct sdr_message message = {
            .kind = SDR_MESSAGE_PEER, .from = node->id, .batch = (uint64_t)i};
        if (i < RANDOM_MESSAGES && drawn[i].from == node->id) {
            message.to = drawn[i].to;
            SDR_TRY(sdr_body_create(node->run->network->pool, drawn[i].bytes, &message.body));
            memset(message.body->data, i % 251, drawn[i].bytes);
            SDR_TRY(transport_of(node)->send(node, &message));
        }
        if (i < RANDOM_MESSAGES && !transport_of(node)->any(node))
            continue;
        if (missing == 0)
            continue;
        SDR_TRY(hear(node, &message));
        uint64_t which = message.batch, bytes = message.body ? message.body->bytes : 0;
        bool sound = which < RANDOM_MESSAGES && drawn[which].from == message.from &&
                     drawn[which].to == node->id && drawn[which].bytes == bytes && !had[which];
        for (uint64_t k = 0; k < bytes && sound; k++)
            sound = message.body->data[k] == which % 251;
        sdr_body_drop(message.body);
        EXPECT(sound);
        had[which] = true;
        missing--;
    }
    EXPECT(!transport_of(node)->any(node));
    return SDR_OK;
}

LAW(a_thousand_random_messages_arrive_once_each)
{
    struct sdr_run *run = create_peers(way, (struct times){0});
    draw();
    expect_launch(way, run, exchange_drawn);
    sdr_run_destroy(run);
}

/* ---- work in steps ---- */
/* Work of two steps, whose second one is ended by the answer to what was sent after the first. */
static enum sdr_status send_between_steps(struct sdr_node *node)
{
    const struct sdr_transport *transport = transport_of(node);
    struct labour labour = {.patient_later = !transport->simulated};
    struct sdr_work work = {
        .run = toil, .argument = &labour, .steps = 2, .draws = 1, .certain = scene.certain};
    bool done = false;
    if (node->id == OTHER) {
        SDR_TRY(hear_from(node, BUSY, 1));
        return tell(node, BUSY, SDR_URGENT, 2);
    }
    if (node->id != BUSY)
        return SDR_OK;
    int64_t before = transport->now(node);
    SDR_TRY(transport->compute(node, &work, &done));
    EXPECT(done && work.next == 1 && labour.runs == 1 && labour.step == 0);
    int64_t after = transport->now(node);
    SDR_TRY(tell(node, OTHER, 0, 1));
    SDR_TRY(transport->compute(node, &work, &done));
    EXPECT(!done && work.next == 1);
    EXPECT(!transport->simulated || (after - before == INT64_C(500000000000) &&
                                     transport->now(node) - after < INT64_C(1000000000)));
    EXPECT(transport->simulated || (labour.stopped && labour.runs == 2 && labour.step == 1));
    return hear_from(node, OTHER, 2);
}

LAW(a_message_sent_between_two_steps_arrives_before_the_work_ends)
{
    for (int certain = 0; certain < 2; certain++) {
        struct sdr_run *run = create(way, (struct times){.compute = "const:1", .slow = "1:1000x"});
        scene.certain = certain;
        expect_launch(way, run, send_between_steps);
        sdr_run_destroy(run);
    }
}

/* 0.8 seconds of delay in all; where time is virtual 8 more. */
static enum sdr_status take_steps(struct sdr_node *node)
{
    static const double cost[] = {1, 3, 0, 4};
    const struct sdr_transport *transport = transport_of(node);
    for (int alike = 0; alike < 2 && node->worker >= 0; alike++) {
        struct labour labour = {0};
        struct sdr_work work = {.run = toil,
                                .argument = &labour,
                                .steps = 4,
                                .cost = alike ? NULL : cost,
                                .number = (uint64_t)alike,
                                .draws = 1};
        int64_t start = transport->now(node);
        for (uint32_t i = 0; i < 4; i++) {
            int64_t before = transport->now(node);
            bool done;
            EXPECT(work.next == i);
            SDR_TRY(transport->compute(node, &work, &done));
            EXPECT(done && labour.step == i && labour.runs == (int)i + 1);
            int64_t took = transport->now(node) - before;
            double share = alike ? 0.25 : cost[i] / 8;
            EXPECT(!transport->simulated || took == (int64_t)(share * 8.8e9));
            EXPECT(took >= (int64_t)(share * 0.8e9 * (1 - 1e-9)) || transport->simulated);
        }
        EXPECT(work.next == 4);
        EXPECT(!transport->simulated || transport->now(node) - start == INT64_C(8800000000));
    }
    return SDR_OK;
}

LAW(a_step_takes_its_share_of_the_time)
{
    go_through(way, (struct times){.compute = "const:8", .delay = "const:0.8"}, take_steps);
}

/* The shares of a time that cannot be cut evenly add up to it. */
static enum sdr_status take_odd_steps(struct sdr_node *node)
{
    const struct sdr_transport *transport = transport_of(node);
    struct labour one = {0}, seven = {0};
    struct sdr_work whole = {.run = toil, .argument = &one, .steps = 1, .number = 3, .draws = 2};
    struct sdr_work work = {.run = toil, .argument = &seven, .steps = 7, .number = 3, .draws = 2};
    bool done = true;
    if (node->worker < 0)
        return SDR_OK;
    int64_t start = transport->now(node);
    SDR_TRY(transport->compute(node, &whole, &done));
    int64_t middle = transport->now(node);
    while (work.next < work.steps && done)
        SDR_TRY(transport->compute(node, &work, &done));
    EXPECT(done && one.runs == 1 && seven.runs == 7);
    EXPECT(transport->now(node) - middle == middle - start && middle > start);
    return SDR_OK;
}

LAW(the_time_of_all_steps_is_that_of_the_work)
{
    if (way->transport->simulated)
        go_through(way, (struct times){.compute = "exp:mean=1", .delay = "uniform:0-1"},
                   take_odd_steps);
}

/* ---- deaths ---- */
/* Nodes that die: 1 and 4, one after the other; or those of a process, at the same time. */
static bool dies(int id)
{
    return id == 1 || id == 4;
}

/* Those that remain are told of each that dies, once, and can still talk to each other. */
static enum sdr_status survive(struct sdr_node *node)
{
    const struct sdr_transport *transport = transport_of(node);
    bool told[NODES] = {false};
    int greetings = 0, ready = 0;
    for (int to = 0; to < NODES; to++) /* everybody has talked to everybody before */
        SDR_TRY(tell(node, to, 0, 7));
    while (greetings < NODES || (node->id == 1 && ready < NODES)) {
        struct sdr_message message;
        SDR_TRY(hear(node, &message));
        EXPECT(message.kind == SDR_MESSAGE_TASK && (message.batch == 7 || message.batch == 8));
        ready += message.batch == 8;
        greetings += message.batch == 7;
        if (message.batch == 7 && greetings == NODES)
            SDR_TRY(tell(node, 1, 0, 8));
    }
    if (node->id == 4 && !transport->simulated)
        return hear_from(node, 4, 0); /* which never comes: it dies with its process */
    if (node->id == 1 && !transport->simulated)
        raise(SIGKILL);
    for (int deaths = 0, words = 0; deaths < 2 || words < NODES - 2;) {
        struct sdr_message message;
        SDR_TRY(hear(node, &message));
        EXPECT(message.from >= 0 && message.from < NODES);
        if (message.kind == SDR_MESSAGE_TASK) { /* of one that was told before */
            EXPECT(message.batch == 9 && !dies(message.from));
            words++;
            continue;
        }
        EXPECT(message.kind == SDR_MESSAGE_LOST && dies(message.from));
        EXPECT(message.about == message.from && !told[message.from]);
        EXPECT(!transport->simulated ||
               transport->now(node) == (message.from == 1 ? 5000000000 : 7000000000));
        told[message.from] = true;
        deaths++;
        for (int to = 0; to < NODES && deaths == 2; to++)
            SDR_TRY(tell(node, to, 0, 9)); /* to the dead, too: that does no harm */
    }
    scene.returned[node->id]++;
    return SDR_OK;
}

static bool with_deaths; /* of processes */

LAW(a_death_is_told_to_every_survivor)
{
    struct way mortal = *way;
    bool simulated = way->transport->simulated;
    /* threads do not die, processes once */
    if (!simulated && !(with_deaths && way->processes == 3 && !strchr(way->text, ':')))
        return;
    const char *mark = strchr(way->text, ':') ? "," : ":";
    size_t room = sizeof mortal.text - strlen(way->text);
    int length = snprintf(mortal.text + strlen(way->text), room, "%s%s", mark,
                          simulated ? "silence=3,dies=1@2+4@4" : "silence=2");
    assert_true(length > 0 && (size_t)length < room);
    struct sdr_run *run = create_peers(&mortal, (struct times){0});
    expect_launch(&mortal, run, survive);
    for (int i = 0; i < NODES && simulated; i++)
        assert_int_equal(scene.returned[i], !dies(i));
    for (int i = 0; i < NODES && !simulated; i++)
        if (scene.returned[i])
            printf("node %d was told of all deaths\n", i);
    fflush(stdout);
    sdr_run_destroy(run);
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_two_nodes_exchange_messages),
        cmocka_unit_test(messages_of_any_two_nodes_keep_their_order),
        cmocka_unit_test(a_message_to_oneself_is_there_at_once),
        cmocka_unit_test(a_thousand_random_messages_arrive_once_each),
        cmocka_unit_test(a_message_sent_between_two_steps_arrives_before_the_work_ends),
        cmocka_unit_test(a_step_takes_its_share_of_the_time),
        cmocka_unit_test(the_time_of_all_steps_is_that_of_the_work),
        cmocka_unit_test(a_death_is_told_to_every_survivor),
    };
    const struct CMUnitTest deaths[] = {cmocka_unit_test(a_death_is_told_to_every_survivor)};
    with_deaths = count > 1 && strcmp(arguments[1], "deaths") == 0;
    return with_deaths ? run_laws(deaths, 1) : run_laws(tests, sizeof tests / sizeof *tests);
}
