/* The interfaces: one struct per kind of plug-in, with the contract of every member.

   A plug-in is one file in its kind's folder that ends in SDR_REGISTER(kind, name); the build finds
   that line and writes the table. Everything here is const and shared by all threads. */
#ifndef SDR_PLUGIN_H
#define SDR_PLUGIN_H

#include "base/option.h"
#include <stdatomic.h>
#include <stdint.h>

/* Defines the plug-in's symbol; '-' in names is '_' here. */
#define SDR_REGISTER(kind, name) const struct sdr_##kind sdr_##kind##_##name

/* What every plug-in begins with, so that all kinds can be listed, found and given options alike.
 */
#define SDR_ABOUT                                                                                  \
    const char *name, *summary;                                                                    \
    const struct sdr_option *options; /* or NULL */                                                \
    size_t options_size               /* of the struct the options are stored in */
struct sdr_plugin {
    SDR_ABOUT;
};

/* ---- rows: the examples, as kernels and models see them ---- */
/* Sparse rows (CSR) have start, index, value; dense rows have dense. All pointers are borrowed. */
struct sdr_rows {
    uint64_t count;
    uint32_t features;
    const uint64_t *start;   /* sparse: count + 1 offsets; NULL: dense */
    const uint16_t *index16; /* sparse: one of index16 (features ≤ 65536) and index32 is set; */
    const uint32_t *index32; /*         distinct and increasing within a row                  */
    const float *value;
    const float *dense; /* dense[row * stride + feature] */
    uint64_t stride;
    const float *label;  /* raw labels; NULL: none */
    const float *weight; /* NULL: all one */
    const struct sdr_data
        *streams; /* set if the rows lie on disk: say what was passed; else NULL */
};
/* A pass is done with rows [first, end) for now: rows that stream give their memory back. */
void sdr_rows_release(const struct sdr_rows *rows, uint64_t first, uint64_t end);

/* One sparse row. */
struct sdr_sparse_row {
    const uint16_t *index16; /* one of the two */
    const uint32_t *index32;
    const float *x;
    uint32_t n;
};
static inline struct sdr_sparse_row sdr_sparse_row(const struct sdr_rows *rows, uint64_t row)
{
    uint64_t first = rows->start[row];
    return (struct sdr_sparse_row){rows->index16 ? rows->index16 + first : NULL,
                                   rows->index32 ? rows->index32 + first : NULL,
                                   rows->value + first, (uint32_t)(rows->start[row + 1] - first)};
}
static inline uint32_t sdr_row_index(const struct sdr_sparse_row *row, uint32_t i)
{
    return row->index16 ? row->index16[i] : row->index32[i];
}
static inline const float *sdr_dense_row(const struct sdr_rows *rows, uint64_t row)
{
    return rows->dense + row * rows->stride;
}

/* ---- formats: files → rows ---- */
enum { SDR_CONTENT_CERTAIN = 95 };
struct sdr_reading;
struct sdr_piece;
struct sdr_source;
struct sdr_format {
    SDR_ABOUT;
    const char *extensions; /* "svm libsvm", without dots; "" if content alone decides */
    const char *takes;      /* options of reading that mean something to it: "label weight" */
    size_t state_size;      /* the framework allocates it and the options, zeroed */
    /* How sure the format is that a file starting with head is its own: 0 no … 100 certain. From
       SDR_CONTENT_CERTAIN on it may be right although the file's extension is another format's. */
    int (*recognise)(const char *head, size_t count);
    /* Whole records in a head that may end within one. A format that has it is given a head of
       several records in open(), however long they are; NULL: 64 KB suffice. */
    uint32_t (*records)(const void *options, const char *head, size_t count);
    /* Looks at the head of the first file and fixes schema and state. Does not block. */
    enum sdr_status (*open)(void *state, struct sdr_reading *reading, const char *head,
                            size_t count);
    /* Line formats: bytes up to and including the last whole record in a buffer, 0 if there is
       none; NULL: the last newline. The last chunk of a file is passed whole. */
    size_t (*cut)(const void *state, const char *bytes, size_t count);
    /* Line formats: turns a chunk of whole records into rows. Called in parallel: state is const.
       `first` is true for the chunk a file begins with (header lines). Errors go to sdr_piece_fail.
     */
    enum sdr_status (*parse)(const void *state, const char *bytes, size_t count, bool first,
                             struct sdr_piece *piece);
    /* Other formats (parse is NULL): reads one whole file and gives pieces to reading->builder. */
    enum sdr_status (*whole)(void *state, struct sdr_reading *reading, struct sdr_source *source);
    void (*close)(void *state); /* frees what open allocated; may be NULL */
    bool by_density;            /* rows may become dense if few cells are zero */
};

