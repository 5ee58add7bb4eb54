/* Strategies: when workers agree. */
#ifndef SDR_KIND_STRATEGY_H
#define SDR_KIND_STRATEGY_H

#include "kind/about.h"

struct sdr_node;
struct sdr_run;
/* What is known of a run when its strategy decides how the work is shared. */
struct sdr_facts {
    int nodes; /* of memory in this machine */
    bool deterministic, penalty, group_penalty;
    bool all_conflict;   /* every row reads and writes what every other does */
    const char *model;   /* its name, borrowed */
    bool pairs;          /* rows have two features, and touch nothing else */
    bool fused;          /* steps of single rows can be fused */
    uint64_t rows;       /* training rows */
    uint64_t batch;      /* rows of an update */
    uint64_t parameters; /* how many there are */
    uint64_t values;     /* of the parameters and the optimizer's state */
    double row_values;   /* parameters that a row touches, on average */
    double busiest;      /* share of the rows that touch the busiest parameter, intercept aside */
    uint64_t window;     /* rows whose largest component is small; 0: there is no such window */
};
/* What a strategy of workers that share memory decides before a run begins. */
struct sdr_plan {
    struct sdr_facts known;
    int workers;    /* as many as there are; may be lowered */
    uint64_t share; /* rows that are dealt at a time; a multiple of batch */
    int copies;     /* private copies of the parameters; 0: there is one place they live in */
    bool damped;    /* changes of more than two copies are not all added up: see the kernel merge */
    bool races;     /* the order of events decides about the result, and can be recorded */
    bool in_place;  /* no copies: workers write to the same parameters without asking */
    bool snapshots; /* workers compute from values that were copied for the batch */
    bool turns;     /* workers step in a fixed circle, on gradients they computed before */
    bool shards;    /* every worker has rows of its own, the same ones in every epoch */
    bool barriers;  /* workers meet after every share of their shards */
    int locks;      /* that guard the parameters, each a part of them */
    bool joint;     /* all workers compute one update: its gradient is kept where all can see it */
    int loss_sums;  /* losses are summed by pieces of the work, in this many sums; 0: by workers */
    bool windows;   /* rows are trained on by windows of `share` rows, cut into components */
    bool rotates;   /* rows are trained on by cells of a rotation */
    const char *remark; /* for the user, static; NULL: none */
};
/* A strategy has one loop a role; what a loop may call is what the header of its role declares. */
/* Workers that share memory: threads of one process (team/role.h). */
struct sdr_team_ops {
    bool windows; /* needs to know how rows conflict: known.window */
    /* Decides, or refuses with the reason; NULL: one worker, nothing is shared or copied. */
    enum sdr_status (*plan)(const void *options, struct sdr_plan *plan);
    /* One thread a worker: starts from node->state, returns when the run is over. */
    enum sdr_status (*worker)(struct sdr_node *node);
};
/* Servers and workers that exchange messages (server/role.h). */
struct sdr_server_ops {
    /* Gradients of an update; or refuses. */
    enum sdr_status (*quorum)(const void *options, uint64_t workers, uint64_t *gradients);
    bool (*cancels)(const void *options); /* whether it cancels work; NULL: never */
    /* Workers have the optimizer's state and take the steps, on top of their own that others do not see
       yet; servers add them up, and charge penalties. */
    bool steps;
    /* Batches that a worker takes steps with on its own before it sends what they changed; NULL: 1, and a
       gradient is sent unless `steps` says otherwise. */
    uint64_t (*local)(const void *options);
    /* Workers are given tasks without values, for which they go on from those they have and their own
       steps; NULL: never. */
    bool (*keeps)(const void *options);
    bool
        eager; /* where workers take steps: busy ones are sent the values of their next batch ahead */
    enum sdr_status (*server)(struct sdr_node *node); /* the server that decides */
    enum sdr_status (*worker)(struct sdr_node *node);
};

struct sdr_peer_ops; /* workers that exchange messages with each other (peer/role.h) */

struct sdr_strategy {
    SDR_ABOUT;
    size_t state_size; /* the loop's own state, zeroed or resumed; saved in checkpoints */
    bool full_batch;   /* an update takes all rows: --batch does not apply */
    bool many;         /* any number of workers; otherwise one */
    bool repeatable;   /* the same bits for any number of workers, without being asked */
    bool can_repeat;   /* the same if --deterministic asks for it */
    bool ordered; /* every update is one step on the parameters of the run: they can be averaged */
    bool joint;   /* an update takes a batch from every worker; deterministic: --batch in all */
    /* With these options of its own the strategy takes its steps itself, proximal and in double:
       --optimizer, --lr, --schedule, --average and --shuffle do not apply. NULL: never. */
    bool (*own_steps)(const void *options);
    const struct sdr_team_ops *team;     /* NULL: it works by messages alone */
    const struct sdr_server_ops *server; /* NULL: it has no server */
    const struct sdr_peer_ops *peer;     /* NULL: its workers are no peers */
};

#endif
