/* What the laws of transports share: all transports there are, each as it is and with a way that
   takes more time, runs whose loops are the test's own, and what such loops are made of. */
#ifndef TESTS_CONFORM_TRANSPORT_H
#define TESTS_CONFORM_TRANSPORT_H

#include "run/registry.h"
#include "run/run.h"
#include "server/message.h"
#include "server/network.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { SERVERS = 2, WORKERS = 3, NODES = SERVERS + WORKERS, FIRST_WORKER = SERVERS };
enum { PATIENCE = 600 }; /* seconds after which a law is taken for hanging */
/* A worker, its number, and who is asked to disturb it: with two processes they are apart. */
enum { BUSY = 3, BUSY_WORKER = BUSY - SERVERS, OTHER = 4 };

/* ---- transports, each as it is and with a way that takes time ---- */
struct way {
    const struct sdr_transport *transport;
    char text[128]; /* of the option */
    int processes;
};

static const char *volatile law_name, *volatile way_name;

static inline void too_long(int signal)
{
    (void)signal;
    const char *word[] = {law_name, " takes too long: ", way_name, "\n"};
    for (int i = 0; i < 4; i++)
        (void)!write(STDERR_FILENO, word[i], strlen(word[i]));
    _exit(1);
}

static inline bool takes_time(const struct sdr_transport *transport, char *text, size_t room)
{
    static const char *const wanted[][2] = {
        {"latency", "0.001"}, {"bandwidth", "1e7"}, {"port", "3e7"}, {"share", "no"}};
    size_t length = (size_t)snprintf(text, room, "%s", transport->name);
    char mark = ':';
    for (const struct sdr_option *o = transport->options; o && o->key; o++)
        for (int i = 0; i < 4; i++)
            if (strcmp(o->key, wanted[i][0]) == 0 && (o->type == SDR_FLAG) == (i == 3)) {
                length += (size_t)snprintf(text + length, room - length, "%c%s=%s", mark, o->key,
                                           wanted[i][1]);
                mark = ',';
            }
    return mark == ',';
}

/* Where a job has several processes: whether this is one of it. */
static inline bool joins(struct way *way)
{
    struct sdr_options *options;
    const char *sanitized = getenv("SOUNDER_SANITIZE");
    int process;
    if (sanitized && *sanitized) {
        print_message("%s: skipped, sanitizers see leaks of what it loads\n", way->text);
        return false;
    }
    assert_int_equal(sdr_options_create(&options), SDR_OK);
    assert_int_equal(sdr_options_set(options, "transport", way->text), SDR_OK);
    enum sdr_status status = sdr_job_join(options, &process, &way->processes);
    if (status != SDR_OK)
        print_message("%s: skipped, %s\n", way->text, sdr_error());
    sdr_options_destroy(options);
    return status == SDR_OK;
}

static inline bool in_a_job(void)
{
    const char *size = getenv("OMPI_COMM_WORLD_SIZE");
    return size && atoi(size) > 1;
}

