/* Read-my-writes, for strategies whose workers take steps: a worker reads its own steps before
   others do. */
#ifndef SDR_SERVER_OWN_WRITES_H
#define SDR_SERVER_OWN_WRITES_H

#include "server/prefetch.h"

/* A step of the worker, kept until the values it is sent include it. */
struct sdr_own_step {
    uint64_t batch;
    struct sdr_body **part; /* owned: one per server */
};

struct sdr_own_writes {
    double rate;             /* the present step size */
    uint64_t fresh;          /* version of the values with all patches */
    uint64_t seen;           /* updates in them, the worker's own steps included */
    struct sdr_patch *patch; /* owned */
    uint64_t patches, patch_room;
    struct sdr_message early;  /* a task that came before the present one was begun; NONE: none */
    uint64_t included;         /* own steps that the values include */
    uint64_t applied;          /* own steps that the next values will include */
    uint64_t taken;            /* pushed so far, of one step or several each */
    uint64_t steps;            /* so far */
    struct sdr_own_step *step; /* owned: a ring, `first` to taken − 1 */
    uint64_t first, room;
    float *slot[2]; /* owned: optimizer state */
    bool kept;      /* the present task came without values */
    float *local;   /* owned: values after the last step; NULL: never continued from */
};

enum sdr_status sdr_own_writes_create(struct sdr_node *node);
void sdr_own_writes_free(struct sdr_node *node);
/* begin: adds the worker's own steps that the values in the workspace lack. step: takes a step on
   them. end: packs the change for the servers. push: sends it. */
enum sdr_status sdr_own_writes_begin(struct sdr_node *node, struct sdr_workspace *workspace,
                                     const struct sdr_batch *batch);
void sdr_own_writes_step(struct sdr_node *node, struct sdr_workspace *workspace,
                         const struct sdr_update *update);
enum sdr_status sdr_own_writes_end(struct sdr_node *node, struct sdr_workspace *workspace,
                                   const struct sdr_batch *batch,
                                   const struct sdr_wire_facts *facts);
enum sdr_status sdr_own_writes_push(struct sdr_node *node);
/* A server adds a worker's step to its values. */
enum sdr_status sdr_server_add_step(struct sdr_node *node, const struct sdr_gradient *gradient);

#endif
