/* A run: the state shared by train.c and the modules of run/. Front ends see an opaque handle. */
#ifndef SDR_RUN_H
#define SDR_RUN_H

#include "base/cpu.h"
#include "data/data.h"
#include "kind/aggregate.h"
#include "kind/codec.h"
#include "run/evaluate.h"
#include "run/problem.h"
#include "run/record.h"
#include "run/settings.h"
#include "server/network.h"
#include "team/node.h"
#include "team/role.h"
#include "team/rotation.h"
#include "team/window.h"
#include "update/parameters.h"
#include <stdatomic.h>

enum { SDR_PROGRESS = 3 }; /* of a worker with a shard: shares taken, steps, penalties due */
struct sdr_turns;
struct sdr_team;

/* The training data. */
struct sdr_training_set {
    struct sdr_classes classes;
    struct sdr_problem valid_problem;
    struct sdr_row_list train_rows, valid_rows;
    float *target, *valid_target, *row_weight, *scale, *center; /* owned or NULL */
    uint8_t *side;                                              /* of ratings; owned or NULL */
    double weight_sum;               /* of the training rows: sample weights times class weights */
    double typical_row;              /* mean squared length of a row, in the units of steps */
    double target_mean, target_size; /* regression: mean and standard deviation of the labels */
};

/* Step size and length of the run. */
struct sdr_pace {
    double rate;            /* the present step size, before the schedule */
    uint64_t epochs;        /* planned */
    double length;          /* of the step-size schedule, in epochs */
    double per_row;         /* 1 / training rows */
    uint64_t average_from;  /* epochs before averaging starts; UINT64_MAX: never */
    uint64_t average_every; /* updates between two additions to the average */
    uint64_t update_rows;   /* rows of an update: --batch, of all workers if it is joint */
};

/* Workers that share memory. */
struct sdr_shared {
    struct sdr_plan plan;            /* by the strategy */
    int nodes, replicas, loss_count; /* lengths of node, replica and losses */
    uint32_t factors;                /* of pairs with fused steps; 0: a linear model */
    struct sdr_node *node;           /* owned: one per worker */
    struct sdr_parameters *replica;  /* owned: aliases of the parameters, or replicas */
    struct sdr_loss_sum *losses;     /* owned: since the last barrier, by workers or by pieces */
    struct sdr_gradient_space *leaf; /* owned: workspaces of a joint update, by leaf */
    int leaves;
    struct sdr_sum joint;           /* of these leaves */
    float *frequency;               /* owned, per feature: the fraction of rows that touch it */
    struct sdr_span *span;          /* owned: the span of each worker in a joint update */
    struct sdr_team *team;          /* owned: the threads, while they train */
    uint64_t team_version;          /* updates at the last barrier */
    struct sdr_numbering numbering; /* of wide models: features that occur */
    float *damping;                 /* owned, per value: see the kernel `merge`; NULL: no lanes */
    struct sdr_window *window;      /* owned: windows of rows cut into components; NULL: none */
    struct sdr_rotation *rotation;  /* owned: rows by cells; NULL: no rotation */
    double raced, lost;             /* intercept steps of racing workers, and those lost */
    void *round_memory;             /* of the model, between rounds on all rows */
    struct sdr_turns *turns;        /* owned: gradients in flight; NULL: workers take no turns */
    double *shard_progress;         /* owned, with shards: SDR_PROGRESS numbers of each worker */
};

/* The recorded or replayed order of events of racing workers. */
struct sdr_race {
    struct sdr_record *record; /* owned: output; NULL: no recording */
    struct sdr_replay *replay; /* owned: input; NULL: no replay */
    double difference; /* relative difference of the weights of a replay from those recorded */
};

/* Progress of the run; saved in checkpoints. */
struct sdr_progress {
    uint64_t epoch; /* finished epochs */
    uint64_t at;    /* rows of this epoch assigned so far */
    uint64_t rows_done;
    struct sdr_loss_sum loss_sum; /* of this epoch */
    double last_epoch_loss;       /* mean loss of the epoch before, NaN at first */
    double best_valid;            /* with early stopping */
    uint64_t best_epoch;
    double seconds_before;  /* training seconds before a resume */
    uint64_t restarts;      /* so far: see --restarts */
    double least_objective; /* at the end of an epoch, with restarts; NaN: none yet */
    bool went_back;         /* restarted in this epoch */
    uint64_t good_epoch;    /* epoch of the good weights */
};

