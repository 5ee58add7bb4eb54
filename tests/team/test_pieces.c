/* Between two barriers every piece of work is given to exactly one worker, however many pieces
   there are, and whoever is late. */
#include "conform/numbers.h"

#include "base/memory.h"
#include "team/team.h"

#include <time.h>

enum { WORKERS_MOST = 5, ROUNDS = 300, PIECES_MOST = 17 };

static atomic_int given[ROUNDS][PIECES_MOST];

static uint64_t pieces_of(int round)
{
    return (uint64_t)(round * 7 % PIECES_MOST);
}

static void *work(void *argument)
{
    struct sdr_node *node = argument;
    uint64_t piece;
    for (int round = 0; round < ROUNDS; round++) {
        /* who is late: others take its pieces, and wait for it, sometimes longer than they poll */
        if (round % 10 == 0 && round / 10 % node->workers == node->worker)
            nanosleep(&(struct timespec){.tv_nsec = round % 100 ? 200000 : 5000000}, NULL);
        while (sdr_next_piece(node, pieces_of(round), &piece))
            atomic_fetch_add(&given[round][piece < PIECES_MOST ? piece : 0],
                             piece < PIECES_MOST ? 1 : 1000);
        if (sdr_barrier(node) != SDR_OK)
            break;
    }
    return NULL;
}

static void every_piece_is_given_once(bool polls, int64_t crowded_until)
{
    for (int workers = 1; workers <= WORKERS_MOST; workers++) {
        static struct sdr_run run;
        struct sdr_node node[WORKERS_MOST];
        pthread_t thread[WORKERS_MOST];
        struct sdr_team *team;
        assert_int_equal(
            sdr_allocate(&team, 1, sizeof *team + (size_t)workers * sizeof *team->pieces, "a team"),
            SDR_OK);
        team->workers = workers;
        team->polls = polls;
        atomic_init(&team->crowded_until, crowded_until);
        pthread_mutex_init(&team->lock, NULL);
        pthread_cond_init(&team->changed, NULL);
        run.shared.team = team;
        memset(given, 0, sizeof given);
        for (int w = 0; w < workers; w++) {
            node[w] = (struct sdr_node){.run = &run, .worker = w, .workers = workers};
            assert_int_equal(pthread_create(&thread[w], NULL, work, &node[w]), 0);
        }
        for (int w = 0; w < workers; w++)
            pthread_join(thread[w], NULL);
        for (int round = 0; round < ROUNDS; round++)
            for (uint64_t piece = 0; piece < PIECES_MOST; piece++)
                assert_int_equal(atomic_load(&given[round][piece]), piece < pieces_of(round));
        pthread_cond_destroy(&team->changed);
        pthread_mutex_destroy(&team->lock);
        sdr_release(team);
    }
}

static void every_piece_is_given_once_to_workers_that_sleep(void **unused)
{
    (void)unused;
    every_piece_is_given_once(false, 0);
}

static void every_piece_is_given_once_to_workers_that_poll(void **unused)
{
    (void)unused;
    every_piece_is_given_once(true, 0);
}

static void every_piece_is_given_once_beside_other_processes(void **unused)
{
    (void)unused;
    every_piece_is_given_once(true, INT64_MAX);
}

/* The pieces of all workers, one behind the other, are all pieces. */
static void own_pieces_follow_each_other(void **unused)
{
    (void)unused;
    for (int workers = 1; workers <= 9; workers++)
        for (uint64_t pieces = 0; pieces <= 40; pieces++) {
            uint64_t next = 0;
            for (int w = 0; w < workers; w++) {
                struct sdr_own own = sdr_own_pieces(w, workers, pieces);
                assert_int_equal(own.first, next);
                assert_true(own.end - own.first <= pieces / (uint64_t)workers + 1);
                next = own.end;
            }
            assert_int_equal(next, pieces);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_piece_is_given_once_to_workers_that_sleep),
        cmocka_unit_test(every_piece_is_given_once_to_workers_that_poll),
        cmocka_unit_test(every_piece_is_given_once_beside_other_processes),
        cmocka_unit_test(own_pieces_follow_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
