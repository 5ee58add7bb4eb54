/* The rule of stale synchronous parallel holds in every schedule: 3 workers, 4 clocks, s = 0, 1, 2,
   messages that take any time; all states that can be reached are looked at, and in each the view
   of every worker that begins an iteration. */
#include "sync/clocks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { WORKERS = 3, CLOCKS = 4 };
/* Where a worker is: computing; its step on the way to the server; waiting there for leave to read;
   values on the way to it. */
enum phase { COMPUTING, PUSHING, WAITING, FETCHING };

struct state {
    uint8_t phase[WORKERS];
    uint8_t clock[WORKERS]; /* steps that have come to the server */
    uint16_t view[WORKERS]; /* steps in the values a worker was sent: a bit for each */
    uint16_t shown;         /* steps that the server shows */
};

static uint16_t bit(int worker, uint64_t clock)
{
    return (uint16_t)(1u << (worker * CLOCKS + (int)clock));
}

/* ---- states that were met ---- */
static uint64_t *met;
static uint64_t met_count, met_room;

static uint64_t code(const struct state *state)
{
    uint64_t c = state->shown;
    for (int w = 0; w < WORKERS; w++)
        c = ((c << 2 | state->phase[w]) << 3 | state->clock[w]) << 12 | state->view[w];
    return c + 1; /* 0: a free place. 12 + 3 · 17 bits */
}

static bool put(uint64_t c)
{
    uint64_t at = (c * 0x9E3779B97F4A7C15u) >> 32;
    for (at %= met_room; met[at]; at = (at + 1) % met_room)
        if (met[at] == c)
            return false;
    met[at] = c;
    met_count++;
    return true;
}

static bool meet(const struct state *state)
{
    if (2 * met_count >= met_room) {
        uint64_t *before = met, room = met_room;
        met_room = room ? 2 * room : 1 << 16;
        met = calloc(met_room, sizeof *met);
        met_count = 0;
        for (uint64_t i = 0; i < room; i++)
            if (before[i])
                put(before[i]);
        free(before);
    }
    return put(code(state));
}

/* ---- the rule ---- */
static void check_view(const struct state *state, int worker, uint64_t s)
{
    uint64_t c = state->clock[worker];
    for (int w = 0; w < WORKERS; w++)
        for (uint64_t k = 0; k < CLOCKS; k++) {
            bool there = state->view[worker] & bit(w, k);
            if (k + s + 1 <= c)
                assert_true(there || w == worker); /* its own it adds itself */
            if (w != worker && k >= c + s)
                assert_false(there);
        }
}

static uint64_t reads;
static void explore(struct state state, uint64_t s);

/* The server has received a step: what ssp.c does then. */
static void receive(struct state *state, int worker, uint64_t s)
{
    uint64_t clock[WORKERS];
    struct sdr_clocks clocks;
    sdr_clocks_start(&clocks, s, clock, WORKERS);
    state->clock[worker]++;
    state->phase[worker] = WAITING;
    for (int w = 0; w < WORKERS; w++)
        for (int k = 0; k < state->clock[w]; k++)
            sdr_clocks_tick(&clocks, w);
    for (int w = 0; w < WORKERS; w++)
        for (uint64_t k = 0; k < state->clock[w]; k++)
            if (sdr_clocks_shows(&clocks, k))
                state->shown |= bit(w, k);
    for (int w = 0; w < WORKERS; w++)
        if (state->phase[w] == WAITING && state->clock[w] < CLOCKS &&
            sdr_clocks_may_read(&clocks, w)) {
            state->phase[w] = FETCHING;
            state->view[w] = state->shown;
        }
}

/* Everything that can happen next to a worker; false: nothing can. */
static bool go_on(struct state state, int worker, uint64_t s)
{
    switch ((enum phase)state.phase[worker]) {
    case COMPUTING: state.phase[worker] = PUSHING; break;
    case PUSHING: receive(&state, worker, s); break;
    case FETCHING:
        state.phase[worker] = COMPUTING;
        check_view(&state, worker, s);
        reads++;
        break;
    case WAITING: return false;
    }
    explore(state, s);
    return true;
}