/* The order of the rows of an epoch. */
struct sdr_row_order {
    enum sdr_shuffle_choice shuffle; /* resolved */
    uint32_t *order;                 /* owned: the rows of this epoch in the order of training */
    uint32_t *chunk;                 /* owned: order of the chunks, shuffled by chunks */
    uint32_t *grouped;               /* owned: scratch for grouping by shard */
    uint32_t chunk_rows;             /* rows of a chunk */
    uint32_t window_rows;            /* rows of a window of chunks */
    uint64_t block_rows;             /* rows of a block, shuffled by blocks */
    uint64_t streaming;              /* streamed data: first row of the block in memory */
    uint64_t block_end;              /* its end, a position in the epoch */
    uint64_t pieces;                 /* of the order that workers are to lay out; 0: it is laid */
};

/* Saved weights. */
struct sdr_kept {
    float *best, *good; /* owned: of the best epoch; of the last finite one */
    bool has_best, has_good;
};

/* Whether and why the run is over. */
struct sdr_end {
    bool over, diverged, preempted, resumed;
    bool ended_early;     /* by --target or early stopping; --resume does not continue */
    const char *why_over; /* static text */
    /* Why the strategy ends the run after this epoch, static text; NULL: it does not. */
    const char *enough;
    bool trained; /* sdr_run_train was called */
    /* It was over before training: its last checkpoint exists, and has the gradients in flight. */
    bool was_over;
};

/* The run directory, and the clock. */
struct sdr_run_log {
    int64_t started, paused, tick; /* start of training; nanoseconds of evaluation; next poll */
    int64_t paused_then;           /* value of `paused` when updates were last counted */
    int64_t next_checkpoint_time, next_status;
    int lock;              /* of the run directory, 0: none */
    bool trouble;          /* the run directory cannot be written */
    struct sdr_text lines; /* owned: lines of metrics.jsonl not written yet */
    char missing[512];     /* why files are missing in the run directory; "": none are */
    uint64_t next_checkpoint_update, checkpoint_updates;
    double checkpoint_seconds;
    bool hold; /* no checkpoint now, and no stop on request: the states of workers are not here */
    double seconds_train, seconds_total_start;
    char *path, *fingerprint;   /* owned: the options that define the path, and their hash */
    struct sdr_tensors resumed; /* a checkpoint whose values are not sent to servers yet */
};

/* --evaluate-every. */
struct sdr_curve {
    bool on;
    uint64_t every; /* updates; 0: not by number */
    uint64_t span;  /* updates over which a hundred points are spread, denser at first; 0: none */
    uint64_t next;  /* updates; 0: at the ends of epochs */
    struct sdr_row_list rows; /* rows that points are evaluated on */
};

/* Figures of the final weights. */
struct sdr_result {
    struct sdr_evaluation train, valid;
    bool valid_known; /* `valid` was computed in this run */
    double objective;
    struct sdr_model *model; /* owned, once trained */
};

/* The plug-ins of a run, and their options. */
struct sdr_chosen {
    const struct sdr_model_kind *kind;
    const struct sdr_optimizer *optimizer;
    const struct sdr_schedule *schedule;
    const struct sdr_strategy *strategy;
    const struct sdr_transport *transport;
    const struct sdr_aggregate *aggregate;
    const struct sdr_codec *codec; /* NULL: plain floats */
    void *model_options, *optimizer_options, *schedule_options, *strategy_options,
        *transport_options, *aggregate_options, *codec_options; /* owned */
};

struct sdr_run {
    struct sdr_options options; /* own copy */
    struct sdr_data *data,
        *valid;       /* borrowed; valid may be NULL, or the same as data (a fraction of it) */
    enum sdr_cpu cpu; /* level of its kernels */
    struct sdr_chosen use;
    struct sdr_problem problem;
    struct sdr_training_set set;
    struct sdr_pace pace;
    struct sdr_layout layout; /* of the values */
    struct sdr_parameters parameters;
    int process, processes; /* of the job: process 0 has the results */
    int workers;
    struct sdr_shared shared;
    struct sdr_network *network; /* owned: nodes that exchange messages; NULL: memory is shared */
    struct sdr_race race;
    struct sdr_progress progress;
    struct sdr_row_order rows;
    struct sdr_kept kept;
    struct sdr_end end;
    struct sdr_run_log log;
    struct sdr_curve curve;
    struct sdr_result result;
    atomic_uint requests;
};

#endif
