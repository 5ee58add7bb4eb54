/* Checkpoints: written during training, loaded by --resume. */
#ifndef SDR_RUN_CHECKPOINT_H
#define SDR_RUN_CHECKPOINT_H

#include "base/fail.h"

#include <stdbool.h>

struct sdr_run;

enum sdr_status sdr_checkpoint_write(struct sdr_run *run);
bool sdr_checkpoint_any(const char *folder);
/* Removes the partial files of a killed run. The caller holds the lock of the folder: nobody else
   writes. */
void sdr_checkpoint_tidy(const char *folder);
/* Loads the newest readable checkpoint; SDR_RUNTIME if there is none. */
enum sdr_status sdr_checkpoint_resume(struct sdr_run *run);
/* Sends the values of the loaded checkpoint, if any, to the servers that own them. */
enum sdr_status sdr_checkpoint_hand_out(struct sdr_run *run);

#endif