/* ---- generators: data with known truth ---- */
struct sdr_generate_options {
    uint64_t rows, features, nnz, classes, seed;
    double noise; /* share of labels flipped, or standard deviation of the noise added */
};
struct sdr_generator {
    SDR_ABOUT;
    /* Writes the data to path, in the format of its extension, and the truth it was made from to
       path.truth.json where that is small. The same options give the same bytes. */
    enum sdr_status (*make)(const struct sdr_generate_options *options, const char *path);
};

/* ---- blocks: the parameters ---- */
/* A named matrix; all blocks lie in one array of values, each starting on a cache line. */
struct sdr_block {
    char name[24];
    uint32_t rows, cols;
    uint64_t offset;  /* of its first value in the array */
    bool per_feature; /* row j belongs to feature j: it has its scale and is penalised; otherwise
                         (an intercept) neither */
};
enum { SDR_BLOCKS_MOST = 64 };

/* ---- batches and updates ---- */
struct sdr_batch {
    const struct sdr_rows *rows; /* borrowed */
    const uint32_t *row;         /* count row numbers, borrowed until the next deal */
    uint32_t count;
    uint64_t number; /* updates before it: what to deal again after a loss */
    uint64_t at;     /* rows of the epoch before it: sets the step's place in its schedule */
    uint32_t of;     /* rows of the update it is a part of; 0: it is a whole one */
};

/* A gradient is born as factors, Σ u_i·v_iᵀ with v_i the examples, and multiplied out late; or, where
   it is no such product, as a row of values for every entry of an example. */
enum sdr_form { SDR_DENSE, SDR_ROWS, SDR_FACTORS, SDR_ENTRIES, SDR_COLUMNS };
enum { SDR_COLUMN_TIMES = 1, SDR_COLUMN_FLOATS = 3 };
/* What an update is. A statistic is a sum over rows: it is added, and no optimizer is asked. */
enum sdr_sense { SDR_GRADIENT, SDR_STEP, SDR_STATE, SDR_STATISTIC };
struct sdr_update {
    enum sdr_form form;
    enum sdr_sense sense;
    uint32_t outputs; /* values per row of the block */
    /* FACTORS: u[i * stride + k] for example i; the mean over the batch is already in u.
       ENTRIES: behind the slopes of example i come `outputs` values for each of its entries.
       COLUMNS: example i adds u[i * stride + 1] times itself to column u[i * stride], and that
       number to the intercept's; u[i * stride + 2] bounds its squared distance from the second
       nearest column from below, whatever rounding did.
       The intercept's part is the sum of the slopes. */
    const float *u;
    uint32_t stride;
    struct sdr_batch examples;
    /* ROWS: count rows of the first block, index[i], value[i * outputs + k]; the intercept apart.
     */
    const uint32_t *index;
    uint32_t count;
    /* DENSE: value has every value of the parameter array. */
    const float *value;
    uint64_t version; /* of the view it was computed from */
    double loss;      /* weighted sum of the losses before the update */
    double weight;    /* sum of the weights: what the sum of losses is divided by */
};

/* ---- models: what is computed ---- */
/* Clusters and cuts have no truth that predictions could be compared with: a loss is all there is. */
enum sdr_truth { SDR_REGRESSION, SDR_BINARY, SDR_CLASSES, SDR_CLUSTERS, SDR_CUT };

static inline bool sdr_has_truth(enum sdr_truth task)
{
    return task != SDR_CLUSTERS && task != SDR_CUT;
}

/* The problem as the model sees it: fixed before training, const afterwards. */
struct sdr_problem {
    const struct sdr_rows *rows; /* training rows */
    const float *target;         /* per row: the value; −1 or +1; the class number */
    const float *metric_weight;  /* per row: what metrics are weighted by; NULL: all one */
    const float *row_weight;     /* per row, mean 1; NULL: all one */
    const float *center;         /* dense rows: subtracted from x; NULL: nothing */
    const uint8_t *side;         /* pairs, per feature: 0 a user, 1 an item; NULL: as they stand */
    uint32_t features, outputs, classes;
    bool intercept;
    const void *model_options;
    const struct sdr_linear_kernels *kernels;
};

