/* Values sent ahead, and patches for them: the worker's side. The coordinator's side, sdr_prefetch,
   is in role.h. */
#ifndef SDR_SERVER_PREFETCH_H
#define SDR_SERVER_PREFETCH_H

#include "server/network.h"

struct sdr_task;

/* The changes of a task's values since they were sent. */
struct sdr_patch {
    struct sdr_body *body; /* owned: indices into the values, then new values */
    uint64_t included;     /* the worker's own steps in these values */
};

enum sdr_status sdr_keep_patch(struct sdr_task *task, const struct sdr_message *message);
enum sdr_status sdr_apply_patch(struct sdr_node *node, struct sdr_workspace *workspace,
                                const struct sdr_batch *batch, const struct sdr_patch *patch);
void sdr_forget_patches(struct sdr_task *task);

#endif
