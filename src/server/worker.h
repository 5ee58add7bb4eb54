/* A worker's task. The functions that strategies call are in role.h. */
#ifndef SDR_SERVER_WORKER_H
#define SDR_SERVER_WORKER_H

#include "server/own_writes.h"

struct sdr_task {
    uint64_t batch, version;
    int arrived; /* pieces of its values; complete when every server has sent one */
    bool sparse;
    struct sdr_body **piece;  /* owned: one per server */
    struct sdr_body **result; /* owned: the computed update, for each server */
    float computing;          /* seconds it took */
    float *residual;          /* owned: error feedback of a lossy codec; NULL: none */
    uint32_t number;          /* tasks so far */
    int64_t waited;           /* nanoseconds waiting for tasks */
    struct sdr_own_writes own;
};

void sdr_forget_task(struct sdr_node *node);
/* Packs an update as the message to a server; *body is given away. */
enum sdr_status sdr_pack_update(struct sdr_node *node, struct sdr_workspace *workspace, int server,
                                const struct sdr_update *update, const struct sdr_wire_facts *facts,
                                struct sdr_body **body);

#endif