/* The side of a pair's feature: what is known of it, or its place in the pair. */
static inline uint32_t sdr_side(const struct sdr_problem *problem, uint32_t feature, uint32_t place)
{
    return problem->side ? problem->side[feature] : place;
}

/* Asks for the memory of a row. Always inline: a function that only prefetches counts as without
   effect, and its calls are dropped. */
static inline __attribute__((always_inline)) void sdr_fetch(const void *from, size_t bytes)
{
    enum { LINE = 64, MOST = 2048 };
    const char *at = from, *end = at + (bytes < MOST ? bytes : MOST);
    for (; at < end; at += LINE)
        __builtin_prefetch(at);
}
static inline __attribute__((always_inline)) void sdr_fetch_row(const struct sdr_problem *problem,
                                                                uint32_t row)
{
    const struct sdr_rows *rows = problem->rows;
    __builtin_prefetch(&problem->target[row]);
    if (rows->dense) {
        sdr_fetch(sdr_dense_row(rows, row), rows->features * sizeof(float));
        return;
    }
    struct sdr_sparse_row r = sdr_sparse_row(rows, row);
    sdr_fetch(r.x, r.n * sizeof(float));
    if (r.index16)
        sdr_fetch(r.index16, r.n * sizeof(uint16_t));
    else
        sdr_fetch(r.index32, r.n * sizeof(uint32_t));
}

struct sdr_model_kind {
    SDR_ABOUT;
    enum sdr_truth truth;
    bool linear; /* score and gradient are those of model/linear.h: rows can be walked over */
    bool pairs;  /* rows are pairs of features, and the gradient has a row for each: ENTRIES */
    /* Pairs that are factors, and can be walked over: how many a row of block 0 has; what is behind
       them is a bias. NULL: they are not. */
    uint32_t (*rank)(const struct sdr_problem *problem);
    /* Clusters: how many outputs; NULL: one, or as many as there are classes. */
    uint32_t (*outputs)(const void *options);
    uint64_t batch;                   /* default --batch; 0: 1 */
    uint64_t epochs;                  /* default --epochs at least */
    const char *optimizer, *schedule; /* what --optimizer auto and --schedule auto mean; NULL:
                                         adagrad, and what suits the optimizer */
    double step;                      /* default --lr in units of a linear model's; 0: 1 */
    double curvature;                 /* bound on the second derivative of the loss by a score */
    /* Loss of one example; writes slope[k] = ∂loss/∂score[k]. score and slope may be the same
     * array. */
    double (*loss)(const void *options, const float *score, uint32_t outputs, float target,
                   float *dloss);
    /* Probabilities of the classes from the scores (classes values); NULL: it has none. */
    void (*probability)(const float *score, uint32_t outputs, float *probability);
    /* Declares the blocks (name, rows, cols, per_feature); returns how many. */
    int (*shape)(const struct sdr_problem *problem, struct sdr_block *block);
    /* Scores of `batch`, count × outputs. w is the array of values behind the blocks. */
    void (*score)(const struct sdr_problem *problem, const struct sdr_block *block, const float *w,
                  const struct sdr_batch *batch, float *score);
    /* Values to start from, which are zero before; NULL: zero it is. The same seed gives the same.
       `rows` are those that will be trained on; row is NULL: all of them. */
    enum sdr_status (*start)(const struct sdr_problem *problem, const struct sdr_block *block,
                             const struct sdr_batch *rows, uint64_t seed, double size, float *w);
    /* Whether rows are as the model needs them, or a sentence; NULL: any rows will do. */
    enum sdr_status (*check)(const struct sdr_problem *problem, const char *name);
    /* Floats of scratch that the gradient needs for one example; NULL: outputs. */
    uint32_t (*scratch)(const struct sdr_problem *problem);
    /* Puts a row of block 0 back into the set it must lie in, after every step; NULL: any value will
       do. */
    void (*project)(float *row, uint32_t cols);
    /* Penalties that belong to an example's own values: l2 of the two sides of a pair. */
    void (*pair_penalty)(const void *options, float l2[2]);
    /* Gradient of the mean loss of the batch. scratch backs update->u. */
    void (*gradient)(const struct sdr_model_kind *kind, const struct sdr_problem *problem,
                     const struct sdr_block *block, const float *w, const struct sdr_batch *batch,
                     float *scratch, struct sdr_update *update);
};

