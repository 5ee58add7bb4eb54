/* All that the loops of a server and of a worker may call that exchange messages. */
#ifndef SDR_SERVER_ROLE_H
#define SDR_SERVER_ROLE_H

#include "server/message.h"
#include "team/node.h"

/* A worker: waits for a batch and the values to work from; computes the gradient, unless newer values arrive
   meanwhile (*done is false then); sends it to the servers. */
enum sdr_status sdr_await_task(struct sdr_node *node, bool *more);
enum sdr_status sdr_compute_gradient(struct sdr_node *node, bool *done);
enum sdr_status sdr_push_gradient(struct sdr_node *node);
/* The server that decides: */
struct sdr_body;
struct sdr_gradient {
    int worker;
    uint64_t batch, version; /* version: of the values it was computed from */
    struct sdr_body *body;   /* owned until it is applied or dropped */
    float weight;            /* of the gradient in its update; 1 when it comes */
    bool lost;               /* the worker is gone, and this is no gradient */
    struct sdr_ledger_record record;
};
uint64_t sdr_current_version(const struct sdr_node *node);
/* Epochs that were trained on, with the part of the present one. */
double sdr_epochs_done(const struct sdr_node *node);
/* Gradients not yet applied, of all planned epochs. */
uint64_t sdr_gradients_left(const struct sdr_node *node);
/* How many gradients make the next update: K, or those that are left. */
uint64_t sdr_quorum(const struct sdr_node *node);
/* Gives a worker its next batch and the values as they are. The batch it is busy with, if it is, will be
   dealt again, and its work ends. One that is gone is given nothing; where the queue is empty
   the worker is idle until a batch is returned. */
enum sdr_status sdr_assign(struct sdr_node *node, int worker);
/* The same without values: it goes on from those it has, and its own steps since. */
enum sdr_status sdr_assign_kept(struct sdr_node *node, int worker);
/* Tasks that it was given so far. */
uint64_t sdr_tasks_given(const struct sdr_node *node, int worker);
bool sdr_is_busy(const struct sdr_node *node, int worker);
/* Sends a busy worker the values of its next batch already now, or if it has them, what has changed of them
   since: what changed most, relative to its size, if the budget of the link (bytes a second; 0: none) does not
   do for all. It begins with that batch as soon as it is done with its own. */
enum sdr_status sdr_prefetch(struct sdr_node *node, int worker, double budget);
/* The next gradient of a batch that its worker still has, or the word that a worker is gone, whose batch will
   be dealt again; *more is false if the run was ended meanwhile. */
enum sdr_status sdr_await_gradient(struct sdr_node *node, struct sdr_gradient *gradient,
                                   bool *more);
/* One step with the weighted mean of the gradients (at most as many as make an update), or where workers take steps themselves, these steps are
   added up; *more is false if the run is over then. */
enum sdr_status sdr_apply(struct sdr_node *node, struct sdr_gradient *gradient, uint64_t count,
                          bool *more);
/* A worker is gone: fails, with a checkpoint, where fewer than `needed` are left. */
enum sdr_status sdr_go_on_without(struct sdr_node *node, const struct sdr_gradient *lost,
                                  uint64_t needed);
/* It is not applied; its batch will be dealt again. */
enum sdr_status sdr_drop(struct sdr_node *node, struct sdr_gradient *gradient);
/* Tells everybody that the run is over. */
enum sdr_status sdr_dismiss(struct sdr_node *node);

#endif
