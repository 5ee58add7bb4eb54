/* The worker threads that share memory; internal to this folder. */
#ifndef SDR_TEAM_TEAM_H
#define SDR_TEAM_TEAM_H

#include "run/run.h"
#include <pthread.h>

enum { SDR_LOCKS_MOST = 64 };

/* The pieces of work of one worker, which others take when they have no more of their own. In a
   cache line of its own. */
struct sdr_pieces {
    _Alignas(64) atomic_uint_fast64_t taken; /* since the last barrier */
};

struct sdr_team {
    int workers;
    struct sdr_affinity *affinity; /* owned: CPUs of pinned workers; NULL: not pinned */
    bool polls;                    /* every worker has a core: they poll before they sleep */
    _Atomic int64_t crowded_until; /* other processes were seen to need the cores */
    atomic_uint_fast64_t next;     /* next row to assign, a place in the epoch */
    uint64_t stop;                 /* rows before this place are assigned, then comes a barrier */
    atomic_bool halt;              /* stop assigning: something needs a barrier */
    bool pause;                    /* `halt` as of the last barrier */
    bool accounting;               /* at a barrier: the run's progress is up to date */
    struct sdr_batch round;        /* the rows of the current round */
    pthread_mutex_t guard[SDR_LOCKS_MOST]; /* for strategies that lock */

    atomic_int waiting;
    atomic_uint_fast64_t barriers; /* barriers passed */
    atomic_uint_fast64_t turn;     /* turns so far; it is the turn of worker turn % workers */
    uint64_t first_turn;           /* value of `turn` at the start */
    atomic_uint_fast64_t rested;   /* how often workers began to wait for their turn */
    atomic_bool broken;
    pthread_mutex_t lock; /* for sleeping; guards the members below */
    pthread_cond_t changed;
    enum sdr_status status; /* of the first failed worker */
    char sentence[1024];
    struct sdr_pieces pieces[]; /* of each worker */
};

/* barrier.c */
/* Of `pieces` pieces of work, worker w has first … end − 1. */
struct sdr_own {
    uint64_t first, end;
};
static inline struct sdr_own sdr_own_pieces(int worker, int workers, uint64_t pieces)
{
    uint64_t w = (uint64_t)worker, all = (uint64_t)workers;
    return (struct sdr_own){pieces * w / all, pieces * (w + 1) / all};
}
/* Records a worker's failure with its thread's message; every wait returns. */
void sdr_team_break(struct sdr_team *team, enum sdr_status status);
/* Status and message of the first failed worker. */
enum sdr_status sdr_team_status(struct sdr_team *team);
/* Waits for all workers; the last to arrive runs `work`, if not NULL. */
enum sdr_status sdr_team_barrier(struct sdr_run *run, enum sdr_status (*work)(struct sdr_run *run));
/* On a worker's turn: waits until every other worker has finished its gradient. */
enum sdr_status sdr_team_rest(struct sdr_run *run);

/* next_batch.c */
/* Sets the place where workers must stop for a barrier. */
void sdr_plan_stop(struct sdr_run *run);
/* A batch of `count` rows from a place of the epoch. */
struct sdr_batch sdr_batch_at(const struct sdr_run *run, uint64_t place, uint64_t count);

#endif