/* ---- optimizers: gradient → step ---- */
/* Where a step lands: slices of the parameter array that move together, and this step's constants.
   All arrays run over values, except scale, which runs over features. */
struct sdr_target {
    float *value;
    float *slot[2];      /* optimizer state; NULL where the optimizer has less */
    float *penalty_paid; /* penalty already charged, in units of Σ rate; NULL: no penalty */
    const float *scale; /* 1 / size of each feature: steps are taken in scaled units; NULL: all 1 */
    const float *center;   /* dense rows: subtracted from x; NULL: nothing */
    const float *constant; /* what begin() computed */
    float penalty_due;     /* Σ rate so far */
    float l1, l2, group;   /* penalty weights */
    bool standardize;      /* the penalty is on the scaled weights */
    bool plain_decay;      /* l2 ignores scales: standardized, or decoupled decay */
    bool pay_fully;        /* charge what is due however little it is */
};
enum { SDR_CONSTANTS = 8 };

/* A row of two features, copied. */
struct sdr_pair {
    uint32_t one, two;
    float target, weight;
};

struct sdr_optimizer;
/* Rows with one output that one worker steps on one after the other, each a batch of its own; rows of
   a linear model, or pairs. */
struct sdr_fused_steps {
    const struct sdr_problem *problem;
    const struct sdr_model_kind *kind;
    const struct sdr_optimizer *optimizer;
    const uint32_t *row;         /* count of them */
    const struct sdr_pair *pair; /* the same rows where they were copied; NULL: they were not */
    const uint32_t *ahead;       /* for each, a row to fetch from memory meanwhile; NULL: none */
    const double *rate;          /* the step of each */
    /* Rows that are part of a window others train on too: the place of each in it. Then rate is per
       place, and so are charge_at (Σ rate before each; NULL without penalties) and slope, which takes
       the slopes: the intercept rests. NULL: rows follow each other. */
    const uint32_t *place;
    const double *penalty_due_at;
    float *dloss;
    uint32_t count;
    uint32_t rank,
        columns; /* pairs: factors of a row of the block, and all of its values; else 0 */
    const void *optimizer_options;
    struct sdr_target *weight, *intercept; /* intercept may be NULL */
    float *constant;                       /* of both targets */
    uint64_t version;                      /* updates so far; moves on */
    double penalty_due;                    /* Σ rate so far; moves on where there is a penalty */
    double loss_sum, weight_sum;           /* of the rows, each before its step; added to */
};

/* Compiled once per CPU level from optimizer/step.h; see there for the loops. A value's state
   advances when a row touches it; penalties of the steps in between are charged when it is next
   read. */
struct sdr_optimizer {
    SDR_ABOUT;
    int slots;        /* state arrays, each as long as the values, zero at the start */
    double rate;      /* default --lr in units of typical_row^−rate_power */
    int rate_power;   /* 2: plain gradient steps; 1: steps normalised per value; 0: absolute */
    bool uniform;     /* one metric for all values of a row: group lasso is exact */
    bool own_penalty; /* charges l1 and l2 itself (FTRL) */
    bool sums;        /* its state sums gradients up: what several workers added is added up too;
                         otherwise a state is an average, and theirs are averaged */
    /* Constants of update number `update` (from 1) with step `rate`. */
    void (*begin)(const void *options, uint64_t update, double rate,
                  const struct sdr_target *target, float constant[SDR_CONSTANTS]);
    /* One step with gradient u·x on one output: index and x of a sparse row, or a dense row. */
    void (*sparse16)(const struct sdr_target *t, const uint16_t *index, const float *x, uint32_t n,
                     float u);
    void (*sparse32)(const struct sdr_target *t, const uint32_t *index, const float *x, uint32_t n,
                     float u);
    void (*dense)(const struct sdr_target *t, const float *x, uint32_t n, float u);
    /* One step with gradient x_j·u[k] on rows of `outputs` values. */
    void (*matrix16)(const struct sdr_target *t, const uint16_t *index, const float *x, uint32_t n,
                     const float *u, uint32_t outputs);
    void (*matrix32)(const struct sdr_target *t, const uint32_t *index, const float *x, uint32_t n,
                     const float *u, uint32_t outputs);
    void (*matrix)(const struct sdr_target *t, const float *x, uint32_t n, const float *u,
                   uint32_t outputs);
    /* Settle, score, slope, step for one row after the other: what pull, gradient and commit do, to
       the bit, with each row's weights gathered once. */
    void (*fused)(struct sdr_fused_steps *fused);
    /* The same on weights that other workers change meanwhile, without locks (Hogwild!). */
    void (*fused_shared)(struct sdr_fused_steps *fused);
    /* Charges the penalty up to now on the values of the given rows; n rows from first, or listed.
     */
    void (*catch_up16)(const struct sdr_target *t, const uint16_t *index, uint32_t n,
                       uint32_t outputs);
    void (*catch_up32)(const struct sdr_target *t, const uint32_t *index, uint32_t n,
                       uint32_t outputs);
    void (*catch_up)(const struct sdr_target *t, uint32_t n, uint32_t outputs);
    /* The weights where they differ from the point gradients are taken at (Nesterov); NULL: the
       same. n rows into out. */
    void (*publish)(const struct sdr_target *t, uint32_t n, uint32_t outputs, float *out);
    /* Decoupled decay (AdamW): replaces l2 and is no part of the objective; NULL: none. The decay is
       in the constants of targets with l2, so the intercept has constants of its own. */
    double (*decay)(const void *options);
    /* The penalty that update number `update` with step `rate` makes due, in units of Σ rate; NULL:
       `rate`. */
    double (*penalty_due)(const void *options, uint64_t update, double rate);
};

