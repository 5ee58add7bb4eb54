/* Workers that take turns, and what each of them has in flight: a gradient of a batch that was handed to it on its last
   turn, computed while the others have theirs. The pipeline is not drained at epoch ends or checkpoints: a batch of the next epoch
   is handed out while the last ones of this epoch are in flight, and a checkpoint keeps the gradients. */
#ifndef SDR_TURNS_H
#define SDR_TURNS_H

#include "team/node.h"
#include "update/wire.h"

struct sdr_turn {
    bool pending; /* the gradient is in flight */
    uint64_t epoch;
    struct sdr_update gradient; /* of rows of its own; in the node's space, or what follows */
    uint32_t *row;        /* owned: the rows of the batch; the order of the epoch may be gone */
    unsigned char *bytes; /* owned: a gradient that a checkpoint brought; NULL: none */
    struct sdr_wire_reader reader;
};
struct sdr_turns {
    uint64_t epoch, at;  /* of the next batch to be handed out */
    struct sdr_turn *of; /* owned, per worker */
    uint64_t first;      /* the worker whose turn it is first */
};

enum sdr_status sdr_turns_create(struct sdr_run *run);
void sdr_turns_destroy(struct sdr_run *run);
/* Called before training: starts at the run's position, or restores in-flight gradients from the checkpoint. */
enum sdr_status sdr_turns_begin(struct sdr_run *run);
/* For a checkpoint, on the turn of whoever calls it, or when nobody trains any more: waits for gradients that are being
   computed, and keeps all that are in flight with the arrays of the run. */
enum sdr_status sdr_turns_save(struct sdr_run *run);

#endif
