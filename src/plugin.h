/* The interfaces: one struct per kind of plug-in, with the contract of every member.

   A plug-in is one file in its kind's folder that ends in SDR_REGISTER(kind, name); the build finds
   that line and writes the table. Everything here is const and shared by all threads. */
#ifndef SDR_PLUGIN_H
#define SDR_PLUGIN_H

#include "base/option.h"
#include "base/tensors.h"
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
    uint64_t offset;      /* of its first value in the array */
    enum sdr_dtype dtype; /* SDR_F32, or SDR_I32 for numbers in the same four bytes */
    bool per_feature;     /* row j belongs to feature j: it has the feature's scale */
    bool penalised;       /* --l1, --l2 and decay act on it */
    bool fixed;           /* keeps the values it starts with: no update has a part of it */
};
enum { SDR_BLOCKS_MOST = 64 };
/* Values first … end − 1 of that array, whole rows of blocks: what is cut for servers and threads. */
struct sdr_span {
    uint64_t first, end;
};

/* ---- batches and updates ---- */
struct sdr_batch {
    const struct sdr_rows *rows; /* borrowed */
    const uint32_t *row;         /* count row numbers, borrowed until the next batch */
    uint32_t count;
    uint64_t number; /* updates before it: what to compute again after a loss */
    uint64_t at;     /* rows of the epoch before it: sets the step's place in its schedule */
    uint32_t of;     /* rows of the batch it is a part of; 0: it is a whole one */
};

/* How one block's part of an update is written down. A part is multiplied out as late as possible.
   DENSE    count values, of the rows from `first` on
   ROWS     count rows of the block: index[i] says which, value[i·cols + k] what. A row may be listed
            several times unless `distinct` is set: its values add up
   TOUCHED  count rows: those of the features of the batch, in the order in which it first meets them
   FACTORS  Σ v_i·u_iᵀ over count examples. u_i is value[i·cols …], or where index is set
            value[i] in column index[i] and zero elsewhere. v_i is, by `right`, the i-th example of
            the batch (as the model sees it: centered), or v[i·rows …], or 1 for a block of one row */
enum sdr_form { SDR_DENSE, SDR_ROWS, SDR_TOUCHED, SDR_FACTORS };
enum sdr_right { SDR_EXAMPLES, SDR_STORED, SDR_ONES };
struct sdr_part {
    int block;
    enum sdr_form form;
    enum sdr_right right;
    bool distinct;
    uint32_t count;
    uint32_t first;        /* DENSE: the row of the block that the values begin with */
    uint32_t leaf, leaves; /* DENSE: the leaves of the batch that are summed up in it */
    const uint32_t *index;
    const float *value;
    const float *v;
};
/* What an update is. A statistic is a sum over rows: it is added, and no optimizer is asked. */
enum sdr_sense { SDR_GRADIENT, SDR_STEP, SDR_STATE, SDR_STATISTIC };
struct sdr_update {
    enum sdr_sense sense;
    uint64_t version;       /* of the view it was computed from */
    double loss;            /* weighted sum of the losses before the update */
    double weight;          /* sum of the weights: what the sum of losses is divided by */
    struct sdr_batch batch; /* the examples of FACTORS; its place in the schedule */
    struct sdr_part *part;  /* borrowed, with room for one a block */
    int parts;
};

/* ---- models: what is computed ---- */
/* What the label of a row is, and a prediction is compared with. */
enum sdr_truth { SDR_REGRESSION, SDR_BINARY, SDR_CLASSES, SDR_UNSUPERVISED };
/* Which values a gradient reads: those of the features of its rows (and all blocks that are not per
   feature), or all. */
enum sdr_reads { SDR_READS_TOUCHED, SDR_READS_ALL };
/* What the rows must have. PAIRS: two features, which have no size; SIDES: one is a user, one an item. */
enum sdr_needs { SDR_NEEDS_LABELS = 1, SDR_NEEDS_PAIRS = 2, SDR_NEEDS_SIDES = 4 };

