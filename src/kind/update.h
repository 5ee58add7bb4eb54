/* Blocks, batches and updates: the data exchanged between models, optimizers and strategies. */
#ifndef SDR_KIND_UPDATE_H
#define SDR_KIND_UPDATE_H

#include "base/tensors.h"
#include "kind/rows.h"

/* A named matrix; all blocks lie in one array of values, each starting on a cache line. */
struct sdr_block {
    char name[24];
    uint32_t rows, cols;
    uint64_t offset;      /* of its first value in the array */
    enum sdr_dtype dtype; /* SDR_F32, or SDR_I32 for numbers in the same four bytes */
    bool per_feature;     /* row j belongs to feature j: it has the feature's scale */
    bool penalised;       /* --l1, --l2 and decay act on it */
    bool fixed;           /* keeps its initial values: no update has a part of it */
};
enum { SDR_BLOCKS_MOST = 64 };
/* Values first … end − 1 of that array, whole rows of blocks: the unit of work of servers and
   threads. */
struct sdr_span {
    uint64_t first, end;
};

struct sdr_batch {
    const struct sdr_rows *rows; /* borrowed */
    const uint32_t *row;         /* count row numbers, borrowed until the next batch */
    uint32_t count;
    /* Updates before it: identifies the batch when it is recomputed after a loss. */
    uint64_t number;
    uint64_t at; /* rows of the epoch before it: its position in the schedule of the step size */
    uint32_t of; /* rows of the whole batch that this is a part of; 0: it is a whole one */
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
    uint32_t first;        /* DENSE: first row of the values */
    uint32_t leaf, leaves; /* DENSE: the leaves of the batch that it sums up */
    const uint32_t *index;
    const float *value;
    const float *v;
};
/* The kind of an update. A statistic is a sum over rows: it is added to the values without an
   optimizer. */
enum sdr_sense { SDR_GRADIENT, SDR_STEP, SDR_STATE, SDR_STATISTIC };
struct sdr_update {
    enum sdr_sense sense;
    uint64_t version;       /* of the view it was computed from */
    double loss;            /* weighted sum of the losses before the update */
    double weight;          /* sum of the weights: the divisor of the sum of losses */
    struct sdr_batch batch; /* the examples of FACTORS; its position in the schedule */
    struct sdr_part *part;  /* borrowed, with room for one per block */
    int parts;
};

#endif
