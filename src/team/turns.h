/* Workers in cyclic order, each with a gradient in flight: the gradient of the batch assigned on
   its last turn, computed during the turns of the others. The pipeline is not drained at epoch ends
   or checkpoints: batches of the next epoch are assigned while the last ones of this epoch are in
   flight, and checkpoints contain the gradients. */
#ifndef SDR_TURNS_H
#define SDR_TURNS_H

#include "team/node.h"
#include "update/wire.h"

struct sdr_turn {
    bool pending; /* the gradient is in flight */
    uint64_t epoch;
    struct sdr_update gradient; /* its data lies in the node's space, or in `bytes` */
    uint32_t *row;        /* owned: the rows of the batch; the epoch's order may have changed */
    unsigned char *bytes; /* owned: a gradient restored from a checkpoint, or NULL */
    struct sdr_wire_reader reader;
};
struct sdr_turns {
    uint64_t epoch, at;  /* of the next batch to assign */
    struct sdr_turn *of; /* owned, per worker */
    uint64_t first;      /* the worker with the first turn */
};

enum sdr_status sdr_turns_create(struct sdr_run *run);
void sdr_turns_destroy(struct sdr_run *run);
/* Called before training: starts at the run's position, or restores gradients in flight from a
   checkpoint. */
enum sdr_status sdr_turns_begin(struct sdr_run *run);
/* Stores all gradients in flight in the run's arrays, for a checkpoint. Waits for those being
   computed. The caller must have the turn, unless no thread is running. */
enum sdr_status sdr_turns_save(struct sdr_run *run);

#endif
