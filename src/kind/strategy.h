/* Strategies: synchronization of workers. */
#ifndef SDR_KIND_STRATEGY_H
#define SDR_KIND_STRATEGY_H

#include "kind/about.h"

struct sdr_node;
struct sdr_run;
/* Facts about a run, known before its strategy plans. */
struct sdr_facts {
    int nodes; /* NUMA nodes of this machine */
    bool deterministic, penalty, group_penalty;
    bool all_conflict;   /* every row conflicts with every other */
    const char *model;   /* its name, borrowed */
    bool pairs;          /* rows have two features, and touch nothing else */
    bool fused;          /* steps of single rows can be fused */
    uint64_t rows;       /* training rows */
    uint64_t shard;      /* of a worker, if each has its own */
    uint64_t batch;      /* rows of an update */
    uint64_t parameters; /* number of parameters */
    uint64_t values;     /* parameters and optimizer state */
    double row_values;   /* parameters that a row touches, on average */
    /* Fraction of the rows that touch the busiest parameter, without the intercept. */
    double busiest;
    uint64_t window; /* rows whose largest component is small; 0: there is no such number */
};
/* The plan of a strategy whose workers share memory. */
struct sdr_plan {
    struct sdr_facts known;
    int workers;    /* workers available; may be lowered */
    uint64_t share; /* rows assigned at a time; a multiple of batch */
    int copies;     /* private replicas of the parameters; 0: all workers share one set */
    /* rounds of all copies grow from this many rows to `share`; 0: all are alike */
    uint64_t first_share;
    bool damped;        /* damp the changes of more than two replicas: see the kernel merge */
    bool races;         /* the result depends on the order of events, which can be recorded */
    bool in_place;      /* no replicas: workers write to shared parameters without locks */
    bool snapshots;     /* workers compute from a copy of the values, made per batch */
    bool turns;         /* workers step in round-robin order, on gradients computed earlier */
    bool shards;        /* every worker has its own rows, the same in every epoch */
    bool barriers;      /* barrier after every share of a shard */
    int locks;          /* locks on the parameters, each for a part of them */
    bool joint;         /* all workers compute one update; its gradient is in shared memory */
    int loss_sums;      /* losses are summed per piece of work, in this many sums; 0: per worker */
    bool windows;       /* training goes by windows of `share` rows, cut into components */
    bool rotates;       /* training goes by cells of a rotation */
    const char *remark; /* note to the user, static; NULL: none */
};
/* A strategy has one loop per role. The header of the role declares what a loop may call. */
/* Workers that share memory: threads of one process (team/role.h). */
struct sdr_team_ops {
    bool windows; /* needs known.window: how rows conflict */
    /* Plans, or refuses with the reason; NULL: one worker, nothing shared or copied. */
    enum sdr_status (*plan)(const void *options, struct sdr_plan *plan);
    /* One thread per worker: starts from node->state, returns when the run is over. */
    enum sdr_status (*worker)(struct sdr_node *node);
};
/* Servers and workers that exchange messages (server/role.h). */
struct sdr_server_ops {
    /* Sets the number of gradients of an update, or refuses. */
    enum sdr_status (*quorum)(const void *options, uint64_t workers, uint64_t *gradients);
    bool (*cancels)(const void *options); /* whether it cancels work; NULL: never */
    /* Workers hold the optimizer state and take the steps; they read their own steps before
       others do. Servers add the steps up and charge penalties. */
    bool steps;
    /* Batches that a worker takes local steps on before it sends the change; NULL: 1, and it
       sends a gradient unless `steps` is set. */
    uint64_t (*local)(const void *options);
    /* Whether workers get tasks without values, and continue from their present values and their
       own steps; NULL: never. */
    bool (*keeps)(const void *options);
    bool eager; /* with `steps`: busy workers are sent the values of their next batch ahead */
    enum sdr_status (*server)(struct sdr_node *node); /* the coordinator */
    enum sdr_status (*worker)(struct sdr_node *node);
};

struct sdr_peer_ops; /* workers that exchange messages with any other (peer/role.h) */

struct sdr_strategy {
    SDR_ABOUT;
    size_t state_size; /* state of the loop, zeroed or resumed; saved in checkpoints */
    bool full_batch;   /* an update takes all rows: --batch does not apply */
    bool many;         /* any number of workers; otherwise one */
    bool repeatable;   /* the same bits for any number of workers, always */
    bool can_repeat;   /* the same with --deterministic */
    bool ordered;      /* every update is one step on the run's parameters: they can be averaged */
    bool joint; /* an update takes a batch of every worker; deterministic: --batch rows in all */
    /* Whether, with these options, the strategy takes its own steps, proximal and in double:
       --optimizer, --lr, --schedule, --average and --shuffle do not apply. NULL: never. */
    bool (*own_steps)(const void *options);
    const struct sdr_team_ops *team;     /* NULL: it needs messages */
    const struct sdr_server_ops *server; /* NULL: it has no server */
    const struct sdr_peer_ops *peer;     /* NULL: its workers are not peers */
};

#endif