/* The problem as the model sees it: fixed before training, const afterwards. */
struct sdr_problem {
    const struct sdr_rows *rows; /* training rows */
    const float *target;         /* per row: the value; −1 or +1; the class number */
    const float *metric_weight;  /* per row: what metrics are weighted by; NULL: all one */
    const float *row_weight;     /* per row, mean 1; NULL: all one */
    const float *center;         /* dense rows: subtracted from x; NULL: nothing */
    const uint8_t *side;         /* pairs, per feature: 0 a user, 1 an item; NULL: as they stand */
    uint32_t features, outputs, classes;
    uint32_t image[3]; /* rows, columns, channels of an example that is an image; else 0 */
    uint64_t seed;
    bool intercept;
    bool named_features; /* features are ids of categories, not numbers */
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

/* What a score or a gradient is computed from. */
struct sdr_view {
    const struct sdr_problem *problem;
    const struct sdr_block *block;
    const float *w; /* the array of values behind the blocks; borrowed until the next commit */
    uint64_t version;
};

/* Batches of one row with one output, for which the optimizer's file has loops of its own
   (optimizer/step_loops.h): a linear score of block 0, and block 1 as its intercept; or, with factors,
   the product of the two rows of block 0 that a pair names. */
struct sdr_fused_model {
    /* Factors of a row of block 0; what is behind them is a bias. NULL: a linear model. */
    uint32_t (*factors)(const struct sdr_problem *problem);
    /* With factors: l2 of the two sides of a pair. */
    void (*pair_penalty)(const void *options, float l2[2]);
};

struct sdr_model_kind;
/* What the model does with all rows at once, for --sync batch. One of the two may be NULL. */
struct sdr_full_batch {
    /* Smooth losses of linear scores: the mean loss at w and its gradient, in double; or with `curve`
       the product of w with a bound on the second derivatives, and no loss. */
    double (*gradient)(const struct sdr_model_kind *kind, const struct sdr_view *view,
                       const struct sdr_batch *rows, const double *w, bool curve, double *gradient);
    /* An exact round in place of steps (Lloyd's): w becomes better, *loss is that of the view. *memory
       is NULL in the first round, and given to forget() after the last. */
    enum sdr_status (*round)(const struct sdr_view *view, const struct sdr_batch *rows, int threads,
                             void **memory, double *loss, double *w);
    void (*forget)(void *memory);
    const char *converged; /* why there is nothing to do once a round changes nothing */
};

/* What options mean where they are left to the model. */
struct sdr_model_defaults {
    uint64_t batch;                   /* --batch; 0: 1 */
    uint64_t epochs;                  /* --epochs at least */
    const char *optimizer, *schedule; /* NULL: adagrad, and what suits it */
    double step;                      /* --lr in units of a linear model's; 0: 1 */
};

struct sdr_model_kind {
    SDR_ABOUT;
    enum sdr_truth truth;
    enum sdr_reads reads;
    enum sdr_sense sense; /* of its updates: GRADIENT, or STATISTIC */
    unsigned needs;       /* of enum sdr_needs */
    bool bilinear;        /* scores are products of two parameters: steps scale with 1/labels */
    bool picks;           /* the prediction is the number of the largest score */
    bool no_intercept;    /* --no-intercept would do nothing */
    const char *total;    /* what the sum of all losses is called in results; NULL: nothing */
    struct sdr_model_defaults defaults;
    double curvature; /* bound on the second derivative of the loss by a score; 0: not smooth */
    const struct sdr_fused_model *fused; /* NULL: steps are never fused */
    const struct sdr_full_batch *full;   /* NULL: steps of the optimizer alone */
    /* How many scores an example has; NULL: one, or as many as there are classes. */
    uint32_t (*outputs)(const void *options);
    /* Loss of one example; writes dloss[k] = ∂loss/∂score[k]. Both may be the same array. */
    double (*loss)(const void *options, const float *score, uint32_t outputs, float target,
                   float *dloss);
    /* Probabilities of the classes from the scores (classes values); NULL: it has none. */
    void (*probability)(const float *score, uint32_t outputs, float *probability);
    /* Declares the blocks (all but their offsets); returns how many. */
    int (*shape)(const struct sdr_problem *problem, struct sdr_block *block);
    /* Bytes of scratch that score and gradient need for batches of up to `rows` rows. */
    size_t (*workspace)(const struct sdr_problem *problem, uint32_t rows);
    /* Scores of the batch, count × outputs. */
    enum sdr_status (*score)(const struct sdr_view *view, const struct sdr_batch *batch,
                             void *workspace, float *score);
    /* Values to start from, which are zero before; NULL: zero. The same seed gives the same. `rows`
       are those that will be trained on (row is NULL: all of them), size that of their targets. */
    enum sdr_status (*start)(const struct sdr_problem *problem, const struct sdr_block *block,
                             const struct sdr_batch *rows, double size, float *w);
    /* Refuses rows that are not as the model needs them; NULL: it takes any. */
    enum sdr_status (*check)(const struct sdr_problem *problem, const char *name);
    /* Stages of a gradient; NULL: one. After a stage the parts it added are final: the last layer's
       first. */
    int (*stages)(const struct sdr_problem *problem);
    /* Gradient of the mean loss of the batch (over batch->of rows, if that is set), one stage of it.
       Adds parts to the update, in the workspace; the first stage sets loss and weight. */
    enum sdr_status (*gradient)(const struct sdr_model_kind *kind, const struct sdr_view *view,
                                const struct sdr_batch *batch, int stage, void *workspace,
                                struct sdr_update *update);
    /* The penalty that belongs to one example, part of the objective; NULL: none. */
    double (*row_penalty)(const struct sdr_view *view, uint32_t row);
    /* Puts a row of a block that is per feature back into the set it must lie in, after every step;
       NULL: any value will do. */
    void (*project)(float *row, uint32_t cols);
    /* After every epoch of small steps, on all values; NULL: nothing. */
    void (*epoch_end)(const struct sdr_block *block, float *w);
    /* Weights of centered rows become those of rows as they are; NULL: centers are no matter. */
    void (*uncenter)(const struct sdr_block *block, const float *center, float *w);
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
    uint32_t factors; /* pairs: of a row of the block; else 0 */
    uint32_t columns; /* of the block */
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
