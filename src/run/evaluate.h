/* Evaluation: loss and accuracy, or R², of given weights over some rows. */
#ifndef SDR_RUN_EVALUATE_H
#define SDR_RUN_EVALUATE_H

#include "base/json.h"
#include "kind/model.h"

struct sdr_subset;

/* Rows to go over: all of them, or a list. */
struct sdr_row_list {
    uint32_t *row; /* owned; NULL: 0 … count−1 */
    uint32_t count;
};
static inline uint32_t sdr_listed(const struct sdr_row_list *list, uint32_t i)
{
    return list->row ? list->row[i] : i;
}

/* Sums over the evaluated rows. */
struct sdr_evaluation {
    double loss, weight;     /* weighted sum of losses, sum of weights */
    double penalty;          /* of per-row penalties (mf), weighted like the losses */
    double correct, counted; /* classification: weight of correct predictions, and of all */
    double majority;         /* classification: weight of the most frequent class */
    double target_sum, target_square, error_square; /* regression */
    uint64_t rows, unknown;                         /* unknown: labels not seen in training */
};

/* Sums over rows, with given weights; the same bits for any number of threads. */
enum sdr_status sdr_evaluate(const struct sdr_model_kind *kind, const struct sdr_problem *problem,
                             const struct sdr_block *block, const float *w,
                             const struct sdr_row_list *rows, int threads,
                             struct sdr_evaluation *result);
/* The same sums from values in other processes: pull() gets the values that the rows of a
   subset read. */
struct sdr_pull {
    enum sdr_status (*pull)(void *context, struct sdr_subset *subset);
    void *context;
    const struct sdr_layout *layout;
};
enum sdr_status sdr_evaluate_pulled(const struct sdr_model_kind *kind,
                                    const struct sdr_problem *problem, const struct sdr_pull *pull,
                                    const struct sdr_row_list *rows, int threads,
                                    struct sdr_evaluation *result);
double sdr_evaluation_loss(const struct sdr_evaluation *e);
/* Accuracy or R²; NaN for clusters, which have no labels to compare with. */
double sdr_evaluation_metric(const struct sdr_evaluation *e, enum sdr_truth task);
/* Adds loss, accuracy and its baseline, or rmse and r2 to a JSON object; their names get a prefix
   such as "valid_". */
void sdr_evaluation_json(const struct sdr_evaluation *e, const struct sdr_model_kind *kind,
                         const char *prefix, json_t *object);

#endif
