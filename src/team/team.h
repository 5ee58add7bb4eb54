/* The threads of workers that share memory, between the files of this folder. */
#ifndef SDR_TEAM_TEAM_H
#define SDR_TEAM_TEAM_H

#include "run/run.h"
#include <pthread.h>

enum { SDR_LOCKS_MOST = 64 };

struct sdr_team {
    int workers;
    struct sdr_affinity *affinity; /* owned: where workers are pinned to; NULL: anywhere */
    unsigned spins;                /* polls at a barrier before going to sleep */
    atomic_uint_fast64_t next;     /* the next row to hand out, a place in the epoch */
    uint64_t stop;                 /* rows before this place are handed out */
    atomic_bool halt;              /* nothing more is handed out: something waits for a barrier */
    bool pause;                    /* the same as it stood at the last barrier */
    bool accounting;               /* at a barrier: the run's own numbers are right */
    struct sdr_batch round;        /* the rows all workers are at, by rounds */
    atomic_uint_fast64_t piece;
    pthread_mutex_t guard[SDR_LOCKS_MOST]; /* of the parameters, for strategies that lock */

    atomic_int waiting;
    atomic_uint_fast64_t barriers; /* how many so far */
    atomic_uint_fast64_t turn;     /* number of turns so far: worker turn % workers has it */
    uint64_t first_turn;           /* whose number the first one has */
    atomic_uint_fast64_t rested;   /* how often a worker has begun to wait for its turn */
    atomic_bool broken;
    pthread_mutex_t lock; /* guards sleeping, and what follows */
    pthread_cond_t changed;
    enum sdr_status status; /* of the first that failed */
    char sentence[1024];
};

/* barrier.c */
/* A worker failed, with the sentence of its thread: every wait returns. */
void sdr_team_break(struct sdr_team *team, enum sdr_status status);
/* Of the first worker that failed, with its sentence. */
enum sdr_status sdr_team_status(struct sdr_team *team);
/* All workers come here; the last one does `work`, if there is any, before they go on. */
enum sdr_status sdr_team_barrier(struct sdr_run *run, enum sdr_status (*work)(struct sdr_run *run));

/* next_batch.c */
/* Up to where rows can be handed out before something is due. */
void sdr_plan_stop(struct sdr_run *run);
/* Rows of the epoch from a place on, and their number of updates. */
struct sdr_batch sdr_batch_at(const struct sdr_run *run, uint64_t place, uint64_t count);

#endif
