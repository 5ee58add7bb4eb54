/* Models: what is computed. */
#ifndef SDR_KIND_MODEL_H
#define SDR_KIND_MODEL_H

#include "kind/about.h"
#include "kind/update.h"

/* What the label of a row is, and a prediction is compared with. */
enum sdr_truth { SDR_REGRESSION, SDR_BINARY, SDR_CLASSES, SDR_UNSUPERVISED };
/* Which values a gradient reads: those of the features of its rows (and all blocks that are not per
   feature), or all. */
enum sdr_reads { SDR_READS_TOUCHED, SDR_READS_ALL };
/* What the rows must have. PAIRS: two features, which have no size; SIDES: one is a user, one an item.
   NUMBERS: what a feature is depends on its number, so features cannot be renumbered. */
enum sdr_needs {
    SDR_NEEDS_LABELS = 1,
    SDR_NEEDS_PAIRS = 2,
    SDR_NEEDS_SIDES = 4,
    SDR_NEEDS_NUMBERS = 8,
};

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
       are those that will be trained on (row is NULL: all of them), size that of their targets. Writes
       the values of the span alone: others may live in other processes. */
    enum sdr_status (*start)(const struct sdr_problem *problem, const struct sdr_block *block,
                             const struct sdr_batch *rows, double size, struct sdr_span span,
                             float *w);
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

#endif