/* ---- schedules of the step size ---- */
struct sdr_schedule_time {
    double epoch, at; /* whole epochs, and rows of the present one */
    double per_row;   /* 1 / rows of an epoch */
    double epochs;    /* planned */
};
struct sdr_schedule {
    SDR_ABOUT;
    bool needs_end; /* needs to know when the run ends */
    /* Factors on the rate at `count` places, factor[i] where `when->epoch` epochs and when->at + i
       rows more have passed. */
    void (*factors)(const void *options, const struct sdr_schedule_time *when, uint32_t count,
                    double *factor);
};

/* ---- strategies: when workers agree ---- */
struct sdr_node;
struct sdr_run;
/* What a strategy decides before a run begins, from what is known of it. */
struct sdr_plan {
    /* known */
    int workers; /* may be lowered */
    int nodes;   /* of memory in this machine */
    bool deterministic, penalty, group_penalty;
    bool all_conflict;   /* every row reads and writes what every other does */
    bool pairs;          /* rows have two features, and touch nothing else */
    bool fused;          /* batches are single rows of a linear model with one output */
    uint64_t rows;       /* training rows */
    uint64_t batch;      /* rows of an update */
    uint64_t parameters; /* how many there are */
    uint64_t values;     /* of the parameters and the optimizer's state */
    double row_values;   /* parameters that a row touches, on average */
    double busiest;      /* share of the rows that touch the busiest parameter, intercept aside */
    uint64_t window;     /* rows whose largest component is small; 0: there is no such window */
    /* decided */
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
/* Nodes that exchange messages. A loop is given a node, and talks to others by its transport alone. */
struct sdr_message;
/* Work that takes time, in steps: compute runs one a call, and between two of them a loop can send what is ready.
   run() may be called at any moment between the call of compute and its return, on any thread or stack, or never; it
   reads and writes *argument, and looks at *stop now and then. */
struct sdr_work {
    enum sdr_status (*run)(void *argument, uint32_t step, const atomic_uint *stop);
    void *argument;
    bool certain;         /* nobody will cancel it */
    uint32_t steps, next; /* next: the step that compute runs, from 0 on; it moves on when done */
    const double *cost;   /* per step: the time it takes relative to the others; NULL: all alike */
    /* The time of all steps is drawn (--compute, --delay) by the number of the work among those of its worker: the sum
       of so many draws. */
    uint64_t number;
    uint32_t draws;
    int64_t time; /* the transport's: what was drawn, nanoseconds */
};
struct sdr_transport {
    SDR_ABOUT;
    bool simulated;    /* time is virtual, and all nodes are in this process, on one thread */
    bool by_reference; /* a body that many are sent is there once */
    uint64_t workers_most;
    /* Where a job has several processes: which one this is, and how many there are; before data is read, and
       any number of times. At the end: how it went; returns the status to end with. NULL: there is one process. */
    enum sdr_status (*join)(const void *options, int *process, int *processes);
    enum sdr_status (*leave)(enum sdr_status status);
    /* Barrier with timeout, of the option and some seconds more. Fails unless every process passes the same text. */
    enum sdr_status (*barrier)(const void *options, double more, const char *text);
    /* Bytes of the first process become everybody's; the others wait for it. */
    enum sdr_status (*share)(void *bytes, size_t count);
    /* Makes what all nodes share; run->network is there. */
    enum sdr_status (*open)(struct sdr_run *run, const void *options);
    /* Whether a node lives in this process; NULL: all do. */
    bool (*is_here)(const struct sdr_node *node);
    /* Runs loop(node) for every node of this process, until all have returned; the status of the first that
       failed. */
    enum sdr_status (*launch)(struct sdr_run *run, enum sdr_status (*loop)(struct sdr_node *node));
    /* Never waits for the receiver. The body is gone in every case. Any node can send to any other, and to itself;
       messages from one node to another arrive in the order sent. */
    enum sdr_status (*send)(struct sdr_node *node, struct sdr_message *message);
    /* Waits for the next message, in the order of arrival. Fails if none can come any more, as far as the
       transport can tell. In real time node 0 gets a NONE now and then. The first server, or every node where there
       is none, gets a LOST for every worker that has died. */
    enum sdr_status (*receive)(struct sdr_node *node, struct sdr_message *message);
    /* A worker's: runs the next step of the work. *done is false if an URGENT message came in the way, or is there
       already; what run() made is then worth nothing. */
    enum sdr_status (*compute)(struct sdr_node *node, struct sdr_work *work, bool *done);
    /* Whether a message has come: receive would not wait. */
    bool (*any)(struct sdr_node *node);
    int64_t (*now)(const struct sdr_node *node); /* nanoseconds since the launch */
    void (*close)(struct sdr_run *run);          /* must not wait for the dead */
};

struct sdr_peer_ops;
struct sdr_strategy {
    SDR_ABOUT;
    size_t state_size; /* the loop's own state, zeroed or resumed; saved in checkpoints */
    bool full_batch;   /* an update takes all rows: --batch does not apply */
    bool team;         /* any number of workers; otherwise one */
    bool repeatable;   /* the same bits for any number of workers, without being asked */
    bool can_repeat;   /* the same if --deterministic asks for it */
    bool ordered; /* every update is one step on the parameters of the run: they can be averaged */
    bool windows; /* needs to know how rows conflict: plan->window */
    bool joint;   /* an update takes a batch from every worker; deterministic: --batch in all */
    /* Decides, or refuses with the reason; NULL: nothing is shared or copied. */
    enum sdr_status (*plan)(const void *options, struct sdr_plan *plan);
    /* With these options of its own the strategy takes its steps itself, proximal and in double:
       --optimizer, --lr, --schedule, --average and --shuffle do not apply. NULL: never. */
    bool (*own_steps)(const void *options);
    /* Rules across options, one sentence; may be NULL. */
    enum sdr_status (*check)(const struct sdr_run *run);
    /* The worker's loop, one thread each: starts from node->state, returns when the run is over. NULL: the
       strategy works by messages alone. */
    enum sdr_status (*worker)(struct sdr_node *node);
    /* By messages: the loops of the server that decides, and of a worker; NULL: it has none. */
    enum sdr_status (*server)(struct sdr_node *node);
    enum sdr_status (*client)(struct sdr_node *node);
    /* By messages between any two workers, without a server: see peer/peer.h; NULL: it has no such loop. */
    const struct sdr_peer_ops *peer;
    /* With messages: gradients of an update; or refuses. */
    enum sdr_status (*quorum)(const void *options, uint64_t workers, uint64_t *gradients);
    /* With messages: whether it cancels work; NULL: never. */
    bool (*cancels)(const void *options);
    /* With messages: workers have the optimizer's state and take the steps, on top of their own that others
       do not see yet; servers add them up, and charge penalties. */
    bool steps;
    /* With messages: batches that a worker takes steps with on its own before it sends what they changed; NULL: 1,
       and a gradient is sent unless `steps` says otherwise. */
    uint64_t (*local)(const void *options);
    /* With messages: workers are given tasks without values, for which they go on from those they have and their own
       steps; NULL: never. */
    bool (*keeps)(const void *options);
    /* With messages, where workers take steps: busy workers are sent the values of their next batch ahead. */
    bool eager;
};

#endif
