/* Barriers and turns. A failed thread breaks the team up: every wait returns. */
#include "base/clock.h"
#include "base/thread.h"
#include "team/team.h"

#include <sched.h>
#include <stdio.h>

void sdr_team_break(struct sdr_team *team, enum sdr_status status)
{
    pthread_mutex_lock(&team->lock);
    if (team->status == SDR_OK) {
        team->status = status;
        snprintf(team->sentence, sizeof team->sentence, "%s", sdr_error());
    }
    atomic_store(&team->broken, true);
    pthread_cond_broadcast(&team->changed);
    pthread_mutex_unlock(&team->lock);
}

enum sdr_status sdr_team_status(struct sdr_team *team)
{
    return atomic_load(&team->broken) ? sdr_fail(team->status, "%s", team->sentence) : SDR_OK;
}

static bool has_come(struct sdr_team *team, const atomic_uint_fast64_t *count, uint64_t was)
{
    return atomic_load(count) != was || atomic_load(&team->broken);
}

/* Polls without giving the core away, for as long as a thread takes to fall asleep and wake up. */
static bool comes_while_spinning(struct sdr_team *team, const atomic_uint_fast64_t *count,
                                 uint64_t was)
{
    enum { SPINS = 2000 }; /* about 50 µs */
    for (unsigned i = 0; i < SPINS; i++) {
        if (has_come(team, count, was))
            return true;
        sdr_relax();
    }
    return false;
}

/* Polls for as long as nobody else wants the core. A thread that sleeps may be woken on the core of
   the one that woke it, although its own is idle, and both then share it until the system balances
   its load: in guests of KVM, where idle cores look busy, one epoch in five took 20 ms longer.
   Beside other processes a thread that yields waits for the whole time slice of another, and one
   that sleeps does not: where that is seen, nobody yields for a while. */
static bool comes_while_yielding(struct sdr_team *team, const atomic_uint_fast64_t *count,
                                 uint64_t was)
{
    enum { PATIENCE = 3000000, SLICE = 1000000, CROWDED = 100000000 }; /* ns */
    int64_t begun = sdr_clock_now(), before = begun, now = begun;
    if (begun < atomic_load_explicit(&team->crowded_until, memory_order_relaxed))
        return false;
    while (!has_come(team, count, was)) {
        sched_yield();
        now = sdr_clock_now();
        if (now - before > SLICE)
            atomic_store_explicit(&team->crowded_until, now + CROWDED, memory_order_relaxed);
        if (now - before > SLICE || now - begun > PATIENCE)
            return false;
        before = now;
    }
    return true;
}

/* Waits while the counter equals `was`; sleeps if that takes long. */
static void wait_while(struct sdr_team *team, atomic_uint_fast64_t *count, uint64_t was)
{
    if (team->polls &&
        (comes_while_spinning(team, count, was) || comes_while_yielding(team, count, was)))
        return;
    pthread_mutex_lock(&team->lock);
    while (!has_come(team, count, was))
        pthread_cond_wait(&team->changed, &team->lock);
    pthread_mutex_unlock(&team->lock);
}

static void advance(struct sdr_team *team, atomic_uint_fast64_t *count)
{
    pthread_mutex_lock(&team->lock);
    atomic_fetch_add(count, 1);
    pthread_cond_broadcast(&team->changed);
    pthread_mutex_unlock(&team->lock);
}

enum sdr_status sdr_team_barrier(struct sdr_run *run, enum sdr_status (*work)(struct sdr_run *run))
{
    struct sdr_team *team = run->shared.team;
    uint64_t barriers = atomic_load(&team->barriers);
    if (atomic_fetch_add(&team->waiting, 1) + 1 < team->workers) {
        wait_while(team, &team->barriers, barriers);
        return sdr_team_status(team);
    }
    enum sdr_status status = work ? work(run) : SDR_OK;
    atomic_store(&team->waiting, 0);
    for (int w = 0; w < team->workers; w++)
        atomic_store_explicit(&team->pieces[w].taken, 0,
                              memory_order_relaxed); /* `advance` publishes it */
    team->pause = atomic_load(&team->halt);
    if (status != SDR_OK)
        sdr_team_break(team, status);
    advance(team, &team->barriers);
    return sdr_team_status(team);
}

enum sdr_status sdr_barrier(struct sdr_node *node)
{
    return sdr_team_barrier(node->run, NULL);
}

/* Workers have the same pieces from round to round as long as they are equally fast: what these
   pieces touch stays in the caches of one core. */
bool sdr_next_piece(struct sdr_node *node, uint64_t pieces, uint64_t *piece)
{
    struct sdr_team *team = node->run->shared.team;
    for (int i = 0; i < team->workers; i++) {
        int w = (node->worker + i) % team->workers;
        struct sdr_own own = sdr_own_pieces(w, team->workers, pieces);
        atomic_uint_fast64_t *taken = &team->pieces[w].taken;
        if (own.first + atomic_load(taken) >= own.end)
            continue;
        *piece = own.first + atomic_fetch_add(taken, 1);
        if (*piece < own.end)
            return true;
    }
    return false;
}

enum sdr_status sdr_wait_turn(struct sdr_node *node)
{
    struct sdr_team *team = node->run->shared.team;
    uint64_t turn;
    advance(team, &team->rested);
    while ((turn = atomic_load(&team->turn)) % (uint64_t)team->workers != (uint64_t)node->worker &&
           !atomic_load(&team->broken))
        wait_while(team, &team->turn, turn);
    return sdr_team_status(team);
}

enum sdr_status sdr_team_rest(struct sdr_run *run)
{
    struct sdr_team *team = run->shared.team;
    if (!team) /* no threads are running */
        return SDR_OK;
    /* Every past turn was waited for once, and every other worker waits for the next one. */
    uint64_t all = atomic_load(&team->turn) - team->first_turn + (uint64_t)team->workers, rested;
    while ((rested = atomic_load(&team->rested)) < all && !atomic_load(&team->broken))
        wait_while(team, &team->rested, rested);
    return sdr_team_status(team);
}

void sdr_pass_turn(struct sdr_node *node)
{
    advance(node->run->shared.team, &node->run->shared.team->turn);
}