/* Checks a law of all transports; in a job of several processes, of those that know of it. */
static inline void over_transports(const char *name, void (*law)(const struct way *way))
{
    law_name = name;
    for (const struct sdr_transport *const *t = sdr_transport_table; *t; t++) {
        struct way way = {.transport = *t, .processes = 1};
        snprintf(way.text, sizeof way.text, "%s", (*t)->name);
        way_name = way.text;
        if ((*t)->join ? !joins(&way) : in_a_job())
            continue;
        alarm(PATIENCE);
        law(&way);
        if (takes_time(*t, way.text, sizeof way.text)) {
            alarm(PATIENCE);
            law(&way);
        }
        alarm(0);
    }
}
#define LAW(name)                                                                                  \
    static void check_##name(const struct way *way);                                               \
    static void name(void **state)                                                                 \
    {                                                                                              \
        (void)state;                                                                               \
        over_transports(#name, check_##name);                                                      \
    }                                                                                              \
    static void check_##name(const struct way *way)

/* All of a program's laws; at the end it leaves the job. */
static struct sdr_data *data; /* of every run */
static const float row[8][4] = {{1, 2, 3, 4}, {2, 1, 0, 1}, {0, 1, 1, 0}, {3, 1, 2, 2},
                                {1, 0, 0, 1}, {2, 2, 1, 0}, {0, 0, 3, 1}, {1, 1, 1, 1}};
static const float label[8] = {0, 1, 0, 1, 1, 0, 1, 0};

static inline int run_laws(const struct CMUnitTest *laws, size_t count)
{
    struct sigaction action = {.sa_handler = too_long};
    sigaction(SIGALRM, &action, NULL);
    setenv("OMPI_MCA_ess_singleton_isolated", "1", 0); /* one process needs no daemon */
    if (sdr_data_dense(row[0], 8, 4, 4, label, NULL, &data) != SDR_OK)
        return 1;
    int failed = _cmocka_run_group_tests("laws", laws, count, NULL, NULL);
    sdr_data_destroy(data);
    sdr_job_leave(failed ? SDR_RUNTIME : SDR_OK);
    return failed;
}

/* ---- a run, and loops of our own ---- */
/* What the loops of a launch find, and leave behind. Each writes what is its own node's. */
static struct {
    bool several; /* processes */
    atomic_int began[NODES], returned[NODES];
    int fails; /* node that does */
    bool certain;
    struct sdr_body *shared, *left[NODES]; /* one that all are sent, and those nobody receives */
    char log[8192];
    size_t logged;
} scene;

struct times {
    const char *compute, *delay, *slow; /* compute and slow: where time is virtual */
};

static inline struct sdr_run *create_as(const struct way *way, struct times times, const char *sync,
                                        const char *workers, const char *servers)
{
    bool simulated = way->transport->simulated;
    const char *option[][2] = {{"sync", sync},
                               {"workers", workers},
                               {"servers", servers},
                               {"transport", way->text},
                               {"delay", times.delay},
                               {"compute", simulated ? times.compute : NULL},
                               {"slow", simulated ? times.slow : NULL}};
    struct sdr_options *options;
    struct sdr_run *run;
    memset(&scene, 0, sizeof scene);
    scene.several = way->processes > 1;
    assert_int_equal(sdr_options_create(&options), SDR_OK);
    for (size_t i = 0; i < sizeof option / sizeof *option; i++)
        if (option[i][1])
            assert_int_equal(sdr_options_set(options, option[i][0], option[i][1]), SDR_OK);
    if (sdr_run_create(options, data, NULL, &run) != SDR_OK)
        fail_msg("%s: %s", way->text, sdr_error());
    sdr_options_destroy(options);
    assert_non_null(run->network);
    assert_int_equal(run->network->nodes, NODES);
    return run;
}

static inline struct sdr_run *create(const struct way *way, struct times times)
{
    return create_as(way, times, "async", "3", "2");
}

/* As many nodes, none of them a server. */
static inline struct sdr_run *create_peers(const struct way *way, struct times times)
{
    return create_as(way, times, "ring-sum", "5", NULL);
}

static inline void expect_status(const struct way *way, enum sdr_status status,
                                 enum sdr_status wanted)
{
    if (status == wanted)
        return;
    if (way->processes > 1) { /* what is under way would be taken for messages of the next law */
        print_error("%s, %s: %s\n", law_name, way->text, sdr_error());
        sdr_job_leave(SDR_RUNTIME);
    }
    fail_msg("%s: %s", way->text, sdr_error());
}

static inline void expect_launch(const struct way *way, struct sdr_run *run,
                                 enum sdr_status (*loop)(struct sdr_node *node))
{
    expect_status(way, run->use.transport->launch(run, loop), SDR_OK);
}

/* A run from beginning to end, in which nothing fails. */
static inline void go_through(const struct way *way, struct times times,
                              enum sdr_status (*loop)(struct sdr_node *node))
{
    struct sdr_run *run = create(way, times);
    expect_launch(way, run, loop);
    sdr_run_destroy(run);
}

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return sdr_fail(SDR_RUNTIME, "node %d, line %d: not so: %s", node->id, __LINE__,       \
                            #condition);                                                           \
    } while (0)

static inline const struct sdr_transport *transport_of(const struct sdr_node *node)
{
    return node->run->use.transport;
}

static inline enum sdr_status tell(struct sdr_node *node, int to, uint8_t flags, uint64_t what)
{
    struct sdr_message message = {
        .kind = SDR_MESSAGE_TASK, .flags = flags, .from = node->id, .to = to, .batch = what};
    return transport_of(node)->send(node, &message);
}

/* The next message; only node 0 may be told that there is none. */
static inline enum sdr_status hear(struct sdr_node *node, struct sdr_message *message)
{
    do {
        SDR_TRY(transport_of(node)->receive(node, message));
        EXPECT(message->kind != SDR_MESSAGE_NONE ||
               (node->id == 0 && !transport_of(node)->simulated));
    } while (message->kind == SDR_MESSAGE_NONE);
    return SDR_OK;
}

static inline enum sdr_status hear_from(struct sdr_node *node, int from, uint64_t what)
{
    struct sdr_message message;
    SDR_TRY(hear(node, &message));
    EXPECT(message.from == from && message.to == node->id);
    EXPECT(message.batch == what);
    return SDR_OK;
}

/* Everybody talks to everybody. */
static inline bool talk(int a, int b)
{
    return a != b;
}

static inline void sleep_for(int64_t nanoseconds)
{
    struct timespec time = {nanoseconds / 1000000000, nanoseconds % 1000000000};
    nanosleep(&time, NULL);
}

/* ---- work ---- */
struct labour {
    int runs, looks;    /* how often it was run, and has looked at *stop */
    uint32_t step;      /* the last one */
    bool patient;       /* goes on until it is stopped */
    bool patient_later; /* does so from its second step on */
    bool stopped;       /* was */
    uint64_t number;    /* times are drawn by it */
    enum sdr_status status;
};

static inline enum sdr_status toil(void *argument, uint32_t step, const atomic_uint *stop)
{
    enum { MOMENT = 1000000 };
    struct labour *labour = argument;
    labour->step = step;
    labour->patient |= labour->patient_later && step > 0;
    labour->runs++;
    do {
        labour->looks++;
        labour->stopped = atomic_load(stop) != 0;
        if (labour->patient && !labour->stopped)
            sleep_for(MOMENT);
    } while (labour->patient && !labour->stopped);
    return labour->status == SDR_OK ? SDR_OK : sdr_fail(labour->status, "this work cannot be done");
}

static inline enum sdr_status compute(struct sdr_node *node, struct labour *labour, bool certain,
                                      bool *done)
{
    struct sdr_work work = {.run = toil,
                            .argument = labour,
                            .certain = certain,
                            .steps = 1,
                            .number = labour->number,
                            .draws = 1};
    return transport_of(node)->compute(node, &work, done);
}

/* Work that an URGENT message ends, and nothing else would: where time is virtual it is never
   begun. */
static inline enum sdr_status be_disturbed(struct sdr_node *node)
{
    struct labour labour = {.patient = !transport_of(node)->simulated};
    bool done = true;
    SDR_TRY(compute(node, &labour, false, &done));
    EXPECT(!done);
    EXPECT(transport_of(node)->simulated ? labour.runs == 0 : labour.stopped && labour.runs == 1);
    return SDR_OK;
}

/* The busy worker takes for ever, the other one a moment, after which the first server hears of
   it. */
static const struct times disturbance = {
    .compute = "const:1", .delay = "const:0.05", .slow = "1:1000x"};

static inline enum sdr_status moment_over(struct sdr_node *node)
{
    struct labour labour = {0};
    bool done;
    SDR_TRY(compute(node, &labour, false, &done));
    EXPECT(done);
    return tell(node, 0, 0, 0);
}

#endif