static void explore(struct state state, uint64_t s)
{
    bool any = false;
    if (!meet(&state))
        return;
    for (int w = 0; w < WORKERS; w++)
        any |= go_on(state, w, s);
    for (int w = 0; w < WORKERS && !any; w++) /* nobody is left waiting for ever */
        assert_int_equal(state.clock[w], CLOCKS);
    if (!any)
        assert_int_equal(state.shown & 0xFFF, 0xFFF);
}

static void every_schedule_keeps_the_rule(void **unused)
{
    (void)unused;
    for (uint64_t s = 0; s <= 2; s++) {
        struct state start = {.phase = {FETCHING, FETCHING, FETCHING}};
        met_count = met_room = reads = 0;
        free(met);
        met = NULL;
        explore(start, s);
        print_message("s = %d: %lu states, %lu reads\n", (int)s, (unsigned long)met_count,
                      (unsigned long)reads);
        assert_true(reads > 100);
    }
    free(met);
}

static void without_a_bound_everything_is_shown_at_once(void **unused)
{
    (void)unused;
    uint64_t clock[2];
    struct sdr_clocks clocks;
    sdr_clocks_start(&clocks, SDR_CLOCKS_FREE, clock, 2);
    for (int i = 0; i < 1000; i++) {
        assert_false(sdr_clocks_tick(&clocks, 0));
        assert_true(sdr_clocks_may_read(&clocks, 0));
        assert_true(sdr_clocks_shows(&clocks, (uint64_t)i));
    }
}

static void those_who_left_are_not_waited_for(void **unused)
{
    (void)unused;
    uint64_t clock[3];
    struct sdr_clocks clocks;
    sdr_clocks_start(&clocks, 0, clock, 3);
    assert_false(sdr_clocks_tick(&clocks, 0));
    assert_false(sdr_clocks_tick(&clocks, 1));
    assert_false(sdr_clocks_may_read(&clocks, 0));
    assert_true(sdr_clocks_leave(&clocks, 2));
    assert_true(sdr_clocks_may_read(&clocks, 0));
    assert_true(sdr_clocks_shows(&clocks, 0));
    assert_false(sdr_clocks_shows(&clocks, 1));
}

static void those_who_join_start_at_the_minimum(void **unused)
{
    (void)unused;
    uint64_t clock[3];
    struct sdr_clocks clocks;
    sdr_clocks_start(&clocks, 1, clock, 3);
    sdr_clocks_leave(&clocks, 2);
    for (int i = 0; i < 5; i++) {
        sdr_clocks_tick(&clocks, 0);
        sdr_clocks_tick(&clocks, 1);
    }
    sdr_clocks_join(&clocks, 2);
    assert_int_equal(clocks.least, 5);
    assert_int_equal(clock[2], 5);
    assert_true(sdr_clocks_may_read(&clocks, 2));
    assert_false(sdr_clocks_tick(&clocks, 0));
    assert_false(sdr_clocks_tick(&clocks, 1));
    assert_false(sdr_clocks_tick(&clocks, 0)); /* two ahead of the one that has just joined */
    assert_false(sdr_clocks_may_read(&clocks, 0));
    assert_true(sdr_clocks_tick(&clocks, 2));
    assert_true(sdr_clocks_may_read(&clocks, 0));
    for (int w = 0; w < 3; w++)
        sdr_clocks_leave(&clocks, w);
    sdr_clocks_join(&clocks, 1); /* the last one left: somebody begins again */
    assert_true(sdr_clocks_may_read(&clocks, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_schedule_keeps_the_rule),
        cmocka_unit_test(without_a_bound_everything_is_shown_at_once),
        cmocka_unit_test(those_who_left_are_not_waited_for),
        cmocka_unit_test(those_who_join_start_at_the_minimum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
