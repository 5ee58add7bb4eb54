/* Models: loss, scores and gradients. */
#ifndef SDR_KIND_MODEL_H
#define SDR_KIND_MODEL_H

#include "base/fetch.h"
#include "kind/about.h"
#include "kind/update.h"

/* The type of the labels, which predictions are compared with. */
enum sdr_truth { SDR_REGRESSION, SDR_BINARY, SDR_CLASSES, SDR_UNSUPERVISED };
/* The values that a gradient reads: those of the features of its rows (and all blocks that are
   not per feature), or all. */
enum sdr_reads { SDR_READS_TOUCHED, SDR_READS_ALL };
/* Requirements on the rows. PAIRS: two features without values; SIDES: one is a user, one an item.
   NUMBERS: what a feature is depends on its number, so features cannot be renumbered. */
enum sdr_needs {
    SDR_NEEDS_LABELS = 1,
    SDR_NEEDS_PAIRS = 2,
    SDR_NEEDS_SIDES = 4,
    SDR_NEEDS_NUMBERS = 8,
};

/* The training problem: fixed before training, const afterwards. */
struct sdr_problem {
    const struct sdr_rows *rows; /* training rows */
    const float *target;         /* per row: the value; −1 or +1; the class number */
    const float *metric_weight;  /* per row: weight in metrics; NULL: all one */
    const float *row_weight;     /* per row, mean 1; NULL: all one */
    const float *center;         /* dense rows: subtracted from x; NULL: nothing */
    /* Training only. scale: of features, steps are taken in multiples of it; NULL: all one.
       row_square: mean squared length of a row, in scaled units. */
    const float *scale;
    double row_square;
    /* Pairs, per feature: 0 a user, 1 an item; NULL: by position in the pair. */
    const uint8_t *side;
    uint32_t features, outputs, classes;
    uint32_t image[3]; /* rows, columns, channels of an example that is an image; else 0 */
    uint64_t seed;
    bool intercept;
    bool named_features; /* features are ids of categories, not numbers */
    const void *model_options;
    const struct sdr_linear_kernels *kernels;
};

/* The side of a pair's feature: problem->side, or its position in the pair. */
static inline uint32_t sdr_side(const struct sdr_problem *problem, uint32_t feature, uint32_t place)
{
    return problem->side ? problem->side[feature] : place;
}

/* Prefetches a row. */
static inline __attribute__((always_inline)) void sdr_fetch_row(const struct sdr_problem *problem,
                                                                uint32_t row)
{
    const struct sdr_rows *rows = problem->rows;
    __builtin_prefetch(&problem->target[row]);
    if (rows->dense) {
        enum { FLOATS = 256 }; /* the CPU's own prefetcher follows from there */
        sdr_fetch(sdr_dense_row(rows, row),
                  (rows->features < FLOATS ? rows->features : FLOATS) * sizeof(float));
        return;
    }
    struct sdr_sparse_row r = sdr_sparse_row(rows, row);
    sdr_fetch_part(r.x, r.n * sizeof(float), 8);
    if (r.index16)
        sdr_fetch_part(r.index16, r.n * sizeof(uint16_t), 4);
    else
        sdr_fetch_part(r.index32, r.n * sizeof(uint32_t), 8);
}

/* The input of a score or a gradient. */
struct sdr_view {
    const struct sdr_problem *problem;
    const struct sdr_block *block;
    const float *w; /* the array of values behind the blocks; borrowed until the next commit */
    uint64_t version;
};

/* Models with one output whose batches of one row can be fused by the optimizer's loops
   (optimizer/step_loops.h): a linear score of block 0; or, with factors, the product of the two
   rows of block 0 that a pair names, and their biases, if block 1 is per feature too. A block of
   one row is an intercept. */
struct sdr_fused_model {
    /* Factors of a row of block 0. NULL: a linear model. */
    uint32_t (*factors)(const struct sdr_problem *problem);
    /* With factors: the l2 of the two sides of a pair. */
    void (*pair_penalty)(const void *options, float l2[2]);
};

/* States of replicas as values that can be compared and averaged, where those of the model are
   sums: pieces of equal length. */
struct sdr_model_state {
    uint64_t (*values)(const struct sdr_block *block, uint64_t *piece);
    void (*copy)(const struct sdr_block *block, const float *w, float *state);
    void (*set)(const struct sdr_block *block, const float *state, float *w);
};

