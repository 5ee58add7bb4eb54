/* The weights of a run while nobody trains, in this process or with servers in several.
   Everything that needs weights as a whole (epoch ends, curves, checkpoints, the final model)
   uses this module. */
#ifndef SDR_RUN_WEIGHTS_H
#define SDR_RUN_WEIGHTS_H

#include "run/run.h"
#include "server/shards.h"

/* NOW, GOOD or BEST of enum sdr_array. */
/* Makes the present weights ready, as NOW: charges penalties. *finite: all are finite. */
enum sdr_status sdr_weights_ready(struct sdr_run *run, bool *finite);
/* Keeps NOW as GOOD or BEST. */
enum sdr_status sdr_weights_keep(struct sdr_run *run, enum sdr_array as);
/* Restores the parameters from GOOD. */
enum sdr_status sdr_weights_reset(struct sdr_run *run);
/* Between save and restore, weights can be made ready without changing the parameters. */
enum sdr_status sdr_weights_save(struct sdr_run *run, struct sdr_saved *saved);
enum sdr_status sdr_weights_restore(struct sdr_run *run, struct sdr_saved *saved);
/* After every epoch: the model's epoch_end on all values. */
enum sdr_status sdr_weights_end_epoch(struct sdr_run *run);

/* Loss and metrics on rows of the training data, or on the validation rows. */
enum sdr_status sdr_weights_evaluate(struct sdr_run *run, enum sdr_array which,
                                     const struct sdr_row_list *rows,
                                     struct sdr_evaluation *result);
enum sdr_status sdr_weights_validate(struct sdr_run *run, enum sdr_array which);
/* The training objective: the mean loss of an evaluation plus all penalties. */
enum sdr_status sdr_weights_objective(struct sdr_run *run, enum sdr_array which,
                                      const struct sdr_evaluation *e, double *objective);

/* All values of an array in their order, in pieces of at most SDR_PIECE. */
typedef enum sdr_status (*sdr_visit_piece)(void *context, struct sdr_span span, const float *value);
enum sdr_status sdr_weights_visit(struct sdr_run *run, enum sdr_array array, sdr_visit_piece visit,
                                  void *context);
/* All values at once: those of this process where they all live here, else a copy in *copy, which
   the caller frees. */
enum sdr_status sdr_weights_all(struct sdr_run *run, enum sdr_array array, float **copy,
                                const float **w);

#endif