struct sdr_model_kind;
/* Operations on all rows at once, for --sync batch: gradient and curvatures, or round. */
struct sdr_full_batch {
    /* Smooth losses of linear scores, in double: the mean loss at w and its gradient. With
       `curve`: the product of w with a bound on the Hessian, and a loss of 0. The same bits for
       any number of threads. Does not write values that belong to no block. */
    enum sdr_status (*gradient)(const struct sdr_model_kind *kind, const struct sdr_view *view,
                                const struct sdr_batch *rows, int threads, const double *w,
                                bool curve, double *loss, double *gradient);
    /* The diagonal D of that bound B, and *most with B ≼ most·D. */
    enum sdr_status (*curvatures)(const struct sdr_model_kind *kind, const struct sdr_view *view,
                                  const struct sdr_batch *rows, int threads, double *diagonal,
                                  double *most);
    /* An exact round instead of steps (Lloyd's): improves w; *loss is that of the view. *memory
       is NULL in the first round, and passed to forget() after the last. */
    enum sdr_status (*round)(const struct sdr_view *view, const struct sdr_batch *rows, int threads,
                             void **memory, double *loss, double *w);
    void (*forget)(void *memory);
    const char *converged; /* why training ends once a round changes nothing */
};

/* The model's defaults for options. */
struct sdr_model_defaults {
    uint64_t batch;                   /* --batch; 0: 1 */
    uint64_t epochs;                  /* minimum of --epochs */
    const char *optimizer, *schedule; /* NULL: adagrad, and its schedule */
    /* --sync auto: a repeatable strategy; NULL: see run/automatic.c */
    const char *sync;
    double step; /* factor on the automatic step of a linear model; 0: 1 */
};

struct sdr_model_kind {
    SDR_ABOUT;
    enum sdr_truth truth;
    enum sdr_reads reads;
    enum sdr_sense sense; /* of its updates: GRADIENT, or STATISTIC */
    unsigned needs;       /* of enum sdr_needs */
    bool bilinear;        /* scores are products of two parameters: steps scale with 1/labels */
    bool layered;         /* a network: steps do not depend on the length of rows */
    bool picks;           /* the prediction is the index of the largest score */
    bool no_intercept;    /* --no-intercept would have no effect */
    const char *total;    /* name of the sum of all losses in results; NULL: not reported */
    struct sdr_model_defaults defaults;
    /* Takes the model's place if labels are numbers, not classes; NULL: none does. */
    const struct sdr_model_kind *regression;
    double curvature; /* bound on the second derivative of the loss by a score; 0: not smooth */
    const struct sdr_fused_model *fused; /* NULL: steps are never fused */
    const struct sdr_full_batch *full;   /* NULL: optimizer steps only */
    const struct sdr_model_state *state; /* NULL: its values */
    /* Scores per example; NULL: one, or one per class. */
    uint32_t (*outputs)(const void *options);
    /* Loss of one example; writes dloss[k] = ∂loss/∂score[k]. Both may be the same array. */
    double (*loss)(const void *options, const float *score, uint32_t outputs, float target,
                   float *dloss);
    /* Class probabilities from scores (classes values); NULL: the model has none. */
    void (*probability)(const float *score, uint32_t outputs, float *probability);
    /* Declares the blocks (all but their offsets); returns their number, or −1 after sdr_fail. */
    int (*shape)(const struct sdr_problem *problem, struct sdr_block *block);
    /* Bytes of scratch for score and gradient of batches of up to `rows` rows; zero at first, then
       as the last call left it. */
    size_t (*workspace)(const struct sdr_problem *problem, uint32_t rows);
    /* Scores of the batch, count × outputs. */
    enum sdr_status (*score)(const struct sdr_view *view, const struct sdr_batch *batch,
                             void *workspace, float *score);
    /* Writes initial values, zero before; NULL: all zero. The same seed gives the same values.
       `rows` are the training rows (row is NULL: all of them), size the scale of their targets.
       Writes only values of the span: others may live in other processes. */
    enum sdr_status (*start)(const struct sdr_problem *problem, const struct sdr_block *block,
                             const struct sdr_batch *rows, double size, struct sdr_span span,
                             float *w);
    /* Refuses rows that the model cannot train on; NULL: any rows will do. */
    enum sdr_status (*check)(const struct sdr_problem *problem, const char *name);
    /* Stages of a gradient; NULL: one. The parts that a stage adds are final after it: the last
       layer's come first. */
    int (*stages)(const struct sdr_problem *problem);
    /* One stage of the gradient of the batch's mean loss (over batch->of rows, if set). Adds
       parts to the update, in the workspace; the first stage sets loss and weight. */
    enum sdr_status (*gradient)(const struct sdr_model_kind *kind, const struct sdr_view *view,
                                const struct sdr_batch *batch, int stage, void *workspace,
                                struct sdr_update *update);
    /* The penalty of one example, part of the objective; NULL: none. */
    double (*row_penalty)(const struct sdr_view *view, uint32_t row);
    /* Projects a row of a per-feature block onto its feasible set, after every step; NULL: no
       constraint. */
    void (*project)(float *row, uint32_t cols);
    /* Called on all values after every epoch of mini-batch steps; NULL: nothing to do. */
    void (*epoch_end)(const struct sdr_block *block, float *w);
    /* Converts weights of centered rows to weights of the rows as given; NULL: centers do not
       matter. */
    void (*uncenter)(const struct sdr_block *block, const float *center, float *w);
};

#endif
